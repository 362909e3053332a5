//! The section on containers and companions.

use analysis::findings::{Findings, HostedFinding, MedianRange};

use super::cells::shown;
use crate::document::{Block, Head, Section, Table};

pub(crate) fn section(f: &Findings) -> Option<Section> {
    if f.hosted.is_empty() {
        return None;
    }
    let numbers = ["ready after", "CPU per request", "RSS", "charged", "I/O"].map(Head::number);
    let heads = ["design point", "what", "runs as"].map(Head::text).into_iter().chain(numbers);
    let mut section = Section::new("containers", "Containers and companions");
    let table = Table::plain("Median over trials [least, largest]", heads, f.hosted.iter().map(line));
    section.all(Block::Table(table));
    section.long(Block::Note(
        "RSS is the peak resident memory of the processes, read the same way for processes and containers. Charged is the peak of the container's control \
         group, with page cache, kernel memory and the start of the container."
            .to_owned(),
    ));
    Some(section)
}

fn line(one: &HostedFinding) -> Vec<String> {
    vec![
        one.label.clone(),
        one.companion.as_ref().map_or_else(|| "server".to_owned(), |name| format!("companion {name}")),
        one.runs_as.clone(),
        range(&one.ready_ns, "ns"),
        range(&one.cpu_per_request_ns, "ns"),
        range(&one.rss_max_bytes, "bytes"),
        range(&one.charged_max_bytes, "bytes"),
        range(&one.io_bytes, "bytes"),
    ]
}

/// Formats the median and range as `1.27 ms [1.20 ms, 1.31 ms]`, or as one value if all are equal.
fn range(found: &Option<MedianRange>, unit: &str) -> String {
    match found {
        None => "–".to_owned(),
        Some(MedianRange { median, min, max }) if min == max => shown(*median, unit),
        Some(MedianRange { median, min, max }) => {
            format!("{} [{}, {}]", shown(*median, unit), shown(*min, unit), shown(*max, unit))
        }
    }
}
