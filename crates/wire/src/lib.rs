//! Codecs: bytes to messages and back, no sockets.
