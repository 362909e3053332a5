//! The walkthrough of `examples/calculator`, AT-0 to AT-7, on real processes with free ports.
#![expect(clippy::disallowed_methods, reason = "these tests start programs as a reader of the walkthrough does")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{Folder, eventually};

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(path)
}

/// Path of the example program, which `cargo test` builds next to the binary.
fn calculator() -> PathBuf {
    let exe = Path::new(crate::common::QUINTAIN).parent().unwrap().join("examples/calculator");
    assert!(exe.exists(), "{} is built by `cargo test` without `--test`", exe.display());
    exe
}

/// A process that has printed its readiness. Dropping it ends the process.
struct Process(Child);

impl Process {
    fn start(mut command: Command, says: fn(&mut Child) -> Box<dyn BufRead + Send>) -> Self {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let mut from = says(&mut child);
        let mut line = String::new();
        while !line.starts_with("ready") {
            line.clear();
            assert!(from.read_line(&mut line).unwrap() > 0, "{command:?} is not ready");
        }
        // Draining its output keeps the process from blocking.
        std::thread::spawn(move || std::io::copy(&mut from, &mut std::io::sink()));
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGTERM lets adapters write their pending reports.
        crate::common::signal_process(self.0.id(), "TERM");
        let _ = self.0.wait();
    }
}

/// Processes of one test, with their own ports. The last one started ends first.
struct World {
    folder: Folder,
    ports: Vec<(&'static str, u16)>,
    running: Vec<Process>,
}

/// Finds a free port below the ephemeral range, so that the kernel gives it to no other process.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id().wrapping_mul(131);
    let candidates = std::iter::repeat_with(|| own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)));
    let mut ports = candidates.map(|number| 10_000 + (number % 22_000) as u16);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

const PORTS: [&str; 7] = ["7999", "8000", "8001", "18000", "18001", "9090", "9091"];

impl World {
    fn new() -> Self {
        let ports = PORTS.map(|port| (port, free_port())).to_vec();
        let folder = Folder::new();
        for file in ["calculator.thrift", "plain.contract", "indexed.contract"] {
            std::fs::copy(example("calculator").join(file), folder.path().join(file)).unwrap();
        }
        Self { folder, ports, running: Vec::new() }
    }

    fn port(&self, of: &str) -> u16 {
        self.ports.iter().find(|(port, _)| *port == of).unwrap().1
    }

    fn at(&self, port: &str) -> String {
        format!("127.0.0.1:{}", self.port(port))
    }

    /// Starts an adapter of the example, which writes reports to a file with the adapter's name.
    fn adapter(&mut self, name: &str, contract: &str) {
        let mut text = std::fs::read_to_string(example("calculator").join(format!("{name}.toml"))).unwrap();
        text = text.replace("plain.contract", &format!("{contract}.contract"));
        for (port, other) in &self.ports {
            text = text.replace(&format!("127.0.0.1:{port}\""), &format!("127.0.0.1:{other}\""));
        }
        let config = format!("{name}.toml");
        self.folder.write(&config, &text);
        let mut command = self.folder.command(&["adapter", &config]);
        let reports = std::fs::File::create(self.folder.path().join(name)).unwrap();
        command.stdout(reports).stderr(Stdio::piped());
        self.running.push(Process::start(command, |child| Box::new(BufReader::new(child.stderr.take().unwrap()))));
    }

    fn program(&self, args: &[&str], adapter: Option<&str>) -> Command {
        let mut command = Command::new(calculator());
        command.args(args).env_remove("ADAPTER");
        if let Some(port) = adapter {
            command.env("ADAPTER", self.at(port));
        }
        command
    }

    fn service(&mut self, args: &[&str], adapter: Option<&str>) {
        let mut command = self.program(args, adapter);
        command.stdout(Stdio::piped());
        self.running.push(Process::start(command, |child| Box::new(BufReader::new(child.stdout.take().unwrap()))));
    }

    fn full(contract: &str, off_by: &str) -> Self {
        let mut world = Self::new();
        world.service(&["discovery", &world.port("7999").to_string()], None);
        world.adapter("discovery", contract);
        world.adapter("adder", contract);
        world.service(&["adder", &world.port("8001").to_string(), &world.at("8000"), off_by], Some("9091"));
        world.adapter("client", contract);
        world
    }

    fn client(&self, a: &str, b: &str, adapter: Option<&str>) -> String {
        let Output { status, stdout, .. } =
            self.program(&["client", &self.at("8000"), a, b], adapter).output().unwrap();
        let said = String::from_utf8(stdout).unwrap();
        assert!(status.success(), "{said}");
        said.trim().to_owned()
    }

    fn reports(&self, name: &str, count: usize) -> String {
        eventually("reports", || {
            let told = std::fs::read_to_string(self.folder.path().join(name)).unwrap();
            (told.matches("[Whip] Contract Failure").count() >= count).then_some(told)
        })
    }

    fn end(mut self, names: &[&str]) -> Vec<String> {
        while let Some(last) = self.running.pop() {
            drop(last);
        }
        names.iter().map(|name| std::fs::read_to_string(self.folder.path().join(name)).unwrap()).collect()
    }
}

#[test]
fn objectives_1_to_3_one_adapter_and_an_unconfigured_service() {
    let mut world = World::new();
    world.service(&["discovery", &world.port("8000").to_string()], None);
    world.service(&["adder", &world.port("8001").to_string(), &world.at("8000")], None);
    // AT-0 and AT-1: the result is the same with and without an adapter.
    assert_eq!(world.client("2", "2", None), "2 + 2 = 3");
    world.adapter("client-alone", "plain");
    assert_eq!(world.client("2", "2", Some("9090")), "2 + 2 = 3");
    // AT-2 and AT-3: the adapter writes the expected report.
    let expect = format!(
        "[Whip] Contract Failure: Failed postcondition result == a + b\n\
         \t Occurring at: service Adder with default index at {} vouched for by unknown\n\
         \t Variables: \n\t   - a = 2\n\t   - b = 2\n\t   - result = 3\n\n",
        world.at("8001")
    );
    world.reports("client-alone", 1);
    assert_eq!(world.end(&["client-alone"]), [expect]);
}

#[test]
fn objective_4_with_adapters_everywhere_the_blame_is_exact() {
    let world = World::full("plain", "-1");
    // AT-4: the report names the service that vouched for the endpoint.
    assert_eq!(world.client("2", "2", Some("9090")), "2 + 2 = 3");
    let told = world.reports("client", 1);
    assert!(told.contains(&format!("at {} vouched for by adder\n", world.at("8001"))), "{told}");
    // AT-6: the adapter of the adder blames the client for a failed precondition.
    assert_eq!(world.client("0", "0", Some("9090")), "0 + 0 = -1");
    world.reports("adder", 1);
    let [client, adder, discovery] = world.end(&["client", "adder", "discovery"]).try_into().unwrap();
    assert!(adder.contains("Failed precondition for RPC add (a > 0 && b > 0)"), "{adder}");
    assert!(adder.contains("Blaming: client (precondition failure)"), "{adder}");
    // Repeated violations of one postcondition at one endpoint are reported once per period and counted at the end.
    assert_eq!(client.matches("Contract Failure").count(), 1, "{client}");
    assert!(client.contains("Suppressed as repeats or by the rate limit: 1\n"), "{client}");
    assert_eq!(discovery, "");
}

#[test]
fn objective_5_an_index_distinguishes_services() {
    let world = World::full("indexed", "-1");
    assert_eq!(world.client("1", "1", Some("9090")), "1 + 1 = 1");
    assert_eq!(world.client("2", "2", Some("9090")), "2 + 2 = 3");
    let at = world.at("8001");
    let told = world.reports("client", 2);
    for (index, who) in [(1, "adder"), (2, "client")] {
        let says = format!("service Adder with index {index} at {at} vouched for by {who}\n");
        assert!(told.contains(&says), "{told}");
    }
}

#[test]
fn fixed_adder_causes_no_report() {
    let world = World::full("plain", "0");
    assert_eq!(world.client("2", "2", Some("9090")), "2 + 2 = 4");
    assert_eq!(world.end(&["client", "adder", "discovery"]), ["", "", ""]);
}

#[test]
fn examples_are_valid_and_match_the_crates() {
    let folder = Folder::new();
    for config in ["client.toml", "client-alone.toml", "adder.toml", "discovery.toml"] {
        let path = example("calculator").join(config).display().to_string();
        folder.quintain(&["adapter", &path, "--check"]).expect(0);
    }
    folder.quintain(&["adapter", &example("airline/adapter.toml").display().to_string(), "--check"]).expect(0);
    folder.quintain(&["contract", "check", &example("airline/airline.contract").display().to_string()]).expect(0);
    for (copy, of) in [
        ("calculator/calculator.thrift", "codecs/schemas/calculator.thrift"),
        ("calculator/plain.contract", "contract/contracts/calculator-plain.contract"),
        ("calculator/indexed.contract", "contract/contracts/calculator-indexed.contract"),
        ("airline/airline.contract", "contract/contracts/airline.contract"),
        ("airline/airline.wsdl", "codecs/schemas/airline.wsdl"),
    ] {
        let of = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts").join(of);
        let (copy, of) = (std::fs::read(example(copy)).unwrap(), std::fs::read(of).unwrap());
        assert!(copy == of, "a copy differs from the file the crates' tests use");
    }
}
