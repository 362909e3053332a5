//! How the processes of a design point are built and started: servers, containers, proxies, companions.

use std::collections::BTreeMap;

use config::keys::word_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a server, a proxy or a companion is built, started and stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessPlan {
    /// Build command, run once before the first trial; `None` if nothing is built.
    pub build: Option<String>,
    /// Command, or the arguments of a container. The lab fills in the remaining templates.
    pub command: String,
    /// The container that the process runs in; `None` without a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerPlan>,
    /// Working directory, relative to the study's; `None` for the study's own.
    pub directory: Option<String>,
    /// Environment variables to add to the lab's.
    pub environment: BTreeMap<String, String>,
    /// Port that the process listens on; `None` for any free port.
    pub port: Option<u16>,
    /// Time limit for the process to listen on its port, ns.
    pub ready_timeout_ns: u64,
    /// Time limit for the process to exit after SIGTERM, ns.
    pub stop_timeout_ns: u64,
}

impl ProcessPlan {
    /// Whether the process may need installed tools. `false` only for the command `quintain` without a build.
    pub fn may_use_tools(&self) -> bool {
        let builds = self.build.as_ref().is_some_and(|build| !build.trim().is_empty());
        builds || self.command.split_whitespace().next() != Some("quintain")
    }
}

/// How a server is started in a container. The server's command then contains only arguments for the image's command.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ContainerPlan {
    /// Name of the image in the container engine. The image is never pulled.
    pub image: String,
    /// The program that starts containers.
    pub engine: EngineChoice,
    /// Port of the server in the container's own network, published on the host; `None` for the host's network.
    pub publish: Option<u16>,
    /// Further options of `podman run` or `docker run`.
    pub options: String,
}

/// Container engines that a study can choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// The first of podman and docker that can start a container of the image.
    #[default]
    Auto,
    /// Podman, run as `podman`.
    Podman,
    /// Docker, run as `docker`.
    Docker,
}

/// Container engines with their words in a study.
pub const ENGINES: &[(&str, EngineChoice)] =
    &[("auto", EngineChoice::Auto), ("podman", EngineChoice::Podman), ("docker", EngineChoice::Docker)];

impl EngineChoice {
    /// The word for the engine in a study.
    pub fn name(self) -> &'static str {
        word_of(ENGINES, &self)
    }
}

pub(crate) fn is_image(image: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@');
    image.starts_with(|c: char| c.is_ascii_alphanumeric())
        && image.chars().all(inner)
        && !image.ends_with(['/', ':', '@'])
}

/// Name of the factor whose level selects the proxies of a design point.
pub const THROUGH: &str = "through";
/// Level of [`THROUGH`] without proxies.
pub const DIRECT: &str = "direct";

/// How a proxy is built and started. In its command, environment and files, the lab fills in `{port}` (the proxy's),
/// `{next_port}` (the next proxy's or the server's), `{subject_port}` and `{second_port}` (the server's),
/// `{admin_port}`, `{peer_port}` and `{second_peer_port}` (further free ports) and `{folder}` (the proxy's directory).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyPlan {
    /// Name of the proxy in the levels of the factor `through`.
    pub name: String,
    /// How the proxy is built, started and stopped.
    #[serde(flatten)]
    pub process: ProcessPlan,
    /// Files of the proxy's directory, each with its template in the study's directory. Templates may name factors.
    pub files: BTreeMap<String, String>,
    /// Name of the call log that the proxy writes to its directory ([`crate::Calls`]); `None` for no log.
    pub calls: Option<String>,
    /// Number of CPUs reserved for the proxy; 0 if it shares the server's.
    pub cpus: u32,
}

/// How a companion is built and started. The lab fills in its port, `{port}`, in `command` and `environment`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompanionPlan {
    /// Name of the companion; `{NAME_port}` in the server's command and environment stands for the companion's port.
    pub name: String,
    /// How the companion is built, started and stopped.
    #[serde(flatten)]
    pub process: ProcessPlan,
    /// Number of CPUs reserved for the companion.
    pub cpus: u32,
    /// Whether the companion is started for each trial, instead of once for all trials that need it.
    pub fresh: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_images() {
        for image in
            ["mine", "localhost/mine:latest", "docker.io/library/redis:7-alpine", "a@sha256:08cc92", "08cc92d0900c"]
        {
            assert!(is_image(image), "{image}");
        }
        for image in ["", "-mine", "my image", "mine:", "a/", "mine;ls", "--privileged", "ä"] {
            assert!(!is_image(image), "{image}");
        }
    }
}
