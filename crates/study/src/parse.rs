//! A study file becomes a [`Study`]: read, with every mistake named in one go.

use std::fmt;

use crate::diagnostic::Diagnostic;
use crate::expand;
use crate::node::{self, Entry, Node, Place, Table, Value};
use crate::report::Report;

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

    /// The question it asks.
    pub fn question(&self) -> &str {
        match self.root.get("question").map(|entry| &entry.node.value) {
            Some(Value::Text(question)) => question,
            _ => unreachable!("`parse` lets no study pass that has no question"),
        }
    }
}

/// How much of a study is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// What the study says outside of `[quick]` and `[full]`.
    #[default]
    Default,
    /// A quick look, which claims no level of confidence: `[quick]` over the default, three trials unless it says.
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

/// Reads a study: syntax, names, types, units, ranges and references, in every profile.
///
/// # Errors
/// Every mistake in it, in the order of the text.
pub fn parse(text: &str) -> Result<Study, Vec<Diagnostic>> {
    let report = Report::new(text, &[]);
    if text.len() > TEXT_MAX_BYTES {
        report.mistake(
            Place::default(),
            format!("a study is at most {TEXT_MAX_BYTES} bytes, this one is {}", text.len()),
            None,
        );
        report.finish()?;
    }
    let root = node::document(text, &report);
    for profile in Profile::ALL {
        if profile == Profile::Default || root.get(profile.name()).is_some() {
            // How many processors there will be is not known yet; with two, nothing that depends on it is a mistake.
            expand::points_of(&in_profile(&root, profile, &report), profile, 2, &report);
        }
    }
    expand::check_variants(&root, &report);
    report.finish()?;
    Ok(Study { text: text.to_owned(), root })
}

/// The study as `profile` has it: the profile's tables replace, key for key, those of the same name.
pub(crate) fn in_profile(root: &Table, profile: Profile, report: &Report) -> Table {
    let mut merged = root.clone();
    let overrides = [Profile::Quick, Profile::Full].map(|other| (other, merged.remove(other.name())));
    let Some((_, Some(chosen))) = overrides.into_iter().find(|(other, _)| *other == profile) else { return merged };
    let Value::Table(sections) = chosen.node.value else {
        let kind = chosen.node.value.kind();
        report.mistake(
            chosen.node.place,
            format!("`{profile}` is a table, not {kind}"),
            format!("begin it with `[{profile}.trials]`"),
        );
        return merged;
    };
    for section in sections.into_iter() {
        if Profile::ALL.iter().any(|other| other.name() == section.key) {
            report.mistake(section.key_place, format!("`{profile}` holds a profile itself, `{}`", section.key), None);
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
