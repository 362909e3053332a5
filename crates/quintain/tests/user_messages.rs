//! Output for users, and errors that are found before anything is started.

use crate::common::Folder;

fn study(command: &str, clients: &str) -> String {
    format!(
        r#"question = "?"
[subject]
command = "{command}"
[load]
protocol = "pingpong"
clients = "{{clients}}"
share_cpus = true
stop = "1s"
[factors]
clients = [{clients}]
"#
    )
}

#[test]
fn unknown_study_suggests_a_name_or_lists_all() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("studies")).unwrap();
    for name in ["volley", "mine-too"] {
        folder.write(&format!("studies/{name}.toml"), &study("x -p {port}", "1"));
    }
    for (name, hint) in [
        ("voley", "= help: did you mean `volley`?"),
        ("something", "= help: available: "),
        ("mine-two", "= help: did you mean `mine-too`?"),
        ("studies/whip.toml", "= help: `whip` is built in: name it without a path"),
        ("mine.toml", "no study file `mine.toml`"),
    ] {
        let ran = folder.quintain(&["check", name]).expect(2);
        assert!(ran.err.contains(hint), "{name}: {}", ran.err);
    }
}

#[test]
fn command_that_needs_a_shell_is_an_error() {
    let folder = Folder::new();
    let text = r#"question = "?"
[subject]
build = "cd x && make"
command = "server -p {port} > log"
[subject.variants.unclosed]
command = "server 'a b -p {port}"
[subject.variants.piped]
command = "server -p {port} | tee log"
[subject.variants.variable]
command = "server -p {port} --home $HOME"
[subject.variants.fine]
command = "sh -c 'exec server -p {port} > log'"
[load]
protocol = "pingpong"
clients = 1
stop = "1s"
[factors]
server = ["plain", "unclosed", "piped", "variable", "fine"]
"#;
    folder.write("shell.toml", text);
    let ran = folder.quintain(&["check", "shell.toml"]).expect(2);
    insta::assert_snapshot!(ran.err);
}

#[test]
fn too_many_clients_make_a_point_unrunnable() {
    let folder = Folder::new();
    // No machine has enough ports for this many clients.
    folder.write("many.toml", &study("quintain serve pingpong -p {port}", "1, 70_000"));
    let out = folder.quintain(&["check", "many.toml"]).expect(0).out;
    assert!(out.contains("design points  2 (1 can run here)"), "{out}");
    let row = out.lines().find(|line| line.starts_with("70000")).unwrap();
    assert!(
        row.contains("needs 70") && (row.contains("open files, the limit is") || row.contains("local ports")),
        "{row}"
    );
    let ran = folder.quintain(&["run", "many.toml", "--set", "clients=70000"]).expect(4);
    assert!(ran.err.contains("no design point of `many` can run here: needs 70"), "{}", ran.err);
}

#[test]
fn colours_follow_environment_variables() {
    let folder = Folder::new();
    folder.write("mini.toml", &study("quintain serve pingpong -p {port}", "1"));
    folder.quintain(&["run", "mini.toml", "--set", "load.stop=100ms", "--set", "load.warmup=0s", "--quick"]).expect(0);
    let coloured = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = folder.command(args);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"] {
            command.env_remove(name);
        }
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success());
        output.stdout.contains(&0x1b)
    };
    assert!(!coloured(&[], &["report"]), "a pipe");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")], &["report"]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &["report"]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1")], &["report", "-f", "md"]), "no form but that of terminals");
}

#[test]
fn calibrating_a_busy_machine_is_declined() {
    let folder = Folder::new();
    let mut busy = folder.shell("while :; do :; done").spawn().unwrap();
    let ran = folder.quintain(&["calibrate"]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    let ran = ran.expect(4);
    assert!(ran.err.contains("this machine is busy, ") && ran.err.contains("--force"), "{}", ran.err);
    assert!(!folder.path().join("quintain.db").exists());
}

#[test]
#[ignore = "slow: calibrates four protocols"]
fn run_uses_the_calibration_of_its_protocol() {
    let folder = Folder::new();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let ran = folder.quintain(&["calibrate", "--force", "-d", "100ms", "--json"]).expect(if cpus < 2 { 4 } else { 0 });
    if cpus < 2 {
        return;
    }
    let all = ran.json();
    let found = all.as_array().unwrap().iter().map(|found| {
        assert!(found["rate_max_per_s"].as_f64().unwrap() > 0.0 && found["generator_busy"].is_number(), "{found}");
        [found["protocol"].as_str().unwrap(), found["server"].as_str().unwrap()]
    });
    let expected = [
        ["pingpong", "`quintain serve calibrate`"],
        ["http", "`quintain serve http`"],
        ["memcached", "`quintain serve cache`"],
        ["redis", "`quintain serve cache`"],
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let http = study("quintain serve http -p {port}", "1").replace("pingpong", "http");
    folder.write("http.toml", &http);
    folder.quintain(&["run", "http.toml", "--set", "load.stop=100ms", "--set", "load.warmup=0s", "--quick"]).expect(0);
    let run = folder.quintain(&["report", "-f", "records"]).expect(0).json();
    assert_eq!(run["run"]["calibration"]["protocol"], "http");
}
