//! Sessions with rustls servers in this process and real certificate chains, and one with OpenSSL.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::*;

const BOTH: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

struct Authority {
    root_pem: String,
    issuer: Issuer<'static, KeyPair>,
    intermediate: Certificate,
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::OrganizationName, "Test Lab");
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn leaf_params(names: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "the leaf");
    params
}

impl Authority {
    fn new() -> Self {
        Self::named("Test Root")
    }

    fn named(root: &str) -> Self {
        let root_key = KeyPair::generate().unwrap();
        let root_params = authority_params(root);
        let root = root_params.self_signed(&root_key).unwrap();
        let root_issuer = Issuer::new(root_params, root_key);
        let key = KeyPair::generate().unwrap();
        let params = authority_params("Test Intermediate");
        let intermediate = params.signed_by(&key, &root_issuer).unwrap();
        Self { root_pem: root.pem(), issuer: Issuer::new(params, key), intermediate }
    }

    fn leaf(&self, params: &CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        Identity { chain: vec![leaf.der().clone(), self.intermediate.der().clone()], pem: leaf.pem(), key }
    }
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    pem: String,
    key: KeyPair,
}

impl Identity {
    fn self_signed(params: &CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { chain: vec![certificate.der().clone()], pem: certificate.pem(), key }
    }

    fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.serialize_der().into())
    }

    fn server(self, versions: &[&'static SupportedProtocolVersion]) -> ServerConfig {
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.private_key())
            .unwrap()
    }
}

struct PemFile(PathBuf);

impl PemFile {
    fn new(text: &str) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("quintain-tls-{}-{}.pem", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> String {
        self.0.to_str().unwrap().to_owned()
    }
}

impl Drop for PemFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn tls(name: &str) -> Tls {
    Tls { server_name: name.to_owned(), insecure: false, ca_file: None, client: None, resume: false }
}

fn trusting(pem: &str, name: &str) -> Connector {
    let file = PemFile::new(pem);
    Connector::over(Alpn::HTTP1, &Tls { ca_file: Some(file.path()), ..tls(name) }).unwrap()
}

struct Pair {
    client: Session,
    server: ServerConnection,
    plain: Vec<u8>,
    piece: usize,
}

impl Pair {
    fn new(connector: &Connector, server: &Arc<ServerConfig>) -> Self {
        let server = ServerConnection::new(Arc::clone(server)).unwrap();
        Self { client: connector.start(), server, plain: Vec::new(), piece: usize::MAX }
    }

    fn carry(&mut self) -> Result<(), String> {
        loop {
            let mut there = Vec::new();
            self.client.take(&mut there);
            let mut rest = &there[..];
            while !rest.is_empty() {
                self.server.read_tls(&mut rest).unwrap();
                self.server.process_new_packets().map_err(|error| format!("server: {error}"))?;
            }
            let mut back = Vec::new();
            while self.server.wants_write() {
                self.server.write_tls(&mut back).unwrap();
            }
            if there.is_empty() && back.is_empty() {
                return Ok(());
            }
            for piece in back.chunks(self.piece) {
                self.client.read(piece, &mut self.plain).map_err(|error| error.to_string())?;
            }
        }
    }

    fn converse(&mut self) -> Result<(), String> {
        self.client.write(b"question");
        self.carry()?;
        assert!(!self.client.is_handshaking());
        let mut question = [0; 8];
        self.server.reader().read_exact(&mut question).unwrap();
        assert_eq!(&question, b"question");
        self.server.writer().write_all(b"answer").unwrap();
        self.carry()?;
        assert_eq!(self.plain, b"answer");
        self.plain.clear();
        Ok(())
    }
}

fn fare(pem: &str, name: &str, identity: Identity) -> String {
    let connector = trusting(pem, name);
    let mut pair = Pair::new(&connector, &Arc::new(identity.server(&BOTH)));
    let result = pair.converse();
    let said = result.map_or_else(|error| error, |()| "ok".to_owned());
    assert_eq!(pair.client.failed, said != "ok");
    if said != "ok" {
        let mut alert = Vec::new();
        pair.client.take(&mut alert);
        assert!(!alert.is_empty());
        assert_eq!(pair.client.read(b"x", &mut Vec::new()), Err(FAILED.to_owned()));
        pair.client.write(b"x");
        let mut rest = Vec::new();
        pair.client.take(&mut rest);
        assert_eq!(rest, b"", "a failed session encrypts nothing");
    }
    said
}

#[test]
fn trusts_chain_to_root() {
    let authority = Authority::new();
    let names = ["bench.example", "*.wild.example", "127.0.0.1", "::1"];
    for name in ["bench.example", "BENCH.example", "a.wild.example", "127.0.0.1", "::1", "[::1]"] {
        assert_eq!(fare(&authority.root_pem, name, authority.leaf(&leaf_params(&names))), "ok", "{name}");
    }
}

#[test]
fn presents_a_client_certificate() {
    let (authority, clients) = (Authority::new(), Authority::named("Client Root"));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(clients.root_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let identity = authority.leaf(&leaf_params(&["h"]));
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.private_key())
        .unwrap();
    let server = Arc::new(server);
    let root = PemFile::new(&authority.root_pem);
    let connector = |client: Option<ClientCertificate>| {
        Connector::over(Alpn::HTTP1, &Tls { ca_file: Some(root.path()), client, ..tls("h") })
    };

    let client = clients.leaf(&leaf_params(&["client"]));
    let chain = PemFile::new(&(client.pem.clone() + &clients.intermediate.pem()));
    let key = PemFile::new(&client.key.serialize_pem());
    let both = PemFile::new(&(client.pem + &clients.intermediate.pem() + &client.key.serialize_pem()));
    for (cert_file, key_file) in [(&chain, &key), (&both, &both)] {
        let client = ClientCertificate { cert_file: cert_file.path(), key_file: key_file.path() };
        Pair::new(&connector(Some(client)).unwrap(), &server).converse().unwrap();
    }
    let refused = Pair::new(&connector(None).unwrap(), &server).converse();
    assert!(refused.is_err(), "the server accepts a client without a certificate");

    let other = PemFile::new(&KeyPair::generate().unwrap().serialize_pem());
    for (cert_file, key_file, said) in [
        (chain.path(), other.path(), "does not fit the certificate"),
        (chain.path(), chain.path(), "no unencrypted `BEGIN PRIVATE KEY` found"),
        (key.path(), key.path(), "no `BEGIN CERTIFICATE` found"),
        ("/no/such".to_owned(), key.path(), "cannot read the client certificate in `/no/such`"),
    ] {
        let error = connector(Some(ClientCertificate { cert_file, key_file })).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn supports_tls_1_2_and_1_3() {
    let authority = Authority::new();
    for version in BOTH {
        let connector = trusting(&authority.root_pem, "localhost");
        let server = authority.leaf(&leaf_params(&["localhost"])).server(&[version]);
        let mut pair = Pair::new(&connector, &Arc::new(server));
        pair.converse().unwrap();
        assert_eq!(pair.server.protocol_version(), Some(version.version));
        assert!(!pair.client.resumed());
    }
}

#[test]
fn any_fragmentation_gives_same_result() {
    let authority = Authority::new();
    let connector = trusting(&authority.root_pem, "localhost");
    let server = Arc::new(authority.leaf(&leaf_params(&["localhost"])).server(&BOTH));
    for piece in [1, 2, 5, 100, 4096, 20_000] {
        let mut pair = Pair::new(&connector, &server);
        pair.piece = piece;
        pair.converse().unwrap();
        // The message is longer than a record and than the library's buffers.
        let long: Vec<u8> = (0..300_000).map(|index| (index % 251) as u8).collect();
        pair.server.set_buffer_limit(None);
        pair.server.writer().write_all(&long).unwrap();
        pair.carry().unwrap();
        assert!(pair.plain == long, "{} bytes in pieces of {piece}", pair.plain.len());
        pair.client.write(&long);
        let (mut wire, mut arrived) = (Vec::new(), Vec::new());
        pair.client.take(&mut wire);
        let mut rest = &wire[..];
        while !rest.is_empty() {
            pair.server.read_tls(&mut rest).unwrap();
            pair.server.process_new_packets().unwrap();
            let _ = pair.server.reader().read_to_end(&mut arrived); // `WouldBlock` at the end.
        }
        assert!(arrived == long);
    }
}

#[test]
fn expired_certificate_error_names_last_day() {
    let authority = Authority::new();
    let mut params = leaf_params(&["bench.example"]);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 2, 28);
    let said = fare(&authority.root_pem, "bench.example", authority.leaf(&params));
    let expected =
        "the certificate of `bench.example` expired on 2021-02-28: renew it, or use `insecure` (`--insecure`)";
    assert_eq!(said, expected);
}

#[test]
fn future_certificate_error_suggests_checking_clock() {
    let authority = Authority::new();
    let mut params = leaf_params(&["bench.example"]);
    params.not_before = date_time_ymd(2999, 1, 1);
    let said = fare(&authority.root_pem, "bench.example", authority.leaf(&params));
    let expected =
        "the certificate of `bench.example` is not valid before 2999-01-01: is the clock of this machine right?";
    assert_eq!(said, expected);
}

#[test]
fn wrong_name_error_lists_valid_names() {
    let authority = Authority::new();
    let leaf = || authority.leaf(&leaf_params(&["a.example", "b.example", "127.0.0.1", "c.example"]));
    let expected = "the certificate is for `a.example`, `b.example`, `127.0.0.1` and 1 more, not for `other.example`: \
                    connect by a name it covers, or use `insecure` (`--insecure`)";
    assert_eq!(fare(&authority.root_pem, "other.example", leaf()), expected);
    assert!(fare(&authority.root_pem, "127.0.0.2", leaf()).contains("not for `127.0.0.2`"));
    let said = fare(&authority.root_pem, "other.example", authority.leaf(&leaf_params(&[])));
    assert!(said.contains("for no name at all (no subjectAltName), not for `other.example`"), "{said}");
}

#[test]
fn unknown_issuer_error_names_issuer() {
    let (authority, other) = (Authority::new(), Authority::named("Other Root"));
    let said = fare(&other.root_pem, "a.example", authority.leaf(&leaf_params(&["a.example"])));
    let expected = "the certificate of `a.example` is from `Test Intermediate`, which is not trusted: add its root \
                    with `ca_file` (`--cacert`), or use `insecure` (`--insecure`)";
    assert_eq!(said, expected);
    let said = fare(&Authority::new().root_pem, "a.example", authority.leaf(&leaf_params(&["a.example"])));
    let expected = "the certificate of `a.example` leads to an issuer with the right name but another key: is the root \
                    in `ca_file` (`--cacert`) outdated?";
    assert_eq!(said, expected);
    // The root is right, but the intermediate certificate is missing.
    let mut leaf = authority.leaf(&leaf_params(&["a.example"]));
    leaf.chain.truncate(1);
    let said = fare(&authority.root_pem, "a.example", leaf);
    assert!(said.contains("which is not trusted, and the server did not send its issuer's certificate"), "{said}");
}

#[test]
fn self_signed_certificate_is_trusted_only_if_given() {
    let mut params = leaf_params(&["localhost"]);
    let authority = Authority::new();
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        params.is_ca = is_ca;
        let expected = "the certificate of `localhost` is self-signed: add it with `ca_file` (`--cacert`), or use `insecure` (`--insecure`)";
        assert_eq!(fare(&authority.root_pem, "localhost", Identity::self_signed(&params)), expected);
        let identity = Identity::self_signed(&params);
        let pem = identity.pem.clone();
        assert_eq!(fare(&pem, "localhost", identity), "ok");
        let identity = Identity::self_signed(&params);
        let pem = identity.pem.clone();
        assert!(fare(&pem, "elsewhere", identity).contains("not for `elsewhere`"));
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        let identity = Identity::self_signed(&params);
        let pem = identity.pem.clone();
        assert!(fare(&pem, "localhost", identity).contains("expired on 2021-01-01"));
        params = leaf_params(&["localhost"]);
    }
}

#[test]
fn insecure_accepts_any_certificate_but_checks_key() {
    let connector = Connector::over(Alpn::HTTP1, &Tls { insecure: true, ..tls("whatever.example") }).unwrap();
    let mut params = leaf_params(&["other.example"]);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 1, 1);
    let authority = Authority::new();
    for version in BOTH {
        for identity in [authority.leaf(&params), Identity::self_signed(&params)] {
            let mut pair = Pair::new(&connector, &Arc::new(identity.server(&[version])));
            pair.converse().unwrap();
        }
        // The server presents a different server's certificate without having the key.
        let provider = rustls::crypto::ring::default_provider();
        let key = provider.key_provider.load_private_key(Identity::self_signed(&params).private_key()).unwrap();
        let certified = rustls::sign::CertifiedKey::new(Identity::self_signed(&params).chain, key);
        let server = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)));
        let said = Pair::new(&connector, &Arc::new(server)).converse().unwrap_err();
        assert!(said.starts_with("the server does not have the key of its certificate"), "{said}");
    }
}

#[test]
fn negotiates_its_protocol_or_fails() {
    let authority = Authority::new();
    let said = |client: Alpn, offered: &[&[u8]]| {
        let mut server = authority.leaf(&leaf_params(&["localhost"])).server(&BOTH);
        server.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        let roots = PemFile::new(&authority.root_pem);
        let connector = Connector::over(client, &Tls { ca_file: Some(roots.path()), ..tls("localhost") }).unwrap();
        let mut pair = Pair::new(&connector, &Arc::new(server));
        let result = pair.converse();
        result.map(|()| pair.client.connection.alpn_protocol().map(<[u8]>::to_vec))
    };
    let both: [&[u8]; 2] = [b"h2", b"http/1.1"];
    assert_eq!(said(Alpn::HTTP1, &both), Ok(Some(b"http/1.1".to_vec())));
    assert_eq!(said(Alpn::HTTP2, &both), Ok(Some(b"h2".to_vec())));
    assert_eq!(said(Alpn::HTTP1, &[]), Ok(None), "a server without ALPN is taken to speak it");
    let none = "the server does not agree to HTTP/2 over TLS (ALPN `h2`): it chose none";
    assert_eq!(said(Alpn::HTTP2, &[]).unwrap_err(), none);
    // This server ends the handshake itself. The next test covers the client's message.
    assert!(said(Alpn::HTTP1, &[b"h2"]).unwrap_err().starts_with("server: "));
    assert!(said(Alpn::HTTP2, &[b"http/1.1"]).unwrap_err().starts_with("server: "));
}

/// Alerts before encryption can be written by hand.
#[test]
fn alerts_are_explained() {
    let said = |alert: u8| {
        let mut session = trusting(&Authority::new().root_pem, "localhost").start();
        session.read(&[21, 3, 3, 0, 2, 2, alert], &mut Vec::new()).unwrap_err().to_string()
    };
    assert_eq!(said(120), "the server does not agree to HTTP/1.1 over TLS (ALPN `http/1.1`)");
    let expected = "the server ended the TLS handshake with the alert `handshake_failure`: no cipher suite, key \
                    exchange or certificate in common, or no client certificate (`--cert`)";
    assert_eq!(said(40), expected);
    assert!(said(70).ends_with("`protocol_version`: it supports neither TLS 1.2 nor 1.3"));
    assert!(said(80).ends_with("with the alert `internal_error`"));
    assert!(said(201).ends_with("with the alert `201`"), "{}", said(201));
}

#[test]
fn resumes_sessions_if_requested() {
    let authority = Authority::new();
    let file = PemFile::new(&authority.root_pem);
    for version in BOTH {
        for resume in [true, false] {
            let connector =
                Connector::over(Alpn::HTTP1, &Tls { ca_file: Some(file.path()), resume, ..tls("localhost") }).unwrap();
            let mut server = authority.leaf(&leaf_params(&["localhost"])).server(&[version]);
            server.session_storage = ServerSessionMemoryCache::new(1000);
            server.send_tls13_tickets = 2;
            let server = Arc::new(server);
            let resumed = |connector: &Connector| {
                let mut pair = Pair::new(connector, &server);
                pair.converse().unwrap();
                pair.client.resumed()
            };
            assert!(!resumed(&connector), "the first has nothing to resume");
            let clone = connector.clone();
            let count = (0..10).filter(|_| resumed(&clone)).count();
            assert_eq!(count, if resume { 10 } else { 0 }, "{version:?}");
        }
    }
}

#[test]
fn resumes_many_simultaneous_connections() {
    let authority = Authority::new();
    let file = PemFile::new(&authority.root_pem);
    let connector =
        Connector::over(Alpn::HTTP1, &Tls { ca_file: Some(file.path()), resume: true, ..tls("localhost") }).unwrap();
    let mut server = authority.leaf(&leaf_params(&["localhost"])).server(&[&rustls::version::TLS13]);
    server.session_storage = ServerSessionMemoryCache::new(1000);
    server.send_tls13_tickets = 1;
    let server = Arc::new(server);
    let at_once = |count: usize| {
        let mut pairs: Vec<Pair> = (0..count).map(|_| Pair::new(&connector, &server)).collect();
        pairs.iter_mut().for_each(|pair| pair.converse().unwrap());
        pairs.iter().filter(|pair| pair.client.resumed()).count()
    };
    assert_eq!([at_once(64), at_once(64), at_once(64)], [0, 64, 64]);
    assert_eq!([at_once(300), at_once(300)], [64, 256], "the number of kept sessions is limited");
}

#[test]
fn distinguishes_end_from_truncation() {
    let authority = Authority::new();
    let connector = trusting(&authority.root_pem, "localhost");
    let server = Arc::new(authority.leaf(&leaf_params(&["localhost"])).server(&BOTH));
    let mut pair = Pair::new(&connector, &server);
    pair.converse().unwrap();
    assert!(!pair.client.ended());
    pair.server.writer().write_all(b"the last").unwrap();
    pair.server.send_close_notify();
    pair.carry().unwrap();
    assert_eq!(pair.plain, b"the last");
    assert!(pair.client.ended());
    pair.client.read(b"\x00garbage", &mut pair.plain).unwrap();
    assert_eq!(pair.plain, b"the last");
}

#[test]
fn close_sends_close_notify() {
    let authority = Authority::new();
    let connector = trusting(&authority.root_pem, "localhost");
    let server = Arc::new(authority.leaf(&leaf_params(&["localhost"])).server(&BOTH));
    let mut pair = Pair::new(&connector, &server);
    pair.converse().unwrap();
    let mut wire = Vec::new();
    pair.client.close(&mut wire);
    pair.server.read_tls(&mut wire.as_slice()).unwrap();
    assert!(pair.server.process_new_packets().unwrap().peer_has_closed());
    assert_eq!(pair.client.read(b"\x00\x00\x00\x00\x00", &mut pair.plain), Err(FAILED.to_owned()));
    wire.clear();
    pair.client.close(&mut wire);
    assert_eq!(wire, b"");
}

#[test]
fn recognizes_non_tls_servers() {
    let connector = trusting(&Authority::new().root_pem, "localhost");
    let said = |bytes: &[u8]| connector.start().read(bytes, &mut Vec::new()).unwrap_err().to_string();
    let expected = "the server does not speak TLS: its first bytes are `HTTP/1.1 400 Bad Request`";
    assert_eq!(said(b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"), expected);
    assert!(said(b"SSH-2.0-OpenSSH_9.2\r\n").ends_with("`SSH-2.0-OpenSSH_9.2`"));
    assert!(said(b"\x00\xff").ends_with("`\\x00\\xff`"));
    assert!(said(&[22, 9, 9, 0, 1, 0]).starts_with("TLS protocol error of the server in the handshake: "));
}

/// Any input ends in an error or a wait for more data, and memory does not grow with the input.
#[test]
fn hostile_server_causes_only_errors() {
    let authority = Authority::new();
    let connector = trusting(&authority.root_pem, "localhost");
    // The server announces a handshake message of 16 MiB and delivers it in records of 16 KiB.
    let mut session = connector.start();
    let mut record = vec![22, 3, 3, 0x40, 0];
    record.extend([2, 0xff, 0xff, 0xff]);
    record.resize(5 + 0x4000, 0);
    let error = (0..1000).find_map(|_| session.read(&record, &mut Vec::new()).err());
    let is_expected = |error: &str| error.starts_with("TLS protocol error") || error.contains("in the TLS handshake");
    assert!(error.as_deref().is_some_and(is_expected), "{error:?}");
    for record in [&[20, 3, 3, 0, 1, 1][..], &[21, 3, 3, 0, 2, 1, 90], &[22, 3, 3, 0, 0], &[23, 3, 3, 0, 1, 0]] {
        let mut session = connector.start();
        let error = (0..100_000).find_map(|_| session.read(record, &mut Vec::new()).err());
        assert!(error.is_some(), "{record:?} can be repeated for ever");
    }
    let server = Arc::new(authority.leaf(&leaf_params(&["localhost"])).server(&BOTH));
    let mut pair = Pair::new(&connector, &server);
    let (mut hello, mut flight) = (Vec::new(), Vec::new());
    pair.client.take(&mut hello);
    pair.server.read_tls(&mut &hello[..]).unwrap();
    pair.server.process_new_packets().unwrap();
    while pair.server.wants_write() {
        pair.server.write_tls(&mut flight).unwrap();
    }
    for index in (0..flight.len()).step_by(7) {
        // The flight was encrypted for a different client, so its encrypted part is random data to this one.
        let mut flight = flight.clone();
        flight[index] ^= 0x41;
        let mut session = connector.start();
        let mut plain = Vec::new();
        let _ = session.read(&flight, &mut plain);
        assert!(session.is_handshaking() && plain.is_empty());
    }
}

#[test]
fn user_errors_are_explained() {
    let said = |tls: &Tls| Connector::over(Alpn::HTTP1, tls).unwrap_err().to_string();
    let missing = said(&Tls { ca_file: Some("/nowhere/roots.pem".to_owned()), ..tls("a") });
    assert_eq!(
        missing,
        "cannot read the root certificates in `/nowhere/roots.pem`: No such file or directory (os \
                         error 2)"
    );
    let empty = PemFile::new("nothing\n");
    let expected =
        format!("cannot read the root certificates in `{}`: no `BEGIN CERTIFICATE` found, expected PEM", empty.path());
    assert_eq!(said(&Tls { ca_file: Some(empty.path()), ..tls("a") }), expected);
    let bad = PemFile::new("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert!(said(&Tls { ca_file: Some(bad.path()), ..tls("a") }).contains("certificate 1 is invalid: "));
    let cut = PemFile::new("-----BEGIN CERTIFICATE-----\nAA!A\n");
    assert!(said(&Tls { ca_file: Some(cut.path()), ..tls("a") }).contains("invalid PEM: "));
    for name in ["", "a b", "-", "[::1", "http://x"] {
        let said = said(&Tls { insecure: true, ..tls(name) });
        assert_eq!(said, format!("`{name}` is neither a host name nor an IP address"));
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "a check that did not run says so")]
fn the_roots_of_this_machine_are_there_or_missed() {
    match Connector::over(Alpn::HTTP1, &tls("localhost")) {
        Ok(_) => {}
        Err(error) if error.starts_with("this machine has no root certificates") => {
            println!("not checked: this machine has no root certificates")
        }
        Err(other) => panic!("{other}"),
    }
}

/// `openssl s_server`, an independent implementation, returns each line reversed.
#[test]
#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it ends its own processes and prints the checks it skipped"
)]
fn openssl_is_understood() {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    struct Kill(Child);
    impl Drop for Kill {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let authority = Authority::new();
    let leaf = authority.leaf(&leaf_params(&["localhost"]));
    let certificate = PemFile::new(&leaf.pem);
    let chain = PemFile::new(&authority.intermediate.pem());
    let key = PemFile::new(&leaf.key.serialize_pem());
    let roots = PemFile::new(&authority.root_pem);
    for version in ["-tls1_3", "-tls1_2"] {
        let arguments = ["s_server", "-accept", "127.0.0.1:0", "-rev", version, "-alpn", "http/1.1"];
        let started = Command::new("openssl")
            .args(arguments)
            .args(["-cert", &certificate.path(), "-cert_chain", &chain.path(), "-key", &key.path()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match started {
            Ok(child) => Kill(child),
            Err(error) => return println!("not checked: openssl cannot be started: {error}"),
        };
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let Some(address) =
            lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("ACCEPT ").map(str::to_owned))
        else {
            return println!("not checked: this openssl does not print its address");
        };
        let connector =
            Connector::over(Alpn::HTTP1, &Tls { ca_file: Some(roots.path()), resume: true, ..tls("localhost") })
                .unwrap();
        let mut resumed = Vec::new();
        for _ in 0..3 {
            let mut socket = std::net::TcpStream::connect(&address).unwrap();
            socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            let mut session = connector.start();
            let (mut out, mut plain, mut wire) = (Vec::new(), Vec::new(), [0; 4096]);
            session.write(b"stressed\n");
            while !plain.ends_with(b"\n") {
                out.clear();
                session.take(&mut out);
                socket.write_all(&out).unwrap();
                let count = socket.read(&mut wire).unwrap();
                assert!(count > 0, "openssl ended the connection");
                session.read(&wire[..count], &mut plain).unwrap();
            }
            assert_eq!(plain, b"desserts\n");
            assert_eq!(session.connection.alpn_protocol(), Some(Alpn::HTTP1.id.as_bytes()));
            resumed.push(session.resumed());
        }
        assert_eq!(resumed, [false, true, true], "{version}");
    }
}
