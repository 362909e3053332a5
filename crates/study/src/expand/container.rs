//! The keys of a section whose server runs in a container: `image`, and what says how.

use crate::container::{ContainerPlan, is_image};
use crate::keys::words::ENGINES;
use crate::section::Section;
use crate::words;

/// Keys that only a container has.
const ONLY: [&str; 3] = ["engine", "publish", "options"];

/// The container of a server; `Some(None)` of one that is a process, `None` only where a mistake was reported.
pub(super) fn read(section: &Section) -> Option<Option<ContainerPlan>> {
    let name = &section.name;
    let Some(image) = super::optional(section, "image")? else {
        for key in ONLY.iter().filter(|key| section.has(key)) {
            section.mistake(
                key,
                format!("`{name}.{key}` needs an `image`"),
                "add the image of the container, or drop the key".to_owned(),
            );
        }
        return Some(None);
    };
    if !is_image(&image) {
        let message = format!("`{name}.image`: `{}` is not a valid image name", image.escape_debug());
        section.mistake(
            "image",
            message,
            "name it as `podman images` or `docker images` does: `localhost/mine:latest`".to_owned(),
        );
    }
    let options = super::optional(section, "options")?.unwrap_or_default();
    let mut fine = is_image(&image);
    match words::arguments(&options) {
        Err(mistake) => {
            section.mistake("options", format!("`{name}.options`: {mistake}"), mistake.hint);
            fine = false;
        }
        Ok(words) => {
            for (option, instead) in words.iter().filter_map(|word| OWN.iter().find(|(own, _)| is_option(word, own))) {
                section.mistake(
                    "options",
                    format!("`{name}.options`: `{option}` is set by quintain"),
                    (*instead).map(str::to_owned),
                );
                fine = false;
            }
        }
    }
    let engine = section.choice("engine", ENGINES);
    let publish = section.given("publish", section.small("publish"));
    let publish = publish?.map(|port| u16::try_from(port).expect("its bounds fit 16 bits"));
    let plan = ContainerPlan { image, engine: engine?, publish, options };
    fine.then_some(Some(plan))
}

/// Options that a study cannot have, as the lab gives them; and what to do instead.
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
