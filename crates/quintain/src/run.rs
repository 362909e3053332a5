//! `quintain run`: opens a study, runs its plan in the lab, and writes the report. Also used by `quintain compare`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::Findings;
use analysis::findings::GateVerdict;
use analysis::history::Digest;
use serde::Serialize;
use store::{Owner, Store};
use study::gate::Undecided;
use study::plan::ProcessPlan;
use study::record::{Calibration, Node, Run, RunState};
use study::{Plan, Point, Record};

use crate::cli::{ClusterArgs, HowArgs, RunArgs};
use crate::command_result::{Done, Exit, Problem, Result, exe, machine, usage};
use crate::run_progress::Bar;
use crate::study_file::{self, Machine, Opened, folder_of};
use crate::{built_in, doctor, history, miss_ratio_replays, output, signals, start_cluster, wait_until_quiet};

pub(crate) const LATEST: &str = "latest";

/// Options of a run that is a comparison, which can resume only a run with an equal plan.
pub(crate) struct Pairs<'a> {
    /// Exclusive right to extend the resumed run; `None` if the caller has not taken it.
    pub(crate) owner: Option<Owner>,
    /// Callback before each block except the first, with the number of the block.
    pub(crate) before_block: &'a mut dyn FnMut(u32, &Plan, &lab::Options) -> Result<()>,
}

pub(crate) struct Carried {
    pub(crate) run: Run,
    pub(crate) records: Vec<Record>,
    pub(crate) findings: Findings,
    pub(crate) cause: lab::Cause,
}

pub(crate) fn run(args: RunArgs) -> Done {
    signals::watch_interrupts()?;
    let how = &args.how;
    let mut there: Option<PathBuf> = None;
    if how.cluster.is_given() {
        // Errors in the study must be reported before connecting to other machines.
        let opened = study_file::open(&args.study, &this_machine(None)?)?;
        page_path(&args, &opened.plan)?;
        there = Some(if opened.source.is_built_in { built_in::DIRECTORY.into() } else { opened.source.directory });
    }
    let host = machine_of(&how.cluster, how.cpus.as_deref(), there.as_deref())?;
    let opened = study_file::open(&args.study, &host)?;
    let page = page_path(&args, &opened.plan)?;
    let carried = carry_out(opened, how, args.resume.as_deref(), host, None)?;
    show(how, &carried)?;
    // The run is already stored and printed, so an error here is only a warning.
    let Carried { run, findings, .. } = &carried;
    let written = report::html(findings).map_err(machine).and_then(|text| output::file(&page, text));
    let written = written.map(|()| page.display().to_string()).unwrap_or_else(|problem| {
        output::message(&format!("\nwarning: {problem}"));
        format!("none; `quintain report {} --format html --out FILE` writes it elsewhere", run.id)
    });
    output::message(&format!("\nreport  {written}\n{}", where_it_is(how, run)));
    exit(&carried)
}

/// Starts the cluster if the flags ask for one. Without a cluster, plans for the CPUs in `asked`, or for all.
pub(crate) fn machine_of(args: &ClusterArgs, asked: Option<&[u32]>, directory: Option<&Path>) -> Result<Machine> {
    let Some(cluster) = start_cluster::start(args, directory)? else { return this_machine(asked) };
    let cpus = cluster.subject.cpus.iter().map(|cpu| cpu.index).collect();
    Ok(Machine { cluster: Some(cluster), cpus })
}

pub(crate) fn this_machine(asked: Option<&[u32]>) -> Result<Machine> {
    Ok(Machine { cluster: None, cpus: cpus(asked)? })
}

/// Runs a study: lets the lab make records of its plan, and analyzes them into findings. Resumes the run `resumed`, or
/// the latest one for [`LATEST`]; `None` starts a new run.
pub(crate) fn carry_out(
    opened: Opened,
    how: &HowArgs,
    resumed: Option<&str>,
    Machine { cluster, cpus: host_cpus }: Machine,
    mut pairs: Option<Pairs<'_>>,
) -> Result<Carried> {
    refuse_without_points(&opened.plan)?;
    let is_compare = pairs.is_some();
    let (directory, is_built_in) = (opened.source.directory.clone(), opened.source.is_built_in);
    let store = Store::open(&how.store.store)?;
    let nodes = cluster.as_ref().map(|cluster| cluster.nodes()).unwrap_or_default();
    let (mut run, owner, done) = match resumed {
        Some(name) => resume(how, opened, &store, name, nodes, pairs.as_mut())?,
        None => begin(how, opened, &store, nodes)?,
    };
    run.resume = resume_line(resumed, is_compare, &run.id);
    let resume = run.resume.clone();
    let resumable = |problem: Problem| problem.resumable(&resume);
    store.update_run(&run)?;
    // Disturbances are named before the run takes any time. The report has the details.
    if let Some(names) = start_cluster::doctor_warnings(&run.doctor) {
        output::message(&format!("doctor warnings: {names} (run `quintain doctor` for details)"));
    }
    let labs = other_labs();
    if let Some(warning) = &labs {
        output::message(&format!("warning: {warning}"));
    }
    let presence = lab::other_labs::announce(&run.id).inspect_err(|error| {
        output::message(&format!("note: cannot announce this run to other labs: {error}"));
    });
    let options = lab::Options::new(exe()?, directory, &run.host, &host_cpus);
    let options = lab::Options { idle: how.idle, cluster, ..options };
    if let Some(why) = how.profile.then(|| lab::no_profile(&options)).flatten() {
        output::message(&format!("warning: no CPU profile: {why}"));
    }
    let (plan, id, calibration, nodes) = (run.plan.clone(), run.id.clone(), run.calibration.clone(), run.nodes.clone());
    let bar = RefCell::new(Bar::new(&plan, done.len()));
    let mut beside = labs.is_some();
    let mut failed = None;
    let so_far = Run { state: Some(RunState::Running), ..run.clone() };
    let (mut looked_at, mut unlikely) = (0, false);
    let mut block_begun = done.iter().map(|record| record.block).max().unwrap_or(0);
    let mut hooks = lab::Hooks {
        store: &mut |record| {
            judge(record, calibration.as_ref(), &nodes);
            if let Some(warning) = other_labs() {
                if !std::mem::replace(&mut beside, true) {
                    bar.borrow().note(&format!("warning: {warning}"));
                }
                record.warnings.push(study::WarningKind::OtherLab.says(warning));
            }
            bar.borrow_mut().recorded(record);
            store.add_record(&id, record).map_err(|error| error.to_string())
        },
        next: &mut |point, records| {
            let next = analysis::next(&plan, point, records);
            let block = records.iter().filter(|record| record.point == point).count() as u32;
            if let (Some(pairs), study::Next::Trial(_), true) = (&mut pairs, &next, block > block_begun) {
                block_begun = block;
                failed = failed.take().or((pairs.before_block)(block, &plan, &options).err());
            }
            if is_compare && block > looked_at {
                looked_at = block;
                let is_look = stats::gate::looks(plan.trials.max).iter().any(|(pairs, _)| *pairs == block);
                let spent = Duration::from_nanos(records.iter().map(|record| record.elapsed_ns).sum());
                let left = plan.trials.max_ns.map(|ns| Duration::from_nanos(ns).saturating_sub(spent));
                if is_look
                    && !unlikely
                    && let Some(text) = wait_until_quiet::outlook(&analysis::analyze(&so_far, records), left)
                {
                    unlikely = true;
                    bar.borrow().note(&format!("note: {text}"));
                }
            }
            if failed.is_some() { study::Next::Enough } else { next }
        },
        progress: &mut |progress| bar.borrow_mut().show(progress),
        interrupted: &signals::is_interrupted,
    };
    let building = if is_built_in { built_in::lock(&options.directory, hooks.interrupted)? } else { None };
    run.builds = lab::build_all(&plan, &options, &mut *hooks.progress, hooks.interrupted).map_err(machine)?;
    drop(building);
    store.update_run(&run).map_err(Problem::from).map_err(&resumable)?;
    run.builds.iter().for_each(|build| bar.borrow_mut().built(build));
    match how.wait_quiet {
        Some(max) => wait_until_quiet::wait(max),
        None if is_compare && options.cluster.is_none() => wait_until_quiet::warn(),
        None => {}
    }
    let ended = lab::run(&plan, &run.builds, &done, &options, &mut hooks);
    let cause = ended.map_err(machine).map_err(&resumable).inspect_err(|_| bar.borrow_mut().end())?;

    let state = match &cause {
        lab::Cause::Complete if failed.is_none() => RunState::Complete,
        lab::Cause::OutOfTime if failed.is_none() => RunState::OutOfTime,
        _ => RunState::Interrupted,
    };
    run.state = Some(state);
    store.update_run(&run).map_err(Problem::from).map_err(&resumable)?;
    if how.profile && state != RunState::Interrupted {
        let mut show = |progress: &_| bar.borrow_mut().show(progress);
        match lab::profile(&plan, &store.records(&run.id)?, &options, &mut show, &signals::is_interrupted) {
            Ok(profiles) => run.cpu_profiles = profiles,
            // A failed profile must not affect the measurements.
            Err(error) => bar.borrow().note(&format!("warning: no CPU profile: {error}")),
        }
        store.update_run(&run)?;
        if signals::is_interrupted() {
            bar.borrow()
                .note(&format!("note: profiling was interrupted; CPU profiles kept: {}", run.cpu_profiles.len()));
        }
    }
    bar.borrow_mut().end();
    drop(presence);
    if let Some(problem) = failed {
        return Err(problem);
    }
    let mut records = store.records(&run.id)?;
    analysis::judge_again(&run, &mut records);
    if miss_ratio_replays::complete(&mut run, &records) {
        store.update_run(&run)?;
    }
    drop(owner);
    let findings = analysis::analyze(&run, &records);
    history::keep(&store, &run, &Digest::new(&findings), records.len() as u64);
    Ok(Carried { run, records, findings, cause })
}

/// Runs one trial of each design point and returns the records; `None` if interrupted.
pub(crate) fn run_once(
    plan: &Plan,
    options: &lab::Options,
    progress: &mut dyn FnMut(&lab::Progress),
) -> Result<Option<Vec<Record>>> {
    let nodes = options.cluster.as_ref().map(|cluster| cluster.nodes()).unwrap_or_default();
    let mut records = Vec::new();
    let mut hooks = lab::Hooks {
        store: &mut |record| {
            judge(record, None, &nodes);
            records.push(record.clone());
            Ok(())
        },
        next: &mut |point, records| match records.iter().any(|record| record.point == point) {
            true => study::Next::Enough,
            false => study::Next::Trial(None),
        },
        progress,
        interrupted: &signals::is_interrupted,
    };
    let cause = lab::run(plan, &[], &[], options, &mut hooks).map_err(machine)?;
    Ok((cause != lab::Cause::Interrupted).then_some(records))
}

fn judge(record: &mut Record, calibration: Option<&Calibration>, nodes: &[Node]) {
    let (verdict, warnings) = analysis::judge(record, calibration, nodes);
    record.verdict = verdict;
    record.warnings.extend(warnings);
}

fn other_labs() -> Option<String> {
    let labs = lab::other_labs::others().filter(|labs| !labs.is_empty())?;
    Some(format!("another lab is running on this machine and competes for CPUs: {labs}"))
}

/// Returns the path of the report. Fails if the report cannot be written, before the run takes any time.
fn page_path(args: &RunArgs, plan: &Plan) -> Result<PathBuf> {
    let page = args.html.clone().unwrap_or_else(|| PathBuf::from(format!("{}.html", plan.study)));
    let other = "choose another file with `--html FILE`";
    let folder = folder_of(&page);
    if !folder.is_dir() {
        let text = format!("no directory `{}` for the report `{}`", folder.display(), page.display());
        return Err(usage(text).hint(format!("create it with `mkdir -p {}`, or {other}", folder.display())));
    }
    if page.is_dir() {
        return Err(usage(format!("`{}` is a directory, but the report is a file", page.display())).hint(other));
    }
    let target = if page.exists() { &page } else { folder };
    let failed = |error| usage(format!("cannot write the report `{}`: {error}", page.display())).hint(other);
    rustix::fs::access(target, rustix::fs::Access::WRITE_OK).map_err(failed)?;
    Ok(page)
}

/// Command line that resumes this run, without flags whose values are stored with the run.
fn resume_line(resumed: Option<&str>, is_compare: bool, run: &str) -> String {
    const KEPT: [&str; 3] = ["--set", "--seed", "--backend"];
    let (mut words, mut all) = (Vec::new(), std::env::args().peekable());
    while let Some(word) = all.next() {
        match word.split('=').next().unwrap_or_default() {
            "--resume" => drop(all.next_if(|next| word == "--resume" && Some(next.as_str()) == resumed)),
            "--quick" | "--full" if !is_compare => {}
            flag if !is_compare && KEPT.contains(&flag) => drop(all.next_if(|_| word == flag)),
            _ => words.push(word),
        }
    }
    words.extend(["--resume".to_owned(), run.to_owned()]);
    // A study on standard input must be provided again.
    let input = if !is_compare && words.iter().any(|word| word == "-") { " < STUDY" } else { "" };
    study::shell_words::join(&words) + input
}

fn begin(how: &HowArgs, opened: Opened, store: &Store, nodes: Vec<Node>) -> Result<(Run, Owner, Vec<Record>)> {
    let revision = opened.source.revision();
    let mut plan = opened.plan;
    if let Some(backend) = how.backend {
        plan.points.iter_mut().for_each(|point| point.load.backend = backend);
    }
    let mut host = lab::host_facts::read(Path::new("/"));
    if plan.points.iter().flat_map(Point::processes).any(ProcessPlan::may_use_tools) {
        host.versions = lab::host_facts::versions(&opened.source.directory);
    }
    let protocol = plan.points.first().map(|point| point.load.protocol);
    let mut run = Run {
        version: study::record::RECORD_VERSION,
        id: format!("{}-{}", plan.study, lab::lab_clocks::stamp()),
        started: lab::lab_clocks::rfc3339(),
        profile: opened.profile.name().to_owned(),
        command: std::env::args().collect(),
        quintain: env!("CARGO_PKG_VERSION").to_owned(),
        revision,
        commit: lab::git_revision::commit(Path::new(".")),
        doctor: doctor::examine(&host),
        calibration: protocol.map(|protocol| store.calibration(&host.name, protocol, how.idle)).transpose()?.flatten(),
        state: Some(RunState::Running),
        nodes,
        host,
        plan,
        ..Run::default()
    };
    let owner = store.begin_new(&mut run)?;
    Ok((run, owner, Vec::new()))
}

fn resume(
    how: &HowArgs,
    opened: Opened,
    store: &Store,
    name: &str,
    nodes: Vec<Node>,
    pairs: Option<&mut Pairs<'_>>,
) -> Result<(Run, Owner, Vec<Record>)> {
    let (is_compare, owner) = (pairs.is_some(), pairs.and_then(|pairs| pairs.owner.take()));
    let mut run = if name == LATEST {
        store.latest_of(&opened.plan.study)?.ok_or_else(|| {
            let text = format!("no run of `{}` in `{}` to resume", opened.plan.study, store.path.display());
            usage(text).hint("drop `--resume` to start a new run")
        })?
    } else {
        store.run(name)?
    };
    if run.plan.study != opened.plan.study {
        let text = format!("run `{}` belongs to study `{}`, not `{}`", run.id, run.plan.study, opened.plan.study);
        return Err(usage(text));
    }
    let owner = owner.map_or_else(|| own(store, &run.id), Ok)?;
    let here = lab::host_facts::read(Path::new("/"));
    if here.name != run.host.name || here.cpus != run.host.cpus {
        let [(there, of_there), (here, of_here)] = [&run.host, &here].map(|host| (&host.name, host.cpus.len()));
        let text =
            format!("run `{}` started on `{there}` with {of_there} CPUs; this is `{here}` with {of_here}", run.id);
        return Err(Problem::text(Exit::Machine, text).hint("a run cannot span machines; drop `--resume`"));
    }
    if machines(&run.nodes) != machines(&nodes) {
        let text = format!("run `{}` was measured on {}; this is {}", run.id, machines(&run.nodes), machines(&nodes));
        return Err(Problem::text(Exit::Machine, text)
            .hint("pass the same `--cluster` or `--hosts`; machines cannot be mixed in a run"));
    }
    run.nodes = nodes;
    if let Some(what) = changed(&run.plan, &opened.plan).filter(|_| is_compare) {
        let text = format!("run `{}` was started with other flags: {what}", run.id);
        let hint = format!("`{}` resumes it; drop `--resume` to start another comparison", run.resume);
        return Err(usage(text).hint(hint));
    }
    if run.plan.text != opened.plan.text {
        output::message("note: the study has changed since this run started; resuming with the original plan");
    }
    let records = store.records(&run.id)?;
    if let Some(other) = records.iter().find(|record| record.idle != how.idle) {
        let text = format!("run `{}` was measured with a different idle policy ({:?})", run.id, other.idle);
        return Err(usage(text).hint("pass the same `--idle`; policies cannot be mixed in a run"));
    }
    output::message(&format!("resuming {}: {} trials done", run.id, records.len()));
    run.state = Some(RunState::Running);
    Ok((run, owner, records))
}

/// Takes the exclusive right to add to a run. Fails if another process has it.
pub(crate) fn own(store: &Store, run: &str) -> Result<Owner> {
    store
        .own(run)
        .map_err(|error| Problem::from(error).hint("it continues by itself; drop `--resume` to start another run"))
}

/// Describes how the original plan of a comparison differs from the current one; `None` if it does not.
fn changed(before: &Plan, now: &Plan) -> Option<&'static str> {
    let runnable = |plan: &Plan| {
        let points = plan.points.iter().cloned().map(|point| study::Point { unrunnable: None, ..point });
        points.collect::<Vec<_>>()
    };
    match () {
        () if runnable(before) != runnable(now) => Some("other servers or another load"),
        () if before.gate != now.gate => Some("`--fail-if`, `--undecided` or `--null`"),
        () if before.trials != now.trials => Some("`--metric`, `--within`, `--max-pairs` or `--max-time`"),
        () if before.seed != now.seed => Some("`--seed`"),
        () => None,
    }
}

fn machines(nodes: &[Node]) -> String {
    if nodes.is_empty() {
        return "one machine".to_owned();
    }
    let words = |node: &Node| {
        let Node { name, role, address, host, .. } = node;
        format!("{} {name} ({address}, {}, {} CPUs, {})", role.word(), host.cpu_model, host.cpus.len(), host.kernel)
    };
    nodes.iter().map(words).collect::<Vec<_>>().join(", ")
}

fn refuse_without_points(plan: &Plan) -> Result<()> {
    if plan.points.iter().any(|point| point.unrunnable.is_none()) {
        return Ok(());
    }
    let reason = plan.points.iter().find_map(|point| point.unrunnable.clone()).unwrap_or_default();
    Err(Problem::text(Exit::Machine, format!("no design point of `{}` can run here: {reason}", plan.study)).hint(
        "`quintain check` lists all of them; `--set cores=1` needs fewer CPUs, `share_cpus = true` lets server \
               and generator share them",
    ))
}

#[derive(Serialize)]
pub(crate) struct Stored<'a> {
    pub(crate) run: &'a Run,
    pub(crate) records: &'a [Record],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) findings: Option<&'a Findings>,
}

pub(crate) fn show(how: &HowArgs, carried: &Carried) -> Result<()> {
    let Carried { run, records, findings, .. } = carried;
    let stored = Stored { run, records, findings: Some(findings) };
    output::json_or(how.store.json, &stored, || report::terminal(findings, &output::style()))
}

/// Formats a line with the run's ID, its store and the command that renders the run again.
pub(crate) fn where_it_is(how: &HowArgs, run: &Run) -> String {
    let (id, store) = (&run.id, how.store.store.display());
    format!("run     {id} in {store}   (quintain report {id} --format md, csv, json, html)")
}

pub(crate) fn exit(carried: &Carried) -> Done {
    let Carried { run, records, findings, cause } = carried;
    let failed = |row: &analysis::findings::Row| matches!(row.state, analysis::findings::RowState::Failed(_));
    if let lab::Cause::Lost(why) = cause {
        let text = format!("{why}; the trial it was in is void, {} trials are kept", records.len());
        return Err(Problem::text(Exit::Machine, text).hint(format!("continue with `{}`", run.resume)));
    }
    let gate = findings.gate.as_ref().filter(|gate| gate.fail_if.is_some());
    let skips = findings.gate.as_ref().is_some_and(|gate| gate.undecided == Undecided::Skip);
    let or_skip = |exit: Exit| if skips { Exit::Skip } else { exit };
    Ok(match findings.gate.as_ref().map(|gate| (gate.verdict, gate.undecided)) {
        _ if *cause == lab::Cause::Interrupted => Exit::Interrupted,
        _ if gate.is_some_and(|gate| gate.verdict == GateVerdict::Worse) => Exit::Findings,
        _ if findings.all_rows().any(failed) => or_skip(Exit::Subject),
        _ if findings.all_rows().all(|row| row.n == 0) => or_skip(Exit::Machine),
        Some((GateVerdict::NoVerdict | GateVerdict::Undecided, Undecided::Skip)) => Exit::Skip,
        // The pairs allow no verdict, and more pairs would not change that.
        Some((GateVerdict::NoVerdict, _)) if !findings.quick => Exit::Machine,
        Some((GateVerdict::Undecided, Undecided::Fail)) => Exit::Findings,
        _ => Exit::Fine,
    })
}

pub(crate) fn cpus(asked: Option<&[u32]>) -> Result<Vec<u32>> {
    let allowed = net::thread_and_process::affinity().map_err(machine)?;
    let Some(asked) = asked else { return Ok(allowed) };
    let missing = asked.iter().filter(|cpu| !allowed.contains(cpu)).map(ToString::to_string).collect::<Vec<_>>();
    if missing.is_empty() {
        return Ok(asked.to_vec());
    }
    let text = format!("CPU {} does not exist or is not available to this process", missing.join(", "));
    Err(Problem::text(Exit::Machine, text)
        .hint(format!("this process may use CPUs {}", lab::cpu_list::format(&allowed))))
}
