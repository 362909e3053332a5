//! `quintain help`, `completions` and `man`, generated from the declared flags and study keys.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use config::{Keys, render_keys};

use crate::cli::Cli;
use crate::command_result::{Exit, Result, because, usage};
use crate::output;

/// Topic that is not a command but a kind of file: its name, its keys and a function for the headings of its tables.
type OfFile = (&'static str, &'static Keys, fn(&Keys) -> String);
static FILES: [OfFile; 2] = [
    ("study", &study::keys::STUDY, study::keys::heading),
    ("cases", &study::cases::keys::CASES, study::cases::keys::heading),
];

pub(crate) fn help(topic: &[String]) -> Result<()> {
    if let [first, tables @ ..] = topic
        && let Some(file) = FILES.iter().find(|(name, ..)| name == first)
    {
        return help_of_file(file, tables);
    }
    let mut cli = Cli::command();
    cli.build();
    let mut command = &mut cli;
    for word in topic {
        let visible = command.get_subcommands().filter(|known| !known.is_hide_set());
        let known = visible.map(|known| known.get_name().to_owned()).collect::<Vec<_>>();
        let Some(found) = command.find_subcommand_mut(word) else {
            let hint = format!("available: {}, and the keys of files: `study`, `cases`", known.join(", "));
            return Err(usage(format!("unknown command `{word}`")).hint(hint));
        };
        command = found;
    }
    output::data(&command.render_long_help().to_string())
}

fn help_of_file((file, keys, heading): &OfFile, tables: &[String]) -> Result<()> {
    let name = tables.first().map(String::as_str);
    let Some(text) = render_keys::help(keys, name, *heading) else {
        let problem = usage(format!("unknown table `{}` of `{file}`", name.unwrap_or_default()));
        return Err(problem.hint(format!("available: {}", render_keys::names(keys).join(", "))));
    };
    output::data(&text)
}

pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut text = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut text);
    output::data(&String::from_utf8_lossy(&text))
}

pub(crate) fn man(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(because(Exit::Machine, "the page"))?;
        return output::data(&String::from_utf8_lossy(&page));
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(visible(Cli::command()), folder))
        .map_err(because(Exit::Machine, folder.display()))?;
    output::message(&format!("wrote the pages of all commands to `{}`", folder.display()));
    Ok(())
}

fn visible(command: Command) -> Command {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect::<Vec<_>>();
    let about = command.get_about().cloned().unwrap_or_default();
    Command::new("quintain").about(about).subcommands(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");

    fn add(page: &mut String, path: &str, command: &mut Command) {
        page.push_str(&format!("\n## {path}\n\n```text\n{}```\n", command.render_help()));
        for inner in command.get_subcommands_mut().filter(|inner| !inner.is_hide_set()) {
            let path = format!("{path} {}", inner.get_name());
            add(page, &path, inner);
        }
    }

    #[test]
    fn every_command_is_in_one_group_of_the_main_help() {
        let text = Cli::command().render_help().to_string();
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let line = format!("\n  {:<13}{}\n", command.get_name(), command.get_about().unwrap());
            assert_eq!(text.matches(&line).count(), 1, "{line}");
        }
    }

    #[test]
    fn command_reference_is_the_help_of_all_commands() {
        let mut cli = Cli::command().term_width(100);
        cli.build();
        let mut page = "# Commands\n\nThe help of each command, for readers who search or compare flags. \
                        `quintain help COMMAND` prints the same with\nlonger descriptions.\n"
            .to_owned();
        add(&mut page, "quintain", &mut cli);
        // clap pads each line up to its description, even if the description is empty.
        let page = page.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>();
        if std::env::var_os("WRITE_COMMANDS").is_some() {
            std::fs::write(PAGE, &page).unwrap();
        }
        let written = std::fs::read_to_string(PAGE).unwrap_or_default();
        assert!(written == page, "write {PAGE} with `WRITE_COMMANDS=1 cargo test -p quintain command_reference`");
    }
}
