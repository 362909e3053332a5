//! Decodes the chunked coding incrementally, without a buffer. Source: RFC 9112, section 7.1.

use super::Limits;
use super::fields::{FieldError, is_control, is_token_byte};

/// Maximum length of a chunk line in bytes, including size, extensions and CRLF.
pub(super) const LINE_BYTES_MAX: u32 = 4096;

/// Maximum excess of chunk lines over their allowance, in bytes. Each chunk allows 16 bytes plus twice its data size.
pub(super) const EXCESS_BYTES_MAX: u64 = 16 * 1024;

/// An error in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// A chunk size that does not start with a hexadecimal digit or contains an invalid byte. Contains the byte.
    #[error("0x{0:02x} in a chunk size")]
    BadSize(u8),
    /// A chunk size that exceeds 64 bits.
    #[error("a chunk of more than 2^64 - 1 bytes")]
    SizeOverflow,
    /// A control character, a bare CR or a bare LF in a chunk line.
    #[error("{0} in a chunk-size line")]
    Line(FieldError),
    /// A chunk line that exceeds the limit. Contains the limit, in bytes.
    #[error("a chunk-size line of more than {0} bytes")]
    LineTooLong(u32),
    /// Chunk extensions that are too long for the amount of data. Contains the maximum excess, in bytes.
    #[error("chunk extensions of more than {0} bytes")]
    TooMuchExtension(u64),
    /// A chunk whose data is longer or shorter than its size, so that no CRLF follows. Contains the byte found.
    #[error("expected CRLF after the chunk data, found 0x{0:02x}")]
    BadEnd(u8),
    /// An invalid trailer field.
    #[error("{0} in the trailer section")]
    Trailer(FieldError),
    /// A trailer section that exceeds the size limit of a head. Contains the limit, in bytes.
    #[error("a trailer section of more than {0} bytes")]
    TrailersTooLarge(usize),
    /// A trailer section with more fields than a head may have. Contains the limit.
    #[error("more than {0} trailer fields")]
    TooManyTrailers(usize),
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chunks {
    state: State,
    /// The chunk's size while its digits are read; afterwards, the number of data bytes left.
    size: u64,
    line_bytes: u32,
    trailer_fields: u32,
    excess_bytes: u64,
    trailer_bytes: u64,
    /// Whether folded trailer lines are accepted.
    folds: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Size,
    MoreSize,
    Space,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
}

impl Chunks {
    pub(super) fn new(folds: bool) -> Chunks {
        Chunks { folds, ..Chunks::default() }
    }

    /// Reads a part of a body. Returns the number of bytes used if the body is complete, or `None` if it is not.
    pub(super) fn read(
        &mut self,
        limits: &Limits,
        bytes: &[u8],
        mut data: impl FnMut(&[u8]),
    ) -> Result<Option<usize>, ChunkError> {
        let mut at = 0;
        while at < bytes.len() {
            if self.state == State::Data {
                let room = bytes.len() - at;
                let piece = usize::try_from(self.size).map_or(room, |left| left.min(room));
                data(&bytes[at..at + piece]);
                at += piece;
                self.size -= piece as u64;
                if self.size == 0 {
                    self.state = State::DataCr;
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            match self.state {
                State::Size | State::MoreSize | State::Space | State::Extension | State::SizeLf => self.line(byte)?,
                State::DataCr if byte == b'\r' => self.state = State::DataLf,
                State::DataLf if byte == b'\n' => (self.state, self.line_bytes) = (State::Size, 0),
                State::DataCr | State::DataLf => return Err(ChunkError::BadEnd(byte)),
                State::EndLf if byte == b'\n' => return Ok(Some(at)),
                _ => self.trailer(limits, byte)?,
            }
        }
        Ok(None)
    }

    fn line(&mut self, byte: u8) -> Result<(), ChunkError> {
        self.line_bytes += 1;
        if self.line_bytes > LINE_BYTES_MAX {
            return Err(ChunkError::LineTooLong(LINE_BYTES_MAX));
        }
        self.state = match (self.state, byte) {
            (State::Size | State::MoreSize, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).map_or(0, u64::from);
                let size = self.size.checked_mul(16).and_then(|size| size.checked_add(digit));
                self.size = size.ok_or(ChunkError::SizeOverflow)?;
                State::MoreSize
            }
            (State::MoreSize | State::Space, b' ' | b'\t') => State::Space,
            (State::MoreSize | State::Space, b';') => State::Extension,
            (State::MoreSize | State::Extension, b'\r') => State::SizeLf,
            (State::SizeLf, b'\n') => {
                let fair = self.size.saturating_mul(2).saturating_add(16);
                self.excess_bytes = (self.excess_bytes + u64::from(self.line_bytes)).saturating_sub(fair);
                if self.excess_bytes > EXCESS_BYTES_MAX {
                    return Err(ChunkError::TooMuchExtension(EXCESS_BYTES_MAX));
                }
                if self.size == 0 { State::Trailer } else { State::Data }
            }
            (State::SizeLf, _) => return Err(ChunkError::Line(FieldError::BareCr)),
            (_, b'\n') => return Err(ChunkError::Line(FieldError::BareLf)),
            (State::Extension, _) if is_control(byte) => return Err(ChunkError::Line(FieldError::Control(byte))),
            (State::Extension, _) => State::Extension,
            _ => return Err(ChunkError::BadSize(byte)),
        };
        Ok(())
    }

    /// Reads a byte of the trailer section, under the same rules as for the fields of a head.
    fn trailer(&mut self, limits: &Limits, byte: u8) -> Result<(), ChunkError> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > limits.head_bytes as u64 {
            return Err(ChunkError::TrailersTooLarge(limits.head_bytes));
        }
        let wrong = |error| Err(ChunkError::Trailer(error));
        self.state = match (self.state, byte) {
            (State::Trailer, b'\r') => State::EndLf,
            (State::Trailer, b' ' | b'\t') if self.folds && self.trailer_fields > 0 => State::TrailerValue,
            (State::Trailer, b' ' | b'\t') => return wrong(FieldError::Fold),
            (State::Trailer, b':') => return wrong(FieldError::EmptyName),
            (State::Trailer, _) if is_token_byte(byte) => {
                self.trailer_fields += 1;
                if self.trailer_fields as usize > limits.headers {
                    return Err(ChunkError::TooManyTrailers(limits.headers));
                }
                State::TrailerName
            }
            (State::TrailerName, b':') => State::TrailerValue,
            (State::TrailerName, b' ' | b'\t') => return wrong(FieldError::SpaceBeforeColon),
            (State::TrailerName, b'\r') => return wrong(FieldError::NoColon),
            (State::TrailerName, _) if is_token_byte(byte) => State::TrailerName,
            (State::TrailerValue, b'\r') => State::TrailerLf,
            (State::TrailerLf, b'\n') => State::Trailer,
            (State::TrailerLf | State::EndLf, _) => return wrong(FieldError::BareCr),
            (_, b'\n') => return wrong(FieldError::BareLf),
            (State::TrailerValue, _) if is_control(byte) => return wrong(FieldError::Control(byte)),
            (State::TrailerValue, _) => State::TrailerValue,
            _ => return wrong(FieldError::BadName(byte)),
        };
        Ok(())
    }
}
