//! Cuts requests into pieces.

use super::Split;

/// Maximum length of a request cut at every position, bytes. Each position takes a connection.
pub const SPLIT_MAX_BYTES: usize = 4096;

/// One way to cut a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Not at all.
    Whole,
    /// After each of these numbers of bytes.
    At(Vec<usize>),
    /// After every byte.
    Bytes,
}

impl Cut {
    /// A description for messages: `cut after 4 bytes`.
    pub fn words(&self) -> Option<String> {
        match self {
            Cut::Whole => None,
            Cut::At(at) => {
                let at = at.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                Some(format!("cut after {at} byte{}", if at == "1" { "" } else { "s" }))
            }
            Cut::Bytes => Some("byte by byte".to_owned()),
        }
    }

    /// Ends of the pieces of a request of `length` bytes; the last one is `length`.
    pub fn ends(&self, length: usize) -> Vec<usize> {
        let mut ends: Vec<usize> = match self {
            Cut::Whole => Vec::new(),
            Cut::At(at) => at.iter().copied().filter(|at| (1..length).contains(at)).collect(),
            Cut::Bytes => (1..length).collect(),
        };
        ends.push(length);
        ends
    }
}

/// All cuts of `length` bytes, each for a connection; `None` if too long to cut at every position.
pub fn cuts(split: &Split, length: usize) -> Option<Vec<Cut>> {
    match split {
        Split::No => Some(vec![Cut::Whole]),
        Split::Bytes => Some(vec![Cut::Bytes]),
        Split::At(at) => Some(vec![Cut::At(at.iter().map(|at| *at as usize).collect())]),
        Split::All if length > SPLIT_MAX_BYTES => None,
        Split::All => Some((1..length).map(|at| Cut::At(vec![at])).chain([Cut::Bytes]).collect()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(bytes: &[u8], cut: &Cut) -> Vec<Vec<u8>> {
        let ends = cut.ends(bytes.len());
        let begins = std::iter::once(0).chain(ends.iter().copied());
        begins.zip(&ends).map(|(begin, end)| bytes[begin..*end].to_vec()).collect()
    }

    proptest! {
        #[test]
        fn pieces_add_up_to_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..200), at in prop::collection::btree_set(1u32..300, 0..6)) {
            for split in [Split::No, Split::Bytes, Split::All, Split::At(at.into_iter().collect())] {
                for cut in cuts(&split, bytes.len()).unwrap() {
                    let pieces = pieces(&bytes, &cut);
                    prop_assert_eq!(&pieces.concat(), &bytes);
                    prop_assert!(bytes.is_empty() || pieces.iter().all(|piece| !piece.is_empty()), "{:?}", cut);
                }
            }
        }

        #[test]
        fn all_cuts_every_position_once(length in 1usize..300) {
            let cuts = cuts(&Split::All, length).unwrap();
            let positions = cuts.iter().filter_map(|cut| if let Cut::At(at) = cut { Some(at[0]) } else { None });
            prop_assert_eq!(positions.collect::<Vec<_>>(), (1..length).collect::<Vec<_>>());
            prop_assert_eq!(cuts.last(), Some(&Cut::Bytes));
        }
    }

    #[test]
    fn describes_cuts_and_limits_length() {
        assert_eq!(Cut::At(vec![1]).words().as_deref(), Some("cut after 1 byte"));
        assert_eq!(Cut::At(vec![4, 17]).words().as_deref(), Some("cut after 4, 17 bytes"));
        assert_eq!(cuts(&Split::All, SPLIT_MAX_BYTES + 1), None);
        assert_eq!(cuts(&Split::Bytes, SPLIT_MAX_BYTES + 1), Some(vec![Cut::Bytes]));
    }
}
