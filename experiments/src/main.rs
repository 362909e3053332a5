//! Simulations of the statistics, and measurements of quintain that take minutes to hours.

mod cache_memory_churn;
mod compare_cache_replies;
mod compare_generator_cpu_time;
mod coverage;
mod hit_ratio;
mod planted;
mod server_process;
mod verdicts_on_faults;

use std::process::ExitCode;

use clap::Parser;

/// Simulations of the statistics, and measurements of quintain on real processes
#[derive(Parser)]
#[command(name = "experiments")]
enum Experiment {
    Blame(verdicts_on_faults::BlameArgs),
    CacheDiff(compare_cache_replies::CacheDiffArgs),
    Churn(cache_memory_churn::ChurnArgs),
    Coverage(coverage::CoverageArgs),
    Generator(compare_generator_cpu_time::GeneratorArgs),
    HitRatio(hit_ratio::HitRatioArgs),
    Planted(planted::PlantedArgs),
}

fn main() -> ExitCode {
    let done = match Experiment::parse() {
        Experiment::Blame(args) => verdicts_on_faults::run(&args),
        Experiment::CacheDiff(args) => compare_cache_replies::run(&args),
        Experiment::Churn(args) => cache_memory_churn::run(&args),
        Experiment::Coverage(args) => coverage::run(&args),
        Experiment::Generator(args) => compare_generator_cpu_time::run(&args),
        Experiment::HitRatio(args) => hit_ratio::run(&args),
        Experiment::Planted(args) => planted::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
