//! Keeps the service entries that messages introduce or use, with the labels that vouch for them.

use std::borrow::Cow;

use super::entry_store::{Key, Store};
use super::service_entry::{Entry, NameId, Origin, key_of};
use super::{EndpointState, Monitor, Promise, Step, StepOutput, Ticket};
use crate::clause::ServiceId;
use crate::contract::Contract;
use crate::metadata::Identified;
use crate::syntax::Direction;

/// An endpoint that a message uses or introduces: a member of a service.
pub(super) struct Member<'a> {
    pub(super) endpoint: Cow<'a, str>,
    pub(super) service: ServiceId,
    pub(super) index: Option<String>,
    pub(super) secret: bool,
}

/// How an event affects the labels that vouch for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vouching {
    /// The message names labels, which also vouch for a known entry from now on.
    Named,
    /// The labels of the introducing entry vouch for a new entry.
    Inherited,
    /// A request only uses the entry. The sender vouches for a new entry, unless the entry may have been forgotten.
    Used,
    /// The labels are unknown, because the introducing entry is an orphan.
    Forgotten,
}

/// Who vouches for a member because of an event.
pub(super) struct Voucher<'a> {
    pub(super) vouching: Vouching,
    pub(super) labels: &'a [NameId],
    pub(super) peer: Option<NameId>,
    pub(super) origin: Origin,
}

impl Vouching {
    pub(super) fn by(labels: &[NameId]) -> Self {
        if labels.is_empty() { Self::Forgotten } else { Self::Named }
    }
}

impl<'a> Voucher<'a> {
    /// The voucher for an endpoint introduced without metadata. For a request, the sender vouches. For a reply, the
    /// labels that vouch for the replying service are used, and a known entry stays unchanged.
    fn of_sender(direction: Direction, sender: &'a [NameId; 1], ticket: &'a Ticket) -> Self {
        let (vouching, labels, origin) = match direction {
            Direction::Request => (Vouching::Named, &sender[..], Origin::Request(sender[0])),
            Direction::Reply => {
                let vouching = if ticket.is_orphan { Vouching::Forgotten } else { Vouching::Inherited };
                (vouching, &ticket.labels[..], ticket.entry.map_or(Origin::Request(0), Origin::Reply))
            }
        };
        Self { vouching, labels, peer: None, origin }
    }
}

impl Member<'_> {
    pub(super) fn carried<'m>(&self, entries: &'m [Identified], contract: &Contract) -> Option<&'m Identified> {
        entries.iter().find(|entry| {
            entry.endpoint == self.endpoint
                && entry.index == self.index
                && entry.service == contract.service_name(self.service)
        })
    }
}

impl<S: Store> Monitor<S> {
    /// Adds the entry that a request invokes, with the index of the call, to the store and to the ticket.
    pub(super) fn invoke(&mut self, voucher: &Voucher<'_>, step: &mut Step<'_>) {
        // Without the index of the call, the vouching labels are unknown.
        let Some((index, secret)) = self.invoked_index(step) else { return };
        let (endpoint, service) = (step.call.endpoint.into(), step.call.operation.service);
        let member = Member { endpoint, service, index, secret };
        if let Some((key, entry)) = self.keep(&member, voucher, step.now_s, &mut step.output) {
            step.ticket.entry = Some(key);
            (step.ticket.labels, step.ticket.is_orphan) = (entry.labels, entry.is_orphan);
        }
        (step.ticket.index, step.ticket.secret) = (member.index, member.secret);
    }

    /// Adds the endpoints that a sent message introduces, and returns their metadata for the other adapter, if any.
    pub(super) fn keep_sent(&mut self, direction: Direction, step: &mut Step<'_>) -> Vec<Identified> {
        let (mut entries, own) = (Vec::new(), [self.own]);
        for member in self.introduced(direction, step) {
            let voucher = Voucher::of_sender(direction, &own, &step.ticket);
            let kept = self.keep(&member, &voucher, step.now_s, &mut step.output);
            let kept = kept.filter(|_| step.ticket.enhanced);
            entries.extend(kept.map(|(_, entry)| self.identified(&member, &entry)));
        }
        entries
    }

    pub(super) fn keep_received(&mut self, direction: Direction, entries: &[Identified], step: &mut Step<'_>) {
        let introduced = self.introduced(direction, step);
        let carried = |member: &Member<'_>| member.carried(entries, self.contracts.of(member.service));
        let believed = introduced.iter().filter_map(carried).collect::<std::collections::HashSet<_>>();
        self.counts.refused += entries.iter().filter(|entry| !believed.contains(entry)).count() as u64;
        let other = [step.ticket.other.unwrap_or(0)];
        for member in introduced {
            let Some(carried) = member.carried(entries, self.contracts.of(member.service)) else {
                // A sender with an adapter vouches for an introduced endpoint, even without metadata.
                let voucher = Voucher::of_sender(direction, &other, &step.ticket);
                self.keep(&member, &voucher, step.now_s, &mut step.output);
                continue;
            };
            let labels = carried.labels.iter().filter_map(|label| self.number(label)).collect::<Vec<_>>();
            let peer = carried.peer.as_ref().and_then(|peer| self.number(peer));
            let (vouching, origin) = (Vouching::by(&labels), Origin::Carried(other[0]));
            let voucher = Voucher { vouching, labels: &labels, peer, origin };
            self.keep(&member, &voucher, step.now_s, &mut step.output);
        }
    }

    fn identified(&self, member: &Member<'_>, entry: &Entry) -> Identified {
        Identified {
            endpoint: member.endpoint.to_string(),
            service: self.service_name(member.service).to_owned(),
            index: member.index.clone(),
            peer: entry.peer.map(|peer| self.name(peer).to_owned()),
            secret: member.secret,
            labels: self.carried_labels(&entry.labels, entry.is_orphan),
        }
    }

    /// Adds or updates the entry of a member and returns it. `None` if there is no room for its names.
    pub(super) fn keep(
        &mut self,
        member: &Member<'_>,
        voucher: &Voucher<'_>,
        now_s: u64,
        output: &mut StepOutput,
    ) -> Option<(Key, Entry)> {
        let contract = self.contracts.of(member.service).clone();
        let service_name = contract.service_name(member.service);
        let (Some(endpoint), Some(service)) = (self.number(&member.endpoint), self.number(service_name)) else {
            self.counts.forgotten += 1;
            return None;
        };
        // A claim about an endpoint applies to all members of its service.
        let (is_new_promise, known_peer) =
            self.promise(endpoint, Promise { name: service, service: member.service, peer: voucher.peer });
        let peer = voucher.peer.or(known_peer);
        if is_new_promise {
            output.intercepts.push((member.endpoint.to_string(), member.service));
            if self.standing(&member.endpoint) == EndpointState::Conflict {
                output.reports.push(self.conflict(&member.endpoint));
            }
        }
        let key = key_of(&member.endpoint, service_name, member.index.as_deref());
        let found = self.find(&key, member, now_s);
        let is_new = found.is_none();
        let mut entry = found.unwrap_or_else(|| {
            let (index, secret) = (member.index.clone(), member.secret);
            Entry { endpoint, service, index, secret, ..Entry::default() }
        });
        // If no message introduces members, the configuration vouches for all of them.
        let is_covered = member.index.is_none() || !contract.service_at(member.service).has_introduced_members;
        let configured = self.configured.get(&(endpoint, service)).filter(|_| is_new && is_covered);
        let mut changed = is_new || entry.peer != peer;
        let Voucher { vouching, labels, origin, .. } = *voucher;
        let adds_labels = vouching == Vouching::Named && !labels.is_empty();
        let may_be_known = || vouching == Vouching::Used && self.store.may_have_forgotten(&key);
        let is_orphan = is_new && (vouching == Vouching::Forgotten || may_be_known());
        if let Some(configured) = configured {
            // The entry is new to the store, or was evicted.
            entry.add(configured, Origin::Configured);
            if adds_labels {
                entry.add(labels, origin);
            }
        } else if is_orphan {
            entry.is_orphan = true;
            entry.vouch(0);
        } else if is_new || entry.is_orphan && matches!(vouching, Vouching::Named | Vouching::Inherited) {
            (entry.is_orphan, entry.labels) = (false, Vec::new());
            entry.add(labels, origin);
            changed = true;
        } else if adds_labels {
            changed |= entry.add(labels, origin);
        }
        entry.peer = peer;
        if changed {
            self.store.put(&key, &entry.encode(), now_s);
        }
        self.counts.entries += u64::from(is_new);
        Some((key, entry))
    }

    /// Labels to send to another adapter: none for an orphan, because the other adapter may know its labels.
    pub(super) fn carried_labels(&self, labels: &[NameId], is_orphan: bool) -> Vec<String> {
        if is_orphan { Vec::new() } else { self.shown_labels(labels) }
    }

    /// Finds an entry by key. `None` if a different member has the same key; the later entry replaces the earlier one.
    fn find(&mut self, key: &Key, member: &Member<'_>, now_s: u64) -> Option<Entry> {
        let entry = Entry::decode(&self.store.get(key, now_s)?)?;
        let same = self.name(entry.endpoint) == member.endpoint
            && self.name(entry.service) == self.service_name(member.service)
            && entry.index == member.index;
        same.then_some(entry)
    }

    /// Adds a claim about an endpoint. Returns whether the claim is new, and the claimed service's adapter if known.
    pub(super) fn promise(&mut self, endpoint: NameId, new: Promise) -> (bool, Option<NameId>) {
        // A call in flight may refer to an older contract.
        let newest = self.contracts.newest();
        let service = match new.service.generation == newest.generation {
            true => new.service,
            false => newest.service(self.name(new.name)).unwrap_or(new.service),
        };
        let promises = self.endpoints.entry(endpoint).or_default();
        match promises.iter_mut().find(|promise| promise.name == new.name) {
            Some(known) => {
                known.peer = new.peer.or(known.peer);
                (false, known.peer)
            }
            None => {
                promises.push(Promise { service, ..new });
                (true, new.peer)
            }
        }
    }
}
