//! Escapes text from servers, which may print anything, including terminal control sequences.

use std::borrow::Cow;

pub use config::printable::text as visible;
use study::record::{Build, BuildOutcome, Outcome, Record};

pub(crate) fn record(record: &Record) -> Cow<'_, Record> {
    let hidden = |text: &String| matches!(visible(text), Cow::Owned(_));
    let any = match &record.outcome {
        Outcome::Failed(failure) => hidden(&failure.message),
        Outcome::Measured(measurement) => measurement.error_examples.values().any(hidden),
    };
    if !any && !record.warnings.iter().any(|warning| hidden(&warning.text)) {
        return Cow::Borrowed(record);
    }
    let mut record = record.clone();
    match &mut record.outcome {
        Outcome::Failed(failure) => show(&mut failure.message),
        Outcome::Measured(measurement) => measurement.error_examples.values_mut().for_each(show),
    }
    record.warnings.iter_mut().for_each(|warning| show(&mut warning.text));
    Cow::Owned(record)
}

pub(crate) fn build(build: &Build) -> Build {
    let mut build = build.clone();
    match &mut build.outcome {
        BuildOutcome::Ready => {}
        BuildOutcome::Skipped { reason: text }
        | BuildOutcome::Unrunnable { reason: text }
        | BuildOutcome::Unverified { reason: text, .. }
        | BuildOutcome::Failed { output_tail: text } => show(text),
    }
    build
}

fn show(text: &mut String) {
    if let Cow::Owned(shown) = visible(text) {
        *text = shown;
    }
}
