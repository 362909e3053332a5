use std::fmt::Write;

use super::FigureParts;
use crate::document::{Block, Cell, Figures, Room, Section, Table, Tone};
use crate::svg::escape;

/// A section with its heading. `hints` enables tooltips. Tables and lists have at most `rows` rows
/// and state how many are missing.
pub(super) fn section(section: &Section, figures: &FigureParts, hints: bool, rows: usize) -> String {
    let mut html = String::from(if section.folded { "<details class=\"section\"><summary>" } else { "" });
    begin(&mut html, "h2", &[("id", section.anchor)]);
    escape(&mut html, &titled(section));
    html.push_str(if section.folded { "</h2></summary>\n" } else { "</h2>\n" });
    let writer = Writer { figures, hints, rows };
    section.blocks.iter().for_each(|(_, block)| writer.block(&mut html, block));
    html.push_str(if section.folded { "</details>\n" } else { "" });
    html
}

pub(super) fn titled(section: &Section) -> String {
    let count = section.count.map_or_else(String::new, |count| format!(" ({count})"));
    format!("{}{count}", section.heading)
}

struct Writer<'a> {
    figures: &'a FigureParts,
    hints: bool,
    rows: usize,
}

impl Writer<'_> {
    fn block(&self, html: &mut String, block: &Block) {
        match block {
            Block::Heading(text) => element(html, "h3", "", text),
            Block::Text(text) => element(html, "p", "", text),
            Block::Note(text) => element(html, "p", "cap", text),
            Block::List(items) => {
                html.push_str("<ul class=\"warn\">");
                for item in items.iter().take(self.rows) {
                    html.push_str("<li>");
                    if item.details.is_empty() {
                        text(html, &item.text);
                    } else {
                        html.push_str("<details><summary>");
                        text(html, &item.text);
                        html.push_str("</summary><ul>");
                        item.details.iter().take(self.rows).for_each(|detail| element(html, "li", "", detail));
                        left_out(html, "li", item.details.len(), self.rows);
                        html.push_str("</ul></details>");
                    }
                    html.push_str("</li>\n");
                }
                left_out(html, "li", items.len(), self.rows);
                html.push_str("</ul>\n");
            }
            Block::Pairs(pairs) => {
                html.push_str("<dl class=\"facts\">");
                for (name, value) in pairs {
                    element(html, "dt", "", name);
                    element(html, "dd", "", value);
                }
                html.push_str("</dl>\n");
            }
            Block::Table(found) => {
                if !found.title.is_empty() {
                    element(html, "h3", "", &found.title);
                }
                table(html, found, self.hints, self.rows);
                left_out(html, "p", found.rows.len(), self.rows);
            }
            Block::Code(text) => element(html, "pre", "", text),
            Block::Fold(title, blocks) => {
                html.push_str("<details>");
                element(html, "summary", "", title);
                blocks.iter().for_each(|block| self.block(html, block));
                html.push_str("</details>\n");
            }
            Block::Figures(Figures::Answer) => html.push_str(&self.figures.answer),
            Block::Figures(Figures::Supporting) => html.push_str(&self.figures.supporting),
        }
    }
}

/// Escapes text, with code between backticks as `<code>`.
pub(super) fn text(html: &mut String, text: &str) {
    let parts = text.split('`').collect::<Vec<_>>();
    // An even number of parts has a backtick without a partner.
    if parts.len() % 2 == 0 {
        return escape(html, text);
    }
    for (at, part) in parts.into_iter().enumerate() {
        let (open, close) = if at % 2 == 1 { ("<code>", "</code>") } else { ("", "") };
        html.push_str(open);
        escape(html, part);
        html.push_str(close);
    }
}

fn element(html: &mut String, name: &str, class: &str, content: &str) {
    begin(html, name, &[("class", class)]);
    match name {
        // A study file or command can contain backticks.
        "pre" => escape(html, content),
        _ => text(html, content),
    }
    let _ = writeln!(html, "</{name}>");
}

fn left_out(html: &mut String, name: &str, all: usize, shown: usize) {
    if let Some(more @ 1..) = all.checked_sub(shown) {
        let text =
            format!("{more} more, left out of this page for its size; `quintain report RUN --format md` has them.");
        element(html, name, "cap", &text);
    }
}

fn table(html: &mut String, table: &Table, hints: bool, rows: usize) {
    html.push_str("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
    for head in &table.heads {
        begin(html, "th", &[("class", if head.right { "n" } else { "" }), ("title", &head.hint)]);
        escape(html, &head.text);
    }
    html.push_str("</thead><tbody>");
    for row in table.rows.iter().take(rows) {
        // Omitted end tags of cells and rows make a table of 500 rows a third smaller.
        html.push_str("<tr>");
        for (cell, head) in row.iter().zip(&table.heads) {
            let hint = if hints || head.room == Room::Keep { &cell.hint } else { "" };
            begin(html, "td", &[("class", &classes(cell, head.right)), ("title", hint)]);
            text(html, &cell.text);
            for tag in &cell.tags {
                html.push_str(" <span class=\"tag bad\">");
                escape(html, tag);
                html.push_str("</span>");
            }
        }
    }
    html.push_str("</tbody></table></div>\n");
}

fn classes(cell: &Cell, right: bool) -> String {
    let shape = match cell {
        _ if right => "n",
        cell if cell.sentence => "w",
        cell if !cell.tags.is_empty() => "v",
        _ => "",
    };
    let tone = match cell.tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Warning => "warning",
        Tone::Bad => "bad",
        Tone::Muted => "mu",
    };
    [shape, tone].into_iter().filter(|class| !class.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A start tag, with those of its attributes that have a value.
fn begin(html: &mut String, name: &str, attributes: &[(&str, &str)]) {
    let _ = write!(html, "<{name}");
    for (name, value) in attributes.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(html, " {name}=\"");
        escape(html, value);
        html.push('"');
    }
    html.push('>');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Head;

    #[test]
    fn cells_are_escaped() {
        let tagged = Cell { tags: vec!["<b>".to_owned()], ..Cell::new("go") };
        let rows = vec![vec![Cell::new("<1>").hint("\"x\" & 'y'"), tagged]];
        let heads = vec![Head::number("a<"), Head::text("b").hint("\"")];
        let mut html = String::new();
        table(&mut html, &Table { heads, rows, ..Table::default() }, true, usize::MAX);
        insta::assert_snapshot!(html, @r#"<div class="scroll" tabindex="0"><table><thead><tr><th class="n">a&lt;<th title="&quot;">b</thead><tbody><tr><td class="n" title="&quot;x&quot; &amp; &#39;y&#39;">&lt;1&gt;<td class="v">go <span class="tag bad">&lt;b&gt;</span></tbody></table></div>"#);
    }
}
