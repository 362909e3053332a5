//! Statistical analysis of trials: turns records into [`Findings`].
//!
//! ```
//! let (run, records) = fixtures::compared();
//! let findings = analysis::analyze(&run, &records);
//! assert!(findings.answer[0].text.starts_with("c-epoll has the lowest mean latency in all 3 comparisons"));
//! ```
//!
//! The functions read nothing from the machine, so a store gives the same findings on any machine and at any time. The
//! lab calls [`judge`] to determine the bottleneck and [`next`] to decide on further trials. `findings` has the result
//! types.

#[cfg(not(feature = "schema"))]
extern crate no_schema as schemars;

mod analyze;
mod answer;
pub mod censored_latency;
mod cluster_generator_verdicts;
mod comparison_groups;
mod comparisons;
mod containers;
mod cpu_profile;
pub mod effects;
pub mod enum_words_and_lists;
pub mod failed_requests;
pub mod findings;
pub mod gate;
pub mod hangs;
pub mod history;
pub mod label;
mod load_bottleneck;
mod load_description;
mod load_fail_if;
mod load_report;
mod merge_histograms;
mod merge_warnings;
mod method_text;
pub mod miss_ratio;
pub mod number;
mod operations;
mod printable_record;
pub mod proxy_overhead;
mod raw_export;
mod request_trends;
pub mod row;
mod run_conditions;
mod scalability;
pub mod search;
mod steadiness_and_outliers;
mod stop_rule;
mod suggest_compare;
mod trial_position_and_values;
pub mod trial_timeline;
pub mod value;
pub mod verdict;

#[cfg(test)]
use fixtures as example;

pub use analyze::{Analysis, analyze};
pub use comparisons::blocks_needed;
pub use failed_requests::FailedRequests;
pub use findings::{Findings, SearchBound};
pub use history::{history, side_by_side};
pub use load_description::describe_load;
pub use load_fail_if::{LoadLimit, LoadLimitOutcome, load_limits};
pub use load_report::{
    CacheReport, IntervalOrNote, JourneyReport, LOAD_QUANTILES, LOAD_VERSION, LatencyNs, LoadReport, OperationReport,
    SpreadNs, StageReport, StreamsReport, is_elsewhere, load,
};
pub use printable_record::visible;
pub use raw_export::{raw_whip, volley};
pub use search::{FIND_VERSION, FindReport, Search, next, step};
pub use stop_rule::progress;
pub use study::group_by_key;
pub use value::{LOAD_LEVEL, values};
pub use verdict::{BUSY, generator_busy, judge, judge_again, judge_load, starved, subject_busy};
