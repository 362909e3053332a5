//! Declares every key of a study, for parsing, hints, `quintain help study`, docs/reference/study.md and the schema.

pub mod allowed_words;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use config::render_keys;
use serde_json::Value;

pub use config::{Key, Keys, Kind, Missing};
pub(crate) use tables::WORKLOAD;
pub use tables::{CLIENT_COUNT, JOURNEY, LOAD, STUDY};

/// Keys of `[load]` whose description begins with `kind`, such as `HTTP`, `https:` or `journeys:`.
pub(crate) fn load_keys(kind: &str) -> impl Iterator<Item = &'static str> {
    LOAD.keys.iter().filter(move |key| key.text.starts_with(kind)).map(|key| key.name)
}

/// Heading of a table, such as `[load]`, or `[[figure]]` for a list of tables.
pub fn heading(keys: &Keys) -> String {
    match keys.name {
        "" => "A study".to_owned(),
        "journey" => "A journey file".to_owned(),
        name @ ("figure" | "table" | "load.journey" | "load.request" | "load.workload.ttl" | "step") => {
            format!("`[[{name}]]`")
        }
        name @ ("size" | "size.tail") => format!("`{name}`"),
        name => format!("`[{name}]`"),
    }
}

/// Renders docs/reference/study.md.
pub fn page() -> String {
    let table = |keys: &Keys| format!("\n## {}\n\n{}", heading(keys), render_keys::table(keys));
    let mut text = String::from(
        "# Keys of a study\n\nGenerated from crates/study/src/keys/tables.rs; `quintain help study` prints the same. A \
         study is a TOML file. Times have units (`300ms`, `5s`), counts and rates may (`50k`), fractions are `0.03` or \
         `3%`, memory is `64KiB` or `10MB`. Any value in `[subject]`, `[proxy.NAME]` or `[load]` can be a string in \
         which `{factor}` is replaced by the level of that factor.\n\nCommands start in the directory of the study's \
         file, and file names are relative to it. For a file in a directory `studies` this is the directory above, for \
         a study on stdin the working directory.\n",
    );
    render_keys::tables(&STUDY).into_iter().for_each(|keys| text += &table(keys));
    text.push_str("\n## Metrics\n\n| Name | Unit | Description |\n|---|---|---|\n");
    for metric in crate::METRICS {
        let _ = writeln!(text, "| `{}` | {} | {} |", metric.name, metric.unit, metric.text);
    }
    render_keys::tables(&JOURNEY).into_iter().for_each(|keys| text += &table(keys));
    text
}

/// JSON Schema of a study, for files in TOML or JSON.
pub fn schema() -> Value {
    render_keys::schema(&STUDY, "Study", is_always)
}

/// Whether every study needs this required key. In some tables, variants or a journey may supply it instead.
fn is_always(keys: &Keys, key: &Key) -> bool {
    !(keys.get("variants").is_some() || key.name == "stop" && keys.name == "trials")
}
