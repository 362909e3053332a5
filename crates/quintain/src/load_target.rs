//! Turns URLs and the flags for HTTP, caches and journeys into the target of a load.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Arg;
use study::request_file::Entry;
use study::spec::{
    ClientCertificate, Connection, Dialect, Expect, Http2Settings, HttpRequest, Protocol, Target, Tls, WeightedJourney,
};
use study::url::Url;
use study::workload::trace::Format;
use study::workload::{Gaps, Trace};
use study::{Journey, Workload, journey, validate_http, workload};

use crate::cli::{CacheArgs, HttpArgs, LoadArgs, read_file};
use crate::collected_mistakes::Mistakes;
use crate::command_result::usage;
use crate::output;

/// Default workload. Its population is fixed, so that the hit ratio settles, and its lengths come from measurements.
const DEFAULT_WORKLOAD: &str = "etc-2012";

/// HTTP flags that also apply to journeys.
const SHARED_FLAGS: [&str; 7] =
    ["--http2", "--connection", "--no-keepalive", "--requests-per-connection", "--insecure", "--cacert", "--cert"];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) target: Target,
    pub(crate) pipeline: u32,
    pub(crate) connection: Connection,
    pub(crate) name: String,
    pub(crate) notes: Vec<String>,
}

impl Asked {
    pub(crate) fn new(target: Target, name: String) -> Self {
        Self { target, pipeline: 1, connection: Connection::KeepAlive, name, notes: Vec::new() }
    }
}

/// Reads the file of URLs and the flags. Adds errors to `mistakes`; returns `None` if they leave no target.
pub(crate) fn asked(load: &LoadArgs, mistakes: &mut Mistakes) -> Option<Asked> {
    let args = &load.http;
    let entries = match &args.urls {
        Some(path) => entries(path, mistakes),
        None => load.url.clone().flatten().map(|url| {
            vec![Entry { weight: 1, method: None, url, headers: Vec::new(), body: None, name: None, line: 1 }]
        }),
    };
    let first = entries.as_ref().and_then(|entries| entries.first()).map(|entry| entry.url.clone());
    match first.as_ref().map(|url| (url, url.protocol)) {
        Some((url, Protocol::Pingpong)) => {
            let why = "is HTTP only, not supported by `pingpong://`";
            refuse_http(&[], why, "drop it, or load `http://...`", mistakes);
            return Some(Asked::new(Target::Pingpong { address: url.address() }, url.to_string()));
        }
        Some((url, Protocol::Cache(dialect))) => return of_cache(url, dialect, load, mistakes),
        Some((_, Protocol::Http | Protocol::Https | Protocol::Journey)) | None => {}
    }
    let expect = expect(args);
    let body = body(args, mistakes);
    let tls = first.as_ref().and_then(|url| tls(args, url, mistakes));

    let (entries, first) = (entries?, first?);
    let mut requests = requests(args, body.as_deref(), &entries, mistakes);
    let schema = args.proto.as_deref().map(grpc::Schema::read);
    let schema = schema.and_then(|read| mistakes.ok(read.map_err(|error| format!("`--proto`: {error}"))));
    if args.grpc {
        let call = |request| match &schema {
            Some(schema) => study::grpc::prepare_json(request, |path, json| schema.method(path)?.encode(json)),
            None => study::grpc::prepare(request),
        };
        let calls = requests.into_iter().map(|request| call(request).map_err(|error| error.of("`--grpc`")));
        requests = calls.filter_map(|call| mistakes.ok(call)).collect();
    }
    if schema.is_some() && expect.body.is_some() {
        let message = "`--expect-body` compares encoded messages, but `--proto` makes them JSON";
        mistakes.add(usage(message).hint("use `--expect-json`"));
    }
    let expect = Expect { grpc_schema: schema.map(|schema| schema.encode()), ..expect };
    let http2 = args.http2 || args.grpc;
    if !http2 {
        let flags = ["--streams", "--stream-window", "--connection-window", "--header-table"];
        mistakes.refuse(&flags, "needs HTTP/2", "add `--http2` or `--grpc`");
    }
    let default = Http2Settings::default();
    let http2_settings = Http2Settings {
        stream_window_bytes: args.stream_window.unwrap_or(default.stream_window_bytes),
        connection_window_bytes: args.connection_window.unwrap_or(default.connection_window_bytes),
        header_table_bytes: args.header_table.unwrap_or(default.header_table_bytes),
    };
    if args.grpc && args.pipeline.is_some() {
        mistakes.add(usage("`--grpc` cannot be combined with `--pipeline`").hint("use `--streams`"));
    }
    let Expect { body, json, matches, length, .. } = &expect;
    let expects_body = body.is_some() || !json.is_empty() || matches.is_some() || length.is_some();
    if expects_body && requests.iter().any(|request| request.method == "HEAD") {
        mistakes.add(usage("a response to `HEAD` has no body to expect").hint("use `GET`"));
    }
    let fragments = entries.iter().filter_map(|entry| entry.url.fragment.as_ref()).take(3);
    let notes = fragments.map(|fragment| format!("`#{fragment}` is not sent: fragments are not part of a request"));
    let (mut address, mut over) = place(args, &first);
    let tunnel_to = args.http_proxy.clone().map(|proxy| {
        over += &format!(" through {proxy}");
        std::mem::replace(&mut address, proxy).into()
    });
    let over = match (args.grpc, args.http2) {
        (true, _) => format!(", gRPC{over}"),
        (_, true) => format!(" over HTTP/2{over}"),
        _ => over,
    };
    let name = match &args.urls {
        Some(path) => {
            let requests = analysis::number::count(entries.len() as u64, "request");
            format!("{}{over}, {requests} of {}", first.origin(), path.display())
        }
        None => format!("{first}{over}"),
    };
    let target = Target::Http {
        address,
        tunnel_to,
        requests,
        tls,
        http2,
        http2_settings,
        in_turn: args.messages.unwrap_or_default(),
        expect: Box::new(expect),
        directory: String::new(),
    };
    Some(Asked {
        pipeline: args.pipeline.or(args.streams).unwrap_or(1),
        connection: connection(args),
        notes: notes.collect(),
        ..Asked::new(target, name)
    })
}

pub(crate) fn connection(args: &HttpArgs) -> Connection {
    match args.requests_per_connection {
        Some(requests) => Connection::Requests(requests),
        None if args.no_keepalive => Connection::PerRequest,
        None => args.connection.unwrap_or_default(),
    }
}

/// Builds the target from the URL of a cache and the flags; `None` if errors prevent it.
fn of_cache(url: &Url, dialect: Dialect, args: &LoadArgs, mistakes: &mut Mistakes) -> Option<Asked> {
    let why = format!("is HTTP only, and {url} is a cache");
    let hint = "drop it; use `--workload` to choose the cache workload";
    refuse_http(&["--pipeline", "--unix-socket", "--connect-to"], &why, hint, mistakes);
    let workload = Box::new(cache_workload(&args.cache, mistakes)?);
    let (address, over) = place(&args.http, url);
    let name = format!("{url}{over}, {}", workload.preset.as_deref().unwrap_or("custom workload"));
    let target = Target::Cache { address, dialect, workload };
    Some(Asked { pipeline: args.http.pipeline.unwrap_or(1), ..Asked::new(target, name) })
}

/// Refuses HTTP flags that are not in `own`, except those that matter only beside another.
fn refuse_http(own: &[&str], why: &str, hint: &str, mistakes: &mut Mistakes) {
    let is_foreign = |flag: &str, _: &Arg| !own.contains(&flag) && !["--check", "--key"].contains(&flag);
    mistakes.refuse_of::<HttpArgs>(is_foreign, why, hint);
}

/// Address to connect to, and the suffix for the name of the load if it is not the URL's.
fn place(args: &HttpArgs, url: &Url) -> (String, String) {
    match (&args.connect_to, &args.unix_socket) {
        (Some(address), _) => (address.clone(), format!(" at {address}")),
        (None, Some(path)) => (format!("unix:{path}"), format!(" over {path}")),
        (None, None) => (url.address(), String::new()),
    }
}

fn entries(path: &Path, mistakes: &mut Mistakes) -> Option<Vec<Entry>> {
    let bytes = read_file(path, study::request_file::FILE_MAX_BYTES as u64);
    let bytes = mistakes.ok(bytes.map_err(|error| format!("`--urls`: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("`--urls`: `{}` is not valid UTF-8", path.display()));
    let text = mistakes.ok(text)?;
    study::request_file::parse(&text).map_err(|found| mistakes.in_file(path, &text, &found)).ok()
}

fn expect(args: &HttpArgs) -> Expect {
    let (text, file) = (&args.expect_body, &args.expect_body_file);
    let body = text.clone().map(String::into_bytes);
    Expect {
        status: args.expect_status.clone(),
        body: body.or_else(|| file.as_ref().map(|(_, bytes)| bytes.clone())),
        json: args.expect_json.clone(),
        matches: args.expect_matches.clone(),
        length: args.expect_length,
        check_one_in: args.check.map_or(0, validate_http::one_in),
        grpc: args.grpc,
        grpc_schema: None,
    }
}

/// Body of the requests. Checks the values in a file, whose errors have locations.
fn body(args: &HttpArgs, mistakes: &mut Mistakes) -> Option<Vec<u8>> {
    let Some((path, bytes)) = &args.body_file else { return args.body.clone().map(String::into_bytes) };
    if let (Ok(text), false) = (std::str::from_utf8(bytes), args.grpc)
        && let Err(found) = study::request_values::check_file(text)
    {
        mistakes.in_file(path, text, &found);
        return None;
    }
    Some(bytes.clone())
}

fn tls(args: &HttpArgs, url: &Url, mistakes: &mut Mistakes) -> Option<Tls> {
    if url.protocol != Protocol::Https {
        let hint = format!("drop it, or load `{}`", url.to_string().replacen("http:", "https:", 1));
        let why = format!("needs `https://`, found `{}`", url.origin());
        mistakes.refuse(&["--insecure", "--cacert", "--cert", "--no-resume"], &why, &hint);
        return None;
    }
    let (ca_file, client) = certificates(args);
    Some(Tls { server_name: url.host.clone(), insecure: args.insecure, ca_file, client, resume: !args.no_resume })
}

/// Files of `--cacert`, `--cert` and `--key`.
fn certificates(args: &HttpArgs) -> (Option<String>, Option<ClientCertificate>) {
    let client = args.cert.clone().map(|cert_file| {
        let key_file = args.key.clone().unwrap_or_else(|| cert_file.clone());
        ClientCertificate { cert_file, key_file }
    });
    (args.cacert.clone(), client)
}

/// Builds a request per entry. A single URL takes the body; entries of a file take it except with `GET` and `HEAD`.
fn requests(args: &HttpArgs, body: Option<&[u8]>, entries: &[Entry], mistakes: &mut Mistakes) -> Vec<HttpRequest> {
    let from_file = args.urls.is_some();
    let has_body = args.grpc || body.is_some() && !from_file;
    let default = if has_body { "POST" } else { "GET" };
    let request = |entry: &Entry| {
        let method = entry.method.as_deref().or(args.method.as_deref()).unwrap_or(default);
        let takes_body = !from_file || !matches!(method, "GET" | "HEAD");
        let is_in = |name: &str, headers: &[(String, String)]| {
            headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        // A request's own headers replace headers from flags.
        let common = args.headers.iter().filter(|(name, _)| !is_in(name, &entry.headers));
        let mut headers = common.chain(&entry.headers).cloned().collect::<Vec<_>>();
        if !is_in("Host", &headers) {
            headers.insert(0, ("Host".to_owned(), entry.url.host_field()));
        }
        let body = entry.body.clone().or_else(|| body.map(<[u8]>::to_vec).filter(|_| takes_body));
        HttpRequest {
            weight: entry.weight,
            method: method.to_owned(),
            target: entry.url.target.clone(),
            headers,
            body: body.unwrap_or_default(),
            name: entry.name.clone(),
        }
    };
    let requests = entries.iter().map(request).collect::<Vec<_>>();
    if body.is_some_and(|body| !body.is_empty()) && requests.iter().all(|request| request.body.is_empty()) {
        let hint = "give the requests with a body a method other than `GET` or `HEAD`: `POST http://...`";
        mistakes.add(usage("no request in the file takes a body").hint(hint));
    }
    // All requests share the headers, so the same error is reported only once.
    let to_close = "use `--connection per-request` to close after each response";
    let all = requests.iter().flat_map(|request| validate_http::mistakes(request, connection(args), to_close));
    for (field, error) in analysis::group_by_key::distinct(all) {
        mistakes.add(error.of(match field {
            "path" => "URL",
            "body" => "body",
            _ => "`--header`",
        }));
    }
    requests
}

fn cache_workload(args: &CacheArgs, mistakes: &mut Mistakes) -> Option<Workload> {
    let mut workload = match (&args.trace, args.trace_format) {
        (Some(file), Some(format)) => traced(args, file, format, mistakes)?,
        _ => base_workload(args.workload.as_deref().unwrap_or(DEFAULT_WORKLOAD), mistakes)?,
    };
    workload.keys.count = args.key_count.unwrap_or(workload.keys.count);
    workload.fill = args.fill.unwrap_or(workload.fill);
    for problem in workload.problems() {
        mistakes.add(usage(format!("workload: `{}`: {}", problem.key, problem.message)).hint_if(problem.hint));
    }
    Some(workload)
}

/// Workload of a trace. Lengths that the trace lacks come from `--workload`. `None` after an error.
fn traced(args: &CacheArgs, file: &str, format: Format, mistakes: &mut Mistakes) -> Option<Workload> {
    let (gaps, speed) = (args.trace_gaps.unwrap_or(Gaps::None), args.trace_speed.unwrap_or(1.0));
    let trace = Trace { file: file.to_owned(), format, gaps, speed };
    if let Some(named) = &args.workload {
        let base = base_workload(named, mistakes)?;
        return Some(Workload { trace: Some(trace), fill: !format.has_writes(), ..base });
    }
    if !format.has_lengths() {
        let text = format!("`--trace-format {}`: this format has no key and value sizes", format.name());
        mistakes.add(usage(text).hint("add `--workload`, e.g. `--workload etc-2012`"));
        return None;
    }
    // A study with a trace has defaults for all other keys.
    let text = format!("load.workload.trace = {{ file = \"t\", format = \"{}\" }}\n", format.name());
    let workload = study::parse_workload(&text).expect("a trace with sizes needs nothing else");
    Some(Workload { trace: Some(trace), ..workload })
}

fn base_workload(name: &str, mistakes: &mut Mistakes) -> Option<Workload> {
    if let Some(workload) = workload::preset(name) {
        return Some(workload);
    }
    let names = workload::PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
    let hint = format!("presets: {names}; a file needs `[load.workload]`");
    let text = mistakes.ok(output::read_named("--workload", "preset", name, hint))?;
    study::parse_workload(&text).map_err(|found| mistakes.in_file(Path::new(name), &text, &found)).ok()
}

/// Builds the target from the journeys and their flags; `None` if errors prevent it.
pub(crate) fn of_journeys(args: &LoadArgs, mistakes: &mut Mistakes) -> Option<Asked> {
    let flags = &args.http;
    let mut targets = BTreeMap::new();
    for (name, url) in &args.targets {
        if targets.insert(name.clone(), url.clone()).is_some() {
            mistakes.add(format!("duplicate `--target {name}=...`"));
        }
    }
    let journeys = args
        .journeys
        .iter()
        .map(|(name, weight)| read_journey(name, mistakes).map(|journey| WeightedJourney { weight: *weight, journey }));
    let journeys = journeys.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>()?;
    let name = match journeys.as_slice() {
        [one] => format!("journey {}", one.journey.name),
        all => {
            let all = all.iter().map(|one| format!("{} (weight {})", one.journey.name, one.weight));
            format!("journeys {}", all.collect::<Vec<_>>().join(", "))
        }
    };
    refuse_http(&SHARED_FLAGS, "does not apply to journeys", "drop it", mistakes);
    if flags.http2 && args.resolve.is_some() {
        mistakes.add(usage("`--resolve` needs HTTP/1.1").hint("drop it, or `--http2`"));
    }
    let (ca_file, client) = certificates(flags);
    let target = Target::Journey {
        journeys,
        targets,
        resolve: args.resolve.clone(),
        insecure: flags.insecure,
        ca_file,
        client,
        http2: flags.http2,
        is_traced: args.trace_session,
        identities: args.identities,
    };
    let name = if flags.http2 { format!("{name} over HTTP/2") } else { name };
    Some(Asked { connection: connection(flags), ..Asked::new(target, name) })
}

fn read_journey(name: &str, mistakes: &mut Mistakes) -> Option<Journey> {
    if let Some(journey) = study::preset_journey(name) {
        return Some(journey);
    }
    let hint = format!("built-in journeys: {}", journey::PRESETS.map(|preset| preset.0).join(", "));
    let (path, text) = (Path::new(name), output::read_named("--journey", "journey", name, hint));
    let text = mistakes.ok(text)?;
    let mut journey = study::parse_journey(&text).map_err(|found| mistakes.in_file(path, &text, &found)).ok()?;
    let files = journey.files().map(str::to_owned).collect::<Vec<_>>();
    let beside = path.parent().unwrap_or(Path::new(""));
    for schema in journey.schemas.iter_mut().filter(|schema| files.contains(&schema.file)) {
        let schema_path = beside.join(&schema.file);
        let unreadable = |error| format!("`--journey`: cannot read `{}`: {error}", schema_path.display());
        schema.text = mistakes.ok(std::fs::read_to_string(&schema_path).map_err(unreadable))?;
    }
    Some(journey)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, FromArgMatches, Parser};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }

    fn read(words: &[&str]) -> (Option<Asked>, Mistakes) {
        let flags = Line::command().try_get_matches_from(std::iter::once(&"load").chain(words)).unwrap();
        let line = Line::from_arg_matches(&flags).unwrap();
        let mut mistakes = Mistakes::of_flags(&flags);
        let asked = asked(&line.load, &mut mistakes);
        (asked, mistakes)
    }

    #[track_caller]
    fn good(words: &[&str]) -> Asked {
        let (asked, mistakes) = read(words);
        mistakes.end().unwrap();
        asked.unwrap()
    }

    #[track_caller]
    fn requests(words: &[&str]) -> (String, Vec<HttpRequest>, Option<Tls>, Expect) {
        match good(words).target {
            Target::Http { address, requests, tls, expect, .. } => (address, requests, tls, *expect),
            _ => panic!("not HTTP"),
        }
    }

    #[track_caller]
    fn bad(words: &[&str]) -> String {
        let (_, mistakes) = read(words);
        format!("{:?}", mistakes.end().unwrap_err())
    }

    /// Formats the request without the headers that the generator adds.
    fn text(request: &HttpRequest) -> String {
        let fields = request.headers.iter().map(|(name, value)| format!("|{name}: {value}")).collect::<String>();
        format!("{} {}{fields}|{}", request.method, request.target, String::from_utf8_lossy(&request.body))
    }

    #[test]
    fn plain_url_sends_the_same_request_as_wrk() {
        let (address, requests, tls, expect) = requests(&["http://h:8080/a?b"]);
        assert_eq!((address.as_str(), text(&requests[0]).as_str()), ("h:8080", "GET /a?b|Host: h:8080|"));
        assert_eq!((requests.len(), tls, expect), (1, None, Expect::default()));
    }

    #[test]
    fn methods_headers_and_bodies() {
        for (words, sent) in [
            (&["http://h", "--body", "x"][..], "POST /|Host: h|x"),
            (&["http://h", "--body", "x", "-X", "GET"], "GET /|Host: h|x"),
            (&["http://h", "--body", ""], "POST /|Host: h|"),
            (&["http://h", "-X", "HEAD"], "HEAD /|Host: h|"),
            (&["http://h", "-H", "a: b", "-H", "A:c"], "GET /|Host: h|a: b|A: c|"),
            (&["http://h", "-H", "host: other"], "GET /|host: other|"),
        ] {
            assert_eq!(text(&requests(words).1[0]), sent, "{words:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("body");
        std::fs::write(&path, b"\x00\xff").unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(requests(&["http://h", "--body-file", path]).1[0].body, b"\x00\xff");
        std::fs::write(path, "{\n\"a\": \"{{sec}}\"}").unwrap();
        let said = bad(&["http://h", "--body-file", path]);
        assert!(said.contains(&format!("{path}:2:7")) && said.contains("unknown value `{{sec}}`"), "{said}");
        std::fs::write(path, b"\x00\xff").unwrap();
        assert_eq!(requests(&["http://h", "--expect-body-file", path]).3.body.unwrap(), b"\x00\xff");
    }

    #[test]
    fn a_file_of_requests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mix");
        std::fs::write(&path, "8 http://h/a\nPOST http://h/b\nDELETE http://h/c\n").unwrap();
        let words = ["--urls", path.to_str().unwrap(), "--body", "x", "-X", "PUT", "-H", "A: b"];
        let asked = good(&words);
        assert_eq!(asked.name, format!("http://h, 3 requests of {}", path.display()));
        let (_, requests, ..) = requests(&words);
        let sent = requests.iter().map(|request| format!("{} {}", request.weight, text(request))).collect::<Vec<_>>();
        assert_eq!(sent, ["8 PUT /a|Host: h|A: b|x", "1 POST /b|Host: h|A: b|x", "1 DELETE /c|Host: h|A: b|x"]);
        std::fs::write(&path, "http://h/a\nHEAD http://h/b\n").unwrap();
        assert!(bad(&["--urls", path.to_str().unwrap(), "-X", "GET", "--body", "x"]).contains("takes a body"));
    }

    #[test]
    fn connections_and_tls() {
        let asked = good(&["http://h", "--pipeline", "16"]);
        assert_eq!((asked.pipeline, asked.connection), (16, Connection::KeepAlive));
        let asked = good(&["http://h", "--http2", "-m", "8", "--connect-to", "h:81"]);
        assert_eq!((asked.pipeline, asked.name.as_str()), (8, "http://h/ over HTTP/2 at h:81"));
        assert!(matches!(asked.target, Target::Http { http2: true, .. }));
        let windows =
            ["http://h", "--http2", "--stream-window", "16KiB", "--connection-window", "1MiB", "--header-table", "0"];
        let Target::Http { http2_settings, .. } = good(&windows).target else { panic!("not HTTP") };
        let Http2Settings { stream_window_bytes, connection_window_bytes, header_table_bytes } = http2_settings;
        assert_eq!((stream_window_bytes, connection_window_bytes, header_table_bytes), (16 << 10, 1 << 20, 0));
        for words in [
            &["http://h", "--no-keepalive"][..],
            &["http://h", "--disable-keepalive"],
            &["http://h", "--connection", "per-request"],
        ] {
            assert_eq!(good(words).connection, Connection::PerRequest, "{words:?}");
        }
        assert_eq!(good(&["http://h", "--requests-per-connection", "3"]).connection, Connection::Requests(3));
        let tls = |server_name: &str, insecure, resume| {
            Some(Tls { server_name: server_name.to_owned(), insecure, ca_file: None, client: None, resume })
        };
        assert_eq!(requests(&["https://H"]).2, tls("h", false, true));
        assert_eq!(requests(&["https://[::1]:8443/", "-k", "--no-resume"]).2, tls("::1", true, false));
        let (address, requests, ..) = requests(&["http://h/x", "--unix-socket", "/run/s"]);
        assert_eq!((address.as_str(), text(&requests[0]).as_str()), ("unix:/run/s", "GET /x|Host: h|"));
        assert_eq!(good(&["http://h/x", "--unix-socket", "/run/s"]).name, "http://h/x over /run/s");
        let asked = good(&["http://h/x", "--connect-to", "[::1]:81"]);
        assert_eq!(asked.name, "http://h/x at [::1]:81");
        let Target::Http { address, requests, .. } = asked.target else { panic!("not HTTP") };
        assert_eq!((address.as_str(), text(&requests[0]).as_str()), ("[::1]:81", "GET /x|Host: h|"));
        assert_eq!(good(&["http://h/x#y"]).notes, ["`#y` is not sent: fragments are not part of a request"]);
    }

    #[test]
    fn mistakes_are_named() {
        let long = "x".repeat(108);
        for (words, said) in [
            (&["http://h", "-X", "get"][..], "`--method`: `get` is not `GET`"),
            (&["http://h", "-H", "nothing"], "`--header`: `nothing` is not a valid header"),
            (&["http://h", "-H", "Connection: close"], "`--connection per-request` to close"),
            (&["http://h", "-H", "Upgrade: h2c"], "a load does not change its protocol"),
            (&["http://h", "-H", "Content-Length: 3"], "but the body has 0 bytes"),
            (&["http://h", "--pipeline", "0"], "must be 1 to 1,024, not `0`"),
            (&["http://h", "--pipeline", "many"], "`many` is not a number"),
            (&["http://h", "--http2", "-m", "1025"], "must be 1 to 1,024, not `1025`"),
            (&["http://h", "--http2", "--connection-window", "1KiB"], "must be 65535 B to 2147483647 B"),
            (&["http://h", "--stream-window", "1KiB"], "`--stream-window` needs HTTP/2"),
            (&["http://h", "--expect-status", "2x"], "`--expect-status`: `2x` is not a valid HTTP status"),
            (&["http://h", "--expect-body", "x", "-X", "HEAD"], "has no body to expect"),
            (&["http://h", "--expect-json", "$.a == 1", "-X", "HEAD"], "has no body to expect"),
            (&["http://h", "--expect-json", "$.a = 1"], "`--expect-json`: `$.a = 1` has no `==`"),
            (&["http://h", "--body-file", "/no/such"], "cannot read `/no/such`"),
            (&["http://h", "--body-file", "/"], "cannot read `/`"),
            (&["http://h", "--body-file", "/dev/zero"], "`/dev/zero` has more than 16 MiB"),
            (&["http://h", "--unix-socket", &long], "a path of 108 bytes"),
            (&["http://h", "-s", "x.lua"], "wrk Lua scripts are not supported"),
            (&["http://h", "-k"], "`--insecure` needs `https://`"),
            (&["https://h", "--cacert", "/no/such"], "`--cacert`: cannot read"),
            (&["https://h", "--cert", "/no/such"], "`--cert`: cannot read"),
            (&["https://h", "--cert", "/dev/null", "--key", "/no/such"], "`--key`: cannot read"),
            (&["http://h", "--cert", "/dev/null"], "`--cert` needs `https://`"),
            (&["http://h/a.B/C", "--grpc", "--proto", "/no/such"], "`--proto`: schema `/no/such`: No such file"),
            (&["http://h", "--connect-to", "h"], "`--connect-to`: `h` is not `HOST:PORT`"),
            (&["http://h", "--http-proxy", "h"], "`--http-proxy`: `h` is not `HOST:PORT`"),
            (&["redis://h", "--http-proxy", "h:1"], "`--http-proxy` is HTTP only"),
            (&["http://h", "--connect-to", "h:1/x"], "`--connect-to`: `h:1/x` is not `HOST:PORT`"),
            (&["pingpong://h:1", "-k", "-X", "GET"], "`--method` is HTTP only"),
            (&["pingpong://h:1", "-k", "-X", "GET"], "`--insecure` is HTTP only"),
            (&["pingpong://h:1", "--pipeline", "1"], "`--pipeline` is HTTP only"),
            (&["redis://h", "-X", "GET", "-k"], "`--method` is HTTP only, and redis://h is a cache"),
            (&["redis://h", "-X", "GET", "-k"], "`--insecure` is HTTP only, and redis://h is a cache"),
            (&["redis://u:p@h"], "cache loads do not log in"),
            (&["redis://h/1"], "redis URLs have no path"),
            (&["memcached://h/x"], "memcached URLs have no path"),
            (&["memcached://h", "--pipeline", "0"], "must be 1 to 1,024, not `0`"),
            (&["memcache://h"], "did you mean `memcached`?"),
            (&["--urls", "/no/such"], "cannot read `/no/such`"),
            (&["htp://h"], "did you mean `http`?"),
        ] {
            let text = bad(words);
            assert!(text.contains(said), "{words:?}: {text}");
        }
    }

    fn of_cache_flags(args: CacheArgs) -> (Option<Workload>, String) {
        let mut mistakes = Mistakes::default();
        let workload = cache_workload(&args, &mut mistakes);
        (workload, mistakes.end().err().map(|problem| format!("{problem:?}")).unwrap_or_default())
    }

    #[test]
    fn a_workload_is_a_preset_or_a_file() {
        assert_eq!(of_cache_flags(CacheArgs::default()).0, study::workload::preset("etc-2012"));
        let changed = of_cache_flags(CacheArgs {
            workload: Some("ycsb-c".to_owned()),
            key_count: Some(77),
            fill: Some(false),
            ..CacheArgs::default()
        });
        let changed = changed.0.unwrap();
        assert_eq!((changed.keys.count, changed.fill), (77, false));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.toml");
        std::fs::write(&path, "[load.workload]\npreset = \"course\"\n").unwrap();
        let workload = |path: &Path| {
            of_cache_flags(CacheArgs { workload: Some(path.display().to_string()), ..Default::default() })
        };
        assert_eq!(workload(&path).0, study::workload::preset("course"));
        std::fs::write(&path, "[load.workload]\npreset = \"curse\"\n").unwrap();
        assert!(workload(&path).1.contains("course"), "{}", workload(&path).1);
        assert!(workload(Path::new("/no/such")).1.contains("cannot read"));
        assert!(workload(Path::new("etc")).1.contains("presets: course"));
    }
}
