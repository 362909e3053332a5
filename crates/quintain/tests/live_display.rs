//! The live display in a terminal that `script` (util-linux) emulates.
#![expect(clippy::disallowed_methods, reason = "this test acts as a person at a terminal and waits")]

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::common::{Folder, QUINTAIN};

/// Time limit, generous because other tests may keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(120);

const STUDY: &str = "question = 'Does it end?'\n[subject]\ncommand = 'quintain serve pingpong -p {port}'\n\
    [load]\nprotocol = 'pingpong'\nclients = '{clients}'\nshare_cpus = true\nwarmup = '50ms'\nstop = '400ms'\n\
    [factors]\nclients = [1, 2]\n[trials]\nstop = { min = 400 }\n";

fn until(said: &Receiver<Vec<u8>>, all: &mut String, text: &str) {
    let begun = Instant::now();
    while !all.contains(text) {
        assert!(begun.elapsed() < PATIENCE, "`{text}` did not come:\n{all}");
        match said.recv_timeout(Duration::from_millis(200)) {
            Ok(bytes) => *all += &String::from_utf8_lossy(&bytes),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(error) => panic!("`{text}` did not come, {error}:\n{all}"),
        }
    }
}

#[test]
fn run_on_a_terminal_shows_its_load_until_ctrl_c() {
    let folder = Folder::new();
    folder.write("ends.toml", STUDY);
    let line = format!("trap : INT; stty cols 100 rows 40; '{QUINTAIN}' run ends; echo exit $?; '{QUINTAIN}' runs");
    let mut script = Command::new("script");
    script.args(["-qefc", &line, "/dev/null"]).current_dir(folder.path());
    script.env("TERM", "xterm").env_remove("NO_COLOR").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = script.spawn().expect("`script` of util-linux");
    let (mut keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (tell, said) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = out.read(&mut bytes) {
            if tell.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut all = String::new();
    // The CPU use appears after a window has ended and two reports have shown the CPU time between them.
    until(&said, &mut all, "generator ");
    keys.write_all(b"\x03").unwrap();
    until(&said, &mut all, "exit 130");
    until(&said, &mut all, "interrupted");
    drop(keys);
    child.wait().unwrap();
    let mut more = folder.command(&["run", "ends", "--resume", "latest"]);
    let mut more = more.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = more.stderr.take().unwrap();
    let mut first = [0; 256];
    let count = err.read(&mut first).unwrap();
    let first = String::from_utf8_lossy(&first[..count]).into_owned();
    more.kill().unwrap();
    more.wait().unwrap();
    assert!(first.contains("trials done") && !first.contains('\u{1b}'), "{first}");
}
