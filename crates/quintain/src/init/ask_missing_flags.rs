//! Questions on the terminal for missing flags of `quintain init`.

use std::io::BufRead;

use clap::ValueEnum;

use crate::cli::{InitArgs, InitKind, port};
use crate::command_result::{Result, usage};
use crate::output;

pub(super) fn ask_in(args: &mut InitArgs, input: &mut impl BufRead) -> Result<()> {
    // If a command is given, the defaults apply to all other flags.
    if args.command.is_some() || args.base.is_some() || args.head.is_some() {
        return Ok(());
    }
    if args.kind.is_none() && args.proxy.is_none() && args.objective.is_none() {
        let kinds = InitKind::value_variants().iter().filter_map(InitKind::to_possible_value);
        let kinds = kinds.filter_map(|kind| Some(format!("\n  {:<9} {}", kind.get_name(), kind.get_help()?)));
        output::message(&format!("What do you want to know?{}", kinds.collect::<String>()));
        args.kind = Some(until(input, "Kind", "one", |text| InitKind::from_str(text, false).ok())?);
    }
    let is_cache = args.kind == Some(InitKind::Cache);
    if args.kind == Some(InitKind::Versions) {
        args.base = Some(text(input, "Command that starts the first version, with {port} for its port", None)?);
        args.head = Some(text(input, "Command that starts the second one", None)?);
    } else {
        args.command = Some(text(input, "Command that starts the server, with {port} for its port", None)?);
    }
    if args.kind == Some(InitKind::Proxy) && args.proxy.is_none() {
        let question = "Command that starts the proxy, with {port} for its port and {next_port} for the server's";
        args.proxy = Some(text(input, question, None)?);
    }
    let has_port = [&args.command, &args.base].into_iter().flatten().all(|command| command.contains("{port}"));
    if args.port.is_none() && !has_port {
        args.port = Some(until(input, "Port it listens on", "", |text| port(text).ok())?);
    }
    if args.protocol.is_none() {
        args.protocol = Some(text(input, "Protocol", Some(if is_cache { "memcached" } else { "http" }))?);
    }
    let has_path = args.protocol.as_deref().is_some_and(|protocol| ["http", "https"].contains(&protocol));
    if args.path.is_none() && has_path {
        args.path = Some(text(input, "Path to request", Some("/"))?);
    }
    Ok(())
}

fn text(input: &mut impl BufRead, question: &str, default: Option<&str>) -> Result<String> {
    until(input, question, default.unwrap_or_default(), |text| (!text.is_empty()).then(|| text.to_owned()))
}

fn until<T>(
    input: &mut impl BufRead,
    question: &str,
    default: &str,
    mut usable: impl FnMut(&str) -> Option<T>,
) -> Result<T> {
    let choice = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    loop {
        output::ask(&format!("{question}{choice}: "));
        let mut line = String::new();
        let read = input.read_line(&mut line).map_err(crate::command_result::machine)?;
        if read == 0 {
            return Err(usage(format!("no reply to `{question}`")).hint("reply, or pass flags: `quintain init --help`"));
        }
        let text = if line.trim().is_empty() { default } else { line.trim() };
        match usable(text) {
            Some(value) => return Ok(value),
            None => output::message(&format!("`{text}` is not a valid reply")),
        }
    }
}
