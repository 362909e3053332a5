//! A small SVG writer. All text is escaped, numbers are finite and short, and output is deterministic for snapshots.

use std::fmt::Write;

#[derive(Debug, Default)]
pub(crate) struct Svg {
    text: String,
    open: Vec<&'static str>,
}

impl Svg {
    /// Begins an element, which [`Element::open`], [`Element::empty`] or [`Element::text`] must finish.
    pub(crate) fn element(&mut self, name: &'static str) -> Element<'_> {
        let _ = write!(self.text, "<{name}");
        Element { svg: self, name }
    }

    pub(crate) fn image((width, height): (f64, f64), label: &str, draw: impl FnOnce(&mut Svg)) -> String {
        let mut svg = Svg::default();
        let view = format!("0 0 {width} {}", height.ceil());
        let image = svg.element("svg").attr("class", "q").attr("viewBox", &view);
        image.attr("role", "img").attr("aria-label", label).open();
        draw(&mut svg);
        svg.close();
        svg.finish()
    }

    pub(crate) fn group(&mut self, class: &str) {
        self.element("g").attr("class", class).open();
    }

    pub(crate) fn path(&mut self, class: &str, path: &Path) {
        self.element("path").attr("class", class).attr("d", &path.0).empty();
    }

    pub(crate) fn stroke(&mut self, class: &str, width: f64, path: &Path) {
        self.element("path").attr("class", class).num("stroke-width", width).attr("d", &path.0).empty();
    }

    pub(crate) fn path_with_tip(&mut self, class: &str, path: &Path, tip: &str) {
        if tip.is_empty() {
            return self.path(class, path);
        }
        self.element("path").attr("class", class).attr("d", &path.0).open();
        self.tip(tip);
        self.close();
    }

    pub(crate) fn lines(&mut self, class: &str, (x, y): (f64, f64), step: f64, lines: &[String]) {
        for (index, line) in lines.iter().enumerate() {
            let text = self.element("text");
            let text = if class.is_empty() { text } else { text.attr("class", class) };
            text.num("x", x).num("y", y + step * index as f64).text(line);
        }
    }

    pub(crate) fn tip(&mut self, text: &str) {
        if !text.is_empty() {
            self.element("title").text(text);
        }
    }

    pub(crate) fn close(&mut self) {
        let name = self.open.pop().expect("as many opened as closed");
        let _ = write!(self.text, "</{name}>");
    }

    pub(crate) fn finish(self) -> String {
        assert!(self.open.is_empty(), "`{:?}` still open", self.open);
        self.text
    }
}

#[must_use = "an element must be finished"]
pub(crate) struct Element<'svg> {
    svg: &'svg mut Svg,
    name: &'static str,
}

impl Element<'_> {
    pub(crate) fn attr(self, name: &str, value: &str) -> Self {
        let _ = write!(self.svg.text, " {name}=\"{}\"", escaped(value));
        self
    }

    pub(crate) fn num(self, name: &str, value: f64) -> Self {
        self.attr(name, &rounded(value).to_string())
    }

    pub(crate) fn open(self) {
        self.svg.text.push('>');
        self.svg.open.push(self.name);
    }

    pub(crate) fn empty(self) {
        self.svg.text.push_str("/>");
    }

    pub(crate) fn text(self, text: &str) {
        let _ = write!(self.svg.text, ">{}</{}>", escaped(text), self.name);
    }
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
    let mut out = String::new();
    for c in analysis::visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML 1.0 cannot represent these characters; the replacement character keeps the file well formed.
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[derive(Debug, Default, Clone)]
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

    pub(crate) fn stretch(&mut self, dx: f64, dy: f64) -> &mut Self {
        self.command('l', &[dx, dy])
    }

    pub(crate) fn across(&mut self, x: f64) -> &mut Self {
        self.command('H', &[x])
    }

    pub(crate) fn down(&mut self, y: f64) -> &mut Self {
        self.command('V', &[y])
    }

    pub(crate) fn circle(&mut self, x: f64, y: f64, radius: f64) -> &mut Self {
        self.to(x - radius, y);
        for side in [1.0, -1.0] {
            self.command('a', &[radius, radius, 0.0, 1.0, 0.0, side * 2.0 * radius, 0.0]);
        }
        self.shut()
    }

    pub(crate) fn shut(&mut self) -> &mut Self {
        self.0.push('z');
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn command(&mut self, letter: char, values: &[f64]) -> &mut Self {
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
        let mut svg = Svg::default();
        svg.element("g").attr("class", "a\"b'<>&").open();
        svg.element("text").num("x", 1.5).text("</text><script>&\u{0}\u{FFFF}");
        svg.element("path").attr("d", &Path::through([(0.0, 1.0), (2.0, 3.0)]).across(4.0).down(5.0).shut().0).empty();
        svg.close();
        insta::assert_snapshot!(svg.finish(), @r#"<g class="a&quot;b&#39;&lt;&gt;&amp;"><text x="1.5">&lt;/text&gt;&lt;script&gt;&amp;\x00�</text><path d="M0 1L2 3H4V5z"/></g>"#);
    }
}
