//! Turns cache flags into a workload and a warm-up.

use std::path::Path;
use std::time::Duration;

use study::Workload;
use study::spec::Warmup;
use study::workload::trace::Format;
use study::workload::{Gaps, PRESETS, Trace};

use crate::cli::{CacheArgs, WarmupRule};
use crate::collected_mistakes::Mistakes;
use crate::command_result::usage;
use crate::output;

/// Default workload. Its population is fixed, so that the hit ratio settles, and its lengths come from measurements.
const DEFAULT_WORKLOAD: &str = "etc-2012";
/// Default warm-up for servers that are not caches.
const WARMUP: Duration = Duration::from_nanos(study::load_limits_and_defaults::WARMUP_NS);
/// Maximum warm-up of a cache, in ns.
const STEADY_MAX_NS: u64 = 60_000_000_000;

pub(crate) fn workload(args: &CacheArgs, mistakes: &mut Mistakes) -> Option<Workload> {
    let mut workload = match (&args.trace, args.trace_format) {
        (Some(file), Some(format)) => traced(args, file, format, mistakes)?,
        _ => base(args.workload.as_deref().unwrap_or(DEFAULT_WORKLOAD), mistakes)?,
    };
    workload.keys.count = args.key_count.unwrap_or(workload.keys.count);
    workload.fill = args.fill.unwrap_or(workload.fill);
    for problem in workload.problems() {
        mistakes.add(usage(format!("workload: `{}`: {}", problem.key, problem.message)).hint_if(problem.hint));
    }
    Some(workload)
}

/// Workload of a trace. Lengths that the trace lacks come from `--workload`. `None` after an error.
fn traced(args: &CacheArgs, file: &str, format: Format, mistakes: &mut Mistakes) -> Option<Workload> {
    let (gaps, speed) = (args.trace_gaps.unwrap_or(Gaps::None), args.trace_speed.unwrap_or(1.0));
    let trace = Trace { file: file.to_owned(), format, gaps, speed };
    if let Some(named) = &args.workload {
        let base = base(named, mistakes)?;
        return Some(Workload { trace: Some(trace), fill: !format.has_writes(), ..base });
    }
    if !format.has_lengths() {
        let text = format!("`--trace-format {}`: this format has no key and value sizes", format.name());
        mistakes.add(usage(text).hint("add `--workload`, e.g. `--workload etc-2012`"));
        return None;
    }
    // A study with a trace has defaults for all other keys.
    let text = format!("load.workload.trace = {{ file = \"t\", format = \"{}\" }}\n", format.name());
    let workload = study::parse_workload(&text).expect("a trace with sizes needs nothing else");
    Some(Workload { trace: Some(trace), ..workload })
}

fn base(name: &str, mistakes: &mut Mistakes) -> Option<Workload> {
    if let Some(workload) = study::workload::preset(name) {
        return Some(workload);
    }
    let names = PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
    let hint = format!("presets: {names}; a file needs `[load.workload]`");
    let text = mistakes.ok(output::read_named("--workload", "preset", name, hint))?;
    study::parse_workload(&text).map_err(|found| mistakes.in_file(Path::new(name), &text, &found)).ok()
}

pub(crate) fn flags_of_none(mistakes: &mut Mistakes) {
    let hint = "cache URLs are `memcached://`, `redis://` and `http-cache://`";
    mistakes.refuse(&["--workload", "--key-count", "--fill", "--trace"], "only applies to caches", hint);
}

pub(crate) fn warmup(rule: Option<WarmupRule>, is_cache: bool, count: Option<u64>, mistakes: &mut Mistakes) -> Warmup {
    let time = |time: Duration| Warmup::DurationNs(lab::lab_clocks::nanos(time));
    match (rule, count) {
        (None, _) if !is_cache => time(WARMUP),
        (Some(WarmupRule::Time(given)), _) => time(given),
        (Some(WarmupRule::Share(share)), Some(count)) => Warmup::Requests((count as f64 * share).round() as u64),
        (Some(WarmupRule::Share(_)), None) => {
            mistakes.add(usage("`--warmup`: a percentage needs `-n`").hint("add `-n`, or give a time"));
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
            key_count: Some(77),
            fill: Some(false),
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
            (None, false, None, Some(Warmup::DurationNs(study::load_limits_and_defaults::WARMUP_NS))),
            (None, true, Some(7), Some(steady)),
            (Some(WarmupRule::Share(0.5)), true, Some(1_000_000), Some(Warmup::Requests(500_000))),
            (Some(WarmupRule::Share(0.5)), false, Some(10), Some(Warmup::Requests(5))),
            (Some(WarmupRule::Share(0.5)), true, None, None),
            (Some(WarmupRule::Steady), false, None, Some(steady)),
        ] {
            assert_eq!(of(given, is_cache, requests), rule, "{given:?} {is_cache} {requests:?}");
        }
    }
}
