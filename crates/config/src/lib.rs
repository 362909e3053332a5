//! Reads TOML files against declared keys and reports every error.
//!
//! Callers declare [`Keys`] once and give them meaning. A [`Section`] reads a table and adds each error, with its
//! place and a hint, to a [`Report`]. [`render_keys`] renders the declarations as help, Markdown and JSON Schema.
//!
//! ```
//! use config::{Key, Keys, Kind, Missing, Report, Section, node};
//!
//! static KEYS: Keys = Keys {
//!     name: "",
//!     text: "A server",
//!     keys: &[Key {
//!         name: "idle",
//!         kind: Kind::Duration(1_000_000, 60_000_000_000),
//!         example: "\"5s\"",
//!         missing: Missing::Is("\"10s\""),
//!         text: "close connections idle for this long",
//!     }],
//! };
//!
//! let text = "idel = '5s'\n";
//! let report = Report::new("the server", text, &[]);
//! let table = node::document(text, &report);
//! let section = Section::whole(&table, &KEYS, (), &report);
//! section.check_keys();
//! assert_eq!(section.duration_ns("idle"), Some(10_000_000_000));
//! let mistakes = report.finish().unwrap_err();
//! assert_eq!(mistakes[0].to_string(), "1:1: unknown key `idel`");
//! assert_eq!(mistakes[0].hint.as_deref(), Some("did you mean `idle`?"));
//! ```

pub mod check_declared_examples;
pub mod diagnostic;
pub mod error_collector;
pub mod keys;
pub mod nearest;
pub mod node;
pub mod parse_with_errors;
pub mod place;
pub mod printable;
pub mod render_keys;
pub mod section;
pub mod units;

pub use diagnostic::{Diagnostic, Invalid};
pub use error_collector::Report;
pub use keys::{Key, Keys, Kind, Missing, word_of};
pub use nearest::{did_you_mean, suggestion};
pub use node::{Entry, Node, Table, Value};
pub use place::Place;
pub use section::{Fill, Filled, NamedText, Section};
