//! From the stored form of a histogram to the one that can be asked.

use study::record::Histogram as Stored;

/// `None` for what no recording could have left; a store may come from anywhere.
pub(crate) fn from_record(stored: &Stored) -> Option<stats::Histogram> {
    stats::Histogram::try_from(stored).ok()
}

/// All of them in one; `None` when there is none, or none can be read.
pub(crate) fn merge<'a>(stored: impl IntoIterator<Item = &'a Stored>) -> Option<stats::Histogram> {
    let mut all = stored.into_iter().filter_map(from_record);
    let mut merged = all.next()?;
    for histogram in all {
        merged.merge(&histogram);
    }
    Some(merged)
}
