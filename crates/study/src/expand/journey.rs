//! Reads `[load]` with `journey`: the journey, its targets and the other keys that apply to journeys.

use std::collections::BTreeMap;

use config::Invalid;

use crate::journey::PRESETS;
use crate::keys::allowed_words::{HTTP_VERSIONS, IDENTITIES};
use crate::keys::load_keys;
use crate::plan::{JourneyPlan, JourneySource};
use crate::section_at_design_point::Section;
use crate::spec::Protocol;
use crate::{factor_placeholders, url};

/// Keys that do not apply to journeys, in addition to the keys of HTTP and caches.
const FOREIGN: [&str; 5] = ["backend", "search", "capacity", "server_name", "resume"];

pub(super) fn read(section: &Section) -> JourneyPlan {
    let foreign = load_keys("HTTP").filter(|key| *key != "http").chain(load_keys("caches:")).chain(FOREIGN);
    section.refuse(foreign, "does not apply to journeys", "drop it");
    let names = PRESETS.map(|preset| preset.0);
    if !section.has("journey") {
        let names = names.map(|name| format!("`{name}`")).join(", ");
        let hint = format!("add `journey = \"evernote\"`; available: {names}, or a file");
        section.report.missing(section.place_of("protocol"), "`load` has no `journey`", hint);
    }
    section.choice("protocol", &[("journey", ())]);
    let (insecure, ca_file) = super::http::trust(section);
    let http2 = section.choice("http", HTTP_VERSIONS).unwrap_or_default();
    section.rule(http2 && section.has("resolve"), "resolve", "`resolve` needs HTTP/1.1", "drop it, or `http = \"2\"`");
    JourneyPlan {
        journeys: sources(section),
        targets: targets(section),
        resolve: section.text_as("resolve", |text| origin(text, &[Protocol::Http], &PORTS)),
        insecure,
        ca_file,
        client: super::http::client_certificate(section),
        http2,
        keep_calls: section.flag("keep_calls").unwrap_or_default(),
        identities: section.choice("identities", IDENTITIES).unwrap_or_default(),
    }
}

fn sources(section: &Section) -> Vec<JourneySource> {
    if !section.is_list("journey") {
        let source = section.text_as("journey", source);
        return source.into_iter().map(|source| JourneySource { source, weight: 1 }).collect();
    }
    let tables = section.tables("journey", "a journey");
    section.rule(tables.is_empty(), "journey", "`load.journey` is empty", "begin each journey with `[[load.journey]]`");
    let read = |table: &Section| {
        table.check();
        let weight = table.small("weight").unwrap_or(1);
        table.text_as("file", source).map(|source| JourneySource { source, weight })
    };
    tables.iter().flatten().filter_map(read).collect()
}

fn source(name: &str) -> Result<String, Invalid> {
    let names = PRESETS.map(|preset| preset.0);
    if names.contains(&name) || name.ends_with(".toml") {
        return Ok(name.to_owned());
    }
    let hint = format!("{}; a file name ends in `.toml`", config::nearest::suggestion(name, names));
    Err(Invalid::new(format!("unknown journey `{}`", name.escape_debug())).hint(hint))
}

/// Templates of ports in `targets` and `resolve`. The last one is only for `resolve`: the first proxy's resolver.
pub(super) const PORTS: [&str; 3] = [factor_placeholders::PORT, "subject_port", "admin_port"];

/// Checks an origin, which is a scheme, a host and a port, and returns it. Templates must be among `ports`.
fn origin(text: &str, schemes: &[Protocol], ports: &[&str]) -> Result<String, Invalid> {
    if let Some(name) = factor_placeholders::names(text).into_iter().find(|name| !ports.contains(name)) {
        return Err(Invalid::new(format!("`{{{name}}}` only works in `resolve`")));
    }
    let filled = factor_placeholders::fill(text, |_| Some("1".to_owned()));
    let url = url::parse(&filled)?;
    if !schemes.contains(&url.protocol) || url.target != "/" || filled.ends_with('/') {
        let names = schemes.iter().map(|protocol| format!("`{}://host:port`", protocol.scheme())).collect::<Vec<_>>();
        return Err(Invalid::new(format!("`{}` is not {}", text.escape_debug(), names.join(" or "))));
    }
    Ok(text.to_owned())
}

fn targets(section: &Section) -> BTreeMap<String, String> {
    let Some(table) = section.section("targets") else { return BTreeMap::new() };
    let origin = |text: &str| origin(text, &[Protocol::Http, Protocol::Https], &PORTS[..2]);
    table.table.keys().map(|key| (key.to_owned(), table.text_as(key, origin).unwrap_or_default())).collect()
}
