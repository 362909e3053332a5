//! Bytes that wait to be sent on one connection.

#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Removes the first `count` bytes. Moves the rest to the front once it is the smaller half, so that memory stays
    /// within twice the waiting bytes and each byte is moved at most once on average.
    pub(crate) fn consume(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.bytes.len(), "more was sent than was queued");
        if self.sent == self.bytes.len() {
            self.clear();
        } else if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_order_and_memory_is_reused() {
        let mut queue = Outgoing::default();
        queue.push(b"abcdef");
        queue.consume(2);
        assert_eq!(queue.waiting(), b"cdef");
        queue.consume(2);
        assert_eq!((queue.waiting(), queue.bytes.len()), (&b"ef"[..], 2));
        queue.push(b"gh");
        assert_eq!(queue.waiting(), b"efgh");
        queue.consume(4);
        assert!(queue.is_empty());
        assert_eq!(queue.len(), 0);
    }
}
