//! What may a TOML file say, and what is wrong with this one?
//!
//! Whoever has such a file declares its keys once, as [`Keys`]: names, types, ranges, defaults, examples, a sentence each. A [`Section`] reads a table
//! by them and tells a [`Report`] of everything that is wrong, each mistake with its place and a hint. [`show`] makes help, Markdown and a JSON
//! Schema of the same declarations.
//!
//! Pure: text in, values and [`Diagnostic`]s out. What the keys mean is for those who declare them.
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

pub mod diagnostic;
pub mod examples;
pub mod keys;
pub mod mend;
pub mod nearest;
pub mod node;
pub mod place;
pub mod printable;
pub mod report;
pub mod section;
pub mod show;
pub mod units;

pub use diagnostic::Diagnostic;
pub use keys::{Key, Keys, Kind, Missing};
pub use place::Place;
pub use report::Report;
pub use section::{Fill, Filled, Section};
