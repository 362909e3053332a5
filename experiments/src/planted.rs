//! Counts wrong results of `quintain compare`, and of the usual three runs of wrk, on builds whose difference is known.

mod bisect;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use crate::server_process::{Server, quintain};

const SOURCE: &str = include_str!("../planted/server.c");

/// Compare two builds of a server whose difference is known, with `quintain compare` or as leaderboards do
#[derive(Args)]
pub(crate) struct PlantedArgs {
    /// Steps of arithmetic per request
    #[arg(long, value_names = ["BASE,HEAD"], value_delimiter = ',', default_value = "4000,4000")]
    work: Vec<u32>,
    /// The head answers every Nth request with an immediate 503 (0: never)
    #[arg(long, value_name = "N", default_value_t = 0)]
    fail: u32,
    /// Number of comparisons
    #[arg(long, value_name = "N", default_value_t = 10)]
    comparisons: u32,
    /// Run a process that uses a CPU in bursts during every second comparison
    #[arg(long)]
    busy: bool,
    /// Instead: run `git bisect run` this many times over six commits, the fourth of which makes the server do 15 %
    /// more work, by CPU time per request, while a compiler runs
    #[arg(long, value_name = "N", default_value_t = 0)]
    bisect: u32,
    /// Instead: compare this many times as leaderboards and CI scripts do: three runs of wrk for each build, base first
    #[arg(long, value_name = "N", default_value_t = 0)]
    boards: u32,
    /// Length of each run of wrk
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u32,
    /// Program under test [default: the build next to this one]
    #[arg(long, value_name = "FILE")]
    quintain: Option<PathBuf>,
    /// Flags of `quintain compare`, for example `--within 0.5%`
    #[arg(last = true)]
    flags: Vec<String>,
}

pub(crate) fn run(asked: &PlantedArgs) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("error: {error}"))?;
    let folder = folder.path();
    if asked.bisect > 0 {
        return bisect::bisect(&quintain(asked.quintain.as_deref())?, folder, asked.bisect, &asked.flags);
    }
    let [base, head] = asked.work[..] else { return Err("error: `--work` needs two numbers".to_owned()) };
    let source = folder.join("server.c");
    std::fs::write(&source, SOURCE).map_err(|error| format!("error: {}: {error}", source.display()))?;
    let mut servers = Vec::new();
    for (side, work, fail) in [("base", base, 0), ("head", head, asked.fail)] {
        let program = folder.join(side);
        let built = Command::new("cc")
            .args(["-O2", &format!("-DWORK={work}"), &format!("-DFAIL={fail}"), "-o"])
            .args([&program, &source])
            .status();
        if !built.is_ok_and(|status| status.success()) {
            return Err("error: `cc` cannot build the server".to_owned());
        }
        servers.push(program);
    }
    if asked.boards > 0 {
        return boards(asked, &servers);
    }
    let quintain = quintain(asked.quintain.as_deref())?;
    let mut named = BTreeMap::<(bool, String), u32>::new();
    let mut took = Vec::new();
    let mut ratios = Vec::new();
    for at in 0..asked.comparisons {
        let busy = asked.busy && at % 2 == 1;
        let begun = Instant::now();
        let found = beside(busy, || compare(&quintain, folder, &servers, at, &asked.flags))?;
        let seconds = begun.elapsed().as_secs_f64();
        let tests = found["findings"]["gate"]["tests"].as_array().map_or(&[][..], Vec::as_slice);
        let mut shown = Vec::new();
        for test in tests {
            let verdict = test["verdict"].as_str().unwrap_or("none");
            if ["worse", "not-worse"].contains(&verdict) {
                shown.push(format!("{} {verdict}", test["metric"].as_str().unwrap_or("unknown metric")));
            }
        }
        let Some(first) = tests.first() else { return Err(format!("error: no test in {found}")) };
        // JSON has no infinity: an interval without an upper end (missing responses) ends with a huge number.
        let bounded = |ratio: f64| if ratio > 1e9 { f64::INFINITY } else { ratio };
        let ratio = |key: &str| bounded(first["ratio"][key].as_f64().unwrap_or(f64::NAN));
        println!(
            "{at} {}: {}; {} ratio {:.4} [{:.4}, {:.4}], {} pairs, {seconds:.1} s{}",
            if busy { "busy" } else { "quiet" },
            if shown.is_empty() { "undecided".to_owned() } else { shown.join(", ") },
            first["metric"].as_str().unwrap_or("unknown metric"),
            ratio("point"),
            ratio("low"),
            ratio("high"),
            first["pairs"],
            first["reason"].as_str().map_or(String::new(), |reason| format!("; {reason}")),
        );
        ratios.push(ratio("point"));
        took.push(seconds);
        *named.entry((busy, if shown.is_empty() { "nothing" } else { "anything" }.to_owned())).or_default() += 1;
        for what in shown {
            *named.entry((busy, what)).or_default() += 1;
        }
    }
    for ((busy, what), count) in named {
        println!("{} {what}: {count}", if busy { "busy " } else { "quiet" });
    }
    println!("wall time, s: {}", spread(&mut took));
    println!("ratio: {}", spread(&mut ratios));
    Ok(())
}

pub(crate) fn spread(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    match values {
        [] => "none".to_owned(),
        values => {
            format!("median {:.4}, range {:.4} to {:.4}", values[values.len() / 2], values[0], values[values.len() - 1])
        }
    }
}

fn compare(quintain: &Path, folder: &Path, servers: &[PathBuf], at: u32, flags: &[String]) -> Result<Value, String> {
    let command = |server: &Path| format!("{} -p {{port}}", server.display());
    let store = folder.join(format!("{at}.db"));
    let output = Command::new(quintain)
        .args(["compare", "--json", "-c", "20", "--seed", &(at + 1).to_string(), "--store"])
        .arg(&store)
        .args(["--base", &command(&servers[0]), "--head", &command(&servers[1])])
        .args(flags)
        .arg("http:///")
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("error: {}: {error}", quintain.display()))?;
    let _ = std::fs::remove_file(&store);
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("error: no result ({error}): {}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs `work`; if `busy`, next to a thread that uses a CPU in bursts of up to 2 s.
fn beside<T>(busy: bool, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(!busy);
    std::thread::scope(|scope| {
        let over = &over;
        scope.spawn(move || {
            let mut rng = stats::Rng::new(u64::from(std::process::id()));
            while !over.load(Relaxed) {
                let until = Instant::now() + Duration::from_millis(200 + rng.next_u64() % 1_800);
                while Instant::now() < until && !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
                let pause = 200 + rng.next_u64() % 1_800;
                (0..pause / 50)
                    .take_while(|_| !over.load(Relaxed))
                    .for_each(|_| std::thread::sleep(Duration::from_millis(50)));
            }
        });
        let done = work();
        over.store(true, Relaxed);
        done
    })
}

/// Compares the best and the mean of three runs of wrk, base first, each with a fresh server.
fn boards(asked: &PlantedArgs, servers: &[PathBuf]) -> Result<(), String> {
    let (mut best, mut mean) = (Vec::new(), Vec::new());
    for at in 0..asked.boards {
        let busy = asked.busy && at % 2 == 1;
        let rates = beside(busy, || -> Result<Vec<Vec<f64>>, String> {
            servers.iter().map(|server| (0..3).map(|_| wrk(server, asked.seconds)).collect()).collect()
        })?;
        let [base, head] = rates.as_slice() else { return Err("error: two servers".to_owned()) };
        let highest = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
        let sum = |rates: &[f64]| rates.iter().sum::<f64>();
        best.push(highest(head) / highest(base));
        mean.push(sum(head) / sum(base));
        let (state, last) = (if busy { "busy" } else { "quiet" }, best.len() - 1);
        println!("{at} {state} head/base: best {:.4}, mean {:.4}", best[last], mean[last]);
    }
    for (name, ratios) in [("best of three", &mut best), ("mean of three", &mut mean)] {
        let apart = |limit: f64| ratios.iter().filter(|ratio| (**ratio - 1.0).abs() > limit).count();
        let slower = |limit: f64| ratios.iter().filter(|ratio| **ratio < 1.0 - limit).count();
        println!(
            "{name}: differ by more than 2 % in {} of {}, 5 % in {}, 10 % in {}; head slower by more than 2 % in {}, 5 % in {}",
            apart(0.02),
            ratios.len(),
            apart(0.05),
            apart(0.1),
            slower(0.02),
            slower(0.05)
        );
        println!("{name}, ratio: {}", spread(ratios));
    }
    Ok(())
}

/// Measures requests per second with wrk on CPU 1 against a server on CPU 0.
fn wrk(server: &Path, seconds: u32) -> Result<f64, String> {
    let server = Server::start(&format!("taskset -c 0 '{}' -p {{port}}", server.display()))?;
    let output = Command::new("taskset")
        .args([
            "-c",
            "1",
            "wrk",
            "-t1",
            "-c20",
            &format!("-d{seconds}s"),
            &format!("http://127.0.0.1:{}/", server.port),
        ])
        .output()
        .map_err(|error| format!("error: wrk: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    rate.ok_or_else(|| format!("error: wrk says no rate: {text}"))
}
