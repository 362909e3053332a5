//! `[slopes]`: what is looked at over the requests of a trial.

use config::nearest::suggestion;
use config::node::Value;

use crate::metric::OVER_REQUESTS;
use crate::section::Section;

/// The names that `slopes.over_requests` has; `None` only where a mistake was reported.
pub(crate) fn read(top: &Section) -> Option<Vec<String>> {
    if !top.has("slopes") {
        return Some(Vec::new());
    }
    let slopes = top.section("slopes")?;
    slopes.check_keys();
    slopes.required("over_requests");
    let hint = || "write `over_requests = [\"latency\", \"proxy_rss\"]`".to_owned();
    let items = match slopes.table.get("over_requests").map(|entry| &entry.node.value) {
        None => return None,
        Some(Value::List(items)) => items,
        Some(_) => {
            slopes.mistake("over_requests", "`slopes.over_requests` must be a list of names", hint());
            return None;
        }
    };
    let mut names = Vec::new();
    let mut fine = true;
    for item in items {
        let (message, hint) = match &item.value {
            Value::Text(name) if names.contains(name) => (format!("duplicate name `{name}`"), None),
            Value::Text(name) if OVER_REQUESTS.iter().any(|(known, ..)| known == name) => {
                names.push(name.clone());
                continue;
            }
            Value::Text(name) => {
                let message = format!("unknown series `{}`", name.escape_debug());
                (message, Some(suggestion(name, OVER_REQUESTS.iter().map(|(known, ..)| *known))))
            }
            other => (format!("a series must be a name, not {}", other.kind()), Some(hint())),
        };
        slopes.report.mistake(item.place, message, hint);
        fine = false;
    }
    fine.then_some(names)
}
