//! `quintain load --metrics`, scraped while a real load runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use crate::common::{Folder, Ran, Server, eventually, signal_process};

struct Load {
    child: Child,
    err: BufReader<ChildStderr>,
    address: String,
}

impl Load {
    fn start(folder: &Folder, url: &str, more: &[&str]) -> Self {
        let args =
            [&["load", url, "-d", "60s", "--warmup", "0s", "--json", "--metrics", "127.0.0.1:0"][..], more].concat();
        let mut child = folder.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("metrics: http://").and_then(|rest| rest.strip_suffix("/metrics"));
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        Self { child, err, address }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn with(&self, sample: &str) -> String {
        eventually(sample, || {
            let text = self.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
            (value(&text, sample) > Some(0.0)).then_some(text)
        })
    }

    fn end(mut self) -> Ran {
        signal_process(self.child.id(), "INT");
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.err.read_to_string(&mut err).unwrap();
        Ran { code: self.child.wait().unwrap().code(), out, err }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn value(text: &str, sample: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

/// CPUs on which the thread with this name may run; `None` without such a thread.
fn cpus_of(pid: u32, thread: &str) -> Option<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut tasks = tasks.flatten().map(|task| task.path());
    let task = tasks.find(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == thread))?;
    let status = std::fs::read_to_string(task.join("status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix("Cpus_allowed_list:")?.trim().to_owned()))
}

#[test]
fn scrapes_a_running_load() {
    let server = Server::start(&["http"]);
    let url = format!("http://127.0.0.1:{}/", server.port);
    let folder = Folder::new();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let pinned: &[&str] = if cpus > 1 { &["--cpus", "0", "-c", "3"] } else { &["-c", "3"] };
    let load = Load::start(&folder, &url, pinned);

    let silent = TcpStream::connect(&load.address).unwrap();
    for (request, status) in
        [("\0\0", "400"), ("GET / HTTP/1.1\r\n\r\n", "404"), ("PUT /metrics HTTP/1.1\r\n\r\n", "405")]
    {
        assert_eq!(load.ask(request).split(' ').nth(1), Some(status), "{request}");
    }
    let text = load.with("quintain_load_latency_seconds_count");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
    assert!(body.ends_with("\n# EOF\n"), "{body}");
    let read =
        |sample: &str| value(body, &format!("quintain_load_{sample}")).unwrap_or_else(|| panic!("{sample}: {body}"));
    assert_eq!((read("clients"), read("phase{phase=\"measure\"}"), read("phase{phase=\"warmup\"}")), (3.0, 1.0, 0.0));
    let (requests, count, sum) = (read("requests_total"), read("latency_seconds_count"), read("latency_seconds_sum"));
    assert!(count <= requests && read("elapsed_seconds") > 0.0 && read("recent_rate") > 0.0, "{body}");
    assert_eq!(read("latency_seconds_bucket{le=\"+Inf\"}"), count);
    // Each client waits for its response, so the sum of latencies is at most the time of all clients.
    assert!(sum > 0.0 && sum <= 3.0 * (read("elapsed_seconds") + 0.3), "{body}");
    let buckets = body.lines().filter(|line| line.starts_with("quintain_load_latency_seconds_bucket"));
    let buckets = buckets.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).collect::<Vec<_>>();
    assert!(buckets.len() == 23 && buckets.is_sorted(), "{body}");
    if cpus > 1 {
        let cpus = cpus_of(load.child.id(), "metrics").unwrap();
        assert!(!cpus.split([',', '-']).any(|cpu| cpu == "0"), "the metrics thread avoids the measuring CPU: {cpus}");
    }

    let taken = folder.quintain(&["load", &url, "--metrics", &load.address]).expect(4);
    assert!(
        taken.err.starts_with(&format!("error: cannot serve metrics on {}: Address", load.address)),
        "{}",
        taken.err
    );
    assert!(taken.err.contains("= help: choose another port for `--metrics`, or 0 for a free one"), "{}", taken.err);

    let address = load.address.clone();
    let ran = load.end().expect(130);
    assert!(ran.json()["requests"].as_f64().unwrap() >= requests, "{}", ran.out);
    assert!(TcpStream::connect(address).is_err(), "it ends with the load");
    drop(silent);
}

#[test]
fn errors_are_scraped_by_kind() {
    let server = Server::start(&["http"]);
    let url = format!("http://127.0.0.1:{}/", server.port);
    let folder = Folder::new();
    let load = Load::start(&folder, &url, &["--expect-status", "404", "-q"]);
    let text = load.with("quintain_load_errors_total{kind=\"status\"}");
    assert_eq!(value(&text, "quintain_load_requests_total"), Some(0.0), "{text}");
}

#[test]
fn wrong_addresses_are_reported() {
    let folder = Folder::new();
    for (args, code, words) in [
        (&["--metrics", "localhost"][..], 2, "expected IP:PORT, such as 127.0.0.1:9100"),
        (&["--metrics", "127.0.0.1:70000"], 2, "expected IP:PORT"),
        (&["--metrics", "192.0.2.1:0"], 4, "= help: use an address of this machine"),
        (&["--metrics", "127.0.0.1:0", "--find", "p99<5ms"], 2, "cannot be used with '--find"),
    ] {
        let ran = folder.quintain(&[&["load", "http://127.0.0.1:1/"][..], args].concat()).expect(code);
        assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
    }
}
