//! Throughput over a numeric factor, fitted by the Universal Scalability Law.

use study::record::Run;

use crate::findings::{Row, Scalability};

pub(crate) fn scalability(_run: &Run, _rows: &[Row]) -> Vec<Scalability> {
    Vec::new()
}
