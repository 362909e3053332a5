//! Flow-control windows. Source: RFC 9113, sections 5.2 and 6.9.

use super::error::ConnectionError;

/// Maximum size of a window, in bytes.
pub const WINDOW_MAX: u32 = u32::MAX >> 1;

/// Credit for DATA, in bytes. Negative if the peer reduced its initial window below the number of bytes already sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// Creates a window with a credit of `bytes`.
    pub fn new(bytes: u32) -> SendWindow {
        SendWindow(i64::from(bytes))
    }

    /// Available credit in bytes; 0 if negative.
    pub fn available(&self) -> u32 {
        self.0.max(0) as u32
    }

    /// Takes up to `wanted` bytes from the window and returns the number taken.
    pub fn take(&mut self, wanted: u32) -> u32 {
        let taken = wanted.min(self.available());
        self.0 -= i64::from(taken);
        taken
    }

    /// Adds the credit of a WINDOW_UPDATE, or a change of the initial window, in bytes. Fails above [`WINDOW_MAX`].
    pub fn add(&mut self, bytes: i64) -> Result<(), ConnectionError> {
        let sum = self.0 + bytes;
        if sum > i64::from(WINDOW_MAX) {
            return Err(ConnectionError::WindowTooLarge);
        }
        self.0 = sum;
        Ok(())
    }
}

/// A window of bytes that the peer may send. Its credit is restored in large steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveWindow {
    size: u32,
    /// Number of received bytes for which no credit has been given yet, whether consumed or not.
    received: u32,
    consumed: u32,
}

impl ReceiveWindow {
    /// Creates a window of `size` bytes.
    pub fn new(size: u32) -> ReceiveWindow {
        ReceiveWindow { size, received: 0, consumed: 0 }
    }

    /// Counts bytes consumed on arrival. Fails like [`Self::count_received`] and returns credit like [`Self::consume`].
    pub fn receive(&mut self, bytes: u32) -> Result<u32, ConnectionError> {
        self.count_received(bytes)?;
        Ok(self.consume(bytes))
    }

    /// Counts received bytes that are consumed later. Fails if the peer sent more than the window allows.
    pub fn count_received(&mut self, bytes: u32) -> Result<(), ConnectionError> {
        self.received = self.received.saturating_add(bytes);
        if self.received > self.size { Err(ConnectionError::WindowExceeded) } else { Ok(()) }
    }

    /// Counts consumed bytes. Returns the credit for the peer, in bytes: 0 until over half of the window is consumed.
    pub fn consume(&mut self, bytes: u32) -> u32 {
        self.consumed += bytes;
        if self.consumed <= self.size / 2 {
            return 0;
        }
        self.received -= self.consumed;
        std::mem::take(&mut self.consumed)
    }
}
