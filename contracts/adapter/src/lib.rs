//! What passes between a party and its services, and are contracts kept? A proxy that asks.
//!
//! An adapter stands beside one party. It takes the party's calls and those of others to it, passes the bytes on as they came, and shows every message
//! to the monitor of `contract`. Between two adapters a small block of metadata goes beside each message. By default nothing is ever refused: what is not
//! kept is told. `docs/CONTRACTS.md` has the language and the rules of blame.
//!
//! Whatever is wrong with the adapter itself (a message that it cannot read, a store that is broken, another adapter that is gone), the party sees what it would
//! have seen without it.

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

pub use adapter::{Checked, Running, StartError, check, check_draft, start};
pub use call_log::HEADER as CALLS_HEADER;
pub use config::{Config, Draft};
pub use endpoint::{Endpoint, Pattern, Scheme};
pub use listen::Resolved;
pub use schema::{Loaded, check_contract};
pub use store::{StoreContents, StoreError, look, purge};
