//! Tests of journeys from recordings.

use serde_json::{Value, json};

use super::*;
use crate::journey::{Call, Journey};

const SHOP: &str = include_str!("../../../../examples/shop.har");

fn imported(name: &str, text: &str) -> (Imported, Journey) {
    let imported = import(name, text).unwrap_or_else(|error| panic!("{error:?}"));
    let journey = parse_journey(&imported.text).unwrap_or_else(|found| panic!("{found:?}\n{}", imported.text));
    (imported, journey)
}

fn headers(headers: &[(&str, &str)]) -> Value {
    headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

/// Returns the entry of a request that started at `second` and took 100 ms, with its JSON response.
fn call(second: u32, method: &str, url: &str, own: &[(&str, &str)], body: &str, answer: &str) -> Value {
    json!({
        "startedDateTime": format!("2026-11-20T09:00:{second:02}.500+01:00"),
        "time": 100,
        "request": {
            "method": method,
            "url": url,
            "headers": headers(own),
            "postData": { "mimeType": "application/json", "text": body },
        },
        "response": { "status": 200, "content": { "mimeType": "application/json", "text": answer } },
    })
}

fn recording(entries: &[Value]) -> String {
    json!({ "log": { "entries": entries } }).to_string()
}

#[test]
fn recording_of_a_shop_becomes_a_journey() {
    let (imported, journey) = imported("shop", SHOP);
    assert_eq!((imported.recorded, imported.steps, imported.values), (14, 6, 4));
    assert_eq!(journey.targets, [("shop".to_owned(), "https://shop.example".to_owned())]);
    insta::assert_snapshot!(imported.text);
}

#[test]
fn values_of_an_api_are_taken_from_its_responses() {
    let token = "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl";
    let bearer = format!("Bearer {token}");
    let own = [("Authorization", bearer.as_str()), ("Accept", "application/json"), ("User-Agent", "x")];
    let (imported, journey) = imported(
        "api",
        &recording(&[
            call(
                1,
                "POST",
                "https://www.api.example/login",
                &[],
                r#"{"user":"eve","password":"1"}"#,
                &json!({ "token": token }).to_string(),
            ),
            call(
                4,
                "GET",
                "https://www.api.example/carts",
                &own,
                "",
                r#"{"carts": [{"id": 7, "size": 2}, {"id": 9}], "next": 2}"#,
            ),
            call(5, "GET", "https://www.api.example/carts?page=2&size=7", &own, "", "{}"),
            call(
                5,
                "POST",
                "https://eu.api.example:8443/carts/9/items",
                &own,
                r#"{ "cart_id" : 9, "count": 7, "q": "{id}" }"#,
                "",
            ),
        ]),
    );
    assert_eq!(journey.targets.iter().map(|target| target.0.as_str()).collect::<Vec<_>>(), ["api", "eu"]);
    let urls = journey.steps.iter().map(|step| step.url.as_str()).collect::<Vec<_>>();
    // `size=7` and `"count": 7` are not IDs of carts.
    assert_eq!(urls, ["{api}/login", "{api}/carts", "{api}/carts?page={next}&size=7", "{eu}/carts/{cart_id}/items"]);
    let take =
        |step: usize| journey.steps[step].take.iter().map(|(name, path)| format!("{name} {path}")).collect::<Vec<_>>();
    assert_eq!(take(0), ["token body.token"]);
    assert_eq!(take(1), ["next body.next", "cart_id body.carts[1].id"]);
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(journey.steps[1].headers, [of("Authorization", "Bearer {token}"), of("Accept", "application/json")]);
    let Call::Rest { method, body, .. } = &journey.steps[3].call else { panic!("{journey:?}") };
    assert_eq!(method, "POST");
    assert_eq!(body.as_deref(), Some(r#"{ "cart_id" : {cart_id}, "count": 7, "q": "{open}id}" }"#));
    assert_eq!(journey.lets, [("open".to_owned(), "{".to_owned())]);
    let thinks = journey.steps.iter().map(|step| step.think.as_str()).collect::<Vec<_>>();
    assert_eq!(thinks, ["", "2.9s", "0.9s", ""]);
    assert!(imported.text.contains("# recorded: a user and a password"), "{}", imported.text);
}

#[test]
fn unknown_tokens_are_marked() {
    let own = [("X-Request-Token", "0f8fad5b-d9cb-469f-a165-70867728950e"), ("X-Mode", "fast")];
    let (imported, _) = imported("x", &recording(&[call(1, "GET", "http://10.0.0.1:8080/a", &own, "", "{}")]));
    let notes = imported.text.lines().filter(|line| line.starts_with("# recorded")).collect::<Vec<_>>();
    assert_eq!(notes, ["# recorded: `X-Request-Token` is in no response before, and may expire"]);
    assert!(imported.text.contains("targets = { site = \"http://10.0.0.1:8080\" }"), "{}", imported.text);
}

#[test]
fn redirects_and_cookies_are_followed() {
    let mut login = call(1, "POST", "https://a.example/login", &[], "", "");
    login["response"]["status"] = 302.into();
    login["response"]["headers"] =
        headers(&[("Location", "/home?visit=17"), ("Set-Cookie", "csrftoken=Zm9yZ2VyeS10b2tlbg; Path=/")]);
    let own = [
        ("X-CSRFToken", "Zm9yZ2VyeS10b2tlbg"),
        ("Origin", "https://a.example"),
        ("Cookie", "csrftoken=Zm9yZ2VyeS10b2tlbg"),
    ];
    let (_, journey) = imported(
        "x",
        &recording(&[
            login,
            call(1, "GET", "https://a.example/home?visit=17", &[], "", "{}"),
            call(2, "DELETE", "https://a.example/visits", &own, "", "{}"),
        ]),
    );
    let [login, home, delete] = &journey.steps[..] else { panic!("{journey:?}") };
    assert_eq!((home.operation.as_str(), home.url.as_str()), ("GET /home", "{a}{location}"));
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(login.take, [of("location", "header.location"), of("csrftoken", "decoded(cookie.csrftoken)")]);
    assert!(matches!(&login.call, Call::Rest { status, .. } if *status == [302]), "{login:?}");
    assert_eq!(delete.headers, [of("X-CSRFToken", "{csrftoken}"), of("Origin", "{a}")]);
}

#[test]
fn hidden_inputs_are_taken_from_pages() {
    let mut page = call(1, "GET", "https://a.example/", &[], "", "");
    page["response"]["content"]["text"] = "<p>größe 17</p>\n<input name=\"größe\" value=\"17\">\
         <input type=\"hidden\" name=\"visit\" value=\"17\"><input type=hidden name=ü x=ß value=0f8fad5bd9cb469f>"
        .into();
    let mut form = call(2, "POST", "https://a.example/order", &[], "visit=17&size=17&t=0f8fad5bd9cb469f", "");
    form["request"]["postData"]["mimeType"] = "application/x-www-form-urlencoded".into();
    let (_, journey) = imported("x", &recording(&[page, form]));
    let Call::Rest { body, .. } = &journey.steps[1].call else { panic!("{journey:?}") };
    assert_eq!(body.as_deref(), Some("visit={visit}&size=17&t={t}"));
    let take = |at: usize| journey.steps[0].take[at].1.as_str();
    assert_eq!(take(0), "match(name=\"visit\" value=\"([^\"]+))");
    assert_eq!(take(1), "match(name=ü x=ß value=([A-Za-z0-9._~-]+))");
}

#[test]
fn forms_may_have_only_parameters() {
    let mut form = call(1, "POST", "https://a.example/", &[], "", "");
    let params = json!([{ "name": "a b", "value": "ü&1" }, { "name": "c", "value": "" }]);
    form["request"]["postData"] = json!({ "mimeType": "application/x-www-form-urlencoded", "params": params });
    let (_, journey) = imported("x", &recording(&[form]));
    let Call::Rest { body, .. } = &journey.steps[0].call else { panic!("{journey:?}") };
    assert_eq!(body.as_deref(), Some("a%20b=%C3%BC%261&c="));
}

#[test]
fn values_are_replaced_in_parts_and_in_parameters_of_json() {
    let answer = r#"{"cart":{"cartId":"0d1c2b3a-77","version":"aXbYc"}}"#;
    let cart = call(1, "POST", "https://a.example/cart", &[], "{}", answer);
    let mut change = call(2, "PATCH", "https://a.example/cart", &[], "", "");
    let params = json!([{ "name": "version", "value": "aXbYc" }, { "name": "quantity", "value": 3 }]);
    change["request"]["postData"] = json!({ "mimeType": "application/json", "params": params });
    let part =
        |name: &str, value: &str| format!("--x1\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let order = |id: &str| [part("cartId", id), part("note", "ring\r\ntwice"), "--x1--\r\n".to_owned()].concat();
    let mut checkout = call(3, "POST", "https://a.example/checkout", &[], &order("0d1c2b3a-77"), "");
    checkout["request"]["postData"]["mimeType"] = "multipart/form-data; boundary=x1".into();
    let (imported, journey) = imported("x", &recording(&[cart, change, checkout]));
    let body = |step: usize| match &journey.steps[step].call {
        Call::Rest { body, .. } => body.clone().unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(body(1), r#"{"quantity":3,"version":"{version}"}"#);
    assert_eq!(body(2), order("{cartid}"));
    assert!(imported.text.contains("\n# The recording has no cookies and no `Authorization`."), "{}", imported.text);
}

#[test]
fn sites_include_their_subdomains() {
    for (host, expected) in [
        ("shop.example", "shop.example"),
        ("api.eu.shop.example", "shop.example"),
        ("www.shop.co.uk", "shop.co.uk"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("a.de", "a.de"),
        ("b.a.de", "a.de"),
    ] {
        assert_eq!(site(host), expected);
    }
}

#[test]
fn bad_recordings_have_errors_with_places() {
    let lines = |text: &str| import("x", text).unwrap_err().message;
    assert_eq!(lines("{\n  \"log\": 5\n}"), "invalid type: integer `5`, expected struct Log at line 2 column 10");
    assert!(lines("{\"log\": {}}").starts_with("missing field `entries` at line 1 column "));
    assert!(lines("").starts_with("EOF while parsing a value at line 1 column 0"));
    let cut = SHOP.lines().take(100).collect::<Vec<_>>().join("\n");
    assert!(lines(&cut).contains(" at line 100 column "), "{}", lines(&cut));
    assert_eq!(lines(&recording(&[])), "the recording has no requests");
    let style = call(1, "GET", "http://a/x.css", &[], "", "");
    assert_eq!(lines(&recording(&[style])), "all 1 requests were left out: static files (1)");
    let odd = call(1, "get", "http://a/", &[], "", "");
    assert!(lines(&recording(&[odd])).starts_with("entry 1 of `log.entries`: `get` is not `GET`"));
    let many = vec![call(1, "GET", "http://a/", &[], "", ""); 1001];
    assert_eq!(lines(&recording(&many)), "1001 requests are left, a journey has at most 1000 steps");
}
