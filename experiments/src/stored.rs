//! `experiments stored`: time and memory of commands on stores of many trials or runs.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use store::run_file::{self, Line, Writer};

use crate::server::quintain;

const SAMPLE: Duration = Duration::from_millis(5);

/// Measure commands on stores of many trials and of many runs
///
/// Measures two blocks, repeats their trials under other block numbers, and imports the result.
#[derive(Args)]
pub(crate) struct StoredArgs {
    /// Design points, each with its own rate
    #[arg(long, value_name = "N", default_value_t = 200)]
    points: u32,
    /// Blocks of the stored run
    #[arg(long, value_name = "N", default_value_t = 500)]
    blocks: u32,
    /// Times that the run is imported, under different names
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u32,
    /// Length of each measured trial
    #[arg(long, value_name = "TIME", default_value = "1s")]
    stop: String,
    /// Program under test [default: the build next to this one]
    #[arg(long, value_name = "FILE")]
    quintain: Option<PathBuf>,
}

pub(crate) fn run(args: &StoredArgs) -> Result<(), String> {
    let quintain = quintain(args.quintain.as_deref())?;
    let folder = tempfile::tempdir().map_err(|error| format!("error: {error}"))?;
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (study, measured, one, many, store) =
        (at("many.toml"), at("measured.db"), at("one.gz"), at("many.gz"), at("store.db"));
    std::fs::write(&study, text(args)).map_err(|error| format!("error: {study}: {error}"))?;
    let timed = |what: &str, args: &[&str]| timed(&quintain, what, args);
    timed("measure", &["run", &study, "--store", &measured])?;
    timed("export", &["runs", "export", "latest", "--store", &measured, "--out", &one])?;
    repeat(Path::new(&one), Path::new(&many), args)?;
    let mut slowest_s = 0_f64;
    for run in 0..args.runs {
        let name = format!("many-{run}");
        slowest_s = slowest_s.max(timed("", &["runs", "import", &many, "--as", &name, "--store", &store])?);
    }
    println!("import: at most {slowest_s:.2} s for each of {} runs", args.runs);
    for what in ["runs", "runs again"] {
        timed(what, &["runs", "--store", &store])?;
    }
    for what in ["history", "history again"] {
        timed(what, &["history", "many", "--store", &store])?;
    }
    timed("report", &["report", "many-0", "--store", &store])?;
    timed("rm", &["runs", "rm", "many-0", "--store", &store])?;
    let bytes = std::fs::metadata(&store).map_err(|error| format!("error: {store}: {error}"))?.len();
    println!("store: {:.0} MB", bytes as f64 / 1e6);
    Ok(())
}

fn text(args: &StoredArgs) -> String {
    let rates = (1..=args.points).map(|point| (10_000 + 50 * point).to_string()).collect::<Vec<_>>().join(", ");
    format!(
        "question = \"How do values grow with the rate?\"\n\
         [answer]\nasks = \"growth\"\nof = \"rate\"\n\
         [subject]\ncommand = \"quintain serve http --threads 1 -p {{port}}\"\n\
         [load]\nprotocol = \"http\"\nclients = 8\nrate = \"{{rate}}\"\nwarmup = \"100ms\"\nstop = \"{}\"\n\
         [factors]\nrate = [{rates}]\n\
         [trials]\nstop = {{ comparison = 0.05, min = 2, max = 2 }}\n",
        args.stop
    )
}

/// Copies a run file with its trials repeated up to the number of blocks.
fn repeat(from: &Path, to: &Path, args: &StoredArgs) -> Result<(), String> {
    let open = File::open(from).and_then(|file| Ok((file, File::create(to)?)));
    let (file, out) = open.map_err(|error| format!("error: {}: {error}", from.display()))?;
    let (mut run, mut trials) = (String::new(), Vec::new());
    let read = run_file::read(file, |_, line| {
        match line {
            Line::Run(json) => run = json.to_owned(),
            Line::Trial(json) => trials.push(json.to_owned()),
        }
        Ok(())
    });
    let written = read.and_then(|_| {
        let mut writer = Writer::new(BufWriter::new(out), env!("CARGO_PKG_VERSION"))?;
        writer.line(Line::Run(&run))?;
        for order in 0..args.points as usize * args.blocks as usize {
            let trial = &trials[order % trials.len()];
            let parts = trial.split_once("\"block\":").zip(trial.split_once("\"seed\":"));
            let ((head, _), (_, tail)) = parts.unwrap_or_default();
            let block = order / args.points as usize;
            writer.line(Line::Trial(&format!("{head}\"block\":{block},\"order\":{order},\"seed\":{tail}")))?;
        }
        writer.end()
    });
    written.map(|_| ()).map_err(|error| format!("error: {}: {error}", from.display()))
}

/// Runs quintain and prints its wall time and peak memory, unless `what` is empty. Returns the wall
/// time, in seconds.
fn timed(quintain: &Path, what: &str, args: &[&str]) -> Result<f64, String> {
    let start = Instant::now();
    let child = Command::new(quintain).args(args).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut child = child.map_err(|error| format!("error: {}: {error}", quintain.display()))?;
    let mut peak_kib = 0;
    let status = loop {
        let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak_kib = line.and_then(|kib| kib.parse().ok()).unwrap_or(0_u64).max(peak_kib);
        if let Some(status) = child.try_wait().map_err(|error| format!("error: {error}"))? {
            break status;
        }
        std::thread::sleep(SAMPLE);
    };
    let wall_s = start.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("error: `quintain {}`: {status}", args.join(" ")));
    }
    if !what.is_empty() {
        println!("{what}: {wall_s:.2} s, {} MB", peak_kib * 1024 / 1_000_000);
    }
    Ok(wall_s)
}
