//! Turns browser recordings (HAR 1.2, <http://www.softwareishard.com/blog/har-12-spec/>) into journeys.

mod archive;
mod steps;
mod tokens;

use std::collections::BTreeMap;

use config::Invalid;

use self::archive::Archive;
use self::steps::{Kept, quoted};
use self::tokens::Tokens;
use crate::journey::parse::{STEPS_MAX, parse as parse_journey};
use crate::journey::placeholders;
use crate::url::{self, Url};
use crate::validate_http;

/// Maximum size of a recording, bytes.
pub const FILE_MAX_BYTES: u64 = 256 << 20;

/// A journey made from a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The journey file (TOML), in which comments mark guesses.
    pub text: String,
    /// Number of requests in the recording, including the requests left out.
    pub recorded: usize,
    /// Number of steps of the journey.
    pub steps: usize,
    /// Number of values that steps take from responses.
    pub values: usize,
}

/// Writes a recording as the journey `name`, without requests for static files or to other sites. Hosts become targets,
/// and values from earlier responses become `take` entries. Fails at the first error, or unless 1 to 1000 steps remain.
pub fn import(name: &str, text: &str) -> Result<Imported, Invalid> {
    let save = "save the recording again: `Export HAR (with sensitive data)` in Chromium, `Save All As HAR` in Firefox";
    let archive = serde_json::from_str::<Archive>(text).map_err(|error| Invalid::new(error.to_string()).hint(save))?;
    let (entries, mut left_out) = (&archive.log.entries, BTreeMap::<String, usize>::new());
    let mut kept = Vec::<Kept<'_>>::new();
    for (entry, number) in entries.iter().zip(1..) {
        let place = |error: Invalid| error.of(&format!("entry {number} of `log.entries`"));
        validate_http::method(&entry.request.method).map_err(place)?;
        let url = url::parse(&entry.request.url).ok().filter(|url| url.protocol.has_path());
        let host = url.as_ref().map(|url| url.host.as_str());
        let is_elsewhere = |host: &str| kept.first().is_some_and(|first| site(&first.url.host) != site(host));
        let why = match (&url, host) {
            (None, _) => "not over HTTP".to_owned(),
            _ if entry.is_static() => "static files".to_owned(),
            _ if entry.request.method == "OPTIONS" => "preflights".to_owned(),
            _ if entry.response.status == 0 => "without a response".to_owned(),
            (_, Some(host)) if is_elsewhere(host) => format!("to {host}"),
            _ => String::new(),
        };
        match url.filter(|_| why.is_empty()) {
            Some(url) => kept.push(Kept { entry, url, target: String::new() }),
            None => *left_out.entry(why).or_default() += 1,
        }
    }
    if kept.is_empty() {
        let reasons = left_out.iter().map(|(why, count)| format!("{why} ({count})")).collect::<Vec<_>>().join(", ");
        let message = match entries.len() {
            0 => "the recording has no requests".to_owned(),
            count => format!("all {count} requests were left out: {reasons}"),
        };
        return Err(Invalid::new(message).hint("record the steps of a user: pages, forms and calls of an API"));
    }
    if kept.len() > STEPS_MAX {
        let message = format!("{} requests are left, a journey has at most {STEPS_MAX} steps", kept.len());
        return Err(Invalid::new(message).hint("record fewer steps"));
    }
    let targets = targets(kept.iter().map(|one| &one.url));
    for one in &mut kept {
        let target = targets.iter().find(|target| target.1 == one.url.origin());
        one.target = target.map_or_else(String::new, |target| target.0.clone());
    }
    let reserved = targets.iter().map(|target| target.0.as_str()).chain(["number", "random", placeholders::OPEN]);
    let mut tokens = Tokens::new(reserved.map(str::to_owned).collect());
    let steps = steps::written(&kept, &mut tokens);
    let mut text = format!("# {} of {} requests of a browser's recording.\n", kept.len(), entries.len());
    for (why, count) in &left_out {
        text += &format!("# Left out: {why} ({count})\n");
    }
    if kept.iter().all(|one| one.entry.response.text().is_empty()) {
        text += "# The recording has no response bodies, so no values were found in them.\n";
    }
    if kept.iter().all(|one| one.entry.has_no_credentials()) {
        text += "# The recording has no cookies and no `Authorization`. Chromium omits them unless it exports HAR with \
                 sensitive data.\n";
    }
    let named = targets.iter().map(|(name, origin)| format!("{name} = {}", quoted(origin))).collect::<Vec<_>>();
    text += "# `# guess` marks guessed sources of values; check each of them.\n\n";
    text += &format!("name = {}\ntargets = {{ {} }}\n", quoted(name), named.join(", "));
    let open = placeholders::OPEN;
    if steps.contains(&format!("{{{open}}}")) {
        text += &format!("let = {{ {open} = \"{{\" }} # for literal braces\n");
    }
    text += &steps;
    parse_journey(&text).map_err(|found| {
        let first = found.first().map(ToString::to_string).unwrap_or_default();
        Invalid::new(format!("the recording makes no valid journey: {first}"))
    })?;
    Ok(Imported { text, recorded: entries.len(), steps: kept.len(), values: tokens.len() })
}

/// The part of a host that its subdomains share, such as `shop.example` of `api.shop.example`.
fn site(host: &str) -> &str {
    if host.contains(':') || host.ends_with(|last: char| last.is_ascii_digit()) {
        return host;
    }
    // Anyone can register a name below these labels of a country's domain, as in `co.uk`.
    let is_open = |label: &str| ["ac", "co", "com", "edu", "gov", "net", "org"].contains(&label);
    let labels = host.rsplit('.').collect::<Vec<_>>();
    let count = if labels[0].len() == 2 && labels.get(1).is_some_and(|label| is_open(label)) { 3 } else { 2 };
    let length = labels.iter().take(count).map(|label| label.len() + 1).sum::<usize>() - 1;
    &host[host.len() - length..]
}

fn targets<'u>(urls: impl Iterator<Item = &'u Url>) -> Vec<(String, String)> {
    let mut targets = Vec::<(String, String)>::new();
    for url in urls {
        let origin = url.origin();
        if targets.iter().any(|target| target.1 == origin) {
            continue;
        }
        let label = url.host.trim_start_matches("www.").split('.').next().unwrap_or_default().replace('-', "_");
        let is_name =
            url.host.contains('.') && placeholders::is_name(&label) && !["number", "random"].contains(&label.as_str());
        let name = if is_name { label } else { "site".to_owned() };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let is_free = |name: &String| !targets.iter().any(|target| target.0 == *name);
        let name = std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or_default();
        targets.push((name, origin));
    }
    targets
}

#[cfg(test)]
mod tests;
