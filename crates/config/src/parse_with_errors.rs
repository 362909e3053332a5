//! Parses a file with syntax errors. Broken lines are blanked, so that each error is reported once.

use std::ops::RangeInclusive;

use toml::de::DeTable;

use crate::error_collector::Report;
use crate::node::{self, Table};
use crate::place::{Place, line_and_column};

/// Maximum number of reported syntax errors. If a file has more, the first ones explain the rest.
const ERRORS_MAX: usize = 50;

/// Parses a TOML document without its broken lines. [`node::document`] keeps more of them, but then reports errors that
/// the author did not make in the rest of an unclosed list or of a table with a broken header.
pub fn document(text: &str, report: &Report) -> Table {
    let mut rest = text.to_owned();
    for _ in 0..ERRORS_MAX {
        let error = match DeTable::parse(&rest) {
            Ok(document) => return node::table(document.get_ref(), Place::default(), report),
            Err(error) => error,
        };
        let span = error.span().unwrap_or(0..0);
        let broken = broken_lines(&rest, line_and_column(&rest, span.start).0);
        report.syntax(Place { set: None, start: span.start, end: span.end }, error.message(), broken.clone());
        // Blanked lines keep their length, so that byte positions remain valid.
        let blank = |line: &str| line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect::<String>();
        let lines = rest.split_inclusive('\n').zip(1..);
        rest =
            lines.map(|(line, number)| if broken.contains(&number) { blank(line) } else { line.to_owned() }).collect();
    }
    Table::default()
}

/// The lines to drop for an error at line `stumbled`: the line itself and the broken table or list around it.
fn broken_lines(text: &str, stumbled: usize) -> RangeInclusive<usize> {
    let is_head = |line: &str| line.trim_start().starts_with('[');
    let begins = |line: &str| {
        let key = line.split_once('=').map(|(key, _)| key.trim());
        key.is_some_and(|key| !key.is_empty() && !key.contains(['[', '{', ',', '#']))
    };
    // Number of brackets that a line leaves open. Brackets in strings also count, but are too rare to matter.
    let opens = |line: &str| {
        let code = line.split('#').next().unwrap_or_default();
        code.matches(['[', '{']).count() as i64 - code.matches([']', '}']).count() as i64
    };
    let lines = text.lines().collect::<Vec<_>>();
    let at = (stumbled - 1).min(lines.len().saturating_sub(1));
    let behind = |from: usize, goes_on: &mut dyn FnMut(&str) -> bool| {
        from + lines.iter().skip(from + 1).take_while(|line| goes_on(line)).count()
    };
    let (from, to) = match (0..at).rev().find(|number| begins(lines[*number])) {
        Some(begin) if lines[begin..at].iter().map(|line| opens(line)).sum::<i64>() > 0 => {
            let mut open = opens(lines[begin]);
            let to = behind(begin, &mut |line| {
                let is_within =
                    open > 0 && !begins(line) && !(is_head(line) && line.trim_end().ends_with(']') && opens(line) == 0);
                open += opens(line);
                is_within
            });
            (begin, to)
        }
        _ if lines.get(at).is_some_and(|line| is_head(line)) => (at, behind(at, &mut |line| !is_head(line))),
        _ => (at, at),
    };
    from + 1..=to + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, told: &[&str], keys: &[&str]) {
        let report = Report::new("the file", text, &[]);
        let table = document(text, &report);
        assert_eq!(table.keys().collect::<Vec<_>>(), keys, "{text}");
        let mistakes = report.finish().err().unwrap_or_default();
        assert_eq!(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>(), told, "{text}");
    }

    #[test]
    fn reports_each_syntax_error_once_and_keeps_the_rest() {
        check("a = 1\nb = 2\n", &[], &["a", "b"]);
        check("a 1\nb = 2\n", &["1:3: key with no value, expected `=`"], &["b"]);
        check(
            "e = ü\nb = 'é\nc = 3",
            &[
                "1:5: string values must be quoted, expected literal string",
                "2:7: invalid literal string, expected `'`",
            ],
            &["c"],
        );
        check("a = [1, 2\n[b]\nc = 1\n", &["2:1: missing comma between array elements, expected `,`"], &["b"]);
        check("[[a]\nb = 1\n[c]\n", &["1:5: unclosed array table, expected `]`"], &["c"]);
        check("[a]\nb = 1\n[a]\nc = 2\n[d]\n", &["3:2: duplicate key"], &["a", "d"]);
    }
}
