//! `cargo xtask claims`: what the four sources state, held against the runs of a store. Writes docs/CLAIMS.md.

mod claim;
mod declared;
mod judge;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;

use analysis::Findings;
use claim::{Claim, Command, Source};
use judge::{Answer, Verdict};
use store::Store;
use study::record::RunState;
use study::{ExpandOptions, Plan, Profile, Run};

const HELP: &str = "\
Hold what the four sources state against the runs of a store; print the page.

Usage: cargo xtask claims [--store FILE] [--write] [--commands]

  --store FILE  store with the runs [default: quintain.db]
  --write       write the page to docs/CLAIMS.md
  --commands    print the commands of all runs, with the time that each takes";

/// The page.
const PAGE: &str = "docs/CLAIMS.md";

pub fn run(arguments: &[String]) -> Result<(), String> {
    let (mut path, mut writes, mut lists) = ("quintain.db".to_owned(), false, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(());
            }
            "--store" => path = arguments.next().ok_or(format!("`--store` expects a value\n\n{HELP}"))?.clone(),
            "--write" => writes = true,
            "--commands" => lists = true,
            unknown => return Err(format!("unknown argument `{unknown}`\n\n{HELP}")),
        }
    }
    let claims = declared::claims();
    if lists {
        print!("{}", commands(&claims)?);
        return Ok(());
    }
    let runs = match Path::new(&path).exists() {
        true => stored(&Store::open_existing(&path).map_err(|error| error.to_string())?)?,
        false => {
            eprintln!("note: no store `{path}`: no claim has a run");
            Vec::new()
        }
    };
    let text = page(&claims, &runs);
    if writes {
        let page = crate::tidy::root().join(PAGE);
        return std::fs::write(&page, text).map_err(|error| format!("cannot write `{}`: {error}", page.display()));
    }
    print!("{text}");
    Ok(())
}

/// A run that may answer, with what analysis makes of it; worked out when it is first asked for.
struct Stored {
    run: Run,
    records: Vec<study::Record>,
    findings: OnceCell<Findings>,
}

impl Stored {
    fn findings(&self) -> &Findings {
        self.findings.get_or_init(|| analysis::analyze(&self.run, &self.records))
    }
}

/// Runs that have ended as they should, the latest first. Quick runs claim no confidence level and answer nothing.
fn stored(store: &Store) -> Result<Vec<Stored>, String> {
    let studies = declared::claims().into_iter().filter_map(|claim| match claim.command {
        Command::Run { study, .. } => Some(study),
        _ => None,
    });
    let studies = studies.collect::<std::collections::BTreeSet<_>>();
    let ended = |state: Option<RunState>| matches!(state, Some(RunState::Complete | RunState::OutOfTime));
    let runs = store.runs().map_err(|error| error.to_string())?.into_iter().filter(|summary| {
        summary.profile != Profile::Quick.name() && ended(summary.state) && studies.contains(summary.study.as_str())
    });
    runs.map(|summary| {
        let run = store.run(&summary.id).map_err(|error| error.to_string())?;
        let mut records = store.records(&run.id).map_err(|error| error.to_string())?;
        analysis::judge_again(&run, &mut records);
        Ok(Stored { run, records, findings: OnceCell::new() })
    })
    .collect()
}

/// The latest run of the study that has the design points, with nothing else set than the claim's command sets.
fn run_of<'a>(claim: &Claim, runs: &'a [Stored]) -> Option<&'a Stored> {
    let Command::Run { study, sets } = &claim.command else { return None };
    runs.iter().find(|stored| {
        let plan = &stored.run.plan;
        let has = |at| plan.points.iter().any(|point| judge::has(&point.factors, at));
        // Levels and rules of stopping change no row; any other setting makes it another study.
        let changes = |set: &&String| {
            let key = set.split('=').next().unwrap_or_default();
            !key.starts_with("trials.") && !plan.factors.iter().any(|factor| factor == key)
        };
        plan.study == *study
            && claim.look.places().iter().all(has)
            && sets_of(&stored.run.command).iter().filter(changes).all(|set| sets.contains(set))
    })
}

/// The `--set`s of a command line.
fn sets_of(command: &[String]) -> Vec<String> {
    let apart = command.windows(2).filter(|words| words[0] == "--set").map(|words| words[1].clone());
    let joined = command.iter().filter_map(|word| word.strip_prefix("--set=").map(str::to_owned));
    apart.chain(joined).collect()
}

/// What the runs say of a claim, and which run does.
fn answer<'a>(claim: &Claim, runs: &'a [Stored]) -> (Answer, Option<&'a Run>) {
    if let Some(answer) = judge::judge_without_run(&claim.look) {
        return (answer, None);
    }
    match run_of(claim, runs) {
        Some(stored) => (judge::judge(claim, stored.findings()), Some(&stored.run)),
        None => (Answer::none("no run in the store", "that run"), None),
    }
}

/// What the page says of a claim whatever the store has.
fn declaration(claim: &Claim) -> String {
    let (file, _) = claim.source.names();
    let command = match &claim.command {
        Command::None => "none".to_owned(),
        command => format!("`{command}`"),
    };
    let criterion = claim.look.criterion().map_or(String::new(), |criterion| format!("- Agrees if: {criterion}\n"));
    let only_on = claim.only_on.map_or(String::new(), |machine| format!("- Comparable only on: {machine}\n"));
    let Claim { id, statement, section, .. } = claim;
    format!("### {id}\n\n{statement} ({file}, \"{section}\")\n\n- Command: {command}\n{criterion}{only_on}")
}

fn page(claims: &[Claim], runs: &[Stored]) -> String {
    let answers = claims.iter().map(|claim| answer(claim, runs)).collect::<Vec<_>>();
    let mut used = BTreeMap::<&str, &Run>::new();
    used.extend(answers.iter().filter_map(|(_, run)| run.map(|run| (run.id.as_str(), run))));
    let mut text = format!(
        "# Claims of the four sources

Written by `cargo xtask claims --write` from the runs of a store; `cargo xtask claims --commands` lists the runs.
Do not edit it: another machine writes the same page with other answers.

quintain grew from four documents. Each statement in them that a measurement can test is listed here, in our words and
with their numbers. A claim agrees where the whole 95 % interval lies inside the range that the source states, disagrees
where all of it lies outside, and cannot be told otherwise. Margins for \"roughly\" and \"no effect\" are ours, since
the sources name none. Ratios compare the trials of one block and need {blocks} blocks (signed rank, Hodges-Lehmann
interval). Absolute values are those of the run, not of the server at all times. Each claim is tested by itself: with
{total} claims, a wrong verdict or two by chance are to be expected. Quick and unfinished runs answer nothing.

| Source | Claims | {} |
|---|---:|---:|---:|---:|
",
        Verdict::WORDS.join(" | "),
        blocks = judge::BLOCKS_MIN,
        total = claims.len(),
    );
    let judged = || claims.iter().zip(&answers);
    let counts = |name: &str, wanted: &dyn Fn(&Claim) -> bool| {
        let words = judged().filter(|(claim, _)| wanted(claim)).map(|(_, (answer, _))| answer.verdict.word());
        let words = words.collect::<Vec<_>>();
        let of = Verdict::WORDS.map(|word| words.iter().filter(|found| **found == word).count().to_string());
        format!("| {name} | {} | {} |\n", words.len(), of.join(" | "))
    };
    for source in Source::ALL {
        text += &counts(source.names().1, &|claim| claim.source == source);
    }
    text += &counts("All", &|_| true);
    text += "\n## Runs\n\n";
    if used.is_empty() {
        text += "None of the store answers a claim.\n";
    } else {
        text += "| Run | Started | Machine | CPUs | Revision |\n|---|---|---|---:|---|\n";
    }
    for run in used.values() {
        let revision = run.revision.as_deref().unwrap_or("unknown");
        let (host, started) = (&run.host, &run.started);
        text += &format!("| `{}` | {started} | {} | {} | {revision} |\n", run.id, host.cpu_model, host.cpus.len());
    }
    for source in Source::ALL {
        text += &format!("\n## {}\n", source.names().1);
        for (claim, (answer, run)) in judged().filter(|(claim, _)| claim.source == source) {
            let run = run.map_or(String::new(), |run| format!(" (`{}`)", run.id));
            text += &format!("\n{}- Found: {}{run}\n", declaration(claim), answer.found);
            text += &match &answer.verdict {
                Verdict::CannotTell { why, needs } => {
                    format!("- Verdict: **{}**: {why}. Needed: {needs}\n", answer.verdict.word())
                }
                verdict => format!("- Verdict: **{}**\n", verdict.word()),
            };
        }
    }
    text
}

/// Every run that the claims need, once, with the time that it takes on this machine.
fn commands(claims: &[Claim]) -> Result<String, String> {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX));
    let mut seen = Vec::new();
    let (mut text, mut least, mut most) = (String::new(), 0.0, 0.0);
    for claim in claims {
        if !matches!(claim.command, Command::Run { .. }) || seen.contains(&&claim.command) {
            continue;
        }
        seen.push(&claim.command);
        let effort = expanded(&claim.command, cpus)?.estimate();
        (least, most) = (least + effort.seconds_min, most + effort.seconds_max);
        text += &format!(
            "{}\n    {} to {} trials, {:.0} to {:.0} min\n",
            claim.command,
            effort.trials_min,
            effort.trials_max,
            effort.seconds_min / 60.0,
            effort.seconds_max / 60.0
        );
    }
    text += &format!(
        "{} runs, {:.1} to {:.1} h on {cpus} CPUs, without builds and without the time of requests that are counted\n",
        seen.len(),
        least / 3600.0,
        most / 3600.0
    );
    Ok(text)
}

/// The plan of a command that is a run.
fn expanded(command: &Command, machine_cpus: u32) -> Result<Plan, String> {
    let Command::Run { study, sets } = command else { return Err(format!("`{command}` is no run of a study")) };
    let file = format!("studies/{study}.toml");
    let text = std::fs::read_to_string(crate::tidy::root().join(&file)).map_err(|error| format!("{file}: {error}"))?;
    let mut pairs = Vec::new();
    for set in sets {
        let (key, value) = set.split_once('=').ok_or_else(|| format!("`--set {set}` has no `=`"))?;
        pairs.push((key.to_owned(), value.to_owned()));
    }
    let profile = Profile::Default;
    let options = ExpandOptions {
        name: (*study).to_owned(),
        seed: 1,
        profile,
        machine_cpus,
        generators_apart: false,
        sets: pairs,
    };
    let plan = study::parse(&text).and_then(|study| study::expand(&study, &options));
    plan.map_err(|errors| {
        let errors = errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        format!("`{command}`: {}", errors.join("; "))
    })
}

#[cfg(test)]
mod tests;
