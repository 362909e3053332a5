//! Reads the keys of a server in a container: `image` and its options.

use crate::container::{ContainerPlan, is_image};
use crate::keys::words::ENGINES;
use crate::section::Section;
use crate::words;

const ONLY: [&str; 3] = ["engine", "publish", "options"];

pub(super) fn read(section: &Section) -> Option<ContainerPlan> {
    let name = &section.name;
    let Some(image) = super::optional(section, "image") else {
        if !section.has("image") {
            section.refuse(ONLY, "needs an `image`", "add the image of the container, or drop the key");
        }
        return None;
    };
    if !is_image(&image) {
        let message = format!("`{name}.image`: `{}` is not a valid image name", image.escape_debug());
        let hint = "name it as `podman images` or `docker images` does: `localhost/mine:latest`".to_owned();
        section.mistake("image", message, hint);
    }
    let options = super::optional(section, "options").unwrap_or_default();
    match words::arguments(&options) {
        Err(error) => section.report.invalid(section.place_of("options"), error.of(&format!("`{name}.options`"))),
        Ok(words) => {
            for (option, instead) in words.iter().filter_map(|word| OWN.iter().find(|(own, _)| is_option(word, own))) {
                let message = format!("`{name}.options`: `{option}` is set by quintain");
                section.mistake("options", message, (*instead).map(str::to_owned));
            }
        }
    }
    let engine = section.choice("engine", ENGINES).unwrap_or_default();
    Some(ContainerPlan { image, engine, publish: super::port(section, "publish"), options })
}

/// Options set by the lab, which a study cannot set, with the alternative if there is one.
const OWN: [(&str, Option<&str>); 12] = [
    ("--name", None),
    ("--rm", None),
    ("--detach", None),
    ("-d", None),
    ("--cpuset-cpus", Some("set `cpus`")),
    ("--network", Some("set `publish` for a network of its own")),
    ("--net", Some("set `publish` for a network of its own")),
    ("--publish", Some("set `publish`")),
    ("-p", Some("set `publish`")),
    ("--env", Some("set `environment`")),
    ("-e", Some("set `environment`")),
    ("--pull", Some("pull the image before the run")),
];

fn is_option(word: &str, option: &str) -> bool {
    word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}
