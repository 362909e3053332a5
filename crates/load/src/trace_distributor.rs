//! Distributes a recorded trace to the workers. One thread reads it, numbers its keys, and gives operation i to worker
//! i modulo the number of workers. So the file and that number determine each worker's stream. No worker is more than
//! [`BATCHES`] batches ahead of any other. Memory holds batches and one [`TracedKey`] per key, never the whole file.

use std::collections::VecDeque;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use net::Nanos;
use stats::Sizes;
use stats::random::mix;
use study::Workload;
use study::record::TraceReplay;
use study::workload::trace::{Access, Format, Reader, TTL_MAX_S, TraceError};
use study::workload::{Gaps, Trace};

use crate::operation_stream::{Operation, Texts};

const BATCH: usize = 512;
/// Maximum number of batches that wait for a worker; together they take 256 KiB.
const BATCHES: usize = 16;
const READ_BYTES: usize = 256 * 1024;
/// Maximum number of keys. With 64-bit hashes, the probability that any two of them collide is 1 in 30.
pub(crate) const KEYS_MAX: u64 = 1 << 30;
const SECOND_RECORDS: usize = 1 << 20;
const SECOND_NS: u128 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceOp {
    /// Intended send time, ns after the first operation; 0 unless recorded gaps are kept.
    pub(crate) at_ns: Nanos,
    /// The operation, whose key is numbered by order of first appearance.
    pub(crate) operation: Operation,
    /// Recorded length of the key in bytes, capped at the maximum for valid keys; 0 if not recorded.
    pub(crate) key_bytes: u8,
}

#[derive(Clone, Copy, Debug)]
struct TracedKey {
    /// Hash of the key, which identifies it.
    hash: u64,
    number: u32,
    /// Latest recorded length of the value in bytes, or [`UNTOLD`].
    value_bytes: u32,
    key_bytes: u8,
}

const UNTOLD: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct ReplayCounts {
    operations: AtomicU64,
    keys: AtomicU64,
    /// Total length of the keys, bytes. The next three fields cover only keys with a recorded length.
    key_bytes: AtomicU64,
    recorded_keys: AtomicU64,
    recorded_bytes: AtomicU64,
    lengthened: AtomicU64,
    stalled_ns: AtomicU64,
    ended: AtomicBool,
}

impl ReplayCounts {
    pub(crate) fn sent(&self, traced: &TraceOp, key_bytes: u32) {
        self.operations.fetch_add(1, Relaxed);
        if traced.operation.new {
            self.keys.fetch_add(1, Relaxed);
            self.key_bytes.fetch_add(u64::from(key_bytes), Relaxed);
            if traced.key_bytes > 0 {
                self.recorded_keys.fetch_add(1, Relaxed);
                self.recorded_bytes.fetch_add(u64::from(traced.key_bytes), Relaxed);
                self.lengthened.fetch_add(u64::from(key_bytes > u32::from(traced.key_bytes)), Relaxed);
            }
        }
    }

    pub(crate) fn to_record(&self, trace: &Trace) -> TraceReplay {
        let get = |number: &AtomicU64| number.load(Relaxed);
        let mean = |sum: &AtomicU64, count: &AtomicU64| (get(count) > 0).then(|| get(sum) as f64 / get(count) as f64);
        TraceReplay {
            file: trace.file.clone(),
            format: trace.format,
            operations: get(&self.operations),
            keys: get(&self.keys),
            key_bytes_mean: mean(&self.key_bytes, &self.keys),
            key_bytes_recorded_mean: mean(&self.recorded_bytes, &self.recorded_keys),
            keys_lengthened: get(&self.lengthened),
            ended: self.ended.load(Relaxed),
            stalled_ns: get(&self.stalled_ns),
        }
    }
}

fn unreadable(file: &str, error: impl std::fmt::Display) -> String {
    format!("cannot read the trace `{file}`: {error}")
}

/// Opens a trace, which may be compressed with zstd, whatever its name. Fails unless it is a regular, nonempty file.
pub(crate) fn open(file: &str) -> Result<Box<dyn BufRead + Send>, String> {
    let wrong = |error| unreadable(file, error);
    let opened = File::open(file).map_err(wrong)?;
    if !opened.metadata().map_err(wrong)?.is_file() {
        // Opening a pipe without a writer would block a worker forever.
        return Err(wrong(io::Error::other("not a regular file")));
    }
    let mut input = BufReader::with_capacity(READ_BYTES, opened);
    if input.fill_buf().map_err(wrong)?.is_empty() {
        return Err(format!("the trace `{file}` is empty"));
    }
    if !input.buffer().starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(Box::new(input));
    }
    let frames = Frames { decoder: ruzstd::decoding::FrameDecoder::new(), input, begun: false };
    Ok(Box::new(BufReader::with_capacity(READ_BYTES, frames)))
}

/// Reads all zstd frames of a file, because parallel compressors write several.
struct Frames<R> {
    decoder: ruzstd::decoding::FrameDecoder,
    input: R,
    begun: bool,
}

impl<R: BufRead> io::Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use ruzstd::decoding::BlockDecodingStrategy::UptoBytes;
        use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
        loop {
            if self.begun {
                while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                    self.decoder.decode_blocks(&mut self.input, UptoBytes(READ_BYTES)).map_err(io::Error::other)?;
                }
                let read = io::Read::read(&mut self.decoder, buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
            }
            if self.input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            match self.decoder.reset(&mut self.input) {
                Ok(()) => self.begun = true,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut io::Read::take(&mut self.input, u64::from(length)), &mut io::sink())?;
                    self.begun = false;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct TraceDistributor<'a> {
    workload: &'a Workload,
    trace: &'a Trace,
    texts: &'a Texts,
    value_sizes: Sizes,
    value_seed: u64,
    /// The channel to each worker, and the operations that will be sent to it next.
    hands: Vec<(SyncSender<Vec<TraceOp>>, Vec<TraceOp>)>,
    turn: usize,
    known: HashTable<TracedKey>,
    /// First second of the trace if gaps are kept. The next two fields hold the current second and its operations.
    first_s: Option<u64>,
    second: u64,
    in_second: Vec<(TraceOp, u64)>,
}

/// Why a trace is not read to its end.
enum End {
    WorkersGone,
    /// The record cannot be replayed, for this reason.
    Invalid(String),
}

impl<'a> TraceDistributor<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        texts: &'a Texts,
        seed: u64,
        workers: u32,
        seen: &Arc<ReplayCounts>,
    ) -> Result<(TraceDistributor<'a>, Vec<Tape>), String> {
        let trace = workload.trace.as_ref().expect("a workload with a trace");
        let (mut hands, mut tapes) = (Vec::new(), Vec::new());
        for _ in 0..workers {
            let (hand, from) = sync_channel(BATCHES);
            hands.push((hand, Vec::with_capacity(BATCH)));
            tapes.push(Tape { from, ahead: VecDeque::new(), ended: false, seen: seen.clone() });
        }
        let dealer = TraceDistributor {
            workload,
            trace,
            texts,
            value_sizes: workload.value_sizes()?,
            value_seed: mix(seed ^ 0x7661_6c75_6573),
            hands,
            turn: 0,
            known: HashTable::new(),
            first_s: None,
            second: 0,
            in_second: Vec::new(),
        };
        Ok((dealer, tapes))
    }

    /// Reads `input` to its end, or until all workers have stopped. Fails at the first invalid record.
    pub(crate) fn deal(mut self, input: impl BufRead) -> Result<(), String> {
        let mut reader = Reader::new(input, self.trace.format);
        loop {
            let read = reader.next();
            let Some(access) = read.map_err(|error| self.broken(error))? else { break };
            match self.take_record(&access) {
                Ok(()) => {}
                Err(End::WorkersGone) => return Ok(()),
                Err(End::Invalid(problem)) => return Err(self.wrong(reader.position(), problem)),
            }
        }
        if reader.position() == 0 {
            return Err(format!("the trace `{}` is empty", self.trace.file));
        }
        if self.end_second().is_ok() {
            let _ = self.hands.into_iter().try_for_each(|(hand, batch)| hand.send(batch)); // The workers may be gone.
        }
        Ok(())
    }

    fn wrong(&self, at: u64, problem: impl std::fmt::Display) -> String {
        let file = &self.trace.file;
        match self.trace.format {
            Format::OracleGeneral => format!("{file}: record {at}: {problem}"),
            _ => format!("{file}:{at}: {problem}"),
        }
    }

    fn broken(&self, TraceError { at, problem }: TraceError) -> String {
        at.map_or_else(|| unreadable(&self.trace.file, &problem), |at| self.wrong(at, &problem))
    }

    fn take_record(&mut self, access: &Access<'_>) -> Result<(), End> {
        let operation = self.operation(access).map_err(End::Invalid)?;
        if self.trace.gaps == Gaps::None {
            return self.deal_out(operation, access.repeat, || 0);
        }
        let no_time = || End::Invalid("no time, required by `gaps = \"recorded\"`".to_owned());
        let time_s = access.time_s.ok_or_else(no_time)?;
        if self.first_s.is_none() {
            (self.first_s, self.second) = (Some(time_s), time_s);
        } else if time_s > self.second {
            self.end_second()?;
            self.second = time_s;
        } else if time_s < self.second {
            let problem = format!("time {time_s} after {}: the times of a trace must not decrease", self.second);
            return Err(End::Invalid(problem));
        }
        if self.in_second.len() == SECOND_RECORDS {
            return Err(End::Invalid(format!(
                "more than {SECOND_RECORDS} records at time {time_s}: replay the trace with `gaps = \"none\"`"
            )));
        }
        self.in_second.push((operation, access.repeat));
        Ok(())
    }

    fn operation(&mut self, access: &Access<'_>) -> Result<TraceOp, String> {
        let mut hasher = DefaultHasher::new();
        hasher.write(access.key);
        let next = self.known.len() as u64;
        let most = self.workload.keys.max_bytes;
        let hash = hasher.finish();
        let known = self.known.entry(hash, |known| known.hash == hash, |known| known.hash);
        let new = matches!(known, Entry::Vacant(_));
        if new && next >= KEYS_MAX {
            return Err(format!("more than {KEYS_MAX} distinct keys"));
        }
        let known = known.or_insert_with(|| TracedKey {
            hash,
            number: next as u32,
            value_bytes: UNTOLD,
            // The first recorded length counts, so that a key is always sent with the same bytes.
            key_bytes: access.key_bytes.map_or(0, |bytes| u64::from(bytes).clamp(1, most) as u8),
        });
        let known = known.into_mut();
        let key = u64::from(known.number);
        let most = self.workload.values.max_bytes.min(u64::from(UNTOLD - 1)) as u32;
        if let Some(bytes) = access.value_bytes {
            // libCacheSim records the size of whole objects, which includes the key.
            let of_key = if self.trace.format == Format::OracleGeneral { self.texts.key_bytes(key) } else { 0 };
            known.value_bytes = bytes.saturating_sub(of_key).min(most);
        }
        let value_bytes = match known.value_bytes {
            UNTOLD => self.value_sizes.at(mix(self.value_seed ^ key)) as u32,
            told => told,
        };
        let ttl_s = access.ttl_s.unwrap_or(0).min(TTL_MAX_S);
        let operation = Operation { kind: access.kind, key, value_bytes, ttl_s, new };
        Ok(TraceOp { at_ns: 0, operation, key_bytes: known.key_bytes })
    }

    /// Spreads the operations of a second evenly. Traces record whole seconds, so all would otherwise be due at once.
    fn end_second(&mut self) -> Result<(), End> {
        let mut second = std::mem::take(&mut self.in_second);
        let all = second.iter().map(|(_, repeat)| u128::from(*repeat)).sum::<u128>();
        let begins = u128::from(self.second - self.first_s.unwrap_or(self.second)) * SECOND_NS;
        let speed = self.trace.speed;
        let mut index = 0;
        for (operation, repeat) in second.drain(..) {
            self.deal_out(operation, repeat, || {
                let at = begins + index * SECOND_NS / all;
                index += 1;
                // At the recorded speed, the time is exact. The cast from a float saturates.
                if speed == 1.0 { u64::try_from(at).unwrap_or(u64::MAX) } else { (at as f64 / speed) as u64 }
            })?;
        }
        self.in_second = second;
        Ok(())
    }

    fn deal_out(&mut self, mut traced: TraceOp, repeat: u64, mut at_ns: impl FnMut() -> Nanos) -> Result<(), End> {
        for _ in 0..repeat {
            traced.at_ns = at_ns();
            let (hand, batch) = &mut self.hands[self.turn];
            batch.push(traced);
            if batch.len() >= BATCH {
                let full = std::mem::replace(batch, Vec::with_capacity(BATCH));
                hand.send(full).map_err(|_| End::WorkersGone)?;
            }
            self.turn = if self.turn + 1 == self.hands.len() { 0 } else { self.turn + 1 };
            traced.operation.new = false;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Tape {
    from: Receiver<Vec<TraceOp>>,
    ahead: VecDeque<TraceOp>,
    ended: bool,
    seen: Arc<ReplayCounts>,
}

impl Tape {
    pub(crate) fn available(&mut self, wanted: u32) -> u32 {
        while self.ahead.len() < wanted as usize && !self.ended {
            let batch = match self.from.try_recv() {
                Err(TryRecvError::Empty) => {
                    // The trace is read more slowly than it is replayed, so wait; the record reports the delay.
                    let began = net::thread_and_process::monotonic_ns();
                    let batch = self.from.recv().ok();
                    let stalled_ns = net::thread_and_process::monotonic_ns().saturating_sub(began);
                    self.seen.stalled_ns.fetch_add(stalled_ns, Relaxed);
                    batch
                }
                batch => batch.ok(),
            };
            match batch {
                Some(batch) => self.ahead.extend(batch),
                None => {
                    self.ended = true;
                    self.seen.ended.store(true, Relaxed);
                }
            }
        }
        wanted.min(self.ahead.len() as u32)
    }

    /// Time of the next operation, ns after the trace's first one; `None` at the end.
    pub(crate) fn next_at(&mut self) -> Option<Nanos> {
        self.available(1);
        self.ahead.front().map(|operation| operation.at_ns)
    }

    pub(crate) fn next(&mut self) -> Option<TraceOp> {
        self.available(1);
        self.ahead.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, bytes).unwrap();
        let mut input = open(path.to_str().unwrap()).map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        input.read_to_end(&mut all).map_err(|error| error.to_string())?;
        Ok(all)
    }

    #[test]
    fn compressed_trace_reads_like_plain_one() {
        let plain = (0..200_000).map(|n| format!("{n},k{},5,1,7,get,0\n", n * 7919 % 1000)).collect::<String>();
        let (begin, end) = plain.as_bytes().split_at(1_000_000);
        let compress = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
        assert_eq!(read(plain.as_bytes()).unwrap(), plain.as_bytes());
        assert_eq!(read(&compress(plain.as_bytes())).unwrap(), plain.as_bytes());
        // pzstd writes several frames, one of which can be skipped (RFC 8878, section 3.1.2).
        let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let frames = [compress(begin), skipped, compress(end), compress(b"")].concat();
        assert_eq!(read(&frames).unwrap(), plain.as_bytes());
        // A truncated file, or one followed by other data, is an error and never a shorter trace.
        for broken in [frames[..frames.len() / 2].to_vec(), [&frames[..], b"0,k,5"].concat()] {
            assert!(read(&broken).is_err());
        }
    }

    #[test]
    fn rejects_files_that_are_not_traces() {
        let folder = tempfile::tempdir().unwrap();
        let problem = |path: &std::path::Path| open(path.to_str().unwrap()).err().unwrap().to_string();
        assert!(problem(&folder.path().join("none")).contains("No such file"));
        assert!(problem(folder.path()).contains("not a regular file"));
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        assert!(problem(&empty).ends_with("is empty"));
    }
}
