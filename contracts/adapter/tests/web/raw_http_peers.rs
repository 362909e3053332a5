//! A server and a client of raw HTTP/1.1 messages, for comparing forwarded bytes.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this module")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub start: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn status(&self) -> u16 {
        self.start.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the fields sorted by name, since the order of different names has no meaning (RFC 9110, section 5.3).
    /// Leaves out connection fields and `Host`, which names the service instead of the listener.
    pub fn sorted(&self) -> Vec<(String, String)> {
        let mut fields = self.fields.clone();
        fields.retain(|(name, _)| !["host", "connection"].contains(&name.to_ascii_lowercase().as_str()));
        fields.sort_by_key(|(name, _)| name.to_ascii_lowercase());
        fields
    }

    pub fn to_bytes(&self, chunk: usize) -> Vec<u8> {
        let mut out = format!("{}\r\n", self.start).into_bytes();
        for (name, value) in &self.fields {
            out.extend(format!("{name}: {value}\r\n").bytes());
        }
        out.extend(b"\r\n");
        if self.field("transfer-encoding").is_some() {
            for part in self.body.chunks(chunk.max(1)) {
                out.extend(format!("{:x}\r\n", part.len()).bytes());
                out.extend(part);
                out.extend(b"\r\n");
            }
            out.extend(b"0\r\n\r\n");
        } else {
            out.extend(&self.body);
        }
        out
    }
}

pub fn response(status: u16, kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub fn request(method: &str, target: &str, fields: &[(&str, &str)], body: &[u8]) -> Message {
    let mut all = vec![("Host".to_owned(), "listener".to_owned())];
    all.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    if !body.is_empty() || method == "POST" {
        all.push(("Content-Length".to_owned(), body.len().to_string()));
    }
    Message { start: format!("{method} {target} HTTP/1.1"), fields: all, body: body.to_vec() }
}

pub trait Both: Read + Write + Send {}
impl<S: Read + Write + Send> Both for S {}

pub type Reader = BufReader<Box<dyn Both>>;

fn line(from: &mut Reader) -> io::Result<Option<String>> {
    let mut line = String::new();
    match from.read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned())),
    }
}

/// Reads one message; `None` at the end. A `bare` message, such as a response to HEAD, has no body.
pub fn read(from: &mut Reader, bare: bool) -> io::Result<Option<Message>> {
    let Some(start) = line(from)? else { return Ok(None) };
    let mut message = Message { start, ..Message::default() };
    loop {
        let field = line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let Some((name, value)) = field.split_once(':') else { break };
        message.fields.push((name.to_owned(), value.trim().to_owned()));
    }
    let is_response = message.start.starts_with("HTTP/");
    let bare = bare || is_response && (message.status() / 100 == 1 || [204, 304].contains(&message.status()));
    if bare {
        return Ok(Some(message));
    }
    if message.field("transfer-encoding").is_some() {
        loop {
            let size = line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
            let mut part = vec![0; size + 2];
            from.read_exact(&mut part)?;
            message.body.extend(&part[..size]);
            if size == 0 {
                return Ok(Some(message));
            }
        }
    }
    match message.field("content-length").map(|length| length.parse::<usize>().unwrap()) {
        Some(length) => {
            message.body = vec![0; length];
            from.read_exact(&mut message.body)?;
        }
        None if is_response => drop(from.read_to_end(&mut message.body)?),
        None => {}
    }
    Ok(Some(message))
}

/// The bytes to send, and whether the connection ends after them.
pub type Answer = (Vec<u8>, bool);

pub fn serve(tls: Option<&Made>, answer: impl Fn(&Message) -> Answer + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (answer, tls) = (Arc::new(answer), tls.map(|made| made.server.clone()));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answer, tls) = (answer.clone(), tls.clone());
            std::thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                let stream: Box<dyn Both> = match tls {
                    Some(config) => Box::new(StreamOwned::new(ServerConnection::new(config).unwrap(), stream)),
                    None => Box::new(stream),
                };
                let mut from = BufReader::new(stream);
                while let Ok(Some(request)) = read(&mut from, false) {
                    let (bytes, ends) = answer(&request);
                    let to = from.get_mut();
                    if to.write_all(&bytes).and_then(|()| to.flush()).is_err() || ends {
                        return;
                    }
                }
            });
        }
    });
    port
}

pub fn connect(address: &str) -> Reader {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.set_nodelay(true).unwrap();
    BufReader::new(Box::new(stream))
}

/// Opens a TLS connection that trusts `made` and presents `own`.
pub fn connect_tls(address: &str, made: &Made, own: Option<&Made>) -> Reader {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    tls_over(stream, made, own)
}

pub fn tls_over(stream: TcpStream, made: &Made, own: Option<&Made>) -> Reader {
    let mut roots = RootCertStore::empty();
    roots.add(made.root.clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = match own {
        Some(own) => builder.with_client_auth_cert(vec![own.leaf.clone()], own.key.clone_key()).unwrap(),
        None => builder.with_no_client_auth(),
    };
    let name = ServerName::try_from("127.0.0.1").unwrap();
    BufReader::new(Box::new(StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)))
}

pub fn exchange(on: &mut Reader, bytes: &[u8], bare: bool) -> io::Result<Message> {
    on.get_mut().write_all(bytes)?;
    on.get_mut().flush()?;
    read(on, bare)?.ok_or(io::ErrorKind::UnexpectedEof.into())
}

pub fn ask(address: &str, request: &Message) -> Message {
    exchange(&mut connect(address), &request.to_bytes(1000), request.start.starts_with("HEAD ")).unwrap()
}

pub fn tunnel(proxy: &str, authority: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").unwrap();
    let head = head(&mut stream);
    (stream, head)
}

/// Reads the head of a message and not a byte more.
pub fn head(from: &mut impl Read) -> String {
    try_head(from).unwrap()
}

pub fn try_head(from: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        from.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    String::from_utf8(head).map_err(io::Error::other)
}

pub fn to_the_end(mut stream: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut all);
    all
}

/// A certificate for 127.0.0.1 and a name, signed by a root and also stored in files.
pub struct Made {
    pub server: Arc<ServerConfig>,
    root: CertificateDer<'static>,
    leaf: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    folder: tempfile::TempDir,
}

impl Made {
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    pub fn identity(&self) -> String {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        format!("cert = '{}'\nkey = '{}'\n", at("cert.pem"), at("key.pem"))
    }

    pub fn peers(&self) -> String {
        format!("[tls.peers]\n{}ca = '{}'\n", self.identity(), self.ca().display())
    }
}

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
    pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = root.self_signed(&key).unwrap();
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Self { issuer: Issuer::new(root, key), root: der, pem }
    }

    pub fn make(&self, name: &str) -> Made {
        let mut leaf = CertificateParams::new(vec![name.to_owned(), "127.0.0.1".to_owned()]).unwrap();
        leaf.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = leaf.signed_by(&key, &self.issuer).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("ca.pem", &self.pem);
        write("cert.pem", &certificate.pem());
        write("key.pem", &key.serialize_pem());
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private.clone_key())
            .unwrap();
        let leaf = certificate.der().clone();
        Made { server: Arc::new(config), root: self.root.clone(), leaf, key: private, folder }
    }
}

pub fn contract_file(folder: &Path, text: &str) -> String {
    let path = folder.join("test.contract");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}
