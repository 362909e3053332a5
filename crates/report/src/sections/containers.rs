//! The section on containers and companions.

use analysis::findings::{Findings, MedianRange};

use super::cells::shown;
use crate::document::{Block, Columns, Section};

pub(crate) fn write(f: &Findings, section: &mut Section) {
    let table = Columns::of(&f.hosted)
        .text("design point", |one| one.label.as_str())
        .text("what", |one| one.companion.as_ref().map_or("server".to_owned(), |name| format!("companion {name}")))
        .text("runs as", |one| one.runs_as.as_str())
        .number("ready after", |one| range(&one.ready_ns, "ns"))
        .number("CPU per request", |one| range(&one.cpu_per_request_ns, "ns"))
        .number("RSS", |one| range(&one.rss_max_bytes, "bytes"))
        .number("charged", |one| range(&one.charged_max_bytes, "bytes"))
        .number("I/O", |one| range(&one.io_bytes, "bytes"));
    let Some(table) = table.plain("Median over trials [least, largest]").unless_empty() else { return };
    section.all([Block::Table(table)]);
    section.long([Block::Note(
        "RSS is the peak resident memory of the processes, read the same way for processes and containers. Charged is the peak of the container's control \
         group, with page cache, kernel memory and the start of the container."
            .to_owned(),
    )]);
}

/// Formats the median and range as `1.27 ms [1.20 ms, 1.31 ms]`, or as one value if all are equal.
fn range(found: &Option<MedianRange>, unit: &str) -> String {
    let Some(MedianRange { median, min, max }) = found else { return "–".to_owned() };
    let ends = format!(" [{}, {}]", shown(*min, unit), shown(*max, unit));
    format!("{}{}", shown(*median, unit), if min == max { "" } else { &ends })
}
