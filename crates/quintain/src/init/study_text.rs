//! Writes the text of a new study, with comments for first-time users.

use std::path::Path;

use askama::Template;
use study::shell_words;
use study::spec::Protocol;

use super::Draft;
use crate::cli::InitKind;

#[derive(Template)]
#[template(path = "new_study.txt", escape = "none")]
struct NewStudy<'a> {
    draft: &'a Draft,
    runnable: &'a str,
    /// Aligns the last comment with the ones above, which name the study.
    pad: String,
    /// Command of the server, or of the first of two versions.
    command: &'a str,
    /// Command of the second version, or of the proxy.
    second: &'a str,
    /// Name of the server's program, for a TOML string.
    server: String,
    proxy: String,
    /// Lines of the keys that only HTTP has.
    request: Vec<String>,
    objective: String,
    is_cache: bool,
}

pub(super) fn of(draft: &Draft, runnable: &str) -> String {
    let [command, second] = [0, 1].map(|at| draft.commands.get(at).map_or("", |(_, command)| command.as_str()));
    let server = text(&program(command));
    let study = NewStudy {
        draft,
        runnable,
        pad: " ".repeat(runnable.len() + 6),
        command,
        second,
        server: server[1..server.len() - 1].to_owned(),
        proxy: proxy_name(second),
        request: request(draft),
        objective: text(draft.args.objective.as_deref().unwrap_or_default()),
        is_cache: matches!(draft.protocol, Protocol::Cache(_)),
    };
    study.render().expect("text is written to memory") + "\n"
}

/// Formats a string for TOML, which accepts all escapes of JSON.
fn text(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

fn program(command: &str) -> String {
    let words = shell_words::split(command).unwrap_or_default();
    let is_script = |word: &&String| !word.starts_with('-') && Path::new(word).extension().is_some();
    let script = words.get(1).filter(is_script).filter(|_| !words[0].contains('/'));
    let named = script.or(words.first()).map(Path::new).and_then(Path::file_name);
    named.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Name of a proxy in the study: the name of its program, reduced to characters that are valid in a key.
fn proxy_name(command: &str) -> String {
    let name = program(command);
    let name = name.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '-' });
    let name = name.collect::<String>().trim_matches('-').to_lowercase();
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic()) && name != "direct";
    if is_name { name } else { "proxy".to_owned() }
}

fn request(draft: &Draft) -> Vec<String> {
    let args = &draft.args;
    if !matches!(draft.protocol, Protocol::Http | Protocol::Https) {
        return Vec::new();
    }
    let line = |key: &str, value: Option<&str>| Some(format!("{key} = {}", text(value?)));
    let headers = args.headers.iter().map(|(name, value)| format!("{} = {}", text(name), text(value)));
    let headers = headers.collect::<Vec<_>>().join(", ");
    let any_body = || "# expect_body = \"ok\"   # any other body is then an error".to_owned();
    let lines = [
        line("path", args.path.as_deref()),
        line("method", args.method.as_deref().or(args.body.as_ref().map(|_| "POST"))),
        line("body", args.body.as_deref()),
        line("expect_status", args.expect_status.as_deref()),
        (!headers.is_empty()).then(|| format!("headers = {{ {headers} }}")),
        line("expect_body", args.expect_body.as_deref()).or_else(|| Some(any_body())),
    ];
    lines.into_iter().flatten().collect()
}
