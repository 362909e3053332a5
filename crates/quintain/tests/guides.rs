//! Follows `docs/start` and `docs/guides` like a reader: in an empty directory, block by block, with the binary in
//! `PATH`. CONTRIBUTING.md has the conventions for commands, files and output.
#![expect(clippy::print_stderr, reason = "what was not followed, and why, is told")]
#![expect(clippy::disallowed_methods, reason = "these tests type into a shell what a reader of a guide types")]

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use regex::{Captures, Regex};
use yaml_rust2::{Yaml, YamlLoader};

use crate::common::{Folder, QUINTAIN};

const PATIENCE: Duration = Duration::from_secs(120);
/// Time limit for a background server to print the output that the guide shows.
const READY: Duration = Duration::from_secs(30);
/// Marker that the shell prints after each command, before the exit code.
const ENDED: &str = "\u{1e}ended";

fn guide(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

struct Block {
    line: usize,
    info: String,
    text: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some(Block { line: at + 1, info: info.to_owned(), text: String::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// A line that begins with `$ `, its continuation lines, and the output shown below it.
#[derive(Debug, PartialEq)]
struct Step {
    line: usize,
    command: String,
    shown: Vec<String>,
}

impl Step {
    fn is_exit_code(&self) -> bool {
        self.command == "echo $?"
    }
}

fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (at, line) in block.text.lines().enumerate() {
        let goes_on = steps.last().is_some_and(|step| step.command.ends_with('\\') && step.shown.is_empty());
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { line: block.line + at + 1, command: command.to_owned(), shown: Vec::new() });
            }
            (None, Some(step)) if goes_on => {
                step.command += "\n";
                step.command += line;
            }
            (None, Some(step)) => step.shown.push(line.to_owned()),
            (None, None) => panic!("line {}: a block that is run begins with `$ `", block.line + 1),
        }
    }
    steps
}

/// Masks all numbers that have a unit, fraction or interval, because they are measured. Collapses whitespace.
fn without_measurements(line: &str) -> String {
    static MEASURED: LazyLock<Regex> = LazyLock::new(|| {
        let number = r"\d+(?:,\d{3})*(?:\.\d+)?";
        let unit = r"(?: ?(?:%|(?:ns|µs|us|ms|s|min|k?/s|M/s|B|kB|[KMG]iB|k)\b))";
        Regex::new(&format!(r"\[[-+]?{number}, [-+]?{number}\]|[±×+-]?{number}(?: ?±{number})?{unit}?")).unwrap()
    });
    static SEVERAL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"#(?: #)+").unwrap());
    let line = MEASURED.replace_all(line, |found: &Captures<'_>| {
        let whole = found[0].trim_start_matches(['-', '+']);
        let is_count = whole.chars().all(|letter| letter.is_ascii_digit() || letter == ',');
        if is_count { found[0].to_owned() } else { "#".to_owned() }
    });
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    SEVERAL.replace_all(&line, "#").into_owned()
}

fn line_fits(shown: &str, line: &str) -> bool {
    let mut parts = shown.split("...");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last.is_some_and(|last| line.ends_with(last))
}

/// Whether the output matches the lines shown in the guide. A shown line `...` stands for any number of lines.
fn fits(shown: &[String], lines: &[String]) -> bool {
    match shown {
        [] => lines.is_empty(),
        [first, rest @ ..] if first == "..." => (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..])),
        [first, rest @ ..] => lines.first().is_some_and(|line| line_fits(first, line)) && fits(rest, &lines[1..]),
    }
}

/// Removes measurements, and the note that a comparison prints on a busy machine.
fn normal<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<String> {
    let lines = lines.filter(|line| !line.starts_with("The CPUs were shared with other work: "));
    let mut lines = lines.map(without_measurements).collect::<Vec<_>>();
    lines.truncate(lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
    lines.drain(..lines.iter().position(|line| !line.is_empty()).unwrap_or(0));
    lines
}

struct Shell {
    child: Child,
    stdin: ChildStdin,
    said: PathBuf,
    read: usize,
}

impl Shell {
    fn start(folder: &Folder, said: PathBuf) -> Self {
        let file = std::fs::File::create(&said).unwrap();
        let path = format!(
            "{0}:{0}/examples:{1}",
            Path::new(QUINTAIN).parent().unwrap().display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut command = Command::new("/bin/sh");
        command.env("XDG_CACHE_HOME", folder.path().join("cache"));
        command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(file.try_clone().unwrap()).stderr(file);
        command.env("PATH", path).env("HOME", folder.path()).env_remove("ADAPTER").process_group(0);
        let who = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].into_iter().zip(["reader"; 2]);
        let mail = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].into_iter().zip(["reader@example.org"; 2]);
        command.envs(who.chain(mail));
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        Self { child, stdin, said, read: 0 }
    }

    fn new_text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.said).unwrap()[self.read..]).into_owned()
    }

    /// Runs a step and returns its output and exit code. A background step ends once it has printed the shown output.
    fn run(&mut self, step: &Step) -> (String, i32) {
        let Step { command, shown, .. } = step;
        write!(self.stdin, "{{ {command}\n}} </dev/null\ns=$?; printf '\\n{ENDED} %d\\n' $s; (exit $s)\n").unwrap();
        let shown = normal(shown.iter().map(String::as_str));
        let begun = Instant::now();
        loop {
            let text = self.new_text();
            let ended = text.split_once(&format!("\n{ENDED} ")).and_then(|(said, rest)| {
                let (code, later) = rest.split_once('\n')?;
                Some((format!("{said}\n{later}"), code.parse::<i32>().unwrap()))
            });
            let in_background = command.ends_with('&');
            if let Some((said, code)) = ended
                && (!in_background || fits(&shown, &normal(said.lines())) || begun.elapsed() > READY)
            {
                self.read += text.len();
                return (said, code);
            }
            assert!(begun.elapsed() < PATIENCE, "`{command}` takes too long; it said:\n{text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        signal_process_group(self.child.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Signals the process group of the shell, which includes its background processes. dash rejects `kill -TERM --`.
fn signal_process_group(leader: u32) {
    let _ = Command::new("/bin/sh").args(["-c", &format!("kill -s TERM -- -{leader}")]).stderr(Stdio::null()).status();
}

/// Ports in the guides. Tests replace each with a free port below the ephemeral range.
const PORTS: [&str; 9] = ["8080", "11211", "7999", "8000", "8001", "18000", "18001", "9090", "9091"];

fn with_free_ports(text: &str) -> String {
    let mut text = text.to_owned();
    let mut port = 10_000 + (std::process::id().wrapping_mul(131).wrapping_add(text.len() as u32 * 17) % 20_000) as u16;
    for named in PORTS {
        port = (port + 1..)
            .find(|port| !PORTS.contains(&port.to_string().as_str()) && TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .unwrap();
        text = Regex::new(&format!(r"\b{named}\b")).unwrap().replace_all(&text, port.to_string()).into_owned();
    }
    text
}

/// Follows a whole guide. Guides run one at a time, because they measure.
fn follow(name: &str) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = with_free_ports(&guide(name));
    let folder = Folder::new();
    let outside = Folder::new();
    if text.contains("shop.har") {
        folder.write("shop.har", include_str!("../../../examples/shop.har"));
    }
    let mut shell = Shell::start(&folder, outside.path().join("said"));
    let mut ran = 0;
    for block in blocks(&text) {
        match (block.info.as_str(), block.info.split_once(' ')) {
            ("console" | "sh", _) => {
                let mut is_busy = false; // too busy for a verdict, so the output may differ
                let steps = steps(&block);
                for (at, step) in steps.iter().enumerate() {
                    let place = format!("docs/{name}:{}: `{}`", step.line, step.command);
                    let (said, code) = shell.run(step);
                    ran += 1;
                    if is_busy && !step.command.starts_with("quintain") {
                        continue;
                    }
                    // Other processes may prevent a verdict, but the output must then contain this note.
                    is_busy = step.command.contains("quintain compare ") && said.contains("\nNo verdict on ");
                    if is_busy && code != 0 {
                        assert!(
                            code == 4 || step.command.starts_with("git bisect"),
                            "{place}: exit code {code}\n{said}"
                        );
                        eprintln!("{place}: no verdict: this machine is too busy");
                        continue;
                    }
                    let is_asked = steps.get(at + 1).is_some_and(Step::is_exit_code);
                    assert!(code == 0 || is_asked, "{place}: exit code {code}\n{said}");
                    let shown = normal(step.shown.iter().map(String::as_str));
                    let shown_text = step.shown.join("\n");
                    assert!(fits(&shown, &normal(said.lines())), "{place} says\n{said}\nwhich is not\n{shown_text}");
                }
            }
            ("ssh", _) => {
                // These machines do not exist, so the test only parses the flags.
                for step in steps(&block) {
                    let step = Step { command: format!("{} --help", step.command), ..step };
                    let (said, code) = shell.run(&step);
                    assert!(code == 0 && said.contains("Usage: quintain"), "docs/{name}:{}: {said}", step.line);
                }
            }
            (_, Some((_, file))) => {
                let path = folder.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, &block.text).unwrap();
            }
            _ => {}
        }
    }
    assert!(ran > 0, "docs/{name} has no block that is run");
}

/// Whether a program that a guide needs is installed. Without it, the guide is skipped.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("not followed: no {program}");
    }
    found
}

#[test]
#[ignore = "slow: a guide that measures"]
fn my_server() {
    follow("start/my-server.md");
}

#[test]
#[ignore = "slow: a guide that measures"]
fn two_versions() {
    if has("git") {
        follow("start/two-versions.md");
    }
}

#[test]
#[ignore = "slow: a guide that measures"]
fn log_in_then_load() {
    follow("guides/log-in-then-load.md");
}

#[test]
#[ignore = "slow: a guide that measures"]
fn from_a_recording() {
    follow("guides/from-a-recording.md");
}

#[test]
#[ignore = "slow: a guide that measures"]
fn requests_that_differ() {
    follow("guides/requests-that-differ.md");
}

#[test]
#[ignore = "slow: a guide that measures"]
fn my_proxy() {
    if has("python3") {
        follow("guides/my-proxy.md");
    }
}

#[test]
#[ignore = "slow: a guide that measures"]
fn my_cache() {
    follow("guides/my-cache.md");
}

#[test]
#[ignore = "slow: a guide that measures"]
fn gate_in_ci() {
    follow("start/gate-in-ci.md");
}

#[test]
#[ignore = "slow: a guide that measures"]
fn paper() {
    if has("python3") {
        follow("guides/paper.md");
    }
}

#[test]
#[ignore = "slow: a guide that measures"]
fn several_machines() {
    follow("guides/several-machines.md");
}

#[test]
fn contracts() {
    follow("guides/contracts.md");
}

#[test]
fn adapter() {
    follow("guides/adapter.md");
}

#[test]
fn every_guide_is_followed() {
    let here = include_str!("guides.rs");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for entry in std::fs::read_dir(docs.join("guides")).unwrap() {
        let name = format!("guides/{}", entry.unwrap().file_name().to_string_lossy());
        assert!(here.contains(&format!("follow({name:?})")), "{name}");
    }
}

/// Creates a repository of two commits, and a `quintain` in `PATH` that only prints the study of a comparison.
fn dry() -> (Folder, String) {
    let folder = Folder::new();
    let script = folder.write("quintain", &format!("#!/bin/sh\nexec '{QUINTAIN}' \"$@\" --print-study\n"));
    let git = "git -c user.name=r -c user.email=r@example.org commit -q --allow-empty -m";
    let done = folder.shell(&format!("chmod +x quintain && git init -q && {git} one && {git} two")).status().unwrap();
    assert!(done.success());
    let path = format!("{}:{}", script.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    (folder, path)
}

fn ci_file(name: &str) -> Yaml {
    let text = guide("start/gate-in-ci.md");
    let block = blocks(&text).into_iter().find(|block| block.info == format!("yaml {name}")).unwrap();
    YamlLoader::load_from_str(&block.text).unwrap().remove(0)
}

fn text(yaml: &Yaml) -> &str {
    yaml.as_str().unwrap_or_else(|| panic!("not a text: {yaml:?}"))
}

#[test]
fn gitlab_job_of_the_guide_is_valid() {
    if !has("git") {
        return;
    }
    let file = ci_file(".gitlab-ci.yml");
    let job = &file["compare"];
    let (folder, path) = dry();
    let lines = job["script"].as_vec().unwrap();
    let compared = lines.iter().filter(|line| text(line).starts_with("quintain compare")).count();
    assert_eq!(compared, 1);
    for line in lines {
        let mut shell = folder.shell(text(line));
        shell.env("PATH", &path).env("CI_MERGE_REQUEST_DIFF_BASE_SHA", "HEAD~1").env("CI_COMMIT_SHA", "HEAD");
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // The kept artifacts must be the files that the command writes.
    let command = text(lines.iter().find(|line| text(line).starts_with("quintain compare")).unwrap());
    let kept = job["artifacts"]["paths"].as_vec().unwrap().iter().map(text);
    for file in kept.chain([text(&job["artifacts"]["reports"]["junit"])]) {
        assert!(command.contains(file) || file == "quintain.db", "{file}");
    }
}

#[test]
fn github_workflow_of_the_guide_fits_the_action() {
    if !has("git") || !has("bash") {
        return;
    }
    let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/actions/compare/action.yml");
    let action = YamlLoader::load_from_str(&std::fs::read_to_string(action).unwrap()).unwrap().remove(0);
    let workflow = ci_file(".github/workflows/gate.yml");
    let steps = workflow["jobs"]["compare"]["steps"].as_vec().unwrap();
    let uses = |step: &&Yaml| step["uses"].as_str().is_some_and(|uses| uses.ends_with(".github/actions/compare"));
    let given = steps.iter().find(uses).unwrap()["with"].as_hash().unwrap();
    let inputs = action["inputs"].as_hash().unwrap();
    for (name, input) in inputs {
        assert!(given.contains_key(name) || input["required"] != Yaml::Boolean(true), "{name:?} is missing");
    }
    assert!(given.keys().all(|name| inputs.contains_key(name)), "{given:?}");
    let step = &action["runs"]["steps"][0];
    let (folder, path) = dry();
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", text(&step["run"])]).current_dir(folder.path()).env("PATH", path);
    shell.env("GITHUB_OUTPUT", folder.path().join("output")).env("GITHUB_STEP_SUMMARY", folder.path().join("summary"));
    for (name, value) in step["env"].as_hash().unwrap() {
        let input = text(value).trim_start_matches("${{ inputs.").trim_end_matches(" }}");
        let input = input.split(' ').next().unwrap();
        let default = inputs[&Yaml::String(input.to_owned())]["default"].as_str().unwrap_or_default();
        let value = given.get(&Yaml::String(input.to_owned())).map_or(default, text);
        shell.env(text(name), if input == "base-rev" { "HEAD~1" } else { value });
    }
    let output = shell.output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(said.contains("command = \"./server -p {port}\"") && said.contains("path = \"/health\""), "{said}");
}

#[test]
fn shown_output_is_compared_with_printed_output() {
    let check = |shown: &str, printed: &str| fits(&normal(shown.lines()), &normal(printed.lines()));
    assert!(check("GET / answered with 200, after 1.20 ms", "GET / answered with 200, after 304 µs"));
    assert!(!check("GET / answered with 200, after 1.20 ms", "GET / answered with 404, after 1.20 ms"));
    assert!(check("a  1.2 ±0.1 k/s  9 % [3, 13]  server", "a    175 ±7 /s    19 % [-3, 1.5] server"));
    assert!(!check("a  1.2 ±0.1 k/s  server", "a  1.2 ±0.1 k/s  generator"));
    assert!(check("run x-... in quintain.db", "run x-20261124-113257 in quintain.db"));
    assert!(!check("run x-... in quintain.db", "run x-20261124-113257 in other.db"));
    assert!(check("one\n...\nfour", "one\ntwo\nthree\nfour\n\n") && check("one\n...", "one"));
    assert!(!check("one\n...\nfour", "one\ntwo\nthree") && !check("one", "one\ntwo") && !check("", "one"));
    assert!(check("a...b...c", "a1b2c") && !check("a...b", "a1bc") && !check("ab...b", "ab"));
    assert!(check("0", "0") && !check("0", "4"), "exit codes are not measurements");
}

#[test]
fn commands_continue_on_the_next_line() {
    let text = "# A\n```console\n$ one \\\n    two\nsaid\n$ echo $?\n1\n```\n```sh mine.sh\nx\n```\n";
    let [console, file] = blocks(text).try_into().ok().unwrap();
    assert_eq!((console.line, file.info.as_str(), file.text.as_str()), (2, "sh mine.sh", "x\n"));
    let steps = steps(&console);
    assert_eq!((steps[0].line, steps[0].command.as_str(), steps.len()), (3, "one \\\n    two", 2));
    assert!(steps[0].shown == ["said"] && steps[1].is_exit_code() && steps[1].shown == ["1"]);
}
