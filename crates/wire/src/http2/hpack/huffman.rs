//! The Huffman code. Source: RFC 7541, section 5.2 and appendix B. The lengths of the codes determine their values,
//! because codes of equal length are consecutive in order of their symbols (canonical code).

use super::HpackError;

const SYMBOLS: usize = 257;
const LENGTH_MAX: usize = 30;

/// Length of each symbol's code, in bits. The last symbol, EOS, never appears in a string.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

struct Code {
    codes: [u32; SYMBOLS],
    symbols: [u16; SYMBOLS],
    /// First code of each length, and the position of its symbol in `symbols`.
    first: [(u32, u32); LENGTH_MAX + 2],
}

static CODE: Code = {
    let mut code = Code { codes: [0; SYMBOLS], symbols: [0; SYMBOLS], first: [(0, 0); LENGTH_MAX + 2] };
    let (mut next, mut position, mut length) = (0, 0, 1);
    while length <= LENGTH_MAX + 1 {
        code.first[length] = (next, position as u32);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                code.codes[symbol] = next;
                code.symbols[position] = symbol as u16;
                next += 1;
                position += 1;
            }
            symbol += 1;
        }
        next <<= 1;
        length += 1;
    }
    code
};

/// Symbol and code length in bits for each value of the next eight bits; length 0 if the code is longer.
static SHORT: [(u8, u8); 256] = {
    let mut table = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let length = LENGTHS[symbol] as u32;
        if length <= 8 {
            let start = (CODE.codes[symbol] as usize) << (8 - length);
            let mut at = start;
            while at < start + (1 << (8 - length)) {
                table[at] = (symbol as u8, length as u8);
                at += 1;
            }
        }
        symbol += 1;
    }
    table
};

pub(super) fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let mut input = bytes.iter();
    // The top of `window` holds the next `bits` bits.
    let (mut window, mut bits) = (0u64, 0usize);
    loop {
        while bits <= 32 {
            let Some(&byte) = input.next() else { break };
            window |= u64::from(byte) << (56 - bits);
            bits += 8;
        }
        // Padding with ones cannot complete a code.
        let padded = window | u64::MAX >> bits;
        let (mut symbol, short) = SHORT[(padded >> 56) as usize];
        let mut length = usize::from(short);
        if length == 0 {
            (symbol, length) = long(padded)?;
        }
        if length > bits {
            break;
        }
        out.push(symbol);
        window <<= length;
        bits -= length;
    }
    if bits < 8 && window == !(u64::MAX >> bits) { Ok(()) } else { Err(HpackError::Huffman) }
}

#[cold]
fn long(window: u64) -> Result<(u8, usize), HpackError> {
    for length in 9..=LENGTH_MAX {
        let code = (window >> (64 - length)) as u32;
        let (first, position) = CODE.first[length];
        let count = CODE.first[length + 1].1 - position;
        if let Some(nth) = code.checked_sub(first).filter(|nth| *nth < count) {
            // EOS is the only symbol that does not fit into 8 bits.
            let symbol = CODE.symbols[(position + nth) as usize];
            return if symbol == 256 { Ok((0, 64)) } else { Ok((symbol as u8, length)) };
        }
    }
    Err(HpackError::Huffman)
}

pub(super) fn encoded_bytes(text: &[u8]) -> usize {
    text.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum::<usize>().div_ceil(8)
}

pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut bits) = (0u64, 0);
    for &byte in text {
        let symbol = usize::from(byte);
        bits += usize::from(LENGTHS[symbol]);
        window |= u64::from(CODE.codes[symbol]) << (64 - bits);
        while bits >= 8 {
            out.push((window >> 56) as u8);
            window <<= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(((window | u64::MAX >> bits) >> 56) as u8);
    }
}
