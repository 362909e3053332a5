//! Creates a large store and measures commands that read it. Arguments: `BINARY FOLDER [long|wide] [DIVISOR]`.
//! `long` is one run of 200 design points and 500 blocks, and `wide` is 1,000 runs of 100 trials. The divisor makes
//! both smaller. Each line shows the wall time and peak resident memory of a command of BINARY, a built `quintain`.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it times commands for a person to read")]

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use store::Store;
use store::run_file::Writer;
use study::plan::Level;
use study::record::{Outcome, Record, Run, RunState};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const WINDOWS: usize = 12;

const LOOK: Duration = Duration::from_millis(5);

fn main() -> Result<()> {
    let args = std::env::args().skip(1).collect::<Vec<_>>();
    let [binary, folder, rest @ ..] = args.as_slice() else {
        return Err("scale BINARY FOLDER [long|wide] [DIVISOR]".into());
    };
    let divisor = rest.get(1).map_or(Ok(1), |divisor| divisor.parse::<u32>())?.max(1);
    let (folder, shape) = (PathBuf::from(folder), rest.first().map_or("", String::as_str));
    std::fs::create_dir_all(&folder)?;
    if shape != "wide" {
        long(binary, &folder, divisor)?;
    }
    if shape != "long" {
        wide(binary, &folder, divisor)?;
    }
    Ok(())
}

fn long(binary: &str, folder: &Path, divisor: u32) -> Result<()> {
    let (path, file) = (folder.join("long.db"), folder.join("long.jsonl.gz"));
    let (points, blocks) = (200, (500 / divisor).max(2));
    write(&file, &run("long", "2026-11-20T21:05:00Z", points), blocks)?;
    println!("{points} design points, {blocks} blocks");
    let store = path.display().to_string();
    measured(binary, &["runs", "import", &file.display().to_string(), "--store", &store])?;
    println!("{} MB in the store", std::fs::metadata(&path)?.len() / 1_000_000);
    measured(binary, &["runs", "--store", &store])?;
    histories(binary, &store)?;
    measured(binary, &["report", "long", "--store", &store])?;
    measured(binary, &["report", "long", "--store", &store, "--json"])?;
    measured(binary, &["report", "long", "--store", &store, "--format", "html"])
}

fn wide(binary: &str, folder: &Path, divisor: u32) -> Result<()> {
    let (path, file) = (folder.join("wide.db"), folder.join("wide.jsonl.gz"));
    let (runs, points, blocks) = ((1_000 / divisor).max(2), 10, 10);
    let store = Store::open(&path)?;
    for number in 0..runs {
        let day = number % 28 + 1;
        let started = format!("2026-{:02}-{day:02}T{:02}:00:00Z", number / 28 % 12 + 1, number / 336 % 24);
        write(&file, &run(&format!("wide-{number}"), &started, points), blocks)?;
        store.import(File::open(&file)?, None, "2026-11-24T00:00:00Z")?;
    }
    drop(store);
    println!("{runs} runs of {} trials, {} MB", points * blocks as usize, std::fs::metadata(&path)?.len() / 1_000_000);
    let store = path.display().to_string();
    measured(binary, &["runs", "--store", &store])?;
    histories(binary, &store)?;
    measured(binary, &["runs", "rm", "wide-1", "--store", &store])
}

fn histories(binary: &str, store: &str) -> Result<()> {
    println!("the first history, which reads all trials:");
    measured(binary, &["history", "volley", "--store", store])?;
    println!("the next one:");
    measured(binary, &["history", "volley", "--store", store])
}

fn run(id: &str, started: &str, points: usize) -> Run {
    let (mut run, _) = fixtures::volley();
    (run.id, run.started, run.state) = (id.to_owned(), started.to_owned(), Some(RunState::Complete));
    run.commit = Some(format!("{:040x}", id.len()));
    let template = run.plan.points[0].clone();
    run.plan.factors = vec!["clients".to_owned()];
    run.plan.points = (0..points)
        .map(|point| {
            let mut made = template.clone();
            made.factors = [("clients".to_owned(), Level::Integer(point as i64 + 1))].into();
            made
        })
        .collect();
    run
}

/// Writes a run file whose trials are copies of the fixture's trials with different points and blocks.
fn write(file: &Path, run: &Run, blocks: u32) -> Result<()> {
    let (_, records) = fixtures::volley();
    let is_measured = |record: &&Record| matches!(record.outcome, Outcome::Measured(_));
    let templates = records.iter().filter(is_measured).map(tail).collect::<Result<Vec<_>>>()?;
    let mut writer = Writer::new(BufWriter::new(File::create(file)?), env!("CARGO_PKG_VERSION"))?;
    writer.run(&serde_json::to_string(run)?)?;
    let points = run.plan.points.len() as u32;
    for block in 0..blocks {
        for point in 0..points {
            let (order, clients) = (block * points + point, point + 1);
            let rest = &templates[(point * 31 + block * 7) as usize % templates.len()];
            let version = study::record::RECORD_VERSION;
            writer.trial(&format!(
                r#"{{"version":{version},"point":{point},"factors":{{"clients":{clients}}},"block":{block},"order":{order},{rest}"#
            ))?;
        }
    }
    writer.end()?;
    Ok(())
}

/// The part of a record's JSON after the seed, with fewer windows: about 30 KB, as in the study `volley`.
fn tail(record: &Record) -> Result<String> {
    let mut record = record.clone();
    if let Outcome::Measured(measurement) = &mut record.outcome {
        measurement.windows.truncate(WINDOWS);
    }
    let json = serde_json::to_string(&record)?;
    let at = json.find("\"seed\":").ok_or("a record without a seed")?;
    Ok(json[at..].to_owned())
}

fn measured(binary: &str, args: &[&str]) -> Result<()> {
    let began = Instant::now();
    let mut child = Command::new(binary).args(args).stdout(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let exit = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak_kib = peak_kib.max(peak.unwrap_or(0u64));
        match child.try_wait()? {
            Some(exit) => break exit,
            None => std::thread::sleep(LOOK),
        }
    };
    let words = args.iter().filter(|arg| !arg.contains('/')).copied().collect::<Vec<_>>().join(" ");
    println!("{:8.2} s {:6} MB  {words} ({exit})", began.elapsed().as_secs_f64(), peak_kib / 1_000);
    if exit.success() { Ok(()) } else { Err(format!("`{words}` failed").into()) }
}
