//! What an adapter is told: its name, its contract, which services it stands before and which its party calls.

mod node;
mod old;
mod section;

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
pub enum Family {
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
    pub family: Family,
    /// The Thrift IDL file or the WSDL.
    pub schema: Option<PathBuf>,
    /// The service in the IDL file, where it has another name there.
    pub schema_service: String,
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
    /// Bytes of entries in memory.
    pub memory_bytes: usize,
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

/// Which language a configuration is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// TOML with the keys of this crate's documentation.
    Toml,
    /// YAML with the keys of Whip's adapters.
    Yaml,
}

impl Language {
    /// By the ending of a file's name.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("yaml" | "yml") => Self::Yaml,
            _ => Self::Toml,
        }
    }
}

/// Reads a configuration. Paths in it are relative to `folder`; no file is opened.
///
/// # Errors
/// All its mistakes.
pub fn read(source: &str, text: &str, language: Language, folder: &Path) -> Result<Config, Vec<Mistake>> {
    let found = Found::new(source);
    let root = match language {
        Language::Toml => node::toml(text, &found),
        Language::Yaml => node::yaml(text, &found),
    };
    let config = {
        let section = Section::new("", &root, &found, folder);
        match language {
            Language::Toml => config(&section),
            Language::Yaml => old::config(&section),
        }
    };
    let mistakes = found.end();
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

fn config(section: &Section<'_>) -> Config {
    section.only(KEYS);
    let name = section.needed("name");
    if section.has("name") && (name.is_empty() || name == contract::monitor::UNKNOWN || name.len() > 255) {
        section.mistake("name", "`name` is the adapter's label: 1 to 255 bytes, not `unknown`", None);
    }
    let protocols =
        section.named("protocols").into_iter().map(|(service, of)| protocol(&service, &of)).collect::<Vec<_>>();
    let providing = section.sections("providing").iter().map(providing).collect::<Vec<_>>();
    let consuming = section.sections("consuming").iter().map(consuming).collect::<Vec<_>>();
    let local = section.text("local").map_or(Some(IpAddr::from([127, 0, 0, 1])), |text| text.parse().ok());
    if local.is_none() {
        section.mistake("local", "`local` is no IP address", None);
    }
    section.needed("contract");
    if !section.has("providing") && !section.has("consuming") && !section.has("proxy") {
        let hint = "`[[consuming]]` for what the party calls, `[[providing]]` for what it offers".to_owned();
        section.mistake("providing", "nothing passes through this adapter", Some(hint));
    }
    Config {
        name,
        contract: section.path("contract").unwrap_or_default(),
        protocols,
        providing,
        consuming,
        admin: section.address("admin"),
        proxy: section.address("proxy"),
        local: local.unwrap_or(IpAddr::from([127, 0, 0, 1])),
        allow: section.patterns("allow"),
        store: store(section.section("store").as_ref()),
        reports: reports(section.section("reports").as_ref()),
        checks: checks(section.section("checks").as_ref()),
        limits: limits(section.section("limits").as_ref()),
        tls: tls(section.section("tls").as_ref()),
        calls: section.path("calls"),
        threads: section.count("threads", 1, 1, 256) as usize,
    }
}

fn protocol(service: &str, section: &Section<'_>) -> Protocol {
    section.only(&["kind", "idl", "wsdl", "service"]);
    let kinds = [
        ("thrift", Family::Thrift),
        ("thrift-http", Family::ThriftHttp),
        ("soap", Family::Soap),
        ("rest", Family::Rest),
    ];
    section.needed("kind");
    let family = section.word("kind", &kinds, Family::Rest);
    let (needed, other) = match family {
        Family::Thrift | Family::ThriftHttp => (Some("idl"), "wsdl"),
        Family::Soap => (Some("wsdl"), "idl"),
        Family::Rest => (None, "idl"),
    };
    if section.has(other) {
        section.mistake(other, format!("`{other}` has no meaning for this kind"), None);
    }
    if let Some(needed) = needed {
        section.needed(needed);
    }
    Protocol {
        service: service.to_owned(),
        family,
        schema: needed.and_then(|key| section.path(key)),
        schema_service: section.text("service").unwrap_or_else(|| service.to_owned()),
    }
}

fn providing(section: &Section<'_>) -> Providing {
    section.only(&["service", "endpoint", "forward", "plain", "adapters", "adapters_at"]);
    section.needed("endpoint");
    let endpoint = section.endpoint("endpoint").unwrap_or_default();
    let own = Endpoint::parse(&endpoint).map(|endpoint| endpoint.authority());
    let (plain, adapters) = (section.address("plain"), section.address("adapters"));
    if plain.is_none() && adapters.is_none() {
        let hint = "`plain = \"host:port\"` for clients without an adapter, `adapters = \"host:port\"` for others";
        section.mistake("plain", "nobody can reach this service through the adapter", Some(hint.to_owned()));
    }
    if section.has("adapters_at") && adapters.is_none() {
        section.mistake("adapters_at", "`adapters_at` has no meaning without `adapters`", None);
    }
    Providing {
        service: section.needed("service"),
        forward: section.address("forward").or(own).unwrap_or_default(),
        endpoint,
        plain,
        adapters_at: section.address("adapters_at"),
        adapters,
    }
}

fn consuming(section: &Section<'_>) -> Consuming {
    section.only(&["service", "endpoint", "listen", "peer", "labels"]);
    section.needed("endpoint");
    Consuming {
        service: section.needed("service"),
        endpoint: section.endpoint("endpoint").unwrap_or_default(),
        listen: section.address("listen"),
        peer: section.address("peer"),
        labels: section.texts("labels").into_iter().map(|(label, _)| label).collect(),
    }
}

fn nothing<'n>() -> Option<&'n Section<'n>> {
    None
}

fn store(section: Option<&Section<'_>>) -> StoreSettings {
    const DAY: Duration = Duration::from_secs(86_400);
    let mut settings = StoreSettings {
        path: None,
        memory_bytes: 16 << 20,
        expire_after: None,
        flush: Duration::from_millis(500),
        on_mismatch: OnMismatch::Rotate,
    };
    let Some(section) = section else { return settings };
    section.only(&["path", "memory", "expire_after", "flush", "on_mismatch"]);
    settings.path = section.path("path");
    settings.memory_bytes = section.bytes("memory", settings.memory_bytes as u64, 1 << 40) as usize;
    settings.expire_after = section.has("expire_after").then(|| section.time("expire_after", DAY));
    settings.flush = section.time("flush", settings.flush);
    let words = [("rotate", OnMismatch::Rotate), ("refuse", OnMismatch::Refuse)];
    settings.on_mismatch = section.word("on_mismatch", &words, settings.on_mismatch);
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
    settings.format = section.word("format", &[("text", Format::Text), ("json", Format::Json)], Format::Text);
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
    settings.requires = section.word("requires", &sides, settings.requires);
    settings.ensures = section.word("ensures", &sides, settings.ensures);
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
    limits.body_bytes = section.bytes("body", limits.body_bytes as u64, 16 << 20) as usize;
    limits.head_bytes = section.bytes("head", limits.head_bytes as u64, 1 << 20).max(8 << 10) as usize;
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
        section.needed("cert");
        section.needed("key");
        Some(Identity { cert: section.path("cert")?, key: section.path("key")? })
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
        peers.needed("ca");
        settings.peers = identity(&peers).zip(peers.path("ca"));
    }
    settings
}

/// Whether endpoints of this form fit messages of this family.
pub(crate) fn fits(family: Family, endpoint: &Endpoint) -> bool {
    (family == Family::Thrift) == (endpoint.scheme == Scheme::Tcp)
}
