//! Evaluates the clauses of a call and assigns blame.

use std::collections::HashSet;

use config::place::line_and_column;

use super::entry_store::{Key, Store};
use super::introduced_entries::Member;
use super::report::{Kind, Link, Report, ReportVerdict, Variable};
use super::service_entry::{Entry, ORPHAN, Origin, redacted};
use super::{Monitor, Step};
use crate::clause::{Clause, ServiceId};
use crate::compile::is_secret_name;
use crate::eval::value_text::{HIDDEN, excerpt};
use crate::eval::{self, Env, Stop};
use crate::message_values::Value;
use crate::syntax::Direction;

const LINKS_MAX: usize = 32;

const VALUE_MAX_BYTES: usize = 200;

impl<S: Store> Monitor<S> {
    /// Returns the index that a call uses, if any, and whether it is secret. `None` if the `index` clause is undecided.
    pub(super) fn invoked_index(&mut self, step: &mut Step<'_>) -> Option<(Option<String>, bool)> {
        let operation = step.call.operation;
        let contract = self.contracts.of(operation.service).clone();
        let Some(clause) = contract.op(operation).clauses(Kind::Index).next() else { return Some((None, false)) };
        let index = self.scratch.index(clause, self.env(step));
        let index = index.map_err(|stop| self.undecided(clause, stop, step)).ok()?;
        Some((Some(index), clause.secret))
    }

    pub(super) fn introduced(&mut self, direction: Direction, step: &mut Step<'_>) -> Vec<Member<'static>> {
        let operation = step.call.operation;
        let contract = self.contracts.of(operation.service).clone();
        let mut all = Vec::new();
        let mut seen = HashSet::new();
        for identify in contract.op(operation).identifies(direction) {
            let service = ServiceId { generation: contract.generation, at: identify.service };
            let mut take = |endpoint: &str, index: Option<&str>| {
                let (endpoint, index) = (endpoint.to_owned(), index.map(str::to_owned));
                if seen.insert((endpoint.clone(), service, index.clone())) {
                    all.push(Member { endpoint: endpoint.into(), service, index, secret: identify.clause.secret });
                }
            };
            if let Err(stop) = self.scratch.identify(identify, self.env(step), &mut take) {
                self.undecided(&identify.clause, stop, step);
            }
        }
        all
    }

    pub(super) fn ask(&mut self, kind: Kind, step: &mut Step<'_>) {
        let call = step.call;
        let contract = self.contracts.of(call.operation.service).clone();
        let operation = contract.op(call.operation);
        if let Some(typed) = operation.typed.iter().find(|typed| typed.clause.kind == kind)
            && let Some((found, reason)) = typed.judge(call.args, step.outcome)
        {
            let report = Report { found, reason: Some(reason), ..self.report(&typed.clause, step) };
            self.contracts.count(call.operation, &typed.clause, Some(found));
            if found == ReportVerdict::Fails {
                self.failed(report, step);
            } else {
                step.output.reports.push(report);
            }
        }
        for clause in operation.clauses(kind) {
            let env = self.env(step);
            match clause.judge(env, &mut self.scratch) {
                Ok(true) => self.contracts.count(call.operation, clause, None),
                Ok(false) => {
                    self.contracts.count(call.operation, clause, Some(ReportVerdict::Fails));
                    let mut report = self.report(clause, step);
                    self.put_guilty_first(&mut report, clause, env);
                    self.failed(report, step);
                }
                Err(stop) => self.undecided(clause, stop, step),
            }
        }
    }

    /// Blames the sender for a failed precondition; for any other failure, all labels that vouch for the service.
    fn failed(&mut self, report: Report, step: &mut Step<'_>) {
        let blamed = match report.kind {
            Kind::Precondition => vec![step.ticket.sender.clone()],
            _ => self.shown_labels(&step.ticket.labels),
        };
        let provenance = step.ticket.entry.map_or(Vec::new(), |key| self.provenance(key, step.now_s));
        let report = Report { blamed, provenance, ..report };
        self.contracts.blame(&report);
        step.output.reports.push(report);
    }

    fn undecided(&mut self, clause: &Clause, stop: Stop, step: &mut Step<'_>) {
        let found = if stop.why.is_unknown() { ReportVerdict::Unknown } else { ReportVerdict::Error };
        self.contracts.count(step.call.operation, clause, Some(found));
        let reason = Some(reason(clause, stop));
        step.output.reports.push(Report { found, reason, ..self.report(clause, step) });
    }

    /// A value for a report, redacted if its name sounds secret.
    fn variable(&self, name: &str, value: Value<'_>) -> Variable {
        let hide: fn(&str) -> bool = if self.settings.show_secrets { |_| false } else { is_secret_name };
        let value = if hide(name) { HIDDEN.to_owned() } else { excerpt(value, VALUE_MAX_BYTES, hide) };
        Variable { name: name.to_owned(), value }
    }

    /// Moves the values that broke the clause to the front: parts of the message, then whole parameters.
    fn put_guilty_first(&mut self, report: &mut Report, clause: &Clause, env: Env<'_>) {
        let (mut parts, mut whole) = (Vec::new(), Vec::new());
        let mut scratch = std::mem::take(&mut self.scratch);
        eval::guilty(clause, env, &mut scratch, &mut |name, value| {
            if name.contains(['.', '[']) {
                parts.push(self.variable(&name, value));
            } else {
                whole.push(name);
            }
        });
        self.scratch = scratch;
        report.variables.sort_by_key(|variable| !whole.contains(&variable.name));
        report.variables.splice(0..0, parts);
    }

    fn report(&self, clause: &Clause, step: &Step<'_>) -> Report {
        let Step { call, outcome, ticket, .. } = step;
        let contract = self.contracts.of(call.operation.service);
        let operation = contract.op(call.operation);
        let args = operation.params.iter().enumerate();
        let mut variables = args
            .map(|(at, name)| self.variable(name, call.args.get(at).copied().unwrap_or(Value::Missing)))
            .collect::<Vec<_>>();
        match (clause.kind, outcome) {
            (Kind::Exception, error) => variables.push(self.variable("error", *error)),
            (_, Value::Missing) => {}
            (_, result) => variables.push(self.variable("result", *result)),
        }
        let key = ticket.entry.unwrap_or_default();
        let index = ticket.index.as_ref().map(|index| self.shown_index(index, ticket.secret, &key));
        Report {
            adapter: self.settings.label.clone(),
            kind: clause.kind,
            found: ReportVerdict::Fails,
            clause: clause.id.clone(),
            code: clause.text.clone(),
            line: clause.line,
            column: clause.column,
            service: contract.service_name(call.operation.service).to_owned(),
            operation: operation.name.clone(),
            endpoint: call.endpoint.to_owned(),
            index,
            index_known: ticket.entry.is_some(),
            vouched_for_by: self.shown_labels(&ticket.labels),
            variables,
            ..Report::default()
        }
    }

    fn shown_index(&self, index: &str, secret: bool, key: &Key) -> String {
        if secret && !self.settings.show_secrets { redacted(key) } else { index.to_owned() }
    }

    /// The chain from an entry back to the parties that vouched for it.
    pub(super) fn provenance(&mut self, key: Key, now_s: u64) -> Vec<Link> {
        let mut links = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![(key, 0)];
        while let Some((key, depth)) = open.pop() {
            if links.len() == LINKS_MAX || !seen.insert(key) {
                continue;
            }
            let Some(entry) = self.store.get(&key, now_s).and_then(|bytes| Entry::decode(&bytes)) else {
                let because = "no longer in the store".to_owned();
                links.push(Link { depth, entry: "an entry".to_owned(), vouched_for_by: Vec::new(), because });
                continue;
            };
            let described = entry.origins.iter().map(|origin| match origin {
                Origin::Reply(of) => {
                    open.push((*of, depth + 1));
                    format!("{}, see the next line", origin.describe(|_| ""))
                }
                other => other.describe(|name| self.name(name)),
            });
            let orphan = entry.is_orphan.then(|| ORPHAN.to_owned());
            let more = entry.more_origins.then(|| "more origins than are stored".to_owned());
            let because = described.chain(orphan).chain(more).collect::<Vec<_>>();
            let index = entry.index.as_ref().map(|index| self.shown_index(index, entry.secret, &key));
            let index = index.map_or(String::new(), |index| format!("<{index}>"));
            links.push(Link {
                depth,
                entry: format!("{}{index} at {}", self.name(entry.service), self.name(entry.endpoint)),
                vouched_for_by: self.shown_labels(&entry.labels),
                because: because.join("; "),
            });
        }
        links
    }
}

fn reason(clause: &Clause, stop: Stop) -> String {
    let Some(expression) = clause.written(stop.span) else { return stop.why.to_string() };
    // Spans count from the start of the contract, whereas `text` starts at `clause.start`.
    let (line, column) = line_and_column(&clause.text, (stop.span.start - clause.start) as usize);
    let column = if line == 1 { clause.column as usize + column - 1 } else { column };
    format!("`{expression}` at {}:{column}: {}", clause.line as usize + line - 1, stop.why)
}
