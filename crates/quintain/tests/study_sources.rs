//! Built-in studies in an empty directory, and the working directory of a study's commands.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Folder, Ran};

/// Study whose command and body file are relative to the directory of its file.
const BESIDE: &str = r#"question = "?"
[subject]
command = "./server -p {port}"
[load]
protocol = "http"
clients = 1
share_cpus = true
body_file = "body"
method = "POST"
path = "/echo"
warmup = "0s"
stop = { requests = 20 }
"#;

fn beside(folder: &Folder, place: &str) {
    std::fs::create_dir_all(folder.path().join(place)).unwrap();
    let server = folder.write(&format!("{place}/server"), "#!/bin/sh\nexec \"$QUINTAIN\" serve http \"$@\"\n");
    let mut permissions = server.metadata().unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&server, permissions).unwrap();
    folder.write(&format!("{place}/body"), "asked");
}

fn run(folder: &Folder, study: &str) -> Ran {
    let mut command = folder.command(&["run", study, "--quick"]);
    command.env("QUINTAIN", crate::common::QUINTAIN);
    Ran::from(command.output().unwrap())
}

#[test]
#[ignore = "slow: a whole run"]
fn built_in_study_runs_in_an_empty_directory() {
    let folder = Folder::new();
    let checked = folder.quintain(&["check", "proxy-cost"]).expect(0).out;
    assert!(checked.starts_with("proxy-cost (built in): no errors\n"), "{checked}");
    let ran = folder.quintain(&["run", "proxy-cost", "--quick", "--set", "through=direct,adapter"]).expect(0);
    assert!(ran.out.contains("adapter"), "{}", ran.out);
    for left in ["quintain.db", "proxy-cost.html"] {
        assert!(folder.path().join(left).is_file(), "{left}");
    }
    let run = folder.quintain(&["report", "-f", "records"]).expect(0).json();
    assert!(run["run"]["revision"].as_str().unwrap().starts_with("built-in-"), "{}", run["run"]["revision"]);
    assert_eq!(run["run"]["plan"]["study"], "proxy-cost");
}

#[test]
fn server_without_its_toolchain_becomes_a_row() {
    let folder = Folder::new();
    let mut command = folder.command(&["run", "volley", "--quick", "--set", "server=c-epoll,quintain"]);
    // This `PATH` has no make and no compiler. Describing the machine needs no programs.
    let ran = Ran::from(command.env("PATH", folder.path()).output().unwrap()).expect(0);
    assert!(ran.out.contains("`make` is not installed"), "{}", ran.out);
}

#[test]
fn lists_shows_and_copies_studies() {
    let folder = Folder::new();
    let list = folder.quintain(&["studies"]).expect(0).out;
    for words in ["volley\n  Which ping-pong server", "time   quick ", "needs  cargo, cc, go, make\n", "haproxy, nginx"]
    {
        assert!(list.contains(words), "{words}\n{list}");
    }
    let listed = folder.quintain(&["studies", "--json"]).expect(0).json();
    let volley = listed.as_array().unwrap().iter().find(|study| study["name"] == "volley").unwrap();
    assert_eq!(volley["profiles"][0]["profile"], "quick");
    assert!(folder.quintain(&["studies", "show", "whip"]).expect(0).out.contains("ICFP 2017"));
    assert!(folder.quintain(&["studies", "show", "wip"]).expect(2).err.contains("did you mean `whip`?"));

    folder.quintain(&["studies", "copy", "proxy-cost"]).expect(0);
    let mine = folder.path().join("studies/proxy-cost.toml");
    assert!(mine.is_file() && folder.path().join("studies/proxies/haproxy.cfg").is_file());
    folder.quintain(&["studies", "copy", "proxy-cost"]).expect(0);
    std::fs::write(&mine, std::fs::read_to_string(&mine).unwrap().replace("clients = [1, 16]", "clients = [1]"))
        .unwrap();
    let refused = folder.quintain(&["studies", "copy", "proxy-cost"]).expect(2).err;
    assert!(refused.contains("nothing copied, these differ: `./studies/proxy-cost.toml`"), "{refused}");
    let checked = folder.quintain(&["check", "proxy-cost"]).expect(0).out;
    assert!(checked.starts_with("studies/proxy-cost.toml: no errors"), "the working directory wins: {checked}");
}

#[test]
fn commands_start_in_the_directory_of_their_study() {
    let folder = Folder::new();
    beside(&folder, "mine");
    folder.write("mine/bench.toml", BESIDE);
    run(&folder, "mine/bench").expect(0);
    assert!(folder.path().join("bench.html").is_file() && folder.path().join("quintain.db").is_file());

    let of_studies = Folder::new();
    beside(&of_studies, ".");
    std::fs::create_dir(of_studies.path().join("studies")).unwrap();
    of_studies.write("studies/bench.toml", BESIDE);
    run(&of_studies, "bench").expect(0);
    let mut inside = of_studies.command(&["check", "bench"]);
    Ran::from(inside.current_dir(of_studies.path().join("studies")).output().unwrap()).expect(0);

    std::fs::remove_file(folder.path().join("mine/body")).unwrap();
    let missing = folder.quintain(&["check", "mine/bench.toml"]).expect(2).err;
    assert!(missing.contains("cannot read the body `mine/body`"), "{missing}");
}

#[test]
fn reads_a_study_from_stdin() {
    let folder = Folder::new();
    beside(&folder, ".");
    let given = |args: &[&str], text: &str| {
        let mut command = folder.command(args);
        command.env("QUINTAIN", crate::common::QUINTAIN).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    };
    assert!(given(&["check", "-"], BESIDE).expect(0).out.starts_with("stdin: no errors\n"));
    given(&["run", "-", "--quick"], BESIDE).expect(0);
    assert!(folder.path().join("stdin.html").is_file());
    let wrong = given(&["check", "-"], &BESIDE.replace("clients = 1", "client = 1")).expect(2).err;
    assert!(wrong.contains("--> stdin:6:1"), "{wrong}");
}
