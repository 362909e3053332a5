//! Turns cache flags into a workload and a warm-up.

use std::path::Path;
use std::time::Duration;

use study::Workload;
use study::spec::Warmup;
use study::workload::trace::Format;
use study::workload::{Gaps, PRESETS, Trace};

use crate::cli::{CacheArgs, WarmupRule, YesNo};
use crate::mistakes::Mistakes;

/// The default workload: its fixed population lets the hit ratio settle, and its lengths were
/// measured.
const DEFAULT_WORKLOAD: &str = "etc-2012";
/// Default warm-up for servers that are not caches.
const WARMUP: Duration = Duration::from_nanos(study::limits::WARMUP_NS);
/// Maximum warm-up of a cache, in ns.
const STEADY_MAX_NS: u64 = 60_000_000_000;

pub(crate) fn workload(args: &CacheArgs, mistakes: &mut Mistakes) -> Option<Workload> {
    let key_count = mistakes.some("--key-count", args.key_count.as_ref());
    let speed = mistakes.some("--trace-speed", args.trace_speed.as_ref());
    let mut workload = match (&args.trace, args.trace_format) {
        (Some(file), Some(format)) => traced(args.workload.as_deref(), file, format, mistakes)?,
        _ => base(args.workload.as_deref().unwrap_or(DEFAULT_WORKLOAD), mistakes)?,
    };
    if let Some(trace) = &mut workload.trace {
        if let Some(gaps) = args.trace_gaps {
            trace.gaps = gaps;
        }
        trace.speed = speed.unwrap_or(trace.speed);
    }
    if let Some(count) = key_count {
        workload.keys.count = count;
    }
    if let Some(fill) = args.fill {
        workload.fill = fill == YesNo::Yes;
    }
    for problem in workload.problems() {
        mistakes.add(format!("workload: `{}`: {}", problem.key, problem.message), problem.hint.map(str::to_owned));
    }
    Some(workload)
}

/// A trace; lengths missing from the trace come from a workload.
fn traced(named: Option<&str>, file: &str, format: Format, mistakes: &mut Mistakes) -> Option<Workload> {
    let trace = Trace { file: file.to_owned(), format, gaps: Gaps::None, speed: 1.0 };
    if let Some(named) = named {
        let base = base(named, mistakes)?;
        return Some(Workload { trace: Some(trace), fill: !format.has_writes(), ..base });
    }
    if !format.has_lengths() {
        let hint = "add `--workload`, e.g. `--workload etc-2012`".to_owned();
        let name = format.name();
        mistakes.add(format!("`--trace-format {name}`: this format has no key and value sizes"), Some(hint));
        return None;
    }
    // A study with a trace has defaults for the other keys.
    let text = format!("load.workload.trace = {{ file = \"t\", format = \"{}\" }}\n", format.name());
    let workload = study::parse_workload(&text).expect("a trace with sizes needs nothing else");
    Some(Workload { trace: Some(trace), ..workload })
}

fn base(name: &str, mistakes: &mut Mistakes) -> Option<Workload> {
    if let Some(workload) = study::workload::preset(name) {
        return Some(workload);
    }
    let path = Path::new(name);
    if !path.exists() && !name.contains(['/', '.']) {
        let names = PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
        let hint = format!("presets: {names}; a file needs `[load.workload]`");
        mistakes.add(format!("`--workload`: no preset or file named `{name}`"), Some(hint));
        return None;
    }
    match std::fs::read_to_string(path) {
        Err(error) => {
            mistakes.add(format!("`--workload`: cannot read `{name}`: {error}"), None);
            None
        }
        Ok(text) => study::parse_workload(&text).map_err(|found| mistakes.in_file(path, &text, &found)).ok(),
    }
}

pub(crate) fn flags_of_none(args: &CacheArgs, mistakes: &mut Mistakes) {
    let all = [
        ("--workload", args.workload.is_some()),
        ("--key-count", args.key_count.is_some()),
        ("--fill", args.fill.is_some()),
        ("--trace", args.trace.is_some()),
    ];
    for (flag, _) in all.into_iter().filter(|(_, given)| *given) {
        let hint = "cache URLs are `memcached://`, `redis://` and `http-cache://`".to_owned();
        mistakes.add(format!("`{flag}` only applies to caches"), Some(hint));
    }
}

pub(crate) fn warmup(
    given: Option<WarmupRule>,
    is_cache: bool,
    requests: Option<u64>,
    mistakes: &mut Mistakes,
) -> Warmup {
    let time = |time: Duration| Warmup::DurationNs(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    match (given, requests) {
        (None, _) if !is_cache => time(WARMUP),
        (Some(WarmupRule::Time(given)), _) => time(given),
        (Some(WarmupRule::Share(share)), Some(requests)) => Warmup::Requests((requests as f64 * share).round() as u64),
        (Some(WarmupRule::Share(_)), None) => {
            let hint = "add `-n`, or give a time".to_owned();
            mistakes.add("`--warmup`: a percentage needs `-n`", Some(hint));
            time(WARMUP)
        }
        (Some(WarmupRule::Steady), _) if !is_cache => {
            mistakes.add("`--warmup steady` needs a cache: it watches the hit ratio", Some("give a time".to_owned()));
            time(WARMUP)
        }
        (None | Some(WarmupRule::Steady), _) => Warmup::Steady { max_ns: STEADY_MAX_NS },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: CacheArgs) -> (Option<Workload>, String) {
        let mut mistakes = Mistakes::default();
        let workload = workload(&args, &mut mistakes);
        (workload, mistakes.end().err().map(|problem| format!("{problem:?}")).unwrap_or_default())
    }

    #[test]
    fn a_workload_is_a_preset_or_a_file() {
        assert_eq!(of(CacheArgs::default()).0, study::workload::preset("etc-2012"));
        let changed = of(CacheArgs {
            workload: Some("ycsb-c".to_owned()),
            key_count: Some(crate::cli::Given(Ok(77))),
            fill: Some(YesNo::No),
            ..CacheArgs::default()
        });
        let changed = changed.0.unwrap();
        assert_eq!((changed.keys.count, changed.fill), (77, false));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.toml");
        std::fs::write(&path, "[load.workload]\npreset = \"course\"\n").unwrap();
        let workload = |path: &Path| of(CacheArgs { workload: Some(path.display().to_string()), ..Default::default() });
        assert_eq!(workload(&path).0, study::workload::preset("course"));
        std::fs::write(&path, "[load.workload]\npreset = \"curse\"\n").unwrap();
        assert!(workload(&path).1.contains("course"), "{}", workload(&path).1);
        assert!(workload(Path::new("/no/such")).1.contains("cannot read"));
        assert!(workload(Path::new("etc")).1.contains("presets: course"));
    }

    #[test]
    fn warm_ups() {
        let of = |given, is_cache, requests| {
            let mut mistakes = Mistakes::default();
            let rule = warmup(given, is_cache, requests, &mut mistakes);
            mistakes.end().ok().map(|()| rule)
        };
        let steady = Warmup::Steady { max_ns: STEADY_MAX_NS };
        for (given, is_cache, requests, rule) in [
            (None, false, None, Some(Warmup::DurationNs(study::limits::WARMUP_NS))),
            (None, true, Some(7), Some(steady)),
            (Some(WarmupRule::Share(0.5)), true, Some(1_000_000), Some(Warmup::Requests(500_000))),
            (Some(WarmupRule::Share(0.5)), false, Some(10), Some(Warmup::Requests(5))),
            (Some(WarmupRule::Share(0.5)), true, None, None),
            (Some(WarmupRule::Steady), false, None, None),
        ] {
            assert_eq!(of(given, is_cache, requests), rule, "{given:?} {is_cache} {requests:?}");
        }
    }
}
