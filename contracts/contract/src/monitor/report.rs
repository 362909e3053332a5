//! Reports of broken clauses: text in Whip's form, and a record for scripts.

use std::fmt;

use config::printable::line;
use serde::{Deserialize, Serialize};

/// The kind of clause that a report is about, or a conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A `requires` clause.
    Precondition,
    /// An `ensures` clause.
    Postcondition,
    /// An `on_error` clause.
    Exception,
    /// An `index` clause: the member that a call uses is unknown.
    Index,
    /// An `identifies` clause: it is unknown whether a message introduces an endpoint.
    Identifies,
    /// Several services are claimed for one endpoint, so its calls are not checked.
    #[default]
    Conflict,
}

/// The verdict on a clause that does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportVerdict {
    /// The clause is broken.
    Fails,
    /// The message lacks a value.
    #[default]
    Unknown,
    /// The clause attempts an impossible operation, or exceeds a limit.
    Error,
}

/// A value of the reported call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// A parameter, `result` or `error`, or a part of one, such as `result.users[3].id`.
    pub name: String,
    /// The value, truncated if long, or `[redacted]` if secret.
    pub value: String,
}

/// One link of the chain from an entry back to the parties that vouched for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Number of links from the explained entry to this one; 0 for the explained entry.
    pub depth: u16,
    /// The entry of this link, such as `Adder<2> at adder:8001`.
    pub entry: String,
    /// The labels that vouch for the entry.
    pub vouched_for_by: Vec<String>,
    /// How the entry was created.
    pub because: String,
}

/// A report of a clause that failed or is undecided, or of a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The label of the reporting adapter.
    pub adapter: String,
    /// The kind of clause that the report is about, or a conflict.
    pub kind: Kind,
    /// The verdict on the clause; `unknown` for a conflict.
    pub found: ReportVerdict,
    /// Why the clause is undecided, with the location in the contract, or why a type does not match; otherwise `None`.
    pub reason: Option<String>,
    /// The clause's stable name; empty for conflicts.
    pub clause: String,
    /// The clause as written in the contract.
    pub code: String,
    /// Line of the clause in the contract, from 1; 0 for conflicts.
    pub line: u32,
    /// Column of the clause in characters, from 1; 0 for conflicts.
    pub column: u32,
    /// Name of the called service.
    pub service: String,
    /// Name of the called operation.
    pub operation: String,
    /// The called endpoint.
    pub endpoint: String,
    /// The called member, or `None` if it is the default one or unknown.
    pub index: Option<String>,
    /// Whether the called member is known.
    pub index_known: bool,
    /// The labels that vouch for the called member at this endpoint.
    pub vouched_for_by: Vec<String>,
    /// Blamed labels: the sender for a precondition, all vouching labels for a postcondition. Empty if nothing failed.
    pub blamed: Vec<String>,
    /// The values of the call, starting with those that broke the clause.
    pub variables: Vec<Variable>,
    /// The entries that explain why the labels vouch for the called member.
    pub provenance: Vec<Link>,
}

/// Formats a report as Whip does, without colors. The values of the call and an empty line come last.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, code, service, .. } = self;
        let endpoint = line(&self.endpoint);
        let reason = line(self.reason.as_deref().unwrap_or_default());
        if self.kind == Kind::Conflict {
            return writeln!(f, "[Whip] Contract Conflict: {reason}\n\t Occurring at: {endpoint}\n");
        }
        let what = match self.kind {
            Kind::Precondition => format!("precondition for RPC {operation} ({code})"),
            Kind::Postcondition => format!("postcondition {code}"),
            Kind::Exception => format!("condition of an exception {code}"),
            Kind::Index => format!("index for RPC {operation} ({code})"),
            Kind::Identifies | Kind::Conflict => format!("identification for RPC {operation} ({code})"),
        };
        match self.found {
            ReportVerdict::Fails if reason.is_empty() => writeln!(f, "[Whip] Contract Failure: Failed {what}")?,
            ReportVerdict::Fails => writeln!(f, "[Whip] Contract Failure: Failed {what}: {reason}")?,
            ReportVerdict::Unknown => writeln!(f, "[Whip] Contract Unknown: Unknown {what}: {reason}")?,
            ReportVerdict::Error => writeln!(f, "[Whip] Contract Error: Broken {what}: {reason}")?,
        }
        if self.kind == Kind::Precondition && self.found == ReportVerdict::Fails {
            writeln!(f, "\t Blaming: {} (precondition failure)", labels(&self.blamed))?;
        }
        let index = match &self.index {
            Some(index) => format!("index {}", line(index)),
            None if self.index_known => "default index".to_owned(),
            None => "unknown index".to_owned(),
        };
        let vouched = labels(&self.vouched_for_by);
        writeln!(f, "\t Occurring at: service {service} with {index} at {endpoint} vouched for by {vouched}")?;
        writeln!(f, "\t Variables: ")?;
        for Variable { name, value } in &self.variables {
            writeln!(f, "\t   - {} = {}", line(name), line(value))?;
        }
        writeln!(f)
    }
}

impl Report {
    /// Explains the blame by its provenance, one line per link.
    pub fn explain(&self) -> String {
        let why = match (self.kind, self.found) {
            (Kind::Precondition, ReportVerdict::Fails) => {
                format!("{} sent the request, so it is responsible for the precondition.\n", labels(&self.blamed))
            }
            (_, ReportVerdict::Fails) => format!("{} vouched for the called service.\n", labels(&self.blamed)),
            _ => "No party is blamed, because it is unknown whether the clause holds.\n".to_owned(),
        };
        why + &chain(&self.provenance)
    }
}

/// Joins labels and escapes them, because other adapters choose them.
fn labels(labels: &[String]) -> String {
    line(&labels.join(", ")).into_owned()
}

/// Formats links as text, one per line and indented by depth.
pub fn chain(links: &[Link]) -> String {
    let shown = links.iter().map(|link| {
        let indent = "  ".repeat(usize::from(link.depth) + 1);
        let (entry, because) = (line(&link.entry), line(&link.because));
        format!("{indent}{entry}, vouched for by {}: {because}\n", labels(&link.vouched_for_by))
    });
    shown.collect()
}
