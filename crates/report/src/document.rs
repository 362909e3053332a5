//! A report as a list of blocks, which renderers lay out without knowing their meaning.

#[derive(Default)]
pub(crate) struct Document {
    pub(crate) study: String,
    pub(crate) what: String,
    pub(crate) started: String,
    pub(crate) question: String,
    pub(crate) banners: Vec<Banner>,
    pub(crate) answer: Vec<(String, &'static str)>,
    pub(crate) no_answer: String,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) sections: Vec<Section>,
}

pub(crate) struct Banner {
    pub(crate) text: String,
    /// Shell command to copy, which is never shortened.
    pub(crate) command: String,
}

pub(crate) struct Section {
    /// Link target of the section, unique in the document.
    pub(crate) anchor: &'static str,
    pub(crate) heading: String,
    /// Number of entries that links show, as in `Warnings (3)`; `None` to show no number.
    pub(crate) count: Option<usize>,
    /// Whether only the heading is visible at first, in forms that can fold sections.
    pub(crate) folded: bool,
    pub(crate) blocks: Vec<(Reach, Block)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    All,
    /// Shown in all forms but the terminal.
    Long,
}

pub(crate) enum Block {
    Heading(String),
    Text(String),
    Note(String),
    List(Vec<Item>),
    Pairs(Vec<(String, String)>),
    Table(Table),
    /// Text whose lines must not be wrapped, such as a command or a study.
    Code(String),
    /// Blocks under a title, collapsed if the form supports it.
    Fold(String, Vec<Block>),
    /// Figures of the metrics that the study asks about, or supporting figures. Omitted if the form cannot show any.
    Figures {
        supporting: bool,
    },
}

pub(crate) struct Item {
    pub(crate) text: String,
    pub(crate) details: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// Title of the table; empty if the section's heading suffices.
    pub(crate) title: String,
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Extra lines for the terminal, each with the index of the row that it follows.
    pub(crate) below: Vec<(usize, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    pub(crate) text: String,
    pub(crate) hint: String,
    /// Whether the column has numbers, which are aligned to the right.
    pub(crate) right: bool,
    pub(crate) room: Room,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Keep,
    /// Columns that a table omits if it is too wide, the lowest rank first.
    Ranked(u8),
    /// Columns that a table omits after the ranked ones, the last one first.
    Drop,
    /// Columns that every terminal omits.
    Long,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) hint: String,
    pub(crate) tone: Tone,
    pub(crate) sentence: bool,
    pub(crate) tags: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Warning,
    Bad,
    Muted,
}

impl Section {
    pub(crate) fn new(anchor: &'static str, heading: &str) -> Section {
        Section { anchor, heading: heading.to_owned(), count: None, folded: false, blocks: Vec::new() }
    }

    pub(crate) fn all(&mut self, blocks: impl IntoIterator<Item = Block>) {
        self.blocks.extend(blocks.into_iter().map(|block| (Reach::All, block)));
    }

    pub(crate) fn long(&mut self, blocks: impl IntoIterator<Item = Block>) {
        self.blocks.extend(blocks.into_iter().map(|block| (Reach::Long, block)));
    }
}

impl Item {
    pub(crate) fn new(text: impl Into<String>) -> Item {
        Item { text: text.into(), details: Vec::new() }
    }
}

impl Table {
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let heads = self.heads.iter().map(|head| head.text.as_str()).collect::<Vec<_>>().join(" | ");
        let cells = |row: &Vec<Cell>| row.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" | ");
        let rows = self.rows.iter().map(cells);
        std::iter::once(format!("{}\n{heads}", self.title)).chain(rows).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn unless_empty(self) -> Option<Table> {
        (!self.rows.is_empty()).then_some(self)
    }
}

/// A table to which columns are added one by one. Its rows may have any type.
pub(crate) struct Columns<T> {
    rows: Vec<T>,
    pub(crate) table: Table,
}

impl<T> Columns<T> {
    pub(crate) fn of(rows: impl IntoIterator<Item = T>) -> Columns<T> {
        let rows = rows.into_iter().collect::<Vec<_>>();
        let table = Table { rows: vec![Vec::new(); rows.len()], ..Table::default() };
        Columns { rows, table }
    }

    pub(crate) fn column<C: Into<Cell>>(mut self, head: Head, cell: impl Fn(&T) -> C) -> Columns<T> {
        self.table.heads.push(head);
        self.table.rows.iter_mut().zip(&self.rows).for_each(|(cells, row)| cells.push(cell(row).into()));
        self
    }

    pub(crate) fn text<C: Into<Cell>>(self, head: &str, cell: impl Fn(&T) -> C) -> Columns<T> {
        self.column(Head::text(head), cell)
    }

    pub(crate) fn number<C: Into<Cell>>(self, head: &str, cell: impl Fn(&T) -> C) -> Columns<T> {
        self.column(Head::number(head), cell)
    }

    pub(crate) fn when(self, is_shown: bool, add: impl FnOnce(Columns<T>) -> Columns<T>) -> Columns<T> {
        if is_shown { add(self) } else { self }
    }

    pub(crate) fn titled(self, title: impl Into<String>) -> Table {
        Table { title: title.into(), ..self.table }
    }

    /// Finishes a table that omits columns between the third and the last if it is too wide.
    pub(crate) fn plain(mut self, title: impl Into<String>) -> Table {
        let last = self.table.heads.len() - 1;
        self.table.heads[3.min(last)..last].iter_mut().for_each(|head| head.room = Room::Drop);
        self.titled(title)
    }
}

impl Head {
    pub(crate) fn text(text: impl Into<String>) -> Head {
        Head { text: text.into(), hint: String::new(), right: false, room: Room::Keep }
    }

    pub(crate) fn number(text: impl Into<String>) -> Head {
        Head { right: true, ..Head::text(text) }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Head {
        Head { hint: hint.into(), ..self }
    }

    pub(crate) fn room(self, room: Room) -> Head {
        Head { room, ..self }
    }
}

impl Cell {
    pub(crate) fn sentence(text: impl Into<String>) -> Cell {
        Cell { sentence: true, ..Cell::from(text) }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Cell {
        Cell { hint: hint.into(), ..self }
    }

    pub(crate) fn tone(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }
}
