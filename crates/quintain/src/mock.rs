//! `quintain serve mock-...`: mock services for measuring the proxies in front of them.

use std::net::SocketAddr;
use std::sync::Arc;

use mocks::{Chess, EvernoteNotes, EvernoteUser, MockError, MockListen, Service, Shop, Twitter, serve_mock};
use servers::Shutdown;

use crate::cli::{MockArgs, MockTlsArgs, ServeChessArgs, ServeEvernoteArgs, ServeShopArgs, ServeTwitterArgs};
use crate::message::{Exit, Problem, Result};
use crate::output;

pub(crate) fn evernote(args: ServeEvernoteArgs, shutdown: &Shutdown) -> Result<()> {
    let listen = listen(&args.mock, Some(args.tls));
    let addresses = [SocketAddr::new(args.mock.host, args.mock.port), SocketAddr::new(args.mock.host, args.notes_port)];
    let services = |bound: &[SocketAddr]| {
        let url = format!("https://{}/", bound[1]);
        let user = Arc::new(EvernoteUser::new(url.clone())) as Arc<dyn Service>;
        vec![user, Arc::new(EvernoteNotes::new(args.profile, url))]
    };
    serve_mock(&listen, &addresses, services, shutdown, ready)?;
    Ok(())
}

pub(crate) fn chess(args: ServeChessArgs, shutdown: &Shutdown) -> Result<()> {
    serve_one(&args.mock, None, Arc::new(Chess::new(args.games as usize, args.identities)), shutdown)
}

pub(crate) fn shop(args: &ServeShopArgs, shutdown: &Shutdown) -> Result<()> {
    serve_one(&args.mock, None, Arc::new(Shop::new(args.wrong_total, args.expire)), shutdown)
}

pub(crate) fn twitter(args: ServeTwitterArgs, shutdown: &Shutdown) -> Result<()> {
    serve_one(&args.mock, Some(args.tls), Arc::new(Twitter::new(args.identities)), shutdown)
}

fn serve_one(args: &MockArgs, tls: Option<MockTlsArgs>, service: Arc<dyn Service>, shutdown: &Shutdown) -> Result<()> {
    let address = SocketAddr::new(args.host, args.port);
    serve_mock(&listen(args, tls), &[address], |_| vec![service], shutdown, ready)?;
    Ok(())
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
