//! How the processes of a design point are built and started: servers, containers, companions.

use std::collections::BTreeMap;

use config::keys::word_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a server, a proxy or a companion is built, started and stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessPlan {
    /// Build command, run once before the first trial.
    pub build: Option<String>,
    /// Command, or the arguments of a container. The lab fills the templates left in it.
    pub command: String,
    /// The container that it runs in; `None` for a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerPlan>,
    /// Working directory, relative to the study's.
    pub directory: Option<String>,
    /// Environment variables, added to the lab's.
    pub environment: BTreeMap<String, String>,
    /// The port; any free one if `None`.
    pub port: Option<u16>,
    /// Time limit to listen on its port, ns.
    pub ready_timeout_ns: u64,
    /// Time limit to exit after SIGTERM, ns.
    pub stop_timeout_ns: u64,
}

impl ProcessPlan {
    /// Whether the tools of this machine may build or run it. `false` only for a command of quintain without a build.
    pub fn may_use_tools(&self) -> bool {
        let builds = self.build.as_ref().is_some_and(|build| !build.trim().is_empty());
        builds || self.command.split_whitespace().next() != Some("quintain")
    }
}

/// How to start a server in a container. The command of the server is then the arguments of the image's command.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ContainerPlan {
    /// The image, as the engine names it. It is never pulled.
    pub image: String,
    /// The program that starts containers.
    pub engine: EngineChoice,
    /// The port in its own network, published as the server's port; `None` in the host's network.
    pub publish: Option<u16>,
    /// Further options of `podman run` or `docker run`.
    pub options: String,
}

/// Programs that start containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// The first that can start a container of the image: podman, docker.
    #[default]
    Auto,
    /// Podman.
    Podman,
    /// Docker.
    Docker,
}

/// Choices by their words in a study.
pub const ENGINES: [(&str, EngineChoice); 3] =
    [("auto", EngineChoice::Auto), ("podman", EngineChoice::Podman), ("docker", EngineChoice::Docker)];

impl EngineChoice {
    /// The word in a study.
    pub fn name(self) -> &'static str {
        word_of(&ENGINES, &self)
    }
}

/// Whether `image` is a valid image name: registry, path, tag or digest, in characters that engines allow.
pub(crate) fn is_image(image: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@');
    image.starts_with(|c: char| c.is_ascii_alphanumeric())
        && image.chars().all(inner)
        && !image.ends_with(['/', ':', '@'])
}

/// How to build and start a companion. The lab fills `{port}`, its port, in `command` and `environment`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompanionPlan {
    /// Its name; `{NAME_port}` in the command and environment of the server is its port.
    pub name: String,
    /// How it is built, started and stopped.
    #[serde(flatten)]
    pub process: ProcessPlan,
    /// Number of its own CPUs.
    pub cpus: u32,
    /// Whether it is started for each trial, instead of once for all trials that need the same one.
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
