//! Replaces quintain in tests. `exec` and `watchdog` are real. `load` is a small client whose file name selects its
//! defect. `serve` is a small server with defects on request. `lab` runs a plan, for tests that kill the lab.

use std::error::Error;
use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use serde::Deserialize;
use study::generator_messages::{Announced, Heard, Phase, Progress, Span, Told};
use study::record::{Histogram, IdlePolicy, Measurement, Record};
use study::spec::{LoadSpec, SPEC_VERSION, Stop};

type Done = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let name = Path::new(&words[0]).file_name().and_then(|name| name.to_str()).unwrap_or("").to_owned();
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["exec", rest @ ..] => exec(rest),
        ["watchdog"] => lab::watchdog::run(std::io::stdin().lock()).map_err(Into::into),
        ["spin", "--cpus", _] if name.contains("spin-dies") => Err("no such policy".into()),
        ["spin", "--cpus", _] => sleep_for_ever(),
        ["load", "--spec", "-"] => load(&name),
        ["serve", kind, rest @ ..] => serve(kind, rest),
        ["stray", file] => stray(file),
        ["lab", plan, records] => carry_out(plan, records),
        _ => Err(format!("unknown: {words:?}").into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::from(7)
        }
    }
}

fn sleep_for_ever() -> Done {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn exec(words: &[&str]) -> Done {
    let mut cpus = Vec::new();
    let mut parent = None;
    let mut rest = words;
    while let [key, value, more @ ..] = rest {
        match *key {
            "--cpus" => cpus = lab::cpu_list::parse(value)?,
            "--parent" => parent = Some(value.parse()?),
            _ => break,
        }
        rest = more;
    }
    let command: Vec<OsString> = rest.iter().skip_while(|word| **word == "--").map(OsString::from).collect();
    match lab::exec::become_command(&cpus, parent, &command)? {}
}

fn say(line: &impl serde::Serialize) -> Done {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(line)?)?;
    Ok(output.flush()?)
}

fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

fn load(name: &str) -> Done {
    let mut input = BufReader::new(std::io::stdin());
    let spec = LoadSpec::deserialize(&mut serde_json::Deserializer::from_reader(&mut input))?;
    let address = spec.target.address();
    let progress = |phase: Phase, requests: u64| {
        say(&Told::Progress(Progress { phase, requests, rate_per_s: 10.0, ..Progress::default() }))
    };
    progress(Phase::Warmup, 0)?;
    match name {
        "load-hangs" => return sleep_for_ever(),
        "load-crashes" => return Err("out of luck".into()),
        "load-aborts" => std::process::abort(),
        "load-babbles" => return say(&"hello"),
        "load-complains" => return say(&Told::Error("cannot open any of 4 connections".to_owned())),
        _ => {}
    }
    let Stop::Duration { duration_ns } = spec.stop else { return Err("only durations".into()) };
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    ping(&mut stream, 1)?;
    // This load ends after a number of rounds, so it cannot announce the time of its end.
    let from_ns = monotonic_ns() + 20_000_000;
    say(&Told::Announced(Announced { from_ns, until_ns: None }))?;
    // Measuring begins during this pause, which gives the lab time to take its reading.
    std::thread::sleep(Duration::from_millis(100));
    // The pace is fixed, so that a trial takes the expected time on any machine.
    let rounds = (duration_ns / 5_000_000).max(1);
    let mut requests = 0;
    for round in 0..rounds {
        if name == "load-hears-nothing" {
            break;
        }
        if ping(&mut stream, u32::try_from(round)?)? != u32::try_from(round)? + 1 {
            return Err("a wrong response".into());
        }
        requests += 1;
        progress(Phase::Measure, requests)?;
        std::thread::sleep(Duration::from_millis(5));
    }
    say(&Told::Measured(Span { from_ns, until_ns: monotonic_ns().max(from_ns + 1) }))?;
    // The connection stays open until the lab has taken its reading.
    let heard = Heard::deserialize(&mut serde_json::Deserializer::from_reader(&mut input))?;
    if heard != (Heard::Read {}) {
        return Err(format!("unexpected {heard:?}").into());
    }
    let measurement = measurement(&spec, requests, if name == "load-hears-nothing" { 5 } else { 0 });
    say(&Told::Measurement(Box::new(measurement)))
}

fn ping(stream: &mut TcpStream, word: u32) -> Result<u32, Box<dyn Error>> {
    stream.write_all(&word.to_be_bytes())?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    Ok(u32::from_be_bytes(answer))
}

fn measurement(spec: &LoadSpec, requests: u64, wrong: u64) -> Measurement {
    Measurement {
        slowest: Vec::new(),
        version: SPEC_VERSION,
        protocol: spec.target.protocol(),
        address: String::new(),
        backend: "none".to_owned(),
        backend_note: None,
        clients: spec.clients,
        threads: spec.threads,
        pipeline: spec.pipeline,
        connection: spec.connection,
        began_ns: 0,
        duration_ns: requests.max(1) * 5_000_000,
        warmup_ns: 0,
        warmup_requests: 1,
        requests,
        errors: (wrong > 0).then(|| ("wrong-answer".to_owned(), wrong)).into_iter().collect(),
        error_examples: Default::default(),
        statuses: Default::default(),
        warmup_errors: Default::default(),
        late_answers: 0,
        reconnects: 0,
        in_backoff_mean: 0.0,
        think_ns: 0,
        sent: 0,
        asked_again: 0,
        left_in_flight: 0,
        offered_per_s: spec.arrivals.offered_per_s(),
        unsent: 0,
        censored: None,
        unfinished: 0,
        in_flight_mean: 0.0,
        service: Histogram::default(),
        response: None,
        lag_thread: None,
        lag_connection: None,
        connect: Histogram::default(),
        handshake: None,
        resumed: 0,
        window_ns: spec.window_ns,
        windows: Vec::new(),
        workers: Vec::new(),
        process_cpu_ns: 0,
        process_rss_max_bytes: 0,
        sent_bytes: 0,
        received_bytes: 0,
        stop_reason: "the time was over".to_owned(),
        volley: None,
        cache: None,
        journeys: Vec::new(),
        log: Vec::new(),
        log_left_out: 0,
        checked: 0,
        first_byte: None,
        by_request: Vec::new(),
        shape: Vec::new(),
        streams: None,
    }
}

fn serve(kind: &str, rest: &[&str]) -> Done {
    let (port, more) = rest.split_first().ok_or("a port is missing")?;
    let listen = || TcpListener::bind(("127.0.0.1", port.parse::<u16>()?)).map_err(Box::<dyn Error>::from);
    match (kind, more) {
        ("well", [] | [_]) => answer(&listen()?),
        ("early-exit", []) => Err("bind: permission denied".into()),
        ("deaf", []) => sleep_for_ever(),
        ("chatty", []) => {
            let line = "x".repeat(1000);
            std::thread::spawn(move || while writeln!(std::io::stderr(), "{line}").is_ok() {});
            answer(&listen()?)
        }
        ("crash", []) => {
            LAST_WORDS.get_or_init(|| "something is rotten");
            answer(&listen()?)
        }
        ("taken-once", [file]) => match std::fs::OpenOptions::new().write(true).create_new(true).open(file) {
            Ok(_) => Err("Error: bind: Address already in use (os error 98)".into()),
            Err(_) => answer(&listen()?),
        },
        ("forward", [next] | [next, _, _]) => forward(&listen()?, next),
        ("forward-file", [file]) => {
            let text = std::fs::read_to_string(file)?;
            let [next, subject, level] = text.split_whitespace().collect::<Vec<_>>()[..] else {
                return Err(format!("not three words: {text}").into());
            };
            let _ = (subject.parse::<u16>()?, writeln!(std::io::stderr(), "level {level}"));
            forward(&listen()?, next)
        }
        ("forward-calls", [next, file]) => {
            std::fs::write(file, "operation,own_ns,whip_bytes,store_bytes\nping,5000,118,100\nping,7000,17,200\n")?;
            forward(&listen()?, next)
        }
        ("forward-stray", [next, file]) => {
            let listener = listen()?;
            stray_start(file)?;
            forward(&listener, next)
        }
        ("forward-crash", [next]) => {
            LAST_WORDS.get_or_init(|| "the proxy is rotten");
            forward(&listen()?, next)
        }
        ("with-stray", [file]) => {
            let listener = listen()?;
            stray_start(file)?;
            answer(&listener)
        }
        _ => Err(format!("unknown: {kind} {more:?}").into()),
    }
}

static LAST_WORDS: OnceLock<&str> = OnceLock::new();

/// Kills this process at the third word of a connection if [`LAST_WORDS`] is set.
fn crash_at_third(words: u32) {
    if let (3, Some(last_words)) = (words, LAST_WORDS.get()) {
        let _ = writeln!(std::io::stderr(), "{last_words}");
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

fn answer(listener: &TcpListener) -> Done {
    loop {
        let (mut stream, _) = listener.accept()?;
        std::thread::spawn(move || {
            let mut word = [0; 4];
            let mut words = 0;
            while stream.read_exact(&mut word).is_ok() {
                words += 1;
                crash_at_third(words);
                let answer = u32::from_be_bytes(word).wrapping_add(1);
                if stream.write_all(&answer.to_be_bytes()).is_err() {
                    break;
                }
            }
        });
    }
}

fn forward(listener: &TcpListener, next: &str) -> Done {
    let next: u16 = next.parse()?;
    loop {
        let (mut front, _) = listener.accept()?;
        std::thread::spawn(move || {
            let Ok(mut back) = TcpStream::connect(("127.0.0.1", next)) else { return };
            let _ = back.set_nodelay(true);
            let mut word = [0; 4];
            let mut words = 0;
            while front.read_exact(&mut word).is_ok() {
                words += 1;
                crash_at_third(words);
                // Each word is forwarded twice, so twice as many bytes pass behind the proxy as in front of it.
                let mut answer = [0; 4];
                for _ in 0..2 {
                    if back.write_all(&word).and_then(|()| back.read_exact(&mut answer)).is_err() {
                        return;
                    }
                }
                if front.write_all(&answer).is_err() {
                    return;
                }
            }
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "this is a subject, and a bad one")]
fn stray_start(file: &str) -> Done {
    std::process::Command::new(std::env::current_exe()?).args(["stray", file]).spawn()?;
    while !Path::new(file).exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn stray(file: &str) -> Done {
    rustix::process::setsid()?;
    // Renaming is atomic, so the file always contains the process ID.
    let unfinished = format!("{file}.new");
    std::fs::write(&unfinished, std::process::id().to_string())?;
    std::fs::rename(unfinished, file)?;
    sleep_for_ever()
}

fn carry_out(plan: &str, records: &str) -> Done {
    let plan = serde_json::from_str(&std::fs::read_to_string(plan)?)?;
    let options = lab::Options {
        cluster: None,
        exe: std::env::current_exe()?,
        directory: PathBuf::from("."),
        cpus: lab::host_facts::read(Path::new("/")).cpus,
        idle: IdlePolicy::Machine,
        probe: |_, _| Vec::new(),
    };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(records)?;
    let mut store = |record: &mut Record| {
        writeln!(file, "{}", serde_json::to_string(record).map_err(|error| error.to_string())?)
            .map_err(|error| error.to_string())
    };
    let mut hooks = lab::Hooks {
        store: &mut store,
        next: &mut |_, _| study::Next::Trial(None),
        progress: &mut |_| {},
        interrupted: &|| false,
    };
    lab::run(&plan, &[], &[], &options, &mut hooks)?;
    Ok(())
}
