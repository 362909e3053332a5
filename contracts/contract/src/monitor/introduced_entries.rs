//! Keeps the service entries that messages introduce or use, with the labels that vouch for them.

use super::entry_store::{Key, Store};
use super::service_entry::{Entry, NameId, Origin, key_of};
use super::{Call, EndpointState, Monitor, Promise, Step, StepOutput, Ticket};
use crate::clause::ServiceId;
use crate::contract::Contract;
use crate::metadata::Identified;
use crate::syntax::Direction;

/// How an event affects the labels that vouch for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vouching {
    Named,
    /// A request only uses the entry. The sender vouches for a new entry, unless the entry may have been forgotten.
    Used,
    /// The labels are unknown, because the introducing entry is an orphan.
    Forgotten,
}

pub(super) struct Kept<'a> {
    pub(super) vouching: Vouching,
    pub(super) endpoint: &'a str,
    pub(super) service: ServiceId,
    pub(super) index: Option<&'a str>,
    pub(super) secret: bool,
    pub(super) peer: Option<NameId>,
    /// Labels that vouch for the entry if it is new.
    pub(super) fresh: &'a [NameId],
    /// Labels that are added to the entry if it is known.
    pub(super) more: &'a [NameId],
    pub(super) origin: Origin,
}

impl Vouching {
    pub(super) fn by(labels: &[NameId]) -> Self {
        if labels.is_empty() { Self::Forgotten } else { Self::Named }
    }
}

impl<'a> Kept<'a> {
    pub(super) fn used(call: Call<'a>, labels: &'a [NameId], origin: Origin) -> Self {
        let (endpoint, service) = (call.endpoint, call.operation.service);
        let (vouching, fresh) = (Vouching::Used, labels);
        Self { vouching, endpoint, service, index: None, secret: false, peer: None, fresh, more: &[], origin }
    }
}

pub(super) struct Introduced {
    pub(super) endpoint: String,
    pub(super) service: ServiceId,
    pub(super) index: Option<String>,
    pub(super) secret: bool,
}

impl Introduced {
    /// The entry for an introduced endpoint whose vouching labels the message names.
    pub(super) fn kept<'a>(&'a self, labels: &'a [NameId], origin: Origin) -> Kept<'a> {
        let (endpoint, service, index, secret) = (&self.endpoint, self.service, self.index.as_deref(), self.secret);
        let (vouching, peer, fresh, more) = (Vouching::Named, None, labels, labels);
        Kept { vouching, endpoint, service, index, secret, peer, fresh, more, origin }
    }

    /// The entry for an endpoint introduced without metadata. For a request, the sender vouches. For a reply, the
    /// labels that vouch for the replying service are used, and a known entry stays unchanged.
    fn kept_by_sender<'a>(&'a self, direction: Direction, sender: &'a [NameId; 1], ticket: &'a Ticket) -> Kept<'a> {
        if direction == Direction::Request {
            return self.kept(sender, Origin::Request(sender[0]));
        }
        let origin = ticket.entry.map_or(Origin::Request(0), Origin::Reply);
        let vouching = if ticket.is_orphan { Vouching::Forgotten } else { Vouching::Named };
        Kept { vouching, more: &[], ..self.kept(&ticket.labels, origin) }
    }

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
    pub(super) fn invoke(&mut self, kept: Kept<'_>, step: &mut Step<'_>) {
        // Without the index of the call, the vouching labels are unknown.
        let Some((index, secret)) = self.invoked_index(step) else { return };
        let kept = Kept { index: index.as_deref(), secret, ..kept };
        if let Some((key, entry)) = self.keep(&kept, step.now_s, &mut step.output) {
            step.ticket.entry = Some(key);
            (step.ticket.labels, step.ticket.is_orphan) = (entry.labels, entry.is_orphan);
        }
        (step.ticket.index, step.ticket.secret) = (index, secret);
    }

    /// Adds the endpoints that a sent message introduces, and returns their metadata for the other adapter, if any.
    pub(super) fn keep_sent(&mut self, direction: Direction, step: &mut Step<'_>) -> Vec<Identified> {
        let (mut entries, own) = (Vec::new(), [self.own]);
        for found in self.introduced(direction, step) {
            let kept = found.kept_by_sender(direction, &own, &step.ticket);
            let kept_as = self.keep(&kept, step.now_s, &mut step.output).filter(|_| step.ticket.enhanced);
            entries.extend(kept_as.map(|(_, entry)| self.identified(&kept, &entry)));
        }
        entries
    }

    pub(super) fn keep_received(&mut self, direction: Direction, entries: &[Identified], step: &mut Step<'_>) {
        let introduced = self.introduced(direction, step);
        let carried = |found: &Introduced| found.carried(entries, self.contracts.of(found.service));
        let believed = introduced.iter().filter_map(carried).collect::<std::collections::HashSet<_>>();
        self.counts.refused += entries.iter().filter(|entry| !believed.contains(entry)).count() as u64;
        let other = [step.ticket.other.unwrap_or(0)];
        for found in introduced {
            let Some(carried) = found.carried(entries, self.contracts.of(found.service)) else {
                // A sender with an adapter vouches for an introduced endpoint, even without metadata.
                self.keep(&found.kept_by_sender(direction, &other, &step.ticket), step.now_s, &mut step.output);
                continue;
            };
            let labels = carried.labels.iter().filter_map(|label| self.number(label)).collect::<Vec<_>>();
            let peer = carried.peer.as_ref().and_then(|peer| self.number(peer));
            let kept = found.kept(&labels, Origin::Carried(other[0]));
            self.keep(&Kept { vouching: Vouching::by(&labels), peer, ..kept }, step.now_s, &mut step.output);
        }
    }

    fn identified(&self, kept: &Kept<'_>, entry: &Entry) -> Identified {
        Identified {
            endpoint: kept.endpoint.to_owned(),
            service: self.service_name(kept.service).to_owned(),
            index: kept.index.map(str::to_owned),
            peer: entry.peer.map(|peer| self.name(peer).to_owned()),
            secret: kept.secret,
            labels: self.carried_labels(&entry.labels, entry.is_orphan),
        }
    }

    /// Adds or updates an entry and returns it. `None` if there is no room for its names.
    pub(super) fn keep(&mut self, kept: &Kept<'_>, now_s: u64, output: &mut StepOutput) -> Option<(Key, Entry)> {
        let contract = self.contracts.of(kept.service).clone();
        let service_name = contract.service_name(kept.service);
        let (Some(endpoint), Some(service)) = (self.number(kept.endpoint), self.number(service_name)) else {
            self.counts.forgotten += 1;
            return None;
        };
        // A claim about an endpoint applies to all members of its service.
        let (is_new_promise, known_peer) =
            self.promise(endpoint, Promise { name: service, service: kept.service, peer: kept.peer });
        let peer = kept.peer.or(known_peer);
        if is_new_promise {
            output.intercepts.push((kept.endpoint.to_owned(), kept.service));
            if self.standing(kept.endpoint) == EndpointState::Conflict {
                output.reports.push(self.conflict(kept.endpoint));
            }
        }
        let key = key_of(kept.endpoint, service_name, kept.index);
        let found = self.find(&key, kept, now_s);
        let is_new = found.is_none();
        let mut entry = found.unwrap_or_else(|| {
            let (index, secret) = (kept.index.map(str::to_owned), kept.secret);
            Entry { endpoint, service, index, secret, ..Entry::default() }
        });
        // If no message introduces members, the configuration vouches for all of them.
        let is_covered = kept.index.is_none() || !contract.service_at(kept.service).has_introduced_members;
        let configured = self.configured.get(&(endpoint, service)).filter(|_| is_new && is_covered);
        let mut changed = is_new || entry.peer != peer;
        if let Some(labels) = configured {
            // The entry is new to the store, or was evicted.
            entry.add(labels, Origin::Configured);
            if kept.vouching == Vouching::Named && !kept.more.is_empty() {
                entry.add(kept.more, kept.origin);
            }
        } else if is_new && self.is_orphan(&key, kept) {
            entry.is_orphan = true;
            entry.vouch(0);
        } else if is_new || entry.is_orphan && kept.vouching == Vouching::Named {
            (entry.is_orphan, entry.labels) = (false, Vec::new());
            entry.add(kept.fresh, kept.origin);
            changed = true;
        } else if !kept.more.is_empty() {
            changed |= entry.add(kept.more, kept.origin);
        }
        entry.peer = peer;
        if changed {
            self.store.put(&key, &entry.encode(), now_s);
        }
        self.counts.entries += u64::from(is_new);
        Some((key, entry))
    }

    /// Whether a new entry is an orphan, which means that its vouching labels are unknown.
    fn is_orphan(&self, key: &Key, kept: &Kept<'_>) -> bool {
        match kept.vouching {
            Vouching::Named => false,
            Vouching::Used => self.store.may_have_forgotten(key),
            Vouching::Forgotten => true,
        }
    }

    /// Labels to send to another adapter: none for an orphan, because the other adapter may know its labels.
    pub(super) fn carried_labels(&self, labels: &[NameId], is_orphan: bool) -> Vec<String> {
        if is_orphan { Vec::new() } else { self.shown_labels(labels) }
    }

    /// Finds an entry by key. `None` if a different member has the same key; the later entry replaces the earlier one.
    fn find(&mut self, key: &Key, kept: &Kept<'_>, now_s: u64) -> Option<Entry> {
        let entry = Entry::decode(&self.store.get(key, now_s)?)?;
        let same = self.name(entry.endpoint) == kept.endpoint
            && self.name(entry.service) == self.service_name(kept.service)
            && entry.index.as_deref() == kept.index;
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
