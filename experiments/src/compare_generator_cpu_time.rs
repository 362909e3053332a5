//! Compares the CPU time per request of any two load generators, with the tests of `quintain compare`.

use std::process::Command;

use clap::Args;
use serde_json::Value;
use stats::gate::{self, Asked, FIRST_LOOK, PAIRS_MAX, Rule, Side, Verdict};

use crate::server_process::{Server, quintain};

const EXAMPLE: &str = "\
Example, after `cp` of an older build to ./old:
  experiments generator --pairs 30 --base './old load --json -q --cpus 1 -c 50 -d 2s pingpong://127.0.0.1:{port}' \\
    --head 'target/release/quintain load --json -q --cpus 1 -c 50 -d 2s pingpong://127.0.0.1:{port}'

Exit codes: 0 not shown to cost more, 1 shown to cost more, or an error";

/// Compare the CPU time per request of two load generators, in alternating pairs with a fresh server for each run
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct GeneratorArgs {
    /// Shell command of the base, which prints JSON like `quintain load --json`; `{port}` is the server's port
    #[arg(long, value_name = "COMMAND")]
    base: String,
    /// Shell command of the candidate, with the same kind of output
    #[arg(long, value_name = "COMMAND")]
    head: String,
    /// Server on CPU 0; `{port}` is its port [default: `quintain serve pingpong` of the build next to this one]
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Maximum number of pairs; the comparison ends at the first verdict
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(i64::from(FIRST_LOOK)..=i64::from(PAIRS_MAX)))]
    pairs: u32,
    /// Run all pairs before the verdict
    #[arg(long)]
    all: bool,
    /// The head fails if it is shown to cost more than this many times the base
    #[arg(long, default_value_t = 1.03)]
    bound: f64,
}

pub(crate) fn run(args: &GeneratorArgs) -> Result<(), String> {
    let server = match &args.server {
        Some(server) => server.clone(),
        None => format!("'{}' serve pingpong -p {{port}}", quintain(None)?.display()),
    };
    let commands = [&args.base, &args.head];
    let rule = Rule { error: 0.05, pairs_max: args.pairs, within: None };
    let mut rng = stats::Rng::new(1);
    let mut sides: [Vec<Option<f64>>; 2] = [Vec::new(), Vec::new()];
    loop {
        let first = (rng.next_u64() % 2) as usize;
        for side in [first, 1 - first] {
            sides[side].push(Some(cpu_per_request_us(&server, commands[side])?));
        }
        let pairs = sides[0].len() as u32;
        let last = |side: usize| sides[side].last().copied().flatten().unwrap_or(f64::NAN);
        println!("{pairs} base {:.4} head {:.4} us/request, ratio {:.4}", last(0), last(1), last(1) / last(0));
        let is_over = pairs >= args.pairs;
        let is_look = gate::looks(args.pairs).iter().any(|(look, _)| *look == pairs);
        if !is_over && (args.all || !is_look) {
            continue;
        }
        let [base, head] = &sides;
        let (asked, candidate) = (Asked::Ratio(args.bound), Side::known(head));
        let question = gate::Question { asked, higher_is_better: false, base: Side::known(base), candidate };
        let found = gate::examine(&[question], &rule, is_over).filter(|found| found.ended.is_some());
        let Some(found) = found.and_then(|found| found.found[0]) else { continue };
        let mut ratios = base.iter().zip(head).filter_map(|(base, head)| Some((*head)? / (*base)?)).collect::<Vec<_>>();
        println!("ratio head/base of {pairs} pairs: {}", crate::planted::spread(&mut ratios));
        if let Some(ratio) = found.estimate {
            println!("typical ratio: {:.4} [{:.4}, {:.4}]", ratio.point, ratio.low, ratio.high);
        }
        let (bound, p) = (args.bound, found.p());
        match found.verdict {
            Verdict::Worse => {
                return Err(format!("error: the head costs more than {bound} times the base (p = {p:.2e})"));
            }
            Verdict::NotWorse => println!("the head costs less than {bound} times the base (p = {p:.2e})"),
            Verdict::Undecided => println!("undecided whether the head costs more than {bound} times the base"),
        }
        return Ok(());
    }
}

/// Measures the workers' CPU time per response, in us, with a fresh server.
fn cpu_per_request_us(server: &str, command: &str) -> Result<f64, String> {
    let server = Server::start(&format!("taskset -c 0 {server}"))?;
    let command = command.replace("{port}", &server.port.to_string());
    let output = Command::new("sh").args(["-c", &command]).output().map_err(|error| format!("error: sh: {error}"))?;
    drop(server);
    let found: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
        format!("error: `{command}` gave no JSON ({error}): {}", String::from_utf8_lossy(&output.stderr))
    })?;
    match (found["generator"]["cpu_s"].as_f64(), found["requests"].as_f64()) {
        (Some(cpu_s), Some(requests)) if requests > 0.0 => Ok(cpu_s * 1e6 / requests),
        _ => Err(format!("error: `{command}` measured nothing")),
    }
}
