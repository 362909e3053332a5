//! Tests whether the machine changed its speed during a run, which makes consecutive trials similar.

use crate::random::Rng;
use crate::special_functions::normal_quantile;

/// Largest distance in the execution order between two trials that are compared, in trials.
const LAGS: usize = 3;
const SHUFFLES: usize = 999;

/// Probability that consecutive trials are at least this similar if their order is irrelevant. `trials` are `(point,
/// value)` in execution order. Each value becomes the normal score of its rank among its point's trials. The statistic,
/// the sum of `(1 - l/4)·r_l` over the autocorrelations at lags 1 to 3, is compared with 999 orders that shuffle scores
/// within points, which makes the test exact. A small p shows that the speed changed. A large p proves nothing, because
/// the test misses long spells. `None` if all values are equal, or if points with several trials have fewer than 8.
pub fn p_value(trials: &[(usize, f64)], seed: u64) -> Option<f64> {
    let points = trials.iter().map(|&(point, _)| point + 1).max()?;
    let mut places = vec![Vec::new(); points];
    for (place, &(point, value)) in trials.iter().enumerate() {
        if value.is_finite() {
            places[point].push(place);
        }
    }
    places.retain(|places| places.len() >= 2);
    let mut scores = vec![0.0; trials.len()];
    for places in &places {
        let n = places.len() as f64;
        for &place in places {
            let value = trials[place].1;
            let less = places.iter().filter(|&&other| trials[other].1 < value).count();
            let same = places.iter().filter(|&&other| trials[other].1 == value).count();
            let rank = less as f64 + (same as f64 + 1.0) / 2.0;
            scores[place] = normal_quantile((rank - 0.5) / n);
        }
    }
    // `places` has no points with a single trial, which reveal nothing about the order.
    let mut order = places.iter().flatten().copied().collect::<Vec<_>>();
    order.sort_unstable();
    if order.len() < 8 || order.iter().all(|&place| scores[place] == 0.0) {
        return None;
    }
    let at_lag = |scores: &[f64], lag: usize| {
        let products = order.iter().zip(&order[lag..]).map(|(&a, &b)| scores[a] * scores[b]);
        (1.0 - lag as f64 / 4.0) * products.sum::<f64>()
    };
    let statistic = |scores: &[f64]| (1..=LAGS).map(|lag| at_lag(scores, lag)).sum::<f64>();
    let seen = statistic(&scores);
    let mut rng = Rng::new(seed);
    let mut values = Vec::new();
    let mut as_large = 0;
    for _ in 0..SHUFFLES {
        for places in &places {
            values.clear();
            values.extend(places.iter().map(|&place| scores[place]));
            rng.shuffle(&mut values);
            for (&place, &score) in places.iter().zip(&values) {
                scores[place] = score;
            }
        }
        as_large += usize::from(statistic(&scores) >= seen - 1e-12 * seen.abs());
    }
    Some((as_large + 1) as f64 / (SHUFFLES + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, points: usize, blocks: usize, state: impl Fn(usize) -> f64) -> f64 {
        let mut rng = Rng::new(seed);
        let mut trials = Vec::new();
        for _ in 0..blocks {
            let mut order = (0..points).collect::<Vec<_>>();
            rng.shuffle(&mut order);
            for point in order {
                let value = (1.0 + point as f64) * (0.05 * rng.normal()).exp() * state(trials.len());
                trials.push((point, value));
            }
        }
        p_value(&trials, seed).unwrap()
    }

    #[test]
    fn detects_spells() {
        assert!(run(1, 4, 20, |trial| if trial % 30 < 10 { 1.225 } else { 1.0 }) <= 0.01);
    }

    #[test]
    fn detects_drift() {
        assert!(run(1, 4, 20, |trial| 1.0 + 0.2 * trial as f64 / 80.0) <= 0.01);
    }

    #[test]
    fn without_states_alarms_are_as_rare_as_promised() {
        let alarms = (0..400).filter(|&seed| run(seed, 4, 12, |_| 1.0) <= 0.05).count();
        assert!((8..=34).contains(&alarms), "{alarms} of 400");
    }

    #[test]
    fn no_p_value_without_enough_trials() {
        assert_eq!(p_value(&[], 1), None);
        assert_eq!(p_value(&[(0, 1.0), (1, 2.0)], 1), None);
        assert_eq!(p_value(&[(0, 1.0); 20], 1), None);
        assert_eq!(p_value(&[(0, f64::NAN); 20], 1), None);
    }
}
