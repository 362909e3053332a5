//! Counts how often `git bisect run` finds a slower commit while a compiler runs on the same CPUs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// Steps of arithmetic per request; the slower commits do 15 % more.
const WORK: [u32; 2] = [20_000, 23_000];
/// Number of commits, of which commit [`SLOWER`] is the first slower one.
const COMMITS: u32 = 6;
const SLOWER: u32 = 4;

/// Bisects `times` times and prints each result. Fails if all are wrong, or without git, a C compiler or `quintain`.
pub(super) fn bisect(quintain: &Path, folder: &Path, times: u32, flags: &[String]) -> Result<(), String> {
    let quintain = quintain.canonicalize().map_err(|error| format!("error: {}: {error}", quintain.display()))?;
    let mut found = 0;
    for at in 0..times {
        let repository = folder.join(format!("bisect-{at}"));
        make_repository(&repository)?;
        let begun = Instant::now();
        let subject = beside_compiler(&repository, || once(&quintain, &repository, flags))?;
        let is_right = subject == format!("commit {SLOWER}");
        found += u32::from(is_right);
        println!("{at} found {subject}, {:.0} s", begun.elapsed().as_secs_f64());
    }
    println!("found commit {SLOWER} in {found} of {times}");
    if found == 0 { Err("error: no bisection found the commit".to_owned()) } else { Ok(()) }
}

fn make_repository(repository: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("error: {}: {error}", repository.display());
    std::fs::create_dir_all(repository).map_err(failed)?;
    git(repository, &["init", "--quiet", "--initial-branch", "main"])?;
    std::fs::write(repository.join(".gitignore"), "compare.db*\nbeside*\n").map_err(failed)?;
    for commit in 1..=COMMITS {
        let work = WORK[usize::from(commit >= SLOWER)];
        let text = format!("// revision {commit}\n#define WORK {work}\n{}", super::SOURCE);
        std::fs::write(repository.join("server.c"), text).map_err(failed)?;
        git(repository, &["add", "."])?;
        git(repository, &["commit", "--quiet", "-m", &format!("commit {commit}")])?;
    }
    Ok(())
}

fn once(quintain: &Path, repository: &Path, flags: &[String]) -> Result<String, String> {
    let base = format!("main~{}", COMMITS - 1);
    let base = git(repository, &["rev-parse", &base])?;
    git(repository, &["bisect", "start", "main", &base])?;
    let quintain = quintain.to_string_lossy();
    let mut words = vec!["bisect", "run", &quintain, "compare", "--base-rev", &base, "--head-rev", "HEAD"];
    words.extend(["--build", "cc -O2 -o server server.c", "--command", "./server -p {port}", "-c", "20"]);
    words.extend(["--fail-if", "subject_cpu_per_request > 1.05", "--undecided", "125", "--store", "compare.db"]);
    words.extend(flags.iter().map(String::as_str));
    words.push("http:///");
    // A bisection that had to skip the commit ends with an error.
    match git(repository, &words) {
        Ok(_) => git(repository, &["log", "-1", "--format=%s", "refs/bisect/bad"]),
        Err(error) => Ok(format!("nothing ({})", error.lines().last().unwrap_or_default())),
    }
}

fn beside_compiler<T>(repository: &Path, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        scope.spawn(move || {
            while !over.load(Relaxed) {
                let mut compiler = Command::new("cc");
                compiler.args(["-O3", "-o", "beside", "server.c"]).current_dir(repository);
                if compiler.stderr(Stdio::null()).status().is_err() {
                    return;
                }
            }
        });
        let done = work();
        over.store(true, Relaxed);
        done
    })
}

fn git(repository: &Path, words: &[&str]) -> Result<String, String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(words);
    let output = git.stdin(Stdio::null()).output().map_err(|error| format!("error: git: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("error: git {}: {}{}", words.join(" "), text(&output.stdout), text(&output.stderr))),
    }
}
