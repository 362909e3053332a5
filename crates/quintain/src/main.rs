//! Command-line interface: flags, messages, exit codes and a module for each command. Read `run.rs` first.

mod adapter;
mod built_in;
mod calibrate;
mod check;
mod cli;
mod collected_mistakes;
mod command_result;
mod compare;
mod contract;
mod doctor;
mod help_completions_man;
mod hidden_commands;
mod history;
mod init;
mod level_selection;
mod live_chart;
mod load;
mod load_target;
mod metrics_endpoint;
mod miss_ratio_replays;
mod os_limits;
mod output;
mod parallel_work;
mod report;
mod run;
mod run_progress;
mod runs;
mod serve;
mod signals;
mod start_cluster;
mod studies;
mod study_file;
mod verify;
mod wait_until_quiet;
mod workload;

use clap::{CommandFactory, FromArgMatches};
use cli::{Cli, Verb, WorkloadKind};
use collected_mistakes::Mistakes;
use command_result::Exit;

fn main() -> std::process::ExitCode {
    let flags = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&flags).unwrap_or_else(|error| error.exit());
    let mistakes = Mistakes::of_flags(flags.subcommand().map_or(&flags, |(_, flags)| flags));
    let fine = |()| Exit::Fine;
    let done = match cli.verb {
        Verb::Run(args) => run::run(args),
        Verb::Load(args) => load::load(*args, mistakes),
        Verb::Compare(args) => compare::compare(*args, mistakes),
        Verb::Serve(kind) => serve::serve(kind, mistakes).map(fine),
        Verb::Check { study, cpus, json } => check::check(&study, cpus.as_deref(), json).map(fine),
        Verb::Init(args) => init::init(*args, mistakes),
        Verb::Studies { verb, json } => studies::studies(verb, json).map(fine),
        Verb::Verify(args) => verify::verify(args),
        Verb::Runs(args) => runs::runs(args).map(fine),
        Verb::History(args) => history::history(args).map(fine),
        Verb::Report(args) => report::report(args),
        Verb::Doctor { json, cluster } => doctor::doctor(json, &cluster),
        Verb::Calibrate(args) => calibrate::calibrate(args),
        Verb::Workload(WorkloadKind::Show(args)) => workload::show(&args).map(fine),
        Verb::Adapter { config, check } => adapter::adapter(&config, check).map(fine),
        Verb::Contract(verb) => contract::contract(verb),
        Verb::Help { topic } => help_completions_man::help(&topic).map(fine),
        Verb::Completions { shell } => help_completions_man::completions(shell).map(fine),
        Verb::Man { folder } => help_completions_man::man(folder.as_deref()).map(fine),
        Verb::Exec { cpus, parent, command } => hidden_commands::exec(cpus, parent, &command),
        Verb::Watchdog => hidden_commands::watchdog(),
        Verb::Spin { cpus } => hidden_commands::spin(cpus),
        Verb::Node(args) => hidden_commands::node(&args),
    };
    output::end(done)
}
