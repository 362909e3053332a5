//! What stands in a report, section by section.

pub(crate) mod added;
pub(crate) mod effects;
pub(crate) mod miss_ratio;
pub(crate) mod operations;
