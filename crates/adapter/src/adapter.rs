//! A whole adapter: checked, started, ended.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::{Finding, Severity};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};

use crate::app::App;
use crate::call::{Hop, Side};
use crate::calls::Calls;
use crate::config::{Config, Family, Protocol, Providing, fits};
use crate::dial::Dial;
use crate::endpoint::{Endpoint, Scheme};
use crate::http::Target;
use crate::listen::{self, Purpose};
use crate::metrics::Metrics;
use crate::pool::Pool;
use crate::read::Services;
use crate::reports::Reports;
use crate::store::AnyStore;
use crate::tls::Tls;
use crate::watch::Watch;

/// Why an adapter does not start. All reasons at once.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Something in the configuration, or in a file that it names.
    #[error("{}", .0.join("\n"))]
    Wrong(Vec<String>),
    /// A port, a file or a thread is not to be had.
    #[error("{what}: {error}")]
    System {
        /// What.
        what: String,
        /// Why.
        error: io::Error,
    },
}

/// A configuration whose files have been read.
#[derive(Debug)]
pub struct Checked {
    services: Services,
    tls: Tls,
    /// What is worth a thought, of the contract and of the configuration.
    pub warnings: Vec<String>,
}

/// Reads the files that a configuration names and checks them against each other. Nothing is opened for writing, no port is bound.
///
/// # Errors
/// All that is wrong.
pub fn check(config: &Config) -> Result<Checked, StartError> {
    let mut wrong = Vec::new();
    let mut warnings = Vec::new();
    let given = config.protocols.iter().filter_map(|protocol| {
        Some((protocol.service.clone(), protocol.schema_service.clone(), protocol.schema.clone()?))
    });
    let checked = match crate::schema::check_contract(&config.contract, &given.collect::<Vec<_>>()) {
        Ok((_, checked)) => checked,
        Err(error) => return Err(StartError::Wrong(error.lines().map(str::to_owned).collect())),
    };
    let shown = |finding: &Finding| {
        let hint = finding.hint.as_ref().map_or(String::new(), |hint| format!("\n  hint: {hint}"));
        format!("{}:{}:{}: {}{hint}", config.contract.display(), finding.line, finding.column, finding.message)
    };
    for finding in &checked.findings {
        match finding.severity {
            Severity::Mistake => wrong.push(shown(finding)),
            Severity::Warning => warnings.push(shown(finding)),
            Severity::Note => {}
        }
    }
    let Some(contract) = checked.contract else { return Err(StartError::Wrong(wrong)) };
    let contract = Arc::new(contract);
    let families =
        config.protocols.iter().map(|protocol| (protocol.service.as_str(), protocol.family)).collect::<HashMap<_, _>>();
    let named = config.providing.iter().map(|of| (&of.service, &of.endpoint));
    for (service, endpoint) in named.chain(config.consuming.iter().map(|of| (&of.service, &of.endpoint))) {
        if contract.service(service).is_none() {
            wrong.push(format!("`{endpoint}`: the contract has no service `{service}`"));
        }
        match families.get(service.as_str()) {
            None => wrong.push(format!("`{endpoint}`: `[protocols.{service}]` does not say how its messages are read")),
            Some(family) => {
                if Endpoint::parse(endpoint).is_some_and(|endpoint| !fits(*family, &endpoint)) {
                    wrong.push(format!("`{endpoint}`: Thrift over TCP is at `host:port`, not at a URL"));
                }
            }
        }
    }
    for service in contract.services().map(|service| contract.service_name(service).to_owned()) {
        if !families.contains_key(service.as_str()) {
            warnings.push(format!(
                "`[protocols.{service}]` is missing: calls of this service pass without being looked at"
            ));
        }
    }
    if config.allow.is_empty() && !config.consuming.is_empty() {
        warnings.push(
            "`allow` is empty: endpoints that are learned are not dialled; `allow = [\"host:*\"]` lets them be"
                .to_owned(),
        );
    }
    let services = Services::new(contract, &config.protocols);
    let needs_roots =
        config.consuming.iter().map(|of| &of.endpoint).chain(config.providing.iter().map(|of| &of.endpoint));
    let needs_roots =
        needs_roots.filter_map(|endpoint| Endpoint::parse(endpoint)).any(|endpoint| endpoint.scheme == Scheme::Https)
            || config.protocols.iter().any(|of| of.tls);
    let tls = Tls::new(&config.tls, needs_roots);
    match (services, tls) {
        (Ok(services), Ok(tls)) if wrong.is_empty() => Ok(Checked { services, tls, warnings }),
        (services, tls) => {
            wrong.extend(services.err().into_iter().flatten());
            wrong.extend(tls.err().into_iter().flatten());
            Err(StartError::Wrong(wrong))
        }
    }
}

/// An adapter that runs until it is told to end, or dropped.
#[derive(Debug)]
pub struct Running {
    /// Of the thread that drives all connections, or waits for those that do.
    thread: Option<JoinHandle<()>>,
    app: Arc<App>,
    ends: watch::Sender<bool>,
    /// Where it listens, by what for: `admin`, `proxy`, `consuming ENDPOINT`, `plain ENDPOINT`, `adapters ENDPOINT`.
    pub addresses: BTreeMap<String, SocketAddr>,
}

/// Starts an adapter. Reports go to `out`.
///
/// # Errors
/// Why not. What is wrong with the store is none: it is told among the reports.
pub fn start(config: &Config, checked: Checked, out: Box<dyn Write + Send>) -> Result<Running, StartError> {
    start_with(config, checked, out, |contract_hash, metrics| {
        AnyStore::open(&config.store, &config.name, contract_hash, metrics)
    })
}

/// `open` gives the store and what is to be told of it.
fn start_with(
    config: &Config,
    checked: Checked,
    out: Box<dyn Write + Send>,
    open: impl FnOnce(u64, &Arc<Metrics>) -> (AnyStore, Vec<String>),
) -> Result<Running, StartError> {
    let system = |what: &str| {
        let what = what.to_owned();
        move |error| StartError::System { what, error }
    };
    let metrics = Arc::new(Metrics::default());
    let reports =
        Reports::start(config.reports.clone(), metrics.clone(), out).map_err(system("no thread for reports"))?;
    let (store, notes) = open(checked.services.contract.hash(), &metrics);
    for note in notes {
        reports.note(note);
    }
    let calls = match &config.calls {
        Some(path) => Some(Calls::start(path).map_err(system(&format!("`calls`: {}", path.display())))?),
        None => None,
    };
    let (ends, drain) = watch::channel(false);
    let dial = Dial {
        tls: checked.tls,
        metrics: metrics.clone(),
        connect: config.limits.connect,
        configured: configured(config),
        allow: config.allow.clone(),
    };
    let app = Arc::new(App {
        watch: Watch::new(config, checked.services, store, reports, metrics),
        dial,
        limits: config.limits,
        calls,
        pool: Pool::new(config.limits.idle, config.limits.head_bytes),
        drain,
        slots: Arc::new(Semaphore::new(config.limits.connections)),
        listeners: tokio::sync::Mutex::default(),
        learned_max: config.limits.listeners + config.consuming.len(),
        local: config.local,
        paths: Mutex::default(),
        silent_peers: Mutex::default(),
    });
    let no_threads = "no threads for connections";
    let runtime = runtime(config.threads).map_err(system(no_threads))?;
    let addresses = runtime.block_on(bind(&app, config))?;
    runtime.spawn(tell_of_store(app.clone()));
    let lasting = until_drained(app.clone());
    let thread = std::thread::Builder::new().name("adapter".to_owned()).spawn(move || {
        runtime.block_on(lasting);
        runtime.shutdown_timeout(Duration::from_millis(100));
    });
    Ok(Running { thread: Some(thread.map_err(system(no_threads))?), app, ends, addresses })
}

/// On one thread, tasks run in the order in which they were woken, so that messages which came together leave together: each peer is then
/// woken once for all of them. Several threads run first what was woken last, by which each message wakes its peer anew; measured with 16 clients,
/// that is 1.2 times the CPU time a request.
fn runtime(threads: usize) -> io::Result<Runtime> {
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    builder.thread_name("adapter").enable_all().build()
}

/// Comes to its end when the adapter is to end and its connections have, or the time for that is over.
async fn until_drained(app: Arc<App>) {
    app.ending().await;
    let permits = u32::try_from(app.limits.connections).unwrap_or(u32::MAX);
    // All connections have ended when all permits are back.
    let _ = tokio::time::timeout(app.limits.drain, app.slots.acquire_many(permits)).await;
}

/// Authorities that may be dialled as the configuration names them.
fn configured(config: &Config) -> Vec<String> {
    let authority = |endpoint: &str| Endpoint::parse(endpoint).map(|endpoint| endpoint.authority());
    let mut all = Vec::new();
    for providing in &config.providing {
        all.extend([authority(&providing.endpoint), Some(providing.forward.clone()), providing.adapters_at.clone()]);
        // An adapter that serves its own party finds itself behind its own address.
        all.push(providing.adapters.clone());
    }
    for consuming in &config.consuming {
        all.extend([authority(&consuming.endpoint), consuming.peer.clone()]);
    }
    all.into_iter().flatten().collect()
}

/// Tells of what goes wrong with the store while calls pass.
async fn tell_of_store(app: Arc<App>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
            () = app.ending() => return,
        }
        for note in app.watch.with(|monitor| monitor.store().take_notes()) {
            app.watch.reports.note(note);
        }
    }
}

async fn bind(app: &Arc<App>, config: &Config) -> Result<BTreeMap<String, SocketAddr>, StartError> {
    let mut addresses = BTreeMap::new();
    let protocol = |service: &str| config.protocols.iter().find(|of| of.service == service);
    let told = |what: String| move |error| StartError::System { what, error };
    for consuming in &config.consuming {
        let (Some(parsed), Some(of)) = (Endpoint::parse(&consuming.endpoint), protocol(&consuming.service)) else {
            continue;
        };
        let parsed = parsed.over(of.bare());
        let at = listen::listener_for(app, &consuming.endpoint, &parsed, of.family, consuming.listen.as_deref()).await;
        let at = at.map_err(told(format!("no listener for `{}`", consuming.endpoint)))?;
        addresses.insert(format!("consuming {}", consuming.endpoint), at);
    }
    for providing in &config.providing {
        let Some(of) = protocol(&providing.service) else { continue };
        for (name, at, peers) in [("plain", &providing.plain, false), ("adapters", &providing.adapters, true)] {
            let Some(at) = at else { continue };
            let purpose = purpose(app, providing, of, peers);
            let what = format!("{name} {}", providing.endpoint);
            let at = open(app, at, purpose).await.map_err(told(format!("no listener for `{what}` at `{at}`")))?;
            addresses.insert(what, at);
        }
    }
    for (name, at, purpose) in [("admin", &config.admin, Purpose::Admin), ("proxy", &config.proxy, Purpose::Proxy)] {
        if let Some(at) = at {
            let bound = open(app, at, purpose).await.map_err(told(format!("no listener for `{name}` at `{at}`")))?;
            addresses.insert(name.to_owned(), bound);
        }
    }
    Ok(addresses)
}

async fn open(app: &Arc<App>, at: &str, purpose: Purpose) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(at).await?;
    let address = listener.local_addr()?;
    tokio::spawn(listen::accept(app.clone(), listener, purpose));
    Ok(address)
}

fn purpose(app: &Arc<App>, providing: &Providing, of: &Protocol, peers: bool) -> Purpose {
    let side = Side::Server { peers };
    let endpoint = Endpoint::parse(&providing.endpoint).map(|endpoint| endpoint.over(of.bare()));
    let scheme = endpoint.as_ref().map_or(Scheme::Tcp, |endpoint| endpoint.scheme);
    if of.family == Family::Thrift {
        let forward = providing.forward.clone();
        return Purpose::Thrift(Hop {
            side,
            endpoint: providing.endpoint.as_str().into(),
            forward,
            is_tls: false,
            identity: None,
        });
    }
    if let Some(endpoint) = &endpoint {
        app.add_path(&providing.endpoint, endpoint);
    }
    let authority = endpoint.map(|endpoint| endpoint.authority()).unwrap_or_default();
    Purpose::Http(Target::Fixed { side, scheme, authority, forward: providing.forward.clone(), identity: None })
}

impl Running {
    /// What it has counted, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        self.app.watch.metrics.text(self.app.watch.counts())
    }

    /// Every service entry that it knows.
    pub fn entries(&self) -> Vec<contract::monitor::Shown> {
        let now_s = crate::clock::unix_s();
        self.app.watch.with(|monitor| monitor.entries(now_s))
    }

    /// Waits until reports and entries so far have been written.
    pub fn flush(&self) {
        self.app.watch.with(|monitor| monitor.store().flush());
        self.app.watch.reports.flush();
    }

    /// Ends: no connection is taken any more, and calls that are under way may end within the time that the configuration gives.
    pub fn end(mut self) {
        self.drain();
    }

    fn drain(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let _ = self.ends.send(true);
        // A task that panics is caught by the runtime; it is nothing that whoever ends the adapter could mend.
        let _ = thread.join();
        self.flush();
    }
}

/// As [`Running::end`].
impl Drop for Running {
    fn drop(&mut self) {
        self.drain();
    }
}
