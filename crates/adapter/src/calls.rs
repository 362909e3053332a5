//! One line for each call, for whoever wants to reckon with them.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The first line of the file.
pub const HEADER: &str = "call,side,operation,own_ns,waited_ns,whip_bytes,whip_bytes_with_peers,metadata_bytes,extra_bytes,entries,store_bytes,verdict";

/// Lines that may wait; with more waiting a call waits for the writer, as a line that is missing would be a wrong mean.
const WAITING_MAX: usize = 65_536;

/// What is written of a call, in the order of [`HEADER`].
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Number of the call in this adapter, from 1.
    pub(crate) call: u64,
    /// `client` or `server`: whose adapter this was.
    pub(crate) side: &'static str,
    pub(crate) operation: Arc<str>,
    /// From request in to request out and from reply in to reply out, ns.
    pub(crate) own_ns: u64,
    /// What stands behind the adapter was waited for so long, connecting included, ns.
    pub(crate) waited_ns: u64,
    /// What Whip would have counted, without addresses of peers (M1a).
    pub(crate) whip_bytes: usize,
    /// The same with them (M1b).
    pub(crate) whip_bytes_with_peers: usize,
    /// Our own metadata of both messages (M2), with what says how long it is.
    pub(crate) metadata_bytes: usize,
    /// All bytes between the adapters but those of the messages themselves (M3).
    pub(crate) extra_bytes: i64,
    /// Service entries that this adapter had made by then.
    pub(crate) entries: u64,
    pub(crate) store_bytes: u64,
    /// `checked`, or why it was not.
    pub(crate) verdict: &'static str,
}

#[derive(Debug)]
pub(crate) struct Calls {
    to: Option<SyncSender<Line>>,
    thread: Option<JoinHandle<()>>,
}

impl Calls {
    pub(crate) fn start(path: &Path) -> std::io::Result<Self> {
        let mut file = BufWriter::new(std::fs::File::create(path)?);
        writeln!(file, "{HEADER}")?;
        let (to, from) = sync_channel(WAITING_MAX);
        let path = path.to_owned();
        let run = move || {
            if let Err(error) = write(file, &from) {
                // Whoever reckons with the file is to know that it ends early; calls pass all the same.
                let _ = writeln!(std::io::stderr(), "the calls in {} end here: {error}", path.display());
            }
        };
        let thread = std::thread::Builder::new().name("calls".to_owned()).spawn(run)?;
        Ok(Self { to: Some(to), thread: Some(thread) })
    }

    pub(crate) fn write(&self, line: Line) {
        if let Some(to) = &self.to {
            let _ = to.send(line);
        }
    }
}

/// What was written is in the file when the last call is gone.
impl Drop for Calls {
    fn drop(&mut self) {
        self.to = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(mut file: BufWriter<std::fs::File>, from: &Receiver<Line>) -> std::io::Result<()> {
    loop {
        match from.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => {
                let Line { call, side, operation, own_ns, waited_ns, whip_bytes, whip_bytes_with_peers, .. } = &line;
                let Line { metadata_bytes, extra_bytes, entries, store_bytes, verdict, .. } = &line;
                // A name of REST has no comma or quote in it: templates of paths are checked.
                writeln!(
                    file,
                    "{call},{side},{operation},{own_ns},{waited_ns},{whip_bytes},{whip_bytes_with_peers},{metadata_bytes},{extra_bytes},{entries},{store_bytes},{verdict}"
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

    #[test]
    fn a_full_disk_is_an_error_and_no_silence() {
        let file = BufWriter::with_capacity(0, std::fs::File::options().write(true).open("/dev/full").unwrap());
        let (to, from) = sync_channel(1);
        let line = Line {
            call: 1,
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
            verdict: "checked",
        };
        to.send(line).unwrap();
        drop(to);
        assert_eq!(write(file, &from).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    }
}
