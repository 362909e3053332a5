//! `quintain serve mock-...`: mock services for measuring the proxies in front of them.

use std::net::SocketAddr;
use std::sync::Arc;

use mocks::{MockError, MockListen, Service, serve_mock};
use servers::Shutdown;

use crate::cli::{MockArgs, MockTlsArgs};
use crate::message::{Exit, Problem, Result};
use crate::output;

/// Serves the services of a mock, one per port.
pub(crate) fn serve(
    args: &MockArgs,
    tls: Option<MockTlsArgs>,
    ports: &[u16],
    services: impl FnOnce(&[SocketAddr]) -> Vec<Arc<dyn Service>>,
    shutdown: &Shutdown,
) -> Result<()> {
    let addresses = ports.iter().map(|port| SocketAddr::new(args.host, *port)).collect::<Vec<_>>();
    Ok(serve_mock(&listen(args, tls), &addresses, services, shutdown, ready)?)
}

fn listen(args: &MockArgs, tls: Option<MockTlsArgs>) -> MockListen {
    let (mut names, mut cert_out) = (Vec::new(), None);
    if let Some(tls) = tls {
        names = vec!["localhost".to_owned(), args.host.to_string()];
        names.extend(tls.cert_names);
        cert_out = tls.cert_out;
    }
    MockListen {
        threads: args.threads,
        connections: args.connections as usize,
        body_bytes: usize::try_from(args.max_body).unwrap_or(usize::MAX),
        idle: args.idle_timeout,
        patience: args.body_timeout,
        drain: args.drain,
        delay: args.delay.0,
        seed: args.seed,
        names,
        cert_out,
    }
}

/// Prints the first port, the one that clients connect to first.
fn ready(bound: &[SocketAddr]) {
    if let Some(first) = bound.first() {
        // A write error only means that no process waits for the port.
        let _ = output::data(&format!("ready {}", first.port()));
    }
}

impl From<MockError> for Problem {
    fn from(error: MockError) -> Self {
        match error {
            MockError::Serve(error) => error.into(),
            MockError::Certificate { .. } | MockError::Write { .. } => Problem::new(Exit::Usage, error),
        }
    }
}
