//! Messages between the lab and `quintain node`, the process on each machine of a cluster. A node starts, pins, watches
//! and ends a server or a generator. It sends [`Said::Hello`] first, then executes orders as they arrive. Both sides
//! write a line at least every [`BEAT`] and wait at most [`SILENCE_MAX`] for the next. If the lab is silent, the node
//! ends with all its processes. Times are on the node's monotonic clock (`CLOCK_MONOTONIC`); the lab translates them.

use std::net::IpAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::generator_messages::{Announced, Heard, Span, Told};
use crate::plan::Point;
use crate::record::{BuildOutcome, Failure, Finding, Host, Interface, NetworkCounters, Probe, ProxyUse, SubjectUse};
use crate::spec::LoadSpec;
use crate::warning::Warning;

/// Version of the messages; the lab rejects a node with a different one.
pub const PROTOCOL: u32 = 1;
/// Maximum time between two lines from the same side.
pub const BEAT: Duration = Duration::from_secs(1);
/// Silence after which a side considers its peer lost.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Messages from the lab: one object per line, with one of these keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// Sign of life from the lab.
    Alive {},
    /// Requests an immediate [`Said::Pong`].
    Ping {
        /// An arbitrary time, which the node returns unchanged, ns.
        at_ns: u64,
    },
    /// Runs a build command on these CPUs. The response is [`Said::Built`].
    Build {
        /// Command line of the build.
        command: String,
        /// Working directory, relative to the node's; `None` for the node's own.
        directory: Option<String>,
        /// Numbers of the CPUs to build on.
        cpus: Vec<u32>,
    },
    /// Measures the speed of these CPUs. The response is [`Said::Probed`].
    Probe {
        /// Numbers of the CPUs to probe.
        cpus: Vec<u32>,
    },
    /// Starts a server and its proxies. The response is [`Said::Standing`] or [`Said::Failed`].
    Serve(Box<Serve>),
    /// Announces when measuring starts and ends. The node reads resource use at both times.
    Announced(Announced),
    /// Announces that the load has been measured, so that the node takes the readings that are still missing.
    Measured(Span),
    /// Stops the server and its proxies. The response is [`Said::Stopped`].
    Stop {
        /// Whether the trial failed; the node then first checks whether the server is about to exit.
        failed: bool,
    },
    /// Starts a generator on the CPUs of its specification. The generator's messages arrive as [`Said::Generator`].
    Load(Box<LoadSpec>),
    /// Passes a message on to the generator.
    Heard(Heard),
    /// Ends the generator if it still runs after `patience_ns`. The response is [`Said::Unloaded`].
    Unload {
        /// Time to wait for the generator to exit, ns.
        patience_ns: u64,
    },
    /// Keeps these CPUs awake until the node ends, or checks that they are awake. The response is [`Said::Spinning`].
    Spin {
        /// Numbers of the CPUs to keep awake.
        cpus: Vec<u32>,
    },
    /// Ends the node.
    Bye {},
}

/// Messages from a node: one object per line, with one of these keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Said {
    /// Introduction of the node, always the first line.
    Hello(Box<Hello>),
    /// Sign of life from the node.
    Alive {},
    /// Clock reading in response to [`Order::Ping`].
    Pong {
        /// Value of `at_ns` in [`Order::Ping`], unchanged.
        at_ns: u64,
        /// Time on the node's clock when it read the ping, ns.
        here_ns: u64,
    },
    /// Outcome of [`Order::Build`].
    Built(BuildOutcome),
    /// Speeds measured by [`Order::Probe`], one probe per CPU.
    Probed(Vec<Probe>),
    /// The server listens on its port.
    Standing(Standing),
    /// The server or a proxy could not be started.
    Failed(Box<Stopped>),
    /// A reading was taken: the first at the start of measuring, the second at its end.
    Taken {
        /// Whether the reading is the second one, at the end of measuring.
        end: bool,
    },
    /// The server or a proxy has exited. The response to [`Order::Stop`] has details.
    Ended {},
    /// Results of the server and its proxies in response to [`Order::Stop`].
    Stopped(Box<Stopped>),
    /// A message of the generator that [`Order::Load`] started.
    Generator(Told),
    /// The generator exited without a measurement, or sent an invalid message.
    Broken(String),
    /// Counters in response to [`Order::Unload`].
    Unloaded {
        /// Counters of the network stack since [`Order::Load`].
        network: NetworkCounters,
    },
    /// Response to [`Order::Spin`]: the reason why the CPUs cannot be kept awake; `None` on success.
    Spinning(Option<String>),
    /// Reason why an order was not understood; the node then ends.
    Refused(String),
}

/// Introduction of a node to the lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version of the messages, [`PROTOCOL`].
    pub protocol: u32,
    /// Number of the node in the cluster; `None` unless it joined over the network.
    pub rank: Option<u32>,
    /// Version of the node's quintain.
    pub version: String,
    /// SHA-256 of the node's binary, hexadecimal.
    pub build: String,
    /// Facts about the node's machine.
    pub host: Host,
    /// Findings of `quintain doctor` on the node's machine.
    pub doctor: Vec<Finding>,
    /// Network interfaces, each with its addresses.
    pub interfaces: Vec<(Interface, Vec<String>)>,
    /// Identifier of the running system, equal for all its processes (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

/// A server to start, with its proxies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// The design point, with its server, its proxies and its levels of the factors.
    pub point: Point,
    /// The address that the server listens on, which `{address}` stands for.
    pub address: IpAddr,
    /// Numbers of the CPUs for the server.
    pub cpus: Vec<u32>,
    /// Numbers of the CPUs for the proxies.
    pub proxy_cpus: Vec<u32>,
    /// Numbers of the CPUs for the companions.
    pub companion_cpus: Vec<u32>,
}

/// Ports of a started server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Port for the generators' connections: the first proxy's or, without proxies, the server's.
    pub port: u16,
    /// Port of the server itself.
    pub subject_port: u16,
    /// Port of the first proxy's resolver of endpoints; `None` without a resolver.
    pub admin_port: Option<u16>,
}

/// Results of a server and its proxies after they stopped or failed to start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    /// Why the trial failed on this machine; `None` if it did not.
    pub failure: Option<Failure>,
    /// Wall time from starting the server until it listened, ns; `None` if it never did.
    pub ready_ns: Option<u64>,
    /// Resource use of the server.
    pub subject: SubjectUse,
    /// Resource use of the proxies.
    pub proxies: Vec<ProxyUse>,
    /// Resource use of the companions.
    pub companions: Vec<ProxyUse>,
    /// Counters of the node's network stack over the trial.
    pub network: NetworkCounters,
    /// Warnings about the trial from this machine.
    pub warnings: Vec<Warning>,
}

#[cfg(test)]
mod tests {
    use super::*;

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
