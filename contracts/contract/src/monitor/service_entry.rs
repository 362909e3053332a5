//! Service entries: the claim that an endpoint is a member of a service, and the labels that vouch for it. Also for display.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use serde::Serialize;

use super::Monitor;
use super::entry_store::{Key, Store};
use crate::metadata::{Reader, put_count, put_text};

pub(crate) type NameId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Configured,
    /// A request that invoked or introduced the entry, sent by the party with this label.
    Request(NameId),
    Reply(Key),
    /// The metadata of the adapter with this label or address.
    Carried(NameId),
}

/// Maximum number of origins kept. More would make an entry large, and the first ones matter most.
const ORIGINS_MAX: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) endpoint: NameId,
    pub(crate) service: NameId,
    pub(crate) index: Option<String>,
    pub(crate) secret: bool,
    pub(crate) labels: Vec<NameId>,
    pub(crate) peer: Option<NameId>,
    pub(crate) origins: Vec<Origin>,
    pub(crate) more_origins: bool,
    /// Whether the vouching labels were forgotten. `unknown` vouches until a message names labels.
    pub(crate) is_orphan: bool,
}

impl Entry {
    pub(crate) fn vouch(&mut self, label: NameId) -> bool {
        match self.labels.binary_search(&label) {
            Ok(_) => false,
            Err(_) if self.labels.len() >= crate::metadata::LABELS_MAX => false,
            Err(at) => {
                self.labels.insert(at, label);
                true
            }
        }
    }

    /// Adds labels and their origin. Returns whether the entry has changed.
    pub(crate) fn add(&mut self, labels: &[NameId], origin: Origin) -> bool {
        let mut changed = false;
        for label in labels {
            changed |= self.vouch(*label);
        }
        if self.origins.contains(&origin) || self.more_origins {
            return changed;
        }
        if self.origins.len() == ORIGINS_MAX {
            self.more_origins = true;
        } else {
            self.origins.push(origin);
        }
        true
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let bit = |is: bool, at: u8| u8::from(is) << at;
        let contents = bit(self.index.is_some(), 0) | bit(self.secret, 1) | bit(self.peer.is_some(), 2);
        let origins = bit(self.more_origins, 3) | (self.origins.len() as u8) << 4;
        let mut out = Vec::with_capacity(48);
        out.push(contents | origins | bit(self.is_orphan, 7));
        put(&mut out, self.endpoint);
        put(&mut out, self.service);
        if let Some(index) = &self.index {
            put_text(&mut out, index);
        }
        put(&mut out, self.labels.len() as u32);
        self.labels.iter().chain(&self.peer).for_each(|&name| put(&mut out, name));
        for origin in &self.origins {
            match origin {
                Origin::Configured => out.push(0),
                Origin::Request(label) => {
                    out.push(1);
                    put(&mut out, *label);
                }
                Origin::Reply(key) => {
                    out.push(2);
                    out.extend_from_slice(key);
                }
                Origin::Carried(name) => {
                    out.push(3);
                    put(&mut out, *name);
                }
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes)?;
        let name = |reader: &mut Reader<'_>| Some(reader.count(u32::MAX as usize)? as NameId);
        let flags = reader.byte()?;
        let (endpoint, service) = (name(&mut reader)?, name(&mut reader)?);
        let index = if flags & 1 == 0 { None } else { Some(reader.text()?.to_owned()) };
        let labels = (0..reader.count(bytes.len())?).map(|_| name(&mut reader)).collect::<Option<Vec<_>>>()?;
        let peer = if flags & 4 == 0 { None } else { Some(name(&mut reader)?) };
        let mut origins = Vec::new();
        for _ in 0..flags >> 4 & 7 {
            origins.push(match reader.byte()? {
                0 => Origin::Configured,
                1 => Origin::Request(name(&mut reader)?),
                2 => Origin::Reply(*reader.take(12)?.first_chunk().expect("12 bytes were taken")),
                3 => Origin::Carried(name(&mut reader)?),
                _ => return None,
            });
        }
        let (secret, more_origins, is_orphan) = (flags & 2 != 0, flags & 8 != 0, flags & 0x80 != 0);
        let read = Self { endpoint, service, index, secret, labels, peer, origins, more_origins, is_orphan };
        reader.end().then_some(read)
    }
}

const HALVES: [RapidSecrets; 2] = [RapidSecrets::seed(1), RapidSecrets::seed(2)];

/// The key of an entry. It is a hash of the names, so it does not change if names are renumbered.
pub(crate) fn key_of(endpoint: &str, service: &str, index: Option<&str>) -> Key {
    let mut identity = Vec::with_capacity(endpoint.len() + service.len() + 32);
    for part in [endpoint, service] {
        identity.extend_from_slice(part.as_bytes());
        identity.push(0xff); // UTF-8 never contains this byte
    }
    if let Some(index) = index {
        identity.push(0xfe);
        identity.extend_from_slice(index.as_bytes());
    }
    let [first, second] = HALVES.each_ref().map(|half| rapidhash_v3_seeded(&identity, half).to_le_bytes());
    std::array::from_fn(|at| if at < 8 { first[at] } else { second[at - 8] })
}

fn put(out: &mut Vec<u8>, number: u32) {
    put_count(out, number as usize);
}

/// Why `unknown` vouches for an orphan, as shown to users.
pub(crate) const ORPHAN: &str = "its vouching labels were forgotten";

/// A service entry with names instead of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Shown {
    /// Address of the endpoint, such as `adder:8001`.
    pub endpoint: String,
    /// Name of the service that the endpoint is claimed to be.
    pub service: String,
    /// The index of the member, or `None` for the default one. A secret index is `[redacted ...]`.
    pub index: Option<String>,
    /// Labels that vouch for the entry.
    pub labels: Vec<String>,
    /// Address of the endpoint's adapter, or `None` if unknown.
    pub peer: Option<String>,
    /// How the entry was created, as one phrase per origin.
    pub because: Vec<String>,
}

/// Replaces a secret index. The start of the entry's key distinguishes it from other indexes.
pub(crate) fn redacted(key: &Key) -> String {
    format!("[redacted {:02x}{:02x}{:02x}{:02x}]", key[0], key[1], key[2], key[3])
}

impl Origin {
    pub(crate) fn describe<'n>(&self, name: impl Fn(NameId) -> &'n str) -> String {
        match self {
            Self::Configured => "from the configuration".to_owned(),
            Self::Request(label) => format!("invoked or introduced by a request from {}", name(*label)),
            Self::Carried(other) => format!("reported by adapter {}", name(*other)),
            Self::Reply(_) => "introduced by a reply".to_owned(),
        }
    }
}

/// Decodes an entry with the store's names. `None` if it is invalid.
pub fn show_entry(names: &[String], key: &Key, entry: &[u8]) -> Option<Shown> {
    let entry = Entry::decode(entry)?;
    // A store that was tampered with may have numbers without names.
    let name = |number: NameId| names.get(number as usize).map_or("?", String::as_str);
    let index = entry.index.as_ref().map(|index| if entry.secret { redacted(key) } else { index.clone() });
    let mut labels = entry.labels.iter().map(|label| name(*label).to_owned()).collect::<Vec<_>>();
    labels.sort();
    let because = entry.origins.iter().map(|origin| origin.describe(name));
    Some(Shown {
        endpoint: name(entry.endpoint).to_owned(),
        service: name(entry.service).to_owned(),
        index,
        labels,
        peer: entry.peer.map(|peer| name(peer).to_owned()),
        because: because.chain(entry.is_orphan.then(|| ORPHAN.to_owned())).collect(),
    })
}

impl<S: Store> Monitor<S> {
    /// All entries that have not expired, sorted by endpoint, service and index.
    pub fn entries(&mut self, now_s: u64) -> Vec<Shown> {
        let names = self.names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let mut shown = Vec::new();
        self.store.each(now_s, &mut |key, entry| shown.extend(show_entry(&names, key, entry)));
        shown.sort();
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry with the longest index of the case studies: Evernote's token, 55 letters and a number.
    fn evernote() -> Entry {
        Entry {
            endpoint: 300,
            service: 3,
            index: Some("t".repeat(55) + "1999"),
            secret: true,
            labels: vec![1, 2],
            peer: Some(200),
            origins: vec![Origin::Reply([7; 12])],
            more_origins: false,
            is_orphan: false,
        }
    }

    #[test]
    fn an_entry_takes_less_than_100_bytes_with_its_key() {
        let bytes = evernote().encode().len() + std::mem::size_of::<Key>();
        assert!(bytes < 100, "{bytes}");
    }

    #[test]
    fn encoding_round_trips() {
        let mut entries = vec![evernote(), Entry { index: None, secret: false, peer: None, ..evernote() }];
        entries.push(Entry {
            labels: vec![u32::MAX],
            origins: vec![Origin::Configured, Origin::Request(1), Origin::Carried(2), Origin::Reply([0; 12])],
            more_origins: true,
            is_orphan: true,
            ..evernote()
        });
        for entry in entries {
            let bytes = entry.encode();
            assert_eq!(Entry::decode(&bytes), Some(entry));
            for cut in 0..bytes.len() {
                assert_eq!(Entry::decode(&bytes[..cut]), None, "cut at {cut}");
            }
            assert_eq!(Entry::decode(&[&bytes[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn keys_distinguish_endpoint_service_and_index() {
        let key = key_of("a:1", "K", None);
        for other in
            [key_of("a:1", "K", Some("")), key_of("a:1K", "", None), key_of("a:1", "L", None), key_of("a", "1K", None)]
        {
            assert_ne!(key, other);
        }
    }

    #[test]
    fn labels_and_origins_are_sets() {
        let mut entry = evernote();
        assert!(!entry.vouch(2) && entry.vouch(0) && entry.labels == [0, 1, 2]);
        assert!(!entry.add(&[], Origin::Reply([7; 12])));
        for label in 0..10 {
            entry.add(&[], Origin::Request(label));
        }
        assert!(entry.origins.len() == ORIGINS_MAX && entry.more_origins);
    }
}
