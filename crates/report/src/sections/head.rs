//! The head of a report: question, answer, banners and facts.

use analysis::Findings;
use analysis::findings::Source;
use analysis::number::{count, percent};
use study::record::IdlePolicy;

use crate::document::{Banner, Document};

pub(crate) fn head(f: &Findings) -> Document {
    let measured = f.rows.iter().any(|row| row.n > 0);
    let nothing = if measured { "no conclusion could be drawn" } else { "nothing was measured" };
    Document {
        study: f.study.clone(),
        what: format!("run {}", f.run),
        started: f.started.clone(),
        question: f.question.clone(),
        banners: banners(f),
        answer: f.answer.iter().map(|sentence| (sentence.text.clone(), anchor(sentence.from))).collect(),
        no_answer: format!("No answer: {nothing}."),
        facts: facts(f),
        ..Document::default()
    }
}

fn anchor(source: Source) -> &'static str {
    match source {
        Source::Rows | Source::Searches => "results",
        Source::Gate => "gate",
        Source::Comparisons | Source::Trends => "comparisons",
        Source::Added => "added",
        Source::Scalability => "scalability",
        Source::Effects => "effects",
        Source::MissRatios => "miss-ratio",
        Source::OverRequests => "over-requests",
    }
}

fn banners(f: &Findings) -> Vec<Banner> {
    let quick = f.quick.then(|| Banner {
        text: "QUICK RUN: few, short trials. Intervals have no stated confidence.".to_owned(),
        command: String::new(),
    });
    let unfinished = f.unfinished.as_ref().map(|unfinished| {
        // Capitals attract attention even without color.
        let (first, rest) = unfinished.sentence.split_at(unfinished.state.word().len());
        Banner { text: format!("{}{rest}: partial results.", first.to_uppercase()), command: unfinished.resume.clone() }
    });
    quick.into_iter().chain(unfinished).collect()
}

fn facts(f: &Findings) -> Vec<(String, String)> {
    let trials: usize = f.all_rows().map(|row| row.n).sum();
    let failed: usize = f.all_rows().flat_map(|row| &row.failures).map(|failure| failure.count).sum();
    let measured = f.rows.iter().filter(|row| row.n > 0).count();
    let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
    let machine = [Some(&f.machine.cpu_model), f.machine.hypervisor.as_ref()];
    let machine = machine.into_iter().flatten().filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>();
    let cpus = count(f.machine.cpus.len() as u64, "CPU");
    let (points, trials) = (count(f.rows.len() as u64, "design point"), count(trials as u64, "trial"));
    let intervals = format!("{}, Student's t over trials, each with a fresh server", percent(f.level));
    let intervals = if f.quick { "quick run, no stated confidence".to_owned() } else { intervals };
    let facts = [
        ("Measured", format!("{measured} of {points}, {trials}{failed}, profile {}", f.profile)),
        ("Intervals", intervals),
        ("Load", if f.load.is_empty() { "none".to_owned() } else { f.load.clone() }),
        ("Idle CPUs", idle(f)),
        ("Machine", format!("{}: {}, {cpus}", f.machine.name, machine.join(", "))),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn idle(f: &Findings) -> String {
    let has = |policy| f.all_rows().any(|row| row.idle == Some(policy));
    match (has(IdlePolicy::Machine), has(IdlePolicy::Spin)) {
        (true, true) => "both policies, as separate series: the machine's own, and kept awake by a spinner",
        (true, false) => "the machine's own policy",
        (false, true) => "kept awake by a spinner (SCHED_IDLE)",
        (false, false) => "no trial ran",
    }
    .to_owned()
}
