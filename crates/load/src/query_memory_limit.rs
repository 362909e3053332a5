//! Queries the memory limit of a cache before a load, on a separate connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use study::spec::Dialect;

const PATIENCE: Duration = Duration::from_secs(1);
const ANSWER_BYTES: usize = 64 * 1024;

/// Queries the server's memory limit, in bytes as counted by the server. `None` if unknown or unlimited.
pub(crate) fn query_memory_limit(address: SocketAddr, dialect: Dialect) -> Option<u64> {
    let (request, label): (&[u8], &[u8]) = match dialect {
        Dialect::Memcached => (b"stats\r\n", b"STAT limit_maxbytes "),
        Dialect::Redis => (b"*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n", b"\nmaxmemory:"),
        Dialect::HttpCache => return None,
    };
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request).ok()?;
    let until_ns = net::thread_and_process::monotonic_ns() + PATIENCE.as_nanos() as u64;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while answer.len() < ANSWER_BYTES && net::thread_and_process::monotonic_ns() < until_ns {
        match stream.read(&mut piece).ok()? {
            0 => return None,
            read => answer.extend_from_slice(&piece[..read]),
        }
        if let Some(limit) = number_behind(label, &answer) {
            return Some(limit).filter(|limit| *limit > 0);
        }
        if is_end_without_limit(&answer) {
            return None;
        }
    }
    None
}

/// Whether `answer` is an error or a complete list of statistics.
fn is_end_without_limit(answer: &[u8]) -> bool {
    let is_error = answer.starts_with(b"-") || answer.starts_with(b"ERROR");
    answer.ends_with(b"\r\n") && is_error || answer.ends_with(b"END\r\n")
}

fn number_behind(label: &[u8], answer: &[u8]) -> Option<u64> {
    let at = answer.windows(label.len()).position(|window| window == label)? + label.len();
    let digits = answer[at..].split(|byte| *byte == b'\r').next().filter(|digits| at + digits.len() < answer.len())?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_complete_lists_end_the_query() {
        for (answer, expected) in [
            ("ERROR\r\n", true),
            ("-ERR unk", false),
            ("-ERR unknown\r\n", true),
            ("STAT a 1\r\nEND\r\n", true),
            ("STAT a", false),
        ] {
            assert_eq!(is_end_without_limit(answer.as_bytes()), expected, "{answer}");
        }
    }

    #[test]
    fn parses_numbers_of_complete_lines() {
        // The responses come from memcached 1.6.18 and Redis 7.0.15.
        for (label, answer, expected) in [
            ("STAT limit_maxbytes ", "STAT pid 1\r\nSTAT limit_maxbytes 67108864\r\nEND\r\n", Some(67_108_864)),
            ("STAT limit_maxbytes ", "STAT limit_maxbytes 671", None),
            ("\nmaxmemory:", "$9\r\nused:1\r\nmaxmemory:0\r\nmaxmemory_human:0B\r\n", Some(0)),
            ("\nmaxmemory:", "-ERR unknown\r\n", None),
            ("\nmaxmemory:", "\nmaxmemory:x\r\n", None),
        ] {
            assert_eq!(number_behind(label.as_bytes(), answer.as_bytes()), expected, "{answer}");
        }
    }
}
