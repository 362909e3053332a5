//! `quintain adapter`: runs a proxy beside one party and checks its messages against contracts.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use ::adapter::{Draft, Running, StartError};
use signal_hook::consts::SIGHUP;

use crate::command_result::{Exit, Problem, Result, usage};
use crate::{output, signals};

pub(crate) fn adapter(path: &Path, only_check: bool) -> Result<()> {
    let draft = read(path)?;
    let checked = ::adapter::check(&draft).map_err(wrong)?;
    let config = &draft.config;
    checked.warnings.iter().for_each(|warning| output::message(&format!("warning: {warning}")));
    if only_check {
        output::message(&format!("{}: no errors", path.display()));
        return Ok(());
    }
    let out: Box<dyn Write + Send> = match &config.reports.file {
        Some(path) => {
            let failed = |error| Problem::text(Exit::Machine, format!("cannot write {}: {error}", path.display()));
            Box::new(File::options().create(true).append(true).open(path).map_err(failed)?)
        }
        None => Box::new(std::io::stdout()),
    };
    let (ends, asked) = channel();
    let reloads = ends.clone();
    // Sending fails only if the end has already been requested.
    signals::on_end(move |_| drop(ends.send(Asked::End)))?;
    signals::watch(&[SIGHUP], move |_| drop(reloads.send(Asked::Reload)))?;
    let running = ::adapter::start(config, checked, out).map_err(wrong)?;
    running.addresses.iter().for_each(|(what, address)| output::message(&format!("{what}: {address}")));
    output::message("ready");
    let mut releases = 0;
    loop {
        match asked.recv_timeout(Duration::from_secs(1)) {
            Ok(Asked::Reload) => reload(&running, &draft),
            Err(RecvTimeoutError::Timeout) => {
                // The connections of a burst end one after another, so memory is released repeatedly for five seconds.
                releases = if running.take_burst() { 5_u32 } else { releases.saturating_sub(1) };
                if releases > 0 {
                    net::thread_and_process::release_memory();
                }
            }
            Ok(Asked::End) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(running);
    Ok(())
}

enum Asked {
    End,
    Reload,
}

fn reload(running: &Running, draft: &Draft) {
    let shown = draft.config.contract.display();
    match running.reload(draft) {
        Ok(warnings) => {
            warnings.iter().for_each(|warning| output::message(&format!("warning: {warning}")));
            output::message(&format!("{shown}: reloaded"));
        }
        Err(error) => {
            if let StartError::Wrong(all) = &error {
                all.iter().for_each(|mistake| output::message(&format!("error: {mistake}")));
            } else {
                output::message(&format!("error: {error}"));
            }
            output::message(&format!("{shown}: not reloaded; the previous contract stays in effect"));
        }
    }
}

fn read(path: &Path) -> Result<Draft> {
    if path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") {
        let text = format!("{}: configurations are TOML; the YAML of Whip's adapters is not supported", path.display());
        let hint = "write `[protocols.NAME]` for each of `interpreters`, `[[providing]]` for each of `server_proxies`, \
                    `[[consuming]]` for each of `client_proxies`; docs/guides/adapter.md has a complete example";
        return Err(usage(text).hint(hint));
    }
    let text = output::read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(::adapter::config::draft(&path.display().to_string(), &text, folder))
}

fn wrong(error: StartError) -> Problem {
    match error {
        StartError::Wrong(all) => {
            let count = analysis::number::count(all.len() as u64, "error");
            let text = all.iter().map(|mistake| format!("error: {mistake}\n")).collect::<String>();
            Problem::rendered(Exit::Usage, format!("{text}\n{count}"))
        }
        StartError::System { .. } => Problem::new(Exit::Machine, error),
    }
}
