use super::*;
use crate::claims::claim::{Command, Source};

fn claim(look: Look) -> Claim {
    Claim {
        id: "test".to_owned(),
        source: Source::Volley,
        section: "A section",
        statement: "A statement.".to_owned(),
        command: Command::None,
        look,
        only_on: None,
    }
}

fn at(levels: &[(&str, &str)]) -> At {
    levels.iter().map(|&(factor, level)| (factor.to_owned(), level.to_owned())).collect()
}

fn ratio(factor: &str, from: &str, to: &str, levels: &[(&str, &str)]) -> Ratio {
    let owned = str::to_owned;
    Ratio { metric: owned("throughput"), factor: owned(factor), from: owned(from), to: owned(to), at: at(levels) }
}

fn within(low: f64, high: f64) -> Range {
    Range { low, high }
}

/// The example of two builds, two sizes of memory and two numbers of clients, with so many blocks of the throughput
/// given. A block changes all its trials alike, by up to 40 %, and each by 1 % for itself.
fn builds(blocks: u32, throughput: impl Fn(&str, &str) -> f64) -> Findings {
    let (run, records) = analysis::example::builds();
    let mut findings = analysis::analyze(&run, &records);
    let mut rng = stats::Rng::new(7);
    for row in &mut findings.rows {
        let trial = row.trials[0].clone();
        let level = |factor: &str| row.factors[factor].to_string();
        let mean = throughput(&level("build"), &level("maxmem"));
        let of_block = |block: u32| {
            let value = mean * (1.0 + 0.2 * f64::from(block % 3)) * (1.0 + 0.01 * rng.normal());
            let values = BTreeMap::from([("throughput".to_owned(), value)]);
            analysis::findings::TrialFinding { block, values, ..trial.clone() }
        };
        row.trials = (0..blocks).map(of_block).collect();
    }
    findings
}

/// The size of a build's effect of so much, where memory has one of 20 %.
fn effects(build: f64) -> Findings {
    builds(16, move |level, maxmem| {
        20_000.0 * if level == "O2" { build } else { 1.0 } * if maxmem == "10MB" { 1.2 } else { 1.0 }
    })
}

fn word(look: Look, findings: &Findings) -> String {
    judge(&claim(look), findings).verdict.word().to_owned()
}

const AGREES: &str = "agrees";
const DISAGREES: &str = "disagrees";
const CANNOT: &str = "cannot be told here";

#[test]
fn a_value_lies_inside_outside_or_across() {
    let findings = effects(2.0);
    let at = at(&[("build", "O0"), ("maxmem", "1MB"), ("clients", "40")]);
    // The mean of blocks at 1, 1.2 and 1.4 times 20,000.
    for (low, high, expected) in [
        (20_000.0, 27_000.0, AGREES),
        (0.0, 20_000.0, DISAGREES),
        (30_000.0, f64::INFINITY, DISAGREES),
        (23_900.0, 24_100.0, CANNOT),
        (24_000.0, f64::INFINITY, CANNOT),
    ] {
        let look = Look::Value { metric: "throughput", at: at.clone(), range: within(low, high) };
        assert_eq!(word(look, &findings), expected, "{low} to {high}");
    }
}

#[test]
fn a_ratio_is_told_within_blocks_that_vary_by_far_more() {
    for (effect, expected) in [(1.05, AGREES), (0.95, DISAGREES), (1.0, CANNOT)] {
        let look = || Look::Ratios {
            ratios: vec![ratio("build", "O0", "O2", &[("maxmem", "1MB")])],
            range: within(1.0, f64::INFINITY),
        };
        let findings = effects(effect);
        let answer = judge(&claim(look()), &findings);
        assert_eq!(answer.verdict.word(), expected, "{answer:?}");
        assert!(answer.found.ends_with("16 blocks"), "{answer:?}");
    }
}

#[test]
fn no_effect_is_a_ratio_inside_the_margin() {
    for (effect, expected) in [(1.001, AGREES), (1.2, DISAGREES), (1.05, CANNOT)] {
        let look = Look::Ratios { ratios: vec![ratio("build", "O0", "O2", &[])], range: within(1.0 / 1.05, 1.05) };
        assert_eq!(word(look, &effects(effect)), expected, "{effect}");
    }
}

#[test]
fn an_order_holds_where_every_step_does_and_breaks_where_one_does_not() {
    for (effect, expected) in [(1.3, AGREES), (0.7, DISAGREES), (1.0, CANNOT)] {
        // Memory adds its 20 % in each.
        let ratios = vec![ratio("maxmem", "1MB", "10MB", &[]), ratio("build", "O0", "O2", &[])];
        let look = Look::Ratios { ratios, range: within(1.0, f64::INFINITY) };
        assert_eq!(word(look, &effects(effect)), expected, "{effect}");
    }
}

#[test]
fn one_ratio_of_many_disagrees_only_where_their_number_allows_it() {
    // p is 0.0093 (crates/stats/src/pairs.rs): below 5 %, above a tenth of it.
    let logs = [0.021, -0.004, 0.035, 0.012, 0.050, -0.011, 0.027, 0.018, 0.009, 0.041, -0.002, 0.030];
    let many = |count| vec![("step".to_owned(), Pairs::from_logs(logs.to_vec())); count];
    let of = |count| together(&many(count), within(0.0, 1.0)).unwrap().verdict;
    assert_eq!(of(1), Verdict::Disagrees);
    let Verdict::CannotTell { why, .. } = of(10) else { panic!("ten ratios") };
    assert_eq!(why, "step: outside by itself, not when 10 ratios are tested");
}

#[test]
fn the_larger_of_two_changes_is_told_whichever_way_they_go() {
    for (effect, expected) in [(2.0, AGREES), (0.5, AGREES), (1.05, DISAGREES), (1.2, CANNOT)] {
        let look =
            Look::Larger { ratio: ratio("build", "O0", "O2", &[]), than: vec![ratio("maxmem", "10MB", "1MB", &[])] };
        assert_eq!(word(look, &effects(effect)), expected, "{effect}");
    }
}

#[test]
fn a_law_has_its_peak_inside_outside_or_beyond_what_was_measured() {
    let (run, records) = analysis::example::sweep();
    let mut findings = analysis::analyze(&run, &records);
    // Eight trials are too few to tell; of the fit nothing else changes here.
    let series = || at(&[("server", "c-epoll"), ("clients", "80")]);
    let look =
        |parameter, low, high| Look::Law { factor: "cores", series: series(), parameter, range: within(low, high) };
    assert_eq!(word(look(Parameter::Peak, 14.0, 22.0), &findings), CANNOT, "8 trials");
    let points = findings.scalability.iter_mut().flat_map(|found| &mut found.points);
    points.for_each(|point| point.trials = 12);
    // Made with contention 0.05 and coherency 0.003: the peak is at 17.8.
    assert_eq!(word(look(Parameter::Peak, 14.0, 22.0), &findings), AGREES);
    assert_eq!(word(look(Parameter::Peak, 4.0, 6.0), &findings), DISAGREES);
    assert_eq!(word(look(Parameter::Peak, 17.8, 60.0), &findings), CANNOT, "the bound is inside the interval");
    assert_eq!(word(look(Parameter::Coherency, 0.0, f64::INFINITY), &findings), AGREES);
    assert_eq!(word(look(Parameter::Coherency, 0.01, 0.02), &findings), DISAGREES);
    let mut starved = findings.clone();
    (starved.rows[7].cpus, starved.rows[7].cpus_wanted) = (24, Some(40));
    let answer = judge(&claim(look(Parameter::Peak, 14.0, 22.0)), &starved);
    assert_eq!(answer.verdict.word(), CANNOT);
    assert!(answer.found.starts_with("peak 1"), "{answer:?}");
    let fit = findings.scalability[0].fit.as_mut().unwrap();
    (fit.peak, fit.peak_low, fit.peak_high) = (Some(60.0), Some(50.0), None);
    let answer = judge(&claim(look(Parameter::Peak, 50.0, 70.0)), &findings);
    let Verdict::CannotTell { why, needs } = &answer.verdict else { panic!("{answer:?}") };
    assert_eq!(why, "measured up to 40 cores");
    assert_eq!(needs, "more than 70 CPUs for the server");
    findings.scalability[0].fit = None;
    assert_eq!(word(look(Parameter::Peak, 4.0, 6.0), &findings), CANNOT, "no law");
}

#[test]
fn trends_over_requests() {
    let (run, records) = analysis::example::through();
    let mut findings = analysis::analyze(&run, &records);
    let place = findings.over_requests.iter().position(|found| found.what == "proxy_store").unwrap();
    let found = findings.over_requests[place].clone();
    let at = at(&[("through", "adapter")]);
    let slope =
        |low: f64, n| Some(analysis::findings::Estimate { point: low + 1.0, low, high: low + 2.0, level: 0.95, n });
    let mut judged = |trend: Trend, word: &str, low: f64, n: u64| {
        let found = &mut findings.over_requests[place];
        found.trend = serde_json::from_value(word.into()).unwrap();
        found.slope_per_1000 = slope(low, n);
        let look = Look::OverRequests { what: "proxy_store", at: at.clone(), trend };
        judge(&claim(look), &findings).verdict.word()
    };
    for (trend, word, low, expected) in [
        (Trend::Flat, "flat", -1.0, AGREES),
        (Trend::Flat, "line", 5.0, DISAGREES),
        (Trend::Flat, "line", -5.0, AGREES),
        (Trend::Flat, "bent", 5.0, CANNOT),
        (Trend::Flat, "unclear", -1.0, CANNOT),
        (Trend::Line, "line", 5.0, AGREES),
        (Trend::Line, "flat", -1.0, DISAGREES),
        (Trend::Line, "bent", 5.0, DISAGREES),
        (Trend::Line, "unclear", -1.0, CANNOT),
    ] {
        assert_eq!(judged(trend, word, low, 12), expected, "{trend:?} of {word} at {low}");
        assert_eq!(judged(trend, word, low, 8), CANNOT, "8 trials");
    }
    // As analysed: the store of the example grows by 100 bytes a call, and 8 trials are too few.
    findings.over_requests[place] = found;
    let look = Look::OverRequests { what: "proxy_store", at: at.clone(), trend: Trend::Line };
    let answer = judge(&claim(look), &findings);
    assert_eq!(answer, Answer::none("8 trials", "12 or more"));
}

#[test]
fn sizes_are_those_of_the_workload() {
    for (low, high, expected) in [(27.5, 28.5, AGREES), (35.5, 36.5, DISAGREES)] {
        assert_eq!(drawn(Size::Key, within(low, high)).verdict.word(), expected);
    }
    assert_eq!(
        drawn(Size::Value, within(199.5, 200.5)).found,
        "200.0 bytes, exact: the mean of the sampled distribution"
    );
}

#[test]
fn a_number_of_another_machine_is_shown_and_not_judged() {
    let mut findings = effects(2.0);
    let at = at(&[("build", "O0"), ("maxmem", "1MB"), ("clients", "40")]);
    let look = Look::Value { metric: "throughput", at, range: within(20_000.0, 27_000.0) };
    let claim = Claim { only_on: Some("AMD Ryzen 7 2700X"), ..claim(look) };
    let elsewhere = judge(&claim, &findings);
    assert_eq!(elsewhere.verdict.word(), CANNOT);
    assert!(elsewhere.found.ends_with("16 trials"), "{elsewhere:?}");
    findings.machine.cpu_model = "AMD Ryzen 7 2700X Eight-Core Processor".to_owned();
    assert_eq!(judge(&claim, &findings).verdict, Verdict::Agrees);
}

#[test]
fn what_is_about_something_else_tells_nothing() {
    let look = || Look::Ratios { ratios: vec![ratio("build", "O0", "O2", &[])], range: within(1.0, f64::INFINITY) };
    let whole = effects(2.0);
    assert_eq!(word(look(), &whole), AGREES);
    let why = |change: &dyn Fn(&mut Row)| {
        let mut findings = whole.clone();
        change(&mut findings.rows[0]);
        match judge(&claim(look()), &findings).verdict {
            Verdict::CannotTell { why, .. } => why,
            verdict => verdict.word().to_owned(),
        }
    };
    let label = whole.rows[0].label.clone();
    assert_eq!(
        why(&|row| row.marks = vec![analysis::findings::Mark::GeneratorBound]),
        format!("{label}: generator-bound")
    );
    assert_eq!(
        why(&|row| (row.cpus, row.cpus_wanted) = (1, Some(8))),
        format!("{label}: the server had 1 of the 8 CPUs that it needs")
    );
    let reason = "needs 41 CPUs, has 2".to_owned();
    assert_eq!(
        why(&|row| row.state = RowState::Unrunnable { reason: reason.clone() }),
        format!("{label}: needs 41 CPUs, has 2")
    );
    assert_eq!(why(&|row| row.trials.truncate(11)), "11 blocks in common");
    assert_eq!(
        why(&|row| row.trials[3].at_least = std::collections::BTreeSet::from(["throughput".to_owned()])),
        format!("{label}: `throughput` is only known to be at least something")
    );
    // Blocks that are not common do not count, however many there are.
    assert_eq!(why(&|row| row.trials.iter_mut().for_each(|trial| trial.block += 8)), "8 blocks in common");
    assert_eq!(
        why(&|row| row.trials[0].values = BTreeMap::from([("throughput".to_owned(), 0.0)])),
        "`throughput` is zero: there is no ratio"
    );
}

#[test]
fn hits_do_not_depend_on_who_has_the_processors() {
    let mut findings = effects(2.0);
    for row in &mut findings.rows {
        row.marks = vec![Mark::Shared];
        for trial in &mut row.trials {
            trial.values.insert("hit_ratio".to_owned(), 0.8 + 0.0001 * f64::from(trial.block % 5));
        }
    }
    let at = at(&[("build", "O0"), ("maxmem", "1MB"), ("clients", "40")]);
    let value = |metric, high| Look::Value { metric, at: at.clone(), range: within(0.795, high) };
    assert_eq!(word(value("hit_ratio", 0.805), &findings), AGREES);
    // A time is shown, and not judged.
    let answer = judge(&claim(value("throughput", 1e9)), &findings);
    assert!(answer.found.ends_with("16 trials"), "{answer:?}");
    assert_eq!(answer.verdict.word(), CANNOT);
}

#[test]
fn blocks_that_would_tell() {
    assert_eq!(more_blocks(12, 0.04, 0.02), "about 48 blocks instead of 12, if the estimate stays");
    assert_eq!(more_blocks(12, 0.01, 0.02), "about 13 blocks instead of 12, if the estimate stays");
    assert_eq!(more_blocks(12, 0.04, 0.0), "more than 1000 blocks: the value lies at the bound");
}
