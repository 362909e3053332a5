//! Counts the messages in the body of a gRPC response, and the times between them.

use net::Nanos;

/// Maximum number of intervals between messages that are kept per response.
const GAPS_MAX: usize = 1 << 16;

/// Messages of one response so far.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) count: u64,
    /// Times between the ends of consecutive messages, ns.
    pub(super) gaps_ns: Vec<Nanos>,
    ended_at: Nanos,
    /// Start of a prefix that has not arrived completely, and its length in bytes.
    prefix: [u8; grpc::PREFIX_BYTES],
    prefix_bytes: usize,
    /// Number of bytes of the current message that have not arrived.
    missing: usize,
}

impl Messages {
    /// Takes the next piece of the body, which arrived at `at`.
    pub(super) fn take(&mut self, mut piece: &[u8], at: Nanos) {
        while !piece.is_empty() {
            if self.missing > 0 {
                let used = self.missing.min(piece.len());
                self.missing -= used;
                piece = &piece[used..];
            } else {
                let used = piece.len().min(self.prefix.len() - self.prefix_bytes);
                self.prefix[self.prefix_bytes..][..used].copy_from_slice(&piece[..used]);
                self.prefix_bytes += used;
                piece = &piece[used..];
                if self.prefix_bytes < self.prefix.len() {
                    return;
                }
                let [_, length @ ..] = self.prefix;
                self.missing = u32::from_be_bytes(length) as usize;
            }
            if self.missing == 0 {
                if self.count > 0 && self.gaps_ns.len() < GAPS_MAX {
                    self.gaps_ns.push(at.saturating_sub(self.ended_at));
                }
                (self.count, self.ended_at, self.prefix_bytes) = (self.count + 1, at, 0);
            }
        }
    }

    /// Whether the body could end here.
    pub(super) fn is_complete(&self) -> bool {
        self.prefix_bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_in_any_pieces() {
        let body = b"\0\0\0\0\x03abc\0\0\0\0\0\0\0\0\0\x01d";
        for size in 1..=body.len() {
            let mut messages = Messages::default();
            for (nth, piece) in body.chunks(size).enumerate() {
                messages.take(piece, 10 * nth as Nanos);
            }
            // The messages end with bytes 7, 12 and 18.
            let at = |byte: usize| 10 * (byte / size) as Nanos;
            assert_eq!((messages.count, messages.is_complete()), (3, true), "pieces of {size}");
            assert_eq!(messages.gaps_ns, [at(12) - at(7), at(18) - at(12)], "pieces of {size}");
        }
        for cut in [1, 4, 5, 7, 9] {
            let mut messages = Messages::default();
            messages.take(&body[..cut], 0);
            assert!(!messages.is_complete() && messages.count == u64::from(cut > 8), "{cut}");
        }
    }
}
