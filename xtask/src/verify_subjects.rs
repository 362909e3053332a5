//! `cargo xtask subjects`: checks the servers of `subjects/` against `subjects/REQUIREMENTS.md`.

use std::path::Path;
use std::process::Command;

use crate::tidy::root;

/// Exit code of `quintain verify` for a server that this machine cannot run.
const UNRUNNABLE: i32 = 4;

/// Builds and checks the servers in `names`, or all if it is empty; the error says how many break their requirements.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let root = root();
    let own = std::env::current_exe().map_err(|error| format!("error: the path of this program: {error}"))?;
    let quintain = own.with_file_name("quintain");
    if !quintain.is_file() {
        return Err(format!("error: `{}` does not exist\n\nhelp: cargo build", quintain.display()));
    }
    let entries = std::fs::read_dir(root.join("subjects")).map_err(|error| format!("error: subjects/: {error}"))?;
    let folders = entries.flatten().filter(|entry| entry.path().join("Makefile").is_file());
    let names_of_all = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // The gRPC server has its own tests, in crates/quintain/tests/grpc_interop.rs.
    let mut all = names_of_all.filter(|name| !name.starts_with("grpc-")).collect::<Vec<_>>();
    all.sort();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|known| known == *name)) {
        return Err(format!("error: no server `{unknown}`: there are {}", all.join(", ")));
    }
    let (mut checked, mut failed) = (0, 0);
    for name in all.iter().filter(|name| names.is_empty() || names.contains(&name.as_str())) {
        match check(&root, &quintain, name)? {
            Outcome::Holds => checked += 1,
            Outcome::Skipped(why) => println!("{name:<19} skipped: {why}"),
            Outcome::Fails(why) => {
                println!("{name:<19} FAILS: {why}");
                failed += 1;
            }
        }
    }
    match (failed, checked) {
        (0, 0) => Err("error: nothing was checked".to_owned()),
        (0, _) => Ok(()),
        (failed, _) => Err(format!("error: servers that break subjects/REQUIREMENTS.md: {failed}")),
    }
}

enum Outcome {
    Holds,
    /// The server cannot be built or run here.
    Skipped(String),
    Fails(String),
}

fn check(root: &Path, quintain: &Path, name: &str) -> Result<Outcome, String> {
    let build = Command::new("make").args(["-C", &format!("subjects/{name}"), name]).current_dir(root).output();
    let build = build.map_err(|error| format!("error: make: {error}"))?;
    if !build.status.success() {
        let text = String::from_utf8_lossy(&build.stderr).into_owned();
        let is_reason = |line: &&str| line.starts_with("missing toolchain:") || line.starts_with("cannot run here:");
        return Ok(match text.lines().find(is_reason) {
            Some(reason) => Outcome::Skipped(reason.to_owned()),
            None => Outcome::Fails(format!("does not build: {}", text.trim_end())),
        });
    }
    let mut verify = Command::new(quintain);
    verify.current_dir(root).args(["verify", "--command", &format!("subjects/{name}/{name} -p {{port}}")]);
    match name.starts_with("http-") {
        true => verify.args(["--protocol", "http", "--cases", "subjects/http.toml"]),
        false => verify.args(["--protocol", "pingpong"]),
    };
    let status = verify.status().map_err(|error| format!("error: {}: {error}", quintain.display()))?;
    Ok(match status.code() {
        Some(0) => Outcome::Holds,
        Some(UNRUNNABLE) => Outcome::Skipped("see above".to_owned()),
        _ => Outcome::Fails("see above".to_owned()),
    })
}
