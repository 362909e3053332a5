//! `quintain run` on a cluster of nodes that are all on this machine: connections, and the loss of a node.

use std::process::Stdio;

use crate::common::scripted_http_servers::{Does, OK, Scripted};
use crate::common::{Folder, QUINTAIN, Ran, Server, eventually, processes_with, signal_process};
use serde_json::Value;

const HOSTS: &str = "--hosts=subject=local,load=local,local,local";

/// Study with one design point. quintain replaces `{address}` with the machine's address.
fn study(stop: &str, trials: u32) -> String {
    format!(
        r#"
question = "Does it run on several machines?"
[subject]
command = "quintain serve pingpong --host {{address}} -p {{port}}"
[load]
protocol = "pingpong"
clients = 7
threads = 1
warmup = "50ms"
stop = "{stop}"
window = "10ms"
[trials]
stop = {{ min = {trials} }}
"#
    )
}

fn records(folder: &Folder) -> Vec<Value> {
    let ran = folder.quintain(&["report", "-f", "records"]).expect(0);
    ran.json()["records"].as_array().unwrap().clone()
}

fn sum<'a>(values: impl IntoIterator<Item = &'a Value>, of: impl Fn(&Value) -> &Value) -> u64 {
    values.into_iter().map(|value| of(value).as_u64().unwrap()).sum()
}

fn nodes(folder: &Folder) -> Vec<u32> {
    let directory = folder.path().canonicalize().unwrap();
    let mark = format!("node --directory {}", directory.display());
    // Before the shell that starts a node calls exec, its own command line contains the node's command.
    let all = processes_with(&mark).into_iter().filter(|(_, line)| !line.contains(" exec "));
    all.map(|(pid, _)| pid).collect()
}

#[test]
#[ignore = "slow: several runs"]
fn merges_the_load_of_several_generators() {
    let folder = Folder::new();
    folder.write("mini.toml", &study("300ms", 2));
    let ran = folder.quintain(&["run", "mini.toml", HOSTS, "--json"]).expect(0);
    assert!(ran.err.contains("cluster: subject local-subject ("), "{}", ran.err);
    let run = &ran.json()["run"];
    let names = run["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(names, ["local-subject", "local-load", "local-load2", "local-load3"]);
    for node in &run["nodes"].as_array().unwrap()[1..] {
        assert!(node["link"]["receive_bytes_per_s"].as_f64().unwrap() > 1e6, "{node}");
        assert!(node["link"]["round_trip_ns_p50"].as_f64().unwrap() > 100.0, "{node}");
    }
    let all = records(&folder);
    assert_eq!(all.len(), 2);
    for record in &all {
        let whole = &record["outcome"]["measured"];
        let agents = record["agents"].as_array().unwrap_or_else(|| panic!("{}", record["outcome"]));
        assert_eq!(agents.len(), 3, "{record}");
        let part = |name: &'static str| sum(agents, |agent| &agent["measurement"][name]);
        for name in ["requests", "clients", "threads", "sent_bytes", "received_bytes", "process_cpu_ns"] {
            assert_eq!(whole[name].as_u64(), Some(part(name)), "{name}");
        }
        assert_eq!(
            agents.iter().map(|agent| agent["measurement"]["clients"].as_u64().unwrap()).collect::<Vec<_>>(),
            [3, 2, 2]
        );
        assert_eq!(sum(whole["windows"].as_array().unwrap(), |window| &window["requests"]), part("requests"));
        assert_eq!(whole["service"]["count"].as_u64(), Some(part("requests")));
        assert_eq!(whole["workers"].as_array().unwrap().len(), 3);
        let began = agents.iter().map(|agent| agent["measurement"]["began_ns"].as_i64().unwrap()).collect::<Vec<_>>();
        let doubt: i64 = agents.iter().map(|agent| agent["clock"]["error_ns"].as_i64().unwrap()).sum();
        let apart = began.iter().max().unwrap() - began.iter().min().unwrap();
        assert!(apart <= 2, "{began:?}: translated back with the offset it was announced with");
        // All nodes share one clock, so the true offset is 0.
        for agent in agents {
            let clock = &agent["clock"];
            assert!(
                clock["offset_ns"].as_i64().unwrap().unsigned_abs() <= clock["error_ns"].as_u64().unwrap(),
                "{clock}"
            );
        }
        assert!(doubt > 0);
        // Little's law for all generators: in a closed loop, the mean number in flight is rate times service time.
        let mean_ns = whole["service"]["sum"].as_f64().unwrap() / whole["service"]["count"].as_f64().unwrap();
        let rate = whole["requests"].as_f64().unwrap() * 1e9 / whole["duration_ns"].as_f64().unwrap();
        let in_flight = whole["in_flight_mean"].as_f64().unwrap();
        assert!(
            (rate * mean_ns / 1e9 / in_flight - 1.0).abs() < 0.05,
            "{rate}/s x {mean_ns} ns, {in_flight} in flight"
        );
        let subject = &record["subject"];
        assert!(subject["user_ns"].as_u64().unwrap() + subject["system_ns"].as_u64().unwrap() > 0, "{subject}");
        assert!(subject["measured_share"].as_f64().unwrap() > 0.5, "{subject}");
    }
    eventually("all nodes end", || nodes(&folder).is_empty().then_some(()));
}

const LONG_TRIALS: u32 = 8;

/// Starts a run and waits for its first stored trial.
fn long_run(folder: &Folder) -> std::process::Child {
    folder.write("long.toml", &study("400ms", LONG_TRIALS));
    let mut command = folder.command(&["run", "long.toml", HOSTS]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_stored = || {
        let ran = folder.quintain(&["report", "-f", "records"]);
        ran.code == Some(0) && !ran.json()["records"].as_array().unwrap().is_empty()
    };
    eventually("a trial is stored", || (is_stored() || child.try_wait().unwrap().is_some()).then_some(()));
    match child.try_wait().unwrap() {
        None => child,
        Some(_) => panic!("ended too soon: {}", Ran::from(child.wait_with_output().unwrap()).err),
    }
}

/// Checks that the run names the lost machine and the reason, keeps its trials, leaves no processes and can resume.
fn is_lost_and_goes_on(folder: &Folder, child: std::process::Child, why: &str) {
    let ran = Ran::from(child.wait_with_output().unwrap()).expect(4);
    assert!(ran.err.contains("lost local-") && ran.err.contains(why), "{}", ran.err);
    assert!(ran.err.contains("are kept") && ran.err.contains("--resume long-"), "{}", ran.err);
    eventually("all nodes end", || nodes(folder).is_empty().then_some(()));
    let kept = records(folder).len();
    assert!((1..LONG_TRIALS as usize).contains(&kept), "{kept}");
    folder.quintain(&["run", "long.toml", HOSTS, "--resume"]).expect(0);
    assert_eq!(records(folder).len(), LONG_TRIALS as usize);
}

#[test]
#[ignore = "slow: waits until a node counts as dead"]
fn killed_node_ends_the_run() {
    let folder = Folder::new();
    let child = long_run(&folder);
    signal_process(nodes(&folder)[1], "KILL");
    is_lost_and_goes_on(&folder, child, "its connection ended");
}

#[test]
#[ignore = "slow: waits until a node counts as hung"]
fn hung_node_ends_the_run() {
    let folder = Folder::new();
    let child = long_run(&folder);
    let hung = nodes(&folder)[1];
    signal_process(hung, "STOP");
    is_lost_and_goes_on(&folder, child, "no word for 5.");
}

#[test]
#[ignore = "slow: waits until a lab counts as hung"]
fn nodes_exit_without_their_lab() {
    let folder = Folder::new();
    let mut child = long_run(&folder);
    signal_process(child.id(), "KILL");
    child.wait().unwrap();
    eventually("all nodes end", || nodes(&folder).is_empty().then_some(()));
    let mut child = folder.command(&["run", "long.toml", HOSTS, "--resume"]).stderr(Stdio::null()).spawn().unwrap();
    eventually("there are nodes", || (nodes(&folder).len() == 4).then_some(()));
    signal_process(child.id(), "STOP");
    eventually("all nodes end", || nodes(&folder).is_empty().then_some(()));
    signal_process(child.id(), "KILL");
    child.wait().unwrap();
}

#[test]
#[ignore = "slow: a run per stop rule"]
fn one_remote_generator_accepts_any_stop_rule() {
    let folder = Folder::new();
    let text = study("100ms", 1).replace("stop = \"100ms\"", "stop = { requests = 500 }");
    folder.write("mini.toml", &text);
    folder.quintain(&["run", "mini.toml", "--hosts", "subject=local,load=local"]).expect(0);
    let all = records(&folder);
    assert_eq!(all[0]["outcome"]["measured"]["requests"], 500, "{}", all[0]);
    assert_eq!(all[0]["agents"].as_array().unwrap().len(), 1);
    let ran = folder.quintain(&["run", "mini.toml", HOSTS]).expect(4);
    assert!(ran.err.contains("this load cannot be divided among 3 generators"), "{}", ran.err);
}

#[test]
#[ignore = "slow: a run with failing trials"]
fn crashed_server_only_fails_its_trial() {
    let folder = Folder::new();
    let text = study("100ms", 1).replace("quintain serve pingpong --host", "sh -c 'echo dead >&2; exit 7'");
    folder.write("mini.toml", &text);
    let ran = folder.quintain(&["run", "mini.toml", HOSTS]).expect(3);
    assert!(ran.out.contains("exited (exit 7) before port") && ran.out.contains("last output: dead"), "{}", ran.out);
}

#[test]
fn load_runs_on_several_machines() {
    let folder = Folder::new();
    let server = Server::start(&["http", "-p", "0"]);
    let url = format!("http://127.0.0.1:{}/", server.port);
    let hosts = ["-c", "5", "-d", "300ms", "--warmup", "50ms", "--hosts", "load=local,local"];
    let ran = folder.quintain(&[&["load", &url][..], &hosts, &["--json"]].concat()).expect(0);
    let load = ran.json();
    let parts = load["agents"].as_array().unwrap();
    let of = |part: &Value, key: &str| part[key]["median"].as_f64().unwrap();
    assert_eq!(
        parts.iter().map(|part| part["node"].as_str().unwrap()).collect::<Vec<_>>(),
        ["local-load", "local-load2"]
    );
    let rates = parts.iter().map(|part| of(part, "rate_per_s")).sum::<f64>();
    assert!((rates / load["rate_per_s"].as_f64().unwrap() - 1.0).abs() < 1e-6, "{load}");
    assert!((parts.iter().map(|part| of(part, "share")).sum::<f64>() - 1.0).abs() < 1e-9, "{load}");
    assert_eq!((load["clients"].as_u64(), load["threads"].as_u64()), (Some(5), Some(2)));
    assert!(ran.err.contains("cluster: load local-load ("), "{}", ran.err);

    for (flags, code, why) in [
        (
            &["-c", "2", "--volley", "--hosts", "load=local,local"][..],
            2,
            "this load cannot be divided among 2 generators",
        ),
        (&["--hosts", "load=10.0.0.1"], 2, "is another server on each machine: to `10.0.0.1` it is its own"),
        (&["--hosts", "subject=a"], 2, "no machine has the role `load`"),
        (&["--hosts", "load=local", "--cpus", "0"], 2, "cannot be used with"),
    ] {
        let ran = folder.quintain(&[&["load", &url][..], flags].concat()).expect(code);
        assert!(ran.err.contains(why), "{flags:?}: {}", ran.err);
    }
    server.end();
    let ran = folder.quintain(&["load", &url, "-d", "1s", "--hosts", "load=local,local"]).expect(3);
    assert!(ran.err.contains("local-load"), "{}", ran.err);
    eventually("all nodes end", || nodes(&folder).is_empty().then_some(()));
}

#[test]
fn generators_share_the_numbers_of_journeys() {
    let folder = Folder::new();
    let server = Scripted::start(Does::Answer(OK));
    let journey = |name: &str, steps: &[&str]| {
        let step = |step: &&str| format!("[[step]]\nname = \"{step}\"\nurl = \"{{site}}/{{number}}/{step}\"\n");
        let targets = format!("targets = {{ site = \"{}\" }}", server.url(""));
        let steps = steps.iter().map(step).collect::<String>();
        folder.write(&format!("{name}.toml"), &format!("name = \"{name}\"\n{targets}\n{steps}"));
    };
    journey("pair", &["first", "second"]);
    // Most generators run no journey of this kind.
    journey("rare", &["first", "rare"]);
    let args = "load --journey pair.toml=100000 --journey rare.toml -c 6 --rate 200 --arrivals constant -d 1s --json";
    let args = args.split(' ').chain(["--hosts", "load=local,local,local"]).collect::<Vec<_>>();
    let load = folder.quintain(&args).expect(0).json();
    let completed = sum(load["journeys"].as_array().unwrap(), |journey| &journey["completed"]);
    let requests = |number: usize, step: &str| server.requests_of(&format!("GET /{number}/{step}"));
    let of_generator = |first: usize| (first..).step_by(3).take_while(|number| requests(*number, "first") == 1).count();
    let started = [0, 1, 2].map(of_generator);
    assert!(started.iter().all(|count| *count > 20), "{started:?}");
    let started = started.iter().sum::<usize>() as u64;
    // Each client may have a journey under way at the end.
    assert!((started.saturating_sub(6)..=started).contains(&completed), "{completed} of {started}");
    let ended = |number: &usize| requests(*number, "second") + requests(*number, "rare") == 1;
    let ended = (0..started as usize + 100).filter(ended).count() as u64;
    assert!((completed..=started).contains(&ended) && server.requests() == started + ended, "{ended} of {started}");
}

#[test]
#[ignore = "slow: calibrates two generators"]
fn calibrate_runs_on_several_machines() {
    let folder = Folder::new();
    let flags = ["calibrate", "--protocol", "http", "-d", "100ms", "--hosts", "subject=local,load=local,local"];
    let ran = folder.quintain(&flags).expect(0);
    assert!(ran.out.contains("http against `quintain serve http`") && ran.err.contains("not stored"), "{}", ran.err);
    assert!(folder.quintain(&["calibrate", "-d", "20ms"]).expect(2).err.contains("at least 100ms, one window"));
    let ran = folder.quintain(&["calibrate", "--protocol", "redis", "--hosts", "subject=local,load=local,local"]);
    assert!(ran.expect(2).err.contains("cannot be divided among 2 generators"));
}

#[test]
fn rejects_invalid_clusters() {
    let folder = Folder::new();
    folder.write("mini.toml", &study("100ms", 1));
    folder.write("bad.toml", "[[host]]\nname = 'a'\n");
    folder.write("elsewhere.toml", "[[host]]\nname = 'a'\nrole = 'subject'\nlauncher = 'local'\naddress = '127.0.0.1'\n[[host]]\nname = 'b'\nrole = 'load'\nlauncher = 'local'\naddress = '127.0.0.1'\ncpus = '4096'\n");
    for (args, code, expected) in [
        (&["--hosts", "subject=a"][..], 2, "no machine has the role `load`"),
        (&["--hosts", "server=a,load=b"], 2, "unknown role `server`"),
        (&["--deploy"], 2, "`--deploy` needs `--cluster FILE` or `--hosts LIST`"),
        (&["--cluster", "none.toml"], 2, "cannot read `none.toml`"),
        (&["--cluster", "bad.toml"], 2, "`host` has no `role`"),
        (&["--cluster", "bad.toml", "--hosts", "subject=a,load=b"], 2, "cannot be used with"),
        (&[HOSTS, "--cpus", "0"], 2, "cannot be used with"),
        (&["--cluster", "elsewhere.toml"], 4, "b (127.0.0.1): `cpus` names CPU 4096, which is not there"),
        (&["--hosts", "subject=local,load=no-such-host.invalid"], 4, "no-such-host.invalid: cannot resolve"),
    ] {
        let ran = folder.quintain(&[&["run", "mini.toml"], args].concat()).expect(code);
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
    eventually("all nodes end", || nodes(&folder).is_empty().then_some(()));
}

/// Writes a cluster file of nodes on this machine; `head` sets their command. The server exits if it has the ticket.
fn joining(folder: &Folder, head: &str) {
    let hosts = [("s", "subject"), ("a", "load"), ("b", "load")].map(|(name, role)| {
        format!("[[host]]\nname = '{name}'\nrole = '{role}'\naddress = '127.0.0.1'\nquintain = '{QUINTAIN}'\n")
    });
    folder.write("cluster.toml", &format!("{head}\n{}", hosts.concat()));
    let server = format!(
        "sh -c 'test -z \"$QUINTAIN_TICKET\" && exec {QUINTAIN} serve pingpong --host {{address}} -p {{port}}'"
    );
    let text = study("200ms", 2).replace(
        "command = \"quintain serve pingpong --host {address} -p {port}\"",
        &format!("command = '''{server}'''"),
    );
    folder.write("mini.toml", &text);
}

const SHELL: &str = "start = \"sh -c 'for rank in 0 1 2; do {node} --rank $rank & done; wait'\"";

#[test]
#[ignore = "slow: a whole run"]
fn nodes_started_by_one_command_join() {
    let folder = Folder::new();
    joining(&folder, SHELL);
    let ran = folder.quintain(&["run", "mini.toml", "--cluster", "cluster.toml"]).expect(0);
    assert!(ran.err.contains("started by the command of `start`"), "{}", ran.err);
    let all = records(&folder);
    assert_eq!(all.len(), 2);
    for record in &all {
        let (whole, agents) = (&record["outcome"]["measured"], record["agents"].as_array().unwrap());
        assert_eq!((&agents[0]["node"], &agents[1]["node"]), (&"a".into(), &"b".into()));
        assert_eq!(whole["requests"].as_u64(), Some(sum(agents, |agent| &agent["measurement"]["requests"])));
    }
    eventually("all nodes end", || nodes(&folder).is_empty().then_some(()));
}

#[test]
#[ignore = "slow: a whole run"]
fn nodes_started_by_mpirun_join() {
    let folder = Folder::new();
    if !folder.shell("mpirun --version").output().unwrap().status.success() {
        eprintln!("skipped: no mpirun");
        return;
    }
    joining(&folder, "launcher = 'mpirun'");
    let mut command = folder.command(&["run", "mini.toml", "--cluster", "cluster.toml"]);
    // Without this setting, Open MPI limits the number of processes per machine.
    let ran = Ran::from(command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").output().unwrap()).expect(0);
    assert!(ran.err.contains("started by mpirun, whose own connections are not encrypted"), "{}", ran.err);
    assert_eq!(records(&folder).len(), 2);
    eventually("all nodes end", || nodes(&folder).is_empty().then_some(()));
}

#[test]
#[ignore = "slow: waits for nodes until the timeout"]
fn reports_nodes_that_do_not_join() {
    let folder = Folder::new();
    let fails = |head: &str, expected: &[&str]| {
        joining(&folder, head);
        let ran = folder.quintain(&["run", "mini.toml", "--cluster", "cluster.toml"]).expect(4);
        for expected in expected {
            assert!(ran.err.contains(expected), "{head}: {}", ran.err);
        }
    };
    let one_less = SHELL.replace(" 2;", ";");
    fails(&format!("within = '1s'\n{one_less}"), &["b (127.0.0.1): no node came from there in time"]);
    fails("start = 'no-such-launcher {node}'", &["ended before all nodes had joined", "no-such-launcher"]);
    fails(
        &SHELL.replace("{node}", "QUINTAIN_TICKET=guess {node}"),
        &["cluster: refused a connection from 127.0.0.1:", "wrong ticket"],
    );
    fails(&SHELL.replace("0 1 2", "0 0 1"), &["two nodes claim rank 0"]);
    eventually("all nodes end", || nodes(&folder).is_empty().then_some(()));
}

#[test]
fn rejects_invalid_node_arguments() {
    let folder = Folder::new();
    let fingerprint = "0".repeat(64);
    let join = ["node", "--directory", "/", "--join", "127.0.0.1:9", "--lab", &fingerprint];
    for (args, ticket, code, expected) in [
        (&["node", "--directory", "/"][..], "", 2, "--stdio"),
        (&join[..5], "", 2, "--lab"),
        (&join, "", 2, "no launcher says which of the nodes this is"),
        (&[&join[..], &["--rank", "1"]].concat(), "", 2, "the environment has no `QUINTAIN_TICKET`"),
        (&[&join[..6], &["f", "--rank", "1"]].concat(), "t", 4, "`f` is not a fingerprint"),
    ] {
        let mut command = folder.command(args);
        if !ticket.is_empty() {
            command.env("QUINTAIN_TICKET", ticket);
        }
        let ran = Ran::from(command.output().unwrap()).expect(code);
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
}
