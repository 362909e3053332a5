//! A straight line through a series.

/// Slope of the line through `(x, y)` by least squares, y a unit of x; `None` below two different x or with a value that is not finite.
///
/// In two passes about the means, so that no digit is lost where x are large.
pub fn least_squares(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let square = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    let product = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
    let slope = product / square;
    (square > 0.0 && slope.is_finite()).then_some(slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    // By hand: means 3.9 and 7.9, sum of products 62.05, of squares 30.2.
    #[test]
    fn is_that_of_the_formula() {
        let points = [(1.0, 2.1), (2.0, 3.9), (3.5, 7.2), (5.0, 9.8), (8.0, 16.5)];
        let slope = least_squares(&points).unwrap();
        assert!((slope / (62.05 / 30.2) - 1.0).abs() < 1e-12, "{slope}");
    }

    #[test]
    fn a_line_is_found_far_from_zero() {
        let points = (0..100).map(|i| (1e9 + f64::from(i), 7.0 - 0.25 * f64::from(i))).collect::<Vec<_>>();
        assert!((least_squares(&points).unwrap() + 0.25).abs() < 1e-9);
    }

    #[test]
    fn where_there_is_none() {
        for points in [&[][..], &[(1.0, 2.0)], &[(1.0, 2.0), (1.0, 3.0)], &[(0.0, 0.0), (1.0, f64::NAN)]] {
            assert_eq!(least_squares(points), None, "{points:?}");
        }
    }
}
