//! `quintain studies`: lists, prints and copies the built-in studies.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use study::{Effort, ExpandOptions, Json, Plan, Profile};

use crate::built_in::{self, FILES};
use crate::cli::StudiesVerb;
use crate::command_result::{Exit, Result, cannot, machine, usage};
use crate::output;

/// Number of CPUs of a machine that can run every built-in study in full, so that all programs are found.
const LARGE: u32 = 256;

#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    question: String,
    /// Programs that a full run needs. The report marks rows whose programs are missing.
    needs: BTreeSet<String>,
    profiles: Vec<Time>,
}

/// Estimated duration of a profile on this machine, as in `quintain check`.
#[derive(Debug, Serialize)]
struct Time {
    profile: &'static str,
    #[serde(flatten)]
    effort: Effort,
}

pub(crate) fn studies(verb: Option<StudiesVerb>, wants_json: bool) -> Result<()> {
    match verb {
        None => list(wants_json),
        Some(StudiesVerb::Show { name }) => output::data(text_of(&name)?),
        Some(StudiesVerb::Copy { name, folder }) => copy(&name, folder.as_deref().unwrap_or(Path::new("."))),
    }
}

fn list(json: bool) -> Result<()> {
    let cpus = crate::run::cpus(None)?.len() as u32;
    let listed = built_in::names().map(|name| listed(name, cpus)).collect::<Result<Vec<_>, _>>()?;
    if json {
        return output::json(&listed);
    }
    let text = listed.iter().map(|study| {
        let times = study.profiles.iter().map(|time| {
            let [least, most] = [time.effort.seconds_min, time.effort.seconds_max].map(output::time_words);
            let span = if least == most { most } else { format!("{least} to {most}") };
            format!("{} {span}", time.profile)
        });
        let times = times.collect::<Vec<_>>().join(", ");
        let needs = study.needs.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let needs = if needs.is_empty() { "nothing else".to_owned() } else { needs };
        format!("{}\n  {}\n  time   {times}\n  needs  {needs}\n", study.name, study.question)
    });
    output::text(&text.collect::<Vec<_>>().join("\n"))?;
    output::message("\nrun one with `quintain run NAME`; copy it here to change it with `quintain studies copy NAME`");
    Ok(())
}

fn listed(name: &'static str, cpus: u32) -> Result<Listed> {
    let mut profiles = Vec::new();
    let mut needs = BTreeSet::new();
    for profile in [Profile::Quick, Profile::Default, Profile::Full] {
        let plan = plan(name, profile, cpus)?;
        profiles.push(Time { profile: profile.name(), effort: plan.estimate() });
        if profile != Profile::Full {
            needs.extend(programs(&plan));
        }
    }
    Ok(Listed { name, question: plan(name, Profile::Default, cpus)?.question, needs, profiles })
}

fn text_of(name: &str) -> Result<&'static str> {
    built_in::study(name).ok_or_else(|| {
        let names = built_in::names().collect::<Vec<_>>();
        usage(format!("no built-in study `{name}`")).hint(config::nearest::suggestion(name, names))
    })
}

fn plan(name: &str, profile: Profile, machine_cpus: u32) -> Result<Plan> {
    let text = text_of(name)?;
    let options = ExpandOptions { name: name.to_owned(), profile, machine_cpus, ..ExpandOptions::default() };
    let plan = study::parse(text).and_then(|study| study::expand(&study, &options));
    plan.map_err(|mistakes| crate::study_file::mistaken(Path::new(name), text, &mistakes))
}

/// Programs that a plan needs, from its commands and from the toolchain checks in builds of built-in servers.
fn programs(plan: &Plan) -> BTreeSet<String> {
    let mut programs = BTreeSet::new();
    for point in &plan.points {
        let commands = point.processes().flat_map(|process| [Some(&process.command), process.build.as_ref()]);
        for command in commands.flatten() {
            let words = study::shell_words::split(command).unwrap_or_default();
            let program =
                words.first().filter(|program| !program.contains('/') && *program != "quintain" && *program != "sh");
            programs.extend(program.cloned());
            let makefiles = words.iter().filter_map(|word| FILES.get(&format!("{word}/Makefile")));
            programs.extend(makefiles.flat_map(|file| toolchains(file)));
            programs.extend(toolchains(command));
        }
    }
    // `go` is omitted if `go 1.22` is listed.
    let is_said = |program: &String| programs.iter().any(|other| other.starts_with(&format!("{program} ")));
    programs.iter().filter(|program| !is_said(program)).cloned().collect()
}

/// Extracts toolchains from messages in a build command, such as `missing toolchain: go 1.22 or newer`.
fn toolchains(build: &str) -> Vec<String> {
    let said = build.split("missing toolchain: ").skip(1).filter_map(|rest| rest.split(['"', '\'']).next());
    // A message about packages that could not be fetched has a colon and names no programs.
    let programs = said.filter(|said| !said.contains(':') || said.contains("(Debian:"));
    let named = programs.map(|said| {
        let end = [" (", " of ", " with ", " or newer"].iter().filter_map(|end| said.find(end)).min();
        said[..end.unwrap_or(said.len())].replace("$(CC)", "cc").replace("$(CXX)", "c++")
    });
    named.collect()
}

fn copy(name: &str, folder: &Path) -> Result<()> {
    let paths = named(name)?;
    let files = paths.iter().map(|path| (folder.join(path), &FILES[*path])).collect::<Vec<_>>();
    let other = files.iter().filter(|(place, file)| place.exists() && !built_in::is_whole(place, file));
    let other = other.map(|(place, _)| format!("`{}`", place.display())).collect::<Vec<_>>();
    if !other.is_empty() {
        return Err(usage(format!("nothing copied, these differ: {}", other.join(", ")))
            .hint(format!("choose another directory: `quintain studies copy {name} DIR`")));
    }
    for (place, file) in files.iter().filter(|(place, _)| !place.exists()) {
        built_in::write(place, file).map_err(cannot(Exit::Usage, "write", place))?;
    }
    let study = folder.join(built_in::STUDIES).join(format!("{name}.toml"));
    let runnable = study.strip_prefix(".").unwrap_or(&study).display();
    output::message(&format!("{} files; run it with `quintain run {runnable}`", paths.len()));
    Ok(())
}

/// Paths of a study's packed files: the study, the files that its plans name, and the directories of its servers.
fn named(name: &str) -> Result<BTreeSet<&'static str>> {
    let mut words = BTreeSet::new();
    for profile in Profile::ALL {
        let mut plan = plan(name, profile, LARGE)?;
        plan.text.clear();
        let plan = serde_json::from_str(&plan.to_json().map_err(machine)?).map_err(machine)?;
        texts(&plan, &mut words);
    }
    let servers = words.iter().filter_map(|word| {
        let server = word.strip_prefix("subjects/")?.split('/').next()?;
        (!server.is_empty()).then(|| format!("subjects/{server}/"))
    });
    let mut servers = servers.collect::<BTreeSet<_>>();
    // The Rust servers share a workspace, which builds only with all its members.
    let folders = FILES.keys().filter_map(|path| path.strip_suffix("Cargo.toml")?.strip_prefix("subjects/"));
    let members = folders.filter(|folder| !folder.is_empty()).map(|folder| format!("subjects/{folder}"));
    let members = members.collect::<BTreeSet<_>>();
    let workspace = !servers.is_disjoint(&members);
    if workspace {
        servers.extend(members);
    }
    let own = format!("{}/{name}.toml", built_in::STUDIES);
    let wanted = |path: &str| {
        path == own
            || words.contains(path)
            || servers.iter().any(|server| path.starts_with(server.as_str()))
            || (workspace && ["subjects/Cargo.toml", "subjects/Cargo.lock"].contains(&path))
            || (!servers.is_empty() && path == "subjects/.gitignore")
    };
    Ok(FILES.keys().map(String::as_str).filter(|path| wanted(path)).collect())
}

fn texts(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => words.extend(text.split_whitespace().map(str::to_owned)),
        Value::Array(values) => values.iter().for_each(|value| texts(value, words)),
        Value::Object(values) => values.values().for_each(|value| texts(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extracts_missing_toolchains() {
        let said = |text: &str| toolchains(&format!("@x || {{ echo \"missing toolchain: {text}\" >&2; exit 1; }}\n"));
        for (text, expected) in [
            ("$(CC)", Some("cc")),
            ("$(CXX) with C++20 coroutines", Some("c++")),
            ("go 1.22 or newer", Some("go 1.22")),
            ("java and javac of 17 or newer", Some("java and javac")),
            ("mvn (Debian: maven)", Some("mvn")),
            ("uvicorn: pip cannot install it (see above)", None),
        ] {
            assert_eq!(said(text).first().map(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn every_built_in_study_is_listed_and_complete() {
        let root = tempfile::tempdir().unwrap();
        for name in built_in::names() {
            let line = listed(name, 4).unwrap();
            assert!(line.question.ends_with('?') && line.profiles.len() == 3, "{line:?}");
            for path in named(name).unwrap() {
                built_in::write(&root.path().join(path), &FILES[path]).unwrap();
            }
            for profile in Profile::ALL {
                let missing = lab::missing_files(&plan(name, profile, LARGE).unwrap(), root.path());
                assert_eq!(missing, Vec::<String>::new(), "{name}");
            }
        }
    }

    #[test]
    fn copy_has_only_the_files_its_study_names() {
        let volley = named("volley").unwrap();
        assert!(volley.contains("subjects/c-epoll/main.c") && volley.contains("subjects/Cargo.lock"), "{volley:?}");
        assert!(!volley.iter().any(|path| path.starts_with("subjects/http-go/")), "{volley:?}");
        let whip = named("whip").unwrap();
        assert!(
            whip.contains("contracts/codecs/schemas/chess.wsdl") && !whip.contains("subjects/Cargo.toml"),
            "{whip:?}"
        );
        assert_eq!(named("cache-baseline").unwrap().into_iter().collect::<Vec<_>>(), ["studies/cache-baseline.toml"]);
    }
}
