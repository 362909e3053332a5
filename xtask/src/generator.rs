//! Does a request cost the generator more than before? Two ways to load one server, in alternating pairs on this machine, decided as `quintain compare`
//! decides. `compare` itself cannot ask this: it loads with the program that it is.

use std::process::Command;

use serde_json::Value;
use stats::gate::{self, Asked, FIRST_LOOK, PAIRS_MAX, Rule, Side, Verdict};

use crate::alone::{Alone, free_port};

const HELP: &str = "\
Compares the CPU time of a request in two load generators, in alternating pairs with a fresh server for each run.

Usage: cargo xtask generator --base COMMAND --head COMMAND [--server COMMAND] [--pairs N] [--bound RATIO] [--all]

  --base COMMAND    a shell's line that prints what `quintain load --json` prints; {port} is the server's
  --head COMMAND    the same of the candidate
  --server COMMAND  the server, {port} its port, on CPU 0 [default: quintain serve pingpong -p {port}, of the build beside this one]
  --pairs N         pairs at most; ends as soon as there is a verdict [default: 60]
  --all             do not end before all pairs are done
  --bound RATIO     the head fails when it is shown to cost more than so many times the base [default: 1.03]

Example, after `cp` of an older build to ./old:
  cargo xtask generator --pairs 30 --base './old load --json -q --cpus 1 -c 50 -d 2s pingpong://127.0.0.1:{port}' \\
    --head 'target/release/quintain load --json -q --cpus 1 -c 50 -d 2s pingpong://127.0.0.1:{port}'

Exit codes: 0 not shown to cost more, 1 shown to cost more, or an error";

struct Flags {
    sides: [String; 2],
    server: Vec<String>,
    pairs: u32,
    bound: f64,
    all: bool,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|argument| argument == "--help") {
        println!("{HELP}");
        return Ok(());
    }
    let asked = read(arguments)?;
    let rule = Rule { error: 0.05, pairs_max: asked.pairs, within: None };
    let mut rng = stats::Rng::new(1);
    let mut sides: [Vec<Option<f64>>; 2] = [Vec::new(), Vec::new()];
    loop {
        let first = (rng.next_u64() % 2) as usize;
        for side in [first, 1 - first] {
            sides[side].push(Some(cpu_per_request_us(&asked, side)?));
        }
        let pairs = sides[0].len() as u32;
        let last = |side: usize| sides[side].last().copied().flatten().unwrap_or(f64::NAN);
        println!("{pairs} base {:.4} head {:.4} us/request, ratio {:.4}", last(0), last(1), last(1) / last(0));
        let is_over = pairs >= asked.pairs;
        let is_look = gate::looks(asked.pairs).iter().any(|(look, _)| *look == pairs);
        if !is_over && (asked.all || !is_look) {
            continue;
        }
        let [base, head] = &sides;
        let question = gate::Question {
            asked: Asked::Ratio(asked.bound),
            higher_is_better: false,
            base: Side::known(base),
            candidate: Side::known(head),
        };
        let found = gate::examine(&[question], &rule, is_over).filter(|found| found.ended.is_some());
        let Some(found) = found.and_then(|found| found.found[0]) else { continue };
        let mut ratios = base.iter().zip(head).filter_map(|(base, head)| Some((*head)? / (*base)?)).collect::<Vec<_>>();
        println!("ratio head/base of {pairs} pairs: {}", crate::planted::spread(&mut ratios));
        if let Some(ratio) = found.estimate {
            println!("typical ratio: {:.4} [{:.4}, {:.4}]", ratio.point, ratio.low, ratio.high);
        }
        let (bound, p) = (asked.bound, found.p());
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

fn read(arguments: &[String]) -> Result<Flags, String> {
    let (mut base, mut head, mut server) = (None, None, None);
    let (mut pairs, mut bound, mut all) = (60, 1.03, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("error: `{word}` needs a value\n\n{HELP}"));
        let wrong = |value: &str, why: &str| format!("error: `{word} {value}`: {why}");
        match word.as_str() {
            "--base" => base = Some(value()?.clone()),
            "--head" => head = Some(value()?.clone()),
            "--server" => {
                let value = value()?;
                server = Some(study::words::split(value).map_err(|why| wrong(value, &why.to_string()))?);
            }
            "--all" => all = true,
            "--pairs" => {
                let (value, allowed) = (value()?, FIRST_LOOK..=PAIRS_MAX);
                let number = value.parse().ok().filter(|pairs| allowed.contains(pairs));
                pairs = number.ok_or_else(|| wrong(value, &format!("must be {FIRST_LOOK} to {PAIRS_MAX}")))?;
            }
            "--bound" => {
                let value = value()?;
                let number = value.parse().ok().filter(|bound| (1.0..100.0).contains(bound));
                bound = number.ok_or_else(|| wrong(value, "must be 1 to 100"))?;
            }
            unknown => return Err(format!("error: unknown argument `{unknown}`\n\n{HELP}")),
        }
    }
    let (Some(base), Some(head)) = (base, head) else { return Err(format!("error: what is compared?\n\n{HELP}")) };
    let server = match server {
        Some(server) => server,
        None => {
            let quintain = crate::built::quintain()?.display().to_string();
            [quintain.as_str(), "serve", "pingpong", "-p", "{port}"].map(str::to_owned).to_vec()
        }
    };
    Ok(Flags { sides: [base, head], server, pairs, bound, all })
}

/// One run: CPU time of the workers while they measured, for each request that was answered, us.
fn cpu_per_request_us(asked: &Flags, side: usize) -> Result<f64, String> {
    let port = free_port()?;
    let at = |text: &str| text.replace("{port}", &port.to_string());
    let server = Alone::start(0, &asked.server.iter().map(|word| at(word)).collect::<Vec<_>>(), port)?;
    let command = at(&asked.sides[side]);
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
