//! The metadata that adapters exchange with a message: the sender, vouching labels, and introduced endpoints. Values
//! known to both ends are not repeated: the endpoint of the call, its service and, in a reply, the request's sender.
//! The original message travels unchanged.
//! ```text
//! request = head sender [labels] [entries]
//!           head = version * 16 + flags: 1 labels of the invoked entry, 2 entries
//! reply   = ""  |  head entries
//! entries = count { entry }
//! entry   = flags [endpoint] [service] [index] [peer] [labels]
//!           flags: 3 endpoint (0 the receiver, 1 as before, 2 written), 12 service (same codes),
//!                  16 index, 32 peer, 64 secret,
//!                  128 labels as before (in the first entry: only the sender)
//! labels  = count { 0 text | k }
//!           k: the k-th of "unknown", the sender, and those written so far
//! text    = count bytes
//!           counts are LEB128
//! ```

/// The shared label of all parties without an adapter.
pub const UNKNOWN: &str = "unknown";

/// The version of the metadata block that this crate writes and reads.
pub const VERSION: u8 = 1;

/// Maximum size of a metadata block, in bytes.
pub const BLOCK_MAX_BYTES: usize = 1 << 20;

/// Maximum number of entries per metadata block. A sender drops the rest, which makes blame less precise.
pub const ENTRIES_MAX: usize = 16_384;

/// Maximum number of labels that vouch for one entry.
pub const LABELS_MAX: usize = 64;

/// Maximum length of an endpoint, index, label, name or address, in bytes.
pub const TEXT_MAX_BYTES: usize = 1024;

/// An endpoint that a message introduces, and the labels that vouch for it. A reply's metadata is a list of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identified {
    /// Address of the endpoint, such as `adder:8001`.
    pub endpoint: String,
    /// Name of the service that the endpoint is claimed to be.
    pub service: String,
    /// The index of the member, or `None` for the default one.
    pub index: Option<String>,
    /// Address of the endpoint's adapter, or `None` if unknown.
    pub peer: Option<String>,
    /// Whether the index is secret, so that reports redact it.
    pub secret: bool,
    /// Labels that vouch for the endpoint, in ascending order.
    pub labels: Vec<String>,
}

/// Metadata of a request: its sender, the labels that vouch for the invoked entry, and introduced endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMetadata {
    /// The label of the sending adapter.
    pub sender: String,
    /// The labels that vouch for the invoked entry, in ascending order.
    pub invoked: Vec<String>,
    /// The endpoints that the request introduces.
    pub entries: Vec<Identified>,
}

/// Facts about a call that both ends know, so that metadata omits them.
#[derive(Clone, Copy, Debug)]
pub struct CallContext<'a> {
    /// The called endpoint.
    pub receiver: &'a str,
    /// Name of the service at the called endpoint.
    pub service: &'a str,
    /// The label of the request's sender. It is part of a request's metadata; both ends of a reply know it.
    pub sender: &'a str,
}

/// Maximum length of a label, in bytes.
pub const LABEL_MAX_BYTES: usize = 255;

/// Whether a string is a valid label of a party, or [`UNKNOWN`].
pub fn is_label(text: &str) -> bool {
    (1..=LABEL_MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Encodes the metadata of a request as a block.
pub fn encode_request(metadata: &RequestMetadata, known: CallContext<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    let labels = metadata.invoked != [metadata.sender.clone()];
    let entries = !metadata.entries.is_empty();
    out.push(VERSION << 4 | u8::from(labels) | u8::from(entries) << 1);
    put_text(&mut out, &metadata.sender);
    let mut table = Table::new(&metadata.sender);
    if labels {
        table.put(&mut out, &metadata.invoked);
    }
    if entries {
        put_entries(&mut out, &metadata.entries, known, &mut table);
    }
    out
}

/// Encodes the metadata of a reply as a block, which is empty if there are no entries.
pub fn encode_reply(entries: &[Identified], known: CallContext<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    if !entries.is_empty() {
        out.push(VERSION << 4 | 2);
        put_entries(&mut out, entries, known, &mut Table::new(known.sender));
    }
    out
}

/// Decodes a request's block, using memory of at most a small multiple of the block's length. Ignores
/// [`CallContext::sender`]. `None` if the block is invalid or over a limit.
pub fn decode_request(block: &[u8], known: CallContext<'_>) -> Option<RequestMetadata> {
    let mut reader = Reader::new(block)?;
    let flags = reader.head()?;
    let sender = reader.text()?.to_owned();
    let mut table = Table::new(&sender);
    let invoked = if flags & 1 == 0 { vec![sender.clone()] } else { table.take(&mut reader)? };
    let entries = if flags & 2 == 0 { Vec::new() } else { reader.entries(known, &mut table)? };
    reader.end().then_some(RequestMetadata { sender, invoked, entries })
}

/// Decodes the block of a reply. `None` in the same cases as [`decode_request`].
pub fn decode_reply(block: &[u8], known: CallContext<'_>) -> Option<Vec<Identified>> {
    if block.is_empty() {
        return Some(Vec::new());
    }
    let mut reader = Reader::new(block)?;
    reader.head().filter(|flags| *flags == 2)?;
    let entries = reader.entries(known, &mut Table::new(known.sender))?;
    reader.end().then_some(entries)
}

/// The size of a call's metadata in bytes as Whip counts it, for comparison with its paper: `16 + |sender|` for the
/// request, `16 + |endpoint?index|` for each entry, `4 + |label|` for each label and, with `peers`, `14 + |host|` for
/// each known peer address. Source: the Thrift binary encoding of Whip's `Annotated` and `PortConfiguration`.
pub fn whip_bytes(request: &RequestMetadata, reply: &[Identified], peers: bool) -> usize {
    let entry = |entry: &Identified| {
        let identifier = entry.endpoint.len() + entry.index.as_ref().map_or(0, |index| 1 + index.len());
        let host = |address: &String| address.rsplit_once(':').map_or(address.len(), |(host, _)| host.len());
        let peer = entry.peer.as_ref().filter(|_| peers).map_or(0, |address| 14 + host(address));
        16 + identifier + peer + entry.labels.iter().map(|label| 4 + label.len()).sum::<usize>()
    };
    16 + request.sender.len() + request.entries.iter().chain(reply).map(entry).sum::<usize>()
}

/// Appends a number to `out` in LEB128.
pub fn put_count(out: &mut Vec<u8>, mut count: usize) {
    while count >= 0x80 {
        out.push(count as u8 | 0x80);
        count >>= 7;
    }
    out.push(count as u8);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn put_entries(out: &mut Vec<u8>, entries: &[Identified], known: CallContext<'_>, table: &mut Table) {
    let entries = &entries[..entries.len().min(ENTRIES_MAX)];
    put_count(out, entries.len());
    let first_labels = [table.sender().to_owned()];
    let mut before: Option<&Identified> = None;
    for entry in entries {
        let reference = |text: &str, known: &str, before: Option<&String>| match () {
            () if text == known => 0,
            () if before.is_some_and(|before| before == text) => 1,
            () => 2,
        };
        let endpoint = reference(&entry.endpoint, known.receiver, before.map(|before| &before.endpoint));
        let service = reference(&entry.service, known.service, before.map(|before| &before.service));
        let labels_before = before.map_or(&first_labels[..], |before| &before.labels);
        let same = entry.labels == labels_before;
        let bit = |is: bool, at: u8| u8::from(is) << at;
        let contents = endpoint | service << 2 | bit(entry.index.is_some(), 4) | bit(entry.peer.is_some(), 5);
        out.push(contents | bit(entry.secret, 6) | bit(same, 7));
        if endpoint == 2 {
            put_text(out, &entry.endpoint);
        }
        if service == 2 {
            put_text(out, &entry.service);
        }
        entry.index.iter().chain(&entry.peer).for_each(|text| put_text(out, text));
        if !same {
            table.put(out, &entry.labels);
        }
        before = Some(entry);
    }
}

struct Table {
    labels: Vec<String>,
}

impl Table {
    fn new(sender: &str) -> Self {
        Self { labels: vec![UNKNOWN.to_owned(), sender.to_owned()] }
    }

    fn sender(&self) -> &str {
        &self.labels[1]
    }

    fn put(&mut self, out: &mut Vec<u8>, labels: &[String]) {
        let labels = &labels[..labels.len().min(LABELS_MAX)];
        put_count(out, labels.len());
        for label in labels {
            match self.labels.iter().position(|known| known == label) {
                Some(at) => put_count(out, at + 1),
                None => {
                    out.push(0);
                    put_text(out, label);
                    self.labels.push(label.clone());
                }
            }
        }
    }

    fn take(&mut self, reader: &mut Reader<'_>) -> Option<Vec<String>> {
        let mut labels = Vec::new();
        for _ in 0..reader.count(LABELS_MAX)? {
            labels.push(match reader.count(usize::MAX >> 8)? {
                0 => {
                    self.labels.push(reader.text()?.to_owned());
                    self.labels.last()?.clone()
                }
                known => self.labels.get(known - 1)?.clone(),
            });
        }
        Some(labels)
    }
}

pub(crate) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(crate) fn new(block: &'b [u8]) -> Option<Self> {
        (block.len() <= BLOCK_MAX_BYTES).then_some(Self { rest: block })
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn head(&mut self) -> Option<u8> {
        let head = self.byte()?;
        (head >> 4 == VERSION && head & 15 <= 3).then_some(head & 15)
    }

    pub(crate) fn count(&mut self, limit: usize) -> Option<usize> {
        let mut count = 0_usize;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            count |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return (count <= limit).then_some(count);
            }
        }
        None
    }

    pub(crate) fn text(&mut self) -> Option<&'b str> {
        let count = self.count(TEXT_MAX_BYTES)?;
        std::str::from_utf8(self.take(count)?).ok()
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        self.rest.split_off(..count)
    }

    fn entries(&mut self, known: CallContext<'_>, table: &mut Table) -> Option<Vec<Identified>> {
        let mut entries: Vec<Identified> = Vec::new();
        for _ in 0..self.count(ENTRIES_MAX)? {
            let flags = self.byte()?;
            let before = entries.last();
            let mut reference = |code: u8, known: &str, before: Option<&String>| match (code, before) {
                (0, _) => Some(known.to_owned()),
                (1, before) => before.cloned(),
                (2, _) => self.text().map(str::to_owned),
                _ => None,
            };
            let endpoint = reference(flags & 3, known.receiver, before.map(|before| &before.endpoint))?;
            let service = reference(flags >> 2 & 3, known.service, before.map(|before| &before.service))?;
            let index = if flags & 16 == 0 { None } else { Some(self.text()?.to_owned()) };
            let peer = if flags & 32 == 0 { None } else { Some(self.text()?.to_owned()) };
            let labels = match (flags & 128 == 0, entries.last()) {
                (true, _) => table.take(self)?,
                (false, Some(before)) => before.labels.clone(),
                (false, None) => vec![table.sender().to_owned()],
            };
            entries.push(Identified { endpoint, service, index, peer, secret: flags & 64 != 0, labels });
        }
        Some(entries)
    }

    pub(crate) fn end(&self) -> bool {
        self.rest.is_empty()
    }
}
