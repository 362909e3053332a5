//! The configuration of an adapter: its name, its contract, and the services that it offers and calls.

mod keys;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::config::{Diagnostic, Report, Section, parse_with_errors};
use contract::monitor::Side;

pub use self::keys::reference;
use self::keys::{ADAPTER, FORMATS, KINDS, ON_MISMATCH, SIDES, UNCHECKED};
use crate::endpoint::{Endpoint, Pattern, Scheme};

/// The encoding and transport of a service's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolKind {
    /// Thrift over TCP, framed or unframed.
    Thrift,
    /// One Thrift message per HTTP POST.
    ThriftHttp,
    /// SOAP 1.1 over HTTP.
    Soap,
    /// REST over HTTP with JSON.
    Rest,
}

/// The protocol of a service of the contract, needed to read its messages.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// Name of the service in the contract.
    pub service: String,
    /// Encoding and transport of the service's messages.
    pub family: ProtocolKind,
    /// The Thrift IDL file or the WSDL; `None` for REST.
    pub schema: Option<PathBuf>,
    /// Name of the service in the IDL file; by default its name in the contract.
    pub schema_service: String,
    /// Scheme of endpoints written as `host:port`.
    pub bare: Scheme,
}

/// A service that the adapter's party offers.
#[derive(Clone, Debug)]
pub struct Providing {
    /// Name of the service in the contract.
    pub service: String,
    /// The endpoint at which other parties call the service.
    pub endpoint: Endpoint,
    /// Address of the service itself, `host:port`; by default the endpoint's.
    pub forward: String,
    /// Listening address for clients without an adapter; `None` if they are not accepted.
    pub plain: Option<String>,
    /// Listening address for other adapters; `None` if they are not accepted.
    pub adapters: Option<String>,
    /// Address announced to other adapters; by default `adapters`.
    pub adapters_at: Option<String>,
}

/// A service that the adapter's party calls.
#[derive(Clone, Debug)]
pub struct Consuming {
    /// Name of the service in the contract.
    pub service: String,
    /// The endpoint that the party calls.
    pub endpoint: Endpoint,
    /// Address to which the party connects in place of the endpoint; by default, a free port.
    pub listen: Option<String>,
    /// Address at which the service's adapter accepts other adapters; `None` if unknown.
    pub peer: Option<String>,
    /// Labels that vouch for the service. Without any, the label `unknown` vouches for it.
    pub labels: Vec<String>,
}

/// Settings of the store, which keeps service entries beyond the life of the process.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// Path of the store's file, or `None` to keep entries only in memory.
    pub path: Option<PathBuf>,
    /// Maximum size of entries in memory, in bytes; `None` means 512 KiB with a file, or 16 MiB without one.
    pub memory_bytes: Option<usize>,
    /// Time after which an unused entry is removed; `None` keeps all entries.
    pub expire_after: Option<Duration>,
    /// Maximum time before new entries are written to the file.
    pub flush: Duration,
    /// Whether a file of a different contract, name or version is renamed and replaced. Otherwise, only memory is used.
    pub is_rotated: bool,
}

/// The format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text as Whip writes it.
    Text,
    /// JSON, with one object per line.
    Json,
}

/// Settings for reports of broken clauses.
#[derive(Clone, Debug)]
pub struct ReportSettings {
    /// Format of the reports: text or JSON.
    pub format: Format,
    /// Path of the file for reports, or `None` for standard output.
    pub file: Option<PathBuf>,
    /// Time for which repeats of a report are suppressed.
    pub repeat_after: Duration,
    /// Maximum number of reports per second.
    pub per_s: u32,
    /// Whether reports show values with secret-sounding names.
    pub show_secrets: bool,
}

/// Settings for checking calls and for acting on the results.
#[derive(Clone, Copy, Debug)]
pub struct CheckSettings {
    /// The adapters that check preconditions.
    pub requires: Side,
    /// The adapters that check postconditions.
    pub ensures: Side,
    /// Whether calls that break a contract are rejected, instead of only reported.
    pub enforce: bool,
    /// Whether messages that cannot be checked are rejected. Requires `enforce`.
    pub refuses_unchecked: bool,
    /// Fraction of calls to check, from 0 to 1.
    pub sample: f64,
    /// Whether a call passes unchecked if the adapter itself fails.
    pub fail_open: bool,
    /// Maximum number of evaluation steps per clause.
    pub steps: u64,
}

/// Limits on memory and waiting.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum size of a checked message, in bytes. Longer messages pass unchecked.
    pub body_bytes: usize,
    /// Maximum memory for all messages in flight, in bytes. The first 16 KiB of each message do not count.
    pub bodies_bytes: usize,
    /// Maximum size of the head of an HTTP message, in bytes.
    pub head_bytes: usize,
    /// Maximum number of open connections across all listeners.
    pub connections: usize,
    /// Maximum number of listeners for learned endpoints.
    pub listeners: usize,
    /// Timeout for connecting, including handshakes.
    pub connect: Duration,
    /// Time after which an idle connection is closed.
    pub idle: Duration,
    /// Timeout for the head of a request, and for the response to a request.
    pub request: Duration,
    /// Time that calls in flight have to finish when the adapter ends.
    pub drain: Duration,
}

impl Limits {
    /// The timeout for a response. An adapter gets 1 to 5 s more, so that it can report that its service is late.
    pub(crate) fn answer(&self, from_adapter: bool) -> Duration {
        let grace = (self.request / 4).clamp(Duration::from_secs(1), Duration::from_secs(5));
        if from_adapter { self.request + grace } else { self.request }
    }
}

/// A certificate and its private key, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Path of the certificate chain.
    pub cert: PathBuf,
    /// Path of the private key.
    pub key: PathBuf,
}

/// Certificates of the adapter, and the roots that it trusts.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// Certificate of local listeners, or `None` for plain text.
    pub listen: Option<Identity>,
    /// File of the roots trusted for connections to services, or `None` for the machine's roots.
    pub upstream_ca: Option<PathBuf>,
    /// Whether the certificates of services are checked.
    pub upstream_verify: bool,
    /// Certificate and file of trusted roots for connections to and from other adapters, or `None` for plain text.
    pub peers: Option<(Identity, PathBuf)>,
}

/// The whole configuration of an adapter.
#[derive(Clone, Debug)]
pub struct Config {
    /// Label of the adapter in reports and metadata.
    pub name: String,
    /// Path of the contract file.
    pub contract: PathBuf,
    /// Protocols of the contract's services.
    pub protocols: Vec<Protocol>,
    /// Services that the adapter's party offers.
    pub providing: Vec<Providing>,
    /// Services that the adapter's party calls.
    pub consuming: Vec<Consuming>,
    /// Address of `/resolve`, `/metrics`, `/state` and `/health`; `None` for no admin port.
    pub admin: Option<String>,
    /// Address of the forward proxy; `None` for no proxy.
    pub proxy: Option<String>,
    /// IP address to which listeners for learned endpoints bind.
    pub local: IpAddr,
    /// Endpoints that the adapter may connect to without further configuration.
    pub allow: Vec<Pattern>,
    /// Settings of the store of service entries.
    pub store: StoreSettings,
    /// Format, destination and rate of reports.
    pub reports: ReportSettings,
    /// Settings for checking calls.
    pub checks: CheckSettings,
    /// Limits on memory and waiting.
    pub limits: Limits,
    /// Certificates and trusted roots.
    pub tls: TlsSettings,
    /// Path of the call log, or `None` to write none.
    pub calls: Option<PathBuf>,
    /// Number of threads that serve connections.
    pub threads: usize,
}

impl Config {
    pub(crate) fn protocol(&self, service: &str) -> Option<&Protocol> {
        self.protocols.iter().find(|protocol| protocol.service == service)
    }
}

/// The readable part of a configuration. The files it names are checked even if other parts have errors.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The valid part. Services with errors are left out, and any other invalid value is empty.
    pub config: Config,
    /// Name of the file in error messages.
    pub source: String,
    /// All errors in the file, by line.
    pub mistakes: Vec<Diagnostic>,
    /// Services whose `[protocols.NAME]` exists but has errors.
    pub(crate) doubtful: Vec<String>,
    pub(crate) is_partial: bool,
}

/// Reads as much of a configuration as possible, with paths relative to `folder`. Opens no file and never fails.
pub fn draft(source: &str, text: &str, folder: &Path) -> Draft {
    let report = Report::new("the configuration", text, &[]);
    let root = parse_with_errors::document(text, &report);
    let (config, doubtful) = config(&Section::whole(&root, &ADAPTER, (), &report), folder);
    let is_partial = report.is_partial();
    let mistakes = report.finish().err().unwrap_or_default();
    Draft { config, source: source.to_owned(), mistakes, doubtful, is_partial }
}

fn config(section: &Section<'_>, folder: &Path) -> (Config, Vec<String>) {
    section.check();
    let mut doubtful = Vec::new();
    let mut protocols = Vec::new();
    for (service, of) in section.named("protocols") {
        match sound(&of, |of| protocol(&service, of, folder)) {
            Some(protocol) => protocols.push(protocol),
            None => doubtful.push(service),
        }
    }
    let (called, offered) =
        (section.tables("consuming", "each `[[consuming]]`"), section.tables("providing", "each `[[providing]]`"));
    if !section.has("providing") && !section.has("consuming") && !section.has("proxy") {
        let hint =
            "add `[[consuming]]` for services the party calls, `[[providing]]` for services it offers".to_owned();
        section.report.missing(section.place, "the configuration has no `[[consuming]]` or `[[providing]]`", hint);
    }
    let config = Config {
        name: section.text("name").unwrap_or_default(),
        contract: path(section, "contract", folder).unwrap_or_default(),
        protocols,
        providing: offered.iter().flatten().filter_map(|of| sound(of, providing)).collect(),
        consuming: called.iter().flatten().filter_map(|of| sound(of, consuming)).collect(),
        admin: section.text("admin"),
        proxy: section.text("proxy"),
        local: section.text("local").and_then(|text| text.parse().ok()).unwrap_or(IpAddr::from([127, 0, 0, 1])),
        allow: section.texts("allow").iter().filter_map(|text| Pattern::parse(text)).collect(),
        store: store(&table(section, "store"), folder),
        reports: reports(&table(section, "reports"), folder),
        checks: checks(&table(section, "checks")),
        limits: limits(&table(section, "limits")),
        tls: tls(&table(section, "tls"), folder),
        calls: path(section, "calls", folder),
        threads: count(section, "threads"),
    };
    (config, doubtful)
}

/// Returns the result of `read`, or `None` if the table has errors.
fn sound<T>(section: &Section<'_>, read: impl FnOnce(&Section<'_>) -> Option<T>) -> Option<T> {
    let before = section.report.count();
    section.check();
    read(section).filter(|_| section.report.count() == before)
}

/// Opens a table that may be missing because its keys have defaults.
fn table<'s>(section: &'s Section<'_>, key: &str) -> Section<'s> {
    let table = section.section_or_empty(key);
    table.check_keys();
    table
}

fn endpoint(section: &Section<'_>) -> Option<Endpoint> {
    Endpoint::parse(&section.text("endpoint")?)
}

fn path(section: &Section<'_>, key: &str, folder: &Path) -> Option<PathBuf> {
    section.text(key).map(|path| folder.join(path))
}

fn count(section: &Section<'_>, key: &str) -> usize {
    section.count(key).unwrap_or_default() as usize
}

fn time(section: &Section<'_>, key: &str) -> Duration {
    Duration::from_nanos(section.duration_ns(key).unwrap_or_default())
}

fn flag(section: &Section<'_>, key: &str) -> bool {
    section.flag(key).unwrap_or_default()
}

fn protocol(service: &str, section: &Section<'_>, folder: &Path) -> Option<Protocol> {
    let family = section.choice("kind", KINDS)?;
    let (needed, foreign) = match family {
        ProtocolKind::Thrift => (Some("idl"), &["wsdl", "tls"][..]),
        ProtocolKind::ThriftHttp => (Some("idl"), &["wsdl"][..]),
        ProtocolKind::Soap => (Some("wsdl"), &["idl"][..]),
        ProtocolKind::Rest => (None, &["idl", "wsdl"][..]),
    };
    let word = KINDS.iter().find(|(_, kind)| *kind == family).map_or("", |(word, _)| word);
    for key in foreign.iter().filter(|key| section.has(key)) {
        section.mistake(key, format!("`{key}` does not apply to a protocol of kind `{word}`"), None);
    }
    needed.iter().for_each(|key| section.required(key));
    let schema = needed.and_then(|key| path(section, key, folder));
    let bare = match (family, flag(section, "tls")) {
        (ProtocolKind::Thrift, _) => Scheme::Tcp,
        (_, false) => Scheme::Http,
        (_, true) => Scheme::Https,
    };
    let schema_service = section.text("service").unwrap_or_else(|| service.to_owned());
    // The missing key has already been reported, unless the file has syntax errors.
    if needed.is_some() && schema.is_none() {
        return None;
    }
    Some(Protocol { service: service.to_owned(), family, schema, schema_service, bare })
}

fn providing(section: &Section<'_>) -> Option<Providing> {
    let (service, endpoint) = (section.text("service"), endpoint(section));
    let (plain, adapters) = (section.text("plain"), section.text("adapters"));
    if !section.has("plain") && !section.has("adapters") {
        let hint = "add `plain = \"host:port\"` for clients without an adapter, `adapters = \"host:port\"` for others";
        section.report.missing(section.place, "this service has no listener", hint.to_owned());
    }
    if section.has("adapters_at") && !section.has("adapters") {
        section.report.missing(section.place_of("adapters_at"), "`adapters_at` needs `adapters`", None);
    }
    let (forward, adapters_at) = (section.text("forward"), section.text("adapters_at"));
    let (service, endpoint) = (service?, endpoint?);
    let forward = forward.unwrap_or_else(|| endpoint.authority());
    Some(Providing { service, endpoint, forward, plain, adapters, adapters_at })
}

fn consuming(section: &Section<'_>) -> Option<Consuming> {
    let (service, endpoint) = (section.text("service"), endpoint(section));
    let (listen, peer, labels) = (section.text("listen"), section.text("peer"), section.texts("labels"));
    Some(Consuming { service: service?, endpoint: endpoint?, listen, peer, labels })
}

fn store(section: &Section<'_>, folder: &Path) -> StoreSettings {
    StoreSettings {
        path: path(section, "path", folder),
        memory_bytes: section.bytes("memory").map(|bytes| bytes as usize),
        expire_after: section.duration_ns("expire_after").map(Duration::from_nanos),
        flush: time(section, "flush"),
        is_rotated: section.choice("on_mismatch", ON_MISMATCH).unwrap_or(true),
    }
}

fn reports(section: &Section<'_>, folder: &Path) -> ReportSettings {
    ReportSettings {
        format: section.choice("format", FORMATS).unwrap_or(Format::Text),
        file: path(section, "file", folder),
        repeat_after: time(section, "repeat_after"),
        per_s: section.small("per_s").unwrap_or_default(),
        show_secrets: flag(section, "show_secrets"),
    }
}

fn checks(section: &Section<'_>) -> CheckSettings {
    let (enforce, sample) = (flag(section, "enforce"), section.fraction("sample"));
    let refuses_unchecked = section.choice("unchecked", UNCHECKED).unwrap_or(enforce);
    if refuses_unchecked && !enforce {
        let hint = "add `enforce = true`, or remove `unchecked`".to_owned();
        section.mistake("unchecked", "`unchecked = \"refuse\"` needs `enforce = true`".to_owned(), Some(hint));
    }
    if enforce && refuses_unchecked && sample.is_some_and(|sample| sample < 1.0) {
        let hint = "add `unchecked = \"pass\"`, or remove `sample`".to_owned();
        let what = "`sample` below 1 lets calls pass unchecked, which `enforce` does not allow".to_owned();
        section.mistake("sample", what, Some(hint));
    }
    let side = |key| section.choice(key, SIDES).unwrap_or(Side::Receiver);
    let [requires, ensures] = ["requires", "ensures"].map(side);
    let fail_open = section.flag("fail_open").unwrap_or(!refuses_unchecked);
    let (sample, steps) = (sample.unwrap_or_default(), section.count("steps").unwrap_or_default());
    CheckSettings { requires, ensures, enforce, refuses_unchecked, sample, fail_open, steps }
}

fn limits(section: &Section<'_>) -> Limits {
    let [body_bytes, bodies_bytes, head_bytes] =
        ["body", "bodies", "head"].map(|key| section.bytes(key).unwrap_or_default() as usize);
    let [connections, listeners] = ["connections", "listeners"].map(|key| count(section, key));
    let [connect, idle, request, drain] = ["connect", "idle", "request", "drain"].map(|key| time(section, key));
    Limits { body_bytes, bodies_bytes, head_bytes, connections, listeners, connect, idle, request, drain }
}

fn tls(section: &Section<'_>, folder: &Path) -> TlsSettings {
    let identity = |section: &Section<'_>| {
        section.check();
        let (cert, key) = (path(section, "cert", folder), path(section, "key", folder));
        Some(Identity { cert: cert?, key: key? })
    };
    let upstream = table(section, "upstream");
    let (upstream_ca, upstream_verify) = (path(&upstream, "ca", folder), flag(&upstream, "verify"));
    if upstream_ca.is_some() && upstream.has("verify") && !upstream_verify {
        upstream.mistake("ca", "`ca` has no effect with `verify = false`", None);
    }
    let peers = section.section("peers").and_then(|peers| identity(&peers).zip(path(&peers, "ca", folder)));
    let listen = section.section("listen").and_then(|listen| identity(&listen));
    TlsSettings { listen, upstream_ca, upstream_verify, peers }
}

pub(crate) fn fits(family: ProtocolKind, endpoint: &Endpoint) -> bool {
    family != ProtocolKind::Thrift || endpoint.scheme == Scheme::Tcp
}
