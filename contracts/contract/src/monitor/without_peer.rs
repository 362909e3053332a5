//! An adapter that was to have another one on the other side, and has not.

use super::event::{Call, StepOutput, Ticket};
use super::report::Kind;
use super::store::Store;
use super::{Monitor, Side};
use crate::tape::Value;

impl<S: Store> Monitor<S> {
    /// The adapter that [`super::Action::ForwardRequest`] names cannot be reached, so the request goes to the service itself: what that adapter
    /// would have asked of the request is asked here, and of the reply everything will be.
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
