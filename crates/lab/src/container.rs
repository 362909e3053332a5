//! Containers: finds an engine that can start one, builds command lines and removes leftovers. The engine's client is a
//! child. Once the client is dead, leftovers are found by name, in the engine's records and among podman's monitors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use study::plan::{ContainerPlan, EngineChoice};
use study::shell_words;

use crate::process_start_and_stop::{Exit, Job, Launch, MARK, Supervisor, kill, output};
use crate::procfs;

pub(crate) const LABEL: &str = "quintain";
const TO_ASK: Duration = Duration::from_secs(10);
/// Time limit of a removal, which may have to wait for a lock.
const TO_REMOVE: Duration = Duration::from_secs(20);
/// Time limit of the test that starts a container. An image's first container takes longer than later ones.
const TO_TRY: Duration = Duration::from_secs(30);
const REMOVALS_MAX: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);
/// Name of a program that no image contains. An engine that reports the program missing can start containers.
const NOT_THERE: &str = "/quintain-starts-containers-here";
/// Exit status of an engine's client if the program to run is not in the image.
const NOT_FOUND: i32 = 127;

/// An image, and an engine that has started a container from the image on this machine.
pub(crate) struct Image {
    pub(crate) engine: String,
    pub(crate) id: String,
    client: Vec<String>,
    options: Vec<&'static str>,
}

#[derive(Default)]
pub(crate) struct Images(RefCell<BTreeMap<(EngineChoice, String), FoundImage>>);

type FoundImage = Result<Rc<Image>, String>;

impl Images {
    /// Finds a server's image and an engine that can start it. Fails if no container can start.
    pub(crate) fn find(&self, plan: &ContainerPlan, supervisor: &Supervisor) -> FoundImage {
        let key = (plan.engine, plan.image.clone());
        if let Some(found) = self.0.borrow().get(&key) {
            return found.clone();
        }
        let engines = match plan.engine {
            EngineChoice::Auto => vec!["podman", "docker"],
            engine => vec![engine.name()],
        };
        let mut why = Vec::new();
        let find = |engine| find_with(engine, &plan.image, supervisor).map_err(|reason| why.push(reason)).ok();
        let found = engines.into_iter().find_map(find).map(Rc::new).ok_or_else(|| why.join("; "));
        self.0.borrow_mut().insert(key, found.clone());
        found
    }
}

fn find_with(engine: &str, image: &str, supervisor: &Supervisor) -> Result<Image, String> {
    let ask = |words: &[&str]| run_client(&[engine.to_owned()], words, TO_ASK);
    let version = match ask(&["version", "--format", "{{.Client.Version}}"]) {
        Ok((Exit::Code(0), text)) => format!("{engine} {}", text.lines().next_back().unwrap_or_default().trim()),
        // Without its daemon, docker fails with a message.
        Ok((_, text)) => return Err(format!("{engine}: {}", last_line(&text))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(format!("{engine} is not installed")),
        Err(error) => return Err(format!("{engine}: {error}")),
    };
    let id = match ask(&["image", "inspect", "--format", "{{.Id}}", image]) {
        Ok((Exit::Code(0), text)) => text.lines().map(str::trim).rfind(|line| is_id(line)).map(str::to_owned),
        Ok((_, text)) if !is_missing(&text) => return Err(format!("{engine}: {}", last_line(&text))),
        Ok(_) => None,
        Err(error) => return Err(format!("{engine}: {error}")),
    };
    let id = id.ok_or_else(|| {
        format!("{engine} has no image `{image}`: pull it with `{engine} pull {image}`, or build it, which `build` does before the first trial")
    })?;
    // Without systemd, podman must manage control groups itself. Some runtimes do not support cgroups version 1.
    let tries: &[(&[&str], &[&'static str])] = match engine {
        "podman" => &[
            (&["podman"], &[]),
            (&["podman", "--cgroup-manager=cgroupfs"], &[]),
            (&["podman", "--cgroup-manager=cgroupfs"], &["--runtime", "runc"]),
        ],
        _ => &[(&["docker"], &[])],
    };
    let mut why = None;
    for (client, options) in tries {
        let client = client.iter().map(|word| (*word).to_owned()).collect();
        let image = Image { engine: version.clone(), id: id.clone(), client, options: options.to_vec() };
        match image.starts(supervisor) {
            Ok(()) => return Ok(image),
            Err(reason) => _ = why.get_or_insert(reason),
        }
    }
    Err(format!("{engine} cannot start a container: {}", why.unwrap_or_default()))
}

impl Image {
    pub(crate) fn words(
        &self,
        plan: &ContainerPlan,
        name: &str,
        cpus: &[u32],
        environment: &BTreeMap<String, String>,
        address: SocketAddr,
        arguments: &[String],
    ) -> Result<Vec<String>, String> {
        let mut options = shell_words::arguments(&plan.options).map_err(|mistake| mistake.to_string())?;
        options.extend(environment.keys().flat_map(|variable| ["--env".to_owned(), variable.clone()]));
        if !cpus.is_empty() {
            options.extend(["--cpuset-cpus".to_owned(), crate::cpu_list::format(cpus)]);
        }
        match plan.publish {
            None => options.extend(["--network", "host"].map(str::to_owned)),
            Some(inside) => options.extend(["--publish".to_owned(), format!("{address}:{inside}")]),
        }
        Ok(self.run(name, &options, arguments))
    }

    fn run(&self, name: &str, options: &[String], arguments: &[String]) -> Vec<String> {
        let mut words = self.client.clone();
        words.extend(["run", "--rm", "--pull", "never", "--log-driver", "none", "--name", name].map(str::to_owned));
        words.extend(["--label".to_owned(), format!("{LABEL}={name}"), "--env".to_owned(), MARK.to_owned()]);
        words.extend(self.options.iter().map(|option| (*option).to_owned()));
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let pid_max = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok().and_then(|max| max.trim().parse().ok());
        words.extend(ulimits(&limits, pid_max).into_iter().flat_map(|limit| ["--ulimit".to_owned(), limit]));
        words.extend_from_slice(options);
        words.push(self.id.clone());
        words.extend_from_slice(arguments);
        words
    }

    pub(crate) fn job(&self, name: &str) -> Job {
        Job { client: self.client.clone(), name: name.to_owned() }
    }

    /// Starts a container whose program is missing. Fails with the reason if the engine cannot start containers.
    fn starts(&self, supervisor: &Supervisor) -> Result<(), String> {
        let name = supervisor.container_name();
        let options = ["--network", "none", "--entrypoint", NOT_THERE].map(str::to_owned);
        let words = self.run(&name, &options, &[]);
        let launch = Launch { container: Some(self.job(&name)), ..Launch::new(&words, Path::new("/")) };
        let mut child = supervisor.spawn(launch).map_err(|error| error.to_string())?;
        match child.wait(TO_TRY) {
            Some(Exit::Code(NOT_FOUND)) => Ok(()),
            Some(exit) => Err(format!("{} ({exit})", last_line(&child.last_words()))),
            None => Err(format!("no container within {TO_TRY:?}")),
        }
    }

    pub(crate) fn pid(&self, name: &str) -> Option<u32> {
        let inspect = ["inspect", "--format", "{{.State.Pid}}", name];
        let Ok((Exit::Code(0), text)) = run_client(&self.client, &inspect, TO_ASK) else { return None };
        text.lines().filter_map(|line| line.trim().parse().ok()).rfind(|pid| *pid > 0)
    }
}

impl Job {
    /// Removes the container and returns whether it is gone. Looks repeatedly if `killed`, because it may appear late.
    pub(crate) fn remove(&self, killed: bool) -> bool {
        let client = |arguments: &[&str]| run_client(&self.client, arguments, TO_REMOVE);
        let filter = format!("name=^{}$", self.name);
        let mut list = vec!["ps", "--all", "--quiet", "--filter", &filter];
        if self.client.first().is_some_and(|program| program == "podman") {
            // Includes containers that exist only in podman's storage.
            list.insert(2, "--external");
        }
        let looks = if killed { 3 } else { 1 };
        let mut gone = 0;
        for _ in 0..REMOVALS_MAX {
            let monitors = if killed { kill_monitor(Path::new("/proc"), &self.name) } else { 0 };
            let listed = !matches!(client(&list), Ok((Exit::Code(0), text)) if text.trim().is_empty());
            if listed {
                // Without this, `rm` would send SIGTERM and wait.
                kill_monitor(Path::new("/proc"), &self.name);
                let _ = client(&["rm", "--force", "--volumes", &self.name]);
            }
            gone = if listed || monitors > 0 { 0 } else { gone + 1 };
            if gone == looks {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        false
    }
}

fn run_client(client: &[String], arguments: &[&str], limit: Duration) -> std::io::Result<(Exit, String)> {
    let words = client.iter().map(String::as_str).chain(arguments.iter().copied()).collect::<Vec<_>>();
    output(&words, Path::new("."), limit)
}

fn kill_monitor(proc: &Path, name: &str) -> usize {
    let all = procfs::pids(proc).collect::<Vec<_>>();
    let mut found = all.iter().copied().filter(|pid| is_monitor(proc, *pid, name)).collect::<Vec<_>>();
    if found.is_empty() {
        return 0;
    }
    let parent = |pid: u32| u32::try_from(procfs::number(&procfs::read(proc, pid, "status")?, "PPid")?).ok();
    let parents = all.iter().filter_map(|pid| Some((*pid, parent(*pid)?))).collect::<Vec<_>>();
    let mut next = 0;
    while let Some(of) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
        next += 1;
    }
    found.into_iter().filter(|pid| kill(*pid)).count()
}

fn is_monitor(proc: &Path, pid: u32, name: &str) -> bool {
    let line = procfs::read(proc, pid, "cmdline").unwrap_or_default();
    let mut words = line.split('\0');
    words.next().is_some_and(|program| Path::new(program).ends_with("conmon")) && words.any(|word| word == name)
}

/// Returns the limits of this process as values of `--ulimit`. An engine's default limits may exceed what it can grant
/// or differ from this process's limits. Limits on processes are capped at `pid_max`, as engines do by default.
fn ulimits(limits: &str, pid_max: Option<u64>) -> Vec<String> {
    let limit = |(line, name, most): (&str, &str, Option<u64>)| {
        let mut values = limits.lines().find_map(|text| text.strip_prefix(line))?.split_whitespace();
        let value = |text: &str| {
            let number = text.parse::<u64>().ok().into_iter().chain(most).min();
            number.map_or("-1".to_owned(), |number| number.to_string())
        };
        Some(format!("{name}={}:{}", value(values.next()?), value(values.next()?)))
    };
    [("Max open files", "nofile", None), ("Max processes", "nproc", pid_max)].into_iter().filter_map(limit).collect()
}

fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_missing(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let known = ["not known", "no such image", "no such object", "unable to find", "failed to find"];
    known.iter().any(|words| text.contains(words))
}

fn last_line(text: &str) -> &str {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no output")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max processes             96365                unlimited            processes
Max open files            1024                 20000                files     ";

    #[test]
    fn passes_on_the_limits_of_this_process() {
        assert_eq!(ulimits(LIMITS, None), ["nofile=1024:20000", "nproc=96365:-1"]);
        assert_eq!(ulimits(LIMITS, Some(32_768)), ["nofile=1024:20000", "nproc=32768:32768"]);
        assert_eq!(ulimits("", None), Vec::<String>::new());
    }

    fn image(options: &[&'static str]) -> Image {
        let client = vec!["podman".to_owned(), "--cgroup-manager=cgroupfs".to_owned()];
        Image { engine: "podman 4.3.1".to_owned(), id: "08cc92d0900c".to_owned(), client, options: options.to_vec() }
    }

    fn line(plan: &ContainerPlan) -> String {
        let address = "127.0.0.1:18000".parse().unwrap();
        let arguments = ["-p".to_owned(), "18000".to_owned()];
        let environment = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let image = image(&["--runtime", "runc"]);
        let mut words = image.words(plan, "quintain-1-0", &[0, 1], &environment, address, &arguments).unwrap();
        let at = words.iter().position(|word| word == "--ulimit").unwrap();
        words.drain(at..at + 4);
        words.join(" ")
    }

    #[test]
    fn builds_container_command_lines() {
        let plan = ContainerPlan {
            image: "mine".to_owned(),
            options: "--memory '1 g'".to_owned(),
            ..ContainerPlan::default()
        };
        assert_eq!(
            line(&plan),
            "podman --cgroup-manager=cgroupfs run --rm --pull never --log-driver none --name quintain-1-0 --label quintain=quintain-1-0 \
             --env QUINTAIN_CHILD --runtime runc --memory 1 g --env A --cpuset-cpus 0-1 --network host 08cc92d0900c -p 18000"
        );
        let published = ContainerPlan { publish: Some(6379), options: String::new(), ..plan };
        assert!(line(&published).ends_with("--cpuset-cpus 0-1 --publish 127.0.0.1:18000:6379 08cc92d0900c -p 18000"));
    }

    #[test]
    fn recognizes_the_monitor_of_a_container() {
        let proc = tempfile::tempdir().unwrap();
        let process = |pid: u32, line: &str| {
            fs::create_dir_all(proc.path().join(pid.to_string())).unwrap();
            fs::write(proc.path().join(format!("{pid}/cmdline")), line.replace(' ', "\0")).unwrap();
            is_monitor(proc.path(), pid, "quintain-1-0")
        };
        assert!(process(7, "/usr/bin/conmon -c 08cc -n quintain-1-0 --runtime runc"));
        assert!(!process(8, "/usr/bin/conmon -c 08cc -n quintain-1-01"));
        assert!(!process(9, "/usr/bin/podman run --name quintain-1-0"));
    }

    #[test]
    fn parses_engine_output() {
        for text in ["Error: inspecting object: x: image not known", "Error response from daemon: No such image: x"] {
            assert!(is_missing(text), "{text}");
        }
        assert!(!is_missing("Cannot connect to the Docker daemon"));
        assert!(is_id("sha256:08cc92d0900c5595") && is_id("08cc92d0900c") && !is_id("time=\"now\"") && !is_id("abc"));
        assert_eq!((last_line("a\n b \n\n"), last_line("")), ("b", "no output"));
    }
}
