//! Figures as PNG: the SVG file, rendered with the fonts in this crate.

use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Group, Node, Options, Tree};

use crate::ReportError;

/// Pixels per SVG unit, enough to be sharp on high-density screens and in print.
pub const PNG_SCALE: f32 = 2.0;

/// Maximum number of pixels of a PNG, each of which takes 4 bytes during rendering.
pub const PIXEL_LIMIT: u64 = 40_000_000;

/// The only available font family, whatever a style sheet names.
const FAMILY: &str = "DejaVu Sans";

/// Embedded fonts, because installed ones differ between machines or are missing.
const FACES: [&[u8]; 2] = [include_bytes!("../fonts/DejaVuSans.ttf"), include_bytes!("../fonts/DejaVuSans-Bold.ttf")];

/// A figure rendered as PNG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Png {
    /// Content of the PNG file.
    pub bytes: Vec<u8>,
    /// Characters missing from the font, each once. They are drawn as boxes.
    pub lacking: String,
}

/// Renders a figure of [`crate::figure_svgs`] as PNG at [`PNG_SCALE`], on white. Fails beyond [`PIXEL_LIMIT`],
/// and otherwise only for SVG from other sources.
pub fn figure_png(name: &str, svg: &str) -> Result<Png, ReportError> {
    let error = |what: &str, source| ReportError(format!("figure `{name}` {what}"), source);
    let tree = Tree::from_str(svg, &options()).map_err(|source| error("could not be drawn", Some(source.into())))?;
    let pixels = |units: f32| (units * PNG_SCALE).ceil() as u64;
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    let too_large = || {
        let what = format!("would have {width} x {height} pixels as PNG; the limit is {PIXEL_LIMIT} in total");
        error(&what, None)
    };
    if width.saturating_mul(height) > PIXEL_LIMIT {
        return Err(too_large());
    }
    let mut pixmap = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    pixmap.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(PNG_SCALE, PNG_SCALE), &mut pixmap.as_mut());
    let bytes = pixmap.encode_png().map_err(|source| error("could not be encoded as PNG", Some(source.into())))?;
    let mut lacking = String::new();
    find_lacking(tree.root(), &mut lacking);
    Ok(Png { bytes, lacking })
}

fn options() -> Options<'static> {
    let mut fonts = Database::new();
    FACES.iter().for_each(|face| fonts.load_font_data(face.to_vec()));
    // `sans-serif` ends each list of fonts in the style sheet; the renderer's last resort is `serif`, so both are set.
    fonts.set_sans_serif_family(FAMILY);
    fonts.set_serif_family(FAMILY);
    Options { font_family: FAMILY.to_owned(), fontdb: Arc::new(fonts), ..Options::default() }
}

/// Collects characters that are drawn as a box, which is glyph 0 of every font.
fn find_lacking(group: &Group, lacking: &mut String) {
    for node in group.children() {
        match node {
            Node::Group(inner) => find_lacking(inner, lacking),
            Node::Text(text) => {
                let glyphs = text.layouted().iter().flat_map(|span| &span.positioned_glyphs);
                for letter in glyphs.filter(|glyph| glyph.id.0 == 0).flat_map(|glyph| glyph.text.chars()) {
                    if !lacking.contains(letter) {
                        lacking.push(letter);
                    }
                }
            }
            Node::Path(_) | Node::Image(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use resvg::usvg::Rect;

    use super::*;
    use crate::{Background, figure_svgs};
    use analysis::findings::{Findings, RowState};
    use fixtures as example;

    fn every_figure() -> Vec<(String, String)> {
        let runs = [
            ("volley", example::volley()),
            ("through", example::through()),
            ("sweep", example::sweep()),
            ("threads", example::threads()),
            ("capacity", example::capacity()),
            ("builds", example::builds()),
        ];
        let figures = |(name, (run, records)): (&str, (study::record::Run, Vec<study::record::Record>))| {
            let figures = figure_svgs(&analysis::analyze(&run, &records), Background::Light);
            figures.into_iter().map(move |(figure, svg)| (format!("{name} {figure}"), svg)).collect::<Vec<_>>()
        };
        runs.into_iter().flat_map(figures).chain(figure_svgs(&wordy(), Background::Light)).collect()
    }

    fn wordy() -> Findings {
        let (run, records) = example::through();
        let mut findings = analysis::analyze(&run, &records);
        for (index, figure) in findings.figures.iter_mut().enumerate() {
            let space = if index % 2 == 0 { " " } else { "-" };
            figure.title = Some(vec!["WHO HAS MOST"; 20].join(space));
        }
        let mut failed = findings.rows[0].clone();
        failed.n = 0;
        failed.state = RowState::Failed(format!("cannot open /{}", "a-long-path/".repeat(20)));
        findings.rows.push(failed);
        findings.rows[0].label = "GHQ ".repeat(100);
        findings
    }

    fn pixmap(svg: &str) -> Pixmap {
        Pixmap::decode_png(&figure_png("x", svg).unwrap().bytes).unwrap()
    }

    fn with_text(text: &str) -> String {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="100" height="20"><text x="5" y="15">{text}</text></svg>"#
        )
    }

    fn wordless(svg: &str) -> String {
        let mut parts = svg.split("<text");
        let first = parts.next().unwrap().to_owned();
        first + &parts.map(|part| part.split_once("</text>").unwrap().1).collect::<String>()
    }

    /// Number of pixels that differ in a rectangle, whose sides are in SVG units.
    fn differing(one: &Pixmap, other: &Pixmap, (left, top, right, bottom): (u32, u32, u32, u32)) -> usize {
        let scale = PNG_SCALE as u32;
        let places = (top * scale..bottom * scale).flat_map(|y| (left * scale..right * scale).map(move |x| (x, y)));
        places.filter(|(x, y)| one.pixel(*x, *y) != other.pixel(*x, *y)).count()
    }

    #[test]
    fn renders_each_kind_of_figure_with_its_text() {
        let mut kinds = std::collections::BTreeSet::new();
        // A name such as `volley 1-ecdf-latency` consists of a run, a number, a kind and a metric.
        let kind = |name: &str| name.split('-').nth(1).unwrap_or_default().to_owned();
        render(every_figure().into_iter().filter(|(name, _)| kinds.insert(kind(name))));
        assert!(kinds.len() > 5, "{kinds:?}");
    }

    #[test]
    #[ignore = "slow: draws all figures of all examples twice"]
    fn renders_every_example_with_its_text() {
        render(every_figure());
    }

    fn render(figures: impl IntoIterator<Item = (String, String)>) {
        for (name, svg) in figures {
            let png = figure_png(&name, &svg).unwrap();
            assert!(png.bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
            assert_eq!(png.lacking, "", "{name}");
            let drawn = Pixmap::decode_png(&png.bytes).unwrap();
            let number = |key: &str| svg.split_once(key).unwrap().1.split('"').next().unwrap().parse::<u32>().unwrap();
            let (width, height) = (number(" width=\""), number(" height=\""));
            assert_eq!((drawn.width(), drawn.height()), (width * 2, height * 2), "{name}");
            assert!(drawn.pixels().iter().all(|pixel| pixel.is_opaque()), "{name}");
            let ground = drawn.pixels().iter().filter(|pixel| (pixel.red(), pixel.blue()) == (255, 255)).count();
            let all = drawn.pixels().len();
            assert!(ground > all * 3 / 4 && ground < all, "{name}: {ground} of {all} pixels are white");

            let without = pixmap(&wordless(&svg));
            let title = differing(&drawn, &without, (16, 10, 60, 30));
            assert!(title > 200, "{name}: {title} pixels of a title");
            assert_ne!(without, pixmap(&with_text("")), "{name}");
            assert!(without.pixels().iter().any(|pixel| pixel.red() < 255), "{name}: nothing but words");
        }
    }

    #[test]
    fn rendering_is_deterministic() {
        let (name, svg) = every_figure().swap_remove(0);
        assert_eq!(figure_png(&name, &svg).unwrap(), figure_png(&name, &svg).unwrap());
    }

    fn words(group: &Group, found: &mut Vec<(String, Rect)>) {
        for node in group.children() {
            match node {
                Node::Group(inner) => words(inner, found),
                Node::Text(text) => {
                    let all = text.chunks().iter().map(|chunk| chunk.text()).collect();
                    found.push((all, text.abs_bounding_box()));
                }
                Node::Path(_) | Node::Image(_) => {}
            }
        }
    }

    #[test]
    fn texts_stay_inside_and_do_not_overlap() {
        for (name, svg) in every_figure() {
            let tree = Tree::from_str(&svg, &options()).unwrap();
            let mut found = Vec::new();
            words(tree.root(), &mut found);
            assert!(found.len() > 5, "{name}");
            for (index, (text, place)) in found.iter().enumerate() {
                let inside = place.left() >= 0.0 && place.right() <= tree.size().width();
                assert!(inside && place.bottom() <= tree.size().height(), "{name}: {text} at {place:?}");
                for (other, at) in &found[..index] {
                    let apart = place.left() >= at.right() || at.left() >= place.right();
                    // The ascent and descent of two lines may touch, but their letters must not.
                    let under = place.top() >= at.bottom() - 1.0 || at.top() >= place.bottom() - 1.0;
                    assert!(apart || under, "{name}: `{text}` at {place:?} overlaps `{other}` at {at:?}");
                }
            }
        }
    }

    #[test]
    fn text_is_as_wide_as_layout_assumes() {
        let all = (' '..='~').chain("±×µσκ²–—…→≤≥≠éüß".chars());
        for letter in all.filter(|letter| *letter != ' ') {
            let svg = Tree::from_str(&text_of(letter, 20), &options()).unwrap();
            let mut found = Vec::new();
            words(svg.root(), &mut found);
            let (drawn, taken) =
                (found[0].1.width(), crate::panel::text_width_and_wrap::width(&letter.to_string(), 20.0 * 10.0));
            assert!(f64::from(drawn) <= taken + 0.5, "`{letter}`: ten are {drawn} wide, estimated as {taken}");
        }
    }

    fn text_of(letter: char, size: u32) -> String {
        let ten = crate::svg::escaped(&letter.to_string().repeat(10));
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text font-size="{size}">{ten}</text></svg>"#
        )
    }

    #[test]
    fn renders_letters_of_many_languages() {
        let none = pixmap(&with_text(""));
        for text in
            ["ABCxyz 0189", "±×µΩ σ²≤≥≠≈∞", "–—…‘’“”•−", "←↑→↓ ⇒", "x⁰¹²³⁹ x₀₁₉", "łőňğß", "Жук", "λόγος", "\u{FFFD}"]
        {
            let svg = with_text(text);
            assert_eq!(figure_png("x", &svg).unwrap().lacking, "", "{text}");
            assert!(differing(&pixmap(&svg), &none, (0, 0, 100, 20)) > 50, "{text}");
        }
    }

    #[test]
    fn missing_letters_are_boxes_and_reported() {
        let svg = with_text("日本 日 a");
        assert_eq!(figure_png("x", &svg).unwrap().lacking, "日本");
        assert!(differing(&pixmap(&svg), &pixmap(&with_text("a")), (5, 0, 40, 20)) > 50);
    }

    #[test]
    fn rejects_figures_that_are_too_large() {
        let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="808" height="250000"/>"#;
        let error = figure_png("3-line-throughput", svg).unwrap_err();
        insta::assert_snapshot!(error, @"figure `3-line-throughput` would have 1616 x 500000 pixels as PNG; the limit is 40000000 in total");
    }

    #[test]
    fn rejects_invalid_svg() {
        for text in ["", "<svg", "<html/>", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"0\" height=\"0\"/>"] {
            let error = figure_png("1-ecdf", text).unwrap_err();
            assert_eq!(error.to_string(), "figure `1-ecdf` could not be drawn", "{text}");
        }
    }
}
