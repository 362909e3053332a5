//! `quintain init`: writes a study of the user's server after a trial request has succeeded.

mod study_text;

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use analysis::FailedRequests;
use clap::ValueEnum;
use study::har::{self, Imported};
use study::record::{Failure, FailureKind, Outcome, Record};
use study::spec::{Arrivals, Protocol, Stop, Warmup};
use study::{ExpandOptions, Objective, Plan, Point, shell_words, validate_http};

use crate::cli::{InitArgs, InitKind, port};
use crate::collected_mistakes::Mistakes;
use crate::command_result::{Done, Exit, Problem, Result, cannot, exe, machine, usage};
use crate::run::run_once;
use crate::study_file;
use crate::{output, signals};

/// Time limit of the one request that `init` sends to each server, in ns.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Flags of a new study, with their defaults.
struct Draft {
    args: InitArgs,
    kind: InitKind,
    protocol: Protocol,
    share_cpus: bool,
    /// Commands, each with its flag. The first one starts the server, or the first of two versions.
    commands: Vec<(&'static str, String)>,
}

pub(crate) fn init(mut args: InitArgs, mut mistakes: Mistakes) -> Done {
    if let Some(recording) = &args.har {
        return from_recording(recording, args.place.as_deref());
    }
    signals::watch_interrupts()?;
    let cpus = crate::run::cpus(None)?;
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        ask_in(&mut args, &mut std::io::stdin().lock())?;
    }
    let draft = draft(args, cpus.len(), &mut mistakes);
    let place = place(draft.args.place.as_deref(), draft.kind, &mut mistakes);
    let directory = study_file::directory_of(&place);
    for (flag, command) in &draft.commands {
        check_program(flag, command, &directory, &mut mistakes);
    }
    mistakes.end()?;

    let name = place.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let runnable = shell_words::join(&[place.with_extension("").display().to_string()]);
    let text = study_text::of(&draft, &runnable);
    let options = ExpandOptions { name, machine_cpus: cpus.len() as u32, ..ExpandOptions::default() };
    let plan = study::parse(&text)
        .and_then(|study| study::expand(&study, &options))
        .map_err(|found| study_file::mistaken(&place, &text, &found))?;
    // Commands start in this directory, so it must exist. It is removed again if no study is written.
    let new = !directory.exists();
    output::folder(&directory)?;
    let tried = try_once(plan, &directory, &cpus);
    if new && !matches!(tried, Ok(Some(_))) {
        let _ = std::fs::remove_dir(&directory);
    }
    let Some(tried) = tried? else { return Ok(Exit::Interrupted) };
    output::file(&place, &text)?;
    output::text(&format!(
        "{}wrote  {}\n\nquintain check {runnable}          the plan, and how long it takes\n\
         quintain run {runnable} --quick    a first look\nquintain run {runnable}            the answer\n",
        tried.iter().map(|line| format!("tried  {line}\n")).collect::<String>(),
        place.display()
    ))?;
    Ok(Exit::Fine)
}

fn draft(mut args: InitArgs, cpus: usize, mistakes: &mut Mistakes) -> Draft {
    let protocol = args.protocol.as_deref().map(|name| protocol(name, mistakes));
    let is_cache = matches!(protocol, Some(Protocol::Cache(_)));
    let kind = args.kind.unwrap_or(match &args {
        InitArgs { proxy: Some(_), .. } => InitKind::Proxy,
        InitArgs { base, head, .. } if base.is_some() || head.is_some() => InitKind::Versions,
        InitArgs { objective: Some(_), .. } => InitKind::Capacity,
        _ if is_cache => InitKind::Cache,
        _ => InitKind::One,
    });
    let fallback =
        if kind == InitKind::Cache { Protocol::Cache(study::spec::Dialect::Memcached) } else { Protocol::Http };
    let protocol = protocol.unwrap_or(fallback);
    if kind == InitKind::Cache && !matches!(protocol, Protocol::Cache(_)) {
        let caches =
            Protocol::with_scheme().filter(|protocol| matches!(protocol, Protocol::Cache(_))).map(Protocol::name);
        let caches = caches.collect::<Vec<_>>().join(", ");
        let problem = usage(format!("`--kind cache` and `--protocol {protocol}` exclude each other"));
        mistakes.add(problem.hint(format!("cache protocols: {caches}")));
    }
    let needed = match kind {
        InitKind::Versions => ["--base", "--head"].as_slice(),
        InitKind::Proxy => &["--command", "--proxy"],
        InitKind::One | InitKind::Cache | InitKind::Capacity => &["--command"],
    };
    let mut commands = Vec::new();
    let values = [&args.command, &args.base, &args.head, &args.proxy];
    for (flag, value) in ["--command", "--base", "--head", "--proxy"].into_iter().zip(values) {
        match value {
            None if needed.contains(&flag) => {
                mistakes.add(usage(format!("`{flag}` is missing")).hint(example(flag)));
            }
            Some(_) if !needed.contains(&flag) => {
                let needed = needed.iter().map(|flag| format!("`{flag}`")).collect::<Vec<_>>().join(" and ");
                let problem = usage(format!("`{flag}` does not apply to `--kind {}`", kind.name()));
                mistakes.add(problem.hint(format!("`--kind {}` takes {needed}", kind.name())));
            }
            Some(command) => {
                check_command(flag, command, args.port.is_some(), mistakes);
                commands.push((flag, command.clone()));
            }
            None => {}
        }
    }
    args.path.get_or_insert_with(|| "/".to_owned());
    check_request(&args, protocol, mistakes);
    if args.objective.is_some() && kind != InitKind::Capacity {
        mistakes.add(usage("`--objective` is for `--kind capacity`"));
    }
    let objective = args.objective.get_or_insert_with(|| "p99 < 5ms".to_owned());
    for (_, error) in Objective::parse(objective).err().unwrap_or_default() {
        mistakes.add(error.of("`--objective`"));
    }
    Draft { args, kind, protocol, share_cpus: cpus < 2, commands }
}

fn check_request(args: &InitArgs, protocol: Protocol, mistakes: &mut Mistakes) {
    let flags = ["--path", "--method", "--header", "--body", "--expect-status", "--expect-body"];
    if !protocol.has_path() {
        return mistakes.refuse(&flags, &format!("does not apply to `--protocol {protocol}`"), "drop it");
    }
    for (at, (name, _)) in args.headers.iter().enumerate() {
        if args.headers[..at].iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            mistakes.add(format!("`--header`: `{name}` is given twice, a study has each header once"));
        }
    }
}

fn protocol(name: &str, mistakes: &mut Mistakes) -> Protocol {
    if let Some(protocol) = Protocol::with_scheme().find(|protocol| protocol.name() == name) {
        return protocol;
    }
    let names = Protocol::with_scheme().map(Protocol::name);
    mistakes.add(usage(format!("unknown protocol `{name}`")).hint(config::nearest::suggestion(name, names)));
    Protocol::Http
}

fn example(flag: &str) -> String {
    match flag {
        "--proxy" => "for example `--proxy './proxy --listen {port} --to 127.0.0.1:{next_port}'`".to_owned(),
        "--base" => "for example `--base './server-main -p {port}' --head './server -p {port}'`".to_owned(),
        _ => format!(
            "for example `{flag} './server -p {{port}}'`; on a terminal it asks, and `quintain init --help` lists all flags: --kind, --command, \
             --base, --head, --proxy, --protocol, --port, --path, --method, --header, --body, --expect-status, --objective"
        ),
    }
}

fn check_command(flag: &str, command: &str, has_port: bool, mistakes: &mut Mistakes) {
    if let Err(mistake) = shell_words::check(command) {
        return mistakes.add(mistake.of(&format!("`{flag}`")));
    }
    let is_proxy = flag == "--proxy";
    if !command.contains("{port}") && (is_proxy || !has_port) {
        let other = if is_proxy { "" } else { ", or give its fixed port with `--port N`" };
        let problem = usage(format!("`{flag}` has no `{{port}}`: `{command}`"));
        mistakes.add(problem.hint(format!("write `{{port}}` in place of its port{other}")));
    }
    if is_proxy && !has_port && !["{next_port}", "{subject_port}"].iter().any(|name| command.contains(name)) {
        let hint = "write `{next_port}` for the port of the server behind it; one that reads a file: `quintain studies show proxy-cost`";
        mistakes.add(usage(format!("`{flag}` has no address of the server: `{command}`")).hint(hint));
    }
}

/// Adds an error if `command` names its program by a path that does not exist in `directory`, where commands start.
fn check_program(flag: &str, command: &str, directory: &Path, mistakes: &mut Mistakes) {
    let program = shell_words::split(command).ok().and_then(|words| words.into_iter().next()).unwrap_or_default();
    if !program.contains('/') || program.contains('{') || directory.join(&program).exists() {
        return;
    }
    let there = directory.join(program.strip_prefix("./").unwrap_or(&program));
    let start = directory.display();
    let hint = format!("commands of the study start in `{start}`: give the path from there, or an absolute one");
    let hint = Path::new(&program).exists().then_some(hint);
    mistakes.add(usage(format!("`{flag}`: no file `{}`", there.display())).hint_if(hint));
}

/// Path of the study file to write: the given file, or a default name in the given directory. It must not exist.
fn place(given: Option<&Path>, kind: InitKind, mistakes: &mut Mistakes) -> PathBuf {
    let name = if kind == InitKind::One { "server.toml".to_owned() } else { format!("{}.toml", kind.name()) };
    let is_file = |path: &&Path| path.extension().is_some_and(|extension| extension == "toml") && !path.is_dir();
    let in_folder = || given.unwrap_or(Path::new("")).join(name);
    let place = given.filter(is_file).map_or_else(in_folder, Path::to_path_buf);
    if place.exists() {
        let hint = "choose another name: `quintain init NAME.toml`";
        mistakes.add(usage(format!("`{}` exists", place.display())).hint(hint));
    }
    place
}

/// Starts each server of a plan with its proxies and sends one request. Describes each response; `None` if interrupted.
fn try_once(mut plan: Plan, directory: &Path, cpus: &[u32]) -> Result<Option<Vec<String>>> {
    let mut tried: Vec<Point> = Vec::new();
    for mut point in std::mem::take(&mut plan.points) {
        if let Some(reason) = &point.unrunnable {
            return Err(Problem::text(Exit::Machine, format!("cannot try it here: {reason}")));
        }
        let load = &mut point.load;
        (load.search, load.share, load.clients, load.pipeline) = (None, None, 1, 1);
        load.arrivals = Arrivals::closed(0);
        load.warmup = Warmup::DurationNs(0);
        load.stop = Stop::Requests { requests: 1, max_ns: PATIENCE_NS };
        if !tried.iter().any(|known| (&known.subject, &known.proxies) == (&point.subject, &point.proxies)) {
            tried.push(point);
        }
    }
    plan.points = tried;
    let host = lab::host_facts::read(std::path::Path::new("/"));
    let options = lab::Options::new(exe()?, directory.to_path_buf(), &host, cpus);
    let options = lab::Options { probe: |_, _| Vec::new(), ..options };
    output::message("trying it once ...");
    let Some(mut records) = run_once(&plan, &options, &mut |_| {})? else { return Ok(None) };
    records.sort_by_key(|record| record.point);
    let answers = records.iter().map(|record| answer(&plan.points[record.point], record)).collect::<Vec<_>>();
    let failures = answers.iter().filter_map(|answer| answer.as_ref().err()).map(String::as_str).collect::<String>();
    if failures.is_empty() {
        return Ok(Some(answers.into_iter().flatten().collect()));
    }
    let hint = "nothing was written; correct the command, `--port`, `--protocol`, `--path`, `--header`, `--method`, `--body` or \
                `--expect-status`, and try again";
    Err(Problem::rendered(Exit::Subject, failures.trim_end().to_owned()).hint(hint))
}

fn answer(point: &Point, record: &Record) -> Result<String, String> {
    let proxies = point.proxies.iter().rev().map(|proxy| format!(" behind `{}`", proxy.process.command));
    let what = format!("`{}`{}", point.subject.process.command, proxies.collect::<String>());
    let asked = match point.load.http.as_ref().and_then(|http| http.requests.first()) {
        Some(request) => format!("{} {}", request.method, request.path),
        None => format!("a request over {}", point.load.protocol),
    };
    let measured = match &record.outcome {
        Outcome::Measured(measured) if measured.requests > 0 && measured.errors.is_empty() => Ok(measured),
        Outcome::Measured(measured) => {
            let failed_requests = FailedRequests::from(measured).sentence().unwrap_or_default();
            Err(format!("no valid response to {asked} over `{}`: {failed_requests}", point.load.protocol))
        }
        Outcome::Failed(Failure { kind: FailureKind::Answers, message }) => Err(format!("{asked}: {message}")),
        Outcome::Failed(failure) => Err(failure.message.clone()),
    };
    let measured = measured.map_err(|why| failed(&what, &why, record))?;
    let status = measured.statuses.keys().next().map(|status| format!(" with {status}")).unwrap_or_default();
    let time = |ns: f64| format!("{:.2} ms", ns / 1e6);
    let ready = record.ready_ns.map(|ns| format!("listens after {}; ", time(ns as f64))).unwrap_or_default();
    let median = stats::Histogram::try_from(&measured.service).ok().and_then(|latency| latency.quantile(0.5));
    let latency = median.map(|ns| format!(" after {}", time(ns))).unwrap_or_default();
    Ok(format!("{what}: {ready}{asked} answered{status}, {} bytes{latency}", measured.received_bytes))
}

fn failed(what: &str, why: &str, record: &Record) -> String {
    let mut text = format!("error: {what}: {why}\n");
    let of_proxies = record.proxies.iter().map(|proxy| (format!("proxy `{}`", proxy.name), &proxy.used.stderr_tail));
    for (name, said) in std::iter::once(("the server".to_owned(), &record.subject.stderr_tail)).chain(of_proxies) {
        let lines = said.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>();
        if !lines.is_empty() {
            text += &format!("  last output of {name}:\n{}\n", output::last_lines(&lines.join("\n")));
        }
    }
    text + "\n"
}

/// Asks on the terminal for missing flags.
fn ask_in(args: &mut InitArgs, input: &mut impl BufRead) -> Result<()> {
    // If a command is given, the defaults apply to all other flags.
    if args.command.is_some() || args.base.is_some() || args.head.is_some() {
        return Ok(());
    }
    if args.kind.is_none() && args.proxy.is_none() && args.objective.is_none() {
        let kinds = InitKind::value_variants().iter().filter_map(InitKind::to_possible_value);
        let kinds = kinds.filter_map(|kind| Some(format!("\n  {:<9} {}", kind.get_name(), kind.get_help()?)));
        output::message(&format!("What do you want to know?{}", kinds.collect::<String>()));
        args.kind = Some(until(input, "Kind", "one", |text| InitKind::from_str(text, false).ok())?);
    }
    let is_cache = args.kind == Some(InitKind::Cache);
    if args.kind == Some(InitKind::Versions) {
        args.base = Some(reply(input, "Command that starts the first version, with {port} for its port", None)?);
        args.head = Some(reply(input, "Command that starts the second one", None)?);
    } else {
        args.command = Some(reply(input, "Command that starts the server, with {port} for its port", None)?);
    }
    if args.kind == Some(InitKind::Proxy) && args.proxy.is_none() {
        let question = "Command that starts the proxy, with {port} for its port and {next_port} for the server's";
        args.proxy = Some(reply(input, question, None)?);
    }
    let has_port = [&args.command, &args.base].into_iter().flatten().all(|command| command.contains("{port}"));
    if args.port.is_none() && !has_port {
        args.port = Some(until(input, "Port it listens on", "", |text| port(text).ok())?);
    }
    if args.protocol.is_none() {
        args.protocol = Some(reply(input, "Protocol", Some(if is_cache { "memcached" } else { "http" }))?);
    }
    let has_path = args.protocol.as_deref().is_some_and(|protocol| ["http", "https"].contains(&protocol));
    if args.path.is_none() && has_path {
        args.path = Some(until(input, "Path to request", "/", |text| validate_http::target(text).ok())?);
    }
    Ok(())
}

fn reply(input: &mut impl BufRead, question: &str, default: Option<&str>) -> Result<String> {
    until(input, question, default.unwrap_or_default(), |text| (!text.is_empty()).then(|| text.to_owned()))
}

fn until<T>(input: &mut impl BufRead, question: &str, default: &str, usable: fn(&str) -> Option<T>) -> Result<T> {
    let choice = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    loop {
        output::ask(&format!("{question}{choice}: "));
        let mut line = String::new();
        let read = input.read_line(&mut line).map_err(machine)?;
        if read == 0 {
            return Err(usage(format!("no reply to `{question}`")).hint("reply, or pass flags: `quintain init --help`"));
        }
        let text = if line.trim().is_empty() { default } else { line.trim() };
        match usable(text) {
            Some(value) => return Ok(value),
            None => output::message(&format!("`{text}` is not a valid reply")),
        }
    }
}

/// Converts a browser's recording into a journey.
fn from_recording(recording: &Path, given: Option<&Path>) -> Done {
    let place = match given {
        Some(folder) if folder.is_dir() => folder.join(file_name(recording)),
        Some(file) => file.to_path_buf(),
        None => file_name(recording),
    };
    if place.exists() {
        let hint = "choose another name: `quintain init --har RECORDING NAME.toml`";
        return Err(usage(format!("`{}` exists", place.display())).hint(hint));
    }
    let bytes = std::fs::metadata(recording).map_err(cannot(Exit::Usage, "read", recording))?.len();
    if bytes > har::FILE_MAX_BYTES {
        let message = format!("`{}` has {bytes} bytes, at most {} allowed", recording.display(), har::FILE_MAX_BYTES);
        return Err(usage(message).hint("record fewer steps"));
    }
    let text = std::fs::read_to_string(recording).map_err(cannot(Exit::Usage, "read", recording))?;
    let name = place.file_stem().unwrap_or_default().to_string_lossy();
    let Imported { text, recorded, steps, values } = har::import(&name, text.trim_start_matches('\u{feff}'))
        .map_err(|error| Problem::from(error.of(&format!("`{}`", recording.display()))))?;
    output::file(&place, &text)?;
    let (place, runnable) = (place.display(), shell_words::join(&[place.display().to_string()]));
    output::text(&format!(
        "wrote  {place}: {steps} of {recorded} requests, {values} values from responses\n\n\
         quintain load --journey {runnable} --trace-session    run it once and show everything\n\
         quintain load --journey {runnable}                    load\n"
    ))?;
    Ok(Exit::Fine)
}

fn file_name(recording: &Path) -> PathBuf {
    Path::new(recording.file_stem().unwrap_or_default()).with_extension("toml")
}

#[cfg(test)]
mod tests;
