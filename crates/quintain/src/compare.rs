//! `quintain compare`: turns its flags into a study with a `[gate]`, which runs pairs of trials until it has a verdict.

use std::path::{Path, PathBuf};

use clap::Arg;
use lab::git_revision::short;
use lab::git_worktrees::{Repository, Worktrees};
use store::{Owner, Store};
use study::gate::{COMPARED, FailIf, Gate};
use study::load_shape::is_shape;
use study::plan::{EffectsPlan, TrialRule};
use study::protocol::Protocol;
use study::record::BuildOutcome;
use study::{Level, Plan, units};
use toml::{Table, Value};

use crate::cli::{CompareArgs, LOAD_OF_PAIRS, StudyArgs};
use crate::collected_mistakes::Mistakes;
use crate::command_result::{Done, Exit, Problem, Result, because, exe, machine, usage};
use crate::run::{self, LATEST, Pairs};
use crate::study_file::{self, Machine, Opened};
use crate::{level_selection, output, signals, wait_until_quiet};

const FACTOR: &str = "version";
const BASE: &str = "base";
const HEAD: &str = "head";
const AGAIN: &str = "base again";

/// Default of `--within`: a comparison ends once the ratio is known to within this fraction.
const WITHIN: f64 = 0.02;

pub(crate) fn compare(mut args: CompareArgs, mut mistakes: Mistakes) -> Done {
    return_operand(&mut args);
    if let Some(text) = &args.fail_if {
        mistakes.all_ok("`--fail-if`", FailIf::parse(text));
    }
    let commands = args.base.as_deref().zip(args.head.as_deref());
    let revisions = args.base_rev.as_deref().zip(args.head_rev.as_deref());
    match (args.what.as_slice(), commands, revisions) {
        ([url], Some((base, head)), _) => {
            let sides = [base, head].map(|command| Side { command: command.to_owned(), ..Side::default() });
            let target = target(url, &mut mistakes);
            mistakes.end()?;
            of_flags(&args, study_of(&args, target, &sides), None, None)
        }
        ([url], None, Some(revisions)) => of_revisions(&args, url, revisions, mistakes),
        ([study, base, head], None, None) => of_study(&args, study, [base, head], mistakes),
        ([_, _], None, None) => {
            let is_foreign = |flag: &str, _: &Arg| !["--store", "--json", "--undecided"].contains(&flag);
            let why = "does not apply: two stored runs are shown, and no server is started";
            mistakes.refuse_of::<CompareArgs>(is_foreign, why, "drop it");
            mistakes.end()?;
            stored(&args)
        }
        (what, commands, revisions) => {
            let text = match what {
                _ if commands.is_some() || revisions.is_some() => {
                    format!("{} operands, expected one URL", what.len())
                }
                [one] => format!("`{one}`: nothing to compare it with"),
                _ => "nothing to compare".to_owned(),
            };
            mistakes.add(usage(text).hint(FORMS));
            mistakes.end().map(|()| Exit::Usage)
        }
    }
}

/// Restores an operand that clap took as the value of `--resume`: `--resume URL` means `--resume latest URL`.
fn return_operand(args: &mut CompareArgs) {
    let operands = if args.base.is_some() || args.base_rev.is_some() { 1 } else { 3 };
    if args.what.len() + 1 == operands
        && let Some(first) = args.resume.take_if(|run| run != LATEST)
    {
        args.what.insert(0, first);
        args.resume = Some(LATEST.to_owned());
    }
}

const FORMS: &str = "`quintain compare --base CMD --head CMD URL`, `... --base-rev REV --head-rev REV --command CMD URL`, `... STUDY FACTOR=BASE FACTOR=HEAD`, or `... RUN RUN`";

#[derive(Clone, Debug, Default)]
struct Side {
    command: String,
    build: Option<String>,
    directory: Option<String>,
    name: Option<String>,
}

/// Converts a string to an integer if possible, because some study keys expect numbers.
fn value(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::String(text.to_owned()), Value::Integer)
}

/// Sets a key of a study. Its path begins with the tables that it is in; without one, it is a factor.
fn set(study: &mut Table, path: &str, value: Value) {
    let (tables, key) = path.rsplit_once('.').unwrap_or(("factors", path));
    let mut table = study;
    for name in tables.split('.') {
        let inner = table.entry(name).or_insert(Value::Table(Table::new()));
        if !inner.is_table() {
            *inner = Value::Table(Table::new());
        }
        table = inner.as_table_mut().expect("it was made one");
    }
    table.insert(key.to_owned(), value);
}

fn fail_if(args: &CompareArgs) -> Option<FailIf> {
    FailIf::parse(args.fail_if.as_ref()?).ok()
}

fn study_of(args: &CompareArgs, (protocol, path): (&str, Option<String>), sides: &[Side; 2]) -> Table {
    let text = |text: &str| Some(Value::from(text));
    let given = |text: &Option<String>| text.as_deref().map(value);
    let optional = |text: &Option<String>| text.as_deref().map(Value::from);
    let [base, head] = sides;
    let named = |side: &Side, level: &str| match &side.name {
        Some(name) => format!("{level} ({name})"),
        None => format!("{level} (`{}`)", side.command),
    };
    let question = format!("Is {} worse than {}?", named(head, HEAD), named(base, BASE));
    let mut study = Table::from_iter([("question".to_owned(), question.into())]);
    let levels = [(BASE, base), (HEAD, head)].into_iter().chain(args.null.then_some((AGAIN, base)));
    set(&mut study, FACTOR, levels.clone().map(|(level, _)| level).collect::<Vec<_>>().into());
    for (level, Side { command, build, directory, .. }) in levels {
        let keys = [("build", optional(build)), ("command", text(command)), ("directory", optional(directory))];
        for (key, value) in keys.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            set(&mut study, &format!("subject.variants.{level}.{key}"), value);
        }
    }
    let headers = args.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    // A load that changes over time defines its own duration.
    let is_shaped = [Some(&args.clients), args.rate.as_ref()].into_iter().flatten().any(|text| is_shape(text));
    let keys = [
        ("gate.of", text(FACTOR)),
        ("gate.base", text(BASE)),
        ("gate.fail_if", fail_if(args).map(|fail_if| fail_if.to_string().into())),
        ("gate.allow_errors", args.allow_errors.filter(|share| *share > 0.0).map(Value::Float)),
        ("gate.undecided", text(args.undecided.word())),
        ("subject.cpus", Some(value(&args.server_cpus))),
        ("load.protocol", text(protocol)),
        ("load.clients", Some(value(&args.clients))),
        ("load.threads", given(&args.threads)),
        ("load.rate", given(&args.rate)),
        ("load.path", optional(&path)),
        ("load.method", args.method.as_deref().or(args.body.as_ref().map(|_| "POST")).and_then(text)),
        ("load.headers", (!args.headers.is_empty()).then(|| Value::Table(headers.collect()))),
        ("load.body", optional(&args.body)),
        ("load.pipeline", given(&args.pipeline)),
        ("load.expect_status", given(&args.expect_status)),
        ("load.connection", if args.no_keepalive { text("per-request") } else { None }),
        ("load.insecure", args.insecure.then_some(true.into())),
        ("load.workload.preset", optional(&args.workload)),
        ("load.warmup", text(&args.warmup)),
        ("load.stop", text(&args.duration).filter(|_| !is_shaped)),
        ("load.window", window(&args.duration).map(Value::String).filter(|_| !is_shaped)),
        ("trials.stop.comparison", Some(Value::Float(args.within.unwrap_or(WITHIN)))),
        ("trials.stop.metric", optional(&args.metric)),
        ("trials.stop.min", Some(i64::from(stats::gate::FIRST_LOOK).into())),
        ("trials.stop.max", Some(i64::from(args.max_pairs).into())),
        ("trials.stop.max_time", text(&args.max_time)),
    ];
    for (key, value) in keys.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        set(&mut study, key, value);
    }
    study
}

/// Window length for a trial too short for two windows of the default length; `None` for a longer trial.
fn window(duration: &str) -> Option<String> {
    let ns = units::duration_ns(duration).ok()?;
    (ns < 2 * study::load_limits_and_defaults::WINDOW_NS).then(|| format!("{}us", (ns / 2_000).max(1_000)))
}

/// Splits a URL without a host and port into its protocol and path; the path is `None` if the protocol has none.
fn target(url: &str, mistakes: &mut Mistakes) -> (&'static str, Option<String>) {
    let Some((scheme, rest)) = url.split_once("://") else {
        let problem = usage(format!("`{url}` is not a URL without host and port"));
        mistakes.add(problem.hint("write `pingpong://`, `http:///path` or `memcached://`"));
        return ("http", None);
    };
    let Some(protocol) = Protocol::of_scheme(scheme) else {
        let known = Protocol::with_scheme().map(Protocol::scheme);
        mistakes.add(usage(format!("unknown scheme `{scheme}`")).hint(config::nearest::suggestion(scheme, known)));
        return ("http", None);
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !host.is_empty() {
        let problem = usage(format!("`{url}`: compare starts the servers, so the URL has no host and port"));
        mistakes.add(problem.hint(format!("write `{scheme}://{path}`; `{{port}}` in the commands is the port")));
    }
    if !protocol.has_path() && !path.trim_start_matches('/').is_empty() {
        mistakes.add(usage(format!("`{url}`: {scheme} has no path")).hint(format!("write `{scheme}://`")));
    }
    (protocol.name(), Some(path.to_owned()).filter(|path| protocol.has_path() && !path.is_empty()))
}

fn of_flags(args: &CompareArgs, mut made: Table, trees: Option<&Trees>, owner: Option<Owner>) -> Done {
    if args.print_study {
        for (key, value) in &args.sets {
            let read = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
            set(&mut made, key, read.unwrap_or_else(|| Value::String(value.clone())));
        }
        output::data(&made.to_string())?;
        return Ok(Exit::Fine);
    }
    carry_out(args, trees, owner, |machine| {
        let study = StudyArgs { sets: args.sets.clone(), seed: args.seed, ..StudyArgs::default() };
        let mut opened = study_file::of_compare(made.to_string(), &study, machine)?;
        let plan = &mut opened.plan;
        let gate = plan.gate.as_mut().ok_or_else(|| usage("no `[gate]`"))?;
        gate.null = args.null.then(|| Level::Text(AGAIN.to_owned()));
        if let Some(trees) = trees {
            for point in &mut plan.points {
                let is_head = point.factors.get(FACTOR) == Some(&Level::Text(HEAD.to_owned()));
                point.subject.revision = Some(trees.commits[usize::from(is_head)].clone());
            }
        }
        Ok(opened)
    })
}

fn of_study(args: &CompareArgs, study: &str, levels: [&String; 2], mut mistakes: Mistakes) -> Done {
    let flags = ["--null", "--rebuild-every", "--print-study"];
    mistakes.refuse(&flags, "needs `--base` and `--head`, or revisions", "drop it");
    let is_of_load = |flag: &str, arg: &Arg| {
        flag == "--server-cpus" || arg.get_help_heading() == Some(LOAD_OF_PAIRS) && flag != "--set"
    };
    let hint = "`--set load.KEY=VALUE` changes a key of it";
    mistakes.refuse_of::<CompareArgs>(is_of_load, "is not supported, as the study defines the run", hint);
    let parts = levels.map(|text| level_selection::parse(text));
    let [Ok(base), Ok(head)] = &parts else {
        let hint = "`quintain compare STUDY server=go server=rust`, or several of a design point: `server=go,clients=40 server=rust,clients=80`";
        mistakes.add(usage(format!("`{}` and `{}` are not FACTOR=LEVEL", levels[0], levels[1])).hint(hint));
        return mistakes.end().map(|()| Exit::Usage);
    };
    mistakes.ok(level_selection::check_sides(levels.map(String::as_str), [base, head]));
    mistakes.end()?;
    carry_out(args, None, None, |machine| {
        let study =
            StudyArgs { study: study.to_owned(), sets: args.sets.clone(), seed: args.seed, ..StudyArgs::default() };
        let mut opened = study_file::open(&study, machine)?;
        let plan = &mut opened.plan;
        let (factor, [base, head]) = level_selection::keep_sides(plan, base, head)?;
        if plan.points.iter().any(|point| point.load.search.is_some() || point.load.share.is_some()) {
            let text = format!("`{}` searches for rates, and searches cannot be compared in pairs", plan.study);
            return Err(usage(text).hint("compare at a rate: `--set load.rate=10k`"));
        }
        plan.question = format!("Is {factor} {head} worse than {base}, in the study `{}`?", plan.study);
        plan.study = format!("compare-{}", plan.study);
        (plan.answer, plan.effects) = (None, EffectsPlan { metrics: Some(Vec::new()), ..EffectsPlan::default() });
        let metrics = match (&args.metric, plan.gate.take()) {
            (Some(metric), _) => vec![metric.clone()],
            (None, Some(gate)) => gate.metrics,
            (None, None) => {
                let own = Some(plan.trials.metric.as_str()).filter(|own| *own != "latency_mean");
                let others = COMPARED.into_iter().filter(|name| Some(*name) != own);
                own.into_iter().chain(others).map(str::to_owned).collect()
            }
        };
        plan.trials = TrialRule {
            metric: metrics[0].clone(),
            relative: None,
            comparison: Some(args.within.unwrap_or(WITHIN)),
            quick: false,
            min: stats::gate::FIRST_LOOK,
            max: args.max_pairs,
            max_ns: Some(units::duration_ns(&args.max_time).map_err(usage)?),
            ..plan.trials.clone()
        };
        let (of, undecided, fail_if) = (factor, args.undecided, fail_if(args));
        let allow_errors = args.allow_errors.unwrap_or(0.0);
        plan.gate = Some(Gate { of, base, fail_if, metrics, allow_errors, undecided, null: None });
        Ok(opened)
    })
}

struct Trees {
    worktrees: Worktrees,
    commits: [String; 2],
}

const SIDES: [&str; 2] = [BASE, HEAD];

impl Trees {
    /// Checks out both revisions and returns the directories in which their commands start. If both are built again
    /// later, `round` is the number of earlier builds, and each round has a new directory.
    fn check_out(&self, round: Option<usize>) -> Result<[String; 2]> {
        let folder = &self.worktrees.folder;
        let check_out = |side: usize| {
            let commit = &self.commits[side];
            let name = format!("{}-{commit}", SIDES[side]);
            let Some(round) = round else { return self.worktrees.check_out(&name, commit).map_err(usage) };
            // Paths stored in a binary shift its layout, so each round uses a path of a different length.
            let real = format!("{round}{}-{name}", "x".repeat(round * 7 % 64));
            let directory = self.worktrees.check_out(&real, commit).map_err(usage)?;
            let link = folder.join(&name);
            let inside = directory.strip_prefix(folder.join(&real)).unwrap_or(Path::new("")).to_owned();
            let linked = || {
                if link.is_symlink() {
                    std::fs::remove_file(&link)?;
                }
                std::os::unix::fs::symlink(&real, &link)
            };
            linked().map_err(because(Exit::Machine, "worktrees"))?;
            Ok::<_, Problem>(link.join(inside))
        };
        let [base, head] = [0, 1].map(|side| check_out(side).map(|place| place.to_string_lossy().into_owned()));
        Ok([base?, head?])
    }
}

fn of_revisions(args: &CompareArgs, url: &str, (base, head): (&str, &str), mut mistakes: Mistakes) -> Done {
    let repository = Repository::of(Path::new(".")).map_err(usage)?;
    let mut commits = Vec::new();
    for (flag, revision) in [("--base-rev", base), ("--head-rev", head)] {
        let commit = repository.commit(revision).map_err(|error| format!("`{flag}`: {error}"));
        commits.extend(mistakes.ok(commit));
    }
    if let [base, head] = commits.as_slice()
        && base == head
    {
        let hint = "`--null` compares the server with itself and shows how often this machine reports a difference";
        mistakes.add(usage(format!("base and head are the same commit, {}", short(base))).hint(hint));
    }
    let before = resumed(args, &commits)?;
    let target = target(url, &mut mistakes);
    mistakes.end()?;
    let commits = <[String; 2]>::try_from(commits).map_err(|_| usage("two revisions needed"))?;
    let (folder, owner) = before.unzip();
    let worktrees = Worktrees::begin(repository, folder, &exe()?).map_err(usage)?;
    let trees = Trees { worktrees, commits };
    let places =
        if args.print_study { SIDES.map(str::to_owned) } else { trees.check_out(args.rebuild_every.map(|_| 0))? };
    let sides = [(base, 0), (head, 1)].map(|(revision, at)| Side {
        command: args.command.clone().unwrap_or_default(),
        build: args.build.clone(),
        directory: Some(places[at].clone()),
        name: Some(format!("{revision}, {}", short(&trees.commits[at]))),
    });
    of_flags(args, study_of(args, target, &sides), Some(&trees), owner)
}

/// Finds the worktree directory of the run to resume and takes the right to add to that run. `None` if there is nothing
/// to resume. Fails if another process is adding to the run or its commits differ.
fn resumed(args: &CompareArgs, commits: &[String]) -> Result<Option<(PathBuf, Owner)>> {
    let Some(name) = &args.resume else { return Ok(None) };
    let store = Store::open_existing(&args.how.store.store)?;
    let run = if name == LATEST { store.latest_of("compare")? } else { Some(store.run(name)?) };
    let Some(run) = run else { return Ok(None) };
    let mut folder = None;
    for ((side, flag), commit) in SIDES.into_iter().zip(["--base-rev", "--head-rev"]).zip(commits) {
        let level = Level::Text(side.to_owned());
        let subject = run.plan.points.iter().find(|point| point.factors.get(FACTOR) == Some(&level));
        let subject = subject.map(|point| &point.subject);
        let Some(begun) = subject.and_then(|subject| subject.revision.as_ref()) else {
            let text = format!("run `{}` does not compare two revisions", run.id);
            return Err(usage(text).hint("drop `--resume` to start another comparison"));
        };
        if begun != commit {
            let text = format!("run `{}` has {side} {}; `{flag}` is {}", run.id, short(begun), short(commit));
            let hint = format!("`{flag} {}` resumes it; drop `--resume` to start another comparison", short(begun));
            return Err(usage(text).hint(hint));
        }
        let name = format!("{side}-{commit}");
        let directory = subject.and_then(|subject| subject.process.directory.as_deref()).map(Path::new);
        let tree = directory.and_then(|directory| directory.ancestors().find(|place| place.ends_with(&name)));
        folder = folder.or(tree.and_then(Path::parent).map(Path::to_owned));
    }
    let owner = run::own(&store, &run.id)?;
    Ok(folder.map(|folder| (folder, owner)))
}

fn carry_out(
    args: &CompareArgs,
    trees: Option<&Trees>,
    owner: Option<Owner>,
    open: impl FnOnce(&Machine) -> Result<Opened>,
) -> Done {
    signals::watch_interrupts()?;
    let host = run::machine_of(&args.how.cluster, args.how.cpus.as_deref(), None)?;
    let opened = open(&host)?;
    let mut round = 0;
    let mut rebuild = |block: u32, plan: &Plan, options: &lab::Options| {
        let are_here = trees.is_some() && options.cluster.is_none();
        if let Some(program) = (are_here && block == 1).then(|| the_same_program(plan)).flatten() {
            output::message(&format!(
                "warning: `{program}` is the same in both revisions, byte for byte: the change does not reach it, or the builds share a directory and one took the other's output"
            ));
        }
        let Some((trees, every)) = trees.zip(args.rebuild_every) else { return Ok(()) };
        if !block.is_multiple_of(every) {
            return Ok(());
        }
        round += 1;
        trees.check_out(Some(round))?;
        build(plan, options)
    };
    let pairs = Pairs { owner, before_block: &mut rebuild };
    let carried = run::carry_out(opened, &args.how, args.resume.as_deref(), host, Some(pairs))?;
    let findings = &carried.findings;
    if args.markdown.as_deref() == Some(Path::new("-")) {
        output::data(&report::markdown_short(findings))?;
    } else {
        args.markdown.iter().try_for_each(|path| output::file(path, report::markdown_short(findings)))?;
        run::show(&args.how, &carried)?;
    }
    if let Some(path) = &args.junit {
        output::file(path, report::junit(findings).map_err(machine)?)?;
    }
    if let Some(path) = &args.html {
        output::file(path, report::html(findings).map_err(machine)?)?;
    }
    output::message(&format!("\n{}", run::where_it_is(&args.how, &carried.run)));
    if let Some(advice) = wait_until_quiet::advice(findings).filter(|_| args.how.cluster.cluster.is_none()) {
        output::message(&advice);
    }
    run::exit(&carried)
}

fn the_same_program(plan: &Plan) -> Option<String> {
    let program = |point: &study::Point| {
        let program = study::shell_words::split(&point.subject.process.command).ok()?.into_iter().next()?;
        let path = Path::new(point.subject.process.directory.as_deref()?).join(&program);
        Some((program.contains('/').then_some(program)?, std::fs::read(path).ok()?))
    };
    let [(program, base), (_, head)] = [plan.points.first().and_then(program)?, plan.points.get(1).and_then(program)?];
    (base == head).then_some(program)
}

fn build(plan: &Plan, options: &lab::Options) -> Result<()> {
    let builds = lab::build_all(plan, options, &mut |_| {}, &signals::is_interrupted).map_err(machine)?;
    match builds.iter().find(|build| build.outcome != BuildOutcome::Ready) {
        Some(build) if !signals::is_interrupted() => {
            Err(Problem::text(Exit::Subject, format!("`{}` failed when it was built again", build.command)))
        }
        _ => Ok(()),
    }
}

/// Compares two stored runs. There is no verdict, because they ran at different times.
fn stored(args: &CompareArgs) -> Done {
    let store = Store::open_existing(&args.how.store.store)?;
    let read = |name: &String| -> Result<_> {
        let run = store.run(name)?;
        let mut records = store.records(&run.id)?;
        analysis::judge_again(&run, &mut records);
        Ok((run, records))
    };
    let [base, head] = [&args.what[0], &args.what[1]].map(read);
    let found = analysis::side_by_side(&[base?, head?]);
    output::json_or(args.how.store.json, &found, || report::side_by_side_terminal(&found, &output::style()))?;
    Ok(if args.undecided == study::gate::Undecided::Skip { Exit::Skip } else { Exit::Fine })
}
