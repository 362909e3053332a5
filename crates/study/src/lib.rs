//! The nouns of quintain: a study (a file that asks a question) becomes a [`Plan`] (trials to run) becomes
//! [`Record`]s (what each trial left).
//!
//! Pure: text in, values out; no file, clock or machine is asked. What is serialised here is a promise (schemas/).

pub mod diagnostic;
pub mod metric;
pub mod plan;
pub mod record;
pub mod spec;
pub mod units;

pub use diagnostic::Diagnostic;
pub use metric::{Better, METRICS, Metric};
pub use plan::{Level, Plan, Point};
pub use record::{Measurement, Record, Run};
pub use spec::LoadSpec;
