//! Refusals under `enforce`: the reason, the status, and the text that a client gets.

use hyper::StatusCode;

/// Why a message cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchecked {
    /// A body over `limits.body`, decoded or not.
    Size,
    /// A body without room in `limits.bodies`.
    Memory,
    /// A body that did not arrive within `limits.request`.
    Slow,
    /// A `Content-Encoding` that the adapter does not decode.
    Encoding,
    /// Bytes that are not a message of the service's protocol.
    Unreadable,
    /// A clause whose verdict is unknown or an error.
    Undecided,
    /// A change to a protocol that the adapter does not read: HTTP/2, WebSocket.
    Protocol,
    /// A tunnel to a known endpoint whose TLS the adapter cannot end.
    Encrypted,
    /// An endpoint that was introduced as two services.
    Conflict,
}

pub(crate) const UNCHECKED: [Unchecked; 9] = [
    Unchecked::Size,
    Unchecked::Memory,
    Unchecked::Slow,
    Unchecked::Encoding,
    Unchecked::Unreadable,
    Unchecked::Undecided,
    Unchecked::Protocol,
    Unchecked::Encrypted,
    Unchecked::Conflict,
];

impl Unchecked {
    /// The `reason` in metrics, the text for clients, and the status of a request refused for it.
    fn row(self) -> (&'static str, &'static str, StatusCode) {
        match self {
            Self::Size => ("size", "the body exceeds `limits.body`", StatusCode::PAYLOAD_TOO_LARGE),
            Self::Memory => ("memory", "`limits.bodies` is used up", StatusCode::SERVICE_UNAVAILABLE),
            Self::Slow => ("slow", "the body did not arrive within `limits.request`", StatusCode::REQUEST_TIMEOUT),
            Self::Encoding => ("encoding", "the content encoding is not supported", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            Self::Unreadable => {
                ("unreadable", "it is not a message of the service's protocol", StatusCode::UNPROCESSABLE_ENTITY)
            }
            Self::Undecided => ("undecided", "a clause has no verdict", StatusCode::UNPROCESSABLE_ENTITY),
            Self::Protocol => ("protocol", "only HTTP/1.1 is supported", StatusCode::FORBIDDEN),
            Self::Encrypted => ("encrypted", "the tunnel is encrypted", StatusCode::FORBIDDEN),
            Self::Conflict => ("conflict", "the endpoint was introduced as two services", StatusCode::FORBIDDEN),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().0
    }
}

/// Why a message is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This clause fails.
    Violated(String),
    /// This clause has no verdict.
    Undecided(String),
    /// The message cannot be checked.
    Unchecked(Unchecked),
}

impl Refusal {
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Violated(_) => "contract violated",
            Self::Undecided(_) | Self::Unchecked(_) => "message cannot be checked",
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Violated(clause) => format!("refused: contract clause `{clause}` is violated"),
            Self::Undecided(clause) => format!("refused: contract clause `{clause}` cannot be decided"),
            Self::Unchecked(why) => format!("refused: the message cannot be checked: {}", why.row().1),
        }
    }

    /// The status for the client if its request is refused. A refused reply is always 502.
    pub(crate) fn request_status(&self) -> StatusCode {
        match self {
            Self::Violated(_) => StatusCode::FORBIDDEN,
            Self::Undecided(_) => Unchecked::Undecided.row().2,
            Self::Unchecked(why) => why.row().2,
        }
    }
}
