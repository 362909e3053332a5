//! Reads whole files up to a maximum size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub(crate) fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(io::Error::other(format!("more than {limit} bytes"))) } else { Ok(bytes) }
}

pub(crate) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    read_limited(path, limit).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
}
