//! Text of others made safe to show: what a subject writes may hold anything, also what commands a terminal.

use std::borrow::Cow;

use study::record::{BuildOutcome, Outcome, Record, Run};

/// Whether a character reaches a terminal or a page unchanged: neither a control character other than line end and tab, nor
/// one that is invisible or reorders the text around it (Unicode TR 36, 2.10).
fn is_shown(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => false,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => false,
        c => !c.is_control(),
    }
}

/// `text` with escapes for characters that would command a terminal or reorder the text: `\x1b`, `\u202e`. Line ends and tabs
/// stay, CR LF becomes LF. From U+007F on, the escapes are also those of JSON, so JSON stays what it was.
pub fn visible(text: &str) -> Cow<'_, str> {
    let shown = is_shown;
    if text.chars().all(shown) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            c if shown(c) => out.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => out.push_str("\\r"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    Cow::Owned(out)
}

/// The record with what its subject said made visible.
pub(crate) fn record(record: &Record) -> Cow<'_, Record> {
    let hidden = |text: &String| matches!(visible(text), Cow::Owned(_));
    let any = match &record.outcome {
        Outcome::Failed(failure) => hidden(&failure.message),
        Outcome::Measured(measurement) => measurement.error_examples.values().any(hidden),
    };
    if !any && !record.warnings.iter().any(|warning| hidden(&warning.text)) {
        return Cow::Borrowed(record);
    }
    let mut record = record.clone();
    match &mut record.outcome {
        Outcome::Failed(failure) => show(&mut failure.message),
        Outcome::Measured(measurement) => measurement.error_examples.values_mut().for_each(show),
    }
    record.warnings.iter_mut().for_each(|warning| show(&mut warning.text));
    Cow::Owned(record)
}

/// The run with what its builds said made visible.
pub(crate) fn run(run: &Run) -> Cow<'_, Run> {
    let hidden = |outcome: &BuildOutcome| match outcome {
        BuildOutcome::Ready => false,
        BuildOutcome::Skipped { reason: text }
        | BuildOutcome::Unrunnable { reason: text }
        | BuildOutcome::Unverified { reason: text, .. }
        | BuildOutcome::Failed { output_tail: text } => matches!(visible(text), Cow::Owned(_)),
    };
    if !run.builds.iter().any(|build| hidden(&build.outcome)) {
        return Cow::Borrowed(run);
    }
    let mut run = run.clone();
    for build in &mut run.builds {
        match &mut build.outcome {
            BuildOutcome::Ready => {}
            BuildOutcome::Skipped { reason: text }
            | BuildOutcome::Unrunnable { reason: text }
            | BuildOutcome::Unverified { reason: text, .. }
            | BuildOutcome::Failed { output_tail: text } => show(text),
        }
    }
    Cow::Owned(run)
}

fn show(text: &mut String) {
    if let Cow::Owned(shown) = visible(text) {
        *text = shown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escapes_and_the_rest_is_left_alone() {
        for (text, shown) in [
            ("plain, é, 日本\n\tindented", "plain, é, 日本\n\tindented"),
            ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
            ("bell\x07 nul\0 del\x7f c1\u{9b}", "bell\\x07 nul\\x00 del\\u007f c1\\u009b"),
            ("a\u{202e}b\u{2066}c\u{e0041}", "a\\u202eb\\u2066c\\udb40\\udc41"),
            ("می\u{200c}خواهم 👩\u{200d}💻", "می\u{200c}خواهم 👩\u{200d}💻"),
            ("10 %\r100 %\r\ndone", "10 %\\r100 %\ndone"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert!(matches!(visible("plain\n"), Cow::Borrowed(_)));
        let json = serde_json::to_string("\u{7f}\u{9b}\u{202e}\u{e0041}").unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&visible(&json)).unwrap(),
            "\u{7f}\u{9b}\u{202e}\u{e0041}"
        );
    }
}
