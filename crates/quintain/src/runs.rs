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
    let mut rows = vec![["RUN", "STARTED", "PROFILE", "TRIALS", "FAILED", "STUDY"].map(str::to_owned).to_vec()];
    rows.extend(
        runs.into_iter().map(|run| {
            vec![run.id, run.started, run.profile, run.trials.to_string(), run.failed.to_string(), run.study]
        }),
    );
    output::data(&output::columns(&rows))?;
    Ok(Exit::Fine)
}
