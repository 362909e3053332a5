//! The first difference between received and expected bytes, for error messages.

const SHOWN_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    at: u64,
    found: [u8; SHOWN_BYTES],
    found_bytes: u8,
}

impl Difference {
    /// Finds the first difference in a piece that starts at offset `at`. `is_same` checks the byte at an offset.
    #[cold]
    pub(crate) fn find(at: u64, piece: &[u8], is_same: impl Fn(u64, u8) -> bool) -> Option<Difference> {
        let alike = piece.iter().zip(at..).position(|(&byte, at)| !is_same(at, byte))?;
        let mut difference = Difference::end(at + alike as u64);
        difference.add(&piece[alike..]);
        Some(difference)
    }

    /// A difference at the end of the received bytes, offset `at`, because more were expected.
    pub(crate) fn end(at: u64) -> Difference {
        Difference { at, found: [0; SHOWN_BYTES], found_bytes: 0 }
    }

    /// Takes the next piece of compared bytes, at offset `at`, of which only the first difference is kept.
    #[cold]
    pub(crate) fn track(first: &mut Option<Box<Self>>, at: u64, piece: &[u8], is_same: impl Fn(u64, u8) -> bool) {
        match first {
            Some(difference) => difference.add(piece),
            None => *first = Difference::find(at, piece, is_same).map(Box::new),
        }
    }

    #[cold]
    fn add(&mut self, piece: &[u8]) {
        let begun = usize::from(self.found_bytes);
        let taken = piece.len().min(SHOWN_BYTES - begun);
        self.found[begun..begun + taken].copy_from_slice(&piece[..taken]);
        self.found_bytes += taken as u8;
    }

    /// Describes the difference from the `expected` bytes.
    pub(crate) fn describe(&self, expected: &[u8]) -> String {
        let side = |bytes: &[u8]| match bytes {
            [] => "the end".to_owned(),
            bytes => format!("`{}`", bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii()),
        };
        let found = side(&self.found[..usize::from(self.found_bytes)]);
        format!("at offset {}, found {found}, expected {}", self.at, side(&expected[self.at as usize..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(found: &str, expected: &str, piece_bytes: usize) -> Option<String> {
        let mut difference = None;
        let mut at = 0;
        for piece in found.as_bytes().chunks(piece_bytes) {
            let is_same = |at, byte| expected.as_bytes().get(at as usize) == Some(&byte);
            Difference::track(&mut difference, at, piece, is_same);
            at += piece.len() as u64;
        }
        let difference = difference.or((found.len() < expected.len()).then(|| Box::new(Difference::end(at))))?;
        Some(difference.describe(expected.as_bytes()))
    }

    #[test]
    fn shows_first_difference_for_any_chunking() {
        let table = [
            ("test", "test", None),
            ("", "", None),
            ("tent", "test", Some("at offset 2, found `nt`, expected `st`")),
            ("tes", "test", Some("at offset 3, found the end, expected `t`")),
            ("", "test", Some("at offset 0, found the end, expected `test`")),
            ("test!", "test", Some("at offset 4, found `!`, expected the end")),
            ("a\0\n`", "a\r\n`", Some(r"at offset 1, found `\x00\n``, expected `\r\n``")),
            (
                "0123456789abcdefghijklmnop",
                "x123456789abcdefghijklmnop",
                Some("at offset 0, found `0123456789abcdef`, expected `x123456789abcdef`"),
            ),
        ];
        for (found, expected, words) in table {
            for piece_bytes in [1, 2, 3, 100] {
                assert_eq!(
                    between(found, expected, piece_bytes).as_deref(),
                    words,
                    "{found} in pieces of {piece_bytes}"
                );
            }
        }
    }
}
