//! Meta commands: one letter each, and what a letter may carry.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Expiry, Limits, Refusal};
use crate::number;

/// Bytes of an opaque token. Source: memcached 1.6.18, which refuses a flag of 33 bytes with its letter.
const OPAQUE_BYTES: usize = 31;

/// What `ms` and `ma` do with a key, by their flag `M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `S`, the usual one of `ms`: store.
    Set,
    /// `E`: only where there is none.
    Add,
    /// `A`: behind what is there.
    Append,
    /// `P`: before what is there.
    Prepend,
    /// `R`: only where there is one.
    Replace,
    /// `I`, the usual one of `ma`: count up.
    Increment,
    /// `D`: count down.
    Decrement,
}

/// The flags of a meta command: each a letter, perhaps with an argument, and each at most once. Their arguments are valid where they were parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags<'a> {
    words: &'a [u8],
    letters: u64,
}

impl<'a> Flags<'a> {
    /// Whether the flag `letter` is there.
    #[inline]
    pub fn has(&self, letter: u8) -> bool {
        bit(letter).is_some_and(|bit| self.letters & bit != 0)
    }

    /// What follows the letter, perhaps nothing; `None` where the flag is not there.
    pub fn argument(&self, letter: u8) -> Option<&'a [u8]> {
        if self.has(letter) {
            self.iter().find(|(other, _)| *other == letter).map(|(_, argument)| argument)
        } else {
            None
        }
    }

    /// The argument as a number: of `F` the client flags, of which 32 bits count, of `C`, `D` and `J` 64 bits without sign, which are wrapped into
    /// the sign here; of `R` seconds.
    pub fn number(&self, letter: u8) -> Option<i64> {
        let argument = self.argument(letter)?;
        number::signed_of_c(argument).or_else(|| number::unsigned_of_c(argument).map(u64::cast_signed))
    }

    /// The argument as an exptime, of `T`, `N` and `R`.
    pub fn expiry(&self, letter: u8) -> Option<Expiry> {
        self.number(letter).map(|seconds| Expiry::of(seconds as i32))
    }

    /// The flags in their order, letter and argument: answers repeat what was asked in this order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        words(self.words).map(|word| (word[0], &word[1..]))
    }

    /// What `M` says, or `usual`.
    pub(super) fn mode(&self, command: u8) -> Result<Mode, Refusal> {
        let Some(argument) = self.argument(b'M') else {
            return Ok(if command == b's' { Mode::Set } else { Mode::Increment });
        };
        Ok(match (command, argument) {
            (b's', [b'S' | b's']) => Mode::Set,
            (b's', [b'E' | b'e']) => Mode::Add,
            (b's', [b'A' | b'a']) => Mode::Append,
            (b's', [b'P' | b'p']) => Mode::Prepend,
            (b's', [b'R' | b'r']) => Mode::Replace,
            (b'a', [b'I' | b'i' | b'+']) => Mode::Increment,
            (b'a', [b'D' | b'd' | b'-']) => Mode::Decrement,
            (b's', _) => return Err(Refusal::BadSetMode),
            _ => return Err(Refusal::BadCountMode),
        })
    }

    /// The flags in `words` of a meta command.
    pub(super) fn parse(words_bytes: &'a [u8], key: &[u8], limits: &Limits) -> Result<Flags<'a>, Refusal> {
        let mut letters = 0u64;
        for word in words(words_bytes) {
            let (letter, argument) = (word[0], &word[1..]);
            let bit = bit(letter).ok_or(Refusal::BadFlag)?;
            if letters & bit != 0 {
                return Err(Refusal::DuplicateFlag);
            }
            letters |= bit;
            match letter {
                b'T' | b'N' | b'R' if !is_exptime(argument) => return Err(Refusal::BadToken),
                b'F' if number::unsigned_of_c(argument).is_none() => return Err(Refusal::BadLine),
                b'C' if number::unsigned_of_c(argument).is_none() => return Err(Refusal::BadToken),
                b'D' if number::unsigned_of_c(argument).is_none() => return Err(Refusal::BadDeltaFlag),
                b'J' if number::unsigned_of_c(argument).is_none() => return Err(Refusal::BadInitial),
                b'M' if argument.len() != 1 => return Err(Refusal::ModeLength),
                b'O' if argument.len() > OPAQUE_BYTES => return Err(Refusal::OpaqueTooLong),
                b'b' => {
                    let mut room = [0; 3 * 256 / 4];
                    match decode_key(key, &mut room) {
                        Some(decoded) if (1..=limits.key_bytes).contains(&decoded.len()) => {}
                        _ => return Err(Refusal::BadKey),
                    }
                }
                b'b'..=b'z' | b'A'..=b'Z' if b"cfhklqstuvCDFIJLMNOPRT".contains(&letter) => {}
                _ => return Err(Refusal::BadFlag),
            }
        }
        Ok(Flags { words: words_bytes, letters })
    }
}

fn is_exptime(argument: &[u8]) -> bool {
    number::signed_of_c(argument).is_some()
}

fn bit(letter: u8) -> Option<u64> {
    match letter {
        b'a'..=b'z' => Some(1 << (letter - b'a')),
        b'A'..=b'Z' => Some(1 << (letter - b'A' + 26)),
        _ => None,
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

/// The key that `text` stands for in base64, decoded into `room`; `None` where it is no base64, or `room` too small. 192 bytes of room are
/// enough for what fits into a key of 250 bytes. Source: memcached's flag `b`.
pub fn decode_key<'r>(text: &[u8], room: &'r mut [u8]) -> Option<&'r [u8]> {
    let bytes = STANDARD.decode_slice(text, room).ok()?;
    Some(&room[..bytes])
}

/// Appends `key` in base64, as flag `b` announces it.
pub fn encode_key(out: &mut Vec<u8>, key: &[u8]) {
    let start = out.len();
    out.resize(start + key.len().div_ceil(3) * 4, 0);
    let written =
        STANDARD.encode_slice(key, &mut out[start..]).expect("there is room for four letters per three bytes");
    out.truncate(start + written);
}
