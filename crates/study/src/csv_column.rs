//! Values of a column of a CSV file with a header line (RFC 4180), in UTF-8. Lines may also end with LF, and empty lines
//! are ignored. The reader holds one field at a time, so large files need no memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use config::nearest;

/// Maximum length of a field, bytes.
const FIELD_MAX_BYTES: usize = 64 * 1024;
const COLUMNS_MAX: usize = 1000;

/// Calls `each` with the values of a column of the CSV file at `path`. Fails as [`values()`] does, or at a read error.
pub fn read(path: &Path, name: &str, in_header: bool, each: impl FnMut(&str)) -> Result<(), String> {
    let shown = path.display().to_string();
    let file = File::open(path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    values(file, &shown, name, in_header, each)
}

/// Calls `each` with the values of a CSV column. `in_header` forbids control characters, which headers cannot contain.
/// Fails at the first error in the file, with its line and column, or if the column or its rows are missing.
pub fn values(
    file: impl Read,
    shown: &str,
    name: &str,
    in_header: bool,
    mut each: impl FnMut(&str),
) -> Result<(), String> {
    let mut reader = Reader { input: BufReader::new(file), here: (1, 1), start: (1, 1), field: Vec::new() };
    let mut read = || {
        let start = reader.input.fill_buf().map_err(|error| error.to_string())?;
        let byte_order_mark = if start.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
        reader.input.consume(byte_order_mark);
        let mut names = Vec::new();
        loop {
            let is_last = reader.next_field()?;
            names.push(reader.text()?.to_owned());
            if is_last {
                break;
            }
            if names.len() == COLUMNS_MAX {
                return Err(format!("more than {COLUMNS_MAX} columns"));
            }
        }
        reader.start = (1, 1);
        let mut found = names.iter().enumerate().filter(|(_, known)| *known == name).map(|(at, _)| at);
        let at = found.next().ok_or_else(|| {
            let names = names.iter().map(String::as_str).filter(|name| !name.is_empty());
            format!("no column `{name}`; {}", nearest::suggestion(name, names))
        })?;
        if found.next().is_some() {
            return Err(format!("two columns `{name}`"));
        }
        let mut rows = 0;
        while reader.has_row()? {
            for index in 0..names.len() {
                let is_last = reader.next_field()?;
                if is_last != (index + 1 == names.len()) {
                    return Err(format!("expected {} fields, as in the header line", names.len()));
                }
                let text = reader.text()?;
                if index == at {
                    let control = text.chars().find(|char| in_header && char.is_control() && *char != '\t');
                    if let Some(control) = control {
                        return Err(format!("column `{name}`: {control:?} cannot be sent in a header"));
                    }
                    each(text);
                }
            }
            rows += 1;
        }
        if rows == 0 { Err("no rows below the header line".to_owned()) } else { Ok(()) }
    };
    let result = read();
    result.map_err(|error| format!("{shown}:{}:{}: {error}", reader.start.0, reader.start.1))
}

struct Reader<R> {
    input: BufReader<R>,
    /// Line and column of the next character, from 1.
    here: (usize, usize),
    /// Start of the field, or the place of an error in it.
    start: (usize, usize),
    field: Vec<u8>,
}

impl<R: Read> Reader<R> {
    fn peek(&mut self) -> Result<Option<u8>, String> {
        self.input.fill_buf().map(|bytes| bytes.first().copied()).map_err(|error| error.to_string())
    }

    fn skip(&mut self, byte: u8) {
        self.input.consume(1);
        match byte {
            b'\n' => self.here = (self.here.0 + 1, 1),
            // The other bytes of a character in UTF-8.
            0x80..=0xbf => {}
            _ => self.here.1 += 1,
        }
    }

    fn take(&mut self, byte: u8) -> Result<bool, String> {
        let found = self.peek()? == Some(byte);
        if found {
            self.skip(byte);
        }
        Ok(found)
    }

    fn line_end(&mut self) -> Result<bool, String> {
        let at = self.here;
        let (has_cr, has_lf) = (self.take(b'\r')?, self.take(b'\n')?);
        if has_cr && !has_lf { self.error(at, "CR without LF outside quotes") } else { Ok(has_lf) }
    }

    fn has_row(&mut self) -> Result<bool, String> {
        while self.line_end()? {}
        Ok(self.peek()?.is_some())
    }

    fn error<T>(&mut self, at: (usize, usize), message: &str) -> Result<T, String> {
        self.start = at;
        Err(message.to_owned())
    }

    /// Reads a field and the comma or line end after it. Returns whether the field ends its line.
    fn next_field(&mut self) -> Result<bool, String> {
        self.field.clear();
        self.start = self.here;
        let is_quoted = self.take(b'"')?;
        loop {
            match self.peek()? {
                None if is_quoted => return self.error(self.start, "a quote that is never closed"),
                Some(b'"') if is_quoted => {
                    self.skip(b'"');
                    if !self.take(b'"')? {
                        break;
                    }
                    self.field.push(b'"');
                }
                Some(b'"') => {
                    return self.error(self.here, "a quote in a field without quotes; write `\"a \"\"b\"\" c\"`");
                }
                None => break,
                Some(b',' | b'\r' | b'\n') if !is_quoted => break,
                Some(byte) => {
                    self.skip(byte);
                    self.field.push(byte);
                }
            }
            if self.field.len() > FIELD_MAX_BYTES {
                return Err(format!("a field of more than {FIELD_MAX_BYTES} bytes"));
            }
        }
        if self.take(b',')? {
            return Ok(false);
        }
        let at = self.here;
        match self.line_end()? || self.peek()?.is_none() {
            true => Ok(true),
            false => self.error(at, "expected `,` or the end of the line after a quote"),
        }
    }

    fn text(&self) -> Result<&str, String> {
        std::str::from_utf8(&self.field).map_err(|_| "a field that is not valid UTF-8".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], in_header: bool, expected: Result<&[&str], &str>) {
        let mut found = Vec::new();
        let read = values(bytes, "a.csv", "id", in_header, |value| found.push(value.to_owned()));
        let found = read.map(|()| found);
        let shown = bytes[..bytes.len().min(60)].escape_ascii();
        assert_eq!(
            found,
            expected.map(|all| all.iter().map(|&text| text.to_owned()).collect()).map_err(str::to_owned),
            "{shown}"
        );
    }

    #[test]
    fn reads_rows() {
        for (bytes, values) in [
            ("id,b\n1,2\n3,4", &["1", "3"][..]),
            ("b,id\r\n1,2\r\n\r\n3,4\r\n", &["2", "4"]),
            ("\u{feff}\"id\"\n\n1\n", &["1"]),
            ("id\n\"a\"\"b\"\n\"\"\n\"a,\r\nb\"\n", &["a\"b", "", "a,\r\nb"]),
            ("id,b\n,\n", &[""]),
            ("id\nü é\n", &["ü é"]),
        ] {
            check(bytes.as_bytes(), false, Ok(values));
        }
    }

    #[test]
    fn hostile_files_fail_with_line_and_column() {
        let (long, columns) = (format!("b,id\n1,2\n1,{}\n", "x".repeat(10_000_000)), ",".repeat(10_000_000));
        let quoted = format!("id\n1\n\"{}\"\n", "x\n".repeat(5_000_000));
        for (bytes, in_header, expected) in [
            (&b"id\n1\n\"a\r\nb\"\n"[..], true, "a.csv:3:1: column `id`: '\\r' cannot be sent in a header"),
            (b"b,id\n1,a\0b\n", true, "a.csv:2:3: column `id`: '\\0' cannot be sent in a header"),
            (b"id\n1\r2\n", false, "a.csv:2:2: CR without LF outside quotes"),
            (long.as_bytes(), false, "a.csv:3:3: a field of more than 65536 bytes"),
            (quoted.as_bytes(), false, "a.csv:3:1: a field of more than 65536 bytes"),
            (columns.as_bytes(), false, "a.csv:1:1000: more than 1000 columns"),
            (b"id,b\n1,2\n3\n", false, "a.csv:3:1: expected 2 fields, as in the header line"),
            (b"id,b\n1,2,3\n", false, "a.csv:2:3: expected 2 fields, as in the header line"),
            (b"id,b\n1,2\n3,\"4\n5,6\n", false, "a.csv:3:3: a quote that is never closed"),
            (
                "id\nü a\"b\"\n".as_bytes(),
                false,
                "a.csv:2:4: a quote in a field without quotes; write `\"a \"\"b\"\" c\"`",
            ),
            (b"id\n\"a\"b\n", false, "a.csv:2:4: expected `,` or the end of the line after a quote"),
            (b"id,b\n1,\xe9\n", false, "a.csv:2:3: a field that is not valid UTF-8"),
            (b"id,b,id\n1,2,3\n", false, "a.csv:1:1: two columns `id`"),
            (b"id\n", false, "a.csv:1:1: no rows below the header line"),
            (b"", false, "a.csv:1:1: no column `id`; nothing available"),
            (b"ids\n1\n", false, "a.csv:1:1: no column `id`; did you mean `ids`?"),
        ] {
            check(bytes, in_header, Err(expected));
        }
    }
}
