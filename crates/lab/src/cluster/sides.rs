//! Server and generators of a trial on other machines: the same two sides, carried out by nodes.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use study::node::{Order, Said, Serve, Standing, Stopped};
use study::record::NodeClock;
use study::seam::{Announced, Heard, Span, Told};
use study::spec::LoadSpec;

use crate::clock;
use crate::cluster::link::{Link, Offset};
use crate::end::End;
use crate::load::{Engine, Known, broken};
use crate::subject::{Seen, Side};

pub(crate) struct Server<'a> {
    link: &'a Link,
    order: &'a Serve,
    interrupted: &'a dyn Fn() -> bool,
    offset: Offset,
    seen: Seen,
    /// The remains of a server that could not be started.
    stopped: Option<Stopped>,
}

impl<'a> Server<'a> {
    pub(super) fn new(link: &'a Link, order: &'a Serve, interrupted: &'a dyn Fn() -> bool) -> Self {
        Self { link, order, interrupted, offset: Offset::default(), seen: Seen::default(), stopped: None }
    }
}

impl Side for Server<'_> {
    fn start(&mut self) -> Result<Standing, End> {
        self.offset = self.link.offset(self.interrupted)?;
        self.link.say(&Order::Serve(Box::new(self.order.clone())))?;
        let started = self.link.wait(None, self.interrupted, |said| match said {
            Said::Standing(standing) => Some(Ok(standing)),
            Said::Failed(stopped) => Some(Err(stopped)),
            _ => None,
        })?;
        let mut stopped = match started {
            Ok(standing) => return Ok(standing),
            Err(stopped) => stopped,
        };
        let end = stopped.failure.take().map(End::Failed);
        self.stopped = Some(*stopped);
        Err(end.unwrap_or_else(|| self.link.lost("it could not start the server and does not say why")))
    }

    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.link.handle()]
    }

    fn prepare(&mut self) -> Option<Instant> {
        None
    }

    fn look(&mut self, _readable: &[bool]) -> Result<Seen, End> {
        for said in self.link.take()? {
            match said {
                Said::Taken { end: false } => self.seen.began = true,
                Said::Taken { end: true } => self.seen.ended = true,
                Said::Ended {} => self.seen.exited = true,
                _ => {}
            }
        }
        Ok(self.seen)
    }

    fn announce(&mut self, moments: Announced) -> Result<(), End> {
        let there = |ns| self.offset.there(ns);
        let moments = Announced { from_ns: there(moments.from_ns), until_ns: moments.until_ns.map(there) };
        self.link.say(&Order::Announced(moments))
    }

    fn measured(&mut self, span: Span) -> Result<(), End> {
        let span = Span { from_ns: self.offset.there(span.from_ns), until_ns: self.offset.there(span.until_ns) };
        self.link.say(&Order::Measured(span))
    }

    fn stop(&mut self, has_failed: bool) -> Result<Stopped, End> {
        if let Some(stopped) = self.stopped.take() {
            return Ok(stopped);
        }
        self.link.say(&Order::Stop { failed: has_failed })?;
        let pick = |said| if let Said::Stopped(stopped) = said { Some(*stopped) } else { None };
        self.link.wait(None, self.interrupted, pick)
    }
}

pub(crate) struct Generator<'a> {
    name: &'a str,
    link: &'a Link,
    interrupted: &'a dyn Fn() -> bool,
    cpus: Vec<u32>,
    offset: Offset,
    has_measured: bool,
    has_ended: bool,
}

impl<'a> Generator<'a> {
    pub(super) fn start(
        name: &'a str,
        link: &'a Link,
        spec: &LoadSpec,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Result<Self, End> {
        let offset = link.offset(interrupted)?;
        link.say(&Order::Load(Box::new(spec.clone())))?;
        Ok(Self { name, link, interrupted, cpus: spec.cpus.clone(), offset, has_measured: false, has_ended: false })
    }

    pub(super) fn error_ns(&self) -> u64 {
        self.offset.error_ns
    }

    /// Converts a message to the lab's clock.
    fn here(&self, told: Told) -> Told {
        let here = |ns| self.offset.here(ns);
        match told {
            Told::Announced(moments) => {
                Told::Announced(Announced { from_ns: here(moments.from_ns), until_ns: moments.until_ns.map(here) })
            }
            Told::Measured(span) => Told::Measured(Span { from_ns: here(span.from_ns), until_ns: here(span.until_ns) }),
            Told::Measurement(mut measurement) => {
                measurement.began_ns = here(measurement.began_ns);
                Told::Measurement(measurement)
            }
            Told::Error(text) => Told::Error(format!("{}: {text}", self.name)),
            Told::Unreachable(text) => Told::Unreachable(format!("{}: {text}", self.name)),
            told @ (Told::Progress(_) | Told::Connected(_)) => told,
        }
    }
}

impl Engine for Generator<'_> {
    fn handle(&self) -> BorrowedFd<'_> {
        self.link.handle()
    }

    fn hear(&mut self) -> Result<Vec<Told>, End> {
        let mut all = Vec::new();
        for said in self.link.take()? {
            match said {
                Said::Generator(told) => {
                    self.has_measured |= matches!(told, Told::Measurement(_));
                    all.push(self.here(told));
                }
                // A generator exits after its measurement; that is not an error.
                Said::Broken(text) if !self.has_measured => return Err(broken(format!("{}: {text}", self.name))),
                _ => {}
            }
        }
        Ok(all)
    }

    fn tell(&mut self, heard: Heard) -> Result<(), End> {
        let heard = match heard {
            Heard::Go { at_ns } => Heard::Go { at_ns: self.offset.there(at_ns) },
            Heard::Read {} => heard,
        };
        self.link.say(&Order::Heard(heard))
    }

    fn watch(&self) -> Result<(), End> {
        self.link.watch()
    }

    fn end(&mut self, patience: Duration) -> Result<Option<Known>, End> {
        self.has_ended = true;
        self.link.say(&Order::Unload { patience_ns: clock::nanos(patience) })?;
        let pick = |said| if let Said::Unloaded { network } = said { Some(network) } else { None };
        let network = self.link.wait(None, self.interrupted, pick)?;
        let after = self.link.offset(self.interrupted)?;
        let clock = NodeClock {
            offset_ns: self.offset.ns,
            error_ns: self.offset.error_ns,
            after_offset_ns: Some(after.ns),
            after_error_ns: Some(after.error_ns),
        };
        Ok(Some(Known { node: self.name.to_owned(), cpus: self.cpus.clone(), network, clock }))
    }
}

impl Drop for Generator<'_> {
    /// Unloads a generator if another one could not be started.
    fn drop(&mut self) {
        if !self.has_ended {
            let _ = self.link.say(&Order::Unload { patience_ns: 0 });
        }
    }
}
