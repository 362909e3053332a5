//! Suggests the command that compares both sides in one run, because stored runs cannot give a verdict.

use std::fmt::Display;

use study::Plan;
use study::plan::{BodyPlan, HttpPlan, LoadPlan, Point, ProcessPlan};
use study::record::Run;
use study::shell_words::join;
use study::spec::{Arrivals, Backend, Connection, Http2Settings, Stop, ThinkTime, Warmup};
use study::{time_law, time_text};

use crate::enum_words_and_lists::serde_name;

const DIRTY: &str = "-dirty";

pub(crate) struct Suggestion {
    pub(crate) command: Option<String>,
    pub(crate) note: String,
}

impl Suggestion {
    pub(crate) fn none(note: impl Into<String>) -> Self {
        Suggestion { command: None, note: note.into() }
    }
}

pub(crate) fn revision(run: &Run) -> Option<&str> {
    run.commit.as_deref().or(run.revision.as_deref())
}

/// First 12 characters of the revision of a server built in a worktree; `None` for other servers.
pub(crate) fn revision_of(point: &Point) -> Option<&str> {
    point.subject.revision.as_deref().map(|commit| commit.get(..12).unwrap_or(commit))
}

/// The design point without its server's worktree, which differs between runs.
pub(crate) fn without_worktree(point: &Point) -> Point {
    let mut point = point.clone();
    if point.subject.revision.take().is_some() {
        point.subject.process.directory = None;
    }
    point
}

pub(crate) fn revisions(point: &Point, base: &str, head: &str) -> Suggestion {
    let point = &without_worktree(point);
    let clean = |revision: &str| revision.strip_suffix(DIRTY).unwrap_or(revision).to_owned();
    let mut words = ["--base-rev".to_owned(), clean(base), "--head-rev".to_owned(), clean(head)].to_vec();
    if let Some(build) = point.subject.process.build.as_ref().filter(|build| !build.trim().is_empty()) {
        words.extend(["--build".to_owned(), build.clone()]);
    }
    words.extend(["--command".to_owned(), command(point)]);
    let dirty = [base, head].into_iter().filter(|revision| revision.ends_with(DIRTY)).map(clean).collect::<Vec<_>>();
    let changes = format!("uncommitted changes at {} are in no commit", dirty.join(" and "));
    match dirty.is_empty() {
        false if clean(base) == clean(head) => Suggestion::none(format!("{changes}: commit them to compare")),
        false => with_load(words, point, changes),
        true => with_load(words, point, String::new()),
    }
}

pub(crate) fn commands(base: &Point, head: &Point) -> Suggestion {
    let words = ["--base".to_owned(), command(base), "--head".to_owned(), command(head)];
    with_load(words.to_vec(), base, "build both first".to_owned())
}

pub(crate) fn points(plan: &Plan, base: &Point, head: &Point) -> Suggestion {
    let differing = base.factors.iter().filter(|(name, level)| head.factors.get(*name) != Some(level));
    let differing = differing.map(|(name, _)| name).collect::<Vec<_>>();
    let levels = |point: &Point| {
        let named = differing.iter().filter_map(|name| Some(format!("{name}={}", point.factors.get(*name)?)));
        named.collect::<Vec<_>>().join(",")
    };
    let words = ["quintain", "compare", &plan.study].map(str::to_owned).into_iter().chain([levels(base), levels(head)]);
    // A level set with `--set` is missing from the study, so the command repeats it.
    let sets = differing.iter().filter_map(|name| {
        let [base, head] = [base, head].map(|point| point.factors.get(*name));
        let (base, head) = base.zip(head)?;
        let both = || ["--set".to_owned(), format!("{name}={base},{head}")];
        (!plan.levels(name).contains(&head)).then(both)
    });
    let words = words.chain(sets.flatten());
    Suggestion { command: Some(join(&words.collect::<Vec<_>>())), note: String::new() }
}

fn with_load(words: Vec<String>, point: &Point, note: String) -> Suggestion {
    if let Some(folder) = &point.subject.process.directory {
        return Suggestion::none(format!("the server runs in `{folder}`, for which `quintain compare` has no flag"));
    }
    if point.subject.process.container.is_some() {
        return Suggestion::none("the server is a container: write a study with both images, and a `[gate]`");
    }
    let cpus = Some(point.subject.cpus).filter(|cpus| *cpus != 1).and_then(|cpus| flag("--server-cpus", cpus));
    let words = words.into_iter().chain(cpus.into_iter().flatten());
    match load(point) {
        Err(why) => Suggestion::none(format!("the load has no flags: {why}")),
        Ok(load) => {
            let all = ["quintain".to_owned(), "compare".to_owned()].into_iter().chain(words).chain(load);
            Suggestion { command: Some(join(&all.collect::<Vec<_>>())), note }
        }
    }
}

fn command(point: &Point) -> String {
    let ProcessPlan { command, environment, .. } = &point.subject.process;
    let set = environment.iter().map(|(name, value)| join(&[format!("{name}={value}")]));
    let set = set.collect::<Vec<_>>().join(" ");
    if set.is_empty() { command.clone() } else { format!("env {set} {command}") }
}

/// Returns the flags and URL of `quintain load` for the load of a point, or why it cannot run that load.
fn load(point: &Point) -> Result<Vec<String>, &'static str> {
    let LoadPlan { protocol, http, workload, journey, search, share, shape, .. } = &point.load;
    match () {
        () if !point.proxies.is_empty() => return Err("it passes proxies"),
        () if journey.is_some() => return Err("it is a journey"),
        () if workload.is_some() => return Err("it is a workload of the study"),
        () if search.is_some() || share.is_some() => return Err("its rate is searched for"),
        () if !shape.is_empty() => return Err("it changes over time"),
        () => {}
    }
    let load = &point.load;
    let flags = [
        flag("-c", load.clients),
        load.threads.filter(|threads| *threads > 1).and_then(|threads| flag("-t", threads)),
        load.arrivals.offered_per_s().and_then(|rate_per_s| flag("--rate", rate_per_s)),
        match load.arrivals {
            Arrivals::Closed { think: ThinkTime::NONE } | Arrivals::Poisson { .. } => None,
            Arrivals::Closed { think: ThinkTime::Constant(ns) } => set("think", time_text(ns)),
            Arrivals::Closed { think: ThinkTime::Random(law) } => set("think", time_law::text(&law)),
            Arrivals::Constant { .. } => set("arrivals", "constant"),
            Arrivals::Recorded => return Err("it is a trace"),
        },
        match load.stop {
            Stop::Duration { duration_ns } => flag("-d", time_text(duration_ns)),
            Stop::Requests { requests, .. } => set("stop.requests", requests),
            Stop::Interval { relative, .. } => set("stop.relative", relative),
            Stop::Volley { .. } => flag("-d", "1s"),
        },
        match load.warmup {
            Warmup::DurationNs(ns) => flag("--warmup", time_text(ns)),
            Warmup::Steady { .. } => flag("--warmup", "steady"),
            Warmup::Requests(requests) => set("warmup.requests", requests),
        },
        match (load.pipeline, http.as_ref().is_some_and(|http| http.http2)) {
            (1, _) => None,
            (depth, false) => flag("--pipeline", depth),
            (depth, true) => set("streams", depth),
        },
        match http.as_ref().map(|http| (http.http2, http.expect.grpc)) {
            Some((_, true)) => set("grpc", "true"),
            Some((true, _)) => set("http", "2"),
            _ => None,
        },
        http.as_ref().map(|http| of_http2(&http.http2_settings)),
        match load.connection {
            Connection::KeepAlive => None,
            Connection::PerRequest => Some(vec!["--no-keepalive".to_owned()]),
            Connection::Requests(requests) => set("requests_per_connection", requests),
        },
        Some(load.backend).filter(|own| *own != Backend::Auto).and_then(|own| set("backend", serde_name(own))),
        match http {
            Some(http) => Some(of_http(http)?),
            None if protocol.scheme().is_empty() => return Err("its protocol has no URL"),
            None => Some(vec![format!("{}://", protocol.scheme())]),
        },
    ];
    Ok(flags.into_iter().flatten().flatten().collect())
}

fn flag(name: &str, value: impl Display) -> Option<Vec<String>> {
    Some(vec![name.to_owned(), value.to_string()])
}

fn set(key: &str, value: impl Display) -> Option<Vec<String>> {
    flag("--set", format!("load.{key}={value}"))
}

fn of_http2(own: &Http2Settings) -> Vec<String> {
    let default = Http2Settings::default();
    let all = [
        ("stream_window", own.stream_window_bytes, default.stream_window_bytes),
        ("connection_window", own.connection_window_bytes, default.connection_window_bytes),
        ("header_table", own.header_table_bytes, default.header_table_bytes),
    ];
    let changed = all.into_iter().filter(|(_, own, default)| own != default);
    changed.filter_map(|(key, own, _)| set(key, own)).flatten().collect()
}

fn of_http(http: &HttpPlan) -> Result<Vec<String>, &'static str> {
    let [request] = http.requests.as_slice() else { return Err("it is a mix of requests") };
    // `--body` implies POST. A body from a file is given with `--set`, which implies no method.
    let implied = if matches!(request.body, Some(BodyPlan::Text(_))) { "POST" } else { "GET" };
    let mut flags = vec![Some(&request.method).filter(|method| *method != implied).and_then(|it| flag("-X", it))];
    flags.extend(request.headers.iter().map(|(name, value)| flag("-H", format!("{name}: {value}"))));
    flags.push(request.body.as_ref().and_then(|body| match body {
        BodyPlan::Text(text) => flag("--body", text),
        BodyPlan::File(file) => set("body_file", file),
    }));
    if let Some(status) = &http.expect.status {
        flags.push(flag("--expect-status", status.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")));
    }
    if let Some(body) = &http.expect.body {
        flags.push(set("expect_body", std::str::from_utf8(body).map_err(|_| "the expected body is not text")?));
    }
    if let Some(tls) = &http.tls {
        flags.extend([
            tls.ca_file.as_ref().and_then(|file| set("ca_file", file)),
            tls.client.as_ref().and_then(|client| set("cert_file", &client.cert_file)),
            tls.client.as_ref().and_then(|client| set("key_file", &client.key_file)),
            tls.insecure.then(|| vec!["--insecure".to_owned()]),
            if tls.resume { None } else { set("resume", false) },
        ]);
    }
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", if request.path == "/" { "" } else { &request.path });
    Ok(flags.into_iter().flatten().flatten().chain([url]).collect())
}

#[cfg(test)]
mod tests {
    use study::spec::Protocol;

    use super::*;
    use crate::example;

    fn point(edit: impl FnOnce(&mut Point)) -> Point {
        let mut point = example::volley().0.plan.points[0].clone();
        edit(&mut point);
        point
    }

    #[test]
    fn compares_two_revisions() {
        let check = |point: Point, base: &str, head: &str, command: Option<&str>, note: &str| {
            let found = revisions(&point, base, head);
            assert_eq!((found.command.as_deref(), found.note.as_str()), (command, note));
        };
        let plain = "quintain compare --base-rev abc --head-rev def --build 'make -C subjects/c-epoll c-epoll' --command \
                     'subjects/c-epoll/c-epoll -p {port}' -c 40 -d 250ms --warmup 300ms pingpong://";
        check(point(|_| ()), "abc", "def", Some(plain), "");
        check(point(|_| ()), "abc-dirty", "def", Some(plain), "uncommitted changes at abc are in no commit");
        check(
            point(|_| ()),
            "abc",
            "abc-dirty",
            None,
            "uncommitted changes at abc are in no commit: commit them to compare",
        );
        let journey = point(|point| point.load.journey = Some(Default::default()));
        check(journey, "abc", "def", None, "the load has no flags: it is a journey");
    }

    #[test]
    fn loads_are_flags() {
        let flags = |edit: fn(&mut Point)| load(&point(edit)).map(|words| join(&words));
        let open = |point: &mut Point| {
            point.load.arrivals = Arrivals::Constant { rate_per_s: 5000.0 };
            (point.load.threads, point.load.stop) = (Some(2), Stop::Requests { requests: 900, max_ns: 1 });
        };
        assert_eq!(
            flags(open).unwrap(),
            "-c 40 -t 2 --rate 5000 --set load.arrivals=constant --set load.stop.requests=900 --warmup 300ms pingpong://"
        );
        let thinking = |point: &mut Point| {
            point.load.arrivals = Arrivals::closed(1_500_000);
            (point.load.pipeline, point.load.backend) = (4, Backend::Epoll);
        };
        assert_eq!(
            flags(thinking).unwrap(),
            "-c 40 --set load.think=1.5ms -d 250ms --warmup 300ms --pipeline 4 --set load.backend=epoll pingpong://"
        );
        let random = |point: &mut Point| {
            let law = stats::Distribution::Uniform { low: 1e9, high: 2.5e9 };
            point.load.arrivals = Arrivals::Closed { think: ThinkTime::Random(law) };
        };
        assert!(flags(random).unwrap().contains(" --set load.think=uniform:1s,2.5s "));
        let http = |point: &mut Point| {
            point.load.protocol = Protocol::Http;
            let request = study::plan::HttpRequestPlan {
                weight: 1,
                method: "POST".to_owned(),
                path: "/a?b=1".to_owned(),
                headers: vec![("X-It".to_owned(), "is".to_owned())],
                body: Some(BodyPlan::Text("{}".to_owned())),
                name: None,
            };
            let expect = study::spec::Expect { status: Some(vec![200, 201]), ..Default::default() };
            point.load.http = Some(HttpPlan {
                requests: vec![request],
                tls: None,
                http2: true,
                http2_settings: Http2Settings { header_table_bytes: 0, ..Http2Settings::default() },
                expect,
                proto: None,
                in_turn: false,
                values: [].into(),
            });
        };
        assert_eq!(
            flags(http).unwrap(),
            "-c 40 -d 250ms --warmup 300ms --set load.http=2 --set load.header_table=0 -H 'X-It: is' --body '{}' --expect-status 200,201 'http:///a?b=1'"
        );
        let counted = |point: &mut Point| {
            (point.load.warmup, point.load.connection) = (Warmup::Requests(5), Connection::PerRequest);
        };
        assert_eq!(flags(counted).unwrap(), "-c 40 -d 250ms --set load.warmup.requests=5 --no-keepalive pingpong://");
    }

    #[test]
    fn compares_two_points_of_a_study() {
        let plan = example::volley().0.plan;
        let points = &plan.points;
        let found = super::points(&plan, &points[0], &points[4]);
        assert_eq!(found.command.as_deref(), Some("quintain compare volley server=c-epoll server=go"));
        let found = super::points(&plan, &points[0], &points[5]);
        assert_eq!(
            found.command.as_deref(),
            Some("quintain compare volley clients=40,server=c-epoll clients=80,server=go")
        );
        let mut other = points[0].clone();
        other.factors.insert("clients".to_owned(), study::Level::Integer(7));
        let found = super::points(&plan, &points[0], &other);
        assert_eq!(found.command.as_deref(), Some("quintain compare volley clients=40 clients=7 --set clients=40,7"));
    }

    #[test]
    fn command_includes_the_environment() {
        let set =
            point(|point| drop(point.subject.process.environment.insert("GOMAXPROCS".to_owned(), "1 2".to_owned())));
        assert_eq!(command(&set), "env 'GOMAXPROCS=1 2' subjects/c-epoll/c-epoll -p {port}");
    }
}
