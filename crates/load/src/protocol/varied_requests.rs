//! Requests with values, which are composed once and then written in pieces. Writing a piece allocates nothing.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use net::{Nanos, thread_and_process};
use stats::popularity::Zipf;
use stats::random::mix;
use stats::{Rng, ZipfRanks};
use study::request_values::{Field, Part, RowOrder, has_values};
use wire::decimal;

use crate::template_escaping::{self, Escape, Syntax};

const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &[u8; 16] = b"0123456789abcdef";
const CONTENT_LENGTH: &str = "\r\ncontent-length: ";

#[derive(Debug, Default)]
struct Table {
    text: String,
    /// End of each string in `text`, bytes.
    ends: Vec<usize>,
}

impl Table {
    fn get(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text.as_bytes()[start..self.ends[row]]
    }

    fn longest(&self) -> usize {
        (0..self.ends.len()).map(|row| self.get(row).len()).max().unwrap_or(0)
    }
}

#[derive(Debug)]
enum Source {
    Uuid,
    Trace,
    UnixMs { at_zero_ns: Nanos },
    Sequence { first: u64 },
    Integer { first: u64, count: u64 },
    Zipf { first: u64, ranks: ZipfRanks },
    Letters { length: u32 },
    Rows { table: Table, random: bool },
    Words { table: Table, weights_until: Vec<u64> },
}

#[derive(Debug)]
pub(crate) struct Value {
    /// Seed of the values, which also depend on the number of the request.
    key: u64,
    source: Source,
}

/// Creates the values of a load. Equal fields share one value, so each CSV column is in memory only once.
pub(crate) struct Values<'a> {
    /// Directory of CSV files; empty for the working directory.
    directory: &'a str,
    pub(super) seed: u64,
    known: Vec<(String, Escape, Arc<Value>)>,
    /// Number of requests for which the values suffice, which is the number of rows in the shortest file whose rows are
    /// sent once; `None` without such a file.
    pub(super) requests_max: Option<u64>,
    /// Whether to check files without keeping their rows. Requests then cannot be sent.
    pub(crate) only_checks: bool,
}

/// Maps `bits` to a number below `count`, which must not be 0. The bias is below `count / 2^64`.
fn below(bits: u64, count: u64) -> u64 {
    ((u128::from(bits) * u128::from(count)) >> 64) as u64
}

impl Value {
    /// The `nth` group of 64 random bits of a request, in counter mode.
    fn draw(&self, number: u64, nth: u64) -> u64 {
        mix(mix(self.key ^ nth) ^ number)
    }

    fn push(&self, number: u64, now: Nanos, out: &mut Vec<u8>) {
        let hex = |bits: u64, digits: Range<u32>, out: &mut Vec<u8>| {
            out.extend(digits.map(|digit| HEX[(bits >> (60 - digit * 4)) as usize & 15]));
        };
        match &self.source {
            Source::Uuid => {
                let high = self.draw(number, 0) & !0xf000 | 0x4000;
                let low = self.draw(number, 1) & (u64::MAX >> 2) | 1 << 63;
                hex(high, 0..8, out);
                for (bits, digits) in [(high, 8..12), (high, 12..16), (low, 0..4), (low, 4..16)] {
                    out.push(b'-');
                    hex(bits, digits, out);
                }
            }
            Source::Trace => {
                out.extend_from_slice(b"00-");
                hex(self.draw(number, 0), 0..16, out);
                hex(self.draw(number, 1), 0..16, out);
                out.push(b'-');
                hex(self.draw(number, 2), 0..16, out);
                out.extend_from_slice(b"-01");
            }
            Source::UnixMs { at_zero_ns } => decimal::push(out, (at_zero_ns + now) / 1_000_000),
            Source::Sequence { first } => decimal::push(out, first.wrapping_add(number)),
            Source::Integer { first, count } => decimal::push(out, first + below(self.draw(number, 0), *count)),
            Source::Zipf { first, ranks } => {
                decimal::push(out, first + ranks.sample(&mut Rng::stream(self.key, number)));
            }
            Source::Letters { length } => {
                // 36^12 is below 2^63, so one draw gives twelve characters.
                for start in (0..*length).step_by(12) {
                    let mut bits = self.draw(number, u64::from(start / 12));
                    out.extend((start..*length).take(12).map(|_| {
                        let letter = ALPHABET[below(bits, 36) as usize];
                        bits = bits.wrapping_mul(36);
                        letter
                    }));
                }
            }
            Source::Rows { table, random } => {
                let rows = table.ends.len() as u64;
                let row = if *random { below(self.draw(number, 0), rows) } else { number % rows };
                out.extend_from_slice(table.get(row as usize));
            }
            Source::Words { table, weights_until } => {
                let at = below(self.draw(number, 0), weights_until[weights_until.len() - 1]);
                out.extend_from_slice(table.get(weights_until.partition_point(|until| *until <= at)));
            }
        }
    }

    /// The trace id of the request with this number, if this is a [`Varied::trace`].
    pub(super) fn trace_id(&self, number: u64) -> String {
        let mut field = Vec::new();
        self.push(number, 0, &mut field);
        // The field consists of `00-`, the trace id of 32 digits, and the rest.
        String::from_utf8_lossy(&field[3..35]).into_owned()
    }

    /// Maximum length of the values in bytes, and whether all values have this length.
    fn bytes(&self) -> (usize, bool) {
        let digits = |number: u64| number.checked_ilog10().map_or(1, |digits| digits as usize + 1);
        let between = |first: u64, last: u64| (digits(last), digits(first) == digits(last));
        match &self.source {
            Source::Uuid => (36, true),
            Source::Trace => (55, true),
            Source::UnixMs { .. } | Source::Sequence { .. } => (20, false),
            Source::Integer { first, count } => between(*first, first + (count - 1)),
            Source::Zipf { .. } => (20, false),
            Source::Letters { length } => (*length as usize, true),
            Source::Rows { table, .. } | Source::Words { table, .. } => {
                let longest = table.longest();
                (longest, (0..table.ends.len()).all(|row| table.get(row).len() == longest))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Piece {
    /// A range of bytes in `Varied::bytes`.
    Fixed(usize, usize),
    /// A value, by its index in `Varied::values`.
    Value(usize),
    BodyLength,
}

#[derive(Debug)]
pub(crate) struct Varied {
    bytes: Vec<u8>,
    head: Vec<Piece>,
    body: Vec<Piece>,
    values: Vec<Arc<Value>>,
}

impl Varied {
    /// Compiles a request whose last `body_bytes` bytes are its body, and reads CSV files. `None` without values.
    pub(crate) fn compile(
        composed: &[u8],
        body_bytes: usize,
        media_type: Option<&str>,
        values: &mut Values<'_>,
    ) -> Result<Option<Varied>, String> {
        let (head, body) = composed.split_at(composed.len() - body_bytes);
        // A body that is not UTF-8 or has no values is sent unchanged.
        let body_text = std::str::from_utf8(body).ok().filter(|text| has_values(text));
        let head = std::str::from_utf8(head).map_err(|error| error.to_string())?;
        if body_text.is_none() && !has_values(head) {
            return Ok(None);
        }
        let mut varied = Varied { bytes: Vec::new(), head: Vec::new(), body: Vec::new(), values: Vec::new() };
        varied.body = match body_text {
            Some(text) => varied.pieces(text, Syntax::of_body(media_type, text), values)?,
            None => vec![varied.fixed(body)],
        };
        let (line, fields) = head.split_at(head.find("\r\n").unwrap_or(head.len()));
        varied.head = varied.pieces(line, Syntax::Url, values)?;
        let rest = match fields.to_ascii_lowercase().rfind(CONTENT_LENGTH).filter(|_| body_text.is_some()) {
            None => fields,
            Some(at) => {
                let (before, after) = fields.split_at(at + CONTENT_LENGTH.len());
                let before = varied.pieces(before, Syntax::Header, values)?;
                varied.head.extend(before);
                let length = match varied.body_bytes() {
                    (bytes, true) => varied.fixed(bytes.to_string().as_bytes()),
                    (_, false) => Piece::BodyLength,
                };
                varied.head.push(length);
                after.trim_start_matches(|digit: char| digit.is_ascii_digit())
            }
        };
        let rest = varied.pieces(rest, Syntax::Header, values)?;
        varied.head.extend(rest);
        Ok(Some(varied))
    }

    pub(crate) fn of_text(text: &str, syntax: Syntax, values: &mut Values<'_>) -> Result<Varied, String> {
        let mut varied = Varied { bytes: Vec::new(), head: Vec::new(), body: Vec::new(), values: Vec::new() };
        varied.head = varied.pieces(text, syntax, values)?;
        Ok(varied)
    }

    fn fixed(&mut self, bytes: &[u8]) -> Piece {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        Piece::Fixed(start, self.bytes.len())
    }

    fn pieces(&mut self, text: &str, syntax: Syntax, values: &mut Values<'_>) -> Result<Vec<Piece>, String> {
        let (mut pieces, mut before) = (Vec::new(), String::new());
        for part in study::request_values::parts(text).map_err(|error| error.in_one_line())? {
            match part {
                Part::Text(text) | Part::Field(text, Field::Braces) => {
                    let text = if matches!(part, Part::Text(_)) { text } else { "{{" };
                    pieces.push(self.fixed(text.as_bytes()));
                    before.push_str(text);
                }
                Part::Field(text, field) => {
                    // Quotes never extend beyond a header line.
                    let line = before.rsplit("\r\n").next().unwrap_or_default();
                    let in_header = syntax == Syntax::Header;
                    let escape = template_escaping::escape_after(syntax, if in_header { line } else { &before });
                    let is_bare = escape == Escape::JsonValue
                        && matches!(field, Field::Uuid | Field::Trace | Field::Letters { .. });
                    self.values.push(values.value(text, field, escape, in_header)?);
                    let quote = |varied: &mut Self| is_bare.then(|| varied.fixed(b"\""));
                    pieces.extend(quote(self));
                    pieces.push(Piece::Value(self.values.len() - 1));
                    pieces.extend(quote(self));
                }
            }
        }
        Ok(pieces)
    }

    fn bytes_of(&self, pieces: &[Piece]) -> (usize, bool) {
        let sizes = pieces.iter().map(|piece| match *piece {
            Piece::Fixed(start, end) => (end - start, true),
            Piece::Value(index) => self.values[index].bytes(),
            Piece::BodyLength => (20, false),
        });
        sizes.fold((0, true), |(sum, all), (bytes, is_fixed)| (sum + bytes, all && is_fixed))
    }

    /// Maximum length of the body in bytes, and whether all lengths are equal.
    pub(crate) fn body_bytes(&self) -> (usize, bool) {
        self.bytes_of(&self.body)
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_of(&self.head).0 + self.body_bytes().0
    }

    /// The first `{{trace}}`; `None` if the request has none.
    pub(crate) fn trace(&self) -> Option<Arc<Value>> {
        self.values.iter().find(|value| matches!(value.source, Source::Trace)).cloned()
    }

    /// Appends the request with this number. `scratch` holds a body of unknown length.
    pub(crate) fn push(&self, number: u64, now: Nanos, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        if self.head.contains(&Piece::BodyLength) {
            scratch.clear();
            self.push_pieces(&self.body, 0, number, now, scratch);
            self.push_pieces(&self.head, scratch.len(), number, now, out);
            out.extend_from_slice(scratch);
        } else {
            self.push_pieces(&self.head, 0, number, now, out);
            self.push_pieces(&self.body, 0, number, now, out);
        }
    }

    pub(crate) fn bytes_of_request(&self, number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.push(number, 0, &mut Vec::new(), &mut bytes);
        bytes
    }

    fn push_pieces(&self, pieces: &[Piece], body_bytes: usize, number: u64, now: Nanos, out: &mut Vec<u8>) {
        for piece in pieces {
            match *piece {
                Piece::Fixed(start, end) => out.extend_from_slice(&self.bytes[start..end]),
                Piece::Value(index) => self.values[index].push(number, now, out),
                Piece::BodyLength => decimal::push(out, body_bytes as u64),
            }
        }
    }
}

impl<'a> Values<'a> {
    pub(crate) fn new(directory: &'a str, seed: u64) -> Self {
        Self { directory, seed, known: Vec::new(), requests_max: None, only_checks: false }
    }

    fn value(&mut self, text: &str, field: Field, escape: Escape, in_header: bool) -> Result<Arc<Value>, String> {
        // Headers allow fewer characters, so their values are always checked again.
        let mut known = self.known.iter().filter(|_| !in_header);
        if let Some((_, _, value)) = known.find(|(known, with, _)| known == text && *with == escape) {
            return Ok(value.clone());
        }
        // All columns of a file must come from the same row.
        let key_text = match &field {
            Field::Csv { file, .. } => format!("{file}@{}", text.split_once('@').map_or("", |(_, label)| label)),
            _ => text.to_owned(),
        };
        let key = key_text.bytes().fold(mix(self.seed), |key, byte| mix(key ^ u64::from(byte)));
        let value = Arc::new(Value { key, source: self.source(field, escape, in_header)? });
        self.known.push((text.to_owned(), escape, value.clone()));
        Ok(value)
    }

    fn source(&mut self, field: Field, escape: Escape, in_header: bool) -> Result<Source, String> {
        let (mut table, is_kept) = (Table::default(), !self.only_checks);
        let mut add = |text: &str| {
            if is_kept {
                template_escaping::push(&mut table.text, text, escape);
                table.ends.push(table.text.len());
            }
        };
        Ok(match field {
            Field::Uuid => Source::Uuid,
            Field::Trace => Source::Trace,
            Field::UnixMs => Source::UnixMs {
                at_zero_ns: thread_and_process::unix_ns().saturating_sub(thread_and_process::monotonic_ns()),
            },
            Field::Sequence { first } => Source::Sequence { first },
            Field::Integer { first, last, zipf: None } => Source::Integer { first, count: last - first + 1 },
            Field::Integer { first, last, zipf: Some(exponent) } => {
                Source::Zipf { first, ranks: ZipfRanks::new(Zipf::new(last - first + 1, exponent)) }
            }
            Field::Letters { length } => Source::Letters { length },
            Field::Choice(words) => {
                let mut sum = 0;
                let weights_until = words.iter().map(|(word, weight)| {
                    add(word);
                    sum += u64::from(*weight);
                    sum
                });
                Source::Words { weights_until: weights_until.collect(), table }
            }
            Field::Csv { file, column, order } => {
                let path = Path::new(self.directory).join(&file);
                study::csv_column::read(&path, &column, in_header, add)?;
                table.text.shrink_to_fit();
                table.ends.shrink_to_fit();
                if order == RowOrder::Once {
                    let rows = table.ends.len() as u64;
                    self.requests_max = Some(self.requests_max.map_or(rows, |least| least.min(rows)));
                }
                Source::Rows { table, random: order == RowOrder::Random }
            }
            Field::Braces => unreachable!("a literal text"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use stats::goodness_of_fit::chi_square;
    use study::spec::{self, Connection, Expect, HttpRequest, LoadSpec, even_share};

    use super::super::{Http, Protocol};
    use super::*;
    use crate::check_spec;

    fn compiled(target: &str, header: &str, body: &str, folder: &Path) -> Result<Http, String> {
        let headers = [("Host", "a"), ("X-It", header)].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (method, target, body) = ("POST".to_owned(), target.to_owned(), body.as_bytes().to_vec());
        let request = HttpRequest { weight: 1, method, target, headers: headers.to_vec(), body, name: None };
        let folder = folder.display().to_string();
        let values = Values::new(&folder, 7);
        Http::new(&[request], &Expect::default(), Connection::KeepAlive, values).map_err(|mistakes| mistakes.join("; "))
    }

    fn next(http: &mut Http) -> String {
        let mut out = Vec::new();
        http.request(&mut http.stream(), 0, &mut Rng::new(1), &mut out);
        assert!(out.len() <= http.request_bytes_max(), "{} bytes", out.len());
        String::from_utf8(out).unwrap()
    }

    fn each_value(http: &mut Http, count: u64, mut each: impl FnMut(&str)) {
        for _ in 0..count {
            let text = next(http);
            each(&text["POST /".len()..text.find(" HTTP").unwrap()]);
        }
    }

    fn values(field: &str, count: u64) -> Vec<String> {
        let mut values = Vec::new();
        let mut http = compiled(&format!("/{field}"), "", "", Path::new("")).unwrap();
        each_value(&mut http, count, |value| values.push(value.to_owned()));
        values
    }

    /// Checks that 12 workers of 3 processes send each of the first `count` integers once.
    fn check_sequence(count: u64) {
        let mut seen = vec![false; count as usize];
        for first in [0, 4, 8] {
            let spec = LoadSpec {
                clients: 12,
                threads: 4,
                part: Some(spec::Part { first, of: 12 }),
                ..check_spec::tests::spec()
            };
            for worker in (0..spec.workers()).map(|nth| spec.worker(nth)) {
                let http = compiled("/{{seq:100}}", "", "", Path::new("")).unwrap();
                let sent = even_share(count, worker.into(), 12);
                each_value(&mut http.of_worker(worker, spec.workers_of_all()), sent, |value| {
                    let at = value.parse::<usize>().unwrap() - 100;
                    assert!(!std::mem::replace(&mut seen[at], true), "{value} twice");
                });
            }
        }
        assert!(seen.iter().all(|&seen| seen));
    }

    fn check_law(field: &str, count: u64, shares: &[f64]) {
        let mut counts = vec![0; shares.len()];
        let mut http = compiled(&format!("/{field}"), "", "", Path::new("")).unwrap();
        each_value(&mut http, count, |value| counts[value.parse::<usize>().unwrap() - 1] += 1);
        let test = chi_square(&counts, shares).unwrap();
        println!("{field}, {count} values: {test:?}");
        assert!(test.p > 1e-6, "{test:?}");
    }

    fn zipf_shares(count: u32, exponent: f64) -> Vec<f64> {
        let heights = (1..=count).map(|rank| f64::from(rank).powf(-exponent)).collect::<Vec<_>>();
        let sum = heights.iter().sum::<f64>();
        heights.iter().map(|height| height / sum).collect()
    }

    #[test]
    fn sequence_is_unique_over_workers() {
        check_sequence(12_005);
    }

    #[test]
    fn integers_follow_their_laws() {
        check_law("{{rand:1..50}}", 100_000, &[0.02; 50]);
        check_law("{{zipf:1..50:1.2}}", 100_000, &zipf_shares(50, 1.2));
        check_law("{{choice:1*9,2*1}}", 100_000, &[0.9, 0.1]);
    }

    #[test]
    #[ignore = "slow: ten million values of three kinds"]
    fn ten_million_values_are_unique_and_follow_their_laws() {
        check_sequence(10_000_000);
        check_law("{{rand:1..1000}}", 10_000_000, &[0.001; 1000]);
        check_law("{{zipf:1..1000}}", 10_000_000, &zipf_shares(1000, 0.99));
    }

    #[test]
    #[ignore = "slow: a file of a million rows"]
    fn a_csv_file_takes_at_most_its_size_and_16_bytes_per_row() {
        let folder = tempfile::tempdir().unwrap();
        let rows = (0..1_000_000).map(|row| format!("user{row}@example.com\n")).collect::<String>();
        std::fs::write(folder.path().join("a.csv"), format!("id\n{rows}")).unwrap();
        let mut values = Values::new(folder.path().to_str().unwrap(), 1);
        let varied = Varied::of_text("{{csv:a.csv:id}}", Syntax::Other, &mut values).unwrap();
        let Source::Rows { table, .. } = &varied.values[0].source else { panic!("a CSV file") };
        let taken_bytes = table.text.capacity() + table.ends.capacity() * size_of::<usize>();
        println!("{taken_bytes} bytes for a file of {} bytes", rows.len() + 3);
        assert!(taken_bytes <= rows.len() + 16 * 1_000_000, "{taken_bytes}");
    }

    #[test]
    fn identifiers_have_their_form_and_differ() {
        for (field, form) in [
            ("{{uuid}}", "xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx"),
            ("{{trace}}", "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-01"),
            ("{{letters:30}}", "llllllllllllllllllllllllllllll"),
        ] {
            let all = values(field, 10_000);
            for value in &all {
                let fits = |(byte, form): (u8, u8)| match form {
                    b'x' => HEX.contains(&byte),
                    b'v' => b"89ab".contains(&byte),
                    b'l' => ALPHABET.contains(&byte),
                    form => byte == form,
                };
                assert!(value.len() == form.len() && value.bytes().zip(form.bytes()).all(fits), "{value}");
            }
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{field}");
            for at in (0..form.len()).filter(|at| matches!(form.as_bytes()[*at], b'x' | b'l')) {
                let bytes = all.iter().map(|value| value.as_bytes()[at]).collect::<BTreeSet<_>>();
                assert!(bytes.len() >= 16, "position {at} of {field}: {bytes:?}");
            }
        }
    }

    #[test]
    fn long_letters_do_not_repeat() {
        let text = values("{{letters:6000}}", 1).remove(0);
        let blocks = text.as_bytes().chunks(12).collect::<BTreeSet<_>>();
        assert_eq!(blocks.len(), 500);
    }

    #[test]
    fn equal_fields_have_one_value_and_labels_another() {
        let mut http = compiled("/{{uuid}}/{{uuid@b}}", "{{uuid}}", "", Path::new("")).unwrap();
        let text = next(&mut http);
        let ids = text.split(['/', ' ', '\r', '\n']).filter(|word| word.len() == 36).collect::<Vec<_>>();
        assert!(ids.len() == 3 && ids[0] == ids[2] && ids[0] != ids[1], "{text}");
    }

    #[test]
    fn content_length_matches_the_body() {
        for body in [
            "{{seq}}",
            "{{uuid}}",
            "n={{rand:1..1000000}}&m={{seq}}",
            "{{letters:100}}{{braces}}",
            "{{braces}}",
            "fixed",
        ] {
            let mut http = compiled("/{{seq}}", "", body, Path::new("")).unwrap();
            for number in 1..200 {
                let text = next(&mut http);
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())), "{number}: {text}");
                assert!(head.ends_with(&body.len().to_string()), "{text}");
            }
        }
    }

    #[test]
    fn rows_stay_together_and_are_escaped_for_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let rows = (0..10).map(|row| format!("{row},\"v {row}\"\"\"\n")).collect::<String>();
        std::fs::write(folder.path().join("a.csv"), format!("\u{feff}id,text\n{rows}")).unwrap();
        let body = r#"{"text": "{{csv:a.csv:text:random}}", "bare": {{csv:a.csv:text:random}}}"#;
        let target = "/{{csv:a.csv:id}}?id={{csv:a.csv:id:random}}&text={{csv:a.csv:text:random}}";
        let mut http = compiled(target, "{{csv:a.csv:text:random}}", body, folder.path()).unwrap();
        let mut seen = BTreeSet::new();
        for number in 0..200 {
            let text = next(&mut http);
            let id = &text["POST /0?id=".len()..][..1];
            seen.insert(id.to_owned());
            let target = format!("POST /{}?id={id}&text=v%20{id}%22 HTTP/1.1\r\n", number % 10);
            let header = format!("\r\nX-It: v {id}\"\r\n");
            let body = format!(r#"{{"text": "v {id}\"", "bare": "v {id}\""}}"#);
            assert!(text.starts_with(&target) && text.contains(&header) && text.ends_with(&body), "{text}");
        }
        assert_eq!(seen.len(), 10);
    }

    #[test]
    fn errors_in_files_name_the_file_and_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, b"id\na\0b\n").unwrap();
        let error = compiled("/", "{{csv:a.csv:id}}", "", folder.path()).unwrap_err();
        let expected = format!("{}:2:1: column `id`: '\\0' cannot be sent in a header", path.display());
        assert!(error.ends_with(&expected), "{error}");
    }

    #[test]
    fn binary_bodies_are_sent_unchanged() {
        let body = b"\xff{{uuid}}".to_vec();
        let headers = vec![("Host".to_owned(), "a".to_owned())];
        let request =
            HttpRequest { weight: 1, method: "POST".to_owned(), target: "/".to_owned(), headers, body, name: None };
        let mut http = Http::new(&[request], &Expect::default(), Connection::KeepAlive, Values::new("", 1)).unwrap();
        let mut out = Vec::new();
        http.request(&mut http.stream(), 0, &mut Rng::new(1), &mut out);
        assert!(out.ends_with(b"\r\n\r\n\xff{{uuid}}"));
    }
}
