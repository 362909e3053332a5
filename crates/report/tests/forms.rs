//! Compares the forms of a report: Markdown and the page must contain all text of the terminal.

use analysis::{Findings, analyze};
use fixtures::{self as example, MS, leave};
use report::{Style, csv, csv_added, csv_effects, csv_miss_ratios, csv_trials, html, markdown, terminal};
use study::WarningKind;
use study::record::{BuildOutcome, Failure, FailureKind, Measurement, Outcome, Record, Run, RunState};

/// Number of additional misses per 100,000, which differs between blocks.
fn noise(block: u32) -> i64 {
    i64::from(block * 31 % 7) * 4 - 12
}

fn with(trials: usize, edit: impl Fn(&mut Measurement)) -> (Run, Vec<Record>) {
    let (run, mut records) = example::compared();
    for record in records.iter_mut().filter(|record| record.point == 0).take(trials) {
        let Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
        edit(measurement);
    }
    (run, records)
}

fn interrupted() -> (Run, Vec<Record>) {
    let (mut run, mut records) = example::volley();
    records.truncate(5);
    run.state = Some(RunState::Interrupted);
    run.resume = "quintain run volley --resume 'volley & more'".to_owned();
    (run, records)
}

fn all() -> Vec<(&'static str, Findings)> {
    let quick = || {
        let (mut run, mut records) = example::volley();
        run.plan.trials.quick = true;
        records.retain(|record| record.block == 0);
        (run, records)
    };
    let nothing = || {
        let (run, _) = example::volley();
        (run, Vec::new())
    };
    [
        ("volley", example::volley()),
        ("compared", example::compared()),
        ("sweep", example::sweep()),
        ("threads", example::threads()),
        ("capacity", example::capacity()),
        ("builds", example::builds()),
        ("through a proxy", example::through_in(18)),
        ("cluster", example::cluster()),
        ("curves", example::curves(|_, _, block| noise(block))),
        ("a hung subject", with(1, |measurement| leave(measurement, &[200 * MS; 40], &[], 200 * MS))),
        ("lower bounds", with(3, |measurement| leave(measurement, &[4_000 * MS], &[], MS))),
        ("interrupted", interrupted()),
        ("quick", quick()),
        ("nothing", nothing()),
    ]
    .into_iter()
    .map(|(name, (run, records))| (name, analyze(&run, &records)))
    .collect()
}

fn seen(page: &str) -> String {
    let (mut text, mut inside) = (String::new(), false);
    for letter in page.chars() {
        match letter {
            '<' => inside = true,
            '>' => inside = false,
            _ if inside => {}
            letter => text.push(letter),
        }
    }
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&"), ("&nbsp;", " ")];
    let text = entities.iter().fold(text, |text, (entity, letter)| text.replace(entity, letter));
    (32..127u8).fold(text, |text, code| text.replace(&format!("&#{code};"), &char::from(code).to_string()))
}

/// Keeps letters, digits and signs of numbers, because separators differ between forms.
fn plain(text: &str) -> String {
    text.to_lowercase().chars().filter(|letter| letter.is_alphanumeric() || "±≥×%+".contains(*letter)).collect()
}

#[test]
fn markdown_and_page_contain_all_terminal_text() {
    let mut checked = 0;
    for (name, findings) in all() {
        let forms = [("markdown", plain(&markdown(&findings))), ("page", plain(&seen(&html(&findings).unwrap())))];
        // Cells and sentences are compared: columns are two spaces apart, and a line may have several sentences.
        let text = terminal(&findings, &Style::PLAIN);
        let parts = text.lines().flat_map(|line| line.split("  ")).flat_map(|part| part.split(". "));
        for part in parts.map(plain).filter(|part| !part.is_empty()) {
            for (form, text) in &forms {
                assert!(text.contains(&part), "{name}: the {form} lacks `{part}`");
                checked += 1;
            }
        }
    }
    assert!(checked > 2_000, "{checked}");
}

#[test]
fn all_forms_have_sentences_warnings_and_verdicts() {
    for (name, findings) in all() {
        let forms = [terminal(&findings, &Style::PLAIN), markdown(&findings), seen(&html(&findings).unwrap())];
        let forms = forms.map(|form| plain(&form));
        let verdicts = findings.rows.iter().filter_map(|row| row.limited_by.as_ref());
        let verdicts = verdicts.map(|found| analysis::enum_words_and_lists::limit_word(found.limit).to_owned());
        let sentences = findings.answer.iter().map(|sentence| sentence.text.clone());
        let warnings = findings.warnings.iter().map(|warning| warning.text.clone());
        for words in sentences.chain(warnings).chain(verdicts) {
            assert!(forms.iter().all(|form| form.contains(&plain(&words))), "{name}: {words}");
        }
    }
}

#[test]
fn all_forms_report_an_interrupted_run() {
    let (mut run, records) = interrupted();
    let findings = analyze(&run, &records);
    let narrow = terminal(&findings, &Style { colour: false, width: 40 }).replace("\n  ", " ");
    for text in [narrow, markdown(&findings), seen(&html(&findings).unwrap())] {
        assert!(text.to_lowercase().contains("interrupted after 5 of at least 88 trials"), "{text}");
        assert!(text.contains(&run.resume), "{text}");
    }
    for text in [csv(&findings), csv_trials(&findings)] {
        let mut lines = text.lines();
        assert!(lines.next().unwrap().ends_with(",run_state"), "{text}");
        assert!(lines.all(|line| line.ends_with(",interrupted")), "{text}");
    }
    run.state = Some(RunState::Running);
    let running = terminal(&analyze(&run, &records), &Style::PLAIN);
    assert!(running.contains("RUNNING, 5 of at least 88 trials so far"), "{running}");
    assert!(!running.contains("--resume"), "it continues by itself: {running}");
}

#[test]
fn no_form_passes_on_control_characters() {
    let (mut run, mut records) = example::volley();
    let evil = "\x1b]0;owned\x07 \u{9b}2J";
    for record in records.iter_mut().filter(|record| record.point == 0) {
        record.outcome = Outcome::Failed(Failure { kind: FailureKind::Start, message: format!("saying: {evil}") });
    }
    let measured = records.iter_mut().find(|record| record.measurement().is_some()).unwrap();
    let Outcome::Measured(measurement) = &mut measured.outcome else { unreachable!() };
    measurement.errors.insert("wrong-answer".to_owned(), 1);
    measurement.error_examples.insert("wrong-answer".to_owned(), evil.to_owned());
    measured.warnings.push(WarningKind::Other.says(evil));
    run.builds[2].outcome = BuildOutcome::Failed { output_tail: format!("cc: {evil}") };
    let findings = analyze(&run, &records);
    let forms =
        [terminal(&findings, &Style::PLAIN), markdown(&findings), html(&findings).unwrap(), csv_trials(&findings)];
    for text in forms {
        assert!(text.contains("owned"), "it is shown: {text}");
        let hidden = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(hidden, None, "{text:?}");
    }
}

#[test]
fn all_forms_report_a_hung_server() {
    let (run, records) = with(1, |measurement| leave(measurement, &[200 * MS; 40], &[], 200 * MS));
    let findings = analyze(&run, &records);
    let text = terminal(&findings, &Style::PLAIN);
    assert!(text.contains("* the server hung"), "{text}");
    for text in [text, markdown(&findings), html(&findings).unwrap()] {
        assert!(text.contains("40 still in flight") && text.contains("≥ "), "{text}");
    }
}

#[test]
fn csv_has_every_number() {
    let (run, records) = example::builds();
    let text = csv_effects(&analyze(&run, &records));
    // A header, then 9 sources, 6 levels, 12 pairs of levels and 15 changes for each of two analyses.
    assert_eq!(text.lines().count(), 1 + 2 * (9 + 6 + 12 + 15));
    assert!(text.lines().all(|line| line.split(',').count() == 19), "{text}");
    let change = text.lines().find(|line| line.contains(",ratio,change,build,O0,O2,,,")).unwrap();
    let point = change.split(',').nth(16).unwrap().parse::<f64>().unwrap();
    assert!((point / 5f64.sqrt() - 1.0).abs() < 0.03, "{change}");

    let (run, records) = example::through_in(18);
    let findings = analyze(&run, &records);
    let text = csv_added(&findings);
    assert_eq!(text.lines().count(), 1 + findings.added[0].metrics.len());
    assert!(text.contains(",adapter,,latency_mean,ns,18,"), "{text}");

    let (run, records) = example::curves(|_, _, block| noise(block));
    let text = csv_miss_ratios(&analyze(&run, &records));
    assert_eq!(text.lines().count(), 1 + 10 + 8);
    assert!(text.lines().all(|line| line.split(',').count() == 18), "{text}");
}

#[test]
fn draws_figures_of_a_proxy() {
    let (run, records) = example::through_in(18);
    let names = report::figure_svgs(&analyze(&run, &records), report::Background::Light)
        .into_iter()
        .map(|(name, _)| name)
        .collect::<Vec<_>>();
    for wanted in ["1-added-latency_p50", "2-memorychart", "3-throughputchart", "4-networkchart"] {
        assert!(names.iter().any(|name| name.starts_with(wanted)), "{wanted}: {names:?}");
    }
}
