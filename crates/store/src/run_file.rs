//! Run files: one run with its trials as JSON lines, compressed with gzip; `zcat FILE | jq .` reads them.
//! ```text
//! {"format":"quintain-run","version":1,"quintain":"0.1.0"}
//! {"run":{...}}                      as stored
//! {"trial":{...}}                    one line per trial, in execution order
//! {"end":{"trials":12,"bytes":N,"sha256":"..."}}   of all bytes before this line, uncompressed
//! ```
//! A file may be untrusted: only a few lines are in memory at a time, and every length has a limit.

use std::collections::HashSet;
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use study::Json;
use study::record::{RECORD_VERSION, Record, Run};

const FORMAT: &str = "quintain-run";

/// Version of the format that this build writes, and the highest that it reads.
pub const RUN_FILE_VERSION: u32 = 1;

/// Maximum length of a line, in bytes. Trials take 10 KiB to 1 MiB.
pub const LINE_MAX: usize = 32 << 20;

/// Maximum length of the uncompressed content, in bytes.
pub const CONTENT_MAX: u64 = 32 << 30;

/// Maximum number of trials in a run file.
pub const TRIALS_MAX: u64 = 1_000_000;

/// Maximum length of a run's name, in bytes.
const NAME_MAX: usize = 200;

/// Why a run file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RunFileError {
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The compressed data is damaged. Contains the number of the last complete line, counted from 1; 0 if none.
    #[error("damaged after line {0}: {1}")]
    Damaged(u64, #[source] io::Error),
    /// The file is truncated. Contains the number of the last complete line, counted from 1; 0 if none.
    #[error("ends after line {0}, before its checksum: the file is incomplete")]
    Incomplete(u64),
    /// The content does not match its checksum, length or number of trials. Contains those of the content and of the
    /// last line.
    #[error("the checksum of its content is {0}, its last line says {1}: the file is damaged or was edited")]
    Checksum(String, String),
    /// The file or a line is invalid, too large or from a later version of quintain. Contains the reason.
    #[error("{0}")]
    Invalid(String),
}

type Result<T> = std::result::Result<T, RunFileError>;

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    version: u32,
    quintain: String,
}

#[derive(Serialize, Deserialize)]
struct Last {
    end: Content,
}

/// Valid content of a line between the first and the last.
#[derive(Clone, Debug)]
pub enum Entry {
    /// The run, before all trials.
    Run(Box<Run>),
    /// A trial of one of the run's design points, which no other trial has in its block.
    Trial(Box<Record>),
}

/// Size and checksum of the content written or read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Number of trials in the content.
    pub trials: u64,
    /// Uncompressed length, in bytes.
    pub bytes: u64,
    /// SHA-256 of the uncompressed content before the last line, hexadecimal.
    pub sha256: String,
}

/// Writes a run file, line by line.
pub struct Writer<W: Write> {
    out: GzEncoder<W>,
    sum: Context,
    bytes: u64,
    lines: u64,
}

impl<W: Write> Writer<W> {
    /// Creates a writer and writes the first line; `quintain` is the program's version. All methods fail if `out` does.
    pub fn new(out: W, quintain: &str) -> Result<Self> {
        let mut writer = Self::bare(out);
        let head = Head { format: FORMAT.to_owned(), version: RUN_FILE_VERSION, quintain: quintain.to_owned() };
        writer.raw(&serde_json::to_vec(&head).map_err(io::Error::from)?)?;
        Ok(writer)
    }

    /// Creates a writer that omits the first line, for tests with invalid files.
    pub fn bare(out: W) -> Self {
        Self { out: GzEncoder::new(out, Compression::default()), sum: Context::new(&SHA256), bytes: 0, lines: 0 }
    }

    /// Writes the JSON of the run. Fails if [`read`] would reject the length.
    pub fn run(&mut self, json: &str) -> Result<()> {
        self.line("run", json)
    }

    /// Writes the JSON of a trial after the run. Fails if [`read`] would reject the length.
    pub fn trial(&mut self, json: &str) -> Result<()> {
        self.line("trial", json)
    }

    fn line(&mut self, name: &str, json: &str) -> Result<()> {
        // Line breaks in JSON are whitespace. They occur only in stores edited by hand.
        let json = json.trim().replace(['\n', '\r'], " ");
        let line = format!("{{\"{name}\":{json}}}");
        check_lengths(self.lines + 1, line.len() + 1, self.bytes)?;
        self.raw(line.as_bytes())
    }

    /// Writes any line without checking it, for tests with invalid files.
    pub fn raw(&mut self, line: &[u8]) -> Result<()> {
        for part in [line, b"\n"] {
            self.out.write_all(part)?;
            self.sum.update(part);
            self.bytes += part.len() as u64;
        }
        self.lines += 1;
        Ok(())
    }

    /// Writes the last line and returns `out`, which the caller must sync.
    pub fn end(mut self) -> Result<(W, Content)> {
        let trials = self.lines.saturating_sub(2);
        let last = Last { end: Content { trials, bytes: self.bytes, sha256: hex(self.sum.finish().as_ref()) } };
        self.out.write_all(&serde_json::to_vec(&last).map_err(io::Error::from)?)?;
        self.out.write_all(b"\n")?;
        Ok((self.out.finish()?, last.end))
    }
}

/// Reads a run file and calls `each` with the content and the JSON of each line once the line has been checked. The
/// checksum is verified last, so `each` may receive damaged lines. Fails with [`RunFileError`] or an error of `each`.
pub fn read(file: impl Read, mut each: impl FnMut(Entry, &str) -> Result<()>) -> Result<Content> {
    let mut lines =
        Lines { file: BufReader::new(GzDecoder::new(BufReader::new(file))), text: Vec::new(), number: 0, bytes: 0 };
    let mut sum = Context::new(&SHA256);
    let head = match lines.next() {
        Ok(Some(first)) => {
            sum.update(first);
            serde_json::from_slice::<Head>(first).ok().filter(|head| head.format == FORMAT)
        }
        Ok(None) | Err(RunFileError::Damaged(..)) => None,
        Err(error) => return Err(error),
    };
    let head = head.ok_or_else(|| {
        let first = format!("gzip with `{{\"format\":\"{FORMAT}\"` in its first line");
        RunFileError::Invalid(format!("not a run file: expected {first}; `quintain runs export` writes one"))
    })?;
    known("the file", head.version, RUN_FILE_VERSION)?;
    let (mut points, mut trials) = (None, HashSet::new());
    loop {
        let (before, number) = (lines.bytes, lines.number + 1);
        let Some(line) = lines.next()? else { return Err(RunFileError::Incomplete(number - 1)) };
        let invalid = |why: &str| RunFileError::Invalid(format!("line {number}: {why}"));
        let text = std::str::from_utf8(line).map_err(|error| invalid(&error.to_string()))?.trim_end_matches('\n');
        let inner = |name: &str| text.strip_prefix(name)?.strip_suffix('}');
        if let Some(json) = inner("{\"run\":") {
            let run: Run = parse(json, number, "the run", |run: &Run| run.version)?;
            name(&run.id).map_err(|why| invalid(&why))?;
            if !is_time(&run.started) {
                let found = shown(&run.started);
                return Err(invalid(&format!("invalid time `{found}`: expected one like 2026-11-20T21:05:00Z")));
            }
            if points.replace(run.plan.points.len()).is_some() {
                return Err(invalid("expected a trial or the end, found a second run"));
            }
            each(Entry::Run(Box::new(run)), json)?;
        } else if let Some(json) = inner("{\"trial\":") {
            let Some(points) = points else { return Err(invalid("expected the run, found a trial")) };
            let record: Record = parse(json, number, "the trial", |record: &Record| record.version)?;
            let (point, block) = (record.point, record.block);
            if point >= points {
                return Err(invalid(&format!("a trial of design point {point}; the plan has {points}")));
            }
            if !trials.insert((point, block)) {
                return Err(invalid(&format!("a second trial of point {point} in block {block}")));
            }
            if trials.len() as u64 > TRIALS_MAX {
                return Err(too_large("the number of trials", TRIALS_MAX));
            }
            each(Entry::Trial(Box::new(record)), json)?;
        } else if text.starts_with("{\"end\":") && points.is_some() {
            let Last { end } = serde_json::from_str(text).map_err(|error| invalid(&error.to_string()))?;
            let found = Content { trials: trials.len() as u64, bytes: before, sha256: hex(sum.finish().as_ref()) };
            if end != found {
                let [found, expected] = [found, end].map(|Content { trials, bytes, sha256 }| {
                    format!("{} ({bytes} bytes, {trials} trials)", sha256.get(..64).unwrap_or(""))
                });
                return Err(RunFileError::Checksum(found, expected));
            }
            // Reading on also verifies gzip's own checksum and finds trailing data.
            if lines.next()?.is_some() || !lines.file.get_mut().get_mut().fill_buf()?.is_empty() {
                return Err(RunFileError::Invalid(format!("line {}: expected the end of the file", number + 1)));
            }
            return Ok(found);
        } else {
            return Err(invalid("expected `{\"run\":`, `{\"trial\":` or `{\"end\":`"));
        }
        sum.update(line);
    }
}

/// Reads lines and enforces the limits on their length and on the total length.
struct Lines<R: Read> {
    file: BufReader<GzDecoder<BufReader<R>>>,
    text: Vec<u8>,
    number: u64,
    bytes: u64,
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> Result<Option<&[u8]>> {
        self.text.clear();
        let read = (&mut self.file).take(LINE_MAX as u64 + 1).read_until(b'\n', &mut self.text);
        let line = self.number;
        let read = read.map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof if line > 0 => RunFileError::Incomplete(line),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                RunFileError::Damaged(line, source)
            }
            _ => RunFileError::Io(source),
        })?;
        self.bytes += read as u64;
        check_lengths(self.number + 1, read, self.bytes)?;
        if read == 0 {
            return Ok(None);
        }
        if !self.text.ends_with(b"\n") {
            return Err(RunFileError::Incomplete(self.number));
        }
        self.number += 1;
        Ok(Some(&self.text))
    }
}

fn known(what: &str, found: u32, known: u32) -> Result<()> {
    if found <= known {
        return Ok(());
    }
    let versions = format!("version {found}, this quintain reads versions up to {known}");
    Err(RunFileError::Invalid(format!("{what} has {versions}: use a newer quintain")))
}

/// Checks the length of line `number` and of the content up to its end.
fn check_lengths(number: u64, line: usize, content: u64) -> Result<()> {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    if line > LINE_MAX {
        return Err(too_large(&format!("line {number}"), mib(LINE_MAX as u64)));
    }
    if content > CONTENT_MAX { Err(too_large("the content", mib(CONTENT_MAX))) } else { Ok(()) }
}

fn too_large(what: &str, limit: impl Display) -> RunFileError {
    RunFileError::Invalid(format!("{what} is larger than the limit of {limit}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses a run or a trial. A newer version is reported before other errors.
fn parse<T: Json>(json: &str, line: u64, what: &str, version: fn(&T) -> u32) -> Result<T> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let invalid = |error: serde_json::Error| RunFileError::Invalid(format!("line {line}: {error}"));
    let parsed = T::from_json(json);
    let found = match &parsed {
        Ok(parsed) => version(parsed),
        Err(_) => serde_json::from_str::<Versioned>(json).map_err(invalid)?.version,
    };
    known(&format!("{what} in line {line}"), found, RECORD_VERSION)?;
    crate::check_printable::check(json).map_err(invalid)?;
    parsed.map_err(invalid)
}

/// Checks that the name of a run is safe in commands and file names. Fails with the reason.
pub fn name(name: &str) -> std::result::Result<(), String> {
    let why = match name {
        "" => "it is empty",
        "latest" => "it means the run that started last",
        name if name.len() > NAME_MAX => "it has more than 200 bytes",
        name if name.starts_with('-') => "it begins like a flag",
        name if name.chars().any(|c| c.is_control() || c.is_whitespace() || c == '/') => {
            "it has a `/`, space or control characters"
        }
        _ => return Ok(()),
    };
    Err(format!("invalid name of a run `{}`: {why}", shown(name)))
}

/// The first 40 characters of an untrusted string, with control characters escaped.
fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_default).collect()
}

/// Whether a string has the form of `2026-11-20T21:05:00Z`.
fn is_time(text: &str) -> bool {
    let fits = |(found, wanted): (u8, u8)| if wanted == b'0' { found.is_ascii_digit() } else { found == wanted };
    let shape = b"0000-00-00T00:00:00Z";
    text.len() == shape.len() && text.bytes().zip(shape.iter().copied()).all(fits)
}
