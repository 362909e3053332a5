//! gRPC calls as HTTP/2 requests. Source: gRPC over HTTP2 (grpc/grpc, doc/PROTOCOL-HTTP2.md).

use config::Invalid;

use crate::spec::HttpRequest;

/// Names of the status codes, in order. Source: grpc/grpc, doc/statuscodes.md.
const STATUS_NAMES: &str = "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS \
    PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE \
    DATA_LOSS UNAUTHENTICATED";

/// A status with its name, such as `grpc-status 5 (NOT_FOUND)`.
pub fn status_text(status: u32) -> String {
    let name = STATUS_NAMES.split(' ').nth(status as usize).map_or(String::new(), |name| format!(" ({name})"));
    format!("grpc-status {status}{name}")
}

/// Turns a request whose body is an encoded message into a gRPC call. Fails as [`prepare_messages`] does.
pub fn prepare(mut request: HttpRequest) -> Result<HttpRequest, Invalid> {
    let message = std::mem::take(&mut request.body);
    prepare_messages(request, &[message])
}

/// Turns a request whose body is JSON into a gRPC call. `encode` takes the path and the body, and returns the encoded
/// messages. Fails if the body is not UTF-8, if `encode` fails, or as [`prepare_messages`] does.
pub fn prepare_json(
    mut request: HttpRequest,
    encode: impl FnOnce(&str, &str) -> Result<Vec<Vec<u8>>, String>,
) -> Result<HttpRequest, Invalid> {
    let json = String::from_utf8(std::mem::take(&mut request.body));
    let json = json.map_err(|_| Invalid::new("a message in JSON must be UTF-8"))?;
    let messages = encode(&request.target, &json).map_err(Invalid::new)?;
    prepare_messages(request, &messages)
}

/// Turns a request into a call that sends `messages`: adds their prefixes, `content-type` and `te`. Fails if the method
/// is not `POST`, the path lacks a service or method, or a message has values, which would make encoded lengths wrong.
pub fn prepare_messages(mut request: HttpRequest, messages: &[Vec<u8>]) -> Result<HttpRequest, Invalid> {
    let path = request.target.strip_prefix('/').and_then(|path| path.split_once('/'));
    if !path.is_some_and(|(service, method)| !service.is_empty() && !method.is_empty() && !method.contains('/')) {
        let text = format!("`{}` does not name a gRPC method", request.target.escape_debug());
        return Err(Invalid::new(text).hint("the path is `/package.Service/Method`"));
    }
    if request.method != "POST" {
        let text = format!("a gRPC call is a `POST`, not a `{}`", request.method);
        return Err(Invalid::new(text).hint("drop the method"));
    }
    if messages.iter().any(|message| message.windows(2).any(|two| two == b"{{")) {
        let text = "a gRPC message cannot have values in `{{…}}`";
        let hint = "put values into headers, or name several messages in a mix";
        return Err(Invalid::new(text).hint(hint));
    }
    for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")] {
        if !request.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            request.headers.push((name.to_owned(), value.to_owned()));
        }
    }
    let mut body = Vec::new();
    for message in messages {
        let length = u32::try_from(message.len());
        let length = length.map_err(|_| Invalid::new(format!("a gRPC message of {} bytes", message.len())))?;
        // A message's prefix: the compression flag and the length.
        body.push(0);
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(message);
    }
    Ok(HttpRequest { body, ..request })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str, target: &str, body: &[u8]) -> HttpRequest {
        let headers = vec![("TE".to_owned(), "trailers".to_owned())];
        let (method, target) = (method.to_owned(), target.to_owned());
        HttpRequest { weight: 1, method, target, headers, body: body.to_vec(), name: None }
    }

    #[test]
    fn a_call_has_a_prefix_and_headers() {
        let request = prepare(call("POST", "/grpc.health.v1.Health/Check", b"\x0a\x01a")).unwrap();
        assert_eq!(request.body, b"\0\0\0\0\x03\x0a\x01a");
        let headers = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
        assert_eq!(headers, ["TE: trailers", "content-type: application/grpc"]);
        assert_eq!(prepare(call("POST", "/a.B/C", b"")).unwrap().body, [0; 5]);
        assert_eq!(
            (status_text(5).as_str(), status_text(99).as_str()),
            ("grpc-status 5 (NOT_FOUND)", "grpc-status 99")
        );
    }

    #[test]
    fn other_requests_are_refused() {
        for (request, why) in [
            (call("GET", "/a.B/C", b""), "a gRPC call is a `POST`, not a `GET`"),
            (call("POST", "/", b""), "`/` does not name a gRPC method"),
            (call("POST", "/a.B", b""), "`/a.B` does not name a gRPC method"),
            (call("POST", "/a/b/c", b""), "`/a/b/c` does not name a gRPC method"),
            (call("POST", "/a.B/C", b"\x0a\x05{{x}}"), "a gRPC message cannot have values in `{{…}}`"),
        ] {
            assert_eq!(prepare(request).unwrap_err().message, why);
        }
    }
}
