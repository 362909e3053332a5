//! `quintain init` with real servers, and with wrong commands and flags.

use crate::common::{Folder, Server};

const SERVER: &str = "quintain serve http -p {port}";

#[test]
fn init_writes_a_study_that_runs() {
    let folder = Folder::new();
    let written = folder.quintain(&["init", "--command", SERVER, "--path", "/bytes/100"]).expect(0).out;
    assert!(
        written.contains("GET /bytes/100 answered with 200, ") && written.contains("wrote  server.toml"),
        "{written}"
    );
    folder.quintain(&["check", "server"]).expect(0);
    folder.quintain(&["run", "server", "--quick", "--set", "clients=1", "--set", "load.stop=100ms"]).expect(0);
    let again = folder.quintain(&["init", "--command", SERVER]).expect(2).err;
    assert!(again.contains("`server.toml` exists"), "{again}");
}

#[test]
fn init_tries_the_commands_of_each_kind() {
    let folder = Folder::new();
    for (flags, name, tried) in [
        (&["--base", SERVER, "--head", "quintain serve http --threads 2 -p {port}"][..], "versions", 2),
        (&["--command", "quintain serve cache -p {port}", "--protocol", "redis"], "cache", 1),
        (
            &["--command", "quintain serve pingpong -p {port}", "--protocol", "pingpong", "--kind", "capacity"],
            "capacity",
            1,
        ),
    ] {
        let written = folder.quintain(&[&["init"], flags].concat()).expect(0).out;
        assert_eq!(written.lines().filter(|line| line.starts_with("tried  ")).count(), tried, "{written}");
        folder.quintain(&["check", name]).expect(0);
    }
    // A server can replace the proxy, because `init` requires only a valid response from it.
    let proxy = "quintain serve http --host 127.0.0.1 -p {port} --seed {next_port}";
    let written = folder.quintain(&["init", "in/front.toml", "--command", SERVER, "--proxy", proxy]).expect(0).out;
    assert!(
        written.contains("behind `quintain serve http --host") && written.contains("wrote  in/front.toml"),
        "{written}"
    );
    folder.quintain(&["check", "in/front"]).expect(0);
}

#[test]
fn a_recording_becomes_a_journey_that_runs() {
    let folder = Folder::new();
    let recording = include_str!("../../../examples/shop.har");
    folder.write("shop.har", recording);
    let written = folder.quintain(&["init", "--har", "shop.har"]).expect(0).out;
    assert!(written.starts_with("wrote  shop.toml: 6 of 14 requests, 4 values from responses\n"), "{written}");
    let again = folder.quintain(&["init", "--har", "shop.har"]).expect(2).err;
    assert!(again.contains("`shop.toml` exists"), "{again}");
    // The recorded pauses would make this test slow, so they are removed.
    let text = std::fs::read_to_string(folder.path().join("shop.toml")).unwrap();
    let quick = text.lines().filter(|line| !line.starts_with("think")).collect::<Vec<_>>().join("\n");
    folder.write("quick.toml", &quick);
    let server = Server::start(&["mock-shop"]);
    let target = format!("shop=http://127.0.0.1:{}", server.port);
    let load = ["load", "--journey", "quick.toml", "--target", &target, "-c", "3", "-n", "600", "--json"];
    let json = folder.quintain(&load).expect(0).json();
    assert_eq!((&json["requests"], &json["errors"]), (&600.into(), &serde_json::json!({})), "{json}");
    assert_eq!(json["journeys"][0]["completed"], 100);

    folder.write("cut.har", &recording[..1000]);
    let cut = folder.quintain(&["init", "--har", "cut.har"]).expect(2).err;
    assert!(cut.contains("`cut.har`: EOF while parsing") && cut.contains(" at line "), "{cut}");
    assert!(!folder.path().join("cut.toml").exists());
    let both = folder.quintain(&["init", "--har", "shop.har", "--command", SERVER]).expect(2).err;
    assert!(both.contains("cannot be used with"), "{both}");
}

#[test]
fn request_flags_are_written_to_the_study() {
    let folder = Folder::new();
    let request = ["-X", "PUT", "-H", "X-Token: a\"b", "--body", "ping", "--expect-body", "ping"];
    let base = ["init", "--command", SERVER, "--path", "/echo"];
    let written = folder.quintain(&[&base[..], &request].concat()).expect(0).out;
    assert!(written.contains("PUT /echo answered with 200"), "{written}");
    let plan = folder.quintain(&["check", "server", "--json"]).expect(0).json();
    let http = &plan["points"][0]["load"]["http"];
    assert_eq!(http["requests"][0]["method"], "PUT", "{http}");
    assert!(http["requests"][0]["headers"].to_string().contains("X-Token"), "{http}");

    let missing = ["init", "x.toml", "--command", SERVER, "--path", "/nothing"];
    let failed = folder.quintain(&missing).expect(3).err;
    assert!(failed.contains("status 404 (expected 2xx)") && failed.contains("GET /nothing"), "{failed}");
    folder.quintain(&[&missing[..], &["--expect-status", "404"]].concat()).expect(0);
}

#[test]
fn reports_request_errors_before_the_server_starts() {
    let folder = Folder::new();
    let http = ["-X", "get it", "-H", "no colon", "-H", "A: 1", "-H", "a: 2", "--expect-status", "999"];
    let told = folder.quintain(&[&["init", "--command", SERVER][..], &http].concat()).expect(2).err;
    for words in ["`--method`", "`no colon`", "`a` is given twice", "`--expect-status`"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let told = folder.quintain(&["init", "--command", SERVER, "--protocol", "redis", "--body", "x", "--path", "/"]);
    let told = told.expect(2).err;
    for flag in ["--path", "--body"] {
        assert!(told.contains(&format!("`{flag}` does not apply to `--protocol redis`")), "{told}");
    }
}

#[test]
fn reports_all_errors_of_flags_at_once() {
    let folder = Folder::new();
    for flags in [
        &[][..],
        &["--command", "server > log", "--port", "0", "--path", "x", "--objective", "p98 < 5"],
        &["--command", "./gone -p 1", "--base", "x {port}", "--protocol", "memcache"],
        &["--kind", "proxy", "--command", SERVER, "--proxy", "haproxy -p 80"],
    ] {
        let ran = folder.quintain(&[&["init"], flags].concat()).expect(2);
        insta::assert_snapshot!(
            format!("init {}", flags.join("_")).replace(|c: char| !c.is_alphanumeric(), "_"),
            ran.err
        );
    }
}

#[test]
fn writes_no_study_if_the_server_fails() {
    let folder = Folder::new();
    let sh = |script: &str| format!("sh -c '{script}'");
    let exits = sh("echo no database >&2; exit 1; : {port}");
    for (command, protocol, words) in [
        (exits.as_str(), "http", &["exited (exit 1) before port", "    no database"][..]),
        ("quintain-no-such-program {port}", "http", &["`quintain-no-such-program` is not installed"]),
        ("quintain serve pingpong -p {port}", "http", &["no valid response"]),
        ("quintain serve http -p {port}", "redis", &["no valid response"]),
    ] {
        let ran = folder.quintain(&["init", "new/x.toml", "--command", command, "--protocol", protocol]).expect(3);
        for words in words {
            assert!(ran.err.contains(words), "{command}: {}", ran.err);
        }
        assert!(!folder.path().join("new").exists());
    }
}

#[test]
fn a_missing_program_is_named_as_it_was_typed() {
    let ran = Folder::new().quintain(&["init", "--command", "./nosuch -p {port}"]).expect(2);
    assert!(ran.err.contains("no file `./nosuch`"), "{}", ran.err);
}
