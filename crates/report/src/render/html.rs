//! The HTML page: one file with everything in it, for browsers without a network.

mod blocks;
#[cfg(test)]
pub(crate) mod tests;

use analysis::findings::Findings;
use askama::Template;

use crate::chart;
use crate::chart::style::{self, Background, Sheet};
use crate::document::Document;
use crate::figure::{self, Detail, Drawing};
use crate::sections;

/// Maximum size of a page in bytes, by omitting figures, then rows: pages are mailed and opened on
/// phones.
pub const PAGE_LIMIT: usize = 1_000_000;

/// Maximum number of design points with a full page: 200 points of 30 trials took 1.3 MB at the
/// lowest detail.
pub const PAGE_POINTS: usize = 150;

/// Row limits to try in turn if a page without figures is too large.
const ROWS: [usize; 4] = [300, 100, 30, 10];

/// Why no page was written.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// The template could not be rendered.
    #[error("the page of {what} could not be written")]
    Template {
        /// `run volley-20261120-210500`.
        what: String,
        /// Error of the template engine.
        source: askama::Error,
    },
}

/// Renders every figure as an SVG file: stem of its name and content.
pub fn figure_svgs(findings: &Findings, background: Background) -> Vec<(String, String)> {
    let drawings = figure::figures(findings, Detail::FULL);
    drawings.iter().map(|drawing| (drawing.name.clone(), figure::svg_file(drawing, background))).collect()
}

/// Renders the report as one page below [`PAGE_LIMIT`], without external resources and complete
/// without scripts.
///
/// Studies with very many design points lose tooltips and curve points, then figures, then rows;
/// the page lists the omissions. The other renderers have no limit.
///
/// # Errors
/// [`HtmlError::Template`] if the template fails.
pub fn html(findings: &Findings) -> Result<String, HtmlError> {
    page(&sections::document(findings), |detail| figure::figures(findings, detail))
}

/// A document as a page, with figures in the highest detail that fits.
pub(crate) fn page(document: &Document, drawings: impl Fn(Detail) -> Vec<Drawing>) -> Result<String, HtmlError> {
    let failed = |source| HtmlError::Template { what: document.what.clone(), source };
    let render = |figures: Vec<FigureHtml>, left_out: &[String], hints: bool, rows: usize| {
        let figures = FiguresHtml { figures, left_out: left_out.join("; ") }.render().map_err(failed)?;
        Page::new(document, &figures, hints, rows).render().map_err(failed)
    };
    for detail in Detail::ALL {
        let page = render(figures(&drawings(detail)), &[], detail.tips, usize::MAX)?;
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
        // As many figures as fit, in order.
        let (mut shown, mut left_out) = (Vec::new(), Vec::new());
        for figure in figures(&drawings(least)) {
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
    /// Sentences with the anchor of their section and the text of the link, if any.
    answer: Vec<(&'a str, &'static str, Option<&'a str>)>,
    /// Anchor and text of a link to each section.
    links: Vec<(&'static str, String)>,
    sections: Vec<String>,
}

impl<'a> Page<'a> {
    /// Limits every table and list to `rows` rows.
    fn new(document: &'a Document, figures: &str, hints: bool, rows: usize) -> Page<'a> {
        let sections = &document.sections;
        let heading = |anchor: &str| {
            sections.iter().find(|section| section.anchor == anchor).map(|section| section.heading.as_str())
        };
        let count = |count: Option<usize>| count.map_or_else(String::new, |count| format!(" ({count})"));
        Page {
            document,
            css: format!("{}{}", include_str!("../../templates/report.css"), style::css(Sheet::Page)),
            script: include_str!("../../templates/report.js"),
            answer: document.answer.iter().map(|(text, anchor)| (text.as_str(), *anchor, heading(anchor))).collect(),
            links: sections
                .iter()
                .map(|section| (section.anchor, format!("{}{}", section.heading, count(section.count))))
                .collect(),
            sections: sections.iter().map(|section| blocks::section(section, figures, hints, rows)).collect(),
        }
    }
}

#[derive(Template)]
#[template(path = "figures.html")]
struct FiguresHtml {
    figures: Vec<FigureHtml>,
    /// Titles of omitted figures.
    left_out: String,
}

struct FigureHtml {
    /// Width in columns, 1 to 3, or 4 for panels at full width.
    columns: usize,
    /// Collapsed because it is tall.
    folded: bool,
    title: String,
    caption: String,
    keys: Vec<KeyHtml>,
    hollow: String,
    hollow_svg: String,
    panels: Vec<String>,
    notes: Vec<String>,
}

struct KeyHtml {
    series: usize,
    label: String,
    svg: String,
}

fn figures(drawings: &[Drawing]) -> Vec<FigureHtml> {
    let mut figures: Vec<FigureHtml> = drawings.iter().map(figure_html).collect();
    // The same points are missing from nearly every figure: list them once.
    let mut said: Vec<String> = Vec::new();
    for figure in &mut figures {
        let (again, new): (Vec<String>, Vec<String>) = figure.notes.drain(..).partition(|note| said.contains(note));
        said.extend(new.iter().cloned());
        figure.notes = new;
        if !again.is_empty() {
            figure.notes.push("The points named above as not shown are not shown here either.".to_owned());
        }
    }
    figures
}

fn figure_html(drawing: &Drawing) -> FigureHtml {
    let key = |key: &figure::Key| KeyHtml {
        series: key.series,
        label: key.label.clone(),
        svg: figure::key_svg(key.series, figure::Face::of(key)),
    };
    let panel = |panel: &chart::Panel| {
        let title = if panel.title.is_empty() { String::new() } else { format!(": {}", panel.title) };
        chart::panel_svg(panel, &format!("{}{title}", drawing.title))
    };
    let flame = |flame: &figure::Flame| flame.svg(&drawing.title);
    FigureHtml {
        columns: if drawing.flames.is_empty() { drawing.panels.len().clamp(1, 3) } else { 4 },
        folded: drawing.panels.iter().any(|panel| !panel.below.is_empty()),
        title: drawing.title.clone(),
        caption: drawing.caption.clone(),
        keys: drawing.legend().iter().map(key).collect(),
        hollow: drawing.hollow.clone(),
        hollow_svg: figure::key_svg(drawing.keys.first().map_or(0, |key| key.series), figure::Face::Hollow),
        panels: drawing.panels.iter().map(panel).chain(drawing.flames.iter().map(flame)).collect(),
        notes: drawing.notes.clone(),
    }
}
