//! Servers in containers, and companions.

use analysis::findings::{Findings, HostedFinding, MedianRange};

use super::cells::shown;
use crate::document::{Block, Section, Table};

/// Resources used by containers and companions.
pub(crate) fn section(f: &Findings) -> Option<Section> {
    if f.hosted.is_empty() {
        return None;
    }
    let heads = [
        ("design point", false),
        ("what", false),
        ("runs as", false),
        ("ready after", true),
        ("CPU per request", true),
    ];
    let heads = heads.into_iter().chain([("RSS", true), ("charged", true), ("I/O", true)]);
    let heads = heads.map(|(head, right)| (head.to_owned(), right)).collect();
    let mut section = Section::new("containers", "Containers and companions");
    let rows = f.hosted.iter().map(line).collect();
    section.all(Block::Table(Table::plain("Median over trials [least, largest]", heads, rows)));
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

/// `1.27 ms [1.20 ms, 1.31 ms]`, or one value if all are equal.
fn range(found: &Option<MedianRange>, unit: &str) -> String {
    match found {
        None => "–".to_owned(),
        Some(MedianRange { median, min, max }) if min == max => shown(*median, unit),
        Some(MedianRange { median, min, max }) => {
            format!("{} [{}, {}]", shown(*median, unit), shown(*min, unit), shown(*max, unit))
        }
    }
}
