//! Reads `[proxy.NAME]` and `[companion.NAME]`.

use std::collections::{BTreeMap, BTreeSet};

use config::{Invalid, NamedText, suggestion};

use crate::expand::factor_levels::Factor;
use crate::expand::subject;
use crate::factor_placeholders;
use crate::plan::Level;
use crate::process_plan::{CompanionPlan, DIRECT, ProxyPlan, THROUGH};
use crate::section_at_design_point::{Section, Settings};

const CHAIN_MAX: usize = 8;

pub(super) fn read<'a>(top: &'a Section, factors: &[Factor]) -> BTreeMap<String, Section<'a>> {
    let mut proxies = BTreeMap::new();
    for (name, section) in top.named("proxy") {
        if name == DIRECT || name.is_empty() || name.contains('+') || name.trim() != name {
            let message = format!("`{}` is not a valid proxy name", name.escape_debug());
            let hint = "`direct` means no proxy, `a + b` means a chain".to_owned();
            section.report.mistake(section.place, message, hint);
            continue;
        }
        section.check_keys();
        proxies.insert(name, section);
    }
    let is_chosen = factors.iter().any(|factor| factor.name == THROUGH) || super::lost(THROUGH, top.report);
    if let Some(entry) = top.table.get("proxy").filter(|_| !is_chosen) {
        let hint = "add `through = [\"direct\", \"NAME\"]` to `[factors]`".to_owned();
        top.report.missing(entry.key_place, "no factor `through` selects the design points with a proxy", hint);
    }
    proxies
}

pub(super) fn of_point(proxies: &BTreeMap<String, Section>, fill: Settings) -> Vec<ProxyPlan> {
    let setting = fill.0.iter().find(|setting| setting.factor == THROUGH);
    let Some((any, setting)) = proxies.values().next().zip(setting) else { return Vec::new() };
    let mistake = |message: String, hint: Option<String>| {
        any.report.mistake(setting.place, message, hint);
        Vec::new()
    };
    let Level::Text(level) = setting.level else {
        return mistake(format!("a level of `through` must be `direct` or a proxy, not `{}`", setting.level), None);
    };
    if level == DIRECT {
        return Vec::new();
    }
    let names = level.split('+').map(str::trim).collect::<Vec<_>>();
    if names.len() > CHAIN_MAX {
        return mistake(format!("`{level}` has more than {CHAIN_MAX} proxies"), None);
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return mistake(format!("duplicate proxy in `{level}`"), None);
    }
    if let Some(unknown) = names.iter().find(|name| !proxies.contains_key(**name)) {
        let message = format!("unknown proxy `{}`", unknown.escape_debug());
        return mistake(message, Some(suggestion(unknown, proxies.keys().map(String::as_str).chain([DIRECT]))));
    }
    names.into_iter().map(|name| plan(name, &proxies[name].filled_by(fill))).collect()
}

fn plan(name: &str, proxy: &Section) -> ProxyPlan {
    let files = files(proxy);
    let hint = "pass `{port}` to it, or set `port` to the one it always uses";
    ProxyPlan {
        name: name.to_owned(),
        process: subject::process(proxy, files.is_empty(), hint),
        files,
        calls: proxy.text_as("calls", |name| check_file_name(name).map(|()| name.to_owned())),
        cpus: if proxy.is_word("cpus", "subject") { 0 } else { proxy.small("cpus").unwrap_or_default() },
    }
}

fn files(proxy: &Section) -> BTreeMap<String, String> {
    let file = |NamedText { name, name_place, text, .. }: NamedText| {
        proxy.report.valid(name_place, check_file_name(&name));
        (name, text)
    };
    proxy.named_texts("files").into_iter().map(file).collect()
}

fn check_file_name(name: &str) -> Result<(), Invalid> {
    if name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.') {
        let error = Invalid::new(format!("`{}` is not a plain file name", name.escape_debug()));
        return Err(error.hint("files are relative to the proxy's own directory, `{folder}`"));
    }
    Ok(())
}

const COMPANIONS_MAX: usize = 8;

pub(super) fn companions<'a>(top: &'a Section) -> Vec<(String, Section<'a>)> {
    let mut companions = top.named("companion");
    if let Some((_, section)) = companions.get(COMPANIONS_MAX) {
        section.report.mistake(section.place, format!("more than {COMPANIONS_MAX} companions"), None);
    }
    companions.retain(|(name, section)| {
        let port = factor_placeholders::port_of(name);
        let is_valid =
            factor_placeholders::is_name(&port) && !factor_placeholders::PROXY_PORTS.contains(&port.as_str());
        if is_valid {
            section.check_keys();
        } else {
            let message = format!("`{}` is not a valid companion name", name.escape_debug());
            let taken = taken_names();
            let hint =
                format!("use letters, digits, `_` and `-`, so that `{{NAME_port}}` is its port, and none of {taken}");
            section.report.mistake(section.place, message, hint);
        }
        is_valid
    });
    companions.sort_unstable_by(|(name, _), (other, _)| name.cmp(other));
    companions
}

fn taken_names() -> String {
    let names = factor_placeholders::PROXY_PORTS.iter();
    let names = names.filter_map(|name| name.strip_suffix(factor_placeholders::PORT_OF)).collect::<BTreeSet<_>>();
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

pub(super) fn companions_of_point(companions: &[(String, Section)], fill: Settings) -> Vec<CompanionPlan> {
    let plan = |(name, section): &(String, Section)| {
        let companion = &section.filled_by(fill);
        CompanionPlan {
            name: name.clone(),
            process: subject::process(companion, true, subject::PASS_PORT),
            cpus: companion.small("cpus").unwrap_or_default(),
            fresh: companion.flag("fresh").unwrap_or_default(),
        }
    };
    companions.iter().map(plan).collect()
}
