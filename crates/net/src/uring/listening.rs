//! Listeners of the io_uring driver. A multishot accept stays active while there are free slots.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::connection::Phase;
use super::ring::Completion;
use super::{Uring, tag};
use crate::driver::{Event, Listener};
use crate::socket::{self, Bound};

#[derive(Default)]
pub(super) struct Listening {
    /// The listening socket; `None` once stopped.
    pub(super) bound: Option<Bound>,
    pub(super) paused: bool,
    pub(super) armed: bool,
    pub(super) cancelling: bool,
}

impl Uring {
    pub(super) fn prepare_listeners(&mut self) -> io::Result<()> {
        let has_room = !self.connections.is_full() && self.waiting_for_slot.is_empty();
        for (index, listening) in self.listeners.iter_mut().enumerate() {
            let tag = tag::listener_tag(index as u32);
            let wanted = listening.bound.as_ref().filter(|_| !listening.paused && has_room);
            if let Some(bound) = wanted {
                if !listening.armed {
                    self.ring.accept(bound.socket.as_fd(), tag)?;
                    listening.armed = true;
                }
            } else if listening.armed && !listening.cancelling {
                self.ring.cancel(tag)?;
                listening.cancelling = true;
            }
        }
        Ok(())
    }

    pub(super) fn accepted(&mut self, index: u32, done: Completion) -> Option<Event> {
        let socket = done.accepted();
        let listening = &mut self.listeners[index as usize];
        if !done.has_more() {
            listening.armed = false;
            listening.cancelling = false;
        }
        listening.bound.as_ref()?; // Stopped.
        match (socket, done.error()) {
            (Some(socket), _) => return self.accept_or_queue(Listener(index), socket),
            (None, Some(error)) if socket::is_out_of_room(error) => {
                listening.paused = true;
                if self.connections.is_empty() {
                    self.out_of_room = Some(error); // There is no connection whose end could make room.
                }
            }
            _ => {} // Canceled, or the connection ended before it was accepted.
        }
        None
    }

    pub(super) fn accept_or_queue(&mut self, listener: Listener, socket: OwnedFd) -> Option<Event> {
        if self.connections.is_full() {
            self.waiting_for_slot.push_back((listener, socket));
            return None;
        }
        let conn = self.insert_connection(socket, Phase::Open).ok()?;
        Some(Event::Accepted(listener, conn))
    }
}
