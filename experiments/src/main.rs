//! Simulations of the statistics, and measurements of quintain that take minutes to hours.

mod blame;
mod cache_diff;
mod churn;
mod compare_generators;
mod coverage;
mod hit_ratio;
mod planted;
mod server_process;

use std::process::ExitCode;

use clap::Parser;

/// Simulations of the statistics, and measurements of quintain on real processes
#[derive(Parser)]
#[command(name = "experiments")]
enum Experiment {
    Blame(blame::BlameArgs),
    CacheDiff(cache_diff::CacheDiffArgs),
    Churn(churn::ChurnArgs),
    Coverage(coverage::CoverageArgs),
    Generator(compare_generators::GeneratorArgs),
    HitRatio(hit_ratio::HitRatioArgs),
    Planted(planted::PlantedArgs),
}

fn main() -> ExitCode {
    let done = match Experiment::parse() {
        Experiment::Blame(args) => blame::run(&args),
        Experiment::CacheDiff(args) => cache_diff::run(&args),
        Experiment::Churn(args) => churn::run(&args),
        Experiment::Coverage(args) => coverage::run(&args),
        Experiment::Generator(args) => compare_generators::run(&args),
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
