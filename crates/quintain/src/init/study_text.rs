//! Writes the text of a new study, with comments for first-time users.

use std::path::Path;

use study::shell_words;
use study::spec::Protocol;

use super::Draft;
use crate::cli::{HttpArgs, InitKind};

pub(super) fn of(draft: &Draft, runnable: &str) -> String {
    [head(draft, runnable), subject(draft), load(draft), rest(draft)].concat()
}

/// Formats a string for TOML, which accepts all escapes of JSON.
fn text(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

fn program(command: &str) -> String {
    let words = shell_words::split(command).unwrap_or_default();
    let is_script = |word: &&String| !word.starts_with('-') && Path::new(word).extension().is_some();
    let script = words.get(1).filter(is_script).filter(|_| !words[0].contains('/'));
    let named = script.or(words.first()).map(Path::new).and_then(Path::file_name);
    named.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Name of a proxy in the study: the name of its program, reduced to characters that are valid in a key.
fn proxy_name(draft: &Draft) -> String {
    let name = program(&draft.proxy);
    let name = name.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '-' });
    let name = name.collect::<String>().trim_matches('-').to_lowercase();
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic()) && name != "direct";
    if is_name { name } else { "proxy".to_owned() }
}

fn head(draft: &Draft, runnable: &str) -> String {
    let (server, proxy) = (program(&draft.command), proxy_name(draft));
    let (about, question, answer) = match draft.kind {
        InitKind::One => (
            "One server, by itself: throughput and latency at several numbers of clients, a fresh process for every trial.",
            format!("How fast is {server}, and how does it scale with clients?"),
            "asks = \"growth\"\nof = \"clients\"",
        ),
        InitKind::Versions => (
            "Two versions of a server, compared block by block: in each block both run once, in random order, each as a fresh process.",
            "Which version is faster, base or head?".to_owned(),
            "asks = \"best\"\nof = \"version\"",
        ),
        InitKind::Proxy => (
            "The same requests straight to a server and through a proxy: in each block both routes are measured once, in random order.",
            format!("What does {proxy} add to each request, and what does it use?"),
            "asks = \"added\"",
        ),
        InitKind::Cache => (
            "A cache under a realistic workload: throughput, latency, and the hit ratio with the causes of misses.",
            format!("How fast is {server}, and how often does it hit?"),
            "asks = \"values\"",
        ),
        InitKind::Capacity => (
            "The highest rate of requests that keeps an objective, as a range between a rate that holds and one that fails.",
            format!("How much load can {server} take?"),
            "asks = \"capacity\"",
        ),
    };
    let (question, pad) = (text(&question), " ".repeat(runnable.len() + 6));
    format!(
        "# {about}\n#\n#   quintain check {runnable}          the plan, and how long it takes\n#   quintain run {runnable} --quick    a first look; claims no \
         level of confidence\n#   quintain run {runnable}            the answer\n#   quintain help study{pad}every key\n#\n# \
         Commands start in the directory of this file (of a directory `studies`, in the one above).\n\nquestion = {question}\n\n\
         [answer]\n{answer}\n"
    )
}

fn subject(draft: &Draft) -> String {
    let mut out = String::from("\n[subject]\n# build = \"make\"   # run once before the first trial\n");
    out += &format!("command = {} # {{port}}: a free port for every trial\n", text(&draft.command));
    if let Some(port) = draft.port {
        out += &format!("port = {port} # fixed: nothing else may listen there\n");
    }
    out += "cpus = 1 # of the server; the generator has the others\n";
    match draft.kind {
        InitKind::Versions => {
            out += "\n# The differences of the other version.\n[subject.variants.head]\n";
            out += &format!("command = {}\n", text(&draft.head));
        }
        InitKind::Proxy => {
            let (name, command) = (proxy_name(draft), text(&draft.proxy));
            out +=
                &format!("\n[proxy.{name}]\ncommand = {command} # {{next_port}}: the port of the server behind it\n");
            out += "# cpus = 1   # of its own; without, it shares the CPUs of the server\n";
        }
        InitKind::One | InitKind::Cache | InitKind::Capacity => {}
    }
    out
}

fn load(draft: &Draft) -> String {
    let mut out = format!("\n[load]\nprotocol = {}\n", text(draft.protocol.name()));
    if matches!(draft.protocol, Protocol::Http | Protocol::Https) {
        out += &format!("path = {}\n{}", text(&draft.path), request(&draft.request));
    }
    if draft.protocol == Protocol::Https {
        out += "insecure = true # any certificate will do; `ca_file` names those to trust\n";
    }
    if draft.share_cpus {
        out += "share_cpus = true # this machine has one CPU, for server and generator\n";
    }
    let is_cache = matches!(draft.protocol, Protocol::Cache(_));
    let warmup = match is_cache {
        true => "warmup = { steady = \"10s\" } # until the hit ratio is steady, at most this long\n",
        false => "warmup = \"500ms\"\n",
    };
    if draft.kind == InitKind::Capacity {
        out += "clients = 64 # connections; requests are sent on schedule, whether or not responses arrive\n";
        let objective = text(&draft.objective);
        out += &format!("search = {{ objective = {objective}, resolution = 0.1, max_time = \"4m\" }}\n");
        out += &format!("{warmup}stop = \"1s\" # of each trial of the search\n");
    } else {
        out += "clients = \"{clients}\" # connections; each sends its next request after the response\n";
        out += &format!("{warmup}stop = \"1s\" # of each trial\n");
    }
    if is_cache {
        out += "\n# `quintain workload show --preset etc-2012` prints its operations.\n[load.workload]\npreset = \"etc-2012\"\n";
    }
    out
}

fn request(args: &HttpArgs) -> String {
    let method = args.method.as_deref().or(args.body.as_ref().map(|_| "POST"));
    let keys = [("method", method), ("body", args.body.as_deref()), ("expect_status", args.expect_status.as_deref())];
    let keys = keys.into_iter().filter_map(|(key, value)| Some(format!("{key} = {}\n", text(value?))));
    // Earlier checks ensure that every header has a colon.
    let headers = args.headers.iter().filter_map(|header| header.split_once(':'));
    let headers = headers.map(|(name, value)| format!("{} = {}", text(name.trim()), text(value.trim())));
    let headers = headers.collect::<Vec<_>>().join(", ");
    let headers = if headers.is_empty() { headers } else { format!("headers = {{ {headers} }}\n") };
    let body = match &args.expect_body {
        Some(body) => format!("expect_body = {}\n", text(body)),
        None => "# expect_body = \"ok\"   # any other body is then an error\n".to_owned(),
    };
    keys.collect::<String>() + &headers + &body
}

fn rest(draft: &Draft) -> String {
    let stop = |rule: &str| format!("\n[trials]\nstop = {{ {rule}, max_time = \"4m\" }}\n");
    let quick = |clients: &str| {
        format!("\n# A quick run.\n[quick.factors]\nclients = [{clients}]\n\n[quick.load]\nstop = \"500ms\"\n")
    };
    let figure =
        |kind: &str, title: &str, keys: &str| format!("\n[[figure]]\nkind = \"{kind}\"\ntitle = \"{title}\"\n{keys}");
    match draft.kind {
        InitKind::One => [
            "\n[factors]\nclients = [1, 8, 64]\n".to_owned(),
            stop("metric = \"throughput\", relative = 0.03"),
            figure("line", "Throughput over clients", "x = \"clients\"\ny = \"throughput\"\n"),
            figure("line", "Latency over clients", "x = \"clients\"\ny = [\"latency_p50\", \"latency_p99\"]\n"),
            quick("1, 64"),
        ]
        .concat(),
        InitKind::Versions => [
            "\n[factors]\nversion = [\"base\", \"head\"]\nclients = [64]\n".to_owned(),
            stop("metric = \"throughput\", comparison = 0.03"),
            figure("scatter", "Throughput, every trial", "x = \"version\"\ny = \"throughput\"\n"),
            figure("quantiles", "Latency by quantile", "series = \"version\"\n"),
            quick("64"),
        ]
        .concat(),
        InitKind::Proxy => [
            format!("\n[factors]\nthrough = [\"direct\", {}]\nclients = [16]\n", text(&proxy_name(draft))),
            stop("metric = \"latency_p50\", min = 12"),
            "\n[effects]\nmetrics = [] # each route is compared with direct, block by block\n".to_owned(),
            figure("added", "Added latency", "y = [\"latency_p50\", \"latency_p99\"]\n"),
            quick("16"),
        ]
        .concat(),
        InitKind::Cache => [
            "\n[factors]\nclients = [50]\n".to_owned(),
            stop("metric = \"throughput\", relative = 0.03"),
            "\n[[table]]\ntitle = \"Speed and hits\"\nmetrics = [\"throughput\", \"latency_p50\", \"latency_p99\", \"hit_ratio\"]\n".to_owned(),
            figure("scatter", "Hits over GETs, every trial", "x = \"clients\"\ny = \"hit_ratio\"\n"),
            quick("50"),
        ]
        .concat(),
        InitKind::Capacity => "\n# A quick run.\n[quick.load]\nstop = \"500ms\"\n".to_owned(),
    }
}
