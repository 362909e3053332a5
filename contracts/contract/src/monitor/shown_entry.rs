//! Service entries for display.

use serde::Serialize;

use super::Monitor;
use super::entry_store::{Key, Store};
use super::service_entry::{Entry, NameId, Origin};

/// Why `unknown` vouches for an orphan, as shown to users.
pub(super) const ORPHAN: &str = "its vouching labels were forgotten";

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
pub(super) fn redacted(key: &Key) -> String {
    format!("[redacted {:02x}{:02x}{:02x}{:02x}]", key[0], key[1], key[2], key[3])
}

impl Origin {
    pub(super) fn describe<'n>(&self, name: impl Fn(NameId) -> &'n str) -> String {
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
