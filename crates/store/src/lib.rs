//! Stores runs and trials in an SQLite file, one transaction per trial, as JSON that anyone can query.
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! let store = store::Store::open(folder.path().join("quintain.db"))?;
//! assert!(store.runs()?.is_empty());
//! # Ok::<(), store::StoreError>(())
//! ```
//! With the `sqlite3` shell: `select run, point, json_extract(record, '$.outcome.measured.requests') from trials`.

mod check_printable;
mod error;
pub mod run_file;
mod run_lock;
mod store;
mod table_layout;

pub use error::StoreError;
pub use run_file::RunFileError;
pub use run_lock::Owner;
pub use store::{Freed, RunSummary, Store};
pub use table_layout::LAYOUT_VERSION;
