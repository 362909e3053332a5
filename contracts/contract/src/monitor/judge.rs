//! Evaluates clauses and reports broken ones.

use config::place::line_and_column;

use super::entry::{Entry, Origin};
use super::event::{Call, Outcome, StepOutput, Ticket};
use super::keep_entry::Introduced;
use super::report::{Kind, Link, Report, ReportVerdict, Variable};
use super::store::{Key, Store};
use super::{Monitor, operation_name};
use crate::clause::Clause;
use crate::compile::is_secret_name;
use crate::eval::excerpt::{HIDDEN, excerpt};
use crate::eval::{self, Env, Stop, Verdict};
use crate::syntax::Direction;
use crate::tape::Value;

/// Maximum number of links in a chain of provenance.
const LINKS_MAX: usize = 32;

impl<S: Store> Monitor<S> {
    /// The index of the member that a call uses, and whether it is secret. `None` if it has no
    /// value.
    pub(super) fn invoked_index(&mut self, call: Call<'_>, stepped: &mut StepOutput) -> Option<(Option<String>, bool)> {
        let contract = self.contracts.of(call.operation.service).clone();
        let Some(clause) = &contract.op(call.operation).index else { return Some((None, false)) };
        let mut index = None;
        let env = Self::env(call, Value::Missing);
        let steps = self.settings.steps_max;
        let done = eval::index(&clause.code, clause.root, env, steps, &mut self.scratch, |text| {
            index = Some(text.to_owned());
        });
        match done {
            Ok(()) => Some((index, clause.secret)),
            Err(stop) => {
                self.undecided(Kind::Index, clause, stop, call, None, stepped);
                None
            }
        }
    }

    /// The endpoints that a message introduces, without duplicates.
    pub(super) fn introduced(
        &mut self,
        call: Call<'_>,
        outcome: Value<'_>,
        direction: Direction,
        ticket: &Ticket,
        stepped: &mut StepOutput,
    ) -> Vec<Introduced> {
        let contract = self.contracts.of(call.operation.service).clone();
        let mut all: Vec<Introduced> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for identify in contract.op(call.operation).identifies.iter().filter(|each| each.direction == direction) {
            let env = Self::env(call, outcome);
            let mut take = |endpoint: &str, index: Option<&str>| {
                if seen.insert((endpoint.to_owned(), identify.service, index.map(str::to_owned))) {
                    all.push(Introduced {
                        endpoint: endpoint.to_owned(),
                        service: identify.service,
                        index: index.map(str::to_owned),
                        secret: identify.clause.secret,
                    });
                }
            };
            let steps = self.settings.steps_max;
            if let Err(stop) = eval::identify(identify, env, steps, &mut self.scratch, &mut take) {
                self.undecided(Kind::Identifies, &identify.clause, stop, call, Some((outcome, ticket)), stepped);
            }
        }
        all
    }

    pub(super) fn ask_outcome(
        &mut self,
        call: Call<'_>,
        outcome: Outcome<'_>,
        ticket: &Ticket,
        now_s: u64,
        stepped: &mut StepOutput,
    ) {
        match outcome {
            Outcome::Result(result) => self.ask(Kind::Postcondition, call, result, ticket, now_s, stepped),
            Outcome::Error(error) => self.ask(Kind::Exception, call, error, ticket, now_s, stepped),
        }
    }

    /// Evaluates all clauses of one kind, whatever their verdicts.
    pub(super) fn ask(
        &mut self,
        kind: Kind,
        call: Call<'_>,
        outcome: Value<'_>,
        ticket: &Ticket,
        now_s: u64,
        stepped: &mut StepOutput,
    ) {
        let contract = self.contracts.of(call.operation.service).clone();
        let operation = contract.op(call.operation);
        let (typed, clauses) = match kind {
            Kind::Precondition => (&operation.promise.request, &operation.requires),
            Kind::Postcondition => (&operation.promise.reply, &operation.ensures),
            _ => (&None, &operation.on_error),
        };
        if let Some(typed) = typed
            && let Some((found, reason)) = typed.judge(call.args, outcome)
        {
            let report = self.report(kind, &typed.clause, call, Some((outcome, ticket)));
            let report = Report { reason: Some(reason), ..report };
            if found == ReportVerdict::Fails {
                self.contracts.tally(call.operation, &typed.clause).fails += 1;
                self.failed(report, ticket, now_s, stepped);
            } else {
                self.contracts.tally(call.operation, &typed.clause).unknown += 1;
                stepped.reports.push(Report { found, ..report });
            }
        }
        for clause in clauses {
            let env = Self::env(call, outcome);
            match eval::judge(&clause.code, clause.root, env, self.settings.steps_max, &mut self.scratch) {
                Verdict::Holds => {
                    self.contracts.tally(call.operation, clause).holds += 1;
                }
                Verdict::Fails => {
                    self.contracts.tally(call.operation, clause).fails += 1;
                    let mut report = self.report(kind, clause, call, Some((outcome, ticket)));
                    self.put_guilty_first(&mut report, clause, env);
                    self.failed(report, ticket, now_s, stepped);
                }
                Verdict::Unknown(stop) | Verdict::Error(stop) => {
                    self.undecided(kind, clause, stop, call, Some((outcome, ticket)), stepped);
                }
            }
        }
    }

    /// Blames the sender for a failed precondition, and all who vouch for the service otherwise.
    fn failed(&mut self, report: Report, ticket: &Ticket, now_s: u64, stepped: &mut StepOutput) {
        let blamed = match report.kind {
            Kind::Precondition => vec![ticket.sender.clone()],
            _ => self.shown_labels(&ticket.labels),
        };
        let provenance = ticket.entry.map_or(Vec::new(), |key| self.provenance(key, now_s));
        let report = Report { blamed, provenance, ..report };
        self.contracts.blame(&report);
        stepped.reports.push(report);
    }

    fn undecided(
        &mut self,
        kind: Kind,
        clause: &Clause,
        stop: Stop,
        call: Call<'_>,
        seen: Option<(Value<'_>, &Ticket)>,
        stepped: &mut StepOutput,
    ) {
        let found = match Verdict::undecided(stop) {
            Verdict::Unknown(_) => {
                self.contracts.tally(call.operation, clause).unknown += 1;
                ReportVerdict::Unknown
            }
            _ => {
                self.contracts.tally(call.operation, clause).errors += 1;
                ReportVerdict::Error
            }
        };
        let reason = Some(reason(clause, stop));
        let report = self.report(kind, clause, call, seen);
        stepped.reports.push(Report { found, reason, ..report });
    }

    /// Puts the values that broke the clause first in a report: parts of the message, then whole
    /// parameters.
    fn put_guilty_first(&mut self, report: &mut Report, clause: &Clause, env: Env<'_>) {
        let hide: fn(&str) -> bool = if self.settings.show_secrets { |_| false } else { is_secret_name };
        let (place, longest) = ((clause.text.as_str(), clause.start), self.settings.value_max_bytes);
        let (mut parts, mut whole) = (Vec::new(), Vec::new());
        let mut take = |name: String, value: Value<'_>| {
            let value = match value {
                _ if !name.contains(['.', '[']) => return whole.push(name),
                _ if hide(&name) => HIDDEN.to_owned(),
                value => excerpt(value, longest, hide),
            };
            parts.push(Variable { name, value });
        };
        eval::guilty(&clause.code, clause.root, place, env, self.settings.steps_max, &mut self.scratch, &mut take);
        report.variables.sort_by_key(|variable| !whole.contains(&variable.name));
        report.variables.splice(0..0, parts);
    }

    fn report(&self, kind: Kind, clause: &Clause, call: Call<'_>, seen: Option<(Value<'_>, &Ticket)>) -> Report {
        let contract = self.contracts.of(call.operation.service);
        let operation = contract.op(call.operation);
        let show_secrets = self.settings.show_secrets;
        let hide: fn(&str) -> bool = if show_secrets { |_| false } else { is_secret_name };
        let variable = |name: &str, value: Value<'_>| {
            let value =
                if hide(name) { HIDDEN.to_owned() } else { excerpt(value, self.settings.value_max_bytes, hide) };
            Variable { name: name.to_owned(), value }
        };
        let args = operation.params.iter().enumerate();
        let mut variables = args
            .map(|(at, name)| variable(name, call.args.get(at).copied().unwrap_or(Value::Missing)))
            .collect::<Vec<_>>();
        match (kind, seen) {
            (Kind::Postcondition | Kind::Identifies, Some((result, _))) if !matches!(result, Value::Missing) => {
                variables.push(variable("result", result));
            }
            (Kind::Exception, Some((error, _))) => variables.push(variable("error", error)),
            _ => {}
        }
        let ticket = seen.map(|(_, ticket)| ticket);
        let labels = ticket.map_or_else(|| self.shown_labels(&[0]), |ticket| self.shown_labels(&ticket.labels));
        let index = ticket.and_then(|ticket| {
            let key = ticket.entry.unwrap_or_default();
            ticket.index.as_ref().map(|index| self.shown_index(index, ticket.secret, &key))
        });
        Report {
            adapter: self.settings.label.clone(),
            kind,
            found: ReportVerdict::Fails,
            reason: None,
            clause: clause.id.clone(),
            code: clause.text.clone(),
            line: clause.line,
            column: clause.column,
            service: contract.service_name(call.operation.service).to_owned(),
            operation: operation_name(contract, call.operation),
            endpoint: call.endpoint.to_owned(),
            index,
            index_known: ticket.is_some_and(|ticket| ticket.entry.is_some()),
            vouched_for_by: labels,
            blamed: Vec::new(),
            variables,
            provenance: Vec::new(),
        }
    }

    /// An index as shown in reports. A secret one is distinguished by the start of its entry's key.
    fn shown_index(&self, index: &str, secret: bool, key: &Key) -> String {
        if !secret || self.settings.show_secrets {
            return index.to_owned();
        }
        format!("[redacted {:02x}{:02x}{:02x}{:02x}]", key[0], key[1], key[2], key[3])
    }

    /// The chain from an entry back to the parties that vouched for it.
    pub(super) fn provenance(&mut self, key: Key, now_s: u64) -> Vec<Link> {
        let mut links = Vec::new();
        let mut seen = std::collections::HashSet::new();
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
            let mut because = Vec::new();
            for origin in &entry.origins {
                because.push(match origin {
                    Origin::Configured => "from the configuration".to_owned(),
                    Origin::Request(label) => format!("invoked or introduced by a request from {}", self.name(*label)),
                    Origin::Carried(name) => format!("reported by adapter {}", self.name(*name)),
                    Origin::Reply(of) => {
                        open.push((*of, depth + 1));
                        "introduced by a reply, see the next line".to_owned()
                    }
                });
            }
            if entry.is_orphan {
                because.push(super::shown_entry::ORPHAN.to_owned());
            }
            if entry.more_origins {
                because.push("more origins than are stored".to_owned());
            }
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

/// Why a clause has no verdict: the expression and the problem.
fn reason(clause: &Clause, stop: Stop) -> String {
    // Spans refer to the file, and the clause's text starts at its own span.
    let within = stop.span.start.checked_sub(clause.start).map(|start| start as usize);
    let expression = within.and_then(|start| clause.text.get(start..start + stop.span.range().len()));
    match expression {
        Some(expression) => {
            let (line, column) = line_and_column(&clause.text, within.unwrap_or(0));
            let line = clause.line as usize + line - 1;
            let column = if line == clause.line as usize { clause.column as usize + column - 1 } else { column };
            format!("`{expression}` at {line}:{column}: {}", stop.why)
        }
        None => stop.why.to_string(),
    }
}
