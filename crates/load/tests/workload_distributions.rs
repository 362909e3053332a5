//! Goodness-of-fit tests of all random generators of a workload, with a million draws each from the operation stream.
//! The draws must fit their distribution, and must not fit one whose parameter is 1 % off.

use load::operation_stream::Stream;
use stats::goodness_of_fit::{Fit, chi_square};
use stats::{Distribution, Sizes, Zipf};
use study::Workload;
use study::workload::{Popularity, SizeLaw, Tail, ValueLength, preset};

const DRAWS: usize = 1_000_000;
/// Significance level: a correct generator fails for one seed in a thousand. The fixed seeds pass.
const LEVEL: f64 = 1e-3;

/// Tests the fit with about 25 cells, because more would hide a small shift that affects every cell.
fn test(counts: &[u64], cdf: impl Fn(u64) -> f64) -> Fit {
    let (mut cells, mut shares) = (Vec::new(), Vec::new());
    let (mut open, mut below) = (0, 0.0);
    for (value, count) in counts.iter().enumerate() {
        open += count;
        let up_to = if value + 1 == counts.len() { 1.0 } else { cdf(value as u64) };
        if up_to - below >= 0.04 || value + 1 == counts.len() {
            cells.push(open);
            shares.push(up_to - below);
            (open, below) = (0, up_to);
        }
    }
    chi_square(&cells, &shares).unwrap()
}

fn zipf(n: u64, exponent: f64) -> impl Fn(u64) -> f64 {
    let mut sum = 0.0;
    let sums = (1..=n).map(|rank| {
        sum += (rank as f64).powf(-exponent);
        sum
    });
    let sums = sums.collect::<Vec<_>>();
    move |ranks| sums[ranks as usize - 1] / sums[n as usize - 1]
}

fn counted(values: impl Iterator<Item = u64>, last: u64) -> Vec<u64> {
    let mut counts = vec![0; last as usize + 1];
    values.for_each(|value| counts[value.min(last) as usize] += 1);
    counts
}

fn workload(change: impl FnOnce(&mut Workload)) -> Workload {
    let mut workload = preset("ycsb-c").unwrap();
    change(&mut workload);
    workload
}

fn drawn(workload: &Workload, seed: u64) -> impl Iterator<Item = load::operation_stream::Operation> {
    let mut stream = Stream::new(workload, seed, 0, 1).unwrap();
    (0..DRAWS).map(move |_| stream.next_operation())
}

fn etc(off: f64) -> SizeLaw {
    let SizeLaw::Empirical { mut values, tail: Some(Tail { size, .. }) } = preset("etc-2012").unwrap().values.size
    else {
        panic!("a head with a tail")
    };
    values.iter_mut().for_each(|(_, _, weight)| *weight *= off);
    let weight = 1.0 - values.iter().map(|(_, _, weight)| weight).sum::<f64>();
    SizeLaw::Empirical { values, tail: Some(Tail { size, weight }) }
}

/// A shape 1 % off is lost in the noise of a million draws, so the wrong distribution has a different scale.
#[test]
fn lengths_follow_their_distribution() {
    let pieces = |last: f64| SizeLaw::Empirical { values: vec![(3.0, 3.0, 0.5), (10.0, last, 0.5)], tail: None };
    let laws: [(&str, &dyn Fn(f64) -> SizeLaw); 11] = [
        ("uniform", &|off| Distribution::Uniform { low: 100.0, high: 900.0 * off }.into()),
        ("exponential", &|off| Distribution::Exponential { mean: 200.0 * off }.into()),
        ("lognormal, median", &|off| Distribution::Lognormal { median: 300.0 * off, sigma: 1.2 }.into()),
        ("lognormal, sigma", &|off| Distribution::Lognormal { median: 300.0, sigma: 1.2 * off }.into()),
        ("bimodal", &|off| Distribution::Bimodal { low: 5.0, high: 900.0, high_share: 0.4 * off }.into()),
        ("gamma, scale", &|off| Distribution::Gamma { shape: 4.0, scale: 7.0 * off }.into()),
        ("gamma, shape", &|off| Distribution::Gamma { shape: 4.0 * off, scale: 7.0 }.into()),
        ("keys of ETC", &|off| Distribution::Gev { location: 30.7984, scale: 8.20449 * off, shape: 0.078688 }.into()),
        ("pareto", &|off| Distribution::Pareto { location: 15.0, scale: 214.476 * off, shape: 0.348238 }.into()),
        ("empirical", &|off| pieces(500.0 * off)),
        ("values of ETC", &etc),
    ];
    for (name, law) in laws {
        let sized = workload(|workload| {
            workload.values.size = law(1.0);
            workload.values.length = ValueLength::PerSet;
        });
        let counts = counted(drawn(&sized, 7).map(|operation| u64::from(operation.value_bytes)), 20_000);
        let sizes = sized.value_sizes().unwrap();
        let right = test(&counts, |size| sizes.cdf(size));
        assert!(right.p > LEVEL, "{name}: {right:?}");
        for off in [0.99, 1.01] {
            let other = Sizes::new(law(off).law().unwrap(), 0, sized.values.max_bytes);
            let wrong = test(&counts, |size| other.cdf(size));
            assert!(wrong.p < LEVEL, "{name} times {off}: {wrong:?}");
        }
    }
    let constant = workload(|workload| workload.values.size = Distribution::Constant { value: 321.0 }.into());
    assert!(drawn(&constant, 7).all(|operation| operation.value_bytes == 321));
}

#[test]
fn popularity_follows_its_distribution() {
    let n = 200_000;
    let uniform = |ranks: u64, n: f64| (ranks as f64 / n).min(1.0);
    let hot = |ranks: u64, share: f64| share * uniform(ranks, 2_000.0) + (1.0 - share) * uniform(ranks, n as f64);
    type Law<'a> = Box<dyn Fn(u64) -> f64 + 'a>;
    let laws: [(Popularity, Law, Law); 4] = [
        (
            Popularity::Uniform,
            Box::new(|ranks| uniform(ranks, n as f64)),
            Box::new(|ranks| uniform(ranks, n as f64 * 0.99)),
        ),
        (Popularity::Zipf { exponent: 0.99 }, Box::new(zipf(n, 0.99)), Box::new(zipf(n, 0.99 * 1.01))),
        (Popularity::Zipf { exponent: 1.21 }, Box::new(zipf(n, 1.21)), Box::new(zipf(n, 1.21 * 0.99))),
        (
            Popularity::HotSet { keys: 2_000, share: 0.6 },
            Box::new(|ranks| hot(ranks, 0.6)),
            Box::new(|ranks| hot(ranks, 0.606)),
        ),
    ];
    for (popularity, law, other) in laws {
        let popular = workload(|workload| (workload.keys.count, workload.keys.popularity) = (n, popularity));
        let mut stream = Stream::new(&popular, 3, 0, 1).unwrap();
        let ranks = (0..DRAWS).map(|_| {
            let key = stream.next_operation().key;
            stream.rank_of(key).unwrap()
        });
        let counts = counted(ranks, n - 1);
        let (right, wrong) = (test(&counts, |rank| law(rank + 1)), test(&counts, |rank| other(rank + 1)));
        assert!(right.p > LEVEL, "{popularity:?}: {right:?}");
        assert!(wrong.p < LEVEL, "{popularity:?}: {wrong:?}");
        if let Popularity::Zipf { exponent } = popularity {
            let sum = |ranks: u64| (1..=ranks).rev().map(|rank| (rank as f64).powf(-exponent)).sum::<f64>();
            let exact = sum(2_000) / sum(n);
            assert!((Zipf::new(n, exponent).head_mass(2_000) / exact - 1.0).abs() < 1e-12);
            let head = counts[..2_000].iter().sum::<u64>() as f64 / DRAWS as f64;
            assert!((head - exact).abs() < 4.0 * (exact * (1.0 - exact) / DRAWS as f64).sqrt(), "{head} of {exact}");
        }
    }
}

/// The age of a key is the number of keys created after it.
#[test]
fn ages_follow_their_distribution() {
    const EARLIER: u64 = 50_000;
    type Law = Box<dyn Fn(u64) -> f64>;
    let recency = |most: u64| move |ages: u64| (ages.min(most) as f64 + 1.0).ln() / (most as f64 + 1.0).ln();
    let off = (EARLIER as f64).powf(1.01) as u64;
    let laws: [(Popularity, Law, Law); 2] = [
        (Popularity::Recency, Box::new(recency(EARLIER)), Box::new(recency(off))),
        (Popularity::Zipf { exponent: 0.99 }, Box::new(zipf(EARLIER, 0.99)), Box::new(zipf(EARLIER, 0.99 * 1.01))),
    ];
    for (popularity, law, other) in laws {
        // No operation creates a key, so every draw has the same range.
        let aged = workload(|workload| {
            workload.keys.count = EARLIER;
            workload.keys.reuse = Some(1.0);
            workload.keys.popularity = popularity;
        });
        let ages = drawn(&aged, 5).map(|operation| EARLIER - 1 - operation.key);
        let counts = counted(ages, EARLIER - 1);
        let (right, wrong) = (test(&counts, |age| law(age + 1)), test(&counts, |age| other(age + 1)));
        assert!(right.p > LEVEL, "{popularity:?}: {right:?}");
        assert!(wrong.p < LEVEL, "{popularity:?}: {wrong:?}");
    }
}

#[test]
fn head_of_etc_is_fixed() {
    let head = study::workload::ETC_VALUES_HEAD.iter().sum::<f64>();
    assert_eq!(format!("{head:.5}"), "0.44155");
    let sizes = preset("etc-2012").unwrap().value_sizes().unwrap();
    assert!((sizes.cdf(14) - 0.44155).abs() < 1e-12, "{}", sizes.cdf(14));
    let workload = preset("etc-2012").unwrap();
    let short = drawn(&workload, 2).map(|operation| operation.key).collect::<std::collections::BTreeSet<_>>();
    let stream = Stream::new(&workload, 2, 0, 1).unwrap();
    // Each key counts once, because popular keys would otherwise dominate.
    let found = short.iter().filter(|key| stream.value_bytes(**key).unwrap() < 15).count() as f64 / short.len() as f64;
    let allowed = 4.0 * (0.44155 * 0.55845 / short.len() as f64).sqrt();
    assert!((found - 0.44155).abs() < allowed, "{found} of {}", short.len());
}
