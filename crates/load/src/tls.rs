//! TLS on the client's side.

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// It is being written.
    #[error("https is not supported by this build yet")]
    Unsupported,
}

/// What all sessions of a load share.
#[derive(Debug, Clone)]
pub(crate) struct Connector;

/// One connection's TLS.
#[derive(Debug)]
pub(crate) struct Session;

impl Connector {
    pub(crate) fn new(_: &study::spec::Tls) -> Result<Self, TlsError> {
        Err(TlsError::Unsupported)
    }

    pub(crate) fn start(&self) -> Session {
        Session
    }
}

impl Session {
    pub(crate) fn read(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<(), TlsError> {
        Err(TlsError::Unsupported)
    }

    pub(crate) fn write(&mut self, _: &[u8]) -> Result<(), TlsError> {
        Err(TlsError::Unsupported)
    }

    pub(crate) fn take(&mut self, _: &mut Vec<u8>) {}

    pub(crate) fn is_handshaking(&self) -> bool {
        false
    }

    pub(crate) fn resumed(&self) -> bool {
        false
    }

    pub(crate) fn ended(&self) -> bool {
        false
    }
}
