//! Checks a configuration, and starts, reloads, observes and ends an adapter.

#[cfg(test)]
mod failure_and_reload_tests;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::{Contract, Finding, Severity};
use tokio::runtime::Builder;

use crate::call_log_csv::{self, Line};
use crate::config::{Config, Draft, fits};
use crate::contract_services::Services;
use crate::endpoint::Scheme;
use crate::hop_and_caller::{Caller, Hop, ListenerKind};
use crate::listen;
use crate::load_contract_and_schemas::Files;
use crate::metrics::Metrics;
use crate::reports::Reports;
use crate::shared_state::App;
use crate::store::{EntryStore, StoreOwner};
use crate::tls::Tls;

/// The reason why an adapter cannot start. All errors are reported at once.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Errors in the configuration or in a file that it names.
    #[error("{}", .0.join("\n"))]
    Wrong(Vec<String>),
    /// A port, file or thread is unavailable. The fields are the failed action and its error.
    #[error("{0}: {1}")]
    System(String, io::Error),
}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> StartError {
    let what = what.into();
    |error| StartError::System(what, error)
}

/// A checked configuration whose files have been read, ready for [`start`].
pub struct Checked {
    services: Services,
    tls: Tls,
    /// Warnings about the contract and the configuration, to show to the user.
    pub warnings: Vec<String>,
}

/// Reads the files that a configuration names and checks them against each other. Opens no file for writing and binds
/// no port. Fails with all errors in the configuration and these files, except mere consequences of other errors.
pub fn check(draft: &Draft) -> Result<Checked, StartError> {
    check_after(draft, None)
}

fn check_after(draft: &Draft, before: Option<&Contract>) -> Result<Checked, StartError> {
    let Draft { config, source, mistakes, doubtful, is_partial } = draft;
    let mut wrong = mistakes.iter().map(|mistake| mistake.in_file(source)).collect::<Vec<_>>();
    let mut warnings = Vec::new();
    let mut protocols = config.protocols.clone();
    let (mut contract, mut files) = (None, Files::new());
    // A missing `contract` key has already been reported.
    if !config.contract.as_os_str().is_empty() {
        match crate::load_contract_and_schemas::check_contract(&config.contract, &protocols) {
            Ok(loaded) => {
                files = loaded.files;
                protocols.retain(|protocol| protocol.schema.as_ref().is_none_or(|path| files.contains_key(path)));
                wrong.extend(loaded.schemas.iter().map(ToString::to_string));
                wrong.extend(loaded.unreadable);
                let shown = |finding: &Finding| {
                    let hint = finding.hint.as_ref().map_or(String::new(), |hint| format!("\n  = help: {hint}"));
                    format!("{}:{finding}{hint}", config.contract.display())
                };
                for finding in &loaded.checked.findings {
                    match finding.severity {
                        Severity::Mistake => wrong.push(shown(finding)),
                        Severity::Warning => warnings.push(shown(finding)),
                        Severity::Note => {}
                    }
                }
                let read = loaded.checked.contract;
                contract = read.map(|read| Arc::new(before.map_or(read.clone(), |before| read.after(before))));
            }
            Err(error) => wrong.push(error),
        }
    }
    let family = |service: &str| config.protocol(service).map(|of| of.family);
    let named = config.providing.iter().map(|of| (&of.service, &of.endpoint));
    let named = named.chain(config.consuming.iter().map(|of| (&of.service, &of.endpoint)));
    let mut needs_roots = config.protocols.iter().any(|of| of.bare == Scheme::Https);
    for (service, endpoint) in named {
        needs_roots |= endpoint.scheme == Scheme::Https;
        let shown = &endpoint.text;
        if contract.as_ref().is_some_and(|contract| contract.service(service).is_none()) {
            wrong.push(format!("`{shown}`: the contract has no service `{service}`"));
        }
        match family(service) {
            None if *is_partial || doubtful.contains(service) => {}
            None => wrong.push(format!("`{shown}`: `[protocols.{service}]` does not say how its messages are read")),
            Some(family) if !fits(family, endpoint) => {
                wrong.push(format!("`{shown}`: Thrift over TCP needs `host:port`, not a URL"));
            }
            Some(_) => {}
        }
    }
    let services = contract.iter().flat_map(|contract| contract.services().map(|id| contract.service_name(id)));
    for service in services.filter(|service| family(service).is_none() && !doubtful.iter().any(|of| of == service)) {
        warnings.push(format!("`[protocols.{service}]` is missing: calls to this service pass unchecked"));
    }
    if config.allow.is_empty() && !config.consuming.is_empty() {
        warnings.push(
            "`allow` is empty: no connections to learned endpoints; `allow = [\"host:*\"]` permits them".to_owned(),
        );
    }
    for providing in config.providing.iter().filter(|of| of.adapters.is_some() && config.tls.peers.is_none()) {
        warnings.push(format!(
            "`adapters` of `{}` has no proof of identity: any client that reaches it can have another party blamed; \
             `[tls.peers]` requires certificates",
            providing.endpoint.text
        ));
    }
    for consuming in config.consuming.iter().filter(|of| of.labels.is_empty() && of.peer.is_some()) {
        warnings.push(format!(
            "no party vouches for `{}`, so `unknown` is blamed for it; name its adapter with `labels = [...]`",
            consuming.endpoint.text
        ));
    }
    let tls = Tls::new(&config.tls, needs_roots, &mut wrong);
    if let Some((identity, _)) = config.tls.peers.as_ref().filter(|_| !config.name.is_empty()) {
        wrong.extend(crate::tls::owner(&identity.cert, &config.name).err());
    }
    let services = contract.map(|contract| Services::new(contract, &protocols, &files, &mut wrong));
    match (services, tls) {
        (Some(services), Some(tls)) if wrong.is_empty() => Ok(Checked { services, tls, warnings }),
        _ => Err(StartError::Wrong(wrong)),
    }
}

/// A running adapter. Dropping it ends the adapter: it stops accepting connections and gives calls in flight
/// `limits.drain` to finish.
pub struct Running {
    /// The thread that drives all connections, or waits for the threads that do.
    thread: Option<JoinHandle<()>>,
    app: Arc<App>,
    connections: AtomicI64,
    /// Listening addresses by purpose: `admin`, `proxy`, `consuming ENDPOINT`, `plain ENDPOINT`, `adapters ENDPOINT`.
    pub addresses: BTreeMap<String, SocketAddr>,
}

/// Starts an adapter that writes reports to `out`. Fails if a port, thread or file (except the store) is unavailable.
pub fn start(config: &Config, checked: Checked, out: Box<dyn Write + Send>) -> Result<Running, StartError> {
    let metrics = Arc::new(Metrics::default());
    let reports = Reports::start(config.reports.clone(), metrics.clone(), out)
        .map_err(system("cannot start a thread for reports"))?;
    let reports = Arc::new(reports);
    let owner = StoreOwner { name: config.name.clone(), contract_hash: checked.services.contract.hash };
    let notes = reports.clone();
    let store = EntryStore::open(&config.store, owner, &metrics, Arc::new(move |text| notes.note(text)));
    let calls = config.calls.as_ref();
    let calls = calls.map(|path| call_log_csv::start(path).map_err(system(format!("`calls`: {}", path.display()))));
    let app = App::new(config.clone(), checked.services, store, reports, checked.tls, calls.transpose()?);
    let no_threads = "cannot start threads for connections";
    // A single thread runs tasks in the order in which they were woken, so messages that arrive together leave together
    // and wake each peer once. Several threads run the last woken task first, so each message wakes its peer again. With
    // 16 clients, this costs 1.2 times the CPU time per request.
    let mut builder = if config.threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    let runtime = builder.worker_threads(config.threads).thread_name("adapter").enable_all().build();
    let runtime = runtime.map_err(system(no_threads))?;
    let addresses = runtime.block_on(bind(&app))?;
    let lasting = app.clone();
    let thread = std::thread::Builder::new().name("adapter".to_owned()).spawn(move || {
        runtime.block_on(async {
            lasting.ending().await;
            // All permits are free once all connections are closed.
            let permits = u32::try_from(lasting.config.limits.connections).unwrap_or(u32::MAX);
            let _ = tokio::time::timeout(lasting.config.limits.drain, lasting.slots.acquire_many(permits)).await;
        });
        runtime.shutdown_timeout(Duration::from_millis(100));
    });
    Ok(Running { thread: Some(thread.map_err(system(no_threads))?), app, connections: AtomicI64::new(0), addresses })
}

async fn bind(app: &Arc<App>) -> Result<BTreeMap<String, SocketAddr>, StartError> {
    let config = &app.config;
    // The admin port is bound first, so that no other listener forwards to it before it is known.
    let mut listeners = vec![
        ("admin".to_owned(), &config.admin, ListenerKind::Admin),
        ("proxy".to_owned(), &config.proxy, ListenerKind::Proxy),
    ];
    for providing in &config.providing {
        let Some(protocol) = config.protocol(&providing.service) else { continue };
        let endpoint = providing.endpoint.clone().over(protocol.bare);
        let name_in_hop = if endpoint.scheme == Scheme::Tcp { endpoint.text.clone() } else { endpoint.authority() };
        for (name, at, caller) in
            [("plain", &providing.plain, Caller::Client), ("adapters", &providing.adapters, Caller::Adapter)]
        {
            let hop = Hop::from_party(endpoint.scheme, &name_in_hop, &providing.forward);
            let purpose = ListenerKind::Service(Hop { caller, ..hop });
            listeners.push((format!("{name} {}", endpoint.text), at, purpose));
        }
    }
    let mut addresses = BTreeMap::new();
    for (name, at, purpose) in listeners {
        let Some(at) = at else { continue };
        let bound = listen::open(app, at, purpose).await;
        let bound = bound.map_err(system(format!("cannot listen for `{name}` at `{at}`")))?;
        if name == "admin" {
            let _ = app.admin.set(bound);
        }
        addresses.insert(name, bound);
    }
    for consuming in &config.consuming {
        let Some(protocol) = config.protocol(&consuming.service) else { continue };
        let (name, endpoint) = (&consuming.endpoint.text, consuming.endpoint.clone().over(protocol.bare));
        let at = listen::listener_for(app, name, &endpoint, consuming.listen.as_deref()).await;
        let at = at.map_err(system(format!("cannot listen for `{name}`")))?;
        addresses.insert(format!("consuming {name}"), at);
    }
    Ok(addresses)
}

impl Running {
    /// Returns the counters in Prometheus text format.
    pub fn metrics(&self) -> String {
        self.app.metrics_text()
    }

    /// Reloads the contract and schemas that `draft` names, for new calls. Ignores other settings. Returns warnings.
    /// Calls in flight keep their contract, and service entries stay. A failure changes nothing.
    pub fn reload(&self, draft: &Draft) -> Result<Vec<String>, StartError> {
        let before = self.app.services().contract.clone();
        let checked = check_after(draft, Some(&before))?;
        self.app.renew(checked.services);
        Ok(checked.warnings)
    }

    /// Whether, since the previous check, message memory has fallen 4 MiB below its peak or 32 connections have closed.
    pub fn take_burst(&self) -> bool {
        const FEWER_BYTES: usize = 4 << 20;
        const FEWER_CONNECTIONS: i64 = 32;
        let connections = self.app.metrics.connections_now.get();
        let before = self.connections.swap(connections, Ordering::Relaxed);
        self.app.budget.take_fall() >= FEWER_BYTES || before - connections >= FEWER_CONNECTIONS
    }

    /// Returns all service entries that have not expired.
    pub fn entries(&self) -> Vec<contract::monitor::Shown> {
        self.app.monitor().entries(crate::clock::unix_s())
    }

    /// Waits until all reports and entries so far have been written. Gives up on entries after 5 s.
    pub fn flush(&self) {
        self.app.monitor().store().flush();
        self.app.reports.flush();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.app.ends.send_replace(true);
        // The runtime catches panics in tasks; the caller could not handle a panic of the thread itself.
        let _ = thread.join();
        self.flush();
        self.app.monitor().store().close();
        if let Some(calls) = &self.app.calls {
            let call = self.app.numbers.load(Ordering::Relaxed);
            let _ = calls.messages.send(self.app.with_totals(Line { call, side: "end", ..Line::default() }));
        }
    }
}
