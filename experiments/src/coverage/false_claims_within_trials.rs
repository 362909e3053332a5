//! Shares of reports with a false statement about the windows of trials, which correlate, or about single trials.

use stats::growth_in_trials::{self, Series, Shown};
use stats::{Rng, outliers, steady_start_test};

use super::Promise;
use super::whole_reports::{Row, count};

/// Promised maximum share of reports with a false statement of one kind.
const ERROR: f64 = 0.05;
const WINDOWS: usize = 60;
/// Number of series per report: 36 design points, or 12 with three metrics.
const SERIES: usize = 36;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Windows {
    /// Windows with this autocorrelation at lag 1.
    Alike(f64),
    /// Slow spells of this mean length in windows: values are 1.225 times as high, 30 % of the time.
    Spells(f64),
    /// One window in this many takes five times as long.
    Freaks(f64),
    /// Deviations that follow Student's t with 3 degrees of freedom.
    Heavy,
}

const WORLDS: [(&str, Windows); 9] = [
    ("independent windows", Windows::Alike(0.0)),
    ("windows alike, AR(1) of 0.5", Windows::Alike(0.5)),
    ("windows alike, AR(1) of 0.9", Windows::Alike(0.9)),
    ("windows alike, AR(1) of 0.99", Windows::Alike(0.99)),
    ("spells of 3 windows, x1.225, 30 %", Windows::Spells(3.0)),
    ("spells of 20 windows, x1.225, 30 %", Windows::Spells(20.0)),
    ("spells of 200 windows, x1.225, 30 %", Windows::Spells(200.0)),
    ("freak windows, 2 % x5", Windows::Freaks(50.0)),
    ("heavy tails", Windows::Heavy),
];

/// Simulates windows that scatter by 10 % around a level that scatters by 5 % between trials and grows by `growth`.
fn trial(rng: &mut Rng, windows: Windows, growth: f64) -> Vec<f64> {
    let level = (0.05 * rng.normal()).exp();
    let mut state = rng.normal();
    let mut is_slow = rng.unit_f64() < 0.3;
    let window = |at: usize| {
        let noise = match windows {
            Windows::Alike(rho) => {
                state = rho * state + (1.0 - rho * rho).sqrt() * rng.normal();
                (0.1 * state).exp()
            }
            Windows::Spells(length) => {
                let stay = if is_slow { length } else { length * 0.7 / 0.3 };
                is_slow ^= rng.unit_f64() * stay < 1.0;
                (0.1 * rng.normal()).exp() * if is_slow { 1.225 } else { 1.0 }
            }
            Windows::Freaks(every) => (0.1 * rng.normal()).exp() * if rng.unit_f64() * every < 1.0 { 5.0 } else { 1.0 },
            Windows::Heavy => {
                let chi = (0..3).map(|_| rng.normal().powi(2)).sum::<f64>() / 3.0;
                1.0 + 0.1 * rng.normal() / chi.sqrt()
            }
        };
        // The level applies halfway through the trial.
        level * (noise + growth * ((at as f64 + 0.5) / WINDOWS as f64 - 0.5))
    };
    (0..WINDOWS).map(window).collect()
}

fn lines(rng: &mut Rng, windows: Windows, trials: usize, growth: f64) -> Series {
    let requests = |at: usize| (at as f64 + 0.5) * 100.0;
    let line = |values: Vec<f64>| values.into_iter().enumerate().map(|(at, value)| (requests(at), value)).collect();
    let trials = (0..trials).map(|_| line(trial(rng, windows, growth))).collect::<Vec<_>>();
    Series::from_lines(&trials, growth_in_trials::FLAT_SHARE).expect("there are trials")
}

pub fn rows(reports: u32, seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, world) in WORLDS.into_iter().enumerate() {
        rows_of(&mut rows, world, reports, seed.wrapping_mul(1_000).wrapping_add(500 + index as u64));
    }
    rows
}

fn rows_of(rows: &mut Vec<Row>, (world, windows): (&'static str, Windows), reports: u32, seed: u64) {
    let mut row = |what: &str, promise, report: &mut dyn FnMut(&mut Rng) -> bool| {
        let share = count(reports, seed, report);
        rows.push(Row { what: what.to_owned(), world, of: reports, share, promise });
    };
    row("a false `grows` or `shrinks`, 36 flat series of 8 trials", Promise::AtMost(ERROR), &mut |rng| {
        let flat = (0..SERIES).map(|_| lines(rng, windows, 8, 0.0)).collect::<Vec<_>>();
        growth_in_trials::growth(&flat, ERROR).iter().any(|found| matches!(found.shown, Shown::Grows | Shown::Shrinks))
    });
    row("a false `flat`, 36 series of 8 trials that change by 5 %", Promise::AtMost(ERROR), &mut |rng| {
        // The line ends half a window before the trial does, so the growth over the whole trial is larger.
        let share = growth_in_trials::FLAT_SHARE * WINDOWS as f64 / (WINDOWS as f64 - 0.5);
        let changing = (0..SERIES).map(|_| lines(rng, windows, 8, share)).collect::<Vec<_>>();
        growth_in_trials::growth(&changing, ERROR).iter().any(|found| found.is_small)
    });
    let steady = |points: &[Vec<Vec<f64>>]| {
        steady_start_test::judge(
            &points.iter().map(|trials| steady_start_test::halves(trials)).collect::<Vec<_>>(),
            ERROR,
        )
    };
    row("a false `no steady state`, 12 points of 8 trials", Promise::AtMost(ERROR), &mut |rng| {
        let point = |rng: &mut Rng| (0..8).map(|_| trial(rng, windows, 0.0)).collect::<Vec<_>>();
        let points = (0..12).map(|_| point(rng)).collect::<Vec<_>>();
        steady(&points).iter().any(|found| found.reached == Some(false))
    });
    let one_kind = match windows {
        Windows::Freaks(_) => Promise::Nothing("freaks are to be found"),
        Windows::Heavy => Promise::Nothing("heavy tails are to be found"),
        Windows::Spells(length) if length > WINDOWS as f64 => Promise::Nothing("there are slow trials to be found"),
        _ => Promise::AtMost(ERROR),
    };
    row("a false outlier, 36 groups of 12 trials", one_kind, &mut |rng| {
        let mut value = || stats::interval::average(&trial(rng, windows, 0.0));
        let groups = (0..SERIES).map(|_| (0..12).map(|_| value()).collect()).collect::<Vec<_>>();
        outliers::outliers(&groups, ERROR).iter().any(|found| !found.is_empty())
    });
    row("one of 36 series that grows by 20 % is shown", Promise::Nothing("power"), &mut |rng| {
        let series = (0..SERIES).map(|at| lines(rng, windows, 8, if at == 0 { 0.2 } else { 0.0 }));
        growth_in_trials::growth(&series.collect::<Vec<_>>(), ERROR)[0].shown == Shown::Grows
    });
    row("one of 12 points without steady state, 10 %, is flagged", Promise::Nothing("power"), &mut |rng| {
        let point = |rng: &mut Rng, growth| (0..8).map(|_| trial(rng, windows, growth)).collect::<Vec<_>>();
        let points = (0..12).map(|at| point(rng, if at == 0 { 0.2 } else { 0.0 })).collect::<Vec<_>>();
        steady(&points)[0].reached == Some(false)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "slow: simulates many trials"]
    fn promises_hold_in_a_small_simulation() {
        let mut rows = Vec::new();
        for world in [WORLDS[0], WORLDS[2], WORLDS[5]] {
            rows_of(&mut rows, world, 150, 3);
        }
        let broken = rows.iter().filter(|row| !row.kept()).collect::<Vec<_>>();
        assert!(broken.is_empty(), "{broken:?}");
    }

    #[test]
    fn windows_have_their_nominal_scatter() {
        let mut rng = Rng::new(1);
        for (world, windows) in WORLDS {
            let (mut sum, mut slope, n) = (0.0, 0.0, 4_000);
            for _ in 0..n {
                let values = trial(&mut rng, windows, 0.2);
                sum += stats::interval::average(&values).unwrap();
                slope += lines(&mut rng, windows, 1, 0.2).changes[0];
            }
            let expected = match windows {
                Windows::Spells(_) => 1.0 + 0.3 * 0.225,
                Windows::Freaks(every) => 1.0 + 4.0 / every,
                _ => 1.0,
            };
            let (mean, growth) = (sum / f64::from(n), slope / f64::from(n));
            assert!((mean / expected - 1.0).abs() < 0.02, "{world}: mean {mean}");
            assert!((growth - 0.2).abs() < 0.03, "{world}: growth {growth}");
        }
    }
}
