//! A study as it was read, and as its profiles have it.

use std::fmt;

use config::Report;
use config::node::{Entry, Node, Table, Value};

/// Longest text of a study, bytes. It bounds what a mistaken or hostile file can cost.
pub const TEXT_MAX_BYTES: usize = 64 * 1024;

/// A study file without mistakes: a question, what answers it, and how profiles differ. [`crate::expand()`] makes a
/// plan of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    pub(crate) text: String,
    pub(crate) root: Table,
}

impl Study {
    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names of its factors.
    pub fn factors(&self) -> impl Iterator<Item = &str> {
        self.root.table("factors").into_iter().flat_map(Table::keys)
    }

    /// The question it asks.
    pub fn question(&self) -> &str {
        match self.root.get("question").map(|entry| &entry.node.value) {
            Some(Value::Text(question)) => question,
            _ => unreachable!("`parse` rejects a study without a question"),
        }
    }
}

/// How much of a study is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// What the study says outside of `[quick]` and `[full]`.
    #[default]
    Default,
    /// A quick run, which claims no level of confidence: `[quick]` over the default, three trials unless it says.
    Quick,
    /// The whole sweep: `[full]` over the default.
    Full,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Profile; 3] = [Profile::Default, Profile::Quick, Profile::Full];

    /// Its name, which is also the name of its table.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Default => "default",
            Profile::Quick => "quick",
            Profile::Full => "full",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The study as `profile` has it: the profile's tables replace, key for key, those of the same name.
pub(crate) fn in_profile(root: &Table, profile: Profile, report: &Report) -> Table {
    let mut merged = root.clone();
    let overrides = [Profile::Quick, Profile::Full].map(|other| (other, merged.remove(other.name())));
    let chosen = overrides.into_iter().find(|(other, _)| *other == profile).and_then(|(_, chosen)| chosen);
    let sections = match chosen.map(|entry| entry.node) {
        None => Table::default(),
        Some(Node { value: Value::Table(sections), .. }) => sections,
        Some(Node { value, place }) => {
            let hint = format!("begin it with `[{profile}.trials]`");
            report.mistake(place, format!("`{profile}` must be a table, not {}", value.kind()), hint);
            Table::default()
        }
    };
    if profile == Profile::Quick && sections.get("trials").is_none() {
        forget_counts(&mut merged);
    }
    for section in sections.into_iter() {
        if Profile::ALL.iter().any(|other| other.name() == section.key) {
            report.mistake(section.key_place, format!("`{profile}` contains another profile, `{}`", section.key), None);
            continue;
        }
        match (merged.get_mut(&section.key), section) {
            (
                Some(Entry { node: Node { value: Value::Table(base), .. }, .. }),
                Entry { node: Node { value: Value::Table(over), .. }, .. },
            ) => over.into_iter().for_each(|entry| base.put(entry)),
            (_, section) => merged.put(section),
        }
    }
    merged
}

/// How many trials a whole run takes says nothing of a quick run, which has its own few.
fn forget_counts(root: &mut Table) {
    if let Some(Entry { node: Node { value: Value::Table(trials), .. }, .. }) = root.get_mut("trials")
        && let Some(Entry { node: Node { value: Value::Table(stop), .. }, .. }) = trials.get_mut("stop")
    {
        stop.retain(|entry| !["comparison", "relative", "min", "max"].contains(&entry.key.as_str()));
    }
}
