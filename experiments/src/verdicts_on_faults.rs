//! Checks verdicts on trials with a planted fault: the server has no CPU, or the server or the generator is stopped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde_json::Value;

/// Plant faults in trials of `quintain run` and count the right verdicts
///
/// Needs `chrt` and the right to use real-time priorities.
#[derive(Args)]
pub(crate) struct BlameArgs {
    /// Trials per fault
    #[arg(long, default_value_t = 16)]
    trials: u32,
    /// Plant only this fault
    #[arg(long)]
    fault: Option<Fault>,
    /// Program under test [default: the build next to this one]
    #[arg(long, value_name = "FILE")]
    quintain: Option<PathBuf>,
}

const TRIAL: Duration = Duration::from_millis(1_000);
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum share of a fault's trials that may have a wrong verdict: 1 in 16.
const MOST_WRONG: f64 = 1.0 / 16.0;

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Fault {
    /// A real-time process takes the server's CPU in bursts until the end
    Starved,
    /// A process with nice -20 takes the server's CPU for the whole trial
    Taken,
    /// SIGSTOP to the generator for 300 ms
    Stopped,
    /// SIGSTOP to the server
    Hung,
    /// No fault
    None,
}

impl Fault {
    fn party(self) -> &'static str {
        match self {
            Fault::Starved | Fault::Taken => "shared",
            Fault::Stopped => "generator",
            Fault::Hung => "hung",
            Fault::None => "another",
        }
    }
}

pub(crate) fn run(args: &BlameArgs) -> Result<(), String> {
    let quintain = crate::server_process::quintain(args.quintain.as_deref())?;
    let folder = tempfile::tempdir().map_err(|error| format!("error: {error}"))?;
    let mut wrong = Vec::new();
    for fault in Fault::value_variants().iter().filter(|fault| args.fault.is_none_or(|only| only == **fault)) {
        let (name, expected) = (format!("{fault:?}").to_lowercase(), fault.party());
        let mut right = 0;
        for at in 0..args.trials {
            let (found, why) = trial(&quintain, folder.path(), *fault, at)?;
            right += u32::from(found == expected);
            println!("{name} {at}: {found}: {why}");
        }
        println!("{name}: {right} of {} named `{expected}`", args.trials);
        if f64::from(args.trials - right) > f64::from(args.trials) * MOST_WRONG {
            wrong.push(name);
        }
    }
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(format!("error: wrong party named for: {}", wrong.join(", "))),
    }
}

fn trial(quintain: &Path, folder: &Path, fault: Fault, at: u32) -> Result<(&'static str, String), String> {
    let io = |error: std::io::Error| format!("error: {error}");
    let study = folder.join("blame.toml");
    let text = format!(
        "question = \"Who is to blame?\"\n[subject]\ncommand = \"quintain serve pingpong --host {{address}} -p {{port}}\"\n\
         [load]\nprotocol = \"pingpong\"\nclients = 8\nwarmup = \"200ms\"\nstop = \"{}ms\"\n\
         [trials]\nstop = {{ min = 1, max = 1 }}\n",
        TRIAL.as_millis()
    );
    std::fs::write(&study, text).map_err(io)?;
    let store = folder.join(format!("{at}.db"));
    let mut command = Command::new(quintain);
    command.args(["run", "--json", "--seed", &(at + 1).to_string(), "--store"]).arg(&store);
    command.arg("--html").arg(folder.join("blame.html")).arg(&study);
    let mut program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(io)?;
    let planted = plant(&mut program, fault, at);
    let output = program.wait_with_output().map_err(io)?;
    let _ = std::fs::remove_file(&store);
    planted.map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let said = || format!("error: no result: {}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).map_err(|_| said())?;
    verdict(&found).ok_or_else(said)
}

fn verdict(found: &Value) -> Option<(&'static str, String)> {
    let row = &found["findings"]["rows"][0];
    let trial = &row["trials"][0];
    let is_hung = trial["marks"].as_array()?.iter().any(|mark| mark == "hung");
    let failure = row["failures"][0]["kind"].as_str();
    let limit = trial["limited_by"].as_str();
    let party = match (is_hung, failure.or(limit)?) {
        (true, _) | (_, "hung") => "hung",
        (_, "shared" | "starved") => "shared",
        (_, "generator") => "generator",
        _ => "another",
    };
    let why = trial["failed"].as_str().map_or_else(|| limit.unwrap_or_default().to_owned(), str::to_owned);
    Some((party, why))
}

fn plant(program: &mut Child, fault: Fault, at: u32) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    let lab = program.id();
    let (server, generator) = loop {
        let children = children(lab);
        let find = |words: &[&str]| {
            children.iter().find(|(_, line)| words.iter().all(|word| line.contains(*word))).map(|(pid, _)| *pid)
        };
        if let (Some(server), Some(generator)) = (find(&["serve", "pingpong"]), find(&["load", "--spec"])) {
            break (server, generator);
        }
        if Instant::now() > deadline || program.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err("error: server and generator did not run together".to_owned());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let status = std::fs::read_to_string(format!("/proc/{server}/status")).unwrap_or_default();
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cpus = cpus.ok_or("error: the server ended too early")?.trim().to_owned();
    // The fault begins after the warm-up of 200 ms, at a different moment in each trial.
    let into = Duration::from_millis(u64::from(at * 37 % 150));
    let middle = Duration::from_millis(200) + TRIAL * 2 / 5 + into;
    match fault {
        Fault::None => Ok(()),
        Fault::Hung => {
            std::thread::sleep(middle);
            signal("STOP", server)
        }
        Fault::Stopped => {
            // In every second trial, the stop spans the end of the measurement.
            std::thread::sleep(if at.is_multiple_of(2) { middle } else { TRIAL + into });
            signal("STOP", generator)?;
            std::thread::sleep(Duration::from_millis(300));
            signal("CONT", generator)
        }
        Fault::Starved => {
            std::thread::sleep(middle);
            let (burst, pause) = (Duration::from_millis(350), Duration::from_millis(30));
            for _ in 0..3 {
                take(&cpus, &["chrt", "-f", "50"], burst)?;
                std::thread::sleep(pause);
            }
            Ok(())
        }
        Fault::Taken => take(&cpus, &["nice", "-n", "-20"], TRIAL + Duration::from_millis(400)),
    }
}

/// Runs a busy loop on these CPUs for `time`, with the command `how`, which sets its priority.
fn take(cpus: &str, how: &[&str], time: Duration) -> Result<(), String> {
    let mut command = Command::new(how[0]);
    command.args(&how[1..]).args(["taskset", "-c", cpus, "sh", "-c", "while :; do :; done"]);
    let mut busy = command.spawn().map_err(|error| format!("error: `{}`: {error}", how[0]))?;
    std::thread::sleep(time);
    let _ = busy.kill();
    let ended = busy.wait().map_err(|error| format!("error: {error}"))?;
    match ended.code() {
        None => Ok(()),
        Some(_) => Err(format!("error: `{}` was refused", how.join(" "))),
    }
}

fn signal(name: &str, pid: u32) -> Result<(), String> {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    if status.is_ok_and(|status| status.success()) {
        Ok(())
    } else {
        Err(format!("error: cannot signal process {pid}"))
    }
}

fn children(parent: u32) -> Vec<(u32, String)> {
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let lists = lists.collect::<Vec<_>>().join(" ");
    let pids = lists.split_whitespace().filter_map(|pid| pid.parse().ok());
    let line = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, String::from_utf8_lossy(&line).replace('\0', " "))
    };
    pids.map(line).collect()
}
