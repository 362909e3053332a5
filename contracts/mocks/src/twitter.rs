//! A mock of Twitter's REST API: friends, timelines and retweets.

use std::sync::atomic::{AtomicU64, Ordering};

use codecs::json;
use codecs::rest_path_and_query::parameters;
use codecs::value::Value;
use hyper::header::ALLOW;

use super::{Identities, MockAnswer, MockRequest, Service, digest, respond, with_field};

const FRIENDS: &str = "/1.1/friends/list.json";
const TIMELINE: &str = "/1.1/statuses/user_timeline.json";
const RETWEET: &str = "/1.1/statuses/retweet/__id__.json";
const PARAMETERS_MAX: usize = 64;
const CREATED: &str = "Thu Jan 18 00:10:45 +0000 2007";
const COUNT_MAX: u64 = 200;

/// Number of ids per kind. Two digits of an id encode the kind, and ten digits follow.
const IDS: u64 = 10_000_000_000;

/// A mock of Twitter. Fresh ids derive from the request's number, reused ids from the requested user.
#[derive(Debug, Default)]
pub struct Twitter {
    identities: Identities,
    requests: AtomicU64,
}

impl Twitter {
    /// Creates a mock with fresh or reused ids.
    pub fn new(identities: Identities) -> Twitter {
        Twitter { identities, requests: AtomicU64::new(0) }
    }
}

impl Service for Twitter {
    fn answer(&self, request: &MockRequest) -> MockAnswer {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        if ![FRIENDS, TIMELINE, RETWEET].contains(&path) {
            return error(404, 34, "Sorry, that page does not exist.");
        }
        if request.method() != "GET" {
            return with_field(error(405, 86, "This method requires a GET."), ALLOW, "GET");
        }
        if !request.headers().contains_key("authorization") {
            return error(401, 215, "Bad Authentication data.");
        }
        let Some(parameters) = parameters(query, PARAMETERS_MAX) else {
            return error(400, 25, "Query parameters are not UTF-8, or too many.");
        };
        let first = |name: &str| parameters.iter().find(|pair| pair.0 == name).map(|pair| pair.1.as_ref());
        let given = |name: &str| first(name).filter(|value| !value.is_empty());
        let count = match given("count").map(str::parse::<u64>) {
            None => COUNT_MAX,
            Some(Ok(count)) => count.min(COUNT_MAX),
            Some(Err(_)) => return error(400, 44, "count parameter is invalid."),
        };
        let user = given("user_id").or(given("screen_name"));
        let number = match (self.identities, user) {
            (Identities::Reused, Some(user)) => digest(1, user) % IDS,
            _ => number,
        };
        let one = |row: Value| Value::List(if count == 0 { Vec::new() } else { vec![row] });
        let required = if path == RETWEET { given("tweet_id") } else { user };
        if required.is_none() {
            return error(400, 25, "Query parameters are missing.");
        }
        let body = match path {
            FRIENDS => {
                let user = Value::record([("id_str", format!("11{number:010}").into())]);
                Value::record([("users", one(user))])
            }
            TIMELINE => {
                one(Value::record([("created_at", CREATED.into()), ("id_str", format!("21{number:010}").into())]))
            }
            _ => Value::List(Vec::new()),
        };
        answer(200, &body)
    }
}

fn answer(status: u16, body: &Value) -> MockAnswer {
    respond(status, "application/json; charset=utf-8", json::compose(body))
}

fn error(status: u16, code: i64, message: &str) -> MockAnswer {
    let one = Value::record([("code", Value::Integer(code)), ("message", message.into())]);
    answer(status, &Value::record([("errors", Value::List(vec![one]))]))
}

#[cfg(test)]
mod tests {
    use hyper::body::Bytes;

    use super::*;

    #[test]
    fn replies_match_the_case_study() {
        let twitter = Twitter::default();
        let (signed, unsigned) = ("authorization", "x-unsigned");
        let (friends, timeline, retweet) = (FRIENDS, TIMELINE, RETWEET);
        for (method, target, header, status, body) in [
            ("GET", format!("{friends}?user_id=0"), signed, 200, r#"{"users":[{"id_str":"110000000000"}]}"#),
            (
                "GET",
                format!("{timeline}?user_id=110000000000"),
                signed,
                200,
                r#"[{"created_at":"Thu Jan 18 00:10:45 +0000 2007","id_str":"210000000001"}]"#,
            ),
            ("GET", format!("{retweet}?tweet_id=210000000001"), signed, 200, "[]"),
            ("GET", format!("{friends}?screen_name=x&count=0"), signed, 200, r#"{"users":[]}"#),
            (
                "GET",
                format!("{friends}?screen_name=x&count=5"),
                signed,
                200,
                r#"{"users":[{"id_str":"110000000004"}]}"#,
            ),
            ("GET", format!("{friends}?user_id=0"), unsigned, 401, "Bad Authentication data."),
            ("GET", friends.to_owned(), signed, 400, "Query parameters are missing."),
            ("GET", format!("{friends}?user_id="), signed, 400, "Query parameters are missing."),
            ("GET", format!("{friends}?user_id=1&count=-1"), signed, 400, "count parameter is invalid."),
            ("GET", format!("{friends}?user_id=%ff"), signed, 400, "not UTF-8"),
            ("GET", retweet.to_owned(), signed, 400, "Query parameters are missing."),
            ("POST", format!("{friends}?user_id=0"), signed, 405, "requires a GET"),
            ("GET", "/".to_owned(), signed, 404, "does not exist"),
            ("GET", format!("{friends}/?user_id=1"), signed, 404, "does not exist"),
        ] {
            let request = hyper::Request::builder().method(method).uri(&target).header(header, "OAuth x");
            let answer = twitter.answer(&request.body(Bytes::new()).unwrap());
            let text = std::str::from_utf8(answer.body()).unwrap();
            assert_eq!(answer.status(), status, "{method} {target}: {text}");
            assert!(if status == 200 { text == body } else { text.contains(body) }, "{method} {target}: {text}");
        }
    }

    #[test]
    fn reused_identities_repeat_for_the_same_request() {
        let ask = |twitter: &Twitter, target: &str| {
            let request = hyper::Request::builder().uri(target).header("authorization", "OAuth x");
            twitter.answer(&request.body(Bytes::new()).unwrap()).into_body()
        };
        for identities in [Identities::Fresh, Identities::Reused] {
            let twitter = Twitter::new(identities);
            for path in ["/1.1/friends/list.json", "/1.1/statuses/user_timeline.json"] {
                let of = |user: &str| ask(&twitter, &format!("{path}?user_id={user}"));
                let (first, other, again) = (of("3"), of("6"), of("3"));
                assert_eq!(first.len(), other.len());
                assert_ne!(first, other);
                assert_eq!(first == again, identities == Identities::Reused, "{path}");
            }
        }
    }
}
