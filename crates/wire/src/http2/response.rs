//! The head of a response. Source: RFC 9113, section 8.3.2.

use std::collections::VecDeque;

use super::error::ConnectionError;
use super::field_rules::{FieldError, FieldRules};
use super::hpack::Decoder;
use super::{Limits, Settings};

/// The head of a response, final or interim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseHead {
    /// The status code: 100 to 999.
    pub status: u16,
    /// The declared length of the body in bytes; `None` if undeclared.
    pub content_length: Option<u64>,
}

impl ResponseHead {
    /// Decodes a field block and passes each regular field to `field`. An inner [`FieldError`] ends only the stream.
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
                (b":status", _) if status.is_some() => rules.fail(FieldError::REPEATED_PSEUDO),
                (b":status", Some(code)) => status = Some(code),
                (b":status", None) => rules.fail(FieldError::STATUS),
                _ => rules.fail(FieldError::UNKNOWN_PSEUDO),
            }
        })?;
        Ok(rules.finish().and_then(|content_length| {
            Ok(ResponseHead { status: status.ok_or(FieldError::MISSING_PSEUDO)?, content_length })
        }))
    }

    /// Whether this is an interim head, which another head follows. Source: RFC 9110, section 15.2.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }
}

fn parse_status(value: &[u8]) -> Option<u16> {
    let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = value else { return None };
    let code = [a, b, c].into_iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    (code != 101).then_some(code)
}

/// Decoder of one connection's responses. Does not decode a recent block again if its meaning has not changed.
#[derive(Debug, Clone, Default)]
pub struct ResponseDecoder {
    decoder: Decoder,
    known: [KnownBlock; KNOWN_BLOCKS],
    recent: usize,
    /// Indices of known blocks whose fields are not in the table yet. Servers often insert fields but never use them.
    skipped: VecDeque<usize>,
    skipped_bytes: usize,
}

const KNOWN_BLOCKS: usize = 4;

#[derive(Debug, Clone, Default)]
struct KnownBlock {
    /// The encoded block. Empty if the slot is unused: an empty block has no status.
    block: Vec<u8>,
    /// Number of table changes when the block was decoded; `None` if the block does not depend on the table.
    changes: Option<u64>,
    inserted_bytes: usize,
    head: ResponseHead,
}

impl ResponseDecoder {
    /// Creates a decoder for a client whose SETTINGS_HEADER_TABLE_SIZE is `table_bytes`. If that is below the initial
    /// size, apply it with [`Decoder::allow_table`] once the server has acknowledged it.
    pub fn new(table_bytes: u32) -> ResponseDecoder {
        let mut decoder = ResponseDecoder::default();
        decoder.decoder.allow_table(table_bytes.max(Settings::DEFAULT.header_table_size));
        decoder
    }

    /// Reads a head like [`ResponseHead::read`].
    pub fn read(&mut self, block: &[u8], limits: &Limits) -> Result<Result<ResponseHead, FieldError>, ConnectionError> {
        for offset in 0..KNOWN_BLOCKS {
            let index = (self.recent + offset) % KNOWN_BLOCKS;
            let known = &self.known[index];
            let is_same_table =
                || known.changes.is_none_or(|changes| self.skipped.is_empty() && changes == self.decoder.changes);
            if known.block == block && !block.is_empty() && is_same_table() {
                self.recent = index;
                let head = known.head;
                if known.inserted_bytes > 0 {
                    self.skip(index);
                }
                return Ok(Ok(head));
            }
        }
        self.read_new(block, limits)
    }

    /// Returns the decoder, for blocks other than heads. First decodes the skipped blocks.
    pub fn decoder(&mut self, limits: &Limits) -> Result<&mut Decoder, ConnectionError> {
        self.skipped_bytes = 0;
        while let Some(index) = self.skipped.pop_front() {
            self.decoder.decode(&self.known[index].block, limits, |_, _| {})?;
        }
        Ok(&mut self.decoder)
    }

    fn skip(&mut self, index: usize) {
        self.skipped.push_back(index);
        self.skipped_bytes += self.known[index].inserted_bytes;
        // If later blocks fill the table, they evict all fields of the oldest skipped block, so it is never decoded.
        while let Some(&oldest) = self.skipped.front()
            && self.skipped_bytes - self.known[oldest].inserted_bytes >= self.decoder.table_bytes_max()
        {
            self.skipped_bytes -= self.known[oldest].inserted_bytes;
            self.skipped.pop_front();
        }
    }

    fn read_new(&mut self, block: &[u8], limits: &Limits) -> Result<Result<ResponseHead, FieldError>, ConnectionError> {
        let decoder = self.decoder(limits)?;
        let changes = decoder.changes;
        let read = ResponseHead::read(decoder, block, limits, |_, _| {})?;
        let (inserted_bytes, depends_on_table) = (decoder.inserted_bytes, decoder.depends_on_table);
        let has_changed = decoder.changes != changes;
        if let Ok(head) = read
            && !(depends_on_table && has_changed)
        {
            self.recent = (self.recent + 1) % KNOWN_BLOCKS;
            let known = &mut self.known[self.recent];
            known.block.clear();
            known.block.extend_from_slice(block);
            (known.inserted_bytes, known.head) = (inserted_bytes, head);
            known.changes = depends_on_table.then_some(changes);
        }
        Ok(read)
    }
}
