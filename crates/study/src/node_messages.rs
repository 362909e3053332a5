//! Messages between the lab and `quintain node`, the process on each machine of a cluster. A node starts, pins, watches
//! and ends a server or a generator, as the lab does on its own machine. It sends [`Said::Hello`] first, then executes
//! orders in the order they arrive. Both sides write a line at least every [`BEAT`], and neither waits for the other
//! longer than [`SILENCE_MAX`]. If the lab is silent, the node ends with everything it has started. Times are on the
//! node's monotonic clock (`CLOCK_MONOTONIC`); the lab translates them.

use std::net::IpAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::generator_messages::{Announced, Heard, Span, Told};
use crate::plan::Point;
use crate::record::{BuildOutcome, Failure, Finding, Host, Interface, NetworkCounters, Probe, ProxyUse, SubjectUse};
use crate::spec::LoadSpec;
use crate::warning::Warning;

/// Version of the messages.
pub const PROTOCOL: u32 = 1;
/// Maximum time between two lines of one side.
pub const BEAT: Duration = Duration::from_secs(1);
/// Silence after which a side considers the other lost.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Messages from the lab: one object per line, with one of these keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// The lab is alive.
    Alive {},
    /// Requests an immediate [`Said::Pong`].
    Ping {
        /// Returned unchanged.
        at_ns: u64,
    },
    /// Run a build command on these CPUs. The response is [`Said::Built`].
    Build {
        /// Command line of the build.
        command: String,
        /// Its working directory, relative to the node's.
        directory: Option<String>,
        /// Numbers of CPUs.
        cpus: Vec<u32>,
    },
    /// Measure the speed of these CPUs. The response is [`Said::Probed`].
    Probe {
        /// Numbers of CPUs.
        cpus: Vec<u32>,
    },
    /// Start a server and its proxies. The response is [`Said::Standing`] or [`Said::Failed`].
    Serve(Box<Serve>),
    /// Times at which to read the resource use of server and proxies.
    Announced(Announced),
    /// The load has been measured; take the readings that are still missing.
    Measured(Span),
    /// Stop server and proxies. The response is [`Said::Stopped`].
    Stop {
        /// Whether the trial failed; then first check whether the server is about to exit.
        failed: bool,
    },
    /// Start a generator on the CPUs of its specification. Its messages arrive as [`Said::Generator`].
    Load(Box<LoadSpec>),
    /// A message for the generator.
    Heard(Heard),
    /// End the generator if it still runs after `patience_ns`. The response is [`Said::Unloaded`].
    Unload {
        /// Time to wait for it, ns.
        patience_ns: u64,
    },
    /// Keep these CPUs awake until the end, or check that they are. The response is [`Said::Spinning`].
    Spin {
        /// Numbers of CPUs.
        cpus: Vec<u32>,
    },
    /// End the node.
    Bye {},
}

/// Messages from a node: one object per line, with one of these keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Said {
    /// The first line.
    Hello(Box<Hello>),
    /// The node is alive.
    Alive {},
    /// Response to [`Order::Ping`].
    Pong {
        /// Value from the ping.
        at_ns: u64,
        /// Clock of the node when it read the ping, ns.
        here_ns: u64,
    },
    /// Response to [`Order::Build`].
    Built(BuildOutcome),
    /// Response to [`Order::Probe`].
    Probed(Vec<Probe>),
    /// The server listens on its port.
    Standing(Standing),
    /// The server or a proxy could not be started.
    Failed(Box<Stopped>),
    /// A reading was taken: the first at the start of measuring, the second at its end.
    Taken {
        /// Whether it was the second.
        end: bool,
    },
    /// The server or a proxy has exited. The response to [`Order::Stop`] has details.
    Ended {},
    /// Response to [`Order::Stop`].
    Stopped(Box<Stopped>),
    /// A line of the generator.
    Generator(Told),
    /// The generator exited without a measurement, or sent an invalid message.
    Broken(String),
    /// Response to [`Order::Unload`].
    Unloaded {
        /// Counters of the network stack since [`Order::Load`].
        network: NetworkCounters,
    },
    /// Response to [`Order::Spin`]: why the CPUs cannot be kept awake; `None` on success.
    Spinning(Option<String>),
    /// An order was not understood; the node ends.
    Refused(String),
}

/// Introduction of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version of the messages, [`PROTOCOL`].
    pub protocol: u32,
    /// Its number in the cluster, if it joined over the network.
    pub rank: Option<u32>,
    /// quintain's version.
    pub version: String,
    /// SHA-256 of its binary, hexadecimal.
    pub build: String,
    /// The machine.
    pub host: Host,
    /// Findings of `quintain doctor`.
    pub doctor: Vec<Finding>,
    /// Network interfaces, each with its addresses.
    pub interfaces: Vec<(Interface, Vec<String>)>,
    /// Identifier of the running system, the same for all its processes (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

/// A server to start, with its proxies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// The design point: server, proxies, levels of the factors.
    pub point: Point,
    /// The address to listen on: `{address}`.
    pub address: IpAddr,
    /// CPUs of the server.
    pub cpus: Vec<u32>,
    /// CPUs of the proxies.
    pub proxy_cpus: Vec<u32>,
    /// CPUs of the companions.
    pub companion_cpus: Vec<u32>,
}

/// Ports of a started server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Port for the generators' connections: the first proxy's, or the server's.
    pub port: u16,
    /// The server's port.
    pub subject_port: u16,
    /// Port of the first proxy's resolver of endpoints.
    pub admin_port: Option<u16>,
}

/// Results of a server and its proxies when they have been stopped, or could not be started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    /// Why the trial failed on this side.
    pub failure: Option<Failure>,
    /// Wall time from starting the server until it listened, ns.
    pub ready_ns: Option<u64>,
    /// Resource use of the server.
    pub subject: SubjectUse,
    /// Resource use of the proxies.
    pub proxies: Vec<ProxyUse>,
    /// Resource use of the companions.
    pub companions: Vec<ProxyUse>,
    /// Counters of the network stack.
    pub network: NetworkCounters,
    /// Warnings of this side of the trial.
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
