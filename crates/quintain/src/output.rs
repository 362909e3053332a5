//! Writes to stdout (data) and stderr (everything else). No other module does.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::command_result::{Done, Exit, Result, cannot, machine, usage};

/// Colors and width for a report on stdout.
pub(crate) fn style() -> report::Style {
    let stdout = std::io::stdout();
    report::Style { colour: is_coloured(&stdout), width: size_of(&stdout).map_or(0, |(columns, _)| columns) }
}

const DRAWS_HZ: u8 = 5;

/// Writes text for people to stdout. Escapes control sequences of terminals except colors of reports.
pub(crate) fn text(text: &str) -> Result<()> {
    write(&printable(text, is_coloured(&std::io::stdout())))
}

/// Writes data for a program to stdout. Escapes it only if stdout is a terminal.
pub(crate) fn data(data: &str) -> Result<()> {
    if std::io::stdout().is_terminal() { text(data) } else { write(data) }
}

/// Escapes everything that would control a terminal. `coloured` keeps the colors of reports.
fn printable(text: &str, coloured: bool) -> String {
    let mut pieces = text.split('\x1b');
    let mut out = analysis::visible(pieces.next().unwrap_or_default()).into_owned();
    for piece in pieces {
        let code = report::COLOUR_CODES.iter().find(|code| coloured && piece.starts_with(**code));
        out += if code.is_some() { "\x1b" } else { "\\x1b" };
        out += &analysis::visible(piece);
    }
    out
}

/// Writes to stdout and adds a newline if there is none. A closed pipe, as with `| head`, is not an error.
fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let end: &[u8] = if text.is_empty() || text.ends_with('\n') { b"" } else { b"\n" };
    unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.write_all(end)).and_then(|()| out.flush()))
}

fn unless_closed(written: std::io::Result<()>) -> Result<()> {
    let written = written.or_else(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(anyhow::Error::new(error).context("stdout")),
    });
    written.map_err(machine)
}

pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    if std::io::stdout().is_terminal() {
        return data(&pretty(value)?);
    }
    // Large findings are streamed, so that their text does not have to fit in memory.
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    unless_closed(write_pretty(value, &mut out).and_then(|()| writeln!(out)).and_then(|()| out.flush()))
}

pub(crate) fn json_or(wants_json: bool, value: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<()> {
    if wants_json { json(value) } else { self::text(&text()) }
}

pub(crate) fn pretty(value: &impl serde::Serialize) -> Result<String> {
    let mut text = Vec::new();
    write_pretty(value, &mut text).map_err(machine)?;
    String::from_utf8(text).map_err(machine)
}

/// Writes indented JSON. `dyn` lets serde's code for a type be compiled only once.
fn write_pretty(value: &impl serde::Serialize, out: &mut dyn Write) -> std::io::Result<()> {
    Ok(serde_json::to_writer_pretty(out, value)?)
}

pub(crate) fn json_line(json: serde_json::Result<String>) -> Result<()> {
    data(&config::printable::text(&json.map_err(machine)?))
}

/// Writes a message to stderr with control characters escaped. Ignores write errors.
pub(crate) fn message(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", analysis::visible(text));
}

/// Reports the problem of a command, if any, on stderr and returns the exit code.
pub(crate) fn end(done: Done) -> ExitCode {
    let exit = done.unwrap_or_else(|problem| {
        message(&problem.shown());
        problem.exit
    });
    ExitCode::from(exit as u8)
}

pub(crate) fn ask(question: &str) {
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "{}", analysis::visible(question)).and_then(|()| err.flush());
}

pub(crate) fn is_coloured(stream: &impl IsTerminal) -> bool {
    coloured(stream.is_terminal(), variable)
}

/// Whether output is colored, as defined by no-color.org and bixense.com/clicolors. An empty variable counts as unset.
fn coloured(terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let is = |name: &str, value: &str| variable(name).as_deref() == Some(value);
    let is_forced = variable("CLICOLOR_FORCE").is_some() && !is("CLICOLOR_FORCE", "0");
    variable("NO_COLOR").is_none() && (is_forced || terminal && !is("TERM", "dumb") && !is("CLICOLOR", "0"))
}

#[expect(clippy::disallowed_methods, reason = "the binary reads the environment for all crates")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Columns and rows of stderr, each reduced by one, so that text can be redrawn in place. 79 by 23 if unknown.
pub(crate) fn room_on_stderr() -> (usize, usize) {
    let (columns, rows) = size_of(&std::io::stderr()).unwrap_or((80, 24));
    (columns.saturating_sub(1), rows.saturating_sub(1))
}

/// Columns and rows of a terminal; `None` if the stream is not a terminal or its size is unknown.
fn size_of(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok().filter(|_| stream.is_terminal())?;
    Some((size.ws_col.into(), size.ws_row.into())).filter(|(columns, rows)| *columns > 0 && *rows > 0)
}

pub(crate) fn bar(template: &str, length: Option<u64>, wanted: bool) -> ProgressBar {
    let draws = wanted && std::io::stderr().is_terminal() && variable("TERM").as_deref() != Some("dumb");
    let target = if draws { ProgressDrawTarget::stderr_with_hz(DRAWS_HZ) } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(template).expect("every bar has a constant template");
    ProgressBar::with_draw_target(length, target).with_style(style)
}

pub(crate) fn file(path: &std::path::Path, content: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, content).map_err(cannot(Exit::Usage, "write", path))
}

pub(crate) fn folder(path: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(cannot(Exit::Usage, "create", path))
}

pub(crate) fn read(path: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(cannot(Exit::Usage, "read", path))
}

/// Reads the file `name`, given for `flag` if no built-in preset or journey has this name. Fails if it is unreadable.
pub(crate) fn read_named(flag: &str, built_in: &str, name: &str, hint: String) -> Result<String> {
    if !std::path::Path::new(name).exists() && !name.contains(['/', '.']) {
        return Err(usage(format!("`{flag}`: no {built_in} or file named `{name}`")).hint(hint));
    }
    std::fs::read_to_string(name).map_err(|error| usage(format!("`{flag}`: cannot read `{name}`: {error}")))
}

/// Writes a file, creating its directory if needed, and reports its path followed by `note`.
pub(crate) fn saved(path: &std::path::Path, content: impl AsRef<[u8]>, note: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        self::folder(folder)?;
    }
    file(path, content)?;
    message(&format!("wrote {}{note}", path.display()));
    Ok(())
}

/// Formats seconds for people: `45 s`, `8 min` or `1.5 h`.
pub(crate) fn time_words(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 90.0 * 60.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Returns the last ten lines of a program's output, indented.
pub(crate) fn last_lines(text: &str) -> String {
    let lines = text.lines().collect::<Vec<_>>();
    let last = &lines[lines.len().saturating_sub(10)..];
    last.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:width$}", width = width(column)));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_of_reports_reach_the_terminal() {
        let text = "\x1b[1mbold\x1b[0m \x1b[2J\x1b]0;title\x07 \u{202e}gnp";
        assert_eq!(printable(text, true), "\x1b[1mbold\x1b[0m \\x1b[2J\\x1b]0;title\\x07 \\u202egnp");
        assert!(!printable(text, false).contains('\x1b'));
    }

    #[test]
    fn colours_follow_variables_and_terminal() {
        for (terminal, variables, expected) in [
            (true, &[][..], true),
            (false, &[], false),
            (true, &[("TERM", "xterm-256color")], true),
            (true, &[("TERM", "dumb")], false),
            (true, &[("NO_COLOR", "1")], false),
            (true, &[("NO_COLOR", "0")], false),
            (true, &[("NO_COLOR", "")], true),
            (true, &[("CLICOLOR", "0")], false),
            (false, &[("CLICOLOR", "1")], false),
            (false, &[("CLICOLOR_FORCE", "1")], true),
            (false, &[("CLICOLOR_FORCE", "0")], false),
            (true, &[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")], true),
            (true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(coloured(terminal, variable), expected, "{terminal} {variables:?}");
        }
    }
}
