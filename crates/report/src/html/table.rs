//! HTML tables, escaped.

use std::fmt::Write;

use crate::svg::escape;

/// One cell of a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    /// A class of the style sheet; `n` for numbers, `w` for sentences.
    class: &'static str,
    /// Shown when pointed at.
    hint: String,
    /// Small marks behind the text; those of `true` are grave.
    tags: Vec<(String, bool)>,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    pub(crate) fn number(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), class: "n", ..Cell::default() }
    }

    pub(crate) fn sentence(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), class: "w", ..Cell::default() }
    }

    pub(crate) fn class(self, class: &'static str) -> Cell {
        Cell { class, ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Cell {
        Cell { hint: hint.into(), ..self }
    }

    pub(crate) fn tag(mut self, text: impl Into<String>, grave: bool) -> Cell {
        self.tags.push((text.into(), grave));
        self
    }
}

/// The head of a column.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    text: String,
    /// Shown when pointed at.
    hint: String,
}

impl Head {
    pub(crate) fn new(text: impl Into<String>) -> Head {
        Head { text: text.into(), hint: String::new() }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Head {
        Head { hint: hint.into(), ..self }
    }
}

/// A table that scrolls by itself where the page is narrow. Heads of columns have the class of their first cell.
pub(crate) fn table(heads: &[Head], rows: &[Vec<Cell>]) -> String {
    let mut html = String::from("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
    for (index, head) in heads.iter().enumerate() {
        let class = rows.first().and_then(|row| row.get(index)).map_or("", |cell| cell.class);
        html.push_str("<th");
        attribute(&mut html, "class", if class == "n" { "n" } else { "" });
        attribute(&mut html, "title", &head.hint);
        html.push('>');
        escape(&mut html, &head.text);
    }
    html.push_str("</thead><tbody>");
    for row in rows {
        // HTML lets a parser end cells and rows; a table of 500 rows is a third smaller for it.
        html.push_str("<tr>");
        for cell in row {
            html.push_str("<td");
            attribute(&mut html, "class", cell.class);
            attribute(&mut html, "title", &cell.hint);
            html.push('>');
            escape(&mut html, &cell.text);
            for (text, grave) in &cell.tags {
                let class = if *grave { "tag bad" } else { "tag" };
                let _ = write!(html, " <span class=\"{class}\">");
                escape(&mut html, text);
                html.push_str("</span>");
            }
        }
    }
    html.push_str("</tbody></table></div>");
    html
}

/// Nothing for an empty value.
fn attribute(html: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        let _ = write!(html, " {name}=\"");
        escape(html, value);
        html.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped() {
        let rows = [vec![Cell::number("<1>").hint("\"x\" & 'y'"), Cell::text("go").tag("<b>", true)]];
        let html = table(&[Head::new("a<"), Head::new("b").hint("\"")], &rows);
        insta::assert_snapshot!(html, @r#"<div class="scroll" tabindex="0"><table><thead><tr><th class="n">a&lt;<th title="&quot;">b</thead><tbody><tr><td class="n" title="&quot;x&quot; &amp; &#39;y&#39;">&lt;1&gt;<td>go <span class="tag bad">&lt;b&gt;</span></tbody></table></div>"#);
    }
}
