//! What an adapter is told: its name, its contract, which services it stands before and which its party calls.

mod keys;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::config::{Diagnostic, Report, Section, mend};
use contract::monitor::Side;

pub use self::keys::reference;
use self::keys::{ADAPTER, FORMATS, KINDS, ON_MISMATCH, SIDES, UNCHECKED};
use crate::endpoint::{Endpoint, Pattern, Scheme};

/// How the messages of a service are encoded and carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolKind {
    /// Thrift over TCP, framed or not.
    Thrift,
    /// One Thrift message in each HTTP POST.
    ThriftHttp,
    /// SOAP 1.1 over HTTP.
    Soap,
    /// REST over HTTP with JSON.
    Rest,
}

/// How the messages of one service of the contract are read.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// The service in the contract.
    pub service: String,
    /// How they are encoded and carried.
    pub family: ProtocolKind,
    /// The Thrift IDL file or the WSDL.
    pub schema: Option<PathBuf>,
    /// The service in the IDL file, where it has another name there.
    pub schema_service: String,
    /// Over HTTP: whether endpoints that are written as `host:port` are asked over TLS.
    pub tls: bool,
}

impl Protocol {
    /// The scheme of endpoints that are written without one.
    pub(crate) fn bare(&self) -> Scheme {
        match (self.family, self.tls) {
            (ProtocolKind::Thrift, _) => Scheme::Tcp,
            (_, false) => Scheme::Http,
            (_, true) => Scheme::Https,
        }
    }
}

/// A service that this adapter stands before.
#[derive(Clone, Debug)]
pub struct Providing {
    /// The service in the contract.
    pub service: String,
    /// The endpoint as others know it.
    pub endpoint: String,
    /// `host:port` where the service itself answers; the endpoint's own where it is not given.
    pub forward: String,
    /// Where clients without an adapter are taken, if they are.
    pub plain: Option<String>,
    /// Where other adapters are taken, if they are.
    pub adapters: Option<String>,
    /// What other adapters are told of where that is.
    pub adapters_at: Option<String>,
}

/// A service that this adapter's party calls.
#[derive(Clone, Debug)]
pub struct Consuming {
    /// The service in the contract.
    pub service: String,
    /// The endpoint as the party knows it.
    pub endpoint: String,
    /// Where the party is to connect instead; any port where it is not given.
    pub listen: Option<String>,
    /// Where the adapter of that service takes other adapters.
    pub peer: Option<String>,
    /// Who vouches for it: `unknown` where nobody is named.
    pub labels: Vec<String>,
}

/// What happens when a store cannot be used as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMismatch {
    /// It is put aside under another name, and a new one is begun.
    Rotate,
    /// It is left as it is, and entries are kept in memory alone.
    Refuse,
}

/// Where service entries are kept beyond the life of the process.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The file; `None`: in memory alone.
    pub path: Option<PathBuf>,
    /// Bytes of entries in memory; `None`: 512 KiB beside a file, which has those that leave, and 16 MiB without one, where they are forgotten.
    pub memory_bytes: Option<usize>,
    /// Entries that were not used for so long are forgotten.
    pub expire_after: Option<Duration>,
    /// What is new is written at least so often.
    pub flush: Duration,
    /// What to do with a file of another contract, name or version.
    pub on_mismatch: OnMismatch,
}

/// How reports look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Whip's own form.
    Text,
    /// JSON, one object a line.
    Json,
}

/// What is told of clauses that are not kept.
#[derive(Clone, Debug)]
pub struct ReportSettings {
    /// How it looks.
    pub format: Format,
    /// Where it goes; `None`: to standard output.
    pub file: Option<PathBuf>,
    /// What was told is not told again for so long.
    pub repeat_after: Duration,
    /// Most reports a second.
    pub per_s: u32,
    /// Whether values whose names say that they are secret are shown.
    pub show_secrets: bool,
}

/// What happens to a message that cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// It is refused. Requires `enforce`.
    Refuse,
    /// It passes.
    Pass,
}

/// Which calls are looked at, and what follows.
#[derive(Clone, Copy, Debug)]
pub struct CheckSettings {
    /// Who asks preconditions.
    pub requires: Side,
    /// Who asks postconditions.
    pub ensures: Side,
    /// Whether calls that break a contract are refused.
    pub enforce: bool,
    /// What happens to a message that cannot be checked.
    pub unchecked: Unchecked,
    /// The share of calls that are looked at.
    pub sample: f64,
    /// Whether a call passes unchecked where the adapter itself fails.
    pub fail_open: bool,
    /// Steps that one clause may take.
    pub steps: u64,
}

/// What bounds memory and waiting.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest message that is looked at; a longer one streams through.
    pub body_bytes: usize,
    /// Memory of all messages in flight, beyond 16 KiB of each.
    pub bodies_bytes: usize,
    /// Longest head of an HTTP message.
    pub head_bytes: usize,
    /// Connections at once, of all listeners.
    pub connections: usize,
    /// Listeners for endpoints that were learned.
    pub listeners: usize,
    /// How long connecting may take, handshakes included.
    pub connect: Duration,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// How long the head of a request may take to come, and an answer after its request.
    pub request: Duration,
    /// How long calls that are under way may take when the adapter ends.
    pub drain: Duration,
}

impl Limits {
    /// How long an answer may take. Another adapter has the same limit for its service, and its word that the service
    /// is late needs time to arrive.
    pub(crate) fn answer(&self, from_adapter: bool) -> Duration {
        let grace = (self.request / 4).clamp(Duration::from_secs(1), Duration::from_secs(5));
        if from_adapter { self.request + grace } else { self.request }
    }
}

/// A certificate with its key, PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// What TLS needs.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// What local listeners show; `None`: they speak plainly.
    pub listen: Option<Identity>,
    /// Roots to trust when services are dialled; `None`: those of the machine.
    pub upstream_ca: Option<PathBuf>,
    /// Whether certificates of services are checked.
    pub upstream_verify: bool,
    /// Between adapters: the own certificate, and the roots that others' must come from. `None`: plainly.
    pub peers: Option<(Identity, PathBuf)>,
}

/// What an adapter is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The adapter's label.
    pub name: String,
    /// The contract's file.
    pub contract: PathBuf,
    /// How messages are read, by service.
    pub protocols: Vec<Protocol>,
    /// Services that it stands before.
    pub providing: Vec<Providing>,
    /// Services that its party calls.
    pub consuming: Vec<Consuming>,
    /// Where it answers `/resolve`, `/metrics`, `/state` and `/health`.
    pub admin: Option<String>,
    /// Where it is a forward proxy.
    pub proxy: Option<String>,
    /// Where listeners for learned endpoints are bound.
    pub local: IpAddr,
    /// Endpoints that may be dialled although no configuration names them.
    pub allow: Vec<Pattern>,
    /// Service entries.
    pub store: StoreSettings,
    /// Reports.
    pub reports: ReportSettings,
    /// Checks.
    pub checks: CheckSettings,
    /// Limits.
    pub limits: Limits,
    /// TLS.
    pub tls: TlsSettings,
    /// A file that gets one line for each call.
    pub calls: Option<PathBuf>,
    /// Threads that serve connections.
    pub threads: usize,
}

/// A configuration as far as it could be read, so that what it names can be looked at whatever else is wrong.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What could be read. Services with mistakes are left out; any other value with a mistake is empty.
    pub config: Config,
    /// The file, as its reader was told its name.
    pub source: String,
    /// All its mistakes, in the order of the lines.
    pub mistakes: Vec<Diagnostic>,
    /// Services whose `[protocols.NAME]` is there, but has mistakes.
    pub(crate) doubtful: Vec<String>,
    /// Whether a part of the file is no TOML.
    pub(crate) is_partial: bool,
}

/// Reads a configuration as far as that goes. Paths in it are relative to `folder`; no file is opened.
pub fn draft(source: &str, text: &str, folder: &Path) -> Draft {
    let report = Report::new("the configuration", text, &[]);
    let root = mend::document(text, &report);
    let (config, doubtful) = config(&Section::whole(&root, &ADAPTER, (), &report), folder);
    let is_partial = report.is_partial();
    let mistakes = report.finish().err().unwrap_or_default();
    Draft { config, source: source.to_owned(), mistakes, doubtful, is_partial }
}

/// Reads a configuration. Paths in it are relative to `folder`; no file is opened.
///
/// # Errors
/// All its mistakes.
pub fn read(text: &str, folder: &Path) -> Result<Config, Vec<Diagnostic>> {
    let Draft { config, mistakes, .. } = draft("", text, folder);
    if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
}

fn config(section: &Section<'_>, folder: &Path) -> (Config, Vec<String>) {
    section.check_keys();
    section.required("name");
    section.required("contract");
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
        let hint = "add `[[consuming]]` for what the party calls, `[[providing]]` for what it offers".to_owned();
        section.report.missing(section.place, "the configuration has no `[[consuming]]` or `[[providing]]`", hint);
    }
    // Each has defaults without its table, too.
    let within = |key| section.section(key).unwrap_or_else(|| section.empty(key));
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
        store: store(&within("store"), folder),
        reports: reports(&within("reports"), folder),
        checks: checks(&within("checks")),
        limits: limits(&within("limits")),
        tls: tls(&within("tls"), folder),
        calls: path(section, "calls", folder),
        threads: count(section, "threads"),
    };
    (config, doubtful)
}

/// What `read` makes of a table; `None`: there are mistakes in it.
fn sound<T>(section: &Section<'_>, read: impl FnOnce(&Section<'_>) -> Option<T>) -> Option<T> {
    let before = section.report.count();
    read(section).filter(|_| section.report.count() == before)
}

fn path(section: &Section<'_>, key: &str, folder: &Path) -> Option<PathBuf> {
    section.text(key).map(|path| folder.join(path))
}

fn count(section: &Section<'_>, key: &str) -> usize {
    section.count(key).unwrap_or_default() as usize
}

fn bytes(section: &Section<'_>, key: &str) -> usize {
    section.bytes(key).unwrap_or_default() as usize
}

fn time(section: &Section<'_>, key: &str) -> Duration {
    Duration::from_nanos(section.duration_ns(key).unwrap_or_default())
}

fn flag(section: &Section<'_>, key: &str) -> bool {
    section.flag(key).unwrap_or_default()
}

/// `None`: what it cannot do without is not there, or mistaken.
fn protocol(service: &str, section: &Section<'_>, folder: &Path) -> Option<Protocol> {
    section.check_keys();
    section.required("kind");
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
    let schema = needed.and_then(|key| {
        section.required(key);
        path(section, key, folder)
    });
    let (tls, own) = (flag(section, "tls"), section.text("service"));
    // Of a file with syntax errors nobody says what is missing.
    if needed.is_some() && schema.is_none() {
        return None;
    }
    let schema_service = own.unwrap_or_else(|| service.to_owned());
    Some(Protocol { service: service.to_owned(), family, schema, schema_service, tls })
}

/// `None`: what it cannot do without is not there, or mistaken.
fn providing(section: &Section<'_>) -> Option<Providing> {
    section.check_keys();
    section.required("service");
    section.required("endpoint");
    let (service, endpoint) = (section.text("service"), section.text("endpoint"));
    let own = endpoint.as_deref().and_then(Endpoint::parse).map(|endpoint| endpoint.authority());
    let (plain, adapters) = (section.text("plain"), section.text("adapters"));
    if !section.has("plain") && !section.has("adapters") {
        let hint = "add `plain = \"host:port\"` for clients without an adapter, `adapters = \"host:port\"` for others";
        section.report.missing(section.place, "this service has no listener", hint.to_owned());
    }
    if section.has("adapters_at") && !section.has("adapters") {
        section.report.missing(section.place_of("adapters_at"), "`adapters_at` needs `adapters`", None);
    }
    let (forward, adapters_at) = (section.text("forward").or(own), section.text("adapters_at"));
    let (service, endpoint, forward) = (service?, endpoint?, forward.unwrap_or_default());
    Some(Providing { service, endpoint, forward, plain, adapters, adapters_at })
}

/// `None`: what it cannot do without is not there, or mistaken.
fn consuming(section: &Section<'_>) -> Option<Consuming> {
    section.check_keys();
    section.required("service");
    section.required("endpoint");
    let (service, endpoint) = (section.text("service"), section.text("endpoint"));
    let (listen, peer, labels) = (section.text("listen"), section.text("peer"), section.texts("labels"));
    Some(Consuming { service: service?, endpoint: endpoint?, listen, peer, labels })
}

fn store(section: &Section<'_>, folder: &Path) -> StoreSettings {
    section.check_keys();
    StoreSettings {
        path: path(section, "path", folder),
        memory_bytes: section.bytes("memory").map(|bytes| bytes as usize),
        expire_after: section.duration_ns("expire_after").map(Duration::from_nanos),
        flush: time(section, "flush"),
        on_mismatch: section.choice("on_mismatch", ON_MISMATCH).unwrap_or(OnMismatch::Rotate),
    }
}

fn reports(section: &Section<'_>, folder: &Path) -> ReportSettings {
    section.check_keys();
    ReportSettings {
        format: section.choice("format", FORMATS).unwrap_or(Format::Text),
        file: path(section, "file", folder),
        repeat_after: time(section, "repeat_after"),
        per_s: section.small("per_s").unwrap_or_default(),
        show_secrets: flag(section, "show_secrets"),
    }
}

fn checks(section: &Section<'_>) -> CheckSettings {
    section.check_keys();
    let (enforce, sample) = (flag(section, "enforce"), section.fraction("sample"));
    let default = if enforce { Unchecked::Refuse } else { Unchecked::Pass };
    let unchecked = section.choice("unchecked", UNCHECKED).unwrap_or(default);
    let refuses = unchecked == Unchecked::Refuse;
    if refuses && !enforce {
        let hint = "add `enforce = true`, or remove `unchecked`".to_owned();
        section.mistake("unchecked", "`unchecked = \"refuse\"` needs `enforce = true`".to_owned(), Some(hint));
    }
    if enforce && refuses && sample.is_some_and(|sample| sample < 1.0) {
        let hint = "add `unchecked = \"pass\"`, or remove `sample`".to_owned();
        let what = "`sample` below 1 lets calls pass unchecked, which `enforce` does not allow".to_owned();
        section.mistake("sample", what, Some(hint));
    }
    CheckSettings {
        requires: section.choice("requires", SIDES).unwrap_or(Side::Receiver),
        ensures: section.choice("ensures", SIDES).unwrap_or(Side::Receiver),
        enforce,
        unchecked,
        sample: sample.unwrap_or_default(),
        fail_open: section.flag("fail_open").unwrap_or(!refuses),
        steps: section.count("steps").unwrap_or_default(),
    }
}

fn limits(section: &Section<'_>) -> Limits {
    section.check_keys();
    Limits {
        body_bytes: bytes(section, "body"),
        bodies_bytes: bytes(section, "bodies"),
        head_bytes: bytes(section, "head"),
        connections: count(section, "connections"),
        listeners: count(section, "listeners"),
        connect: time(section, "connect"),
        idle: time(section, "idle"),
        request: time(section, "request"),
        drain: time(section, "drain"),
    }
}

fn tls(section: &Section<'_>, folder: &Path) -> TlsSettings {
    section.check_keys();
    let identity = |section: &Section<'_>| {
        section.check_keys();
        section.required("cert");
        section.required("key");
        let (cert, key) = (path(section, "cert", folder), path(section, "key", folder));
        Some(Identity { cert: cert?, key: key? })
    };
    let upstream = section.section("upstream").unwrap_or_else(|| section.empty("upstream"));
    upstream.check_keys();
    let (upstream_ca, upstream_verify) = (path(&upstream, "ca", folder), flag(&upstream, "verify"));
    if upstream_ca.is_some() && upstream.has("verify") && !upstream_verify {
        upstream.mistake("ca", "`ca` has no effect with `verify = false`", None);
    }
    let peers = section.section("peers").and_then(|peers| {
        peers.required("ca");
        let ca = path(&peers, "ca", folder);
        identity(&peers).zip(ca)
    });
    TlsSettings {
        listen: section.section("listen").and_then(|listen| identity(&listen)),
        upstream_ca,
        upstream_verify,
        peers,
    }
}

/// Whether endpoints of this form fit messages of this family.
pub(crate) fn fits(family: ProtocolKind, endpoint: &Endpoint) -> bool {
    family != ProtocolKind::Thrift || endpoint.scheme == Scheme::Tcp
}
