//! `quintain adapter`: a proxy before one party that asks contracts of what passes.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::sync_channel;

use ::adapter::{Config, Language, StartError};

use crate::cli::AdapterArgs;
use crate::message::{Done, Exit, Problem};
use crate::{output, signals};

pub(crate) fn adapter(args: AdapterArgs) -> Done {
    let config = read(&args.config)?;
    let checked = ::adapter::check(&config).map_err(wrong)?;
    for warning in &checked.warnings {
        output::message(&format!("warning: {warning}"));
    }
    if args.check {
        output::message(&format!("{}: fine", args.config.display()));
        return Ok(Exit::Fine);
    }
    let out: Box<dyn Write + Send> =
        match &config.reports.file {
            Some(path) => {
                let file = File::options().create(true).append(true).open(path);
                Box::new(file.map_err(|error| {
                    Problem::text(Exit::Machine, format!("cannot write {}: {error}", path.display()))
                })?)
            }
            None => Box::new(std::io::stdout()),
        };
    let (ends, wait) = sync_channel(2);
    signals::on_end(move |_| {
        // Whoever asks twice has been heard already.
        let _ = ends.try_send(());
    })?;
    let running = ::adapter::start(&config, checked, out).map_err(wrong)?;
    for (what, address) in &running.addresses {
        output::message(&format!("{what}: {address}"));
    }
    output::message("ready");
    // An error means that nobody is left to ask for the end.
    let _ = wait.recv();
    running.end();
    Ok(Exit::Fine)
}

fn read(path: &Path) -> Result<Config, Problem> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problem::text(Exit::Usage, format!("cannot read {}: {error}", path.display())))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    ::adapter::config::read(&path.display().to_string(), &text, Language::of(path), folder).map_err(|mistakes| {
        let count = mistakes.len();
        let text = mistakes.iter().map(|mistake| format!("error: {mistake}\n")).collect::<String>();
        Problem::rendered(Exit::Usage, format!("{text}\n{count} mistake{}", if count == 1 { "" } else { "s" }))
    })
}

fn wrong(error: StartError) -> Problem {
    match error {
        StartError::Wrong(all) => {
            let text = all.iter().map(|mistake| format!("error: {mistake}\n")).collect::<String>();
            Problem::rendered(Exit::Usage, text.trim_end().to_owned())
        }
        StartError::System { .. } => Problem::new(Exit::Machine, error),
    }
}
