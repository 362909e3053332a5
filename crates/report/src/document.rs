//! A report as a list of blocks: what renderers lay out without knowing what it says.

/// All of a report.
pub(crate) struct Document {
    /// Study, what of it, and time: `volley`, `run volley-20261120-210500`, `2026-11-20T21:05:00Z`.
    pub(crate) study: String,
    pub(crate) what: String,
    pub(crate) started: String,
    /// The question.
    pub(crate) question: String,
    /// What to know before anything else is read: a quick run, a run that has not ended.
    pub(crate) banners: Vec<Banner>,
    /// Sentences of the answer, each with the anchor of the section that it came from.
    pub(crate) answer: Vec<(String, &'static str)>,
    /// What stands for an answer where there is none.
    pub(crate) no_answer: String,
    /// The facts below the answer.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) sections: Vec<Section>,
}

/// A remark above everything.
pub(crate) struct Banner {
    pub(crate) text: String,
    /// A command line that a reader may paste: shown whole.
    pub(crate) command: String,
}

/// A chapter.
pub(crate) struct Section {
    /// Where links lead; unique in the document.
    pub(crate) anchor: &'static str,
    pub(crate) heading: String,
    /// Entries that a link to it counts: `Warnings (3)`.
    pub(crate) count: Option<usize>,
    pub(crate) blocks: Vec<(Reach, Block)>,
}

/// Which forms have a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All: few words, which a terminal has room for.
    All,
    /// Those that are read at leisure, not the terminal.
    Long,
}

/// A piece of a section.
pub(crate) enum Block {
    /// A heading below that of the section.
    Heading(String),
    /// A sentence or several.
    Text(String),
    /// How to read what stands above it.
    Note(String),
    /// Lines that stand alone, each with further ones behind it.
    List(Vec<Item>),
    /// Names and values.
    Pairs(Vec<(String, String)>),
    Table(Table),
    /// A text whose lines are kept: a command, a study.
    Code(String),
    /// What is one click away where there are clicks.
    Fold(String, Vec<Block>),
    /// All figures; where they cannot be drawn, nothing.
    Figures,
}

/// A line of a list.
pub(crate) struct Item {
    pub(crate) text: String,
    pub(crate) details: Vec<String>,
}

/// A table; every row has a cell for each head.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// Empty: the section's heading is enough.
    pub(crate) title: String,
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// What a terminal says below a row whose cells say little; none for most.
    pub(crate) below: Vec<(usize, String)>,
}

/// The head of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    pub(crate) text: String,
    /// More, where something can be pointed at.
    pub(crate) hint: String,
    /// Numbers, which stand at the right.
    pub(crate) right: bool,
    pub(crate) room: Room,
}

/// What becomes of a column on a narrow terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// It stays.
    Keep,
    /// It goes, the last first.
    Drop,
    /// It is never there.
    Long,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// More, where something can be pointed at.
    pub(crate) hint: String,
    pub(crate) tone: Tone,
    /// A sentence, which may be broken into lines.
    pub(crate) sentence: bool,
    /// Small marks behind the text.
    pub(crate) tags: Vec<String>,
}

/// How a cell is to strike the reader.
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
        Section { anchor, heading: heading.to_owned(), count: None, blocks: Vec::new() }
    }

    /// A block that every form has.
    pub(crate) fn all(&mut self, block: Block) {
        self.blocks.push((Reach::All, block));
    }

    /// A block that a terminal has no room for.
    pub(crate) fn long(&mut self, block: Block) {
        self.blocks.push((Reach::Long, block));
    }

    /// `None` where it says nothing.
    pub(crate) fn unless_empty(self) -> Option<Section> {
        (!self.blocks.is_empty()).then_some(self)
    }
}

impl Item {
    pub(crate) fn new(text: impl Into<String>) -> Item {
        Item { text: text.into(), details: Vec::new() }
    }
}

impl Table {
    /// Title, heads and cells, for tests to look at.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let heads = self.heads.iter().map(|head| head.text.as_str()).collect::<Vec<_>>().join(" | ");
        let cells = |row: &Vec<Cell>| row.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" | ");
        let rows = self.rows.iter().map(cells);
        std::iter::once(format!("{}\n{heads}", self.title)).chain(rows).collect::<Vec<_>>().join("\n")
    }

    /// One without hints: heads with whether they are of numbers, rows of texts. Where it is too wide its numbers go, the last first, but
    /// neither what tells rows apart, nor one number, nor the last column.
    pub(crate) fn plain(title: impl Into<String>, heads: Vec<(String, bool)>, rows: Vec<Vec<String>>) -> Table {
        let last = heads.len().saturating_sub(1);
        let room = |at: usize| if at < 3 || at == last { Room::Keep } else { Room::Drop };
        let head = |(at, (text, right))| Head { text, hint: String::new(), right, room: room(at) };
        Table {
            title: title.into(),
            heads: heads.into_iter().enumerate().map(head).collect(),
            rows: rows.into_iter().map(|row| row.into_iter().map(Cell::new).collect()).collect(),
            below: Vec::new(),
        }
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
    pub(crate) fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    pub(crate) fn sentence(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), sentence: true, ..Cell::default() }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Cell {
        Cell { hint: hint.into(), ..self }
    }

    pub(crate) fn tone(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }
}
