//! Servers in containers, companions, and where servers spent their time.

use analysis::findings::{Findings, HostedFinding, MedianRange, ProfileFinding};
use analysis::number;

use super::cells::shown;
use crate::document::{Block, Section, Table};

/// What containers and companions used.
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

/// `1.27 ms [1.20 ms, 1.31 ms]`; of values that do not differ one.
fn range(found: &Option<MedianRange>, unit: &str) -> String {
    match found {
        None => "–".to_owned(),
        Some(MedianRange { median, min, max }) if min == max => shown(*median, unit),
        Some(MedianRange { median, min, max }) => {
            format!("{} [{}, {}]", shown(*median, unit), shown(*min, unit), shown(*max, unit))
        }
    }
}

/// Profiles.
pub(crate) fn profiles(f: &Findings) -> Option<Section> {
    if f.profiles.is_empty() {
        return None;
    }
    let heads =
        ["design point", "samples", "most time in", "flame graph"].map(|head| (head.to_owned(), head == "samples"));
    let mut section = Section::new("profiles", "Profiles");
    let rows = f.profiles.iter().map(profile).collect();
    section.all(Block::Table(Table::plain("", heads.to_vec(), rows)));
    section.long(Block::Note("Each from one extra trial after the others, which is in no other number.".to_owned()));
    Some(section)
}

fn profile(one: &ProfileFinding) -> Vec<String> {
    let samples = if one.samples == 0 {
        "–".to_owned()
    } else {
        format!("{} ({})", number::count(one.samples, "sample"), one.event)
    };
    let hottest = one.hottest.iter().map(|(name, share)| format!("{name} {:.0} %", 100.0 * share)).collect::<Vec<_>>();
    let file = one.file.iter().chain(&one.refused).map(String::as_str).collect::<Vec<_>>().join("; ");
    vec![one.label.clone(), samples, hottest.join(", "), file]
}
