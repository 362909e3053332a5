//! Reads recorded traces record by record, in constant memory. An invalid record is an error that states its number.

use std::io::{BufRead, Read};

use config::keys::word_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a line in a trace, bytes.
pub const LINE_MAX_BYTES: usize = 64 * 1024;
/// Maximum time to live that memcached reads as a duration, seconds: 30 days.
pub const TTL_MAX_S: u32 = 30 * 24 * 3600;
/// Key length that suffices to make every key distinct, bytes.
pub(crate) const KEY_LEAST_BYTES: u64 = 13;
/// Length of a record in libCacheSim's format, bytes.
const RECORD_BYTES: usize = 24;
/// Maximum number of repetitions in a record of a Meta trace.
const REPEAT_MAX: u64 = 1_000_000_000;

/// Formats of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Twitter's traces (github.com/twitter/cache-trace), CSV: `time,key,key bytes,value bytes,client,operation,TTL`.
    Twitter,
    /// Meta's KV traces, CSV with a header: `key,op,size,op_count,key_size,ttl`. The last three columns and `op_time`
    /// are optional. Source: cachelib.org, "Evaluating SSD hardware for Facebook workloads".
    MetaKv,
    /// libCacheSim's binary records of 24 bytes, little endian: u32 time, u64 id, u32 size, i64 next access.
    OracleGeneral,
    /// One key per line, each of which is read once.
    Plain,
}

/// Formats with their names in a study.
pub const FORMATS: &[(&str, Format)] = &[
    ("twitter", Format::Twitter),
    ("meta-kv", Format::MetaKv),
    ("oracle-general", Format::OracleGeneral),
    ("plain", Format::Plain),
];

impl Format {
    /// Whether records can be writes and have times to live. Without writes, a value is stored only after a read that
    /// missed.
    pub fn has_writes(self) -> bool {
        matches!(self, Format::Twitter | Format::MetaKv)
    }

    /// Whether records have value lengths.
    pub fn has_lengths(self) -> bool {
        self != Format::Plain
    }

    /// Name of the format in a study.
    pub fn name(self) -> &'static str {
        word_of(FORMATS, &self)
    }
}

/// Kind of operation, by its effect on the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A read: `get`, `gets`, `GET_LEASE`. If the workload fills, a write follows a miss.
    #[default]
    Get,
    /// A write: `set`, `add`, `replace`, `cas`, `append`, `prepend`, `incr`, `decr`, `SET_LEASE`.
    Set,
    /// A deletion of a key, which may not exist.
    Delete,
    /// A read, then a write after the response. Traces have none.
    ReadModifyWrite,
}

/// A record of a trace, in terms that all formats share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<'a> {
    /// Time in seconds since the trace's own origin; `None` if not recorded.
    pub time_s: Option<u64>,
    /// Operation on the key.
    pub kind: Kind,
    /// The key as recorded; in a binary format, its 8 bytes in little-endian order.
    pub key: &'a [u8],
    /// Length of the original key, bytes, if `key` replaces it; otherwise `None`.
    pub key_bytes: Option<u32>,
    /// Length of the value, or of libCacheSim's whole object, bytes; `None` for a miss or if not recorded.
    pub value_bytes: Option<u32>,
    /// Time to live in seconds; `None` if unlimited or not recorded.
    pub ttl_s: Option<u32>,
    /// Number of times that the record's operation occurs, at least 1.
    pub repeat: u64,
    /// Index of the next access to the key; `None` if not recorded or if there is none.
    pub next: Option<u64>,
}

impl<'a> Access<'a> {
    fn read(key: &'a [u8]) -> Self {
        let (time_s, key_bytes, value_bytes, ttl_s, next) = (None, None, None, None, None);
        Access { time_s, kind: Kind::Get, key, key_bytes, value_bytes, ttl_s, repeat: 1, next }
    }
}

/// An error in a trace or in one of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Number of the line or binary record, from 1; `None` for an error of the whole file.
    pub at: Option<u64>,
    /// Why the file cannot be read, or how the line or record breaks the format.
    pub problem: String,
}

/// Reads the records of a trace one by one.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    format: Format,
    at: u64,
    line: Vec<u8>,
    columns: Columns,
    begun: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Columns {
    count: usize,
    key: usize,
    op: usize,
    size: usize,
    op_count: Option<usize>,
    key_size: Option<usize>,
    ttl: Option<usize>,
    time: Option<usize>,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader of a trace in this format.
    pub fn new(input: R, format: Format) -> Reader<R> {
        Reader { input, format, at: 0, line: Vec::new(), columns: Columns::default(), begun: false }
    }

    /// Number of lines or records read so far, including invalid ones.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Returns the next record, or `None` at the end. Fails at an invalid record; the next call continues after it.
    #[allow(clippy::should_implement_trait, reason = "each record borrows its line")]
    pub fn next(&mut self) -> Result<Option<Access<'_>>, TraceError> {
        if !self.begun {
            self.begun = true;
            self.begin()?;
        }
        if !self.fill_line()? {
            return Ok(None);
        }
        let at = Some(self.at);
        let access = match self.format {
            Format::Twitter => twitter(&self.line),
            Format::MetaKv => meta(&self.line, &self.columns),
            Format::OracleGeneral => oracle_general(&self.line),
            Format::Plain => plain(&self.line),
        };
        access.map(Some).map_err(|problem| TraceError { at, problem })
    }

    fn begin(&mut self) -> Result<(), TraceError> {
        let start = self.input.fill_buf();
        let start = start.map_err(|error| TraceError { at: Some(1), problem: error.to_string() })?;
        for (magic, by) in [(&[0x28, 0xb5, 0x2f, 0xfd][..], "zstd"), (&[0x1f, 0x8b][..], "gzip")] {
            if start.starts_with(magic) {
                let problem =
                    format!("the trace is compressed with {by}; decompress it first: `{by} -dc FILE > trace`");
                return Err(TraceError { at: None, problem });
            }
        }
        if self.format == Format::MetaKv && self.fill_line()? {
            self.columns = columns(&self.line).map_err(|problem| TraceError { at: Some(1), problem })?;
        }
        Ok(())
    }

    /// Reads the next line or binary record into `line`, and returns whether there is one.
    fn fill_line(&mut self) -> Result<bool, TraceError> {
        let (input, line, is_binary) = (&mut self.input, &mut self.line, self.format == Format::OracleGeneral);
        line.clear();
        let read = match is_binary {
            true => input.take(RECORD_BYTES as u64).read_to_end(line),
            false => input.take(LINE_MAX_BYTES as u64 + 2).read_until(b'\n', line),
        };
        let at = self.at + 1;
        if read.map_err(|error| TraceError { at: Some(at), problem: error.to_string() })? == 0 {
            return Ok(false);
        }
        self.at = at;
        if !is_binary && line.pop_if(|last| *last == b'\n').is_some() {
            line.pop_if(|last| *last == b'\r');
        }
        if line.len() > LINE_MAX_BYTES {
            let problem = format!("longer than {LINE_MAX_BYTES} bytes: is the trace in this format?");
            return Err(TraceError { at: Some(at), problem });
        }
        Ok(true)
    }
}

fn oracle_general(record: &[u8]) -> Result<Access<'_>, String> {
    let Ok(record) = <&[u8; RECORD_BYTES]>::try_from(record) else {
        return Err(format!("the file ends after {} of its {RECORD_BYTES} bytes", record.len()));
    };
    let (time, rest) = record.split_first_chunk::<4>().expect("24 bytes");
    let (key, rest) = rest.split_first_chunk::<8>().expect("20 bytes");
    let (size, next) = rest.split_first_chunk::<4>().expect("12 bytes");
    let next = i64::from_le_bytes(next.try_into().expect("8 bytes"));
    if next < -1 {
        return Err(format!("next access {next} is neither an index nor -1"));
    }
    Ok(Access {
        time_s: Some(u64::from(u32::from_le_bytes(*time))),
        value_bytes: Some(u32::from_le_bytes(*size)),
        next: u64::try_from(next).ok().filter(|_| next != i64::MAX),
        ..Access::read(key)
    })
}

fn plain(line: &[u8]) -> Result<Access<'_>, String> {
    let key = line.trim_ascii();
    if key.is_empty() {
        return Err("no key".to_owned());
    }
    Ok(Access::read(key))
}

/// The access with these columns, which Twitter and Meta have in common.
fn access<'a>(key: &'a [u8], kind: Kind, value_bytes: u32, ttl: u64) -> Result<Access<'a>, String> {
    if key.is_empty() {
        return Err("no key".to_owned());
    }
    let ttl_s = u32::try_from(ttl).map_err(|_| format!("a TTL of {ttl} s does not fit 32 bits"))?;
    // A read that missed has no value and is recorded with 0 bytes.
    let value_bytes = Some(value_bytes).filter(|bytes| *bytes > 0 || kind == Kind::Set);
    Ok(Access { kind, value_bytes, ttl_s: Some(ttl_s).filter(|ttl_s| *ttl_s > 0), ..Access::read(key) })
}

/// Parses a line of Twitter's format. Keys may contain commas, so columns are counted from the end.
fn twitter(line: &[u8]) -> Result<Access<'_>, String> {
    let few = || "fewer than the 7 columns `time,key,key bytes,value bytes,client,operation,TTL`".to_owned();
    let first = line.iter().position(|&byte| byte == b',').ok_or_else(few)?;
    let (time, rest) = (&line[..first], &line[first + 1..]);
    let mut columns = rest.rsplitn(6, |&byte| byte == b',');
    let mut next = || columns.next().ok_or_else(few);
    let (ttl, op, _client, value_bytes, key_bytes, key) = (next()?, next()?, next()?, next()?, next()?, next()?);
    let ttl = number(ttl, "TTL")?;
    let kind = match op {
        b"get" | b"gets" => Kind::Get,
        b"set" | b"add" | b"replace" | b"cas" | b"append" | b"prepend" | b"incr" | b"decr" => Kind::Set,
        b"delete" => Kind::Delete,
        other => return Err(format!("unknown operation `{}`", other.escape_ascii())),
    };
    Ok(Access {
        time_s: Some(number(time, "time")?),
        key_bytes: Some(small(key_bytes, "key bytes")?),
        ..access(key, kind, small(value_bytes, "value bytes")?, ttl)?
    })
}

fn columns(line: &[u8]) -> Result<Columns, String> {
    let names = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect::<Vec<_>>();
    let find = |name: &str| names.iter().position(|known| *known == name.as_bytes());
    let needed = |name: &str| find(name).ok_or_else(|| format!("the header line has no `{name}`"));
    Ok(Columns {
        count: names.len(),
        key: needed("key")?,
        op: needed("op")?,
        size: needed("size")?,
        op_count: find("op_count"),
        key_size: find("key_size"),
        ttl: find("ttl"),
        time: find("op_time"),
    })
}

fn meta<'a>(line: &'a [u8], columns: &Columns) -> Result<Access<'a>, String> {
    let found = line.split(|&byte| byte == b',').count();
    if found != columns.count {
        return Err(format!("{found} columns, the header line has {}", columns.count));
    }
    let column = |index: usize| line.split(|&byte| byte == b',').nth(index).unwrap_or_default().trim_ascii();
    let kind = match column(columns.op) {
        b"GET" | b"GET_LEASE" | b"get" => Kind::Get,
        b"SET" | b"SET_LEASE" | b"ADD" | b"set" | b"REPLACE" => Kind::Set,
        b"DELETE" | b"delete" => Kind::Delete,
        other => return Err(format!("unknown operation `{}`", other.escape_ascii())),
    };
    let repeat = columns.op_count.map_or(Ok(1), |index| number(column(index), "op_count"))?;
    if !(1..=REPEAT_MAX).contains(&repeat) {
        return Err(format!("op_count is {repeat}, expected 1 to {REPEAT_MAX}"));
    }
    let ttl = columns.ttl.map_or(Ok(0), |index| number(column(index), "ttl"))?;
    Ok(Access {
        time_s: columns.time.map(|index| number(column(index), "op_time")).transpose()?,
        key_bytes: columns.key_size.map(|index| small(column(index), "key_size")).transpose()?,
        repeat,
        ..access(column(columns.key), kind, small(column(columns.size), "size")?, ttl)?
    })
}

fn number(digits: &[u8], column: &str) -> Result<u64, String> {
    let digits = digits.trim_ascii();
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("{column} `{}` is not a whole number", digits.escape_ascii()))
}

fn small(digits: &[u8], column: &str) -> Result<u32, String> {
    let number = number(digits, column)?;
    u32::try_from(number).map_err(|_| format!("{column} of {number} does not fit 32 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, bytes: &[u8], expected: &str) {
        let mut reader = Reader::new(bytes, format);
        let mut out = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(a)) => {
                    let show = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
                    let u = |value: Option<u32>| show(value.map(u64::from));
                    out.push(format!(
                        "{} {:?} {} {} {} {} x{} {}",
                        show(a.time_s),
                        a.kind,
                        a.key.escape_ascii(),
                        u(a.key_bytes),
                        u(a.value_bytes),
                        u(a.ttl_s),
                        a.repeat,
                        show(a.next)
                    ));
                }
                Ok(None) => break,
                Err(TraceError { at, problem }) => {
                    out.push(at.map_or(problem.clone(), |at| format!("record {at}: {problem}")));
                    break;
                }
            }
        }
        assert_eq!(out.join("\n"), expected);
    }

    #[test]
    fn twitter_lines() {
        check(
            Format::Twitter,
            b"0,Ab-c,32,120,7,get,0\n1,x,y,9,0,3,add,60\r\n",
            "0 Get Ab-c 32 120 - x1 -\n1 Set x,y 9 0 60 x1 -",
        );
        check(Format::Twitter, b"0,k,32,0,7,gets,0", "0 Get k 32 - - x1 -");
        check(Format::Twitter, b"0,k,32,0,7,peek,0", "record 1: unknown operation `peek`");
        check(
            Format::Twitter,
            b"0,k,32,0,7,get,0\n0,k,32\n",
            "0 Get k 32 - - x1 -\nrecord 2: fewer than the 7 columns `time,key,key bytes,value bytes,client,operation,TTL`",
        );
        check(Format::Twitter, b"-1,k,32,0,7,get,0", "record 1: time `-1` is not a whole number");
        check(Format::Twitter, b"0,,32,0,7,get,0", "record 1: no key");
        check(
            Format::Twitter,
            b"\n",
            "record 1: fewer than the 7 columns `time,key,key bytes,value bytes,client,operation,TTL`",
        );
        check(Format::Twitter, b"", "");
    }

    #[test]
    fn meta_lines() {
        check(
            Format::MetaKv,
            b"key,op,size,op_count,key_size,ttl\n1,GET,0,3,40,0\n2,SET,99,1,41,600\n1,DELETE,0,1,40,0\n",
            "- Get 1 40 - - x3 -\n- Set 2 41 99 600 x1 -\n- Delete 1 40 - - x1 -",
        );
        check(Format::MetaKv, b"op_time,key,key_size,op,op_count,size\n5,k,4,GET_LEASE,1,7", "5 Get k 4 7 - x1 -");
        check(Format::MetaKv, b"1,GET,0,3,40,0\n", "record 1: the header line has no `key`");
        check(Format::MetaKv, b"key,op,size\n1,GET\n", "record 2: 2 columns, the header line has 3");
        check(
            Format::MetaKv,
            b"key,op,size,op_count\n1,GET,0,0\n",
            "record 2: op_count is 0, expected 1 to 1000000000",
        );
    }

    #[test]
    fn oracle_general_records() {
        let record = |time: u32, id: u64, size: u32, next: i64| {
            [&time.to_le_bytes()[..], &id.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()].concat()
        };
        let all = [record(1, 0x41, 4096, 7), record(2, 0x42, 512, -1), record(3, 0x43, 1, i64::MAX)].concat();
        check(
            Format::OracleGeneral,
            &all,
            "1 Get A\\x00\\x00\\x00\\x00\\x00\\x00\\x00 - 4096 - x1 7\n2 Get B\\x00\\x00\\x00\\x00\\x00\\x00\\x00 - 512 - x1 -\n\
             3 Get C\\x00\\x00\\x00\\x00\\x00\\x00\\x00 - 1 - x1 -",
        );
        check(Format::OracleGeneral, &all[..10], "record 1: the file ends after 10 of its 24 bytes");
        check(Format::OracleGeneral, &record(1, 2, 3, -9), "record 1: next access -9 is neither an index nor -1");
    }

    #[test]
    fn plain_lines_compression_and_length_limit() {
        check(Format::Plain, b"a\n b b \n", "- Get a - - - x1 -\n- Get b b - - - x1 -");
        check(Format::Plain, b"a\n\n", "- Get a - - - x1 -\nrecord 2: no key");
        let zstd = "the trace is compressed with zstd; decompress it first: `zstd -dc FILE > trace`";
        check(Format::Plain, &[0x28, 0xb5, 0x2f, 0xfd, 0], zstd);
        let long = vec![b'k'; LINE_MAX_BYTES + 1];
        check(Format::Plain, &long, "record 1: longer than 65536 bytes: is the trace in this format?");
        let fits = Reader::new(&long[1..], Format::Plain).next().unwrap().map(|access| access.key.len());
        assert_eq!(fits, Some(LINE_MAX_BYTES));
    }
}
