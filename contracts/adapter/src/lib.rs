//! An adapter: a proxy next to one party that checks the messages of the party and its services against a contract.
//! The adapter forwards calls from and to the party unchanged and shows every message to the monitor of `contract`. Two
//! adapters exchange a small block of metadata with each message. By default, broken clauses are only reported, and
//! calls still pass despite an unreadable message, a broken store or an unreachable adapter.
//! docs/reference/contracts.md describes the language and the rules of blame.

mod adapter_lifecycle;
mod body;
mod call_log_csv;
mod clock;
pub mod config;
mod connection_pool;
mod contract_services;
mod counted_stream;
mod decode;
mod dial_allowed_endpoint;
mod endpoint;
mod hop_and_caller;
mod http;
mod in_flight_call;
mod listen;
mod load_contract_and_schemas;
mod memory_budget;
mod message_queue_thread;
mod metrics;
mod reports;
mod routes;
mod shared_state;
mod store;
mod thrift;
mod thrift_and_metadata_stream;
mod tls;
mod unchecked_and_refusal_reasons;

pub use adapter_lifecycle::{Checked, Running, StartError, check, start};
pub use call_log_csv::HEADER as CALLS_HEADER;
pub use config::{Config, Draft};
pub use endpoint::{Endpoint, Pattern, Scheme};
pub use load_contract_and_schemas::{Loaded, check_contract};
pub use store::{StoreContents, StoreError, look, purge};
