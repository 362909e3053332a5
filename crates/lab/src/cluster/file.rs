//! The machines of a cluster, from a cluster file or the short form `subject=10.0.0.11,load=10.0.0.12-14`.

use std::collections::BTreeSet;
use std::time::Duration;

use config::Kind::{Flag, Form, Tables, Text, Word};
use config::Missing::{Is, Means, Mistake};
use config::keys::{key, words};
use config::render_keys::{self, tables};
use config::{Diagnostic, Keys, Kind, Report, Section, node};
use study::record::{ROLES, Role};

use crate::cpu_list;

const WITHIN: Duration = Duration::from_secs(20);
/// Maximum number of machines in a cluster.
pub const HOSTS_MAX: usize = 1024;
/// Roles needed for a study.
pub const STUDY: &[Role] = &[Role::Subject, Role::Load];
/// Roles needed for a load on a running server.
pub const LOAD: &[Role] = &[Role::Load];
const LOCAL: &str = "local";

/// The machines of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Default launcher; [`HostPlan::launcher`] takes precedence.
    pub launcher: Launcher,
    /// Command with `{node}`, `{hosts}` and `{count}` that starts all nodes; `None` with other launchers.
    pub start: Option<Vec<String>>,
    /// Time within which all nodes must be ready.
    pub within: Duration,
    /// Whether this binary is copied to the machines.
    pub deploy: bool,
    /// The machines in the order of the file: at most one for the server, at least one for generators.
    pub hosts: Vec<HostPlan>,
}

/// Program that starts a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// mpirun if it is installed and there is an allocation or more than two machines; otherwise ssh.
    Auto,
    /// One command, Open MPI's mpirun, that starts all nodes, which join over TLS.
    Mpirun,
    /// One user-defined command that starts all nodes, which join over TLS.
    Start,
    /// One ssh session per node, which is also the node's channel.
    Ssh,
    /// A child of the lab, on the lab's own machine.
    Local,
}

/// A machine of a cluster, and how to start its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Name of the machine in tables and messages.
    pub name: String,
    /// IP address or host name of the machine in the network that carries the load.
    pub address: String,
    /// Role of the machine in a trial: server or generator.
    pub role: Role,
    /// CPUs to use; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// Path of the quintain binary on the machine; `None` for `quintain` on the search path.
    pub quintain: Option<String>,
    /// Base of relative paths in commands; `None` for the same directory as on the lab's machine.
    pub directory: Option<String>,
    /// Destination for ssh: a name from ssh's configuration, or `user@host`; `None` for [`HostPlan::address`].
    pub ssh: Option<String>,
    /// Launcher of this node; `None` for [`Hosts::launcher`].
    pub launcher: Option<Launcher>,
}

const LAUNCHERS: &[(&str, Launcher)] =
    &[("auto", Launcher::Auto), ("mpirun", Launcher::Mpirun), ("ssh", Launcher::Ssh), ("local", Launcher::Local)];
const OWN_LAUNCHERS: &[(&str, Launcher)] = &[("ssh", Launcher::Ssh), ("local", Launcher::Local)];

const LAUNCHER: Kind = Word("launcher", || words(LAUNCHERS));
const OWN_LAUNCHER: Kind = Word("launcher", || words(OWN_LAUNCHERS));
const START: Kind = Form("a command with `{node}` in it", |text| {
    study::shell_words::split(text).is_ok_and(|words| words.iter().any(|word| word.contains("{node}")))
});
const NAME: Kind = Form("a name of letters, digits, `.`, `-`, `_` and `:`", is_name);
const CPUS: Kind = Form("CPUs such as `0-3,8`", |text| cpu_list::parse(text).is_ok_and(|cpus| !cpus.is_empty()));
const SSH: Kind = Form("a name for ssh, such as `ubuntu@10.0.0.12`", |text| {
    let (user, host) = text.split_once('@').unwrap_or(("user", text));
    is_name(user) && is_name(host)
});

static CLUSTER: Keys = Keys::new("", "A cluster").keys(&[
        key("launcher", LAUNCHER, "\"ssh\"", Is("\"auto\""))
            .text("what starts the nodes; `auto` is `mpirun` in an allocation and for more than two machines, where Open MPI 4 is installed, else `ssh`"),
        key("start", START, "\"srun -N{count} -w {hosts} --ntasks-per-node=1 {node}\"", Means("`launcher`"))
            .text("a command that starts all nodes, instead of `launcher`; `{node}`, `{hosts}` (with commas) and `{count}` are filled in"),
        key("within", Kind::Duration(1_000_000_000, 3_600_000_000_000), "\"2m\"", Is("\"20s\""))
            .text("all nodes must be there within this"),
        key("deploy", Flag, "true", Is("false")).text("copy this binary to each machine, as `--deploy` does"),
        key("host", Tables(&HOST), "[{ name = \"s1\", role = \"subject\" }, { name = \"l1\", role = \"load\" }]", Mistake)
            .text("the machines: one with the role `subject`, one or more with the role `load`"),
]);

static HOST: Keys = Keys::new("host", "A machine").keys(&[
    key("name", NAME, "\"l1\"", Mistake).text("its name in tables"),
    key("role", Word("role", || words(ROLES)), "\"load\"", Mistake).text("the server and its proxies, or a generator"),
    key("address", NAME, "\"10.0.0.12\"", Means("`name`, resolved"))
        .text("its address in the network of the load; servers listen on it"),
    key("cpus", CPUS, "\"0-7\"", Means("all")).text("the CPUs to use"),
    key("quintain", Text, "\"/opt/quintain\"", Means("`quintain` on the path"))
        .text("the binary there, of the same build"),
    key("directory", Text, "\"/srv/bench\"", Means("the same as here")).text("what paths in commands are relative to"),
    key("ssh", SSH, "\"ubuntu@bench-2\"", Means("`address`"))
        .text("destination for ssh, if different from the address"),
    key("launcher", OWN_LAUNCHER, "\"local\"", Means("the file's launcher"))
        .text("`local` for the machine the lab is on"),
]);

/// Whether `text` is an address or host name. ssh would parse a leading `-` as an option.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    !text.is_empty() && text.len() <= 255 && !text.starts_with('-') && text.chars().all(plain)
}

/// Reference of all keys, for docs/reference/cluster.md.
pub fn reference() -> String {
    let mut text =
        "Generated from crates/lab/src/cluster/file.rs: `cargo run -p lab --example cluster_reference`.\n".to_owned();
    for keys in tables(&CLUSTER) {
        let name = if keys.name.is_empty() { "The file".to_owned() } else { format!("`[[{}]]`", keys.name) };
        text += &format!("\n### {name}\n\n{}", render_keys::table(keys));
    }
    text
}

/// Parses a cluster file with machines of the `needed` roles. Fails with all errors, with positions.
pub fn parse(text: &str, needed: &[Role]) -> Result<Hosts, Vec<Diagnostic>> {
    let report = Report::new("the cluster", text, &[]);
    let table = node::document(text, &report);
    let section = Section::whole(&table, &CLUSTER, (), &report);
    section.check();
    if section.has("launcher") && section.has("start") {
        section.mistake("launcher", "`start` and `launcher` exclude each other", None);
    }
    let start = section.text("start").and_then(|text| study::shell_words::split(&text).ok());
    let launcher = section.choice("launcher", LAUNCHERS).unwrap_or(Launcher::Auto);
    let launcher = if start.is_some() { Launcher::Start } else { launcher };
    let within = section.duration_ns("within").map_or(WITHIN, Duration::from_nanos);
    let deploy = section.flag("deploy").unwrap_or(false);
    let sections = section.tables("host", "host");
    let earlier = report.count();
    let hosts = sections.iter().flatten().map(read).collect::<Vec<_>>();
    if report.count() == earlier && !hosts.is_empty() {
        // Only the first error at each position is reported.
        let mistakes = mistakes(&hosts, launcher, needed);
        if !mistakes.is_empty() {
            section.mistake("host", mistakes.join("; "), None);
        }
    }
    report.finish()?;
    Ok(Hosts { launcher, start, within, deploy, hosts })
}

/// Reads a machine. Errors are reported, and their values replaced.
fn read(host: &Section<'_>) -> HostPlan {
    host.check();
    let name = host.text("name").unwrap_or_default();
    HostPlan {
        address: host.text("address").unwrap_or_else(|| name.clone()),
        name,
        role: host.choice("role", ROLES).unwrap_or(Role::Load),
        cpus: host.text("cpus").and_then(|list| cpu_list::parse(&list).ok()),
        quintain: host.text("quintain"),
        directory: host.text("directory"),
        ssh: host.text("ssh"),
        launcher: host.choice("launcher", OWN_LAUNCHERS),
    }
}

/// Parses the short form: roles with names, addresses or ranges (`10.0.0.12-14`); `local` is the lab's own machine.
/// There must be machines of the `needed` roles. Fails with all errors, one sentence each.
pub fn short(text: &str, needed: &[Role]) -> Result<Hosts, Vec<String>> {
    let (mut hosts, mut wrong, mut role) = (Vec::new(), Vec::new(), None);
    for word in text.split(',').map(str::trim) {
        let name = match word.split_once('=') {
            None => word,
            Some((key, name)) => {
                role = ROLES.iter().find(|(known, _)| *known == key.trim()).map(|(_, role)| *role);
                if role.is_none() {
                    wrong.push(format!("unknown role `{}`: expected `subject` or `load`", key.trim().escape_debug()));
                }
                name.trim()
            }
        };
        match range(name) {
            None => wrong.push(format!("`{}` is not a host", name.escape_debug())),
            Some(names) => match role {
                Some(role) => hosts.extend(names.into_iter().map(|name| {
                    let launcher = (name == LOCAL).then_some(Launcher::Local);
                    let address = if launcher.is_some() { "127.0.0.1".to_owned() } else { name.clone() };
                    HostPlan { name, address, role, cpus: None, quintain: None, directory: None, ssh: None, launcher }
                })),
                None if word == name => {
                    wrong.push(format!("`{name}` has no role: write `subject={name}` or `load={name}`"))
                }
                None => {}
            },
        }
        if hosts.len() > HOSTS_MAX {
            break;
        }
    }
    // `local` may be listed several times, so the names need the role and a number.
    for role in [Role::Subject, Role::Load] {
        let mine = hosts.iter_mut().filter(|host: &&mut HostPlan| host.role == role && host.launcher.is_some());
        for (host, nth) in mine.zip(1..) {
            let suffix = if nth > 1 { nth.to_string() } else { String::new() };
            host.name = format!("{LOCAL}-{}{suffix}", role.word());
        }
    }
    if wrong.is_empty() {
        wrong = mistakes(&hosts, Launcher::Auto, needed);
    }
    let hosts = Hosts { launcher: Launcher::Auto, start: None, within: WITHIN, deploy: false, hosts };
    if wrong.is_empty() { Ok(hosts) } else { Err(wrong) }
}

/// Expands a range such as `10.0.0.12-14` and returns any other name as is; `None` if invalid.
fn range(text: &str) -> Option<Vec<String>> {
    let run = || {
        let (front, last) = text.split_once('-')?;
        let (network, first) = front.rsplit_once('.')?;
        front.parse::<std::net::Ipv4Addr>().ok()?;
        let (first, last) = (first.parse::<u8>().ok()?, last.parse::<u8>().ok()?);
        Some((first..=last).map(|number| format!("{network}.{number}")).collect::<Vec<_>>())
    };
    run().or_else(|| is_name(text).then(|| vec![text.to_owned()])).filter(|names| !names.is_empty())
}

fn mistakes(hosts: &[HostPlan], launcher: Launcher, needed: &[Role]) -> Vec<String> {
    let mut wrong = Vec::new();
    let count = |role| hosts.iter().filter(|host| host.role == role).count();
    match count(Role::Subject) {
        0 if needed.contains(&Role::Subject) => {
            wrong.push("no machine has the role `subject`: the server needs one".to_owned());
        }
        0 | 1 => {}
        several => wrong.push(format!("{several} machines have the role `subject`: the server runs on one")),
    }
    if count(Role::Load) == 0 {
        wrong.push("no machine has the role `load`: a generator needs one".to_owned());
    }
    if hosts.len() > HOSTS_MAX {
        wrong.push(format!("more than {HOSTS_MAX} machines"));
    }
    let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for host in hosts {
        if !names.insert(&host.name) {
            wrong.push(format!("two machines are called `{}`", host.name));
        }
        let launcher = host.launcher.unwrap_or(launcher);
        if launcher == Launcher::Start && (&host.quintain, &host.directory) != (&hosts[0].quintain, &hosts[0].directory)
        {
            wrong.push(format!(
                "`{}` has another `quintain` or `directory` than `{}`, and `start` starts both with one command",
                host.name, hosts[0].name
            ));
        }
        if launcher == Launcher::Mpirun && host.ssh.as_ref().unwrap_or(&host.address).contains(['@', ':']) {
            wrong.push(format!(
                "`{}`: mpirun takes a name or an address of IPv4, and the user from the configuration of ssh",
                host.name
            ));
        }
        // Local machines may share an address, so that users can try out a cluster on one machine.
        let is_local = launcher == Launcher::Local || host.address.starts_with("127.");
        if !addresses.insert(&host.address) && !is_local {
            wrong.push(format!("two machines have the address `{}`", host.address));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
deploy = true
[[host]]
name = "s1"
address = "10.0.0.11"
role = "subject"
[[host]]
name = "l1"
role = "load"
cpus = "0-2,5"
ssh = "me@l1.example"
[[host]]
name = "here"
address = "127.0.0.1"
role = "load"
launcher = "local"
"#;

    #[test]
    fn parses_a_cluster_file() {
        let hosts = parse(GOOD, STUDY).unwrap();
        assert!(hosts.deploy && hosts.launcher == Launcher::Auto && hosts.within.as_secs() == 20);
        let [s1, l1, here] = hosts.hosts.as_slice() else { panic!("{hosts:?}") };
        assert_eq!((s1.role, s1.address.as_str(), s1.launcher), (Role::Subject, "10.0.0.11", None));
        assert_eq!(
            (l1.address.as_str(), l1.cpus.as_deref(), l1.ssh.as_deref()),
            ("l1", Some(&[0, 1, 2, 5][..]), Some("me@l1.example"))
        );
        assert_eq!(here.launcher, Some(Launcher::Local));
    }

    fn wrong(text: &str, expected: &[&str]) {
        let told = parse(text, STUDY).unwrap_err();
        let told = told.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn reports_every_error_in_a_file() {
        wrong("", &["1:1: the cluster has no `host`"]);
        wrong(
            "lancher = 'ssh'\n[[host]]\nname = '-x'\nrole = 'loads'\ncpus = '3-1'\nssh = '-oProxyCommand=x'\n[[host]]\nrole = 'load'",
            &[
                "1:1: unknown key `lancher`",
                "3:8: `host.name` must be a name of letters, digits, `.`, `-`, `_` and `:`, not `-x`",
                "4:8: unknown role `loads`",
                "5:8: `host.cpus` must be CPUs such as `0-3,8`, not `3-1`",
                "6:7: `host.ssh` must be a name for ssh, such as `ubuntu@10.0.0.12`, not `-oProxyCommand=x`",
                "7:1: `host` has no `name`",
            ],
        );
        wrong(
            "[[host]]\nname = 'a'\nrole = 'load'\naddress = '10.0.0.1'\n[[host]]\nname = 'a'\nrole = 'load'\naddress = '10.0.0.1'",
            &["1:1: no machine has the role `subject`: the server needs one; two machines are called `a`; \
               two machines have the address `10.0.0.1`"],
        );
    }

    #[test]
    fn parses_a_start_command() {
        let machine = |name: &str, more: &str| {
            let role = if name == "a" { "subject" } else { "load" };
            format!("[[host]]\nname = '{name}'\nrole = '{role}'\n{more}\n")
        };
        let text =
            "start = 'srun -N{count} {node}'\nwithin = '1m'\n".to_owned() + &machine("a", "") + &machine("b", "");
        let hosts = parse(&text, STUDY).unwrap();
        assert_eq!((hosts.launcher, hosts.within.as_secs()), (Launcher::Start, 60));
        assert_eq!(hosts.start.unwrap(), ["srun", "-N{count}", "{node}"]);
        wrong(
            &("start = 'srun quintain'\nlauncher = 'ssh'\n".to_owned() + &machine("a", "") + &machine("b", "")),
            &[
                "1:9: `start` must be a command with `{node}` in it, not `srun quintain`",
                "2:12: `start` and `launcher` exclude each other",
            ],
        );
        wrong(
            &("start = '{node}'\n".to_owned() + &machine("a", "") + &machine("b", "directory = '/srv'")),
            &["2:1: `b` has another `quintain` or `directory` than `a`, and `start` starts both with one command"],
        );
        wrong(
            &("launcher = 'mpirun'\n".to_owned() + &machine("a", "ssh = 'me@a'") + &machine("b", "")),
            &["2:1: `a`: mpirun takes a name or an address of IPv4, and the user from the configuration of ssh"],
        );
    }

    fn machines(text: &str) -> Vec<(String, String, &'static str)> {
        let hosts = short(text, STUDY).unwrap().hosts;
        hosts.into_iter().map(|host| (host.name, host.address, host.role.word())).collect()
    }

    #[test]
    fn parses_the_short_form() {
        let own = |name: &str, address: &str, role| (name.to_owned(), address.to_owned(), role);
        assert_eq!(
            machines("subject=10.0.0.11,load=10.0.0.12-13, bench-4"),
            [
                own("10.0.0.11", "10.0.0.11", "subject"),
                own("10.0.0.12", "10.0.0.12", "load"),
                own("10.0.0.13", "10.0.0.13", "load"),
                own("bench-4", "bench-4", "load"),
            ]
        );
        assert_eq!(
            machines("subject=local,load=local,local"),
            [
                own("local-subject", "127.0.0.1", "subject"),
                own("local-load", "127.0.0.1", "load"),
                own("local-load2", "127.0.0.1", "load"),
            ]
        );
        for (text, expected) in [
            ("", &["`` is not a host"][..]),
            ("10.0.0.1", &["`10.0.0.1` has no role: write `subject=10.0.0.1` or `load=10.0.0.1`"]),
            ("server=a,load=b c", &["unknown role `server`: expected `subject` or `load`", "`b c` is not a host"]),
            ("load=10.0.0.9-3", &["`10.0.0.9-3` is not a host"]),
            (
                "subject=a,b",
                &[
                    "2 machines have the role `subject`: the server runs on one",
                    "no machine has the role `load`: a generator needs one",
                ],
            ),
            ("subject=a,load=a", &["two machines are called `a`", "two machines have the address `a`"]),
        ] {
            assert_eq!(short(text, STUDY).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn load_on_a_running_server_needs_no_subject() {
        let hosts = short("load=10.0.0.12-13", LOAD).unwrap().hosts;
        assert_eq!(hosts.len(), 2);
        assert_eq!(short("subject=a", LOAD).unwrap_err(), ["no machine has the role `load`: a generator needs one"]);
        assert_eq!(parse("[[host]]\nname = 'a'\nrole = 'load'", LOAD).unwrap().hosts.len(), 1);
        assert!(short("load=a", STUDY).is_err());
    }

    #[test]
    fn the_reference_is_what_is_declared() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cluster.md")).unwrap();
        let (_, rest) = page.split_once("\n## Every key\n\n").expect("the page has the section");
        let written = rest.find("\n## ").map_or(rest, |at| &rest[..at]);
        assert!(written == reference(), "`cargo run -p lab --example cluster_reference` writes it");
    }
}
