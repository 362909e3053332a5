//! Data types. A [`Study`] is a file with a question; it expands to a [`Plan`] of trials, which result in one
//! [`Record`] each. This crate never accesses files, clocks or the machine. Serialized formats are stable (schemas/).
//!
//! ```
//! let study = study::parse(
//!     r#"
//!     question = "How does latency grow with clients?"
//!     [subject]
//!     command = "quintain serve pingpong -p {port}"
//!     [load]
//!     protocol = "pingpong"
//!     clients = "{clients}"
//!     stop = "1s"
//!     [factors]
//!     clients = [40, 80, 200]
//!     "#,
//! )
//! .expect("no mistakes");
//! let sets = vec![("clients".to_owned(), "1,10".to_owned())];
//! let plan = study::expand(&study, &study::ExpandOptions { sets, ..Default::default() }).expect("the sets are fine");
//! assert_eq!(plan.points.iter().map(|point| point.load.clients).collect::<Vec<_>>(), [1, 10]);
//! ```

#[cfg(not(feature = "schema"))]
extern crate no_schema as schemars;

pub mod buckets_as_text;
pub mod cases;
pub mod cpu_profile;
pub mod csv_column;
pub mod expand;
mod factor_placeholders;
pub mod gate;
pub mod generator_messages;
pub mod group_by_key;
pub mod grpc;
pub mod har;
pub mod histogram_conversion;
mod inferred_question;
pub mod journey;
mod json_of_stored_types;
pub mod keys;
mod level;
pub mod load_limits_and_defaults;
pub mod load_rules;
pub mod load_shape;
pub mod metric;
pub mod node_messages;
pub mod objective;
pub mod plan;
pub mod pool_measurements;
pub mod process_plan;
pub mod protocol;
pub mod proxy_call_log;
pub mod record;
pub mod request_file;
pub mod request_values;
#[cfg(feature = "schema")]
pub mod schema;
mod section_at_design_point;
mod set_overrides;
pub mod shell_words;
pub mod spec;
mod study_and_profiles;
pub mod template;
pub mod time_law;
pub mod trial_schedule;
pub mod url;
pub mod validate_http;
pub mod verification;
pub mod warning;
pub mod workload;

pub use config::{Diagnostic, units};
pub use expand::{ExpandOptions, expand, parse, parse_workload};
pub use factor_placeholders::fill;
pub use journey::Journey;
pub use journey::parse::{TEXT_MAX_BYTES as JOURNEY_MAX_BYTES, parse as parse_journey, preset as preset_journey};
pub(crate) use json_of_stored_types::one;
pub use json_of_stored_types::{Json, is_default};
pub use metric::{METRICS, Metric, time_text};
pub use objective::Objective;
pub use plan::{Level, Plan, Point};
pub use proxy_call_log::Calls;
pub use record::{Measurement, Record, Run};
pub use spec::LoadSpec;
pub use study_and_profiles::{Profile, Study, TEXT_MAX_BYTES};
pub use trial_schedule::{Effort, Next};
pub use warning::{Warning, WarningKind};
pub use workload::Workload;
