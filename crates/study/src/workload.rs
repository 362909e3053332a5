//! Cache workloads: operations, keys, lengths of keys and values, or a trace ([`crate::keys`] declares the TOML keys).
//! A trace supplies operations, keys, times to live (not over HTTP) and lengths; `fill` is `true` if its format has no
//! writes. `keys.size` and `values.size` apply to keys and values without a recorded length.

mod presets;
pub mod trace;

pub(crate) use presets::plain;
pub use presets::{ETC_VALUES_HEAD, PRESETS, Preset, preset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Distribution, Empirical, Piece, Sizes};

use crate::keys::WORKLOAD;

/// Maximum number of keys. The generator's record of keys seen then takes 512 MiB.
pub const KEYS_MAX: u64 = 1 << 32;
/// Maximum length of a key, bytes, which is memcached's limit.
pub const KEY_MAX_BYTES: u64 = 250;
/// Maximum length of a value, bytes.
pub const VALUE_MAX_BYTES: u64 = 64 << 20;

/// A cache workload, sampled from distributions or replayed from a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Preset that the workload is based on, possibly with changes; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Weights of the operations.
    pub operations: Operations,
    /// Whether a GET that misses is followed by a SET of its key (look-aside).
    pub fill: bool,
    /// Times to live with their shares; empty if values never expire.
    #[serde(default)]
    pub ttl: Vec<Ttl>,
    /// Number, popularity and lengths of the keys.
    pub keys: Keys,
    /// Lengths of the values, bytes.
    pub values: Values,
    /// Trace to replay, which supplies operations, keys and times, and lengths if it has them; `None` to sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// Relative frequencies of the operations, in any unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Operations {
    /// Weight of reads.
    pub get: f64,
    /// Weight of writes.
    pub set: f64,
    /// Weight of deletions.
    pub delete: f64,
    /// Weight of reads that are followed by a write of the key after the response (YCSB's workload F).
    pub read_modify_write: f64,
}

impl Operations {
    /// The sum of all weights.
    pub fn total(&self) -> f64 {
        self.get + self.set + self.delete + self.read_modify_write
    }
}

/// A time to live and the share of values that have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ttl {
    /// Time to live, 1 s to 30 days; memcached reads larger numbers as points in time.
    pub seconds: u32,
    /// Share of values set with this time to live, from 0 to 1. Values in no share never expire.
    pub share: f64,
}

/// Number, popularity and lengths of a workload's keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// Number of keys; with `reuse`, number of keys that exist before the first operation.
    pub count: u64,
    /// Distribution of operations among the keys.
    pub popularity: Popularity,
    /// Number of operations over all clients after which different keys become popular; `None` if they never change.
    pub shift_every: Option<u64>,
    /// Probability of using an earlier key instead of a new one; `None` for a fixed set of keys.
    pub reuse: Option<f64>,
    /// Rule for the first operation on a new key. Only `reuse` creates new keys.
    #[serde(default)]
    pub new: NewKey,
    /// Share of operations on keys that are used only once, from 0 to 1.
    #[serde(default)]
    pub one_hit: f64,
    /// Probability that a DELETE replaces an operation on an existing key.
    #[serde(default)]
    pub invalidation: f64,
    /// Whether popular keys have adjacent numbers; otherwise, a keyed bijection scatters them.
    #[serde(default)]
    pub neighbours_hot: bool,
    /// Distribution of key lengths, bytes. A key is longer if it would otherwise not be distinct.
    pub size: SizeLaw,
    /// Maximum length of a key, bytes. Longer samples are reduced to it.
    pub max_bytes: u64,
}

/// Distribution of operations among keys. With [`Keys::reuse`], ranks are ages: the newest key is the most popular one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "law", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Popularity {
    /// All keys are equally popular.
    Uniform,
    /// Zipf's law, exactly: the key of rank k has popularity k^-exponent, up to a constant factor.
    Zipf {
        /// Exponent of the law, at least 0.
        exponent: f64,
    },
    /// A log-uniform distribution of ages; only with [`Keys::reuse`].
    Recency,
    /// A few hot keys share a fraction of all operations evenly; other operations are uniform over all keys.
    HotSet {
        /// Number of hot keys.
        keys: u64,
        /// Share of all operations that the hot keys get, from 0 to 1.
        share: f64,
    },
    /// Keys are requested in order, from the first to the last, repeatedly.
    Loop,
}

/// Choice of the first operation on a new key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewKey {
    /// Any operation, chosen by weight, so that a GET of a new key misses.
    #[default]
    Any,
    /// A SET. The share of SETs is the share of new keys plus the weight of `set` on earlier keys.
    Set,
}

/// Lengths of a workload's values, and whether they vary by SET.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// Distribution of value lengths, bytes.
    pub size: SizeLaw,
    /// Maximum length of a value, bytes. Longer samples are reduced to it.
    pub max_bytes: u64,
    /// Whether the length depends on the key or varies by SET.
    #[serde(default)]
    pub length: ValueLength,
}

/// Rule for the lengths of successive values of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ValueLength {
    /// The value of a key always has the same length.
    #[default]
    PerKey,
    /// Each SET samples a new length, as in mutilate.
    PerSet,
}

/// A distribution of lengths in bytes, rounded to whole bytes and clamped between 0 and the maximum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "law", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SizeLaw {
    /// A histogram of points and ranges with weights, and an optional tail given by a formula.
    Empirical {
        /// Lowest length, highest length and weight of each item; lengths are in bytes.
        values: Vec<(f64, f64, f64)>,
        /// Distribution of the remaining lengths; `None` if the items cover all lengths.
        tail: Option<Tail>,
    },
    /// A distribution given by a formula.
    #[serde(untagged)]
    Formula(Distribution),
}

impl From<Distribution> for SizeLaw {
    fn from(law: Distribution) -> Self {
        SizeLaw::Formula(law)
    }
}

/// The tail of an empirical distribution, given by a formula.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Distribution of the lengths in the tail, bytes.
    pub size: Distribution,
    /// Weight of the tail, in the unit of the items' weights.
    pub weight: f64,
}

impl SizeLaw {
    /// The distribution to sample from. Fails with the requirement that the parameters violate.
    pub fn law(&self) -> Result<Empirical, String> {
        match self {
            SizeLaw::Empirical { values, tail } => {
                let piece = |&(low, high, weight): &(f64, f64, f64)| Piece { low, high, weight };
                let pieces = values.iter().map(piece).collect::<Vec<_>>();
                Empirical::new(&pieces, tail.as_ref().map(|Tail { size, weight }| (*size, *weight)))
            }
            SizeLaw::Formula(law) => law.check().map(|()| Empirical::from(*law)).map_err(str::to_owned),
        }
    }
}

/// A recorded trace to replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Path of the trace file, relative to the study's directory.
    pub file: String,
    /// Format of the trace file.
    pub format: trace::Format,
    /// Whether operations keep the recorded gaps or follow the load's arrivals.
    #[serde(default)]
    pub gaps: Gaps,
    /// Factor by which the recorded gaps are shortened.
    #[serde(default = "recorded_speed")]
    pub speed: f64,
}

fn recorded_speed() -> f64 {
    1.0
}

/// Source of the times at which the operations of a trace are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// The load's arrivals, regardless of the recorded times.
    #[default]
    None,
    /// The recorded times, divided by the speed-up.
    Recorded,
}

/// An error in a workload as a whole, found after parsing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Dotted key in `[load.workload]` to correct.
    pub key: &'static str,
    /// Error message without a full stop.
    pub message: String,
    /// Suggestion for the user; `None` if there is none.
    pub hint: Option<&'static str>,
}

impl Workload {
    /// Distribution of key lengths in bytes, before keys are made distinct. Fails if a parameter is invalid.
    pub fn key_sizes(&self) -> Result<Sizes, String> {
        Ok(Sizes::new(self.keys.size.law()?, 1, self.keys.max_bytes.max(1)))
    }

    /// Distribution of value lengths in bytes. Fails if its parameters are invalid.
    pub fn value_sizes(&self) -> Result<Sizes, String> {
        Ok(Sizes::new(self.values.size.law()?, 0, self.values.max_bytes))
    }

    /// The hit ratio that the mix determines. Without fills, the last write to a frequently used key was a SET with
    /// probability set / (set + delete). `None` with fills, expiry or a trace, or if nothing is set or deleted.
    pub fn hit_ratio_of_mix(&self) -> Option<f64> {
        let (total, changed) = (self.operations.total(), self.keys.invalidation);
        let sets = (1.0 - changed) * (self.operations.set + self.operations.read_modify_write) / total;
        let deletes = changed + (1.0 - changed) * self.operations.delete / total;
        let decided = !self.fill && self.ttl.is_empty() && self.trace.is_none() && sets + deletes > 0.0;
        decided.then(|| sets / (sets + deletes))
    }

    /// Finds numbers out of range and incompatible parts. A workload without problems can be sampled.
    pub fn problems(&self) -> Vec<Problem> {
        let (operations, keys) = (&self.operations, &self.keys);
        let (exponent, hot_share) = match keys.popularity {
            Popularity::Zipf { exponent } => (Some(exponent), None),
            Popularity::HotSet { share, .. } => (None, Some(share)),
            _ => (None, None),
        };
        let checked = |(key, value): (_, Option<f64>)| {
            let message = WORKLOAD.at(key).kind.check_range(value?).err()?;
            Some(Problem { key, message, hint: None })
        };
        let ranges = [
            ("operations.get", Some(operations.get)),
            ("operations.set", Some(operations.set)),
            ("operations.delete", Some(operations.delete)),
            ("operations.read_modify_write", Some(operations.read_modify_write)),
            ("trace.speed", self.trace.as_ref().map(|trace| trace.speed)),
            ("keys.count", Some(keys.count as f64)),
            ("keys.exponent", exponent),
            ("keys.hot_share", hot_share),
            ("keys.shift_every", keys.shift_every.map(|every| every as f64)),
            ("keys.reuse", keys.reuse),
            ("keys.one_hit", Some(keys.one_hit)),
            ("keys.invalidation", Some(keys.invalidation)),
            ("keys.max", Some(keys.max_bytes as f64)),
            ("values.max", Some(self.values.max_bytes as f64)),
        ];
        let mut found = ranges.into_iter().filter_map(checked).collect::<Vec<_>>();
        let mut rule = |broken: bool, key, message: &str, hint| {
            if broken {
                found.push(Problem { key, message: message.to_owned(), hint });
            }
        };
        let hint = Some("for example `operations = { get = 0.9, set = 0.1 }`");
        rule(operations.total() == 0.0, "operations", "no operation has a weight", hint);
        let is_fine = |ttl: &Ttl| (0.0..=1.0).contains(&ttl.share) && (1..=trace::TTL_MAX_S).contains(&ttl.seconds);
        let shares = self.ttl.iter().map(|ttl| ttl.share).sum::<f64>();
        let message = "times to live must be 1s to 30 days, and their shares must sum to at most 1";
        rule(!self.ttl.iter().all(is_fine) || shares > 1.0 + 1e-9, "ttl", message, None);
        let trace = |is_wrong: fn(&Trace) -> bool| self.trace.as_ref().is_some_and(is_wrong);
        let has_no_times = trace(|trace| trace.gaps == Gaps::Recorded && trace.format == trace::Format::Plain);
        rule(has_no_times, "trace.gaps", "a `plain` trace has no times", Some("drop `gaps`"));
        let is_idle = trace(|trace| trace.gaps == Gaps::None && trace.speed != 1.0);
        rule(is_idle, "trace.speed", "only works with recorded gaps", Some("add `gaps = \"recorded\"`"));
        let (law, reuses) = (keys.popularity, keys.reuse.is_some());
        rule(keys.count == 0 && !reuses, "keys.count", "must be at least 1 without `keys.reuse`", None);
        let message = "`recency` needs `keys.reuse`: only keys created during the load have ages";
        let hint = Some("add `reuse = 0.96`, or choose `zipf`");
        rule(law == Popularity::Recency && !reuses, "keys.popularity", message, hint);
        if let Popularity::HotSet { keys: hot, .. } = law {
            rule(reuses, "keys.popularity", "`hot-set` cannot be combined with `keys.reuse`", None);
            let message = format!("must be 1 to {}, the number of keys, not {hot}", keys.count);
            rule(hot == 0 || hot > keys.count, "keys.hot_keys", &message, None);
        }
        let is_loop = law == Popularity::Loop;
        rule(is_loop && reuses, "keys.popularity", "`loop` cannot be combined with `keys.reuse`", None);
        let hint = Some("with `reuse` the popular keys change anyway");
        let is_shifted = keys.shift_every.is_some();
        rule(is_shifted && reuses, "keys.shift_every", "cannot be combined with `keys.reuse`", hint);
        rule(keys.new == NewKey::Set && !reuses, "keys.new", "only works with `keys.reuse`", None);
        for (key, size) in [("keys.size", &keys.size), ("values.size", &self.values.size)] {
            let must = size.law().err();
            rule(must.is_some(), key, &must.unwrap_or_default(), None);
        }
        found
    }
}
