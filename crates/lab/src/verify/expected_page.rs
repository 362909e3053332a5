//! A page that a server returned, which later responses for its path must match.

use study::verification::Miss;

use super::http_response_parser::Response;
use super::unsuccessful_check_reason::excerpt;

pub(super) struct Page {
    pub(super) path: String,
    pub(super) status: u16,
    /// Body of the first two responses; `None` if they differed.
    body: Option<Vec<u8>>,
}

pub(super) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n").into_bytes()
}

impl Page {
    /// Compares two responses to GET and returns their common properties. Fails if they violate the contract.
    pub(super) fn of(path: &str, [first, second]: [Response; 2]) -> Result<Page, Miss> {
        // The contract requires N bytes of `/bytes/N` (subjects/REQUIREMENTS.md).
        let wanted = path.split('?').next().and_then(|path| path.strip_prefix("/bytes/")?.parse::<usize>().ok());
        for response in [&first, &second] {
            let length = wanted.filter(|length| response.status == 200 && *length != response.body.len());
            if let Some(length) = length {
                return Err(miss(format!("bytes in the body of GET {path}"), length, response.body.len()));
            }
        }
        let body = (first.body == second.body).then_some(first.body);
        Ok(Page { path: path.to_owned(), status: first.status, body })
    }

    pub(super) fn request(&self) -> Vec<u8> {
        get(&self.path)
    }

    pub(super) fn check(&self, response: &Response, head: bool) -> Result<(), Miss> {
        let path = &self.path;
        if response.status != self.status {
            let what = format!("status, unlike that of GET {path} alone");
            return Err(miss(what, self.status, response.status));
        }
        let Some(body) = &self.body else { return Ok(()) };
        if head {
            // A server may omit the length here, but a wrong length is an error (RFC 9110, section 8.6).
            let length = body.len().to_string();
            let Some(is) = response.header("content-length").into_iter().find(|is| *is != length) else {
                return Ok(());
            };
            return Err(miss(format!("`Content-Length` of HEAD {path}, unlike that of GET"), length, is));
        }
        differ(&format!("body, unlike that of GET {path} alone"), body, &response.body)
    }
}

pub(super) fn miss(message: impl Into<String>, expected: impl ToString, received: impl ToString) -> Miss {
    let (expected, received) = (Some(expected.to_string()), Some(received.to_string()));
    Miss { message: message.into(), expected, received, ..Miss::default() }
}

pub(super) fn differ(what: &str, expected: &[u8], received: &[u8]) -> Result<(), Miss> {
    if expected == received {
        return Ok(());
    }
    let same = expected.iter().zip(received).take_while(|(one, other)| one == other).count();
    let from = same.saturating_sub(20);
    let shown =
        |bytes: &[u8]| format!("{}{}", if from > 0 { "..." } else { "" }, excerpt(&bytes[from.min(bytes.len())..]));
    Err(Miss { differs_at: Some(same as u64), ..miss(what, shown(expected), shown(received)) })
}
