//! `quintain verify`: checks that a server keeps its contract, without which its speed means nothing.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use lab::verify::{End, Order, Target};
use study::cases::{self, Case};
use study::plan::{Point, SubjectPlan};
use study::record::{BuildOutcome, Failure, FailureKind};
use study::verification::{CaseOutcome, CaseResult, Suite, Verification};

use crate::cli::{StudyArgs, VerifyArgs};
use crate::command_result::{Done, Exit, Problem, Result, exe, machine, usage};
use crate::run::this_machine;
use crate::{output, signals, study_file};

/// Number of file descriptors that a case may need, most of them for connections.
const FILES: u64 = 2_000;

/// Name of a server, and the server with its cases, or the reason why it is skipped.
type Subject = (String, Result<(Target, Order), String>);

pub(crate) fn verify(args: VerifyArgs) -> Done {
    signals::watch_interrupts()?;
    let own = own_cases(&args.cases)?;
    if args.list && args.command.is_none() && args.target.is_none() {
        let cases = lab::verify::names(&order(&args, &own, None, "/", &[]));
        check_names(&args, &cases, true)?;
        return list(cases);
    }
    let subjects = subjects(&args, &own)?;
    let orders = subjects.iter().filter_map(|(_, server)| Some(&server.as_ref().ok()?.1));
    let cases = orders.clone().flat_map(lab::verify::names).collect::<Vec<_>>();
    check_names(&args, &cases, orders.count() > 0)?;
    if args.list {
        return list(cases);
    }
    if net::thread_and_process::raise_open_files(FILES).is_err() {
        output::message(&format!(
            "note: fewer than {FILES} open files are allowed; cases with many connections may fail"
        ));
    }
    let exe = exe()?;
    let done = subjects.iter().map(|subject| one(&args, subject, &exe)).collect::<Result<Vec<_>>>()?;
    let (all, exits): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    let by_weight = [Exit::Findings, Exit::Subject, Exit::Machine];
    if args.json {
        output::json(&all)?;
    } else if all.len() > 1 {
        let count = |holds| all.iter().filter(|one| one.holds == holds).count();
        let [hold, failed, unchecked] = [Some(true), Some(false), None].map(count);
        output::text(&format!("\n{} servers: {hold} hold, {failed} do not, {unchecked} not checked", all.len()))?;
    }
    Ok(by_weight.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Fine))
}

fn one(args: &VerifyArgs, (name, server): &Subject, exe: &Path) -> Result<(Verification, Exit)> {
    let say = |text: &str| if args.json { Ok(()) } else { output::text(text) };
    let not_started = |seed: u64, why: String| {
        let not_started = Some(why);
        Verification { server: name.clone(), seed, holds: None, not_started, cases: Vec::new() }
    };
    let (target, order) = match server {
        Ok(server) => server,
        Err(why) => {
            say(&format!("{name}\n  skipped: {why}"))?;
            // Nothing was checked, so nothing has failed.
            return Ok((not_started(0, why.clone()), Exit::Fine));
        }
    };
    say(name)?;
    // If this fails, so does the line at the end, whose error is returned.
    let mut told = |case: &CaseResult| drop(say(&line(case)));
    match lab::verify::verify(order, target, exe, Path::new("."), &signals::is_interrupted, &mut told) {
        Ok(verification) => {
            let (ok, failed, skipped) = verification.counts();
            let seed = verification.seed;
            say(&format!("  {ok} hold, {failed} failed, {skipped} skipped; values drawn from `--seed {seed}`"))?;
            let exit = if verification.holds == Some(false) { Exit::Findings } else { Exit::Fine };
            Ok((verification, exit))
        }
        Err(End::Failed(Failure { kind: FailureKind::Unrunnable, message })) => {
            let why = format!("cannot run here: {message}");
            say(&format!("  {why}"))?;
            Ok((not_started(order.seed, why), Exit::Machine))
        }
        Err(End::Failed(Failure { message: why, .. })) => {
            say(&format!("  the server could not be started: {why}"))?;
            Ok((not_started(order.seed, why), Exit::Subject))
        }
        Err(_) => Err(Problem::text(Exit::Interrupted, "interrupted")),
    }
}

fn line(case: &CaseResult) -> String {
    let (word, below) = match &case.outcome {
        CaseOutcome::Ok => ("ok", String::new()),
        CaseOutcome::Skipped { reason } => ("skipped", format!("\n           {reason}")),
        CaseOutcome::Failed(miss) => {
            let sent = miss.sent.as_ref().map(|sent| format!("\n           sent `{sent}`")).unwrap_or_default();
            ("failed", format!("\n           {miss}{sent}"))
        }
    };
    format!("  {word:<7}  {:<13} {}{below}", case.name, case.promise)
}

fn list(cases: Vec<(String, String)>) -> Done {
    let rows = cases.into_iter().map(|(name, promise)| vec![name, promise]);
    output::text(&output::columns(&analysis::group_by_key::distinct(rows)))?;
    Ok(Exit::Fine)
}

fn own_cases(files: &[PathBuf]) -> Result<Vec<Case>> {
    let (mut all, mut rendered) = (Vec::<Case>::new(), String::new());
    for path in files {
        let text = output::read(path)?;
        match cases::parse(&text) {
            Ok(cases) => all.extend(cases),
            Err(found) => rendered += &format!("{}\n", study_file::mistaken(path, &text, &found)),
        }
    }
    if rendered.is_empty() { Ok(all) } else { Err(Problem::rendered(Exit::Usage, rendered.trim_end().to_owned())) }
}

fn check_names(args: &VerifyArgs, cases: &[(String, String)], has_server: bool) -> Result<()> {
    let known = || cases.iter().map(|(name, _)| name.as_str());
    let Some(unknown) = args.names.iter().find(|name| !known().any(|known| known == name.as_str())) else {
        let hint = "add a file with `--cases FILE`, or name the server's protocol: `--protocol http`, `http2`, `pingpong`, `cache`";
        let is_empty = cases.is_empty() && has_server;
        return if is_empty { Err(usage("no case to check").hint(hint)) } else { Ok(()) };
    };
    let near = config::nearest::did_you_mean(unknown, known());
    let hint = near.unwrap_or_else(|| "`--list` lists the cases".to_owned());
    Err(usage(format!("unknown case `{unknown}`")).hint(hint))
}

fn order(args: &VerifyArgs, own: &[Case], suite: Option<Suite>, path: &str, more: &[Case]) -> Order {
    Order {
        suite: args.protocol.unwrap_or(suite),
        cases: more.iter().chain(own).cloned().collect(),
        names: args.names.clone(),
        path: args.path.clone().unwrap_or_else(|| path.to_owned()),
        seed: args.seed.unwrap_or_else(|| lab::lab_clocks::monotonic_ns() % 1_000_000),
        seen_by_clients: false,
    }
}

fn subjects(args: &VerifyArgs, own: &[Case]) -> Result<Vec<Subject>> {
    match (&args.command, &args.target) {
        (Some(_), Some(_)) => Err(usage("`--command` and a target together")
            .hint("drop one: a target is the URL of a running server, or a study")),
        (None, None) => Err(usage("nothing to verify").hint(
            "give `--command './server -p {port}'`, the URL of a running server, or a study; \
             `quintain help verify` has examples",
        )),
        (Some(command), None) => {
            let plan = SubjectPlan::of_command(command).map_err(|why| {
                usage(format!("`--command`: {why}"))
                    .hint("write the server's port as `{port}`: quintain picks a free one")
            })?;
            let name = plan.process.command.clone();
            Ok(vec![(name, Ok((Target::Command(Box::new(plan.process)), order(args, own, None, "/", &[]))))])
        }
        (None, Some(target)) if target.contains("://") => {
            let (address, suite, path) = running(target)?;
            Ok(vec![(address.to_string(), Ok((Target::Running(address), order(args, own, suite, &path, &[]))))])
        }
        (None, Some(study)) => of_study(args, own, study),
    }
}

fn running(text: &str) -> Result<(SocketAddr, Option<Suite>, String)> {
    let url = study::url::parse(text)?;
    let suite = Suite::of(url.protocol);
    if suite.is_none() {
        return Err(usage(format!("`verify` does not speak {}", url.protocol.name()))
            .hint("give an `http://`, `pingpong://`, `memcached://` or `redis://` URL"));
    }
    let address = (url.host.as_str(), url.port).to_socket_addrs().ok().and_then(|mut all| all.next());
    let address = address.ok_or_else(|| usage(format!("cannot resolve `{}`", url.host)))?;
    if let Err(error) = std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_secs(5)) {
        return Err(Problem::text(Exit::Subject, format!("cannot connect to {address}: {error}"))
            .hint("start the server, or let quintain start it with `--command`"));
    }
    let path = if url.target.starts_with('/') { url.target } else { "/".to_owned() };
    Ok((address, suite, path))
}

/// Builds the servers of a study and returns each distinct server once. Fails if a build fails.
fn of_study(args: &VerifyArgs, own: &[Case], name: &str) -> Result<Vec<Subject>> {
    let study = StudyArgs { study: name.to_owned(), seed: 1, ..StudyArgs::default() };
    let here = this_machine(None)?;
    let mut opened = study_file::open(&study, &here)?;
    let mut seen = Vec::<SubjectPlan>::new();
    let same = |point: &Point| SubjectPlan { cpus: 0, cpus_wanted: None, verify: None, ..point.subject.clone() };
    opened.plan.points.retain(|point| {
        let subject = same(point);
        let is_new = point.unrunnable.is_none() && !seen.contains(&subject);
        seen.extend(is_new.then_some(subject));
        is_new
    });
    opened.plan.points.iter_mut().for_each(|point| point.proxies.clear());
    // Disables the check after each build, because all servers are verified together later.
    let verifies: Vec<_> = opened.plan.points.iter_mut().map(|point| point.subject.verify.take()).collect();
    let host = lab::host_facts::read(Path::new("/"));
    let options = lab::Options::new(exe()?, PathBuf::from("."), &host, &here.cpus);
    let mut progress = |progress: &lab::Progress| {
        output::message(&format!("building {} of {}", progress.point + 1, seen.len()));
    };
    let builds = lab::build_all(&opened.plan, &options, &mut progress, &signals::is_interrupted).map_err(machine)?;
    if signals::is_interrupted() {
        return Err(Problem::text(Exit::Interrupted, "interrupted"));
    }
    let mut all = Vec::new();
    for ((index, point), verify) in opened.plan.points.iter().enumerate().zip(verifies) {
        let why = builds.iter().filter(|build| build.points.contains(&index)).find_map(|build| match &build.outcome {
            BuildOutcome::Ready => None,
            BuildOutcome::Skipped { reason } | BuildOutcome::Unrunnable { reason } => Some(reason.clone()),
            BuildOutcome::Failed { output_tail } => Some(format!("`{}` failed: {output_tail}", build.command)),
            BuildOutcome::Unverified { case, reason } => Some(format!("{case}: {reason}")),
        });
        let server = match why {
            Some(why) => Err(why),
            None => {
                let file = verify.and_then(|verify| verify.cases).map(PathBuf::from);
                let more = own_cases(file.as_slice())?;
                let order = order(args, own, Suite::of_load(&point.load), point.load.path(), &more);
                Ok((Target::Command(Box::new(point.subject.process.clone())), order))
            }
        };
        all.push((point.subject.process.command.clone(), server));
    }
    let none = || Problem::text(Exit::Machine, format!("no design point of `{name}` can run here"));
    if all.is_empty() { Err(none()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::verification::Miss;

    #[test]
    fn lines_of_cases() {
        let case = |outcome| CaseResult {
            name: "sum".to_owned(),
            promise: "two numbers are added".to_owned(),
            outcome,
            elapsed_ns: 5,
        };
        assert_eq!(line(&case(CaseOutcome::Ok)), "  ok       sum           two numbers are added");
        let skipped = CaseOutcome::Skipped { reason: "no process".to_owned() };
        assert_eq!(line(&case(skipped)), "  skipped  sum           two numbers are added\n           no process");
        let miss = Miss { sent: Some("GET /".to_owned()), ..Miss::from("status".to_owned()) };
        let failed = "  failed   sum           two numbers are added\n           status\n           sent `GET /`";
        assert_eq!(line(&case(CaseOutcome::Failed(miss))), failed);
    }
}
