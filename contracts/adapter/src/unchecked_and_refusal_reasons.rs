//! Reasons why a message was not checked or not forwarded, as text and HTTP status.

use hyper::StatusCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchecked {
    /// A body that exceeds `limits.body` before or after decoding.
    Size,
    Memory,
    Slow,
    Encoding,
    Unreadable,
    /// A clause whose verdict is unknown or an error.
    Undecided,
    /// A switch to an unsupported protocol, such as HTTP/2 or WebSocket.
    Protocol,
    /// A tunnel to a known endpoint whose TLS the adapter cannot terminate.
    Encrypted,
    Conflict,
}

/// The `reason` in metrics, the text for clients, and the status of a rejected request, for each [`Unchecked`].
pub(crate) const UNCHECKED: [(&str, &str, StatusCode); Unchecked::Conflict as usize + 1] = [
    ("size", "the body exceeds `limits.body`", StatusCode::PAYLOAD_TOO_LARGE),
    ("memory", "`limits.bodies` is used up", StatusCode::SERVICE_UNAVAILABLE),
    ("slow", "the body did not arrive within `limits.request`", StatusCode::REQUEST_TIMEOUT),
    ("encoding", "the content encoding is not supported", StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ("unreadable", "it is not a message of the service's protocol", StatusCode::UNPROCESSABLE_ENTITY),
    ("undecided", "a clause has no verdict", StatusCode::UNPROCESSABLE_ENTITY),
    ("protocol", "only HTTP/1.1 is supported", StatusCode::FORBIDDEN),
    ("encrypted", "the tunnel is encrypted", StatusCode::FORBIDDEN),
    ("conflict", "the endpoint was introduced as two services", StatusCode::FORBIDDEN),
];

pub(crate) enum Refusal {
    Violated(String),
    Undecided(String),
    Unchecked(Unchecked),
    /// The adapter itself failed and is configured to fail closed.
    Broken,
}

impl Refusal {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Violated(clause) => format!("refused: contract clause `{clause}` is violated"),
            Self::Undecided(clause) => format!("refused: contract clause `{clause}` cannot be decided"),
            Self::Unchecked(why) => format!("refused: the message cannot be checked: {}", UNCHECKED[*why as usize].1),
            Self::Broken => "the adapter failed".to_owned(),
        }
    }

    /// The status for the client if its request is rejected. A rejected reply always gets 502.
    pub(crate) fn request_status(&self) -> StatusCode {
        match self {
            Self::Violated(_) => StatusCode::FORBIDDEN,
            Self::Undecided(_) => UNCHECKED[Unchecked::Undecided as usize].2,
            Self::Unchecked(why) => UNCHECKED[*why as usize].2,
            Self::Broken => StatusCode::BAD_GATEWAY,
        }
    }
}
