//! The page: one file with everything in it, for a browser that has no network.

mod sections;
mod table;
#[cfg(test)]
mod tests;

use askama::Template;

use crate::chart::style::{self, Sheet};
use crate::chart::{self};
use crate::figure::{self, Detail, Drawing};
use crate::sections::{added, miss_ratio};
use crate::table as wanted;
use analysis::findings::Findings;
use analysis::over_requests;

/// A page may not be larger, bytes: it is sent by mail and opened on telephones.
pub const PAGE_LIMIT: usize = 1_000_000;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// It is too large with the least that it can show.
    #[error("the page of run `{run}` would have {bytes} bytes, {PAGE_LIMIT} is the limit")]
    TooLarge {
        /// Name of the run.
        run: String,
        /// Its size.
        bytes: usize,
    },
    /// The template could not be filled in.
    #[error("the page of run `{run}` could not be written")]
    Template {
        /// Name of the run.
        run: String,
        /// What the template engine says.
        source: askama::Error,
    },
}

/// Every figure as an SVG file of its own: the stem of its name and its text. Light, for a paper.
pub fn figure_svgs(findings: &Findings) -> Vec<(String, String)> {
    let drawings = figure::figures(findings, Detail::FULL);
    drawings.iter().map(|drawing| (drawing.name.clone(), figure::svg_file(drawing))).collect()
}

/// The report as one page: no other file, no network, whole without script, below [`PAGE_LIMIT`].
///
/// A study with very many design points gets fewer words at its markers and coarser curves, never fewer rows.
///
/// # Errors
/// [`HtmlError::TooLarge`] where even that is not enough; the other renderers have no limit.
pub fn html(findings: &Findings) -> Result<String, HtmlError> {
    let mut bytes = 0;
    for detail in Detail::ALL {
        let page = Page::new(findings, detail).render();
        let page = page.map_err(|source| HtmlError::Template { run: findings.run.clone(), source })?;
        if page.len() < PAGE_LIMIT {
            return Ok(page);
        }
        bytes = page.len();
    }
    Err(HtmlError::TooLarge { run: findings.run.clone(), bytes })
}

/// What the template is given.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    f: &'a Findings,
    css: String,
    script: &'static str,
    no_answer: &'static str,
    head: Vec<(String, String)>,
    figures: Vec<FigureHtml>,
    results_caption: String,
    results: String,
    tables: Vec<(String, String)>,
    miss_ratios: Vec<(String, String)>,
    added: Vec<(String, String)>,
    over_requests: Vec<String>,
    steps: Vec<(String, String)>,
    more: Option<String>,
    variances: String,
    failures: Option<String>,
    usl: Option<String>,
    usl_points: Option<String>,
    effects: Vec<(String, String)>,
    states: String,
    machine: Vec<(String, String)>,
    details: Vec<(String, String)>,
    calibration: String,
    doctor: Option<String>,
    builds: Option<String>,
    command: String,
    versions: String,
}

struct FigureHtml {
    /// One to three: how wide it wants to be.
    columns: usize,
    /// It is tall: shown when asked for.
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

impl<'a> Page<'a> {
    fn new(f: &'a Findings, detail: Detail) -> Page<'a> {
        let mut figures: Vec<FigureHtml> = figure::figures(f, detail).iter().map(figure_html).collect();
        // The same points are missing from nearly every figure: said in full once.
        let mut said: Vec<String> = Vec::new();
        for figure in &mut figures {
            let (again, new): (Vec<String>, Vec<String>) = figure.notes.drain(..).partition(|note| said.contains(note));
            said.extend(new.iter().cloned());
            figure.notes = new;
            if !again.is_empty() {
                figure.notes.push("The points named above as not shown are not shown here either.".to_owned());
            }
        }
        Page {
            f,
            css: format!("{}{}", include_str!("../templates/report.css"), style::css(Sheet::Page)),
            script: include_str!("../templates/report.js"),
            no_answer: if f.rows.iter().any(|row| row.n > 0) { "none was drawn" } else { "nothing was measured" },
            head: sections::head(f),
            figures,
            results_caption: sections::results_caption(f),
            results: sections::results(f, detail.tips),
            tables: sections::sheets(wanted::sheets(f)),
            miss_ratios: sections::sheets(miss_ratio::sheets(f)),
            added: sections::sheets(added::sheets(f)),
            over_requests: over_requests::words(f).collect(),
            steps: sections::sheets(wanted::steps(f)),
            more: sections::other_metrics(f),
            variances: sections::variances(f),
            failures: sections::failures(f),
            usl: sections::usl(f),
            usl_points: sections::usl_points(f),
            effects: sections::effects(f),
            states: sections::states(f),
            machine: sections::machine(f),
            details: sections::details(f),
            calibration: sections::calibration(f),
            doctor: sections::doctor(f),
            builds: sections::builds(f),
            command: sections::command(f),
            versions: sections::versions(f),
        }
    }
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
    FigureHtml {
        columns: drawing.panels.len().clamp(1, 3),
        folded: drawing.panels.iter().any(|panel| !panel.below.is_empty()),
        title: drawing.title.clone(),
        caption: drawing.caption.clone(),
        keys: drawing.legend().iter().map(key).collect(),
        hollow: drawing.hollow.clone(),
        hollow_svg: figure::key_svg(drawing.keys.first().map_or(0, |key| key.series), figure::Face::Hollow),
        panels: drawing.panels.iter().map(panel).collect(),
        notes: drawing.notes.clone(),
    }
}
