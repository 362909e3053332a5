//! Rejections under `enforce`: reason, status, and the text for the client.

use hyper::StatusCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchecked {
    /// A body over `limits.body`, decoded or not.
    Size,
    Memory,
    Slow,
    Encoding,
    /// Bytes that are not a message of the service's protocol.
    Unreadable,
    /// A clause whose verdict is unknown or an error.
    Undecided,
    /// A switch to an unsupported protocol: HTTP/2, WebSocket.
    Protocol,
    /// A tunnel to a known endpoint whose TLS the adapter cannot end.
    Encrypted,
    /// An endpoint introduced as two services.
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
    /// The `reason` in metrics, the text for clients, and the status of a rejected request.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Violated(String),
    Undecided(String),
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

    /// The status for the client if its request is rejected. A rejected reply is always 502.
    pub(crate) fn request_status(&self) -> StatusCode {
        match self {
            Self::Violated(_) => StatusCode::FORBIDDEN,
            Self::Undecided(_) => Unchecked::Undecided.row().2,
            Self::Unchecked(why) => why.row().2,
        }
    }
}
