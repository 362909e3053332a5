//! What an adapter is told: its name, its contract, which services it stands before and which its party calls.

mod node;
mod section;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use contract::monitor::Side;
use wire::mistake::Mistake;

use self::node::Found;
use self::section::Section;
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

/// Which calls are looked at, and what follows.
#[derive(Clone, Copy, Debug)]
pub struct CheckSettings {
    /// Who asks preconditions.
    pub requires: Side,
    /// Who asks postconditions.
    pub ensures: Side,
    /// Whether calls that break a contract are refused.
    pub enforce: bool,
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
    /// What could be read. Parts with mistakes are left out.
    pub config: Config,
    /// All its mistakes, in the order of the lines.
    pub mistakes: Vec<Mistake>,
    /// Services whose `[protocols.NAME]` is there, but has mistakes.
    pub(crate) doubtful: Vec<String>,
    /// Whether a part of the file is no TOML.
    pub(crate) is_partial: bool,
}

/// What a key of a configuration may be: its row in the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name with its tables: `limits.idle`, `protocols.NAME.kind`.
    pub name: String,
    /// `text`, `path`, `count`, `size`, `time`, `share`, `flag`, `word`, `address`, `endpoint`, `texts`, `patterns`.
    pub kind: String,
    /// What it is where it is left out; empty: nothing, or it must be given.
    pub default: String,
    /// What is allowed; empty: whatever is of the kind.
    pub range: String,
}

/// Reads a configuration as far as that goes. Paths in it are relative to `folder`; no file is opened.
pub fn draft(source: &str, text: &str, folder: &Path) -> Draft {
    read_all(source, text, folder).0
}

/// Every key that the reader of configurations asked for when it read `text`, by name.
pub fn keys(text: &str) -> Vec<Key> {
    read_all("", text, Path::new("")).1
}

fn read_all(source: &str, text: &str, folder: &Path) -> (Draft, Vec<Key>) {
    let found = Found::new(source);
    let root = node::toml(text, &found);
    let (config, doubtful) = config(&Section::new("", &root, &found, folder));
    let (keys, is_partial) = (found.keys(), found.is_partial());
    (Draft { config, mistakes: found.end(), doubtful, is_partial }, keys)
}

/// Reads a configuration. Paths in it are relative to `folder`; no file is opened.
///
/// # Errors
/// All its mistakes.
pub fn read(source: &str, text: &str, folder: &Path) -> Result<Config, Vec<Mistake>> {
    let Draft { config, mistakes, .. } = draft(source, text, folder);
    if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
}

const KEYS: &[&str] = &[
    "name",
    "contract",
    "protocols",
    "providing",
    "consuming",
    "admin",
    "proxy",
    "local",
    "allow",
    "store",
    "reports",
    "checks",
    "limits",
    "tls",
    "calls",
    "threads",
];

fn config(section: &Section<'_>) -> (Config, Vec<String>) {
    section.only(KEYS);
    section.need("name");
    let name = section.text("name").unwrap_or_default();
    if section.has("name") && (name.is_empty() || name == contract::metadata::UNKNOWN || name.len() > 255) {
        section.mistake("name", "`name` is the adapter's label: 1 to 255 bytes, not `unknown`", None);
    }
    let mut doubtful = Vec::new();
    let mut protocols = Vec::new();
    for (service, of) in section.named("protocols") {
        match of.sound(|of| protocol(&service, of)).flatten() {
            Some(protocol) => protocols.push(protocol),
            None => doubtful.push(service),
        }
    }
    let (offered, called) = (section.sections("providing"), section.sections("consuming"));
    let providing = offered.iter().filter_map(|of| of.sound(providing).flatten()).collect::<Vec<_>>();
    let consuming = called.iter().filter_map(|of| of.sound(consuming).flatten()).collect::<Vec<_>>();
    let local = section.ip("local", IpAddr::from([127, 0, 0, 1]));
    section.need("contract");
    if !section.has("providing") && !section.has("consuming") && !section.has("proxy") {
        let hint = "`[[consuming]]` for what the party calls, `[[providing]]` for what it offers".to_owned();
        section.missing("providing", "this adapter has no `[[consuming]]` or `[[providing]]`", Some(hint));
    }
    let config = Config {
        name,
        contract: section.path("contract").unwrap_or_default(),
        protocols,
        providing,
        consuming,
        admin: section.address("admin"),
        proxy: section.address("proxy"),
        local,
        allow: section.patterns("allow"),
        store: store(section.section("store").as_ref()),
        reports: reports(section.section("reports").as_ref()),
        checks: checks(section.section("checks").as_ref()),
        limits: limits(section.section("limits").as_ref()),
        tls: tls(section.section("tls").as_ref()),
        calls: section.path("calls"),
        threads: section.count("threads", 1, 1, 256) as usize,
    };
    (config, doubtful)
}

/// `None`: its kind is missing.
fn protocol(service: &str, section: &Section<'_>) -> Option<Protocol> {
    section.only(&["kind", "idl", "wsdl", "service", "tls"]);
    let kinds = [
        ("thrift", ProtocolKind::Thrift),
        ("thrift-http", ProtocolKind::ThriftHttp),
        ("soap", ProtocolKind::Soap),
        ("rest", ProtocolKind::Rest),
    ];
    section.need("kind");
    let family = section.word("kind", &kinds, None)?;
    let (idl, wsdl) = (section.path("idl"), section.path("wsdl"));
    let (needed, schema, others) = match family {
        ProtocolKind::Thrift | ProtocolKind::ThriftHttp => (Some("idl"), idl, &["wsdl"][..]),
        ProtocolKind::Soap => (Some("wsdl"), wsdl, &["idl"][..]),
        ProtocolKind::Rest => (None, None, &["idl", "wsdl"][..]),
    };
    for other in others.iter().filter(|other| section.has(other)) {
        section.mistake(other, format!("`{other}` has no meaning for this kind"), None);
    }
    if let Some(needed) = needed {
        section.need(needed);
    }
    if section.has("tls") && family == ProtocolKind::Thrift {
        section.mistake("tls", "`tls` has no meaning for this kind".to_owned(), None);
    }
    let protocol = Protocol {
        tls: section.flag("tls", false),
        service: service.to_owned(),
        family,
        schema,
        schema_service: section.text("service").unwrap_or_else(|| service.to_owned()),
    };
    // Of a file that is not TOML throughout the key may be there.
    (needed.is_none() || protocol.schema.is_some()).then_some(protocol)
}

/// `None`: what it cannot do without is not there, of which is told.
fn providing(section: &Section<'_>) -> Option<Providing> {
    section.only(&["service", "endpoint", "forward", "plain", "adapters", "adapters_at"]);
    section.need("endpoint");
    section.need("service");
    let (service, endpoint) = (section.text("service"), section.endpoint("endpoint"));
    let own = endpoint.as_deref().and_then(Endpoint::parse).map(|endpoint| endpoint.authority());
    let (plain, adapters) = (section.address("plain"), section.address("adapters"));
    if plain.is_none() && adapters.is_none() {
        let hint = "`plain = \"host:port\"` for clients without an adapter, `adapters = \"host:port\"` for others";
        section.missing("plain", "this service has no listener", Some(hint.to_owned()));
    }
    if section.has("adapters_at") && adapters.is_none() {
        section.missing("adapters_at", "`adapters_at` has no meaning without `adapters`", None);
    }
    let (forward, adapters_at) = (section.address("forward").or(own), section.address("adapters_at"));
    Some(Providing {
        service: service?,
        forward: forward.unwrap_or_default(),
        endpoint: endpoint?,
        plain,
        adapters_at,
        adapters,
    })
}

/// `None`: what it cannot do without is not there, of which is told.
fn consuming(section: &Section<'_>) -> Option<Consuming> {
    section.only(&["service", "endpoint", "listen", "peer", "labels"]);
    section.need("endpoint");
    section.need("service");
    let (service, endpoint) = (section.text("service"), section.endpoint("endpoint"));
    let (listen, peer) = (section.address("listen"), section.address("peer"));
    let labels = section.texts("labels").into_iter().map(|(label, _)| label).collect();
    Some(Consuming { service: service?, endpoint: endpoint?, listen, peer, labels })
}

fn store(section: Option<&Section<'_>>) -> StoreSettings {
    let mut settings = StoreSettings {
        path: None,
        memory_bytes: None,
        expire_after: None,
        flush: Duration::from_millis(500),
        on_mismatch: OnMismatch::Rotate,
    };
    let Some(section) = section else { return settings };
    section.only(&["path", "memory", "expire_after", "flush", "on_mismatch"]);
    settings.path = section.path("path");
    let memory_bytes = section.bytes("memory", 512 << 10, 1, 1 << 31) as usize;
    // What is not given depends on whether there is a file to read back from.
    settings.memory_bytes = section.has("memory").then_some(memory_bytes);
    settings.expire_after = section.time_if("expire_after", None);
    settings.flush = section.time("flush", settings.flush);
    let words = [("rotate", OnMismatch::Rotate), ("refuse", OnMismatch::Refuse)];
    settings.on_mismatch =
        section.word("on_mismatch", &words, Some(settings.on_mismatch)).unwrap_or(settings.on_mismatch);
    settings
}

fn reports(section: Option<&Section<'_>>) -> ReportSettings {
    let mut settings = ReportSettings {
        format: Format::Text,
        file: None,
        repeat_after: Duration::from_secs(60),
        per_s: 20,
        show_secrets: false,
    };
    let Some(section) = section else { return settings };
    section.only(&["format", "file", "repeat_after", "per_s", "show_secrets"]);
    let words = [("text", Format::Text), ("json", Format::Json)];
    settings.format = section.word("format", &words, Some(settings.format)).unwrap_or(settings.format);
    settings.file = section.path("file");
    settings.repeat_after = section.time("repeat_after", settings.repeat_after);
    settings.per_s = section.count("per_s", u64::from(settings.per_s), 1, 1_000_000) as u32;
    settings.show_secrets = section.flag("show_secrets", false);
    settings
}

fn checks(section: Option<&Section<'_>>) -> CheckSettings {
    let mut settings = CheckSettings {
        requires: Side::Receiver,
        ensures: Side::Receiver,
        enforce: false,
        sample: 1.0,
        fail_open: true,
        steps: contract::STEPS_MAX,
    };
    let Some(section) = section else { return settings };
    section.only(&["requires", "ensures", "enforce", "sample", "fail_open", "steps"]);
    let sides = [("sender", Side::Sender), ("receiver", Side::Receiver), ("both", Side::Both)];
    settings.requires = section.word("requires", &sides, Some(settings.requires)).unwrap_or(settings.requires);
    settings.ensures = section.word("ensures", &sides, Some(settings.ensures)).unwrap_or(settings.ensures);
    settings.enforce = section.flag("enforce", false);
    settings.sample = section.fraction("sample", 1.0);
    settings.fail_open = section.flag("fail_open", true);
    settings.steps = section.count("steps", settings.steps, 1, 1_000_000_000);
    settings
}

fn limits(section: Option<&Section<'_>>) -> Limits {
    let mut limits = Limits {
        body_bytes: 4 << 20,
        head_bytes: 64 << 10,
        connections: 10_000,
        listeners: 256,
        connect: Duration::from_secs(5),
        idle: Duration::from_secs(60),
        request: Duration::from_secs(30),
        drain: Duration::from_secs(5),
    };
    let Some(section) = section else { return limits };
    section.only(&["body", "head", "connections", "listeners", "connect", "idle", "request", "drain"]);
    limits.body_bytes = section.bytes("body", limits.body_bytes as u64, 1, 16 << 20) as usize;
    limits.head_bytes = section.bytes("head", limits.head_bytes as u64, 8 << 10, 1 << 20) as usize;
    limits.connections = section.count("connections", limits.connections as u64, 1, 1_000_000) as usize;
    limits.listeners = section.count("listeners", limits.listeners as u64, 0, 60_000) as usize;
    limits.connect = section.time("connect", limits.connect);
    limits.idle = section.time("idle", limits.idle);
    limits.request = section.time("request", limits.request);
    limits.drain = section.time("drain", limits.drain);
    limits
}

fn tls(section: Option<&Section<'_>>) -> TlsSettings {
    let mut settings = TlsSettings { listen: None, upstream_ca: None, upstream_verify: true, peers: None };
    let Some(section) = section else { return settings };
    section.only(&["listen", "upstream", "peers"]);
    let identity = |section: &Section<'_>| {
        section.need("cert");
        section.need("key");
        let (cert, key) = (section.path("cert"), section.path("key"));
        Some(Identity { cert: cert?, key: key? })
    };
    if let Some(listen) = section.section("listen") {
        listen.only(&["cert", "key"]);
        settings.listen = identity(&listen);
    }
    if let Some(upstream) = section.section("upstream") {
        upstream.only(&["ca", "verify"]);
        settings.upstream_ca = upstream.path("ca");
        settings.upstream_verify = upstream.flag("verify", true);
        if settings.upstream_ca.is_some() && !settings.upstream_verify {
            upstream.mistake("ca", "`ca` has no meaning with `verify = false`", None);
        }
    }
    if let Some(peers) = section.section("peers") {
        peers.only(&["cert", "key", "ca"]);
        peers.need("ca");
        let ca = peers.path("ca");
        settings.peers = identity(&peers).zip(ca);
    }
    settings
}

/// Whether endpoints of this form fit messages of this family.
pub(crate) fn fits(family: ProtocolKind, endpoint: &Endpoint) -> bool {
    family != ProtocolKind::Thrift || endpoint.scheme == Scheme::Tcp
}
