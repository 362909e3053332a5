//! The page: one file with everything in it, for a browser that has no network.

use crate::figure::{self, Detail};
use crate::findings::Findings;

/// Every figure as an SVG file of its own: the stem of its name and its text. Light, for a paper.
pub fn figure_svgs(findings: &Findings) -> Vec<(String, String)> {
    let drawings = figure::figures(findings, Detail::FULL);
    drawings.iter().map(|drawing| (drawing.name.clone(), figure::svg_file(drawing))).collect()
}
