//! Throughput over a numeric factor, fitted by the Universal Scalability Law.

use std::collections::BTreeMap;

use stats::usl::{Fit, Intervals, Point};
use study::plan::Level;
use study::record::{IdlePolicy, Run};

use crate::findings::{CurvePoint, Factor, Row, Scalability, ScalabilityPoint, UslFit};
use crate::label::{label, varied};
use crate::value;

/// Names of factors that count resources. The law does not apply to other factors, such as sizes and rates.
const RESOURCES: [&str; 5] = ["cores", "cpus", "threads", "workers", "clients"];
/// Minimum number of levels of a factor for a fit.
const FEWEST: usize = 4;

pub(crate) fn scalability(run: &Run, factors: &[Factor], rows: &[Row]) -> Vec<Scalability> {
    let resources = factors.iter().filter(|factor| RESOURCES.contains(&factor.name.as_str()));
    let swept = resources.filter(|factor| factor.numeric && factor.levels.len() >= FEWEST);
    let all = swept.flat_map(|factor| over(&factor.name, rows).into_iter().map(move |series| (factor, series)));
    let all = all.collect::<Vec<_>>();
    let among = all.len();
    all.into_iter().map(|(factor, series)| of_series(run, &factor.name, series, among)).collect()
}

fn over<'a>(factor: &str, rows: &'a [Row]) -> Vec<Series<'a>> {
    let measured = |row: &'a Row| {
        let (n, idle) = (row.factors.get(factor).and_then(Level::as_f64)?, row.idle?);
        let mut levels = row.factors.clone();
        levels.remove(factor);
        let throughputs = row.trials.iter().filter_map(|trial| trial.values.get("throughput")).collect();
        Some(((levels, idle), (Point { n, throughputs }, row)))
    };
    crate::group_by_key::grouped(rows.iter().filter_map(measured))
}

/// Levels of the other factors and idle policy, with the points that have them.
type Series<'a> = ((BTreeMap<String, Level>, IdlePolicy), Vec<Measured<'a>>);
type Measured<'a> = (Point, &'a Row);

fn marks(row: &Row) -> Option<String> {
    let marks = row.marks.iter().map(|mark| mark.text()).collect::<Vec<_>>();
    (!marks.is_empty()).then(|| marks.join(", "))
}

fn of_series(run: &Run, factor: &str, ((series, _), mut measured): Series<'_>, among: usize) -> Scalability {
    let others = varied(&run.plan).into_iter().filter(|name| name != factor).collect::<Vec<_>>();
    measured.retain(|(point, _)| !point.throughputs.is_empty());
    measured.sort_by(|(a, _), (b, _)| a.n.total_cmp(&b.n));
    let label = label(&others, &series);
    let start = if others.is_empty() { format!("Over {factor}") } else { label.clone() };
    let fitted = measured.iter().filter(|(_, row)| row.marks.is_empty());
    let points = fitted.map(|(point, _)| point.clone()).collect::<Vec<_>>();
    let found = stats::usl::fit(&points, value::level(&run.plan.trials), run.plan.seed);
    let resource = if factor == "cpus" { "CPUs" } else { factor };
    let mut sentence = found.as_ref().map_or_else(String::clone, |fit| fit.sentence(resource, among));
    sentence += &left_out(factor, &measured);
    sentence += &fewer_processors(factor, &measured);
    // Without repetition there is no interval, and a fit would look too certain.
    let found = found.ok().filter(|fit| fit.intervals.is_some());
    let point = |(point, row): &Measured<'_>| {
        let rate_per_s = stats::interval::average(&point.throughputs).filter(|mean| mean.is_finite())?;
        let (n, trials, left_out) = (point.n, point.throughputs.len(), marks(row));
        let law = found.as_ref().map(|fit| fit.law);
        let fitted_per_s = law.map(|law| law.throughput(n));
        let efficiency = law.map(|law| rate_per_s / (n * law.lambda)).filter(|value| value.is_finite());
        Some(ScalabilityPoint { n, rate_per_s, trials, fitted_per_s, efficiency, left_out })
    };
    let (factor, sentence) = (factor.to_owned(), format!("{start}: {sentence}."));
    let (fit, curve) = (found.as_ref().and_then(numbers), found.as_ref().map(|fit| curve(fit, &points)));
    let points = measured.iter().filter_map(point).collect();
    Scalability { factor, series, label, points, fit, curve: curve.unwrap_or_default(), sentence }
}

fn curve(fit: &Fit, points: &[Point]) -> Vec<CurvePoint> {
    const STEPS: i32 = 40;
    let [low, high] = [points.first(), points.last()].map(|point| point.map_or(0.0, |point| point.n));
    let place = |step: i32| {
        let n = low * (high / low).powf(f64::from(step) / f64::from(STEPS));
        let band = fit.band(n)?;
        let all = [n, band.point, band.low, band.high].iter().all(|value| value.is_finite());
        all.then_some(CurvePoint { n, rate_per_s: band.point, low: band.low, high: band.high })
    };
    (0..=STEPS).filter_map(place).collect()
}

fn left_out(factor: &str, measured: &[Measured<'_>]) -> String {
    let mut reasons = BTreeMap::<String, Vec<f64>>::new();
    for (reason, n) in measured.iter().filter_map(|(point, row)| Some((marks(row)?, point.n))) {
        reasons.entry(reason).or_default().push(n);
    }
    let reasons = reasons.into_iter().map(|(reason, ns)| format!("{factor} {} ({reason})", numbered(&ns)));
    let reasons = reasons.collect::<Vec<_>>();
    if reasons.is_empty() { String::new() } else { format!("; left out: {}", reasons.join(", ")) }
}

fn fewer_processors(factor: &str, measured: &[Measured<'_>]) -> String {
    let fewer = measured.iter().filter(|(_, row)| row.cpus_wanted.is_some());
    let Some(most) = fewer.clone().map(|(_, row)| row.cpus).max() else { return String::new() };
    let ns = fewer.map(|(point, _)| point.n).collect::<Vec<_>>();
    let cpus = crate::number::count(u64::from(most), "CPU");
    format!("; the server has only {cpus} here at {factor} {}, so it cannot scale", numbered(&ns))
}

fn numbered(ns: &[f64]) -> String {
    ns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn numbers(fit: &Fit) -> Option<UslFit> {
    let Intervals { lambda: rate_per_s, sigma: contention, kappa: coherency, peak } = fit.intervals?;
    let finite = |value: f64| value.is_finite().then_some(value);
    let [peak, peak_low, peak_high] = [fit.law.peak(), peak.low, peak.high].map(finite);
    let r_squared = finite(fit.r_squared)?;
    Some(UslFit { rate_per_s, contention, coherency, peak, peak_low, peak_high, r_squared })
}

#[cfg(test)]
mod tests {
    use crate::{analyze, example};

    #[test]
    fn finds_the_fall_beyond_the_peak() {
        let (run, records) = example::sweep();
        let findings = analyze(&run, &records);
        let [c, go] = findings.scalability.as_slice() else { panic!("one for each server") };
        // Simulated with contention 0.05 and coherency 0.003: the peak is at sqrt(0.95 / 0.003) = 17.8.
        let fit = c.fit.unwrap();
        assert!((fit.peak.unwrap() - 17.8).abs() < 1.5, "{fit:?}");
        assert!(fit.contention.low < 0.05 && 0.05 < fit.contention.high, "{fit:?}");
        assert!(c.sentence.starts_with("c-epoll: throughput falls beyond ~1"), "{}", c.sentence);
        // Simulated with contention 0.12 and coherency 0.0004: the peak, sqrt(0.88 / 0.0004) = 46.9, is above 40.
        assert!(go.sentence.starts_with("go: throughput still rises at 40 cores"), "{}", go.sentence);
        assert!(findings.answer.iter().any(|said| said.text.contains(&c.sentence)));
    }

    #[test]
    fn points_have_efficiency_and_the_curve_a_band() {
        let (run, records) = example::sweep();
        let found = &analyze(&run, &records).scalability[0];
        let fit = found.fit.unwrap();
        assert_eq!(
            found.points.iter().map(|point| point.n).collect::<Vec<_>>(),
            [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 40.0]
        );
        for point in &found.points {
            let expected = point.rate_per_s / (point.n * fit.rate_per_s.point);
            assert!((point.efficiency.unwrap() - expected).abs() < 1e-12, "{point:?}");
            assert!((point.fitted_per_s.unwrap() / point.rate_per_s - 1.0).abs() < 0.05, "{point:?}");
            assert_eq!((point.trials, &point.left_out), (8, &None));
        }
        assert_eq!((found.curve[0].n, found.curve[40].n.round()), (1.0, 40.0));
        assert!(found.curve.iter().all(|at| at.low <= at.rate_per_s && at.rate_per_s <= at.high), "{:?}", found.curve);
    }

    #[test]
    fn marked_points_are_excluded_from_the_fit() {
        let (run, mut records) = example::sweep();
        let bound = |record: &study::Record| record.factors["cores"].as_f64() >= Some(24.0);
        for record in records.iter_mut().filter(|record| record.point < 8 && bound(record)) {
            record.verdict.as_mut().unwrap().limited_by = study::record::Limit::Generator;
        }
        let findings = analyze(&run, &records);
        let found = &findings.scalability[0];
        assert!(found.sentence.ends_with("; left out: cores 24, 32, 40 (generator-bound)."), "{}", found.sentence);
        assert_eq!(found.curve.last().unwrap().n.round(), 16.0);
        assert_eq!(found.points.iter().filter(|point| point.left_out.is_some()).count(), 3);
        assert!(found.points.iter().all(|point| point.efficiency.is_some()));
        for record in records.iter_mut().filter(|record| record.point < 8) {
            record.verdict.as_mut().unwrap().limited_by = study::record::Limit::Generator;
        }
        let findings = analyze(&run, &records);
        let expected =
            "c-epoll: not enough points to fit: 0 of 4; left out: cores 1, 2, 4, 8, 16, 24, 32, 40 (generator-bound).";
        assert_eq!(findings.scalability[0].sentence, expected);
        assert!(findings.answer.iter().any(|said| said.text == expected), "{:#?}", findings.answer);
    }

    #[test]
    fn reports_a_machine_with_too_few_cpus() {
        let (mut run, records) = example::sweep();
        for point in run.plan.points.iter_mut().filter(|point| point.subject.cpus > 8) {
            (point.subject.cpus, point.subject.cpus_wanted) = (8, Some(point.subject.cpus));
        }
        let sentence = &analyze(&run, &records).scalability[0].sentence;
        let expected = "; the server has only 8 CPUs here at cores 16, 24, 32, 40, so it cannot scale.";
        assert!(sentence.ends_with(expected), "{sentence}");
    }

    #[test]
    fn reports_too_few_points() {
        let (run, mut records) = example::sweep();
        records.retain(|record| record.point < 3);
        let found = &analyze(&run, &records).scalability;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].sentence, "c-epoll: not enough points to fit: 3 of 4.");
    }

    #[test]
    fn two_levels_are_not_a_sweep() {
        let (run, records) = example::volley();
        assert!(analyze(&run, &records).scalability.is_empty());
    }
}
