//! What do the trials say, and how sure is it? Records to [`Findings`].
//!
//! ```
//! let (run, records) = fixtures::compared();
//! let findings = analysis::analyze(&run, &records);
//! assert!(findings.answer[0].text.starts_with("c-epoll has the lowest mean latency in all 3 comparisons"));
//! ```
//!
//! Pure: the machine is asked nothing, so a store that is years old and was written elsewhere reads the same. The two function
//! values that the lab is handed come from here too: [`judge`] (who was the limit) and [`next`] (are there trials enough, and
//! at which rate is the next).
//!
//! `findings` are nouns; every other file is a verb that makes some of them.

pub mod added;
mod agents;
mod analyze;
mod answer;
mod asked;
mod bottleneck;
mod cache;
mod comparisons;
mod cpu_profile;
pub mod effects;
mod enough;
pub mod failed_requests;
pub mod findings;
mod flags;
pub mod gate;
pub mod group;
mod histogram;
pub mod history;
mod hosted;
pub mod inside;
mod journey;
pub mod label;
pub mod latency;
mod load;
mod method;
pub mod miss_ratio;
pub mod number;
mod operations;
pub mod over_requests;
mod places;
mod probes;
mod raw_whip;
pub mod row;
mod scalability;
mod scope;
pub mod search;
pub mod silence;
mod spread;
mod states;
mod suggest;
mod trial;
mod unfinished;
pub mod value;
pub mod verdict;
mod veto;
mod visible;
mod volley;
mod waiting;
mod warning;
pub mod words;

#[cfg(test)]
use fixtures as example;

pub use agents::judge_agents;
pub use analyze::{Analysis, analyze};
pub use asked::asked;
pub use cache::{CacheReport, MissShares};
pub use comparisons::blocks_needed;
pub use failed_requests::FailedRequests;
pub use findings::{Findings, SearchBound};
pub use history::{history, side_by_side};
pub use journey::{JourneyReport, OperationReport};
pub use load::{
    CensoredReport, Generator, IntervalOrNote, LOAD_LEVEL, LOAD_QUANTILES, LOAD_VERSION, LatencyNs, LoadReport,
    is_elsewhere, load,
};
pub use raw_whip::raw_whip;
pub use search::{FIND_VERSION, FindReport, Search, find, next, step};
pub use spread::SpreadNs;
pub use unfinished::progress;
pub use value::metric_value;
pub use verdict::{BUSY, generator_busy, judge, judge_again, judge_load, starved, subject_busy};
pub use visible::visible;
pub use volley::volley;
pub use waiting::subject_waiting;
