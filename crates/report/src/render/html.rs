//! The HTML page: one file that contains everything, for browsers without a network.

mod blocks;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeSet;

use analysis::findings::Findings;
use askama::Template;

use self::blocks::Writer;
use crate::ReportError;
use crate::document::{Document, Section};
use crate::figures::{self, Detail, Drawing};
use crate::panel;
use crate::panel::style::{self, Background};
use crate::sections;

/// Maximum size of a page in bytes, because pages are mailed and opened on phones.
pub const PAGE_LIMIT: usize = 1_000_000;

/// Maximum number of design points on a full page. At the lowest detail, 200 points of 30 trials took 1.3 MB.
pub const PAGE_POINTS: usize = 150;

/// Row limits that are tried in turn if a page without figures is too large.
const ROWS: [usize; 4] = [300, 100, 30, 10];

/// Renders every figure as an SVG file. Returns the stem of each file's name with the file's content.
pub fn figure_svgs(findings: &Findings, background: Background) -> Vec<(String, String)> {
    let drawings = figures::figures(findings, Detail::FULL);
    drawings.iter().map(|drawing| (drawing.name.clone(), figures::svg_file(drawing, background))).collect()
}

/// Renders the report as one page of at most [`PAGE_LIMIT`] bytes, without external resources. It needs no scripts.
/// Studies with very many design points lose tooltips and curve points, then figures, then rows; the page lists the
/// omissions. Other forms of the report have no limit. Fails if the template fails.
pub fn html(findings: &Findings) -> Result<String, ReportError> {
    page(&sections::document(findings), |detail| figures::figures(findings, detail))
}

pub(crate) fn page(document: &Document, drawings: impl Fn(Detail) -> Vec<Drawing>) -> Result<String, ReportError> {
    let failed = |source: askama::Error| {
        ReportError(format!("the page of {} could not be written", document.what), Some(source.into()))
    };
    let render = |figures: Vec<Drawing>, left_out: &[String], hints: bool, rows: usize| {
        let (supporting, answer) = figures.into_iter().partition::<Vec<_>, _>(|drawing| drawing.supporting);
        let part = |figures, left_out| FiguresHtml { figures, left_out }.render().map_err(failed);
        let figures = [part(answer, left_out.join("; "))?, part(supporting, String::new())?];
        let css = format!("{}{}", include_str!("../../templates/report.css"), style::css(None));
        let script = include_str!("../../templates/report.js");
        Page { document, css, script, blocks: Writer { figures, hints, rows } }.render().map_err(failed)
    };
    for detail in Detail::ALL {
        let page = render(figures(drawings(detail)), &[], detail.tips, usize::MAX)?;
        if page.len() < PAGE_LIMIT {
            return Ok(page);
        }
    }
    let least = Detail::ALL[Detail::ALL.len() - 1];
    let titles = drawings(least).iter().map(|drawing| drawing.title.clone()).collect::<Vec<_>>();
    let mut page = String::new();
    for rows in [usize::MAX].into_iter().chain(ROWS) {
        page = render(Vec::new(), &titles, false, rows)?;
        let mut room = PAGE_LIMIT.saturating_sub(page.len());
        if room == 0 {
            continue;
        }
        let (mut shown, mut left_out) = (Vec::new(), Vec::new());
        for figure in figures(drawings(least)) {
            let title = figure.title.clone();
            let alone = FiguresHtml { figures: vec![figure], left_out: String::new() };
            let bytes = alone.render().map_err(failed)?.len();
            if bytes < room {
                room -= bytes;
                shown.extend(alone.figures);
            } else {
                left_out.push(title);
            }
        }
        return render(shown, &left_out, false, rows);
    }
    Ok(page)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    document: &'a Document,
    css: String,
    script: &'static str,
    blocks: Writer,
}

/// The template calls these methods.
impl Page<'_> {
    /// Heading of a section that is initially folded, as the text of a link.
    fn folded(&self, anchor: &str) -> Option<&str> {
        let section = self.document.sections.iter().find(|section| section.anchor == anchor && section.folded);
        section.map(|section| section.heading.as_str())
    }

    /// Sections with counted entries, such as warnings.
    fn alerts(&self) -> Vec<&Section> {
        self.document.sections.iter().filter(|section| section.count.is_some_and(|count| count > 0)).collect()
    }

    fn sections(&self, folded: bool) -> String {
        let sections = self.document.sections.iter().filter(|section| section.folded == folded);
        sections.map(|section| format!("\n{}", self.blocks.section(section))).collect()
    }
}

#[derive(Template)]
#[template(path = "figures.html")]
struct FiguresHtml {
    figures: Vec<Drawing>,
    left_out: String,
}

fn figures(mut drawings: Vec<Drawing>) -> Vec<Drawing> {
    // Nearly every figure lacks the same points, so their note is shown only once.
    let mut said = BTreeSet::new();
    for drawing in &mut drawings {
        let all = drawing.notes.len();
        drawing.notes.retain(|note| said.insert(note.clone()));
        if drawing.notes.len() < all {
            drawing.notes.push("The points named above as not shown are not shown here either.".to_owned());
        }
    }
    drawings
}

impl Drawing {
    fn columns(&self) -> usize {
        if self.flames.is_empty() { self.panels.len().clamp(1, 3) } else { 4 }
    }

    fn is_folded(&self) -> bool {
        self.panels.iter().any(|panel| !panel.below.is_empty())
    }

    fn panel_svgs(&self) -> Vec<String> {
        let panel = |panel: &panel::Panel| {
            let title = if panel.title.is_empty() { String::new() } else { format!(": {}", panel.title) };
            panel::panel_svg(panel, &format!("{}{title}", self.title))
        };
        self.panels.iter().map(panel).chain(self.flames.iter().map(|flame| flame.svg(&self.title))).collect()
    }
}
