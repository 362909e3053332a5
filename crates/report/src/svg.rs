//! A small SVG writer. All text is escaped, numbers are finite and short, and output is deterministic for snapshots.

use std::fmt::Write;

pub(crate) fn image((width, height): (f64, f64), label: &str, drawn: &str) -> String {
    let (height, label) = (height.ceil(), escaped(label));
    format!("<svg class=\"q\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{drawn}</svg>")
}

pub(crate) fn group(class: &str, drawn: &str) -> String {
    format!("<g class=\"{class}\">{drawn}</g>")
}

pub(crate) fn moved(x: f64, y: f64, drawn: &str) -> String {
    format!("<g transform=\"translate({} {})\">{drawn}</g>", rounded(x), rounded(y))
}

pub(crate) fn path(class: &str, path: &Path) -> String {
    format!("<path class=\"{class}\" d=\"{}\"/>", path.0)
}

pub(crate) fn stroke(class: &str, width: f64, path: &Path) -> String {
    format!("<path class=\"{class}\" stroke-width=\"{}\" d=\"{}\"/>", rounded(width), path.0)
}

pub(crate) fn path_with_tip(class: &str, path: &Path, text: &str) -> String {
    match text {
        "" => self::path(class, path),
        text => format!("<path class=\"{class}\" d=\"{}\">{}</path>", path.0, tip(text)),
    }
}

pub(crate) fn text(class: &str, x: f64, y: f64, text: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<text{class} x=\"{}\" y=\"{}\">{}</text>", rounded(x), rounded(y), escaped(text))
}

pub(crate) fn lines(class: &str, (x, y): (f64, f64), step: f64, lines: &[String]) -> String {
    let line = |(index, line): (usize, &String)| text(class, x, y + step * index as f64, line);
    lines.iter().enumerate().map(line).collect()
}

pub(crate) fn tip(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(text)) }
}

/// Rounds to a tenth of a unit, which is invisible in a 380-unit panel. Panics unless `value` is finite: callers omit
/// other points and report the omission.
pub(crate) fn rounded(value: f64) -> f64 {
    assert!(value.is_finite(), "coordinate {value}");
    let rounded = (value * 10.0).round() / 10.0;
    // `-0` is valid XML but noise in snapshots.
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// Escapes `text` as XML or HTML character data, also safe inside a quoted attribute.
pub(crate) fn escaped(text: &str) -> String {
    let text = analysis::visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // XML 1.0 cannot represent the last two characters; the replacement character keeps the file well formed.
    text.replace('"', "&quot;").replace('\'', "&#39;").replace(['\u{FFFE}', '\u{FFFF}'], "\u{FFFD}")
}

#[derive(Default)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Path {
        let mut path = Path::default();
        for (x, y) in points {
            path.command(if path.0.is_empty() { 'M' } else { 'L' }, &[x, y]);
        }
        path
    }

    pub(crate) fn to(&mut self, x: f64, y: f64) -> &mut Self {
        self.command('M', &[x, y])
    }

    pub(crate) fn across(&mut self, x: f64) -> &mut Self {
        self.command('H', &[x])
    }

    pub(crate) fn down(&mut self, y: f64) -> &mut Self {
        self.command('V', &[y])
    }

    pub(crate) fn circle(x: f64, y: f64, radius: f64) -> Path {
        let mut path = Path::default();
        path.to(x - radius, y);
        for side in [1.0, -1.0] {
            path.command('a', &[radius, radius, 0.0, 1.0, 0.0, side * 2.0 * radius, 0.0]);
        }
        path.shut();
        path
    }

    pub(crate) fn shut(&mut self) -> &mut Self {
        self.0.push('z');
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn command(&mut self, letter: char, values: &[f64]) -> &mut Self {
        let values = values.iter().map(|value| rounded(*value).to_string()).collect::<Vec<_>>();
        let _ = write!(self.0, "{letter}{}", values.join(" "));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64) -> String {
        rounded(value).to_string()
    }

    #[test]
    fn numbers_are_short() {
        let table =
            [(0.0, "0"), (-0.01, "0"), (1.0, "1"), (1.04, "1"), (1.239, "1.2"), (-2.5, "-2.5"), (1e6, "1000000")];
        for (value, text) in table {
            assert_eq!(shown(value), text, "{value:?}");
        }
    }

    #[test]
    #[should_panic(expected = "coordinate NaN")]
    fn nan_is_a_bug() {
        shown(f64::NAN);
    }

    #[test]
    fn text_and_attributes_are_escaped() {
        let drawn = text("", 1.5, 0.0, "</text><script>&\u{0}\u{FFFF}")
            + &path("a", Path::through([(0.0, 1.0), (2.0, 3.0)]).across(4.0).down(5.0).shut());
        insta::assert_snapshot!(image((1.0, 1.5), "a\"b'<>&", &drawn), @r#"<svg class="q" viewBox="0 0 1 2" role="img" aria-label="a&quot;b&#39;&lt;&gt;&amp;"><text x="1.5" y="0">&lt;/text&gt;&lt;script&gt;&amp;\x00�</text><path class="a" d="M0 1L2 3H4V5z"/></svg>"#);
    }
}
