//! Verifies that a server keeps its contract. Most cases are data ([`study::cases`]). Servers are started and stopped
//! as in trials. Every connect, read, write and case has a time limit, so a hostile server can only fail its cases.

mod cache_checks;
mod check_definition;
mod client;
mod client_receive;
mod common_checks;
mod conversation;
mod expected_page;
mod http2_checks;
mod http2_client;
mod http2_session;
mod http2_violations;
mod http_checks;
mod http_response_parser;
mod pingpong_checks;
mod server_under_test;
mod unsuccessful_check_reason;

use std::net::SocketAddr;
use std::path::Path;

use study::cases::Case;
use study::plan::{Plan, Point, ProcessPlan, SubjectPlan, VerifyPlan};
use study::record::{Build, BuildOutcome, Failure, FailureKind};
use study::verification::{CaseOutcome, CaseResult, Miss, Suite, Verification};

use crate::lab_clocks;
use crate::options_and_hooks::Options;
use crate::process_start_and_stop::Supervisor;
use crate::start_server::{Ground, Kept};
use crate::trial_end_reason::failed;
use check_definition::{Check, code};
use server_under_test::{Home, Server, quoted};
use unsuccessful_check_reason::Trouble;

pub use crate::trial_end_reason::End;

/// Cases to verify, and their parameters.
#[derive(Clone, Debug)]
pub struct Order {
    /// Built-in cases to run; `None` for none.
    pub suite: Option<Suite>,
    /// Additional cases from the user.
    pub cases: Vec<Case>,
    /// Names of the cases to run; empty for all.
    pub names: Vec<String>,
    /// Path of the page that HTTP cases request.
    pub path: String,
    /// Seed of the random values in requests.
    pub seed: u64,
    /// Whether to run only cases that a client can observe, without signals, restarts or the sockets of the process.
    pub seen_by_clients: bool,
}

/// Server to verify: one that is running, or a command that starts one.
#[derive(Clone, Debug)]
pub enum Target {
    /// A running server at this address. Cases that need its process are skipped.
    Running(SocketAddr),
    /// A server to start, with a fresh process for each case.
    Command(Box<ProcessPlan>),
}

/// Verifies a server and passes each result to `told`. Fails if interrupted or if the server's first start fails. `exe`
/// is the quintain binary, or a different one with the commands `exec` and `watchdog`. `directory` is the base of
/// relative paths in a command.
pub fn verify(
    order: &Order,
    target: &Target,
    exe: &Path,
    directory: &Path,
    interrupted: &dyn Fn() -> bool,
    told: &mut dyn FnMut(&CaseResult),
) -> Result<Verification, End> {
    let (server, home) = match target {
        Target::Running(address) => (address.to_string(), Home::Running(*address)),
        Target::Command(plan) => {
            let supervisor = Supervisor::start(exe).map_err(|error| {
                failed(FailureKind::Start, format!("cannot start the watchdog `{}`: {error}", exe.display()))
            })?;
            let ground = Box::new(Ground { supervisor, kept: Kept::default(), directory, interrupted });
            (plan.command.clone(), Home::Command { ground, plan })
        }
    };
    let mut verification = Verification { server, seed: order.seed, holds: None, not_started: None, cases: Vec::new() };
    for check in checks(order) {
        if interrupted() {
            return Err(End::Interrupted);
        }
        let begun = lab_clocks::now();
        let outcome = match run(&check, order, &home) {
            Ok(()) => CaseOutcome::Ok,
            Err(Trouble::Failed(miss)) => CaseOutcome::Failed(miss),
            Err(Trouble::NotChecked(reason)) => CaseOutcome::Skipped { reason },
            // A server that starts once but not again has failed the case.
            Err(Trouble::NotStarted(End::Failed(failure)))
                if failure.kind != FailureKind::Unrunnable && !verification.cases.is_empty() =>
            {
                CaseOutcome::Failed(Miss::from(format!("the server did not start again: {}", failure.message)))
            }
            Err(Trouble::NotStarted(end)) => return Err(end),
        };
        let elapsed_ns = lab_clocks::nanos(lab_clocks::now() - begun);
        let result = CaseResult { name: check.name, promise: check.promise, outcome, elapsed_ns };
        told(&result);
        match result.outcome {
            CaseOutcome::Ok => _ = verification.holds.get_or_insert(true),
            CaseOutcome::Failed(_) => verification.holds = Some(false),
            CaseOutcome::Skipped { .. } => {}
        }
        verification.cases.push(result);
    }
    Ok(verification)
}

fn checks(order: &Order) -> Vec<Check> {
    let data = order.suite.map(Suite::cases).unwrap_or_default().into_iter().chain(order.cases.iter().cloned());
    let seed = order.seed;
    let data = data.map(|case| {
        let (name, promise) = (case.name.clone(), case.promise.clone());
        code(&name, &promise, move |server| conversation::check(server, &case, seed))
    });
    let all = data.chain(order.suite.map(common_checks::checks).unwrap_or_default());
    let all = all.filter(|check| !(order.seen_by_clients && check.needs_process));
    all.filter(|check| order.names.is_empty() || order.names.contains(&check.name)).collect()
}

/// Names and promises of all cases that `order` could run, regardless of its `names`.
pub fn names(order: &Order) -> Vec<(String, String)> {
    let all = Order { names: Vec::new(), ..order.clone() };
    checks(&all).into_iter().map(|check| (check.name, check.promise)).collect()
}

/// Verifies each built server once if the plan requires it. Returns the results as [`Build`]s, fewer if interrupted.
pub(crate) fn builds(
    plan: &Plan,
    built: &[Build],
    options: &Options,
    interrupted: &dyn Fn() -> bool,
    begins: &mut dyn FnMut(usize),
) -> Vec<Build> {
    let mut done = crate::builds_shared_by_points::Builds::default();
    for (index, point) in plan.points.iter().enumerate() {
        let Some(wanted) = &point.subject.verify else { continue };
        let is_failed = |build: &Build| build.points.contains(&index) && build.outcome != BuildOutcome::Ready;
        if point.unrunnable.is_some() || built.iter().any(is_failed) {
            continue;
        }
        // The number of CPUs does not affect the contract.
        let subject = SubjectPlan { cpus: 0, cpus_wanted: None, ..point.subject.clone() };
        let make = || {
            begins(index);
            let (target, directory) = (Target::Command(Box::new(subject.process.clone())), &options.directory);
            let checked = order_of(wanted, point, plan.seed, directory)
                .and_then(|order| verify(&order, &target, &options.exe, directory, interrupted, &mut |_| {}));
            Some(match checked {
                Err(End::Failed(Failure { kind: FailureKind::Unrunnable, message: reason })) => {
                    BuildOutcome::Unrunnable { reason }
                }
                Err(End::Failed(failure)) => {
                    BuildOutcome::Unverified { case: "start".to_owned(), reason: failure.message }
                }
                Err(_) => return None,
                Ok(verification) => match verification.first_miss() {
                    None => BuildOutcome::Ready,
                    Some((case, miss)) => BuildOutcome::Unverified { case: case.to_owned(), reason: miss.to_string() },
                },
            })
        };
        if !done.add(subject.clone(), &format!("verify: {}", subject.process.command), index, make) {
            break;
        }
    }
    done.finish()
}

fn order_of(wanted: &VerifyPlan, point: &Point, seed: u64, directory: &Path) -> Result<Order, End> {
    let read = |file: &String| {
        let text =
            std::fs::read_to_string(directory.join(file)).map_err(|why| format!("cannot read `{file}`: {why}"))?;
        study::cases::parse(&text).map_err(|all| all.iter().map(|one| one.in_file(file)).collect::<Vec<_>>().join("; "))
    };
    let (suite, path) = (Suite::of_load(&point.load), point.load.path().to_owned());
    let cases = wanted.cases.as_ref().map(read).transpose();
    let cases = cases.map_err(|why| failed(FailureKind::Start, why))?.unwrap_or_default();
    Ok(Order { suite, cases, names: Vec::new(), path, seed, seen_by_clients: true })
}

fn run(check: &Check, order: &Order, home: &Home<'_>) -> Result<(), Trouble> {
    if check.needs_process && matches!(home, Home::Running(_)) {
        return Err(Trouble::NotChecked("the process of the server is not ours: use `--command`".to_owned()));
    }
    let mut server = Server::start(home, order.suite, &order.path)?;
    let mut checked = (check.run)(&mut server);
    if checked.is_ok() && !check.ends {
        checked = server.check_alive().map_err(|why| Trouble::from(format!("afterwards: {why}")));
    }
    if let Err(Trouble::Failed(miss)) = &mut checked {
        miss.message += &quoted(&server.last_words());
    }
    checked
}
