use std::collections::BTreeSet;

use crate::companion::CompanionPlan;
use crate::expand::subject;
use crate::section::{Section, Settings};
use crate::template;

const MOST: usize = 8;

pub(super) fn read<'a>(top: &'a Section) -> Vec<(String, Section<'a>)> {
    let mut companions = top.named("companion");
    if let Some((_, section)) = companions.get(MOST) {
        section.report.mistake(section.place, format!("more than {MOST} companions"), None);
    }
    companions.retain(|(name, section)| {
        let port = template::port_of(name);
        let is_valid = template::is_name(&port) && !template::PROXY.contains(&port.as_str());
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
    let names = template::PROXY.iter().filter_map(|name| name.strip_suffix(template::PORT_OF)).collect::<BTreeSet<_>>();
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

pub(super) fn of_point(companions: &[(String, Section)], fill: Settings) -> Vec<CompanionPlan> {
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
