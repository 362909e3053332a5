//! Turns journey flags into the target of a load.

use std::collections::BTreeMap;
use std::path::Path;

use study::Journey;
use study::journey::PRESETS;
use study::record::{LoggedSession, Measurement};
use study::spec::{Target, WeightedJourney};

use crate::cli::LoadArgs;
use crate::collected_mistakes::Mistakes;
use crate::command_result::{Result, usage};
use crate::http_flags::{self, Asked};
use crate::output;

/// HTTP flags that also apply to journeys.
const SHARED_FLAGS: [&str; 7] =
    ["--http2", "--connection", "--no-keepalive", "--requests-per-connection", "--insecure", "--cacert", "--cert"];

/// Builds the target from the journeys and their flags; `None` if errors prevent it.
pub(crate) fn asked(args: &LoadArgs, mistakes: &mut Mistakes) -> Option<Asked> {
    let flags = &args.http;
    let mut targets = BTreeMap::new();
    for (name, url) in &args.targets {
        if targets.insert(name.clone(), url.clone()).is_some() {
            mistakes.add(format!("duplicate `--target {name}=...`"));
        }
    }
    let journeys = args.journeys.iter().map(|(name, weight)| {
        let journey = journey(name, mistakes)?;
        Some(WeightedJourney { weight: *weight, journey })
    });
    let journeys = journeys.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>()?;
    let name = match journeys.as_slice() {
        [one] => format!("journey {}", one.journey.name),
        all => {
            let all = all.iter().map(|one| format!("{} (weight {})", one.journey.name, one.weight));
            format!("journeys {}", all.collect::<Vec<_>>().join(", "))
        }
    };
    let refused = http_flags::given_flags(mistakes);
    let refused = refused.iter().map(String::as_str).filter(|flag| !SHARED_FLAGS.contains(flag)).collect::<Vec<_>>();
    mistakes.refuse(&refused, "does not apply to journeys", "drop it");
    if flags.http2 && args.resolve.is_some() {
        mistakes.add(usage("`--resolve` needs HTTP/1.1").hint("drop it, or `--http2`"));
    }
    let (ca_file, client) = http_flags::certificates(flags, mistakes);
    let target = Target::Journey {
        journeys,
        targets,
        resolve: args.resolve.clone(),
        insecure: flags.insecure,
        ca_file,
        client,
        http2: flags.http2,
        is_traced: args.trace_session,
        identities: args.identities,
    };
    let name = if flags.http2 { format!("{name} over HTTP/2") } else { name };
    Some(Asked { connection: http_flags::connection(flags), ..Asked::new(target, name) })
}

/// Rejects flags that only journeys accept. Clap's `requires` would ignore flags that conflict with the URL.
pub(crate) fn flags_of_none(mistakes: &mut Mistakes) {
    let flags = ["--target", "--resolve", "--calls", "--trace-session", "--identities"];
    mistakes.refuse(&flags, "only applies to journeys", "use `--journey` instead of the URL");
}

fn journey(name: &str, mistakes: &mut Mistakes) -> Option<Journey> {
    if let Some(journey) = study::preset_journey(name) {
        return Some(journey);
    }
    let hint = format!("built-in journeys: {}", PRESETS.map(|preset| preset.0).join(", "));
    let (path, text) = (Path::new(name), output::read_named("--journey", "journey", name, hint));
    let text = mistakes.ok(text)?;
    let mut journey = study::parse_journey(&text).map_err(|found| mistakes.in_file(path, &text, &found)).ok()?;
    let files = journey.files().map(str::to_owned).collect::<Vec<_>>();
    let beside = path.parent().unwrap_or(Path::new(""));
    for schema in journey.schemas.iter_mut().filter(|schema| files.contains(&schema.file)) {
        let schema_path = beside.join(&schema.file);
        let unreadable = |error| format!("`--journey`: cannot read `{}`: {error}", schema_path.display());
        schema.text = mistakes.ok(std::fs::read_to_string(&schema_path).map_err(unreadable))?;
    }
    Some(journey)
}

/// Writes each call's timing as CSV. Times are in ns since measuring began; `right` means that the reply was correct.
pub(crate) fn write_calls(path: &Path, measurement: &Measurement, target: &Target) -> Result<()> {
    let mut text = String::from("number,client,journey,operation,intended_ns,sent_ns,latency_ns,right\n");
    let mut calls = measurement.log.iter().collect::<Vec<_>>();
    calls.sort_by_key(|call| call.sent_ns);
    for (number, call) in calls.into_iter().enumerate() {
        let LoggedSession { client, journey } = call.session.unwrap_or_default();
        let operation = target.request_name(call.request).replace('"', "\"\"");
        let (intended, sent, latency) = (call.intended_ns, call.sent_ns, call.ended_ns - call.sent_ns);
        let is_right = call.error.is_empty();
        text.push_str(&format!("{number},{client},{journey},\"{operation}\",{intended},{sent},{latency},{is_right}\n"));
    }
    output::file(path, &text)?;
    if measurement.log_left_out > 0 {
        output::message(&format!("{} calls are not in `{}`, which is full", measurement.log_left_out, path.display()));
    }
    Ok(())
}
