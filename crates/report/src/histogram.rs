//! From the stored form of a histogram to the one that can be asked, and back.

use stats::histogram::Parts;
use study::record::Histogram as Stored;

/// `None` for what no recording could have left; a store may come from anywhere.
pub(crate) fn read(stored: &Stored) -> Option<stats::Histogram> {
    stats::Histogram::from_parts(&Parts {
        precision: stored.precision_bits,
        counts: stored.buckets.clone(),
        saturated: stored.saturated,
        min: stored.min.unwrap_or(0),
        max: stored.max.unwrap_or(0),
        sum: stored.sum as u128,
        sum_sq: stored.sum_of_squares as u128,
    })
    .ok()
}

/// The form that is kept in [`crate::Findings`].
pub(crate) fn write(histogram: &stats::Histogram) -> Stored {
    let parts = histogram.to_parts();
    Stored {
        precision_bits: parts.precision,
        buckets: parts.counts,
        count: histogram.len(),
        saturated: parts.saturated,
        min: histogram.min(),
        max: histogram.max(),
        sum: parts.sum as f64,
        sum_of_squares: parts.sum_sq as f64,
    }
}

/// All of them in one; `None` when there is none, or none can be read.
pub(crate) fn merge<'a>(stored: impl IntoIterator<Item = &'a Stored>) -> Option<stats::Histogram> {
    let mut all = stored.into_iter().filter_map(read);
    let mut merged = all.next()?;
    for histogram in all {
        merged.merge(&histogram);
    }
    Some(merged)
}
