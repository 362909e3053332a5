//! Mixtures of weighted points, ranges and an analytic tail.

use crate::distribution::Distribution;

/// Maximum number of points and ranges of one distribution.
pub const PIECES_MAX: usize = 65_536;

/// A single value or a range of equally likely values, with its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Lowest value of the range.
    pub low: f64,
    /// Highest value of the range; equal to `low` for a single value.
    pub high: f64,
    /// Weight relative to the weights of the other pieces and the tail.
    pub weight: f64,
}

/// A mixture of single values, ranges and one analytic tail.
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    /// Pieces by ascending `low`, with weights normalized to shares.
    pieces: Vec<Piece>,
    tail: Option<(Distribution, f64)>,
}

impl Empirical {
    /// Creates a distribution from `pieces` and a tail with its weight. Fails with a message on the first invalid part.
    pub fn new(pieces: &[Piece], tail: Option<(Distribution, f64)>) -> Result<Empirical, String> {
        let fine = |value: f64| value.is_finite() && value >= 0.0;
        if pieces.len() > PIECES_MAX {
            return Err(format!("an empirical distribution of {} pieces; the limit is {PIECES_MAX}", pieces.len()));
        }
        let all_fine = |piece: &Piece| [piece.low, piece.high, piece.weight].into_iter().all(fine);
        let wrong = |piece: &Piece| !all_fine(piece) || piece.low > piece.high;
        if let Some(index) = pieces.iter().position(wrong) {
            return Err(format!(
                "piece {} of the empirical distribution is not two ascending numbers and a weight, none below 0",
                index + 1
            ));
        }
        if tail.is_some_and(|(law, weight)| law.check().is_err() || !fine(weight)) {
            return Err("the tail of the empirical distribution is not a distribution with a weight".to_owned());
        }
        let total = pieces.iter().map(|piece| piece.weight).sum::<f64>() + tail.map_or(0.0, |(_, weight)| weight);
        if !(total > 0.0 && total.is_finite()) {
            return Err("an empirical distribution needs a value with a weight above 0".to_owned());
        }
        let share = |piece: &Piece| Piece { weight: piece.weight / total, ..*piece };
        let mut pieces = pieces.iter().filter(|piece| piece.weight > 0.0).map(share).collect::<Vec<_>>();
        pieces.sort_by(|a, b| a.low.total_cmp(&b.low).then(a.high.total_cmp(&b.high)));
        let tail = tail.map(|(law, weight)| (law, weight / total)).filter(|(_, share)| *share > 0.0);
        Ok(Empirical { pieces, tail })
    }

    /// Exact fraction of values up to and including `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        let of = |piece: &Piece| match piece {
            piece if x >= piece.high => piece.weight,
            piece if x <= piece.low => 0.0,
            piece => piece.weight * (x - piece.low) / (piece.high - piece.low),
        };
        // Pieces are sorted by their lower ends, so the other pieces begin above x.
        let below = self.pieces.partition_point(|piece| piece.low <= x);
        let head = self.pieces[..below].iter().map(of).sum::<f64>();
        (head + self.tail.map_or(0.0, |(law, share)| share * law.cdf(x))).min(1.0)
    }

    /// Exact fraction of values above `x`, precise in the tail.
    pub fn upper(&self, x: f64) -> f64 {
        let ends = self.pieces.iter().map(|piece| piece.high).fold(f64::NEG_INFINITY, f64::max);
        match self.tail {
            Some((law, share)) if x >= ends => share * law.upper(x),
            None if x >= ends => 0.0,
            _ => 1.0 - self.cdf(x),
        }
    }

    /// Quantile `p`, by bisection: the smallest value that at least a fraction `p` of all values does not exceed.
    pub fn quantile(&self, p: f64) -> f64 {
        assert!((0.0..=1.0).contains(&p), "`p` is a fraction, not a percentage: {p}");
        let mut low = self.pieces.iter().map(|piece| piece.low).fold(f64::INFINITY, f64::min);
        let mut high = self.pieces.iter().map(|piece| piece.high).fold(f64::NEG_INFINITY, f64::max);
        if let Some((law, share)) = self.tail {
            let head_share = 1.0 - share;
            // If the tail begins above all pieces, its own quantile function gives the result.
            if law.quantile(0.0) >= high && p > head_share {
                return law.quantile(((p - head_share) / share).clamp(0.0, 1.0));
            }
            low = low.min(law.quantile(0.0));
            high = high.max(law.quantile(p));
        }
        if self.cdf(low) >= p {
            return low;
        }
        for _ in 0..200 {
            let middle = low + 0.5 * (high - low);
            if middle <= low || middle >= high {
                break;
            }
            if self.cdf(middle) >= p { high = middle } else { low = middle }
        }
        high
    }
}

impl From<Distribution> for Empirical {
    fn from(law: Distribution) -> Empirical {
        Empirical { pieces: Vec::new(), tail: Some((law, 1.0)) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Shares of values of 0 to 14 bytes in Facebook's ETC pool. Source: Atikoglu et al. 2012, table 5.
    pub(crate) const ETC_HEAD: [f64; 15] = [
        0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837, 0.00837, 0.08989,
        0.00092, 0.00326, 0.01980,
    ];

    pub(crate) fn etc_values(location: f64) -> Empirical {
        let piece = |(value, weight): (usize, &f64)| Piece { low: value as f64, high: value as f64, weight: *weight };
        let head = ETC_HEAD.iter().enumerate().map(piece).collect::<Vec<_>>();
        let tail = Distribution::Pareto { location, scale: 214.476, shape: 0.348238 };
        Empirical::new(&head, Some((tail, 1.0 - ETC_HEAD.iter().sum::<f64>()))).unwrap()
    }

    #[test]
    fn values_of_etc_are_frozen() {
        assert!((ETC_HEAD.iter().sum::<f64>() - 0.44155).abs() < 1e-12);
        let values = etc_values(15.0);
        assert!((values.pieces.iter().map(|piece| piece.weight).sum::<f64>() - 0.44155).abs() < 1e-12);
        let of = |law: &Empirical| [law.quantile(0.5), law.quantile(0.9), law.quantile(0.99), law.quantile(0.999)];
        assert_eq!(of(&values).map(|x| format!("{x:.0}")), ["39", "520", "1899", "4972"]);
        assert_eq!(format!("{:.0e}", values.upper(1e6)), "3e-10");
    }

    #[test]
    fn quantile_is_the_smallest_value_with_that_share() {
        let pieces = [(3.0, 3.0, 1.0), (10.0, 20.0, 2.0), (1.0, 1.0, 1.0)];
        let law = Empirical::new(&pieces.map(|(low, high, weight)| Piece { low, high, weight }), None).unwrap();
        let close = |p: f64, expected: f64| {
            let found = law.quantile(p);
            assert!((found - expected).abs() < 1e-9, "{p}: {found}");
        };
        for (p, expected) in [(0.0, 1.0), (0.25, 1.0), (0.26, 3.0), (0.5, 3.0), (0.75, 15.0), (1.0, 20.0)] {
            close(p, expected);
        }
        assert_eq!([0.0, 1.0, 3.0, 15.0, 25.0].map(|x| law.cdf(x)), [0.0, 0.25, 0.5, 0.75, 1.0]);
    }

    #[test]
    fn overlapping_tails_have_quantiles() {
        let law = etc_values(0.0);
        for p in [0.001, 0.1, 0.3, 0.5, 0.9, 0.9999] {
            let x = law.quantile(p);
            assert!(law.cdf(x) >= p - 1e-12 && law.cdf(x * (1.0 - 1e-9) - 1e-9) <= p, "{p}: {x}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let piece = |low, high, weight| Piece { low, high, weight };
        let check = |pieces: &[Piece], tail, expected| {
            let error = Empirical::new(pieces, tail).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        };
        check(&[], None, "an empirical distribution needs");
        check(&[piece(1.0, 1.0, 0.0)], None, "an empirical distribution needs");
        check(&[piece(1.0, 1.0, 1.0), piece(2.0, 1.0, 1.0)], None, "piece 2 of");
        check(&[piece(1.0, 1.0, f64::NAN)], None, "piece 1 of");
        check(&[piece(-1.0, 1.0, 1.0)], None, "piece 1 of");
        check(&[piece(1.0, 1.0, 1.0)], Some((Distribution::Exponential { mean: -1.0 }, 1.0)), "the tail of");
        check(&vec![piece(1.0, 1.0, 1.0); PIECES_MAX + 1], None, "an empirical distribution of 65537 pieces");
    }
}
