//! The seam between the lab and `quintain node`, the process on each machine of a cluster: every line that either writes to the other.
//!
//! A node does on its machine what the lab does on its own: it starts, pins, watches and ends a server, or a generator. It says
//! [`Said::Hello`] first, then answers orders, which are carried out in the order they come. Both sides write a line at least once a second
//! ([`BEAT`]), and neither waits for the other longer than [`SILENCE_MAX`]: a node whose lab is silent ends, with all that it has started.
//!
//! Moments are on the monotonic clock of the node's machine (`CLOCK_MONOTONIC`); the lab translates them.

use std::net::IpAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Point;
use crate::record::{BuildOutcome, Failure, Finding, Host, Interface, NetworkCounters, Probe, ProxyUse, SubjectUse};
use crate::seam::{Announced, Heard, Span, Told};
use crate::spec::LoadSpec;
use crate::warning::Warning;

/// The version of these lines.
pub const PROTOCOL: u32 = 1;
/// Each side writes a line at least this often.
pub const BEAT: Duration = Duration::from_secs(1);
/// A side that hears nothing for so long takes the other for lost.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What the lab writes: one object per line, with one of these keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// The lab is alive.
    Alive {},
    /// Answered by [`Said::Pong`] at once.
    Ping {
        /// Given back.
        at_ns: u64,
    },
    /// Run a build command on these CPUs; answered by [`Said::Built`].
    Build {
        /// The command.
        command: String,
        /// Its working directory, relative to that of the node.
        directory: Option<String>,
        /// Numbers of CPUs.
        cpus: Vec<u32>,
    },
    /// Measure the speed of these CPUs; answered by [`Said::Probed`].
    Probe {
        /// Numbers of CPUs.
        cpus: Vec<u32>,
    },
    /// Start a server and its proxies; answered by [`Said::Standing`] or [`Said::Failed`].
    Serve(Box<Serve>),
    /// When to read what server and proxies have used.
    Announced(Announced),
    /// The load has been measured; read what was not read yet.
    Measured(Span),
    /// Stop server and proxies; answered by [`Said::Stopped`].
    Stop {
        /// The trial failed: look first whether the server is about to exit.
        failed: bool,
    },
    /// Start a generator on the CPUs of its specification; what it says comes as [`Said::Generator`].
    Load(Box<LoadSpec>),
    /// For the generator.
    Heard(Heard),
    /// End the generator, if it still runs after so long; answered by [`Said::Unloaded`].
    Unload {
        /// ns.
        patience_ns: u64,
    },
    /// Keep these CPUs awake until the end, or see that they are; answered by [`Said::Spinning`].
    Spin {
        /// Numbers of CPUs.
        cpus: Vec<u32>,
    },
    /// End.
    Bye {},
}

/// What a node writes: one object per line, with one of these keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Said {
    /// The first line.
    Hello(Box<Hello>),
    /// The node is alive.
    Alive {},
    /// Answer to [`Order::Ping`].
    Pong {
        /// As asked.
        at_ns: u64,
        /// Its clock when it was asked, ns.
        here_ns: u64,
    },
    /// Answer to [`Order::Build`].
    Built(BuildOutcome),
    /// Answer to [`Order::Probe`].
    Probed(Vec<Probe>),
    /// The server's port answers.
    Standing(Standing),
    /// The server or a proxy could not be started.
    Failed(Box<Stopped>),
    /// A reading was taken: the first where measuring begins, the second where it ends.
    Taken {
        /// Whether it was the second.
        end: bool,
    },
    /// The server or a proxy has exited; [`Order::Stop`] tells more.
    Ended {},
    /// Answer to [`Order::Stop`].
    Stopped(Box<Stopped>),
    /// A line of the generator.
    Generator(Told),
    /// The generator exited, or broke its seam, without a measurement.
    Broken(String),
    /// Answer to [`Order::Unload`].
    Unloaded {
        /// Counters of the network stack since [`Order::Load`].
        network: NetworkCounters,
    },
    /// Answer to [`Order::Spin`]: why not, or `None`.
    Spinning(Option<String>),
    /// An order could not be understood; the node ends.
    Refused(String),
}

/// Who a node is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Its number in the cluster, where it joined over the network.
    pub rank: Option<u32>,
    /// quintain's version.
    pub version: String,
    /// SHA-256 of its binary, hexadecimal.
    pub build: String,
    /// The machine.
    pub host: Host,
    /// What `quintain doctor` found.
    pub doctor: Vec<Finding>,
    /// Network interfaces, each with its addresses.
    pub interfaces: Vec<(Interface, Vec<String>)>,
    /// What is the same for all processes of one running system, and for no other (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

/// A server to start, with its proxies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// The design point: subject, proxies, levels of the factors.
    pub point: Point,
    /// The address that it listens on: `{address}`.
    pub address: IpAddr,
    /// CPUs of the server.
    pub cpus: Vec<u32>,
    /// CPUs of the proxies.
    pub proxy_cpus: Vec<u32>,
    /// CPUs of the companions.
    pub companion_cpus: Vec<u32>,
}

/// Where a server that was started listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Where the generators' connections go: the first proxy, or the server.
    pub port: u16,
    /// The server's.
    pub subject_port: u16,
    /// Where the first proxy tells how endpoints are dialled.
    pub admin_port: Option<u16>,
}

/// What is known of a server and its proxies when they have been stopped, or could not be started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    /// Why the trial failed on this side.
    pub failure: Option<Failure>,
    /// Wall time from starting the server until it listened, ns.
    pub ready_ns: Option<u64>,
    /// What the server used.
    pub subject: SubjectUse,
    /// What the proxies used.
    pub proxies: Vec<ProxyUse>,
    /// What the companions used.
    pub companions: Vec<ProxyUse>,
    /// Counters of the network stack.
    pub network: NetworkCounters,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As they stand on the channel.
    #[test]
    fn lines() {
        for (order, line) in [
            (Order::Alive {}, r#"{"alive":{}}"#),
            (Order::Ping { at_ns: 5 }, r#"{"ping":{"at_ns":5}}"#),
            (Order::Stop { failed: true }, r#"{"stop":{"failed":true}}"#),
            (Order::Heard(Heard::Go { at_ns: 7 }), r#"{"heard":{"go":{"at_ns":7}}}"#),
        ] {
            assert_eq!(serde_json::to_string(&order).unwrap(), line);
            assert_eq!(serde_json::from_str::<Order>(line).unwrap(), order);
        }
        for (said, line) in [
            (Said::Alive {}, r#"{"alive":{}}"#),
            (Said::Pong { at_ns: 5, here_ns: 9 }, r#"{"pong":{"at_ns":5,"here_ns":9}}"#),
            (Said::Generator(Told::Error("x".to_owned())), r#"{"generator":{"error":"x"}}"#),
        ] {
            assert_eq!(serde_json::to_string(&said).unwrap(), line);
            assert_eq!(serde_json::from_str::<Said>(line).unwrap(), said);
        }
        assert!(serde_json::from_str::<Order>(r#"{"obey":{}}"#).is_err());
        assert!(serde_json::from_str::<Order>(r#"{"ping":{"at_ns":5,"x":1}}"#).is_err());
    }
}
