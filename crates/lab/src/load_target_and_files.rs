//! Builds the target of a load: fills in addresses and ports, and reads the files that the plan names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::size_limited_reads::{read_limited, read_text};
use study::Journey;
use study::load_limits_and_defaults::BODY_MAX_BYTES;
use study::node_messages::Standing;
use study::plan::{BodyPlan, HttpPlan, HttpRequestPlan, JourneyPlan, JourneySource, LoadPlan, Plan};
use study::request_values::{self, Field, Part};
use study::spec::{Expect, HttpRequest, Protocol, Target, WeightedJourney};

fn fill(text: &str, ports: Standing) -> Option<String> {
    let port = |name: &str| match name {
        "port" => Some(ports.port),
        "subject_port" => Some(ports.subject_port),
        "admin_port" => ports.admin_port,
        _ => None,
    };
    let filled = study::fill(text, |name| port(name).map(|port| port.to_string()));
    (!filled.contains("{admin_port}")).then_some(filled)
}

/// Builds the target of a load on a trial's server. Fails if the load has no requests or a file is unreadable.
pub(crate) fn target(load: &LoadPlan, host: IpAddr, ports: Standing, directory: &Path) -> Result<Target, String> {
    let front = SocketAddr::new(host, ports.port);
    let address = front.to_string();
    if let Some(plan) = &load.journey {
        return journey(plan, front, ports, directory);
    }
    let lacks = || format!("the plan has no requests for `{}`", load.protocol);
    match load.protocol {
        Protocol::Pingpong => Ok(Target::Pingpong { address }),
        Protocol::Http | Protocol::Https => {
            let http = load.http.as_ref().ok_or_else(lacks)?;
            let host = self::host(http, front);
            let schema = schema(http, directory)?;
            let request = |request| self::request(request, &host, http, schema.as_ref(), directory);
            let requests = http.requests.iter().map(request).collect::<Result<Vec<_>, _>>()?;
            // A generator on another machine has a different working directory, so the path must be absolute.
            let directory = std::path::absolute(directory).unwrap_or_default().display().to_string();
            let expect = Expect { grpc_schema: schema.map(|schema| schema.encode()), ..http.expect.clone() };
            Ok(Target::Http {
                address,
                tunnel_to: None,
                requests,
                tls: http.tls.clone(),
                http2: http.http2,
                http2_settings: http.http2_settings,
                in_turn: http.in_turn,
                expect: Box::new(expect),
                directory,
            })
        }
        Protocol::Cache(dialect) => {
            let workload = load.workload.clone().ok_or_else(lacks)?;
            Ok(Target::Cache { address, dialect, workload: Box::new(workload) })
        }
        Protocol::Journey => Err(lacks()),
    }
}

/// Maximum size of a journey file and of each schema, in bytes. The generator receives both as JSON.
const JOURNEY_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Builds the target of journeys. By default, each target in a journey keeps its scheme and gets the address `front`.
fn journey(plan: &JourneyPlan, front: SocketAddr, ports: Standing, directory: &Path) -> Result<Target, String> {
    let read = |one: &JourneySource| {
        let journey = read_journey(&one.source, directory).map_err(|mistakes| mistakes.join("; "))?;
        Ok(WeightedJourney { weight: one.weight, journey })
    };
    let journeys = plan.journeys.iter().map(read).collect::<Result<Vec<_>, String>>()?;
    let mut targets = BTreeMap::new();
    for (name, own) in journeys.iter().flat_map(|one| &one.journey.targets) {
        let scheme = if own.starts_with("http://") { "http" } else { "https" };
        targets.insert(name.clone(), format!("{scheme}://{front}"));
    }
    // Names that no journey uses stay in the list, because the generator reports them.
    for (name, url) in &plan.targets {
        let filled = fill(url, ports).ok_or_else(|| format!("target `{name}` has an unknown port: `{url}`"))?;
        targets.insert(name.clone(), filled);
    }
    Ok(Target::Journey {
        journeys,
        targets,
        // `None` without a proxy: endpoints then resolve to their own URLs.
        resolve: plan.resolve.as_ref().and_then(|url| fill(url, ports)),
        insecure: plan.insecure,
        ca_file: plan.ca_file.clone(),
        client: plan.client.clone(),
        http2: plan.http2,
        is_traced: false,
        identities: plan.identities,
    })
}

fn read_journey(source: &str, directory: &Path) -> Result<Journey, Vec<String>> {
    if let Some(journey) = study::preset_journey(source) {
        return Ok(journey);
    }
    let path = directory.join(source);
    let text = text(&path).map_err(|why| vec![why])?;
    let words = |mistake: &study::Diagnostic| format!("{source}:{mistake}");
    let mut journey = study::parse_journey(&text).map_err(|found| found.iter().map(words).collect::<Vec<_>>())?;
    let files = journey.files().map(str::to_owned).collect::<Vec<_>>();
    let beside = path.parent().unwrap_or(directory);
    let mut mistakes = Vec::new();
    for schema in journey.schemas.iter_mut().filter(|schema| files.contains(&schema.file)) {
        match self::text(&beside.join(&schema.file)) {
            Ok(text) => schema.text = text,
            Err(why) => mistakes.push(why),
        }
    }
    if mistakes.is_empty() { Ok(journey) } else { Err(mistakes) }
}

fn text(path: &Path) -> Result<String, String> {
    read_text(path, JOURNEY_MAX_BYTES).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

/// Value of `Host` (RFC 9110, section 7.2): the requested address, or the certificate's name with the port.
fn host(http: &HttpPlan, address: SocketAddr) -> String {
    let port = address.port();
    match &http.tls {
        None => address.to_string(),
        Some(tls) if tls.server_name.contains(':') => format!("[{}]:{port}", tls.server_name),
        Some(tls) => format!("{}:{port}", tls.server_name),
    }
}

fn request(
    plan: &HttpRequestPlan,
    host: &str,
    HttpPlan { values, expect, .. }: &HttpPlan,
    schema: Option<&grpc::Schema>,
    directory: &Path,
) -> Result<HttpRequest, String> {
    let mut headers = plan.headers.clone();
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Host")) {
        headers.insert(0, ("Host".to_owned(), host.to_owned()));
    }
    let body = match &plan.body {
        None => Vec::new(),
        Some(BodyPlan::Text(text)) => text.clone().into_bytes(),
        // A body that is not UTF-8 contains no placeholders.
        Some(BodyPlan::File(file)) => match String::from_utf8(body(&directory.join(file))?) {
            Ok(text) => request_values::with_names(&text, values).into_bytes(),
            Err(bytes) => bytes.into_bytes(),
        },
    };
    let HttpRequestPlan { weight, method, path, name, .. } = plan.clone();
    let request = HttpRequest { weight, method, target: path, headers, body, name };
    match schema {
        Some(schema) => study::grpc::prepare_json(request, |path, json| schema.method(path)?.encode(json)),
        None if expect.grpc => study::grpc::prepare(request),
        None => Ok(request),
    }
    .map_err(|error| error.in_one_line())
}

/// Reads the schema of gRPC calls; `None` if messages are already encoded.
fn schema(http: &HttpPlan, directory: &Path) -> Result<Option<grpc::Schema>, String> {
    http.proto.as_ref().map(|file| grpc::Schema::read(&directory.join(file))).transpose()
}

fn body(path: &Path) -> Result<Vec<u8>, String> {
    read_limited(path, BODY_MAX_BYTES).map_err(|error| format!("cannot read the body `{}`: {error}", path.display()))
}

/// Checks the files of `plan` before the first trial, except the files of servers. Returns one sentence per error.
pub fn missing_files(plan: &Plan, directory: &Path) -> Vec<String> {
    let mut missing = BTreeSet::from_iter(crate::proxy::missing_files(plan, directory));
    for http in plan.points.iter().filter_map(|point| point.load.http.as_ref()) {
        let schema = schema(http, directory).map_err(|why| missing.insert(why)).ok().flatten();
        let requests = http.requests.iter().map(|plan| request(plan, "", http, schema.as_ref(), directory));
        missing.extend(requests.filter_map(|request| match request {
            Ok(request) => unreadable_value(&request, directory),
            Err(why) => Some(why),
        }));
        let Some(tls) = &http.tls else { continue };
        let client = tls.client.as_ref();
        for (what, file) in [
            ("root certificates", tls.ca_file.as_ref()),
            ("client certificate", client.map(|client| &client.cert_file)),
            ("private key", client.map(|client| &client.key_file)),
        ] {
            let Some(path) = file.map(|file| directory.join(file)) else { continue };
            let unreadable = |error| format!("cannot read the {what} `{}`: {error}", path.display());
            missing.extend(File::open(&path).err().map(unreadable));
        }
    }
    let journeys = plan.points.iter().filter_map(|point| point.load.journey.as_ref());
    for one in journeys.flat_map(|plan| &plan.journeys) {
        missing.extend(read_journey(&one.source, directory).err().into_iter().flatten());
    }
    missing.into_iter().collect()
}

/// Finds the first error in the placeholders of a request or in their CSV files; `None` if there is none.
fn unreadable_value(request: &HttpRequest, directory: &Path) -> Option<String> {
    let body = std::str::from_utf8(&request.body).unwrap_or_default();
    let headers = request.headers.iter().map(|(_, value)| (value.as_str(), true));
    let mut texts = [(request.target.as_str(), false), (body, false)].into_iter().chain(headers);
    let check = |(text, in_header): (&str, bool)| {
        let parts = request_values::parts(text).map_err(|error| {
            // Errors outside files were reported with the study.
            let (line, column) = config::place::line_and_column(text, error.span_in(text).map_or(0, |span| span.start));
            format!("body, line {line}, column {column}: {}", error.in_one_line())
        })?;
        parts.into_iter().try_for_each(|part| match part {
            Part::Field(_, Field::Csv { file, column, .. }) => {
                study::csv_column::read(&directory.join(file), &column, in_header, |_| {})
            }
            _ => Ok(()),
        })
    };
    let why = texts.find_map(|text| check(text).err())?;
    Some(format!("request `{} {}`: {why}", request.method, request.target))
}

#[cfg(test)]
mod tests {
    use study::spec::{Expect, Tls};

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn direct(port: u16) -> Standing {
        Standing { port, subject_port: port, admin_port: None }
    }

    use super::*;

    fn plan(lines: &str) -> Plan {
        let text = format!(
            "question = \"?\"\n[subject]\ncommand = \"x -p {{port}}\"\n[load]\nclients = 1\nstop = \"1s\"\n{lines}\n"
        );
        let study = study::parse(&text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        let options = study::ExpandOptions {
            name: "test".to_owned(),
            seed: 1,
            profile: study::Profile::Default,
            machine_cpus: 2,
            generators_apart: false,
            sets: Vec::new(),
        };
        study::expand(&study, &options).unwrap()
    }

    fn target_of(lines: &str, directory: &Path) -> Result<Target, String> {
        target(&plan(lines).points[0].load, LOOPBACK, direct(7000), directory)
    }

    #[test]
    fn rejects_protocols_the_plan_has_no_requests_for() {
        let here = Path::new(".");
        let address = "127.0.0.1:7000".to_owned();
        assert_eq!(target_of("protocol = \"pingpong\"", here), Ok(Target::Pingpong { address }));
        let mut load = plan("protocol = \"pingpong\"").points[0].load.clone();
        for protocol in Protocol::all().filter(|protocol| *protocol != Protocol::Pingpong) {
            load.protocol = protocol;
            assert_eq!(
                target(&load, LOOPBACK, direct(7000), here),
                Err(format!("the plan has no requests for `{protocol}`"))
            );
        }
    }

    #[test]
    fn adds_a_missing_host_header() {
        let hosts = |lines: &str| match target_of(lines, Path::new(".")).unwrap() {
            Target::Http { requests, .. } => requests[0]
                .headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect::<Vec<_>>()
                .join(", "),
            _ => unreachable!(),
        };
        assert_eq!(hosts("protocol = \"http\""), "Host: 127.0.0.1:7000");
        assert_eq!(
            hosts("protocol = \"http\"\nheaders = { A = \"b\", host = \"example.org\" }"),
            "A: b, host: example.org"
        );
        assert_eq!(hosts("protocol = \"https\""), "Host: localhost:7000");
        assert_eq!(hosts("protocol = \"https\"\nserver_name = \"::1\""), "Host: [::1]:7000");
    }

    #[test]
    fn target_contains_everything_in_the_plan() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("body.bin"), [0u8, 255, 10]).unwrap();
        let lines = "protocol = \"https\"\ninsecure = true\nexpect_status = 200\nexpect_body = \"ok\"\n[[load.request]]\nweight = 3\n\
                     method = \"PUT\"\npath = \"/x?y\"\nbody_file = \"body.bin\"\n[[load.request]]\nbody = \"{}\"";
        let Target::Http { address, requests, tls, expect, .. } = target_of(lines, folder.path()).unwrap() else {
            unreachable!()
        };
        assert_eq!(address, "127.0.0.1:7000");
        let tls_wanted =
            Tls { server_name: "localhost".to_owned(), insecure: true, ca_file: None, client: None, resume: true };
        assert_eq!(tls, Some(tls_wanted));
        assert_eq!(*expect, Expect { status: Some(vec![200]), body: Some(b"ok".to_vec()), ..Expect::default() });
        let host = ("Host".to_owned(), "localhost:7000".to_owned());
        let request = |weight, method: &str, target: &str, body: &[u8]| HttpRequest {
            weight,
            method: method.to_owned(),
            target: target.to_owned(),
            headers: vec![host.clone()],
            body: body.to_vec(),
            name: None,
        };
        assert_eq!(requests, [request(3, "PUT", "/x?y", &[0, 255, 10]), request(1, "GET", "/", b"{}")]);
    }

    #[test]
    fn fills_in_the_ports_of_the_trial() {
        let load = |lines: &str| plan(&format!("journey = \"evernote\"\n{lines}")).points[0].load.clone();
        let asked = |lines: &str, ports: Standing| match target(&load(lines), LOOPBACK, ports, Path::new(".")) {
            Ok(Target::Journey { targets, resolve, .. }) => (targets["user"].clone(), resolve),
            other => panic!("{other:?}"),
        };
        let through = Standing { port: 8000, subject_port: 9000, admin_port: Some(7000) };
        assert_eq!(asked("", through), ("https://127.0.0.1:8000".to_owned(), None));
        let lines =
            "targets = { user = \"https://127.0.0.1:{subject_port}\" }\nresolve = \"http://127.0.0.1:{admin_port}\"";
        let beside = Some("http://127.0.0.1:7000".to_owned());
        assert_eq!(asked(lines, through), ("https://127.0.0.1:9000".to_owned(), beside));
        assert_eq!(asked(lines, direct(9000)), ("https://127.0.0.1:9000".to_owned(), None));
        let fixed = "targets = { user = \"https://localhost:{port}\" }\nresolve = \"http://127.0.0.1:5000\"";
        let asker = Some("http://127.0.0.1:5000".to_owned());
        assert_eq!(asked(fixed, direct(9000)), ("https://localhost:9000".to_owned(), asker));
    }

    #[test]
    fn encodes_grpc_messages_by_their_schema() {
        let folder = tempfile::tempdir().unwrap();
        let schema =
            "syntax = \"proto3\"; package a; message In { string x = 1; } service B { rpc C(In) returns (In); }";
        std::fs::write(folder.path().join("a.proto"), schema).unwrap();
        let lines = |body: &str| {
            format!("protocol = \"http\"\ngrpc = true\nproto = \"a.proto\"\npath = \"/a.B/C\"\nbody = '{body}'")
        };
        let Target::Http { requests, expect, .. } = target_of(&lines("{\"x\": \"y\"}"), folder.path()).unwrap() else {
            unreachable!()
        };
        assert_eq!(requests[0].body, b"\0\0\0\0\x03\x0a\x01y");
        assert!(grpc::Schema::decode(&expect.grpc_schema.unwrap()).unwrap().method("/a.B/C").is_ok());
        let wrong = "message `a.In`: unrecognized field name 'z'";
        assert_eq!(target_of(&lines("{\"z\": 1}"), folder.path()).unwrap_err(), wrong);
        assert_eq!(missing_files(&plan(&lines("{\"z\": 1}")), folder.path()), [wrong]);
    }

    #[test]
    fn reads_a_journey_with_its_schemas() {
        let folder = tempfile::tempdir().unwrap();
        let source = "name = \"own\"\ntargets = { a = \"http://127.0.0.1:1\" }\nschemas = { s = \"s.thrift\" }\n[[step]]\nurl = \"{a}\"\nthrift = \"s S.m\"\n";
        std::fs::write(folder.path().join("own.toml"), source).unwrap();
        let lines = "journey = \"own.toml\"";
        let missing = format!(
            "cannot read `{}`: No such file or directory (os error 2)",
            folder.path().join("s.thrift").display()
        );
        assert_eq!(missing_files(&plan(lines), folder.path()), std::slice::from_ref(&missing));
        assert_eq!(target_of(lines, folder.path()), Err(missing));
        std::fs::write(folder.path().join("s.thrift"), "service S { void m() }").unwrap();
        assert_eq!(missing_files(&plan(lines), folder.path()), Vec::<String>::new());
        let Target::Journey { journeys, targets, .. } = target_of(lines, folder.path()).unwrap() else {
            unreachable!()
        };
        assert_eq!(journeys[0].journey.schemas[0].text, "service S { void m() }");
        assert_eq!(targets["a"], "http://127.0.0.1:7000");
        std::fs::write(folder.path().join("own.toml"), "name = 5").unwrap();
        let told = missing_files(&plan(lines), folder.path());
        assert!(told.len() >= 2 && told.iter().all(|mistake| mistake.starts_with("own.toml:")), "{told:?}");
    }

    #[test]
    fn reports_wrong_values_in_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("body"), "a\nb {{uid}}").unwrap();
        std::fs::write(folder.path().join("users.csv"), "id\n1\n").unwrap();
        let lines = "protocol = \"http\"\n[[load.request]]\nmethod = \"POST\"\nbody_file = \"body\"\n[[load.request]]\n\
                     path = \"/{{csv:users.csv:ids}}\"\n[[load.request]]\npath = \"/{{csv:users.csv:id}}\"";
        let file = folder.path().join("users.csv").display().to_string();
        let expected = [
            format!("request `GET /{{{{csv:users.csv:ids}}}}`: {file}:1:1: no column `ids`; did you mean `id`?"),
            "request `POST /`: body, line 2, column 3: unknown value `{{uid}}`; write {{uuid}}".to_owned(),
        ];
        assert_eq!(missing_files(&plan(lines), folder.path()), expected);
        let Target::Http { directory, .. } = target_of(lines, folder.path()).unwrap() else { unreachable!() };
        assert_eq!(Path::new(&directory), folder.path());
    }

    #[test]
    fn reports_missing_and_oversized_files() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(BODY_MAX_BYTES + 1).unwrap();
        let lines = "protocol = \"https\"\nca_file = \"roots.pem\"\n[[load.request]]\nbody_file = \"gone\"\n[[load.request]]\n\
                     body_file = \"large\"\n[[load.request]]\nbody_file = \"gone\"";
        let at = |file: &str| folder.path().join(file).display().to_string();
        let expected = [
            format!("cannot read the body `{}`: No such file or directory (os error 2)", at("gone")),
            format!("cannot read the body `{}`: more than 16777216 bytes", at("large")),
            format!("cannot read the root certificates `{}`: No such file or directory (os error 2)", at("roots.pem")),
        ];
        assert_eq!(missing_files(&plan(lines), folder.path()), expected);
        assert_eq!(target_of(lines, folder.path()), Err(expected[0].clone()));
        File::create(&large).unwrap().set_len(BODY_MAX_BYTES).unwrap();
        assert_eq!(
            missing_files(&plan("protocol = \"http\"\nbody_file = \"large\""), folder.path()),
            Vec::<String>::new()
        );
    }
}
