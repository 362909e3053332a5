//! Thrift messages of a connection. Between adapters, a block of metadata precedes each message.
//! ```text
//! between adapters = greeting { number block message } [ 0 bytes ]
//! number           = LEB128: 1 + the length of the block; an empty block: the message is unchecked
//! 0                = raw bytes follow; the other side also sends 0
//! ```

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use codecs::thrift::{
    Detected, Framing, Header, Limits, Message, MessageReader, Progress, Protocol, compose_application_exception,
    detect,
};
use contract::metadata::{BLOCK_MAX_BYTES, put_count};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::counted_stream::Stream;
use crate::decode::{Unread, thrift_message};
use crate::memory_budget::{Budget, FREE_BYTES, Share};
use crate::metrics::Skip;
use crate::unchecked_and_refusal_reasons::Refusal;

const READ_BYTES: usize = 8 << 10;

pub(crate) enum Received {
    Message(ReceivedMessage),
    Large { length: usize, skip: Skip },
    Opaque { what: Option<String> }, // cannot be split; `what` is set if the bytes are certainly not a message
    End,
}

pub(crate) struct ReceivedMessage {
    /// Metadata that precedes the message; `None` if the peer is not an adapter.
    pub(crate) block: Option<Bytes>,
    pub(crate) bytes: Bytes,
    /// Offset of the message after its frame length.
    begin: usize,
    protocol: Protocol,
    framing: Framing,
}

impl ReceivedMessage {
    pub(crate) fn decode(&self) -> Result<Message<'_>, Unread> {
        thrift_message(self.protocol, &self.bytes[self.begin..])
    }

    /// Composes the exception that reports `refusal` to the caller. `header` is the header of the rejected call.
    pub(crate) fn exception(&self, header: &Header<'_>, refusal: &Refusal) -> Vec<u8> {
        const INTERNAL_ERROR: i32 = 6;
        compose_application_exception(self.protocol, self.framing, header, &refusal.text(), INTERNAL_ERROR)
    }
}

pub(crate) struct Messages {
    pub(crate) stream: Stream,
    pub(crate) buffer: BytesMut,
    how: Option<(Protocol, Framing)>,
    reader: Option<MessageReader>,
    pub(crate) is_adapter: bool,
    pub(crate) is_opaque: bool,
    limits: Limits,
    /// Share of the memory budget for the buffer and the message last taken from it.
    share: Share,
}

impl Messages {
    pub(crate) fn new(stream: Stream, is_adapter: bool, message_bytes: usize, budget: &Arc<Budget>) -> Self {
        let limits = Limits { message_bytes, ..Limits::DEFAULT };
        let (buffer, share) = (BytesMut::new(), budget.share());
        Self { stream, buffer, how: None, reader: None, is_adapter, is_opaque: false, limits, share }
    }

    /// Reads more bytes into the buffer and returns their number, 0 at the end. Safe to cancel.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        if self.buffer.is_empty() {
            // A long message must not occupy memory until the connection ends.
            if self.buffer.capacity() > FREE_BYTES {
                self.buffer = BytesMut::new();
            }
            let _ = self.share.resize(READ_BYTES);
        }
        self.buffer.reserve(READ_BYTES);
        self.stream.read_buf(&mut self.buffer).await
    }

    async fn fill_if_empty(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() && self.fill().await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Whether the buffer has room for more bytes, possibly after growing within the budget.
    fn grow(&mut self) -> bool {
        let (length, capacity) = (self.buffer.len(), self.buffer.capacity());
        if capacity - length >= READ_BYTES {
            return true;
        }
        let capacity = (length + READ_BYTES).max(length * 2);
        let fits = self.share.resize(capacity);
        if fits {
            self.buffer.reserve(capacity - length);
        }
        fits
    }

    /// Returns the next message. Safe to cancel. Fails for metadata over a limit.
    pub(crate) async fn next(&mut self) -> io::Result<Received> {
        loop {
            if let Some(got) = self.take(false)? {
                return Ok(got);
            }
            if !self.grow() {
                return self.take(true)?.ok_or_else(|| io::Error::other("metadata without room in `limits.bodies`"));
            }
            if self.fill().await? == 0 {
                // An incomplete message is forwarded unchanged, followed by the end.
                return Ok(if self.buffer.is_empty() { Received::End } else { Received::Opaque { what: None } });
            }
        }
    }

    /// Takes a message from the buffer; `None` if more bytes are needed. `is_over` means that the buffer cannot grow.
    fn take(&mut self, is_over: bool) -> io::Result<Option<Received>> {
        let (head, block) = if self.is_adapter {
            let Some((number, used)) = leb128(&self.buffer)? else { return Ok(None) };
            let Some(length) = number.checked_sub(1) else {
                self.buffer.advance(used);
                self.is_opaque = true;
                return Ok(Some(Received::Opaque { what: None }));
            };
            if length > BLOCK_MAX_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "metadata over the limit"));
            }
            (used, length)
        } else {
            (0, 0)
        };
        let message = self.buffer.get(head + block..).filter(|message| !message.is_empty());
        let Some(message) = message else { return Ok(None) };
        let (protocol, framing) = match self.how {
            Some(how) => how,
            None => match detect(message, &Limits::DEFAULT) {
                Detected::Need => return Ok(None),
                Detected::Unknown => {
                    return Ok(Some(Received::Opaque { what: Some("not a Thrift message".to_owned()) }));
                }
                Detected::Thrift(protocol, framing) => *self.how.insert((protocol, framing)),
            },
        };
        let reader = self.reader.get_or_insert_with(|| MessageReader::new(protocol, framing, self.limits));
        let read = reader.read(message);
        let length = message.first_chunk::<4>().map(|length| u32::from_be_bytes(*length));
        let length = length.filter(|length| framing == Framing::Framed && *length <= i32::MAX as u32);
        let length = length.map(|length| length as usize + 4);
        Ok(Some(match (read, length) {
            (Ok(Progress::Need { .. }), _) if !is_over => return Ok(None),
            (Ok(Progress::Message { used, begin }), _) => {
                let block = self.block(head, block);
                let bytes = self.buffer.split_to(used).freeze();
                Received::Message(ReceivedMessage { block, bytes, begin, protocol, framing })
            }
            (read, Some(length)) => {
                self.block(head, block);
                Received::Large { length, skip: if read.is_ok() { Skip::Memory } else { Skip::Size } }
            }
            (Ok(Progress::Need { .. }), None) => Received::Opaque { what: None },
            (Err(error), None) => {
                let what = (!error.is_limit).then(|| format!("not a Thrift message: {error}"));
                Received::Opaque { what }
            }
        }))
    }

    fn block(&mut self, head: usize, length: usize) -> Option<Bytes> {
        self.buffer.advance(head);
        self.is_adapter.then(|| self.buffer.split_to(length).freeze())
    }

    /// Sends a message, preceded by its block if the peer is an adapter. Returns the size of the block's length prefix.
    pub(crate) async fn send(&mut self, block: Option<&[u8]>, mut message: &[u8]) -> io::Result<usize> {
        let mut head = Vec::new();
        let mut length_bytes = 0;
        if self.is_adapter {
            let block = block.unwrap_or_default();
            put_count(&mut head, block.len() + 1);
            length_bytes = head.len();
            head.extend_from_slice(block);
            if message.len() <= 16 << 10 {
                head.extend_from_slice(std::mem::take(&mut message));
            }
            self.stream.write_all(&head).await?;
        }
        self.stream.write_all(message).await?;
        self.stream.flush().await?;
        Ok(length_bytes)
    }

    pub(crate) async fn pass(&mut self, to: &mut Messages, length: usize) -> io::Result<()> {
        to.send(None, &[]).await?;
        let mut left = length;
        while left > 0 {
            self.fill_if_empty().await?;
            let part = self.buffer.split_to(left.min(self.buffer.len()));
            to.stream.write_all(&part).await?;
            left -= part.len();
        }
        to.stream.flush().await
    }

    /// Announces raw bytes, and waits until the other side has also announced them.
    pub(crate) async fn open_up(&mut self) -> io::Result<()> {
        if !self.is_adapter {
            return Ok(());
        }
        self.stream.write_all(&[0]).await?;
        self.stream.flush().await?;
        if !self.is_opaque {
            self.fill_if_empty().await?;
            if self.buffer.get_u8() != 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "an unexpected message"));
            }
            self.is_opaque = true;
        }
        Ok(())
    }
}

fn leb128(bytes: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(4) {
        number |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((number, at + 1)));
        }
    }
    if bytes.len() < 4 { Ok(None) } else { Err(io::Error::new(io::ErrorKind::InvalidData, "a length over the limit")) }
}
