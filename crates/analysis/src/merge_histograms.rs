//! Merges stored histograms.

use study::record::Histogram as Stored;

/// Converts a stored histogram; `None` if it is invalid, since a store may contain anything.
pub(crate) fn from_record(stored: &Stored) -> Option<stats::Histogram> {
    stats::Histogram::try_from(stored).ok()
}

pub(crate) fn merge<'a>(stored: impl IntoIterator<Item = &'a Stored>) -> Option<stats::Histogram> {
    let mut merged = None;
    stored.into_iter().filter_map(from_record).for_each(|histogram| merge_into(&mut merged, histogram));
    merged
}

pub(crate) fn merge_into(merged: &mut Option<stats::Histogram>, histogram: stats::Histogram) {
    match merged {
        Some(merged) => merged.merge(&histogram),
        None => *merged = Some(histogram),
    }
}
