//! Run files: one run with its trials as JSON lines, compressed with gzip; `zcat FILE | jq .` reads them.
//! ```text
//! {"format":"quintain-run","version":1,"quintain":"0.1.0"}
//! {"run":{...}}                      as stored
//! {"trial":{...}}                    one line per trial, in execution order
//! {"end":{"trials":12,"bytes":N,"sha256":"..."}}   of all bytes before this line, uncompressed
//! ```
//! A file may be untrusted: only a few lines are in memory at a time, and every length has a limit.

use std::collections::HashSet;
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
    /// The file does not start like a run file.
    #[error(
        "not a run file: expected gzip with `{{\"format\":\"quintain-run\"` in its first line; `quintain runs export` writes one"
    )]
    Foreign,
    /// The compressed data is damaged. Contains the number of the last complete line, counted from 1; 0 if none.
    #[error("damaged after line {0}: {1}")]
    Damaged(u64, #[source] io::Error),
    /// A later version of quintain wrote the file.
    #[error("{what} has version {found}, this quintain reads versions up to {known}: use a newer quintain")]
    Newer {
        /// The file or the part of it that is too new.
        what: String,
        /// Version that the file states.
        found: u32,
        /// Highest version that this build reads.
        known: u32,
    },
    /// A part of the file exceeds a limit.
    #[error("{what} is larger than the limit of {limit}")]
    TooLarge {
        /// The part: a line, the content or the number of trials.
        what: String,
        /// The limit, with its unit.
        limit: String,
    },
    /// The file is truncated. Contains the number of the last complete line, counted from 1; 0 if none.
    #[error("ends after line {0}, before its checksum: the file is incomplete")]
    Incomplete(u64),
    /// The content does not match its checksum, length or number of trials.
    #[error("the checksum of its content is {found}, its last line says {expected}: the file is damaged or was edited")]
    Checksum {
        /// Checksum, length and number of trials in the last line.
        expected: String,
        /// Checksum, length and number of trials of the content read.
        found: String,
    },
    /// A line is invalid or in the wrong place. Contains its number, counted from 1, and the reason.
    #[error("line {0}: {1}")]
    Invalid(u64, String),
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

/// JSON of a line between the first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// JSON of the run.
    Run(&'a str),
    /// JSON of one trial.
    Trial(&'a str),
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

    /// Writes the run or, after it, a trial. Fails with [`RunFileError::TooLarge`] if [`read`] would reject the length.
    pub fn line(&mut self, line: Line<'_>) -> Result<()> {
        let (name, json) = match line {
            Line::Run(json) => ("run", json),
            Line::Trial(json) => ("trial", json),
        };
        // Line breaks in JSON are whitespace. They occur only in stores edited by hand.
        let json = json.trim().replace(['\n', '\r'], " ");
        let line = format!("{{\"{name}\":{json}}}");
        if line.len() >= LINE_MAX || self.bytes > CONTENT_MAX {
            return Err(too_large(self.lines + 1, line.len() >= LINE_MAX));
        }
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

/// Reads a run file and calls `each` with the number and content of each line. The checksum is verified last, so `each`
/// may receive damaged lines. Fails with [`RunFileError`] or an error of `each`.
pub fn read(file: impl Read, mut each: impl FnMut(u64, Line<'_>) -> Result<()>) -> Result<Content> {
    let mut lines =
        Lines { file: BufReader::new(GzDecoder::new(BufReader::new(file))), text: Vec::new(), number: 0, bytes: 0 };
    let mut sum = Context::new(&SHA256);
    match lines.next() {
        Ok(Some(first)) => {
            let head = serde_json::from_slice::<Head>(first).ok().filter(|head| head.format == FORMAT);
            known("the file", head.ok_or(RunFileError::Foreign)?.version, RUN_FILE_VERSION)?;
            sum.update(first);
        }
        Ok(None) | Err(RunFileError::Damaged { .. }) => return Err(RunFileError::Foreign),
        Err(error) => return Err(error),
    }
    let mut trials = 0;
    let mut has_run = false;
    loop {
        let (before, number) = (lines.bytes, lines.number + 1);
        let Some(line) = lines.next()? else { return Err(RunFileError::Incomplete(number - 1)) };
        let invalid = |why: &str| RunFileError::Invalid(number, why.to_owned());
        let text = std::str::from_utf8(line).map_err(|error| invalid(&error.to_string()))?.trim_end_matches('\n');
        let inner = |name: &str| text.strip_prefix(name)?.strip_suffix('}');
        if let Some(json) = inner("{\"run\":") {
            if std::mem::replace(&mut has_run, true) {
                return Err(invalid("expected a trial or the end, found a second run"));
            }
            each(number, Line::Run(json))?;
        } else if let Some(json) = inner("{\"trial\":") {
            if !has_run {
                return Err(invalid("expected the run, found a trial"));
            }
            trials += 1;
            if trials > TRIALS_MAX {
                let what = "the number of trials".to_owned();
                return Err(RunFileError::TooLarge { what, limit: TRIALS_MAX.to_string() });
            }
            each(number, Line::Trial(json))?;
        } else if text.starts_with("{\"end\":") && has_run {
            let Last { end } = serde_json::from_str(text).map_err(|error| invalid(&error.to_string()))?;
            let found = Content { trials, bytes: before, sha256: hex(sum.finish().as_ref()) };
            if end != found {
                let [expected, found] = [end, found].map(|Content { trials, bytes, sha256 }| {
                    format!("{} ({bytes} bytes, {trials} trials)", sha256.get(..64).unwrap_or(""))
                });
                return Err(RunFileError::Checksum { expected, found });
            }
            // Reading on also verifies gzip's own checksum and finds trailing data.
            if lines.next()?.is_some() || !lines.is_at_end()? {
                return Err(RunFileError::Invalid(number + 1, "expected the end of the file".to_owned()));
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
        if read > LINE_MAX || self.bytes > CONTENT_MAX {
            return Err(too_large(self.number + 1, read > LINE_MAX));
        }
        if read == 0 {
            return Ok(None);
        }
        if !self.text.ends_with(b"\n") {
            return Err(RunFileError::Incomplete(self.number));
        }
        self.number += 1;
        Ok(Some(&self.text))
    }

    /// Whether no bytes follow the compressed data.
    fn is_at_end(&mut self) -> Result<bool> {
        Ok(self.file.get_mut().get_mut().fill_buf()?.is_empty())
    }
}

fn known(what: &str, found: u32, known: u32) -> Result<()> {
    if found <= known { Ok(()) } else { Err(RunFileError::Newer { what: what.to_owned(), found, known }) }
}

fn too_large(line: u64, is_line: bool) -> RunFileError {
    let (what, limit) = match is_line {
        true => (format!("line {line}"), LINE_MAX as u64),
        false => ("the content".to_owned(), CONTENT_MAX),
    };
    RunFileError::TooLarge { what, limit: format!("{} MiB", limit >> 20) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks line by line that a file contains one valid run.
#[derive(Debug, Default)]
pub struct Check {
    /// The run; `None` until its line has been checked.
    pub run: Option<Run>,
    seen: HashSet<(usize, u32)>,
}

impl Check {
    /// Checks the next line and returns its trial, or `None` for the run. Fails if the line is invalid or misplaced.
    pub fn line(&mut self, number: u64, line: Line<'_>) -> Result<Option<Record>> {
        let invalid = |why: String| RunFileError::Invalid(number, why);
        match line {
            Line::Run(json) => {
                let run: Run = parse(json, number, "the run", |run: &Run| run.version)?;
                name(&run.id).map_err(invalid)?;
                if !is_time(&run.started) {
                    return Err(invalid(format!(
                        "invalid time `{}`: expected one like 2026-11-20T21:05:00Z",
                        shown(&run.started)
                    )));
                }
                self.run = Some(run);
                Ok(None)
            }
            Line::Trial(json) => {
                let record: Record = parse(json, number, "the trial", |record: &Record| record.version)?;
                let points = self.run.as_ref().map_or(0, |run| run.plan.points.len());
                if record.point >= points {
                    return Err(invalid(format!("a trial of design point {}; the plan has {points}", record.point)));
                }
                if !self.seen.insert((record.point, record.block)) {
                    let (point, block) = (record.point, record.block);
                    return Err(invalid(format!("a second trial of point {point} in block {block}")));
                }
                Ok(Some(record))
            }
        }
    }
}

/// Parses a run or a trial. A newer version is reported before other errors.
fn parse<T: Json>(json: &str, line: u64, what: &str, version: fn(&T) -> u32) -> Result<T> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let invalid = |error: serde_json::Error| RunFileError::Invalid(line, error.to_string());
    let check_version = |version| known(&format!("{what} in line {line}"), version, RECORD_VERSION);
    let found = T::from_json(json).map_err(|error| {
        let version = serde_json::from_str::<Versioned>(json).map(|found| found.version);
        version.map_err(invalid).and_then(check_version).err().unwrap_or_else(|| invalid(error))
    })?;
    check_version(version(&found))?;
    crate::check_printable::check(json).map_err(invalid)?;
    Ok(found)
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
