//! Every configuration key, declared once. Types, ranges, defaults, hints and docs/reference/adapter.md come from here.

use std::net::IpAddr;

use ::config::Kind::{Bytes, Count, Flag, Form, Fraction, List, LongDuration, Named, Table, Tables, Text, Word};
use ::config::Missing::{Is, Means, Mistake};
use ::config::keys::{key, words};
use ::config::render_keys::{self, tables};
use ::config::{Keys, Kind, Missing};
use contract::monitor::Side;

use super::{Format, ProtocolKind};
use crate::endpoint::{Endpoint, Pattern, is_address};

pub(super) const KINDS: &[(&str, ProtocolKind)] = &[
    ("thrift", ProtocolKind::Thrift),
    ("thrift-http", ProtocolKind::ThriftHttp),
    ("soap", ProtocolKind::Soap),
    ("rest", ProtocolKind::Rest),
];
pub(super) const ON_MISMATCH: &[(&str, bool)] = &[("rotate", true), ("refuse", false)];
pub(super) const FORMATS: &[(&str, Format)] = &[("text", Format::Text), ("json", Format::Json)];
pub(super) const UNCHECKED: &[(&str, bool)] = &[("refuse", true), ("pass", false)];
pub(super) const SIDES: &[(&str, Side)] =
    &[("sender", Side::Sender), ("receiver", Side::Receiver), ("both", Side::Both)];

const NONE: Missing = Means("none");

const PATH: Kind = Form("a path", |text| !text.is_empty());
const ADDRESS: Kind = Form("`host:port`", is_address);
const ENDPOINT: Kind =
    Form("`host:port`, `http://host:port/path` or `https://host/path`", |text| Endpoint::parse(text).is_some());
const PATTERN: Kind = Form("`host:port`, `*.example.com:443` or `10.0.0.0/8:*`", |text| Pattern::parse(text).is_some());
const IP: Kind = Form("an IP address", |text| text.parse::<IpAddr>().is_ok());
const LABEL: Kind = Form("a label of 1 to 255 bytes other than `unknown`", |text| {
    contract::metadata::is_label(text) && text != contract::metadata::UNKNOWN
});
const VOUCHING: Kind = Form("a label of 1 to 255 bytes", contract::metadata::is_label);
const FORMAT: Kind = Word("format", || words(FORMATS));
const REACTION: Kind = Word("reaction", || words(UNCHECKED));
const SIDE: Kind = Word("side", || words(SIDES));
const TIME: Kind = LongDuration(1_000_000, 365 * 86_400_000_000_000);

pub(super) static ADAPTER: Keys = Keys::new("", "The adapter; paths are relative to this file").keys(&[
    key("name", LABEL, "\"client\"", Mistake)
        .text("the label to blame; with `[tls.peers]` the first DNS name of the certificate"),
    key("contract", PATH, "\"calculator.contract\"", Mistake).text("the contract, see docs/reference/contracts.md"),
    key(
        "protocols",
        Named(&Table(&PROTOCOL)),
        "{ Adder = { kind = \"thrift\", idl = \"calculator.thrift\" } }",
        Means("none: calls pass unchecked"),
    )
    .text("how messages are read, by service of the contract"),
    key("consuming", Tables(&CONSUMING), "[{ service = \"Adder\", endpoint = \"adder:8001\" }]", NONE)
        .text("services that the party calls; this, `providing` or `proxy` is required"),
    key("providing", Tables(&PROVIDING), "[{ service = \"Adder\", endpoint = \"adder:8001\" }]", NONE)
        .text("services that the party offers"),
    key("admin", ADDRESS, "\"127.0.0.1:9090\"", NONE).text(
        "where `/resolve?endpoint=...`, `/metrics`, `/state` and `/health` are served; port 0 lets the \
         system choose, as in all addresses to listen at",
    ),
    key("proxy", ADDRESS, "\"127.0.0.1:3128\"", NONE)
        .text("address of the forward proxy, for absolute URLs and CONNECT"),
    key("local", IP, "\"127.0.0.1\"", Is("\"127.0.0.1\"")).text("where listeners for learned endpoints are bound"),
    key("allow", List(&PATTERN), "[\"10.0.0.0/8:*\", \"*.example.com:443\"]", NONE)
        .text("learned endpoints it may connect to, in addition to those named here"),
    key("store", Table(&STORE), "{ path = \"entries.redb\" }", Means("as below")).text("entries about services"),
    key("reports", Table(&REPORTS), "{ format = \"json\" }", Means("as below")).text("reports of broken clauses"),
    key("checks", Table(&CHECKS), "{ sample = 0.1 }", Means("as below")).text("which calls are checked, and how"),
    key("limits", Table(&LIMITS), "{ idle = \"10s\" }", Means("as below")).text("bounds of memory and waiting"),
    key("tls", Table(&TLS), "{ upstream = { ca = \"ca.pem\" } }", Means("as below")).text("certificates"),
    key("calls", PATH, "\"calls.csv\"", NONE).text("a file with one line per call, see docs/guides/adapter.md"),
    key("threads", Count(1, 256), "2", Is("1")).text(
        "threads that serve connections; with more than one, a request costs some 1.2 times the CPU time, \
         see docs/results/whip.md",
    ),
]);

static PROTOCOL: Keys =
    Keys::new("protocols.NAME", "How the messages of the contract's service NAME are read").keys(&[
        key("kind", Word("protocol", || words(KINDS)), "\"thrift\"", Mistake).text(
            "`thrift` over TCP, binary or compact, framed or not, as its bytes show; `thrift-http`: one message \
             in each POST; `soap`: SOAP 1.1; `rest`: JSON",
        ),
        key("idl", PATH, "\"calculator.thrift\"", Means("required for `thrift` and `thrift-http`")).text("Thrift IDL"),
        key("wsdl", PATH, "\"chess.wsdl\"", Means("required for `soap`")).text("WSDL"),
        key("service", Text, "\"AdderService\"", Means("NAME")).text("the service's name in the IDL"),
        key("tls", Flag, "true", Is("false")).text("whether endpoints written as `host:port` use TLS; only over HTTP"),
    ]);

static CONSUMING: Keys = Keys::new("consuming", "A service that the party calls").keys(&[
    key("service", Text, "\"Adder\"", Mistake).text("the service in the contract"),
    key("endpoint", ENDPOINT, "\"adder:8001\"", Mistake).text("the endpoint as the party knows it"),
    key("listen", ADDRESS, "\"127.0.0.1:9001\"", Means("any port")).text("address that the party connects to instead"),
    key("peer", ADDRESS, "\"adder:38001\"", NONE)
        .text("address at which that service's adapter accepts other adapters"),
    key("labels", List(&VOUCHING), "[\"adder\"]", Means("`unknown`")).text("adapters that vouch for it and are blamed"),
]);

static PROVIDING: Keys = Keys::new("providing", "A service that the party offers: `plain` or `adapters` is required")
    .keys(&[
        key("service", Text, "\"Adder\"", Mistake).text("the service in the contract"),
        key("endpoint", ENDPOINT, "\"adder:8001\"", Mistake).text("the endpoint as others know it"),
        key("forward", ADDRESS, "\"127.0.0.1:8001\"", Means("the address of `endpoint`"))
            .text("address at which the service listens"),
        key("plain", ADDRESS, "\"0.0.0.0:8002\"", NONE).text("address for clients without an adapter"),
        key("adapters", ADDRESS, "\"0.0.0.0:38001\"", NONE).text("address for other adapters"),
        key("adapters_at", ADDRESS, "\"adder:38001\"", Means("as `adapters`"))
            .text("the same address as other machines reach it"),
    ]);

static STORE: Keys = Keys::new("store", "Entries about services").keys(&[
    key("path", PATH, "\"entries.redb\"", Means("entries are in memory only")).text("a file that keeps entries"),
    key("memory", Bytes(1, 1 << 31), "\"4MiB\"", Means("512 KiB, or 16 MiB without `path`"))
        .text("entries in memory, see docs/guides/adapter.md"),
    key("expire_after", TIME, "\"30d\"", Means("never")).text("forget entries not used for this long"),
    key("flush", TIME, "\"1s\"", Is("\"500ms\"")).text("longest time until new entries are written"),
    key("on_mismatch", Word("reaction", || words(ON_MISMATCH)), "\"refuse\"", Is("\"rotate\"")).text(
        "if the file is damaged or belongs to another contract or adapter: rename it and start over, or \
         leave it untouched and unused",
    ),
]);

static REPORTS: Keys = Keys::new("reports", "Reports of broken clauses").keys(&[
    key("format", FORMAT, "\"json\"", Is("\"text\"")).text("Whip's own form, or a line of JSON for each"),
    key("file", PATH, "\"reports.txt\"", Means("standard output")).text("where reports go"),
    key("repeat_after", TIME, "\"5m\"", Is("\"60s\"")).text("time in which the same report is not repeated"),
    key("per_s", Count(1, 1_000_000), "100", Is("20")).text("maximum reports per second"),
    key("show_secrets", Flag, "true", Is("false")).text("whether to show values whose names suggest a secret"),
]);

static CHECKS: Keys = Keys::new("checks", "Which calls are checked, and the consequences").keys(&[
    key("requires", SIDE, "\"both\"", Is("\"receiver\"")).text("which of two adapters checks preconditions"),
    key("ensures", SIDE, "\"both\"", Is("\"receiver\"")).text("which of two adapters checks postconditions"),
    key("enforce", Flag, "true", Is("false")).text("whether calls that break a contract are refused"),
    key("unchecked", REACTION, "\"pass\"", Means("`refuse` with `enforce`, otherwise `pass`"))
        .text("reaction of `enforce` to an uncheckable message, see below"),
    key("sample", Fraction(0.0, 1.0), "0.1", Is("1")).text("fraction of calls to check"),
    key("fail_open", Flag, "false", Means("`false` if `unchecked` is `refuse`, otherwise `true`"))
        .text("whether a call passes unchecked if the adapter itself fails"),
    key("steps", Count(1, 1_000_000_000), "10_000", Is("100_000")).text("maximum steps of one clause"),
]);

static LIMITS: Keys = Keys::new("limits", "Limits on memory and waiting time").keys(&[
    key("body", Bytes(1, 16 << 20), "\"1MiB\"", Is("\"4MiB\""))
        .text("maximum length of a checked message; longer ones stream through"),
    key("bodies", Bytes(1 << 20, 1 << 40), "\"256MiB\"", Is("\"64MiB\""))
        .text("maximum memory of all messages in flight, beyond 16 KiB of each; without room, messages stream through"),
    key("head", Bytes(8 << 10, 1 << 20), "\"16KiB\"", Is("\"64KiB\"")).text("maximum length of an HTTP head"),
    key("connections", Count(1, 1_000_000), "1000", Is("10_000")).text("maximum connections of all listeners"),
    key("listeners", Count(0, 60_000), "16", Is("256")).text("maximum listeners for learned endpoints"),
    key("connect", TIME, "\"1s\"", Is("\"5s\"")).text("time limit for connecting, handshakes included"),
    key("idle", TIME, "\"10s\"", Is("\"60s\"")).text("close a connection idle for this long"),
    key("request", TIME, "\"10s\"", Is("\"30s\"")).text("time limit for the head of a request, and for its response"),
    key("drain", TIME, "\"30s\"", Is("\"5s\"")).text("time limit for calls under way when the adapter ends"),
]);

static TLS: Keys = Keys::new("tls", "Certificates, PEM files").keys(&[
    key("listen", Table(&TLS_LISTEN), "{ cert = \"host.pem\", key = \"host.key\" }", Means("no TLS"))
        .text("certificate of listeners for endpoints over HTTPS"),
    key("upstream", Table(&TLS_UPSTREAM), "{ ca = \"ca.pem\" }", Means("as below")).text("how services are trusted"),
    key(
        "peers",
        Table(&TLS_PEERS),
        "{ cert = \"client.pem\", key = \"client.key\", ca = \"ca.pem\" }",
        Means("no TLS"),
    )
    .text("TLS between adapters; if one has it, all need it"),
]);

static TLS_LISTEN: Keys = Keys::new("tls.listen", "Certificate of listeners for endpoints over HTTPS").keys(&[
    key("cert", PATH, "\"host.pem\"", Mistake).text("the certificate, with its chain"),
    key("key", PATH, "\"host.key\"", Mistake).text("its key"),
]);

static TLS_UPSTREAM: Keys = Keys::new("tls.upstream", "How services are trusted").keys(&[
    key("ca", PATH, "\"ca.pem\"", Means("the machine's")).text("roots to trust"),
    key("verify", Flag, "false", Is("true")).text("whether certificates of services are checked"),
]);

static TLS_PEERS: Keys = Keys::new("tls.peers", "TLS between adapters").keys(&[
    key("cert", PATH, "\"client.pem\"", Mistake).text("the certificate that other adapters see"),
    key("key", PATH, "\"client.key\"", Mistake).text("its key"),
    key("ca", PATH, "\"ca.pem\"", Mistake).text("roots that the certificates of other adapters must come from"),
]);

/// Renders the reference of all keys for docs/reference/adapter.md.
pub fn reference() -> String {
    let heading = |keys: &Keys| match keys.name {
        "" => "The file".to_owned(),
        name @ ("consuming" | "providing") => format!("`[[{name}]]`"),
        name => format!("`[{name}]`"),
    };
    let table = |keys| format!("\n### {}\n\n{}", heading(keys), render_keys::table(keys));
    let tables = tables(&ADAPTER).into_iter().map(table).collect::<String>();
    format!(
        "Generated from contracts/adapter/src/config/keys.rs: \
         `cargo run -p adapter --example configuration_reference`. Times have units (`250ms`, `30s`, `2h`, `7d`), \
         sizes may (`4096`, `64KiB`, `16MiB`). Endpoints over HTTP are URLs, or `host:port` as replies often have them.\n{tables}"
    )
}
