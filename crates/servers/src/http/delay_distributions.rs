//! Distributions of delays in queries, and the random numbers behind them.

use std::collections::HashMap;

use net::Nanos;
use stats::{Distribution, Rng};

/// Maximum mean, median or value in a query, in ns.
const TIME_NS_MAX: f64 = 60e9;
/// Maximum number of seeded random sequences; a further seed restarts all of them.
const SEEDS_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    pub(super) delay_ns: Distribution,
    /// The seed of the sequence; `None` selects the server's own sequence.
    pub(super) seed: Option<u64>,
}

const FORMS: &str = "/delay takes `mean=TIME` with `dist=constant` or `dist=exponential`, `mean=TIME` or `median=TIME` \
                     and `sigma=NUMBER` with `dist=lognormal`, `low=TIME`, `high=TIME` and `share=FRACTION` with \
                     `dist=bimodal`, and `seed=NUMBER`; TIME is like `1ms`, up to 60s";

const NAMES: [&str; 6] = ["mean", "median", "sigma", "low", "high", "share"];

/// Parses the query of `/delay`, such as `mean=1ms&dist=exponential`. The error lists the valid forms.
pub(super) fn law(query: &str) -> Result<Law, &'static str> {
    let (mut dist, mut seed) = (None, None);
    let mut values = [None; NAMES.len()];
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or(FORMS)?;
        match key {
            "dist" if dist.is_none() => dist = Some(value),
            "seed" if seed.is_none() => seed = Some(value.parse::<u64>().map_err(|_| FORMS)?),
            _ => {
                let index = NAMES.iter().position(|name| *name == key).ok_or(FORMS)?;
                let value = if matches!(key, "sigma" | "share") { value.parse().ok() } else { time_ns(value) };
                if values[index].replace(value.ok_or(FORMS)?).is_some() {
                    return Err(FORMS);
                }
            }
        }
    }
    let [mean, median, sigma, low, high, share] = values;
    let delay_ns = match (dist.unwrap_or("constant"), mean, median, sigma, low, high, share) {
        ("constant", Some(value), None, None, None, None, None) => Distribution::Constant { value },
        ("exponential", Some(mean), None, None, None, None, None) => Distribution::Exponential { mean },
        ("lognormal", None, Some(median), Some(sigma), None, None, None) => Distribution::Lognormal { median, sigma },
        ("lognormal", Some(mean), None, Some(sigma), None, None, None) => {
            Distribution::Lognormal { median: mean * (-sigma * sigma / 2.0_f64).exp(), sigma }
        }
        ("bimodal", None, None, None, Some(low), Some(high), Some(high_share)) => {
            Distribution::Bimodal { low, high, high_share }
        }
        _ => return Err(FORMS),
    };
    // A sigma of 10 would make the mean 5e21 times the median.
    let fine = delay_ns.check().is_ok() && sigma.is_none_or(|sigma| sigma <= 5.0);
    if fine { Ok(Law { delay_ns, seed }) } else { Err(FORMS) }
}

/// Parses a time such as `250us`, `1.5ms`, `2s` or `0` into ns; `None` if it is invalid.
fn time_ns(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "" if number == 0.0 => 1.0,
        _ => return None,
    };
    let ns = number * unit_ns;
    (ns <= TIME_NS_MAX).then_some(ns)
}

pub(super) struct Delays {
    thread: u64,
    own: Rng,
    seeded: HashMap<u64, Rng>,
}

impl Delays {
    pub(super) fn new(seed: u64, thread: u32) -> Self {
        Self { thread: thread.into(), own: Rng::stream(seed, thread.into()), seeded: HashMap::new() }
    }

    pub(super) fn draw(&mut self, law: &Law) -> Nanos {
        let rng = match law.seed {
            None => &mut self.own,
            Some(seed) => {
                if self.seeded.len() >= SEEDS_MAX && !self.seeded.contains_key(&seed) {
                    self.seeded.clear();
                }
                let thread = self.thread;
                self.seeded.entry(seed).or_insert_with(|| Rng::stream(seed, thread))
            }
        };
        law.delay_ns.sample(rng) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: Result<Distribution, ()>) {
        let read = law(query);
        assert_eq!(read.map(|law| law.delay_ns).map_err(|_| ()), expected, "{query}");
    }

    #[test]
    fn laws_are_read() {
        check("mean=1ms", Ok(Distribution::Constant { value: 1e6 }));
        check("mean=0", Ok(Distribution::Constant { value: 0.0 }));
        check("mean=1.5ms&dist=exponential", Ok(Distribution::Exponential { mean: 1.5e6 }));
        check("dist=exponential&mean=60s", Ok(Distribution::Exponential { mean: 60e9 }));
        check("dist=lognormal&median=250us&sigma=0.5", Ok(Distribution::Lognormal { median: 250e3, sigma: 0.5 }));
        check(
            "dist=bimodal&low=100us&high=5ms&share=0.02",
            Ok(Distribution::Bimodal { low: 1e5, high: 5e6, high_share: 0.02 }),
        );
        assert_eq!(law("mean=1ms&seed=7").map(|law| law.seed), Ok(Some(7)));
    }

    #[test]
    fn lognormal_keeps_its_mean() {
        let law = law("dist=lognormal&mean=1ms&sigma=0.7").unwrap();
        let Distribution::Lognormal { median, sigma } = law.delay_ns else { panic!("{law:?}") };
        assert!((median * (sigma * sigma / 2.0).exp() / 1e6 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nonsense_is_refused() {
        for query in [
            "",
            "mean",
            "mean=",
            "mean=1",
            "mean=1m",
            "mean=-1ms",
            "mean=61s",
            "mean=1ms&mean=2ms",
            "mean=nans",
            "mean=1e3ms",
            "mean=1ms&dist=cauchy",
            "mean=1ms&sigma=1",
            "mean=1ms&speed=1",
            "mean=1ms&seed=-1",
            "dist=lognormal&mean=1ms",
            "dist=lognormal&mean=1ms&sigma=inf",
            "dist=lognormal&mean=1ms&sigma=50",
            "dist=lognormal&mean=1ms&median=1ms&sigma=1",
            "dist=bimodal&low=2ms&high=1ms&share=0.5",
            "dist=bimodal&low=1ms&high=2ms&share=1.5",
        ] {
            check(query, Err(()));
        }
    }

    #[test]
    fn seeds_repeat_and_their_number_is_bounded() {
        let drawn = |queries: &[&str]| {
            let mut delays = Delays::new(1, 0);
            queries.iter().map(|query| delays.draw(&law(query).unwrap())).collect::<Vec<_>>()
        };
        let (plain, seeded) = ("dist=exponential&mean=1ms", "dist=exponential&mean=1ms&seed=5");
        let alone = drawn(&[seeded, seeded]);
        let mixed = drawn(&[plain, seeded, plain, seeded]);
        assert_eq!(alone, [mixed[1], mixed[3]], "a seed does not depend on other samples");
        let mut delays = Delays::new(1, 0);
        for seed in 0..10_000 {
            delays.draw(&Law { delay_ns: Distribution::Constant { value: 1.0 }, seed: Some(seed) });
            assert!(delays.seeded.len() <= SEEDS_MAX);
        }
    }
}
