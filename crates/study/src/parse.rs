//! A study file becomes a [`Study`]: read, with every mistake named in one go.
//!
//! # The file
//!
//! TOML. Times, counts, rates and fractions are read by [`crate::units`]. Wherever a value of `[subject]` or `[load]`
//! may stand, a text may stand whose `{factor}` is replaced by the level of that factor.
//!
//! | Key | Meaning | When it is missing |
//! |---|---|---|
//! | `question` | what the study asks | a mistake |
//! | `design` | which combinations of levels are measured: `full`, or `one-at-a-time` (from the first level of each factor; blind to interactions) | `full` |
//! | `subject.command` | starts the server; `{port}` is its port, a leading `quintain` this binary | a mistake |
//! | `subject.build` | run once before the first trial | nothing is built |
//! | `subject.cpus` | processors of the server: a count, `{ up_to = 8 }` (fewer where the generator leaves fewer), `"all"` that it leaves | 1 |
//! | `subject.port` | its port | a free one |
//! | `subject.directory`, `subject.environment` | where and with what it is started | as the lab |
//! | `subject.ready_timeout`, `subject.stop_timeout` | to answer on its port; to end when asked | 10s, 2s |
//! | `subject.variants.LEVEL`, `load.variants.LEVEL` | any of the keys of that section, where a factor has this level | |
//! | `[middle.NAME]` | a process that may stand between generator and subject: `command`, `build`, `directory`, `environment`, `port`, `ready_timeout`, `stop_timeout` as of `subject`; [`crate::middle::MiddlePlan`] has the templates | none |
//! | `middle.NAME.files` | files that it finds in `{folder}`: name = the file it is made of, templates filled in | none |
//! | `middle.NAME.calls` | the file in `{folder}` that it writes its calls into, as [`crate::calls`] says | none |
//! | `middle.NAME.cpus` | processors of its own, kept free at every design point, or `"subject"`: those of the subject | `"subject"` |
//! | `factors.through` | which middles a design point passes: `direct`, a name, `a + b` | none is passed |
//! | `slopes.over_requests` | what is looked at over the requests of a trial: `latency`, `middle_time`, `middle_rss`, `middle_store`, `subject_rss` | nothing |
//! | `load.protocol` | `pingpong`, `http`, `https` | a mistake |
//! | `load.clients` | connections | a mistake |
//! | `load.threads`, `load.cpus` | workers and processors of the generator | one each; all that are left |
//! | `load.share_cpus` | whether it may use the subject's processors | `false` |
//! | `load.backend` | `auto`, `epoll`, `io_uring` | `auto` |
//! | `load.loop` | `closed`, `open` | open if there is a `rate` |
//! | `load.think` | closed: from an answer to the next request | 0s |
//! | `load.rate`, `load.arrivals` | open: requests a second, or a share of the capacity, `80%`; `poisson`, `constant` | a mistake; `poisson` |
//! | `load.search` | instead of a rate: the highest that keeps an objective is searched for: `{ objective, from, to, resolution, confirm, max_steps, max_time }` | no search; `from` a pilot, `to` no limit, 5%, 3, 60, no limit |
//! | `load.capacity` | the same, run first for all points that differ in nothing but their share of it | no share |
//! | `load.warmup` | a time, or `{ requests }`; nothing under volley's rule | 1s |
//! | `load.stop` | a time, or `{ requests, max_time }`, `{ relative, level, max_time }`, `{ rule = "volley", round, half_width, max_time }` | a mistake |
//! | `load.window`, `load.timeout` | a slice of the measured time; the latest answer | 100ms, 5s |
//! | `load.path`, `load.method` | HTTP: what is asked | `/`, `GET` |
//! | `load.headers` | HTTP: header fields, `{ Accept = "text/plain" }`; `Host` is added | none |
//! | `load.body`, `load.body_file` | HTTP: a text, or a file relative to where the lab was started | none |
//! | `[[load.request]]` | HTTP: a mix instead: `path`, `method`, `headers` (over those of `[load]`), `body`, `body_file`, `weight` | one request |
//! | `load.expect_status` | HTTP: right statuses: `200`, `[200, 204]`, `"2xx"` | 200 to 299 |
//! | `load.expect_body` | HTTP: the right body, exactly | any, of the right length |
//! | `load.pipeline` | HTTP: requests in flight on a connection | 1 |
//! | `load.connection` | HTTP: `keep-alive`, or `per-request` | `keep-alive` |
//! | `load.insecure`, `load.ca_file` | https: any certificate is right; the roots to trust, PEM | `false`; the public ones |
//! | `load.server_name`, `load.resume` | https: the name in the certificate; whether sessions are resumed | `localhost`, `true` |
//! | `[load.workload]` | caches: operations, keys, values or a trace, or a preset; [`crate::workload`] has the keys | none |
//! | `factors.NAME` | a list of levels, or `"auto"`: powers of two up to the processors the generator leaves | one design point |
//! | `trials.stop` | `{ comparison, level, metric, min, max, max_time }`: until contenders are told apart to a fraction, or `relative`: until values are known to one | `{ comparison = 0.03, min = 12, max = 30 }` |
//! | `answer.asks`, `answer.of` | `best`, `added`, `growth`, `capacity`, `effects`, `values`; the factor that it is about | as factors and figures have it |
//! | `effects.metrics` | in which metrics the effects of the factors are looked for; an empty list: in none | that of `trials.stop` and those of the figures |
//! | `[[figure]]` | `kind` (`line`, `scatter`, `interaction`, `ecdf`, `quantiles`, `timeline`, `miss-ratio`, `added`, `memorychart`, `throughputchart`, `networkchart`), `x`, `y` (a metric, or a list of some of one unit; of an interaction a figure each), `series`, `facet`, `interval`, `title`; of a miss-ratio curve `x` (capacities), `unit` of numbers on it, `policies` | no figure |
//! | `[[table]]` | `metric` (sample mean, sample standard deviation, interval, trials) or `metrics` (a column each), `title` | no further table |
//! | `[quick]`, `[full]` | tables of the same names, whose keys replace those above in that profile | |

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

    /// Names of its factors.
    pub fn factors(&self) -> impl Iterator<Item = &str> {
        self.root.table("factors").into_iter().flat_map(Table::keys)
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
    let chosen = overrides.into_iter().find(|(other, _)| *other == profile).and_then(|(_, chosen)| chosen);
    let sections = match chosen.map(|entry| entry.node) {
        None => Table::default(),
        Some(Node { value: Value::Table(sections), .. }) => sections,
        Some(Node { value, place }) => {
            let hint = format!("begin it with `[{profile}.trials]`");
            report.mistake(place, format!("`{profile}` is a table, not {}", value.kind()), hint);
            Table::default()
        }
    };
    if profile == Profile::Quick && sections.get("trials").is_none() {
        forget_counts(&mut merged);
    }
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

/// How many trials a whole run takes says nothing of a quick look, which has its own few.
fn forget_counts(root: &mut Table) {
    if let Some(Entry { node: Node { value: Value::Table(trials), .. }, .. }) = root.get_mut("trials")
        && let Some(Entry { node: Node { value: Value::Table(stop), .. }, .. }) = trials.get_mut("stop")
    {
        stop.retain(|entry| !["comparison", "relative", "min", "max"].contains(&entry.key.as_str()));
    }
}
