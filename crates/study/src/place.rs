//! Where something stands in the texts that a study is made of.

use std::ops::Range;

/// Where something stands: in the text of the study, or in the text of a `--set`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Index of the `--set`; `None`: the study's text.
    pub(crate) set: Option<usize>,
    /// First byte.
    pub(crate) start: usize,
    /// The byte after the last.
    pub(crate) end: usize,
}

impl Place {
    /// The part `span` of what stands here.
    pub(crate) fn part(self, span: Range<usize>) -> Place {
        Place { set: self.set, start: self.start + span.start, end: self.start + span.end }
    }
}
