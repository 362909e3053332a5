//! Planned containers of servers.

use config::keys::word_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How to start a server in a container. The command of the server is then the arguments of the image's command.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ContainerPlan {
    /// The image, as the engine names it. It is never pulled.
    pub image: String,
    /// The program that starts containers.
    pub engine: EngineChoice,
    /// The port in a network of its own, published as the server's port; `None` in the network of the host.
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
