//! The lab's channel to a node: orders, replies, pings, and the offset between their clocks.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use study::node_messages::{BEAT, Order, SILENCE_MAX, Said};

use crate::json_lines::{Channel, Lines, Writer, parse};
use crate::lab_clocks;
use crate::process_start_and_stop::{Child, wait_readable};
use crate::trial_end_reason::{End, saying};

const LOOK: Duration = Duration::from_millis(50);
const ENDED: &str = "its connection ended";
/// Time to wait for the exit status of a lost node's process.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Number of round trips per estimate of the clock offset. The shortest round trip gives the estimate.
const PINGS: u32 = 100;

pub(crate) struct Link {
    pub(crate) name: String,
    writer: Writer,
    lines: RefCell<Lines>,
    handle: OwnedFd,
    said: RefCell<VecDeque<Said>>,
    /// Local process of the node: the node itself or the ssh client; `None` if it joined over the network.
    process: Option<RefCell<Child>>,
    /// Returns whether to abandon waiting for the node.
    interrupted: fn() -> bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Clock of the node minus clock of the lab, ns.
    pub(crate) ns: i64,
    /// Maximum error of the offset: half of the round trip, ns.
    pub(crate) error_ns: u64,
}

impl Offset {
    pub(crate) fn there(self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.ns)
    }

    pub(crate) fn here(self, ns: u64) -> u64 {
        ns.saturating_add_signed(-self.ns)
    }

    /// Computes the offset: the lab sent a ping at `asked_ns` and received the node's time, `there_ns`, at `heard_ns`.
    fn of(asked_ns: u64, there_ns: u64, heard_ns: u64) -> Self {
        let round_trip_ns = heard_ns.saturating_sub(asked_ns);
        let middle = i128::from(asked_ns) + i128::from(round_trip_ns / 2);
        let ns = i64::try_from(i128::from(there_ns) - middle).unwrap_or(i64::MAX);
        Self { ns, error_ns: round_trip_ns.div_ceil(2) }
    }
}

impl Link {
    pub(crate) fn new(
        name: String,
        channel: Channel,
        process: Option<Child>,
        interrupted: fn() -> bool,
    ) -> io::Result<Self> {
        let Channel { input, output: writer } = channel;
        writer.start_beats(Order::Alive {}, || ())?;
        let (handle, lines) = (input.handle().try_clone_to_owned()?, RefCell::new(input));
        let (said, process) = (RefCell::default(), process.map(RefCell::new));
        Ok(Self { name, writer, lines, handle, said, process, interrupted })
    }

    pub(crate) fn say(&self, order: &Order) -> Result<(), End> {
        self.writer.say(order).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => self.lost(ENDED),
            _ => self.lost(&format!("cannot send a message to it: {error}")),
        })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    pub(crate) fn take(&self) -> Result<Vec<Said>, End> {
        while self.is_readable(Duration::ZERO) {
            let lines = self.lines.borrow_mut().read().map_err(|text| self.lost(&text))?;
            let Some(lines) = lines else { return Err(self.lost(ENDED)) };
            for line in lines {
                match parse(&line).map_err(|text| self.lost(&text))? {
                    Said::Alive {} => {}
                    Said::Refused(text) => return Err(self.lost(&format!("it refused an order: {text}"))),
                    said => self.said.borrow_mut().push_back(said),
                }
            }
        }
        self.watch()?;
        Ok(self.said.borrow_mut().drain(..).collect())
    }

    pub(crate) fn watch(&self) -> Result<(), End> {
        let silent = self.silent();
        if silent > SILENCE_MAX {
            return Err(self.lost(&format!("no word for {:.1} s", silent.as_secs_f64())));
        }
        Ok(())
    }

    pub(crate) fn silent(&self) -> Duration {
        let silent = lab_clocks::now() - self.lines.borrow().heard;
        if silent > BEAT && self.is_readable(Duration::ZERO) { Duration::ZERO } else { silent }
    }

    fn is_readable(&self, timeout: Duration) -> bool {
        wait_readable(&[self.handle()], timeout)[0]
    }

    pub(crate) fn ask<T>(&self, order: &Order, pick: impl FnMut(Said) -> Option<T>) -> Result<T, End> {
        self.say(order)?;
        self.wait(None, pick)
    }

    pub(crate) fn wait<T>(&self, deadline: Option<Instant>, mut pick: impl FnMut(Said) -> Option<T>) -> Result<T, End> {
        loop {
            let mut said = self.take()?.into_iter();
            if let Some(wanted) = said.find_map(&mut pick) {
                self.said.borrow_mut().extend(said);
                return Ok(wanted);
            }
            if (self.interrupted)() {
                return Err(End::Interrupted);
            }
            if deadline.is_some_and(|deadline| lab_clocks::now() >= deadline) {
                return Err(self.lost("it did not respond in time"));
            }
            self.is_readable(LOOK);
        }
    }

    pub(crate) fn offset(&self) -> Result<Offset, End> {
        let mut best: Option<Offset> = None;
        for _ in 0..PINGS {
            let asked_ns = lab_clocks::monotonic_ns();
            let there_ns = self.ask(&Order::Ping { at_ns: asked_ns }, |said| match said {
                Said::Pong { at_ns, here_ns } if at_ns == asked_ns => Some(here_ns),
                _ => None,
            })?;
            let offset = Offset::of(asked_ns, there_ns, lab_clocks::monotonic_ns());
            best = best.filter(|best| best.error_ns <= offset.error_ns).or(Some(offset));
        }
        Ok(best.unwrap_or_default())
    }

    pub(crate) fn lost(&self, why: &str) -> End {
        let process = self.process.as_ref().map(|process| {
            let mut process = process.borrow_mut();
            let exit = process.wait(LAST_WORDS).map(|exit| format!(" ({exit})"));
            exit.unwrap_or_default() + &saying(&process.last_words())
        });
        End::Lost(format!("lost {}: {why}{}", self.name, process.unwrap_or_default()))
    }
}

/// Orders the node to end. If the order cannot be sent, the node ends when its channel closes.
impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.say(&Order::Bye {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pings a node whose clock is `ahead` of the lab's, over paths that take `there` and `back`, all in ns.
    #[test]
    fn offset_is_correct_within_its_error() {
        for (ahead, there, back) in [(0, 10, 10), (1_000_000_000_000, 30, 10), (-900, 0, 7), (5, 2_000_000, 0)] {
            let answered = 1000_u64 + there;
            let offset = Offset::of(1000, answered.saturating_add_signed(ahead), answered + back);
            assert!(offset.ns.abs_diff(ahead) <= offset.error_ns, "{offset:?} for {ahead}");
            assert_eq!(offset.error_ns, (there + back).div_ceil(2));
            assert_eq!(offset.here(offset.there(123_456)), 123_456);
        }
    }
}
