//! The server's side and the generator of a trial on other machines.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use study::generator_messages::{Announced, Heard, Span, Told};
use study::node_messages::{Order, Said, Serve, Standing, Stopped};
use study::record::NodeClock;
use study::spec::LoadSpec;

use crate::cluster::Member;
use crate::cluster::node_channel::{Link, Offset};
use crate::load_side::{Engine, RemoteFacts, broken};
use crate::server_side::Side;
use crate::trial_end_reason::End;

pub(crate) struct RemoteServer<'a> {
    link: &'a Link,
    offset: Offset,
    pub(crate) standing: Standing,
}

impl<'a> RemoteServer<'a> {
    pub(crate) fn start(link: &'a Link, order: &Serve, known: &mut Stopped) -> Result<Self, End> {
        let offset = link.offset()?;
        let started = link.ask(&Order::Serve(Box::new(order.clone())), |said| match said {
            Said::Standing(standing) => Some(Ok(standing)),
            Said::Failed(stopped) => Some(Err(stopped)),
            _ => None,
        })?;
        let standing = started.map_err(|stopped| {
            *known = *stopped;
            let silent = || link.lost("it could not start the server and does not say why");
            known.failure.take().map_or_else(silent, End::Failed)
        })?;
        Ok(Self { link, offset, standing })
    }
}

impl Side for RemoteServer<'_> {
    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.link.handle()]
    }

    fn prepare(&mut self) -> Option<Instant> {
        None
    }

    fn look(&mut self, _readable: &[bool]) -> Result<Vec<Said>, End> {
        self.link.take()
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

    fn stop(self: Box<Self>, has_failed: bool, _known: Stopped) -> Result<Stopped, End> {
        let pick = |said| if let Said::Stopped(stopped) = said { Some(*stopped) } else { None };
        self.link.ask(&Order::Stop { failed: has_failed }, pick)
    }
}

pub(crate) struct RemoteGenerator<'a> {
    member: &'a Member,
    pub(super) offset: Offset,
    has_ended: bool,
}

impl<'a> RemoteGenerator<'a> {
    /// Starts a generator on all CPUs of the member.
    pub(super) fn start(member: &'a Member, spec: LoadSpec) -> Result<Self, End> {
        let offset = member.link.offset()?;
        member.link.say(&Order::Load(Box::new(LoadSpec { cpus: member.cpu_numbers(), ..spec })))?;
        Ok(Self { member, offset, has_ended: false })
    }

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
            Told::Error(text) => Told::Error(format!("{}: {text}", self.member.node.name)),
            Told::Unreachable(text) => Told::Unreachable(format!("{}: {text}", self.member.node.name)),
            told @ (Told::Progress(_) | Told::Connected(_)) => told,
        }
    }
}

impl Engine for RemoteGenerator<'_> {
    fn handle(&self) -> BorrowedFd<'_> {
        self.member.link.handle()
    }

    fn hear(&mut self, readable: bool) -> Result<Vec<Told>, End> {
        if !readable {
            return self.member.link.watch().map(|()| Vec::new());
        }
        let mut all = Vec::new();
        for said in self.member.link.take()? {
            match said {
                Said::Generator(told) => all.push(self.here(told)),
                // The exit of a generator after its measurement, its last message, is not an error.
                Said::Broken(_) if matches!(all.last(), Some(Told::Measurement(_))) => {}
                Said::Broken(why) => return Err(broken(format!("{}: {why}", self.member.node.name))),
                _ => {}
            }
        }
        Ok(all)
    }

    fn tell(&mut self, heard: Heard) -> Result<(), End> {
        let there = |at_ns| Heard::Go { at_ns: self.offset.there(at_ns) };
        let heard = if let Heard::Go { at_ns } = heard { there(at_ns) } else { heard };
        self.member.link.say(&Order::Heard(heard))
    }

    fn end(&mut self, patience: Duration) -> Result<Option<RemoteFacts>, End> {
        self.has_ended = true;
        let order = Order::Unload { patience_ns: crate::lab_clocks::nanos(patience) };
        let pick = |said| if let Said::Unloaded { network } = said { Some(network) } else { None };
        let network = self.member.link.ask(&order, pick)?;
        let after = self.member.link.offset()?;
        let Offset { ns: offset_ns, error_ns } = self.offset;
        let (after_offset_ns, after_error_ns) = (Some(after.ns), Some(after.error_ns));
        let clock = NodeClock { offset_ns, error_ns, after_offset_ns, after_error_ns };
        Ok(Some(RemoteFacts { node: self.member.node.name.clone(), cpus: self.member.cpu_numbers(), network, clock }))
    }
}

impl Drop for RemoteGenerator<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            let _ = self.member.link.say(&Order::Unload { patience_ns: 0 });
        }
    }
}
