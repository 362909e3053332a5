//! How often is `quintain compare` wrong, and how often are those who decide by three runs of wrk? Real processes on this machine, whose difference is known:
//! two builds of `xtask/planted/server.c`.

mod bisect;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::alone::{Alone, free_port};

const HELP: &str = "\
Compares two builds of a server whose difference is known, again and again.

Usage: cargo xtask planted [--work BASE,HEAD] [--fail N] [--comparisons N] [--busy] [--quintain FILE] [-- FLAGS OF COMPARE]

  --work BASE,HEAD  steps of arithmetic for each request [default: 4000,4000: no difference]
  --fail N          the head answers every Nth request with 503, at once [default: 0, none]
  --comparisons N   so many [default: 10]
  --busy            beside every second comparison, a process that uses a CPU in bursts
  --bisect N        instead: so many times `git bisect run` over six commits, the fourth of which makes the server do
                    15 % more work, by CPU time per request, while a compiler runs beside it
  --boards N        instead: so many comparisons as boards and CI scripts make them, three runs of wrk for each build, base first
  --seconds N       length of each run of wrk [default: 5]
  --quintain FILE   the program [default: the build beside this one]
  FLAGS             for example `--within 0.5%`";

struct Asked {
    work: [u32; 2],
    fail: u32,
    comparisons: u32,
    bisect: u32,
    boards: u32,
    seconds: u32,
    busy: bool,
    quintain: Option<PathBuf>,
    flags: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|argument| argument == "--help") {
        println!("{HELP}");
        return Ok(());
    }
    let asked = read(arguments)?;
    let folder = std::env::temp_dir().join(format!("planted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("error: {}: {error}", folder.display()))?;
    let done = with(&asked, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    done
}

fn read(arguments: &[String]) -> Result<Asked, String> {
    let mut asked = Asked {
        work: [4000, 4000],
        fail: 0,
        comparisons: 10,
        bisect: 0,
        boards: 0,
        seconds: 5,
        busy: false,
        quintain: None,
        flags: Vec::new(),
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("error: `{word}` needs a value\n\n{HELP}"));
        let wrong = |value: &str| format!("error: `{word} {value}`\n\n{HELP}");
        let number = |value: &String| value.parse::<u32>().map_err(|_| wrong(value));
        match word.as_str() {
            "--work" => {
                let value = value()?;
                let (base, head) = value.split_once(',').ok_or_else(|| wrong(value))?;
                asked.work = [number(&base.to_owned())?, number(&head.to_owned())?];
            }
            "--fail" => asked.fail = number(value()?)?,
            "--comparisons" => asked.comparisons = number(value()?)?,
            "--bisect" => asked.bisect = number(value()?)?,
            "--boards" => asked.boards = number(value()?)?,
            "--seconds" => asked.seconds = number(value()?)?,
            "--busy" => asked.busy = true,
            "--quintain" => asked.quintain = Some(PathBuf::from(value()?)),
            "--" => asked.flags.extend(words.by_ref().cloned()),
            unknown => return Err(format!("error: unknown argument `{unknown}`\n\n{HELP}")),
        }
    }
    Ok(asked)
}

fn with(asked: &Asked, folder: &Path) -> Result<(), String> {
    if asked.bisect > 0 {
        let quintain = asked.quintain.clone().map_or_else(crate::built::quintain, Ok)?;
        return bisect::bisect(&quintain, folder, asked.bisect, &asked.flags);
    }
    let mut servers = Vec::new();
    for (side, work, fail) in [("base", asked.work[0], 0), ("head", asked.work[1], asked.fail)] {
        let program = folder.join(side);
        let built = Command::new("cc")
            .args(["-O2", &format!("-DWORK={work}"), &format!("-DFAIL={fail}"), "-o"])
            .args([program.as_path(), Path::new("xtask/planted/server.c")])
            .status();
        if !built.is_ok_and(|status| status.success()) {
            return Err(
                "error: `cc` cannot build xtask/planted/server.c; run this in the root of the repository".to_owned()
            );
        }
        servers.push(program);
    }
    if asked.boards > 0 {
        return boards(asked, &servers);
    }
    let quintain = asked.quintain.clone().map_or_else(crate::built::quintain, Ok)?;
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
        // An end of an interval that nothing bounds, as responses were still waiting, is written as a huge number.
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

/// Median and range, of values that it sorts.
pub(crate) fn spread(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    match values {
        [] => "none".to_owned(),
        values => {
            format!("median {:.4}, range {:.4} to {:.4}", values[values.len() / 2], values[0], values[values.len() - 1])
        }
    }
}

/// One comparison by the program, with a store of its own.
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
        .map_err(|error| format!("error: no answer ({error}): {}", String::from_utf8_lossy(&output.stderr)))
}

/// Something else that uses a CPU in bursts of up to 2 s while `work` goes on.
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

/// Three runs of wrk for each build, base first, each with a fresh server: what the best and what the mean of them say.
fn boards(asked: &Asked, servers: &[PathBuf]) -> Result<(), String> {
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
        println!(
            "{at} {} head/base: best {:.4}, mean {:.4}",
            if busy { "busy" } else { "quiet" },
            best[best.len() - 1],
            mean[mean.len() - 1]
        );
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

/// Requests per second as wrk has them, generator on CPU 1 and server on CPU 0.
fn wrk(server: &Path, seconds: u32) -> Result<f64, String> {
    let port = free_port()?;
    let _server = Alone::start(0, &[server.display().to_string(), "-p".to_owned(), port.to_string()], port)?;
    let output = Command::new("taskset")
        .args(["-c", "1", "wrk", "-t1", "-c20", &format!("-d{seconds}s"), &format!("http://127.0.0.1:{port}/")])
        .output()
        .map_err(|error| format!("error: wrk: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    rate.ok_or_else(|| format!("error: wrk says no rate: {text}"))
}
