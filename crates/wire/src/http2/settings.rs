//! Settings of an endpoint. Source: RFC 9113, section 6.5.2.

use super::Limits;
use super::error::ConnectionError;
use super::flow_control_window::WINDOW_MAX;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;

/// Limits that an endpoint sets for its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Maximum size of the dynamic table of the peer's encoder, in bytes.
    pub header_table_size: u32,
    /// Whether a server may push responses.
    pub enable_push: bool,
    /// Maximum number of streams that the peer may have open; `u32::MAX` for no limit.
    pub max_concurrent_streams: u32,
    /// Initial flow-control window of each stream, in bytes.
    pub initial_window_size: u32,
    /// Maximum payload of a frame, in bytes.
    pub max_frame_size: u32,
    /// Maximum decoded size of a field block, in bytes; `u32::MAX` for no limit.
    pub max_header_list_size: u32,
}

impl Settings {
    /// The initial values, which apply before the first SETTINGS frame.
    pub const DEFAULT: Settings = Settings {
        header_table_size: 4096,
        enable_push: true,
        max_concurrent_streams: u32::MAX,
        initial_window_size: 65_535,
        max_frame_size: Limits::DEFAULT.frame_bytes,
        max_header_list_size: u32::MAX,
    };

    /// Applies the payload of a SETTINGS frame. Ignores unknown settings. Fails if a value is invalid.
    pub(super) fn apply(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        for &[a, b, value @ ..] in payload.as_chunks::<6>().0 {
            let (id, value) = (u16::from_be_bytes([a, b]), u32::from_be_bytes(value));
            match id {
                HEADER_TABLE_SIZE => self.header_table_size = value,
                ENABLE_PUSH if value <= 1 => self.enable_push = value == 1,
                MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = value,
                INITIAL_WINDOW_SIZE if value <= WINDOW_MAX => self.initial_window_size = value,
                MAX_FRAME_SIZE if (Self::DEFAULT.max_frame_size..1 << 24).contains(&value) => {
                    self.max_frame_size = value;
                }
                MAX_HEADER_LIST_SIZE => self.max_header_list_size = value,
                INITIAL_WINDOW_SIZE => return Err(ConnectionError::WindowTooLarge),
                ENABLE_PUSH | MAX_FRAME_SIZE => return Err(ConnectionError::Setting { id, value }),
                _ => {}
            }
        }
        Ok(())
    }

    /// Identifiers and values of the settings that differ from [`Settings::DEFAULT`].
    pub(super) fn changed(&self) -> impl Iterator<Item = (u16, u32)> {
        let all = |settings: &Settings| {
            [
                (HEADER_TABLE_SIZE, settings.header_table_size),
                (ENABLE_PUSH, u32::from(settings.enable_push)),
                (MAX_CONCURRENT_STREAMS, settings.max_concurrent_streams),
                (INITIAL_WINDOW_SIZE, settings.initial_window_size),
                (MAX_FRAME_SIZE, settings.max_frame_size),
                (MAX_HEADER_LIST_SIZE, settings.max_header_list_size),
            ]
        };
        all(self).into_iter().zip(all(&Self::DEFAULT)).filter(|(own, default)| own != default).map(|(own, _)| own)
    }
}
