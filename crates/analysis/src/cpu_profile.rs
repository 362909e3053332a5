//! Findings on CPU profiles: functions, disturbance of the server, and differences between contenders.

use std::collections::BTreeMap;

use study::cpu_profile::{CpuProfile, SampledFunction};
use study::plan::Plan;
use study::record::Run;

use crate::findings::{ProfileDifference, ProfileFinding, Row, ShareDifference};
use crate::printable_record::visible;
use crate::{gate, number};

const DIFFERENCES_MAX: usize = 10;
const STANDARD_ERRORS: f64 = 3.0;
/// Smallest reported difference between two shares of the CPU time, as a fraction.
const DIFFERENCE_MIN: f64 = 0.005;
const PAIRS_MAX: usize = 24;
/// Number of samples below which a profile is too small for conclusions.
const FEW: u64 = 200;

pub(crate) fn cpu_profiles(run: &Run, rows: &[Row]) -> (Vec<ProfileFinding>, Vec<ProfileDifference>) {
    let of_row = |profile: &CpuProfile| {
        let row = rows.iter().find(|row| row.point == profile.point && row.n > 0)?;
        Some((profile.point, finding(profile, row)))
    };
    let found = run.cpu_profiles.iter().filter_map(of_row).collect::<Vec<_>>();
    let differences = pairs(&run.plan, &found).into_iter().take(PAIRS_MAX).map(|(a, b)| difference(a, b)).collect();
    (found.into_iter().map(|(_, finding)| finding).collect(), differences)
}

fn finding(profile: &CpuProfile, row: &Row) -> ProfileFinding {
    let rate_ratio = profile.rate_per_s.zip(row.mean("throughput")).map(|(profiled, measured)| profiled / measured);
    let rate_ratio = rate_ratio.filter(|ratio| ratio.is_finite());
    let function = |function: &SampledFunction| SampledFunction { name: visible(&function.name).into(), ..*function };
    let functions = profile.functions.iter().map(function).collect();
    // A store may contain anything, including frames without a function.
    let is_known = |frame: &u32| (*frame as usize) < profile.functions.len();
    let stacks = profile.stacks.iter().filter(|stack| stack.frames.iter().all(is_known)).cloned().collect();
    let problem = profile.problem.as_ref().map(|problem| visible(problem).into_owned());
    let (label, event) = (row.label.clone(), visible(&profile.event).into_owned());
    let sentence = sentence(profile, &event, problem.as_deref(), rate_ratio);
    let &CpuProfile { samples, other_samples, .. } = profile;
    ProfileFinding { label, problem, event, samples, other_samples, rate_ratio, functions, stacks, sentence }
}

fn sentence(profile: &CpuProfile, event: &str, problem: Option<&str>, rate_ratio: Option<f64>) -> String {
    if profile.samples == 0 {
        return format!("no profile: {}", problem.unwrap_or("no sample was taken"));
    }
    let influence = rate_ratio.map_or("its influence on the throughput is not known".to_owned(), |ratio| {
        let (by, side) = (number::percent((ratio - 1.0).abs()), if ratio >= 1.0 { "above" } else { "below" });
        format!("throughput while profiled {by} {side} the mean of the measured trials")
    });
    let few = if profile.samples < FEW { "; too few samples to draw conclusions" } else { "" };
    let problem = problem.map_or(String::new(), |problem| format!("; {problem}"));
    let (samples, frequency) = (number::count(profile.samples, "sample"), profile.frequency_hz);
    let time = number::quantity(profile.duration_ns as f64, "ns");
    format!("{samples} ({event}, {frequency} Hz) in {time}; {influence}{few}{problem}")
}

/// Pairs the baseline of a gate with each candidate. Without a gate, pairs the profiles if there are exactly two.
fn pairs<'a>(plan: &Plan, found: &'a [(usize, ProfileFinding)]) -> Vec<(&'a ProfileFinding, &'a ProfileFinding)> {
    let sampled = found.iter().filter(|(_, finding)| finding.samples > 0).collect::<Vec<_>>();
    let Some(gate) = &plan.gate else {
        return if let [(_, a), (_, b)] = sampled.as_slice() { vec![(a, b)] } else { Vec::new() };
    };
    let find = |wanted: usize| sampled.iter().find(|(point, _)| *point == wanted).map(|(_, finding)| finding);
    let (null, pairs) = gate::pairs(plan, gate);
    let mut points = pairs.iter().chain(&null).map(|pair| pair.points).collect::<Vec<_>>();
    points.sort_unstable();
    points.into_iter().filter_map(|[base, candidate]| Some((find(base)?, find(candidate)?))).collect()
}

fn difference(a: &ProfileFinding, b: &ProfileFinding) -> ProfileDifference {
    let mut samples = BTreeMap::<(&str, bool), [f64; 2]>::new();
    for (side, profile) in [a, b].into_iter().enumerate() {
        for function in &profile.functions {
            samples.entry((&function.name, function.kernel)).or_default()[side] += function.self_samples as f64;
        }
    }
    let by = |function: &ShareDifference| (function.a - function.b).abs();
    let (n_a, n_b) = (a.samples as f64, b.samples as f64);
    let shown = |((name, kernel), [of_a, of_b]): ((&str, bool), [f64; 2])| {
        let pooled = (of_a + of_b) / (n_a + n_b);
        let error = (pooled * (1.0 - pooled) * (1.0 / n_a + 1.0 / n_b)).sqrt();
        let found = ShareDifference { name: name.to_owned(), kernel, a: of_a / n_a, b: of_b / n_b };
        Some(found).filter(|found| by(found) >= DIFFERENCE_MIN && by(found) > STANDARD_ERRORS * error)
    };
    let mut functions = samples.into_iter().filter_map(shown).collect::<Vec<_>>();
    functions.sort_by(|one, other| by(other).total_cmp(&by(one)).then_with(|| one.name.cmp(&other.name)));
    functions.truncate(DIFFERENCES_MAX);
    let most = functions.first().map(|most| {
        let (of_b, of_a) = (number::percent(most.b), number::percent(most.a));
        format!("{} differs most, {of_b} of the CPU time against {of_a}", most.name)
    });
    let none = || "no function's share of the CPU time differs by more than the samples scatter".to_owned();
    let sentence = format!("{} against {}: {}", b.label, a.label, most.unwrap_or_else(none));
    ProfileDifference { a: a.label.clone(), b: b.label.clone(), functions, sentence }
}

#[cfg(test)]
mod tests {
    use study::cpu_profile::SampledStack;

    use super::*;
    use crate::example;

    fn profile(point: usize, shares: &[(&str, u64)]) -> CpuProfile {
        let function = |(name, self_samples): &(&str, u64)| SampledFunction {
            name: (*name).to_owned(),
            kernel: name.starts_with("sys"),
            self_samples: *self_samples,
        };
        CpuProfile {
            point,
            event: "cpu-clock".to_owned(),
            frequency_hz: 997,
            duration_ns: 2_000_000_000,
            rate_per_s: Some(90_000.0),
            samples: shares.iter().map(|(_, samples)| samples).sum(),
            functions: shares.iter().map(function).collect(),
            stacks: vec![SampledStack { frames: vec![0], samples: 1 }, SampledStack { frames: vec![99], samples: 1 }],
            ..CpuProfile::default()
        }
    }

    #[test]
    fn compares_two_profiles() {
        let (mut run, records) = example::volley();
        run.cpu_profiles = vec![
            profile(0, &[("sys_read", 600), ("parse\u{1b}", 300), ("tiny", 4)]),
            profile(1, &[("sys_read", 610), ("parse\u{1b}", 90), ("hash", 200)]),
        ];
        let findings = crate::analyze(&run, &records);
        let [first, _] = findings.cpu_profiles.as_slice() else { panic!("{:?}", findings.cpu_profiles) };
        assert_eq!(first.functions[1].name, "parse\\x1b");
        assert_eq!(first.stacks.len(), 1, "a frame that leads nowhere is left out with its stack");
        assert!(
            first.sentence.starts_with("904 samples (cpu-clock, 997 Hz) in 2.00 s; throughput while profiled "),
            "{}",
            first.sentence
        );
        let [difference] = findings.profile_differences.as_slice() else { panic!() };
        let names = difference.functions.iter().map(|function| function.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names, ["parse\\x1b", "hash"], "neither similar nor rare functions");
        let (low, high) = (difference.functions[0].b, difference.functions[0].a);
        assert!((low - 0.1).abs() < 1e-9 && (high - 300.0 / 904.0).abs() < 1e-9);
    }

    #[test]
    fn reports_why_a_profile_is_missing() {
        let (mut run, records) = example::volley();
        let none =
            |point| CpuProfile { point, problem: Some("`perf` is not installed".to_owned()), ..CpuProfile::default() };
        run.cpu_profiles = vec![none(0), none(1), none(99)];
        let findings = crate::analyze(&run, &records);
        assert_eq!(findings.cpu_profiles.len(), 2);
        assert_eq!(findings.cpu_profiles[0].sentence, "no profile: `perf` is not installed");
        assert!(findings.profile_differences.is_empty());
    }
}
