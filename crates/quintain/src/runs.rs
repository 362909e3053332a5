//! `quintain runs`: what is in the store.

use store::Store;

use crate::cli::StoreArgs;
use crate::message::{Done, Exit};
use crate::output;

pub(crate) fn runs(args: StoreArgs) -> Done {
    let runs = Store::open_existing(&args.store)?.runs()?;
    if args.json {
        output::json(&runs)?;
        return Ok(Exit::Fine);
    }
    if runs.is_empty() {
        output::message(&format!("no runs in `{}` yet; `quintain run volley` makes one", args.store.display()));
        return Ok(Exit::Fine);
    }
    let mut rows = vec![["RUN", "STARTED", "PROFILE", "TRIALS", "FAILED", "STUDY"].map(str::to_owned)];
    rows.extend(
        runs.into_iter()
            .map(|run| [run.id, run.started, run.profile, run.trials.to_string(), run.failed.to_string(), run.study]),
    );
    let mut text = String::new();
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let last = column + 1 == row.len();
            text.push_str(&if last { format!("{cell}\n") } else { format!("{cell:width$}  ") });
        }
    }
    output::data(&text)?;
    Ok(Exit::Fine)
}
