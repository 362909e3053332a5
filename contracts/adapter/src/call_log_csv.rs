//! The call log, a CSV file with one line per call, written by its own thread.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::message_queue_thread::Worker;
use crate::metrics::{SKIPS, Skip};

/// The header line of the call log.
pub const HEADER: &str = "call,side,operation,own_ns,waited_ns,whip_bytes,whip_bytes_with_peers,metadata_bytes,extra_bytes,entries,store_bytes,verdict,at_ns,rss_bytes,store_file_bytes";

/// Maximum number of queued lines. A call waits if the queue is full, since a missing line would bias a mean. The queue
/// is allocated in full at the start, so it must be short to keep an adapter small.
const WAITING_MAX: usize = 4_096;
/// Number of lines per reading of the process's memory use. The writer thread takes the readings, so no call waits.
const LINES_A_LOOK: u64 = 20;

/// The logged values of a call, in the order of [`HEADER`].
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) call: u64,
    /// The adapter's side, `client` or `server`; `end` in the last line, which has the totals once the store is closed.
    pub(crate) side: &'static str,
    pub(crate) operation: Arc<str>,
    /// Time from receiving to forwarding the request, plus the same for the reply, in ns.
    pub(crate) own_ns: u64,
    /// Time spent waiting for the next hop, including connecting, in ns.
    pub(crate) waited_ns: u64,
    /// Size of the call's metadata as Whip counts it, in bytes, without the addresses of peers (M1a).
    pub(crate) whip_bytes: usize,
    /// Size of the call's metadata as Whip counts it, in bytes, with the addresses of peers (M1b).
    pub(crate) whip_bytes_with_peers: usize,
    /// Bytes of metadata in both messages, with length prefixes (M2).
    pub(crate) metadata_bytes: usize,
    /// Bytes between the adapters in addition to the messages themselves (M3).
    pub(crate) extra_bytes: i64,
    /// Number of service entries that this adapter has created up to this call.
    pub(crate) entries: u64,
    pub(crate) store_bytes: u64,
    pub(crate) store_file_bytes: u64,
    /// The reason why the call was not checked; `None` if it was checked.
    pub(crate) skip: Option<Skip>,
}

pub(crate) fn start(path: &Path) -> std::io::Result<Worker<Line>> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "{HEADER}")?;
    let path = path.to_owned();
    Worker::start("calls", WAITING_MAX, move |lines| {
        if let Err(error) = write(file, lines) {
            // Calls still pass, but readers of the file must know that it is incomplete.
            let _ = writeln!(std::io::stderr(), "cannot write more calls to {}: {error}", path.display());
        }
    })
}

/// The resident set in bytes, from the number of pages in `statm`. `None` if unreadable. Source: proc_pid_statm(5).
fn resident(statm: &File) -> Option<u64> {
    let mut text = [0; 128];
    let length = statm.read_at(&mut text, 0).ok()?;
    let pages = std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?;
    Some(pages.parse::<u64>().ok()? * rustix::param::page_size() as u64)
}

fn write(mut file: BufWriter<File>, from: &Receiver<Line>) -> std::io::Result<()> {
    // Some systems lack this file. The column for the resident set then stays empty.
    let statm = File::open("/proc/self/statm").ok();
    let (begun, mut lines) = (crate::clock::now(), 0_u64);
    let cell = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
    loop {
        match from.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => {
                let Line { call, side, operation, own_ns, waited_ns, whip_bytes, whip_bytes_with_peers, .. } = &line;
                let Line { metadata_bytes, extra_bytes, entries, store_bytes, store_file_bytes, skip, .. } = &line;
                let verdict = match skip {
                    Some(skip) => format!("skipped:{}", SKIPS[*skip as usize]),
                    None => (if *side == "end" { "" } else { "checked" }).to_owned(),
                };
                // Most lines leave the time since the start and the resident set empty.
                let looks = *side == "end" || lines.is_multiple_of(LINES_A_LOOK);
                lines += 1;
                let rss_bytes = statm.as_ref().filter(|_| looks).and_then(resident);
                let at_ns = rss_bytes.map(|_| begun.elapsed().as_nanos() as u64);
                // Operation names need no quoting: validated path templates of REST contain no comma or quote.
                writeln!(
                    file,
                    "{call},{side},{operation},{own_ns},{waited_ns},{whip_bytes},{whip_bytes_with_peers},{metadata_bytes},{extra_bytes},{entries},{store_bytes},{verdict},{},{},{store_file_bytes}",
                    cell(at_ns),
                    cell(rss_bytes)
                )?;
            }
            Err(RecvTimeoutError::Timeout) => file.flush()?,
            Err(RecvTimeoutError::Disconnected) => return file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(call: u64) -> Line {
        Line {
            call,
            side: "client",
            operation: "A.b".into(),
            own_ns: 1,
            waited_ns: 1,
            whip_bytes: 1,
            whip_bytes_with_peers: 1,
            metadata_bytes: 1,
            extra_bytes: 1,
            entries: 1,
            store_bytes: 1,
            store_file_bytes: 1,
            skip: None,
        }
    }

    #[test]
    fn reports_a_full_disk() {
        let file = BufWriter::with_capacity(0, File::options().write(true).open("/dev/full").unwrap());
        let (to, from) = std::sync::mpsc::sync_channel(1);
        to.send(line(1)).unwrap();
        drop(to);
        assert_eq!(write(file, &from).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    }

    #[test]
    fn logs_memory_every_few_calls_and_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.csv");
        let calls = start(&path).unwrap();
        (1..=50).for_each(|call| calls.messages.send(line(call)).unwrap());
        let end = Line { call: 50, side: "end", store_bytes: 900, ..Line::default() };
        calls.messages.send(end).unwrap();
        drop(calls);
        let text = std::fs::read_to_string(&path).unwrap();
        let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>()).collect::<Vec<_>>();
        assert!(rows.iter().all(|row| row.len() == HEADER.split(',').count()), "{text}");
        let looked = |row: &&Vec<&str>| row[13].parse::<u64>().is_ok_and(|bytes| bytes > 1 << 16);
        let at = rows[1..].iter().filter(looked).map(|row| (row[0], row[1], row[10])).collect::<Vec<_>>();
        let expected = [("1", "client", "1"), ("21", "client", "1"), ("41", "client", "1"), ("50", "end", "900")];
        assert_eq!(at, expected, "{text}");
        let times = rows[1..].iter().filter_map(|row| row[12].parse::<u64>().ok()).collect::<Vec<_>>();
        assert!(times.len() == 4 && times.is_sorted(), "{text}");
    }
}
