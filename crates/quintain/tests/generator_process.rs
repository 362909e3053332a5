//! The generator process as the lab uses it. Every line has the format of `study::generator_messages`.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};

use crate::common::{Folder, Server};
use serde_json::{Value, json};
use study::generator_messages::{Heard, Phase, Told};

fn spec(url: &str) -> Value {
    json!({
        "version": 1,
        "target": { "protocol": "pingpong", "address": url.strip_prefix("pingpong://").unwrap() },
        "clients": 20, "threads": 1, "cpus": [], "backend": "auto",
        "arrivals": { "loop": "closed", "think_ns": 0 },
        "warmup": { "duration_ns": 50_000_000 },
        "stop": { "rule": "duration", "duration_ns": 100_000_000 },
        "window_ns": 10_000_000, "timeout_ns": 5_000_000_000_u64, "spin_ns": 0, "seed": 1
    })
}

fn generator(folder: &Folder, text: &str) -> (std::process::Child, ChildStdin, BufReader<ChildStdout>) {
    let mut command = folder.command(&["load", "--spec", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    input.write_all(text.as_bytes()).unwrap();
    (child, input, output)
}

fn line(output: &mut impl BufRead) -> Option<Told> {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}`: {error}")))
}

fn lines(output: &mut impl BufRead) -> Vec<Told> {
    std::iter::from_fn(|| line(output)).collect()
}

fn lines_until(output: &mut impl BufRead, last: fn(&Told) -> bool) -> Vec<Told> {
    let mut told = Vec::new();
    while !told.last().is_some_and(last) {
        told.push(line(output).unwrap_or_else(|| panic!("it ended after {told:?}")));
    }
    told
}

#[test]
fn lines_have_the_seam_format_and_order() {
    let (folder, server) = (Folder::new(), Server::start(&["pingpong"]));
    // A specification may have several lines, and stdin stays open after it.
    let text = serde_json::to_string_pretty(&spec(&server.url())).unwrap();
    let (mut child, mut input, mut output) = generator(&folder, &text);
    let before = lines_until(&mut output, |told| matches!(told, Told::Measured(_)));
    let [.., Told::Measured(span)] = before.as_slice() else { panic!("{before:?}") };
    input.write_all(serde_json::to_string(&Heard::Read {}).unwrap().as_bytes()).unwrap();
    let after = lines(&mut output);
    assert!(child.wait().unwrap().success());

    let [Told::Measurement(measurement)] = after.as_slice() else { panic!("{after:?}") };
    assert!(measurement.requests > 0, "{measurement:?}");
    assert_eq!((span.until_ns - span.from_ns, measurement.duration_ns), (100_000_000, 100_000_000));
    let announced = before.iter().filter_map(|told| match told {
        Told::Announced(moments) => Some((moments.from_ns, moments.until_ns)),
        _ => None,
    });
    assert_eq!(announced.collect::<Vec<_>>(), [(span.from_ns, Some(span.until_ns))]);
    let place = |wanted: fn(&Told) -> bool| before.iter().position(wanted);
    let announced = place(|told| matches!(told, Told::Announced(_)));
    let measuring = place(|told| matches!(told, Told::Progress(progress) if progress.phase == Phase::Measure));
    assert!(measuring.is_none_or(|measuring| announced < Some(measuring)), "{before:?}");
}

#[test]
fn generator_finishes_without_a_responding_lab() {
    let (folder, server) = (Folder::new(), Server::start(&["pingpong"]));
    let text = spec(&server.url()).to_string();
    let is_whole = |told: &[Told]| matches!(told, [.., Told::Measured(_), Told::Measurement(_)]);
    // A user can start the generator with `quintain load --spec - < spec.json`.
    let (mut child, input, mut output) = generator(&folder, &text);
    drop(input);
    assert!(is_whole(&lines(&mut output)) && child.wait().unwrap().success());
    let (mut child, input, mut output) = generator(&folder, &text);
    assert!(is_whole(&lines(&mut output)) && child.wait().unwrap().success());
    drop(input);
    folder.write("spec.json", &text);
    let out = folder.quintain(&["load", "--spec", "spec.json"]).expect(0).out;
    assert!(is_whole(&lines(&mut out.as_bytes())), "{out}");
}

#[test]
fn gate_waits_for_the_signal_to_start() {
    let (folder, server) = (Folder::new(), Server::start(&["pingpong"]));
    let mut gated = spec(&server.url());
    gated["gate"] = true.into();
    let (mut child, mut input, mut output) = generator(&folder, &gated.to_string());
    let connected = lines_until(&mut output, |told| matches!(told, Told::Connected(_)));
    assert!(!connected.iter().any(|told| matches!(told, Told::Announced(_))), "{connected:?}");
    input.write_all(b"{\"go\":{\"at_ns\":1}}").unwrap();
    let rest = lines_until(&mut output, |told| matches!(told, Told::Measured(_)));
    let [.., Told::Measured(span)] = rest.as_slice() else { panic!("{rest:?}") };
    input.write_all(b"{\"read\":{}}").unwrap();
    let end = lines(&mut output);
    let [Told::Measurement(measurement)] = end.as_slice() else { panic!("{end:?}") };
    assert_eq!((measurement.began_ns, child.wait().unwrap().success()), (span.from_ns, true));
    let (mut child, input, mut output) = generator(&folder, &gated.to_string());
    lines_until(&mut output, |told| matches!(told, Told::Connected(_)));
    drop(input);
    let end = lines(&mut output);
    assert!(matches!(end.last(), Some(Told::Error(why)) if why.starts_with("interrupted")), "{end:?}");
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn errors_have_their_own_line() {
    let folder = Folder::new();
    let nobody = spec("pingpong://127.0.0.1:1").to_string();
    for (text, code, wanted) in [
        ("{", 2, "cannot parse the specification"),
        ("{\"version\": 1}", 2, "cannot parse the specification"),
        (nobody.as_str(), 3, "connection refused"),
    ] {
        let (mut child, input, mut output) = generator(&folder, text);
        drop(input);
        let told = lines(&mut output);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{told:?}");
        let said = match told.last() {
            Some(Told::Error(said)) if code == 2 => said,
            Some(Told::Unreachable(said)) if code == 3 => said,
            _ => panic!("{told:?}"),
        };
        assert!(said.contains(wanted), "{said}");
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"");
    }
}

/// With the real generator, the server's usage covers exactly the measured time and is read before connections close.
#[test]
fn record_covers_the_measured_time() {
    let folder = Folder::new();
    let study = r#"
question = "How long is half a second?"
[subject]
command = "quintain serve pingpong -p {port}"
[load]
protocol = "pingpong"
clients = "{clients}"
share_cpus = true
warmup = "50ms"
stop = "500ms"
[factors]
clients = [300]
[trials]
stop = { min = 2 }
"#;
    folder.write("span.toml", study);
    folder.quintain(&["run", "span.toml"]).expect(0);
    let report = folder.quintain(&["report", "-f", "records"]).expect(0).json();
    let records = report["records"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    for record in records {
        let subject = &record["subject"];
        // Lines from the generator trigger both readings, without which there would be no share.
        let share = subject["measured_share"].as_f64().unwrap();
        assert!(share > 0.0 && share <= 1.0, "{subject}");
        // The listeners of the main thread and of its worker, and the clients' sockets, were all open when counted.
        assert!(subject["sockets_max"].as_u64().unwrap() >= 300, "{subject}");
        assert!(subject["run_queue_ns"].is_u64(), "{subject}");
    }
}
