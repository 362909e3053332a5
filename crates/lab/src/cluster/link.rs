//! A node as the lab sees it: what it is told, what it says, and whether it is still there.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use study::node::{Order, SILENCE_MAX, Said};

use crate::clock;
use crate::end::{End, saying};
use crate::lines::{Lines, Writer};
use crate::process::{Child, wait_readable};

/// The longest wait before we look whether to end.
const LOOK: Duration = Duration::from_millis(50);
/// Why a node is lost that closed its channel.
const ENDED: &str = "its connection ended";
/// How long the exit of what was started here is waited for, to be told.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Round trips of which the shortest tells the offset of a clock.
const PINGS: u32 = 100;

/// The channel to a node.
#[derive(Debug)]
pub(crate) struct Link {
    /// Its name in messages: `l2 (10.0.0.13)`.
    pub(crate) name: String,
    writer: Writer,
    lines: RefCell<Lines>,
    /// The same pipe as `lines`, to wait for.
    handle: OwnedFd,
    /// Said, but not yet asked for.
    said: RefCell<VecDeque<Said>>,
    heard: Cell<Instant>,
    /// What was started here for it: the node itself, or the client that reaches its machine.
    process: Option<RefCell<Child>>,
}

/// The offset of a node's clock from the lab's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offset {
    /// The node's clock minus the lab's, ns.
    pub(crate) ns: i64,
    /// Half of the round trip that told it, ns.
    pub(crate) error_ns: u64,
}

impl Offset {
    /// What the node's clock shows when the lab's shows `ns`.
    pub(crate) fn there(self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.ns)
    }

    /// The other way round.
    pub(crate) fn here(self, ns: u64) -> u64 {
        ns.saturating_add_signed(-self.ns)
    }

    /// By a ping at `asked_ns` that was answered when the node's clock showed `there_ns`, and heard of at `heard_ns`.
    fn of(asked_ns: u64, there_ns: u64, heard_ns: u64) -> Self {
        let round_trip_ns = heard_ns.saturating_sub(asked_ns);
        let middle = i128::from(asked_ns) + i128::from(round_trip_ns / 2);
        let ns = i64::try_from(i128::from(there_ns) - middle).unwrap_or(i64::MAX);
        Self { ns, error_ns: round_trip_ns.div_ceil(2) }
    }
}

impl Link {
    /// With the node behind these pipes; `process` is what was started here for it.
    pub(crate) fn new(
        name: String,
        input: impl Into<OwnedFd>,
        output: impl Into<OwnedFd>,
        process: Option<Child>,
    ) -> io::Result<Self> {
        let output = output.into();
        let handle = output.try_clone()?;
        Ok(Self {
            name,
            writer: Writer::new(input, SILENCE_MAX)?,
            lines: RefCell::new(Lines::of(output)),
            handle,
            said: RefCell::default(),
            heard: Cell::new(clock::now()),
            process: process.map(RefCell::new),
        })
    }

    /// What writes to the node, for whoever keeps it alive.
    pub(crate) fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// Tells it what to do.
    pub(crate) fn say(&self, order: &Order) -> Result<(), End> {
        self.writer.say(order).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => self.lost(ENDED),
            _ => self.lost(&format!("cannot be told anything: {error}")),
        })
    }

    /// Readable when it has said something.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Reads what is there, once; waits when nothing is there.
    fn read(&self) -> Result<(), End> {
        let said = self.lines.borrow_mut().said::<Said>().map_err(|text| self.lost(&text))?;
        let Some(said) = said else { return Err(self.lost(ENDED)) };
        self.heard.set(clock::now());
        for said in said {
            match said {
                Said::Alive {} => {}
                Said::Refused(text) => return Err(self.lost(&format!("it refused an order: {text}"))),
                said => self.said.borrow_mut().push_back(said),
            }
        }
        Ok(())
    }

    /// Takes what it has said until now, and sees whether it is still there.
    pub(crate) fn take(&self) -> Result<Vec<Said>, End> {
        while self.is_readable(Duration::ZERO) {
            self.read()?;
        }
        self.watch()?;
        Ok(self.said.borrow_mut().drain(..).collect())
    }

    /// Whether it is still there, as far as was heard.
    pub(crate) fn watch(&self) -> Result<(), End> {
        let silent = clock::now() - self.heard.get();
        if silent > SILENCE_MAX && !self.is_readable(Duration::ZERO) {
            return Err(self.lost(&format!("no word for {:.1} s", silent.as_secs_f64())));
        }
        Ok(())
    }

    /// For how long nothing has come from it.
    pub(crate) fn silent(&self) -> Duration {
        if self.is_readable(Duration::ZERO) { Duration::ZERO } else { clock::now() - self.heard.get() }
    }

    fn is_readable(&self, timeout: Duration) -> bool {
        wait_readable(&[self.handle()], timeout)[0]
    }

    /// Waits for the word that `pick` wants; gives up when asked to, and at `deadline`.
    pub(crate) fn wait<T>(
        &self,
        deadline: Option<Instant>,
        interrupted: &dyn Fn() -> bool,
        mut pick: impl FnMut(Said) -> Option<T>,
    ) -> Result<T, End> {
        loop {
            let mut said = self.take()?.into_iter();
            if let Some(wanted) = said.find_map(&mut pick) {
                // What comes behind it belongs to what comes next.
                self.said.borrow_mut().extend(said);
                return Ok(wanted);
            }
            if interrupted() {
                return Err(End::Interrupted);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(self.lost("it did not answer in time"));
            }
            self.is_readable(LOOK);
        }
    }

    /// The offset of its clock, by the shortest of many round trips.
    pub(crate) fn offset(&self, interrupted: &dyn Fn() -> bool) -> Result<Offset, End> {
        let mut best: Option<Offset> = None;
        for _ in 0..PINGS {
            let asked_ns = clock::monotonic_ns();
            self.say(&Order::Ping { at_ns: asked_ns })?;
            let there_ns = self.wait(None, interrupted, |said| match said {
                Said::Pong { at_ns, here_ns } if at_ns == asked_ns => Some(here_ns),
                _ => None,
            })?;
            let offset = Offset::of(asked_ns, there_ns, clock::monotonic_ns());
            best = best.filter(|best| best.error_ns <= offset.error_ns).or(Some(offset));
        }
        Ok(best.unwrap_or_default())
    }

    /// The end of the run: the node is gone, for this reason.
    pub(crate) fn lost(&self, why: &str) -> End {
        let process = self.process.as_ref().map(|process| {
            let mut process = process.borrow_mut();
            let exit = process.wait(LAST_WORDS).map(|exit| format!(" ({exit})"));
            exit.unwrap_or_default() + &saying(&process.last_words())
        });
        End::Lost(format!("lost {}: {why}{}", self.name, process.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node whose clock is `ahead`, asked when the lab's shows 1000, over a way of `there` and back of `back`: the true offset is never further
    /// off than the error says.
    #[test]
    fn an_offset_is_right_within_its_error() {
        for (ahead, there, back) in [(0, 10, 10), (1_000_000_000_000, 30, 10), (-900, 0, 7), (5, 2_000_000, 0)] {
            let answered = 1000_u64 + there;
            let offset = Offset::of(1000, answered.saturating_add_signed(ahead), answered + back);
            assert!(offset.ns.abs_diff(ahead) <= offset.error_ns, "{offset:?} for {ahead}");
            assert_eq!(offset.error_ns, (there + back).div_ceil(2));
            assert_eq!(offset.here(offset.there(123_456)), 123_456);
        }
    }
}
