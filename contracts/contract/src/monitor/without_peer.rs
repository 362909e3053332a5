//! Calls whose other adapter is unreachable.

use super::event::{Call, StepOutput, Ticket};
use super::report::Kind;
use super::store::Store;
use super::{Monitor, Side};
use crate::tape::Value;

impl<S: Store> Monitor<S> {
    /// Handles a call whose adapter, named by [`super::Action::ForwardRequest`], is unreachable, so
    /// that the request goes to the service itself. Checks that adapter's clauses of the request
    /// here; the reply will be checked against all clauses.
    pub fn go_alone(&mut self, call: Call<'_>, ticket: &mut Ticket, now_s: u64) -> StepOutput {
        let mut stepped = StepOutput::default();
        let is_known = self.contracts.knows(call.operation.service);
        if !std::mem::replace(&mut ticket.enhanced, false) || ticket.bypassed || !is_known {
            return stepped;
        }
        ticket.other = None;
        if self.settings.placement.requires == Side::Receiver {
            let ticket = ticket.clone();
            self.ask(Kind::Precondition, call, Value::Missing, &ticket, now_s, &mut stepped);
        }
        stepped
    }
}
