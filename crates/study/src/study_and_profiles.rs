//! A study: the parsed file, and its profiles.

use config::{Entry, Node, Report, Table, Value};

/// Maximum length of a study, bytes, which bounds the cost of a hostile file.
pub const TEXT_MAX_BYTES: usize = 64 * 1024;

/// A valid study file. [`crate::expand()`] makes a plan from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    pub(crate) text: String,
    pub(crate) root: Table,
}

impl Study {
    /// The string that the study was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names of the study's factors, in the order of the file.
    pub fn factors(&self) -> impl Iterator<Item = &str> {
        self.root.table("factors").into_iter().flat_map(Table::keys)
    }
}

/// Profiles of a study, which differ in the size of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The study without the tables `[quick]` and `[full]`.
    #[default]
    Default,
    /// A quick run without a confidence level. `[quick]` overrides the study; the default is three trials per point.
    Quick,
    /// The whole sweep, in which `[full]` overrides the study.
    Full,
}

impl Profile {
    /// All profiles, the default first.
    pub const ALL: [Profile; 3] = [Profile::Default, Profile::Quick, Profile::Full];

    /// Name of the profile, and of its table in a study.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Default => "default",
            Profile::Quick => "quick",
            Profile::Full => "full",
        }
    }
}

pub(crate) fn in_profile(root: &Table, profile: Profile, report: &Report) -> Table {
    let (mut merged, name) = (root.clone(), profile.name());
    let overrides = [Profile::Quick, Profile::Full].map(|other| (other, merged.remove(other.name())));
    let chosen = overrides.into_iter().find(|(other, _)| *other == profile).and_then(|(_, chosen)| chosen);
    let sections = match chosen.map(|entry| entry.node) {
        None => Table::default(),
        Some(Node { value: Value::Table(sections), .. }) => sections,
        Some(Node { value, place }) => {
            let hint = format!("begin it with `[{name}.trials]`");
            report.mistake(place, format!("`{name}` must be a table, not {}", value.kind()), hint);
            Table::default()
        }
    };
    // Target half-widths and limits on trials are for a whole run, not a quick one.
    if profile == Profile::Quick
        && sections.get("trials").is_none()
        && let Some(stop) = merged.table_mut("trials").and_then(|trials| trials.table_mut("stop"))
    {
        stop.retain(|entry| !["comparison", "relative", "min", "max"].contains(&entry.key.as_str()));
    }
    for section in sections.into_iter() {
        if Profile::ALL.iter().any(|other| other.name() == section.key) {
            report.mistake(section.key_place, format!("`{name}` contains another profile, `{}`", section.key), None);
            continue;
        }
        match (merged.table_mut(&section.key), section) {
            (Some(base), Entry { node: Node { value: Value::Table(over), .. }, .. }) => {
                over.into_iter().for_each(|entry| base.put(entry));
            }
            (_, section) => merged.put(section),
        }
    }
    merged
}
