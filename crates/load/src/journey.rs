//! Journeys: programs of calls, in which a request needs values of earlier replies. The content of a journey depends
//! only on the seed and the journey's number, not on the client that runs it. The first use of a server opens a
//! connection, which is kept. A call's latency includes neither connecting nor resolving.

mod cookies;
mod http2_calls;
mod known_servers;
mod program;
mod reply_values;
mod sessions;
#[cfg(test)]
mod tests;
mod values_and_templates;

pub(crate) use self::http2_calls::MESSAGE_BYTES_MAX;
pub(crate) use self::sessions::{Plan, Sessions};
