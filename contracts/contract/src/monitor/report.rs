//! What is said when a contract is not kept: as text in Whip's form, and as a record for scripts.

use std::fmt::{self, Write as _};

use config::printable::line;
use serde::{Deserialize, Serialize};

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A clause `requires`.
    Precondition,
    /// A clause `ensures`.
    Postcondition,
    /// A clause `on_error`.
    Exception,
    /// A clause `index`: which member a call uses could not be said.
    Index,
    /// A clause `identifies`: whether a message introduces an endpoint could not be said.
    Identifies,
    /// Two services are promised of one endpoint, so its calls are not checked.
    Conflict,
}

/// What a clause came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportVerdict {
    /// It is not kept.
    Fails,
    /// The message lacks something, so it cannot be said.
    Unknown,
    /// The clause asks for what is not possible, or for too much.
    Error,
}

/// A value of the call that is reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// A parameter, `result` or `error`, or a part of one: `result.users[3].id`.
    pub name: String,
    /// Its value, cut where it is long; `[redacted]` where it is not to be shown.
    pub value: String,
}

/// One link of the chain from an entry back to those who vouched for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// How far from the entry that is explained: 0 is itself.
    pub depth: u16,
    /// The entry: `Adder<2> at adder:8001`.
    pub entry: String,
    /// Who vouches for it.
    pub vouched_for_by: Vec<String>,
    /// How it came to be.
    pub because: String,
}

/// A clause that is not kept, or of which that cannot be said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The label of the adapter that reports.
    pub adapter: String,
    /// What it is about.
    pub kind: Kind,
    /// What the clause came to.
    pub found: ReportVerdict,
    /// Why nothing can be said, with the place in the contract; of a type that is not kept, where and how. `None`: the clause fails.
    pub reason: Option<String>,
    /// The clause's stable name; empty for conflicts.
    pub clause: String,
    /// The clause as it stands in the contract.
    pub code: String,
    /// Its line in the contract, from 1; 0 for conflicts.
    pub line: u32,
    /// Its column, from 1.
    pub column: u32,
    /// The service.
    pub service: String,
    /// The operation.
    pub operation: String,
    /// The endpoint that was called.
    pub endpoint: String,
    /// The member of the service that was called; `None`: the default one, or it is not known.
    pub index: Option<String>,
    /// Whether it is known which member was called.
    pub index_known: bool,
    /// Who vouches that the endpoint is that member.
    pub vouched_for_by: Vec<String>,
    /// Who is to blame: of a precondition the sender, of a postcondition all who vouch. Empty where nothing failed.
    pub blamed: Vec<String>,
    /// The values of the call, those that broke the clause first.
    pub variables: Vec<Variable>,
    /// How those who vouch came to do so.
    pub provenance: Vec<Link>,
}

/// In Whip's form, without colours: three or four lines, then the values, then an empty line.
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
    /// Why the blame falls where it does: the provenance, one line for each link.
    pub fn explain(&self) -> String {
        let mut out = match (self.kind, self.found) {
            (Kind::Precondition, ReportVerdict::Fails) => {
                format!("{} sent the request, so it is responsible for the precondition.\n", labels(&self.blamed))
            }
            (_, ReportVerdict::Fails) => format!("{} vouched for the service that was called.\n", labels(&self.blamed)),
            _ => "No party is blamed, because it is unknown whether the clause holds.\n".to_owned(),
        };
        out += &chain(&self.provenance);
        out
    }
}

/// Labels in a row. Other adapters choose them.
fn labels(labels: &[String]) -> String {
    line(&labels.join(", ")).into_owned()
}

/// Links as text, the deeper the further to the right.
pub fn chain(links: &[Link]) -> String {
    let mut out = String::new();
    for link in links {
        let indent = "  ".repeat(usize::from(link.depth) + 1);
        let (entry, because) = (line(&link.entry), line(&link.because));
        writeln!(out, "{indent}{entry}, vouched for by {}: {because}", labels(&link.vouched_for_by))
            .expect("memory takes it");
    }
    out
}
