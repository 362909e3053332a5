//! `[load]` with `journey`: which journey, where it begins, and what of the other keys has a meaning with it.

use std::collections::BTreeMap;

use config::Place;
use config::node::{Table, Value};

use super::stop;
use crate::journey::PRESETS;
use crate::keys::words::IDENTITIES;
use crate::plan::{JourneyPlan, LoadPlan};
use crate::section::Section;
use crate::spec::{Arrivals, Backend, Connection, Protocol, Stop, Warmup};
use crate::template;
use crate::url;

/// Keys that belong to journeys alone.
pub(super) const OWN: [&str; 4] = ["targets", "resolve", "keep_calls", "identities"];
/// Keys of `[load]` that have a meaning with a journey.
const KNOWN: [&str; 18] = [
    "variants",
    "protocol",
    "journey",
    "targets",
    "resolve",
    "keep_calls",
    "identities",
    "insecure",
    "ca_file",
    "clients",
    "threads",
    "cpus",
    "share_cpus",
    "loop",
    "warmup",
    "stop",
    "window",
    "timeout",
];

/// The load of one design point; `None` only where a mistake was reported.
pub(super) fn load(section: &Section) -> Option<LoadPlan> {
    for entry in section.table.iter().filter(|entry| !KNOWN.contains(&entry.key.as_str())) {
        let message = format!("`load.{}` does not apply to journeys", entry.key.escape_debug());
        section.report.mistake(entry.key_place, message, None);
    }
    if !section.has("journey") {
        let names = PRESETS.map(|preset| format!("`{}`", preset.0)).join(", ");
        let hint = format!("add `journey = \"evernote\"`; available: {names}, or a file");
        section.report.missing(section.place_of("protocol"), "`load` has no `journey`", hint);
    }
    let protocol = section.given("protocol", section.choice("protocol", &[("journey", ())]));
    let source = section.text_as("journey", |name| {
        if PRESETS.iter().any(|preset| preset.0 == name) || name.ends_with(".toml") {
            return Ok(name.to_owned());
        }
        let names = PRESETS.map(|preset| preset.0);
        let hint = config::nearest::suggestion(name, names);
        Err((
            format!("unknown journey `{}`", name.escape_debug()),
            Some(format!("{hint}; a file name ends in `.toml`")),
        ))
    });
    let resolve = section.given("resolve", section.text_as("resolve", |text| origin(text, &[Protocol::Http], &PORTS)));
    let insecure = section.flag("insecure");
    let ca_file = section.given("ca_file", section.text("ca_file"));
    if insecure == Some(true) && section.has("ca_file") {
        let hint = "drop one of the two".to_owned();
        section.mistake("ca_file", "`insecure` accepts any certificate, so `ca_file` has no effect", hint);
    }
    let keep_calls = section.flag("keep_calls");
    let identities = section.choice("identities", IDENTITIES);
    let targets = targets(section);
    let looped = section.given("loop", section.choice("loop", &[("closed", ())]));
    let clients = section.small("clients");
    let threads = section.given("threads", section.small("threads"));
    let cpus = section.given("cpus", section.small("cpus"));
    let share_cpus = section.flag("share_cpus");
    let stop = stop::stop(section);
    if let Some(Stop::Volley { .. }) = stop {
        section.mistake(
            "stop",
            "volley's rule does not apply to journeys",
            "write `stop = { requests = 1000 }`".to_owned(),
        );
    }
    let warmup = if section.has("warmup") {
        stop::warmup(section, false, stop)
    } else {
        Some(Warmup::DurationNs(0)) // A journey of few calls would be over before a second is.
    };
    let window_ns = section.duration_ns("window");
    let timeout_ns = section.duration_ns("timeout");
    protocol?;
    looped?;
    let plan = JourneyPlan {
        source: source?,
        targets: targets?,
        resolve: resolve?,
        insecure: insecure?,
        ca_file: ca_file?,
        keep_calls: keep_calls?,
        identities: identities?,
    };
    Some(LoadPlan {
        protocol: Protocol::Journey,
        http: None,
        workload: None,
        journey: Some(plan),
        clients: clients?,
        pipeline: 1,
        connection: Connection::KeepAlive,
        threads: threads?,
        cpus: cpus?,
        share_cpus: share_cpus?,
        backend: Backend::Auto,
        arrivals: Arrivals::Closed { think_ns: 0 },
        search: None,
        share: None,
        warmup: warmup?,
        stop: stop?,
        window_ns: window_ns?,
        timeout_ns: timeout_ns?,
    })
}

/// Templates that the lab fills in in `targets` and `resolve`: where the generator's connections go, where the subject listens, and, in `resolve` alone, whom
/// the process in front of the generator answers.
pub(super) const PORTS: [&str; 3] = [template::PORT, "subject_port", "admin_port"];

/// Scheme, host and port, where a template may stand for the port.
fn origin(text: &str, schemes: &[Protocol], ports: &[&str]) -> Result<String, (String, Option<String>)> {
    if let Some((_, name)) = template::templates(text).into_iter().find(|(_, name)| !ports.contains(name)) {
        return Err((format!("`{{{name}}}` only works in `resolve`"), None));
    }
    let filled = template::fill(text, |_| Some("1".to_owned()));
    let url = url::parse(&filled).map_err(|error| (error.to_string(), error.hint()))?;
    if !schemes.contains(&url.protocol) || url.target != "/" || filled.ends_with('/') {
        let names = schemes.iter().map(|protocol| format!("`{}://host:port`", protocol.scheme())).collect::<Vec<_>>();
        return Err((format!("`{}` is not {}", text.escape_debug(), names.join(" or ")), None));
    }
    Ok(text.to_owned())
}

fn targets(section: &Section) -> Option<BTreeMap<String, String>> {
    if !section.has("targets") {
        return Some(BTreeMap::new());
    }
    let table = section.section("targets")?;
    let read = |key: &str| {
        let url = table.text_as(key, |text| origin(text, &[Protocol::Http, Protocol::Https], &PORTS[..2]))?;
        Some((key.to_owned(), url))
    };
    // Every one is read, so that all mistakes are told.
    let all = table.table.keys().map(read).collect::<Vec<_>>();
    all.into_iter().collect()
}

/// Where texts of a journey stand in which [`PORTS`] are filled in.
pub(super) fn with_ports(root: &Table) -> Vec<Place> {
    let load = root.table("load");
    let variants = load.and_then(|load| load.table("variants")).into_iter().flat_map(Table::iter);
    let variants = variants.filter_map(|entry| match &entry.node.value {
        Value::Table(variant) => Some(variant),
        _ => None,
    });
    let loads = load.into_iter().chain(variants);
    let texts =
        loads.flat_map(|load| load.table("targets").into_iter().flat_map(Table::iter).chain(load.get("resolve")));
    texts.filter(|entry| matches!(entry.node.value, Value::Text(_))).map(|entry| entry.node.place).collect()
}

#[cfg(test)]
mod tests {
    use crate::plan::LoadPlan;
    use crate::spec::Protocol;

    fn plan(lines: &str) -> Result<LoadPlan, Vec<String>> {
        let text = format!("question = \"?\"\n[subject]\ncommand = \"x -p {{port}}\"\n[load]\n{lines}\n");
        let words = |mistakes: Vec<crate::Diagnostic>| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>();
        let study = crate::parse(&text).map_err(words)?;
        let options = crate::ExpandOptions {
            name: "test".to_owned(),
            seed: 1,
            profile: crate::Profile::Default,
            machine_cpus: 2,
            generators_apart: false,
            sets: Vec::new(),
        };
        Ok(crate::expand(&study, &options).map_err(words)?.points[0].load.clone())
    }

    #[test]
    fn a_journey_needs_little() {
        let load = plan("journey = \"chess\"\nclients = 1\nstop = { requests = 700 }").unwrap();
        let journey = load.journey.unwrap();
        assert_eq!((load.protocol, journey.source.as_str()), (Protocol::Journey, "chess"));
        assert_eq!(load.warmup, crate::spec::Warmup::DurationNs(0));
        assert!(journey.targets.is_empty() && !journey.keep_calls);
    }

    #[test]
    fn targets_and_whom_to_ask_may_have_the_port() {
        let lines = "journey = \"a/b.toml\"\nclients = 1\nstop = \"1s\"\nkeep_calls = true\ninsecure = true\n\
                     resolve = \"http://127.0.0.1:9000\"\ntargets = { user = \"https://127.0.0.1:{port}\" }";
        let journey = plan(lines).unwrap().journey.unwrap();
        assert_eq!(journey.targets["user"], "https://127.0.0.1:{port}");
        assert_eq!(journey.resolve.as_deref(), Some("http://127.0.0.1:9000"));
        assert!(journey.insecure && journey.keep_calls);
    }

    #[test]
    fn the_same_load_goes_directly_and_through_others() {
        let lines = "journey = \"evernote\"\nclients = 1\nstop = \"1s\"\nresolve = \"http://127.0.0.1:{admin_port}\"\n\
                     targets = { user = \"https://127.0.0.1:{subject_port}\" }";
        let journey = plan(lines).unwrap().journey.unwrap();
        assert_eq!(journey.targets["user"], "https://127.0.0.1:{subject_port}");
        assert_eq!(journey.resolve.as_deref(), Some("http://127.0.0.1:{admin_port}"));
    }

    #[test]
    fn all_mistakes_are_told() {
        let lines = "journey = \"ches\"\nprotocol = \"http\"\nrate = \"1k\"\nloop = \"open\"\nclients = 0\n\
                     stop = { rule = \"volley\" }\nresolve = \"https://x:1\"\ntargets = { a = \"http://x:1/path\", b = 5 }\n\
                     insecure = true\nca_file = \"x\"\npath = \"/\"\nworkload = { preset = \"etc-2012\" }";
        let told = plan(lines).unwrap_err();
        for expected in [
            "unknown journey `ches`",
            "unknown protocol `http`",
            "`load.rate` does not apply to journeys",
            "unknown loop `open`",
            "must be 1 to 1,000,000",
            "volley's rule does not apply to journeys",
            "`https://x:1` is not `http://host:port`",
            "`http://x:1/path` is not `http://host:port` or `https://host:port`",
            "`load.targets.b` must be a string",
            "`insecure` accepts any certificate",
            "`load.path` does not apply to journeys",
            "`load.workload` does not apply to journeys",
        ] {
            assert!(told.iter().any(|mistake| mistake.contains(expected)), "{expected} in {told:#?}");
        }
        let told = plan("protocol = \"http\"\nresolve = \"http://x:1\"\nclients = 1\nstop = \"1s\"").unwrap_err();
        assert!(told[0].contains("`load.resolve` needs `load.journey`"), "{told:?}");
        let told = plan(
            "journey = \"chess\"\nclients = 1\nstop = \"1s\"\ntargets = { chess = \"http://127.0.0.1:{admin_port}\" }",
        );
        let told = told.unwrap_err();
        assert!(told[0].contains("`{admin_port}` only works in `resolve`"), "{told:?}");
        let told = plan("journey = \"chess\"\nclients = 1\nstop = \"1s\"\nca_file = \"{subject_port}\"").unwrap_err();
        assert!(told[0].contains("`{subject_port}` only works in proxies and the targets of a journey"), "{told:?}");
        let told = plan("protocol = \"journey\"\nclients = 1\nstop = \"1s\"").unwrap_err();
        assert!(told[0].contains("`load` has no `journey`"), "{told:?}");
    }
}
