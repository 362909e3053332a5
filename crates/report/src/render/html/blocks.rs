//! Writes the blocks of a document as HTML.

use crate::document::{Block, Cell, Head, Item, Room, Section, Table, Tone};
use crate::svg::escaped;

pub(super) fn titled(section: &Section) -> String {
    let count = section.count.map_or_else(String::new, |count| format!(" ({count})"));
    format!("{}{count}", section.heading)
}

/// Writes blocks. `hints` enables tooltips. Tables and lists show `rows` rows and count the rest.
pub(super) struct Writer {
    pub(super) figures: [String; 2],
    pub(super) hints: bool,
    pub(super) rows: usize,
}

impl Writer {
    /// Renders a section with its heading.
    pub(super) fn section(&self, section: &Section) -> String {
        let blocks = section.blocks.iter().map(|(_, block)| self.block(block)).collect::<String>();
        let heading = begin("h2", &[("id", section.anchor)]) + &escaped(&titled(section)) + "</h2>";
        match section.folded {
            true => format!("<details class=\"section\"><summary>{heading}</summary>\n{blocks}</details>\n"),
            false => format!("{heading}\n{blocks}"),
        }
    }

    fn block(&self, block: &Block) -> String {
        match block {
            Block::Heading(text) => element("h3", "", text),
            Block::Text(text) => element("p", "", text),
            Block::Note(text) => element("p", "cap", text),
            Block::List(items) => {
                let shown = items.iter().take(self.rows).map(|item| self.item(item)).collect::<String>();
                format!("<ul class=\"warn\">{shown}{}</ul>\n", left_out("li", items.len(), self.rows))
            }
            Block::Pairs(pairs) => {
                let pair = |(name, value): &(String, String)| element("dt", "", name) + &element("dd", "", value);
                format!("<dl class=\"facts\">{}</dl>\n", pairs.iter().map(pair).collect::<String>())
            }
            Block::Table(found) => {
                let title = if found.title.is_empty() { String::new() } else { element("h3", "", &found.title) };
                title + &table(found, self.hints, self.rows) + &left_out("p", found.rows.len(), self.rows)
            }
            Block::Code(text) => element("pre", "", text),
            Block::Fold(title, blocks) => {
                let blocks = blocks.iter().map(|block| self.block(block)).collect::<String>();
                format!("<details>{}{blocks}</details>\n", element("summary", "", title))
            }
            Block::Figures { supporting } => self.figures[usize::from(*supporting)].clone(),
        }
    }

    fn item(&self, item: &Item) -> String {
        let summary = text(&item.text);
        if item.details.is_empty() {
            return format!("<li>{summary}</li>\n");
        }
        let details = item.details.iter().take(self.rows).map(|detail| element("li", "", detail)).collect::<String>();
        let more = left_out("li", item.details.len(), self.rows);
        format!("<li><details><summary>{summary}</summary><ul>{details}{more}</ul></details></li>\n")
    }
}

/// Escapes text and marks code between backticks as `<code>`.
pub(super) fn text(text: &str) -> String {
    let parts = text.split('`').collect::<Vec<_>>();
    // If the number of parts is even, a backtick has no partner.
    if parts.len() % 2 == 0 {
        return escaped(text);
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    };
    parts.iter().enumerate().map(part).collect()
}

fn element(name: &str, class: &str, content: &str) -> String {
    // In a study file or command, backticks do not mark code.
    let content = if name == "pre" { escaped(content) } else { text(content) };
    format!("{}{content}</{name}>\n", begin(name, &[("class", class)]))
}

fn left_out(name: &str, all: usize, shown: usize) -> String {
    let Some(more @ 1..) = all.checked_sub(shown) else { return String::new() };
    let text = format!("{more} more, left out of this page for its size; `quintain report RUN --format md` has them.");
    element(name, "cap", &text)
}

fn table(table: &Table, hints: bool, rows: usize) -> String {
    let head = |head: &Head| {
        let class = if head.right { "n" } else { "" };
        begin("th", &[("class", class), ("title", &head.hint)]) + &escaped(&head.text)
    };
    let cell = |(cell, head): (&Cell, &Head)| {
        let hint = if hints || head.room == Room::Keep { &cell.hint } else { "" };
        let tags = cell.tags.iter().map(|tag| format!(" <span class=\"tag bad\">{}</span>", escaped(tag)));
        let tags = tags.collect::<String>();
        begin("td", &[("class", &classes(cell, head.right)), ("title", hint)]) + &text(&cell.text) + &tags
    };
    // Omitting the end tags of cells and rows makes a table of 500 rows a third smaller.
    let row = |row: &Vec<Cell>| format!("<tr>{}", row.iter().zip(&table.heads).map(cell).collect::<String>());
    let heads = table.heads.iter().map(head).collect::<String>();
    let rows = table.rows.iter().take(rows).map(row).collect::<String>();
    let start = "<div class=\"scroll\" tabindex=\"0\"><table>";
    format!("{start}<thead><tr>{heads}</thead><tbody>{rows}</tbody></table></div>\n")
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

fn begin(name: &str, attributes: &[(&str, &str)]) -> String {
    let given = attributes.iter().filter(|(_, value)| !value.is_empty());
    format!("<{name}{}>", given.map(|(name, value)| format!(" {name}=\"{}\"", escaped(value))).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped() {
        let tagged = Cell { tags: vec!["<b>".to_owned()], ..Cell::from("go") };
        let rows = vec![vec![Cell::from("<1>").hint("\"x\" & 'y'"), tagged]];
        let heads = vec![Head::number("a<"), Head::text("b").hint("\"")];
        let html = table(&Table { heads, rows, ..Table::default() }, true, usize::MAX);
        insta::assert_snapshot!(html, @r#"<div class="scroll" tabindex="0"><table><thead><tr><th class="n">a&lt;<th title="&quot;">b</thead><tbody><tr><td class="n" title="&quot;x&quot; &amp; &#39;y&#39;">&lt;1&gt;<td class="v">go <span class="tag bad">&lt;b&gt;</span></tbody></table></div>"#);
    }
}
