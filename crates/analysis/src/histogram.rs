use study::record::Histogram as Stored;

/// Converts a stored histogram; `None` if it is invalid, since a store may contain anything.
pub(crate) fn from_record(stored: &Stored) -> Option<stats::Histogram> {
    stats::Histogram::try_from(stored).ok()
}

pub(crate) fn merge<'a>(stored: impl IntoIterator<Item = &'a Stored>) -> Option<stats::Histogram> {
    let mut all = stored.into_iter().filter_map(from_record);
    let mut merged = all.next()?;
    for histogram in all {
        merged.merge(&histogram);
    }
    Some(merged)
}
