//! Throughput over a numeric factor, fitted by the Universal Scalability Law.

use std::collections::BTreeMap;

use stats::usl::{Fit, Intervals, Point};
use study::plan::Level;
use study::record::{IdlePolicy, Run};

use crate::findings::{Factor, Row, Scalability, UslFit};
use crate::row::label;
use crate::value;

/// Factors of which there can be more or fewer at work; the law says nothing about others, such as sizes and rates.
const RESOURCES: [&str; 5] = ["cores", "cpus", "threads", "workers", "clients"];
/// Levels of a factor that are worth a fit.
const FEWEST: usize = 4;

/// A fit, or why there is none, for each series over each resource with levels enough in the plan.
pub(crate) fn scalability(run: &Run, factors: &[Factor], rows: &[Row]) -> Vec<Scalability> {
    let resources = factors.iter().filter(|factor| RESOURCES.contains(&factor.name.as_str()));
    let swept = resources.filter(|factor| factor.numeric && factor.levels.len() >= FEWEST);
    swept.flat_map(|factor| over(run, &factor.name, rows)).collect()
}

fn over(run: &Run, factor: &str, rows: &[Row]) -> Vec<Scalability> {
    let others = run.plan.factors.iter().filter(|name| *name != factor).cloned().collect::<Vec<_>>();
    let mut series = Vec::<((BTreeMap<String, Level>, IdlePolicy), Vec<Point>)>::new();
    for row in rows {
        let (Some(n), Some(idle)) = (row.factors.get(factor).and_then(Level::as_f64), row.idle) else { continue };
        let mut levels = row.factors.clone();
        levels.remove(factor);
        let key = (levels, idle);
        if !series.iter().any(|(known, _)| *known == key) {
            series.push((key.clone(), Vec::new()));
        }
        // A marked row is not about the subject; its series is fitted without it.
        let throughputs = row.trials.iter().filter(|_| !row.is_marked());
        let throughputs = throughputs.filter_map(|trial| trial.values.get("throughput").copied()).collect::<Vec<_>>();
        if let Some((_, points)) =
            series.iter_mut().find(|(known, _)| *known == key).filter(|_| !throughputs.is_empty())
        {
            points.push(Point { n, throughputs });
        }
    }
    let fitted = series.into_iter().map(|((levels, _), points)| {
        let label = label(&others, &levels);
        let (fit, sentence) = match stats::usl::fit(&points, value::level(&run.plan.trials), run.plan.seed) {
            Ok(fit) => (numbers(&fit), fit.sentence(plural(factor))),
            Err(why) => (None, why.to_string()),
        };
        Scalability { factor: factor.to_owned(), series: levels, sentence: format!("{label}: {sentence}."), label, fit }
    });
    fitted.collect()
}

/// `None` where there is no interval, for lack of repetition.
fn numbers(fit: &Fit) -> Option<UslFit> {
    let Intervals { lambda, sigma, kappa, peak } = fit.intervals?;
    let finite = |value: f64| value.is_finite().then_some(value);
    Some(UslFit {
        rate_per_s: lambda.into(),
        contention: sigma.into(),
        coherency: kappa.into(),
        peak: finite(fit.law.peak()),
        peak_low: finite(peak.low),
        peak_high: finite(peak.high),
        r_squared: finite(fit.r_squared)?,
    })
}

fn plural(factor: &str) -> &str {
    if factor == "cpus" { "processors" } else { factor }
}

#[cfg(test)]
mod tests {
    use crate::{analyze, example};

    #[test]
    fn a_fall_beyond_the_peak_is_found() {
        let (run, records) = example::sweep();
        let findings = analyze(&run, &records);
        let [c, go] = findings.scalability.as_slice() else { panic!("one for each server") };
        // Made with contention 0.05, coherency 0.003: the peak is at sqrt(0.95 / 0.003), 17.8.
        let fit = c.fit.unwrap();
        assert!((fit.peak.unwrap() - 17.8).abs() < 1.5, "{fit:?}");
        assert!(fit.contention.low < 0.05 && 0.05 < fit.contention.high, "{fit:?}");
        assert!(c.sentence.starts_with("c-epoll, clients 80: throughput falls beyond ~1"), "{}", c.sentence);
        // Contention 0.12, coherency 0.0004: sqrt(0.88 / 0.0004) is 46.9, beyond the 40 that were measured.
        assert!(go.sentence.starts_with("go, clients 80: throughput still rises at 40 cores"), "{}", go.sentence);
        assert!(findings.answer.contains(&c.sentence));
    }

    #[test]
    fn too_few_points_are_said() {
        let (run, mut records) = example::sweep();
        records.retain(|record| record.point < 3);
        let found = &analyze(&run, &records).scalability;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].sentence, "c-epoll, clients 80: not enough points to fit: 3 of 4.");
    }

    #[test]
    fn two_levels_are_no_sweep() {
        let (run, records) = example::volley();
        assert!(analyze(&run, &records).scalability.is_empty());
    }
}
