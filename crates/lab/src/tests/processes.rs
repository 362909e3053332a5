//! Tests of processes that the lab starts and stops.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::{alive, eventually, here, number_in, stand_in};
use crate::ports_and_readiness::{self, NotReady};
use crate::process_start_and_stop::{Child, Exit, Launch, Supervisor, command, hears_sigterm};
use study::shell_words;

const LONG: Duration = Duration::from_secs(20);

fn spawn(supervisor: &Supervisor, command: &str) -> Child {
    supervisor.spawn(Launch::new(&shell_words::split(command).unwrap(), Path::new("/"))).unwrap()
}

fn supervisor(folder: &Path) -> Supervisor {
    Supervisor::start(&stand_in(folder, "quintain")).unwrap()
}

#[test]
fn process_is_pinned_tied_and_captured() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = supervisor(folder.path());
    let cpu = crate::host_facts::read(Path::new("/")).cpus.last().unwrap().index;
    let words = shell_words::split(
        "/bin/sh -c 'grep Cpus_allowed_list: /proc/self/status; echo $X; pwd; echo last >&2; exit 3'",
    )
    .unwrap();
    let environment = BTreeMap::from([("X".to_owned(), "a b".to_owned())]);
    let launch = Launch { cpus: &[cpu], environment: &environment, ..Launch::new(&words, folder.path()) };
    let mut child = supervisor.spawn(launch).unwrap();
    assert_eq!(child.wait(LONG), Some(Exit::Code(3)));
    let folder = folder.path().canonicalize().unwrap();
    assert_eq!(child.last_words(), format!("Cpus_allowed_list:\t{cpu}\na b\n{}\nlast", folder.display()));
}

#[test]
fn missing_program_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = spawn(&supervisor(folder.path()), "quintain-no-such-program");
    assert_eq!(child.wait(LONG), Some(Exit::Code(7)));
    assert!(child.last_words().contains("No such file"), "{}", child.last_words());
}

#[test]
fn missing_cpu_is_an_error() {
    let Err(error) = crate::exec::become_command(&[4_000_000], None, &["true".into()]);
    assert!(error.to_string().contains("4000000"), "{error}");
    let Err(error) = crate::exec::become_command(&[], None, &[]);
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn process_ends_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = spawn(
        &supervisor(folder.path()),
        "/bin/sh -c 'trap \"echo bye; exit 0\" TERM; echo up; while :; do sleep 0.01; done'",
    );
    assert!(eventually(|| child.last_words() == "up"));
    assert_eq!(child.stop(LONG).to_string(), "exit 0");
    assert!(child.last_words().ends_with("bye"), "{}", child.last_words());
    assert_eq!(child.stop(LONG).to_string(), "exit 0", "stopping twice changes nothing");
}

#[test]
fn process_that_ignores_sigterm_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        spawn(&supervisor(folder.path()), "/bin/sh -c 'trap \"\" TERM; echo up; while :; do sleep 0.01; done'");
    assert!(eventually(|| child.last_words() == "up"));
    let stopped = child.stop(Duration::from_millis(100));
    assert_eq!(stopped.to_string(), "forced after 100ms");
    let sentence = "ignored SIGTERM: still running after 100ms, then killed (`stop_timeout`)";
    assert_eq!(stopped.ignored_sigterm().as_deref(), Some(sentence));
    assert!(!alive(child.pid()));
}

#[test]
fn stopped_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    // The trap is a handler. Without one, SIGTERM would end even a stopped process.
    let mut child = spawn(&supervisor(folder.path()), "/bin/sh -c 'trap \"exit 0\" TERM; echo up; kill -STOP $$'");
    let stat = format!("/proc/{}/stat", child.pid());
    assert!(eventually(|| std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))));
    assert_eq!(child.stop(Duration::from_millis(100)).to_string(), "forced after 100ms");
    assert!(!alive(child.pid()));
}

#[test]
fn endless_output_neither_blocks_nor_fills_memory() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = supervisor(folder.path());
    let port = ports_and_readiness::free_port().unwrap();
    let mut child = spawn(&supervisor, &format!("quintain serve chatty {port}"));
    assert_eq!(ports_and_readiness::wait(&mut child, here(port), port, &|| None, LONG, &|| false), Ok(()));
    assert!(eventually(|| child.last_words().len() > 4000));
    let stopped = child.stop(LONG);
    assert_eq!((stopped.to_string().as_str(), stopped.ignored_sigterm()), ("signal 15", None));
    assert!(child.last_words().len() < 10_000);
}

#[test]
fn readiness_wait_ends_on_response_exit_or_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = supervisor(folder.path());
    let port = ports_and_readiness::free_port().unwrap();
    let mut child = spawn(&supervisor, &format!("quintain serve well {port}"));
    assert_eq!(ports_and_readiness::wait(&mut child, here(port), port, &|| None, LONG, &|| false), Ok(()));
    assert_eq!(crate::process_sockets::listening_addresses(Path::new("/proc"), &child.family()), [here(port)]);
    drop(child);
    assert!(ports_and_readiness::is_free(port));
    let mut child = spawn(&supervisor, &format!("quintain serve early-exit {port}"));
    assert_eq!(
        ports_and_readiness::wait(&mut child, here(port), port, &|| None, LONG, &|| false),
        Err(NotReady::Exited(Exit::Code(7)))
    );
    assert_eq!(child.last_words(), "bind: permission denied");
    let mut child = spawn(&supervisor, &format!("quintain serve deaf {port}"));
    assert_eq!(
        ports_and_readiness::wait(&mut child, here(port), port, &|| None, Duration::from_millis(50), &|| false),
        Err(NotReady::TimedOut)
    );
    let somebody_else = std::net::TcpListener::bind(here(port)).unwrap();
    assert_eq!(
        ports_and_readiness::wait(&mut child, here(port), port, &|| None, Duration::from_millis(50), &|| false),
        Err(NotReady::Foreign)
    );
    drop(somebody_else);
    assert_eq!(
        ports_and_readiness::wait(&mut child, here(port), port, &|| None, LONG, &|| true),
        Err(NotReady::Interrupted)
    );
}

#[test]
fn dropping_a_child_kills_its_descendants() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = supervisor(folder.path());
    let (port, file) = (ports_and_readiness::free_port().unwrap(), folder.path().join("stray"));
    let mut child = spawn(&supervisor, &format!("quintain serve with-stray {port} {}", file.display()));
    let bystander = spawn(&supervisor, "quintain serve deaf 0");
    assert_eq!(ports_and_readiness::wait(&mut child, here(port), port, &|| None, LONG, &|| false), Ok(()));
    assert!(eventually(|| file.exists()));
    let (pid, stray) = (child.pid(), number_in(&file));
    assert!(alive(pid) && alive(stray));
    drop(child);
    assert!(!alive(pid));
    assert!(eventually(|| !alive(stray)), "it left the group but not the family");
    assert!(alive(bystander.pid()));
}

#[test]
fn group_dies_with_its_leader() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = spawn(&supervisor(folder.path()), "/bin/sh -c 'sleep 1000 & echo $!'");
    assert_eq!(child.wait(LONG), Some(Exit::Code(0)));
    let left: u32 = child.last_words().parse().unwrap();
    assert!(eventually(|| !alive(left)));
}

#[test]
fn watchdog_kills_the_rest_when_its_pipe_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let exe = stand_in(folder.path(), "quintain");
    let mut watchdog = command(&exe).arg("watchdog").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let start = |mark: &str| {
        use std::os::unix::process::CommandExt;
        command("sleep").arg("1000").env("QUINTAIN_CHILD", mark).process_group(0).spawn().unwrap()
    };
    let mark = format!("test-{}-", std::process::id());
    let mut children = [start("a"), start("b"), start(&format!("{mark}7"))];
    let mut pipe = watchdog.stdin.take().unwrap();
    let (registered, ended) = (children[0].id(), children[1].id());
    let lines = format!("+mark QUINTAIN_CHILD={mark}\n+group {registered}\n+group {ended}\n-group {ended}\n");
    std::io::Write::write_all(&mut pipe, lines.as_bytes()).unwrap();
    assert!(children.iter_mut().all(|child| child.try_wait().unwrap().is_none()));
    drop(pipe);
    assert!(watchdog.wait().unwrap().success());
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(children[0].wait().unwrap().signal(), Some(9), "a registered group");
    assert_eq!(children[2].wait().unwrap().signal(), Some(9), "a process that carries the mark");
    assert_eq!(children[1].try_wait().unwrap(), None, "a group that had ended, so another process may own the number");
    children[1].kill().unwrap();
    children[1].wait().unwrap();
}

#[test]
fn detects_processes_that_ignore_sigterm() {
    let proc = tempfile::tempdir().unwrap();
    let status = |pid: u32, text: &str| {
        std::fs::create_dir_all(proc.path().join(pid.to_string())).unwrap();
        std::fs::write(proc.path().join(format!("{pid}/status")), text).unwrap();
        hears_sigterm(proc.path(), pid)
    };
    assert!(!status(7, "Name:\tx\nNSpid:\t7\t1\nSigCgt:\t0000000100000000\n"));
    assert!(status(8, "NSpid:\t8\t1\nSigCgt:\t0000000000004002\n"), "it has a handler");
    assert!(status(9, "NSpid:\t1\nSigCgt:\t0000000000000000\n"), "not in a namespace of its own");
    assert!(status(10, "NSpid:\t10\t11\nSigCgt:\t0000000000000000\n"), "not the first");
    assert!(hears_sigterm(proc.path(), 99));
}

#[test]
fn reports_a_killed_watchdog() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = Supervisor::start(&stand_in(folder.path(), "quintain")).unwrap();
    supervisor.check().unwrap();
    supervisor.kill_watchdog();
    let error = supervisor.check().unwrap_err().to_string();
    assert_eq!(error, "it ended (signal: 9 (SIGKILL)), and without it nothing is started; start again");
}
