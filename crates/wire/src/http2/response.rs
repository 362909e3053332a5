//! The head of a response. Source: RFC 9113 section 8.3.2.

use super::Limits;
use super::error::ConnectionError;
use super::fields::{FieldError, FieldRules};
use super::hpack::Decoder;

/// The head of a response, final or interim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseHead {
    /// The status code: 100 to 999.
    pub status: u16,
    /// The declared length of the body, in bytes.
    pub content_length: Option<u64>,
}

impl ResponseHead {
    /// Decodes a field block and passes each regular field to `field`. The outer error ends the connection, the inner
    /// one only the stream.
    pub fn read(
        decoder: &mut Decoder,
        block: &[u8],
        limits: &Limits,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<Result<ResponseHead, FieldError>, ConnectionError> {
        let mut rules = FieldRules::default();
        let mut status = None;
        decoder.decode(block, limits, |name, value| {
            if !rules.is_pseudo(name, value) {
                return field(name, value);
            }
            match (name, parse_status(value)) {
                (b":status", _) if status.is_some() => rules.fail(FieldError::RepeatedPseudo),
                (b":status", Some(code)) => status = Some(code),
                (b":status", None) => rules.fail(FieldError::Status),
                _ => rules.fail(FieldError::UnknownPseudo),
            }
        })?;
        Ok(rules.finish().and_then(|content_length| {
            Ok(ResponseHead { status: status.ok_or(FieldError::MissingPseudo)?, content_length })
        }))
    }

    /// Whether another head follows. Source: RFC 9110 section 15.2.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }
}

fn parse_status(value: &[u8]) -> Option<u16> {
    let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = value else { return None };
    let code = [a, b, c].into_iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    (code != 101).then_some(code)
}

/// The last heads of one connection. A block with the same bytes and the same dynamic table is not decoded again.
#[derive(Debug, Clone, Default)]
pub struct ResponseMemo {
    known: [KnownBlock; MEMO_BLOCKS],
    /// Index of the latest hit or insertion.
    recent: usize,
}

const MEMO_BLOCKS: usize = 4;

#[derive(Debug, Clone, Default)]
struct KnownBlock {
    /// Empty if the slot is unused: an empty block has no status.
    block: Vec<u8>,
    changes: u64,
    head: ResponseHead,
}

impl ResponseMemo {
    /// Like [`ResponseHead::read`], for a caller that needs no other fields.
    #[inline]
    pub fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        limits: &Limits,
    ) -> Result<Result<ResponseHead, FieldError>, ConnectionError> {
        let changes = decoder.changes();
        for offset in 0..MEMO_BLOCKS {
            let index = (self.recent + offset) % MEMO_BLOCKS;
            let known = &self.known[index];
            if known.block == block && known.changes == changes && !block.is_empty() {
                self.recent = index;
                return Ok(Ok(known.head));
            }
        }
        let head = ResponseHead::read(decoder, block, limits, |_, _| {})?;
        if let Ok(head) = head
            && decoder.changes() == changes
        {
            self.recent = (self.recent + 1) % MEMO_BLOCKS;
            let known = &mut self.known[self.recent];
            known.block.clear();
            known.block.extend_from_slice(block);
            (known.changes, known.head) = (changes, head);
        }
        Ok(head)
    }
}
