//! What comes to a monitor and what it asks for.

use crate::clause::ServiceId;
use crate::contract::OperationId;
use crate::metadata::{ReplyMetadata, RequestMetadata};
use crate::tape::Value;

use super::report::Report;
use super::store::Key;

/// A call, as it is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The endpoint that the request goes to.
    pub endpoint: &'a str,
    /// The operation, of the service that [`super::Monitor::standing`] gave.
    pub operation: OperationId,
    /// Its arguments, in the order of [`crate::Contract::params`].
    pub args: &'a [Value<'a>],
}

/// What came back.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// A result.
    Result(Value<'a>),
    /// A declared exception or a fault, which `on_error` is asked of.
    Error(Value<'a>),
}

/// What an adapter saw.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The own party sends a request.
    RequestSent(Call<'a>),
    /// A request for the own party came; the metadata is `None` where no adapter sent it.
    RequestReceived(Call<'a>, Option<&'a RequestMetadata>),
    /// The own party replies.
    ReplySent(Call<'a>, &'a Ticket, Outcome<'a>),
    /// A reply for the own party came; the metadata is `None` where no adapter sent it.
    ReplyReceived(Call<'a>, &'a Ticket, Outcome<'a>, Option<&'a ReplyMetadata>),
}

/// What a monitor has to keep of a call until its reply: the paper's request entry. Whoever has it may drop it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The entry that is invoked; `None`: its index could not be said.
    pub(crate) entry: Option<Key>,
    pub(crate) index: Option<String>,
    pub(crate) secret: bool,
    /// Who vouched for the entry when the request went.
    pub(crate) labels: Vec<u32>,
    /// Whether the vouching labels were forgotten, or the index is not known.
    pub(crate) is_orphan: bool,
    /// Whether the other side of the call has an adapter.
    pub(crate) enhanced: bool,
    /// Whether the calls of this endpoint go unchecked.
    pub(crate) bypassed: bool,
    /// The other side's adapter: its label or address.
    pub(crate) other: Option<u32>,
    /// The sender of the request.
    pub(crate) sender: String,
}

impl Ticket {
    /// The label of the adapter that sent the request, `unknown` where there is none: what
    /// [`crate::metadata::CallContext::sender`] is at both ends.
    pub fn sender(&self) -> &str {
        &self.sender
    }

    /// The other side's adapter will not see the reply as one: what it would have asked of it is asked here.
    pub fn alone(self) -> Self {
        Self { enhanced: false, ..self }
    }

    /// Whether the other side of the call has an adapter.
    pub fn enhanced(&self) -> bool {
        self.enhanced
    }
}

/// What is to be done about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends it on as it came.
    Forward,
    /// Sends it on to the adapter at this address, the metadata beside it.
    ForwardRequest {
        /// The adapter's address.
        peer: String,
        /// What goes beside the request.
        metadata: RequestMetadata,
    },
    /// Sends it back to the adapter that asked, the metadata beside it.
    ForwardReply {
        /// What goes beside the reply.
        metadata: ReplyMetadata,
    },
    /// From now on traffic to this endpoint is to be seen.
    Intercept {
        /// The endpoint.
        endpoint: String,
        /// Its service.
        service: ServiceId,
        /// The address of its adapter, where one is known.
        peer: Option<String>,
    },
}

/// What one event led to.
#[derive(Clone, Debug, Default)]
pub struct StepOutput {
    /// What to do, in this order.
    pub actions: Vec<Action>,
    /// What to tell.
    pub reports: Vec<Report>,
    /// What the reply's event needs. Requests alone have one.
    pub ticket: Option<Ticket>,
}
