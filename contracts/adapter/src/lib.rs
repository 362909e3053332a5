//! An adapter: a proxy next to one party that checks the messages between it and its services against a contract.
//!
//! It forwards the calls of the party, and calls to it, unchanged and shows every message to the monitor of `contract`.
//! Two adapters exchange a small block of metadata with each message. By default no call is rejected; broken clauses
//! are only reported. If the adapter itself fails (an unreadable message, a broken store, a lost adapter), the party
//! sees the same as without an adapter. docs/reference/contracts.md describes the language and the rules of blame.

mod adapter;
mod app;
mod body;
mod budget;
mod call;
mod call_log;
mod clock;
pub mod config;
mod decode;
mod dial;
mod encoding;
mod endpoint;
mod http;
mod listen;
mod metrics;
mod pool;
mod refusal;
mod reports;
mod routes;
mod schema;
mod shared_monitor;
mod store;
mod stream;
mod thrift;
mod thrift_messages;
mod tls;
mod worker;

pub use adapter::{Checked, Running, StartError, check, start};
pub use call_log::HEADER as CALLS_HEADER;
pub use config::{Config, Draft};
pub use endpoint::{Endpoint, Pattern, Scheme};
pub use schema::{Loaded, check_contract};
pub use store::{StoreContents, StoreError, look, purge};
