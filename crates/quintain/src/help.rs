//! `quintain help`, `completions` and `man`, generated from the declared flags and study keys.

use clap::{Command, CommandFactory};
use study::keys;

use crate::cli::{Cli, CompletionsArgs, HelpArgs, ManArgs};
use crate::message::{Done, Exit, Problem};
use crate::output;

/// Topics other than commands: files, with functions for the help of their keys and the names of
/// their tables.
type OfFile = (&'static str, fn(Option<&str>) -> Option<String>, fn() -> Vec<&'static str>);
const FILES: [OfFile; 2] =
    [("study", keys::help, keys::names), ("cases", study::cases::keys::help, study::cases::keys::names)];

pub(crate) fn help(args: &HelpArgs) -> Done {
    if let [first, tables @ ..] = args.topic.as_slice()
        && let Some(file) = FILES.iter().find(|(name, ..)| name == first)
    {
        return help_of_file(file, tables);
    }
    let mut cli = Cli::command();
    cli.build();
    let mut command = &mut cli;
    for word in &args.topic {
        let visible = command.get_subcommands().filter(|known| !known.is_hide_set());
        let known = visible.map(|known| known.get_name().to_owned()).collect::<Vec<_>>();
        let Some(found) = command.find_subcommand_mut(word) else {
            let problem = Problem::text(Exit::Usage, format!("unknown command `{word}`"));
            return Err(
                problem.hint(format!("available: {}, and the keys of files: `study`, `cases`", known.join(", ")))
            );
        };
        command = found;
    }
    output::data(&command.render_long_help().to_string())?;
    Ok(Exit::Fine)
}

fn help_of_file((file, help, names): &OfFile, tables: &[String]) -> Done {
    let name = tables.first().map(String::as_str);
    let Some(text) = help(name) else {
        let problem = Problem::text(Exit::Usage, format!("unknown table `{}` of `{file}`", name.unwrap_or_default()));
        return Err(problem.hint(format!("available: {}", names().join(", "))));
    };
    output::data(&text)?;
    Ok(Exit::Fine)
}

pub(crate) fn completions(args: &CompletionsArgs) -> Done {
    let mut text = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    output::data(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Fine)
}

pub(crate) fn man(args: &ManArgs) -> Done {
    let failed = |what: &str, error: std::io::Error| {
        Problem::new(Exit::Machine, anyhow::Error::new(error).context(what.to_owned()))
    };
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(|error| failed("the page", error))?;
        output::data(&String::from_utf8_lossy(&page))?;
        return Ok(Exit::Fine);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(visible(Cli::command()), folder))
        .map_err(|error| failed(&folder.display().to_string(), error))?;
    output::message(&format!("wrote the pages of all commands to `{}`", folder.display()));
    Ok(Exit::Fine)
}

fn visible(command: Command) -> Command {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect::<Vec<_>>();
    let about = command.get_about().cloned().unwrap_or_default();
    Command::new("quintain").about(about).subcommands(shown)
}
