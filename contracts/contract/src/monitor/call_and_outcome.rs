//! Inputs and outputs of the monitor: a call, its outcome, the ticket that links them, and the output of a step.

use crate::clause::ServiceId;
use crate::contract::OperationId;
use crate::message_values::Value;
use crate::metadata::{Identified, RequestMetadata};

use super::entry_store::Key;
use super::report::{Kind, Report};

/// A call of an operation at an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The called endpoint.
    pub endpoint: &'a str,
    /// The called operation, of the service that [`super::Monitor::standing`] returned.
    pub operation: OperationId,
    /// The arguments, in the order of [`crate::Contract::params`].
    pub args: &'a [Value<'a>],
}

/// The outcome of a call: a result, or an exception or fault.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The result of the call, or its exception or fault if `is_error`.
    pub value: Value<'a>,
    /// Whether `value` is a declared exception or a fault, to which `on_error` applies.
    pub is_error: bool,
}

impl Outcome<'_> {
    pub(super) fn kind(self) -> Kind {
        if self.is_error { Kind::Exception } else { Kind::Postcondition }
    }
}

/// State of a call until its reply, called the request entry in Whip's paper. A ticket may be dropped at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// The invoked entry, or `None` if its index has no value or there is no room for its names.
    pub(crate) entry: Option<Key>,
    pub(crate) index: Option<String>,
    pub(crate) secret: bool,
    /// The labels that vouched for the entry at the time of the request.
    pub(crate) labels: Vec<u32>,
    /// Whether the vouching labels were forgotten or the index is unknown.
    pub(crate) is_orphan: bool,
    /// Whether the other side of the call has an adapter. If not, this side checks all clauses.
    pub enhanced: bool,
    pub(crate) bypassed: bool,
    /// The number of the label or address of the other side's adapter; `None` if unknown.
    pub(crate) other: Option<u32>,
    /// Label of the request's sender, or `unknown`. Both ends pass it as [`crate::metadata::CallContext::sender`].
    pub sender: String,
}

impl Ticket {
    pub(super) fn unvouched(sender: String) -> Self {
        Self { labels: vec![0], is_orphan: true, sender, ..Self::default() }
    }
}

/// The results of processing one message.
#[derive(Clone, Debug, Default)]
pub struct StepOutput {
    /// Endpoints to intercept from now on, and their services.
    pub intercepts: Vec<(String, ServiceId)>,
    /// Reports of failed and undecided clauses, and of conflicts.
    pub reports: Vec<Report>,
    /// State to pass with the reply. `None` after a reply.
    pub ticket: Option<Ticket>,
    /// Metadata to send with the request, if it goes to the adapter at [`super::Monitor::peer`].
    pub request: Option<RequestMetadata>,
    /// Metadata to send with the reply, if the calling adapter sent some with its request.
    pub reply: Option<Vec<Identified>>,
}
