//! A mock of a web shop: login, products and orders, as JSON.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use codecs::json;
use codecs::rest_path_and_query;
use codecs::value::Value;
use hyper::header::{LOCATION, SET_COOKIE};

use super::{MockAnswer, MockRequest, Service, digest, respond, respond_only, with_field};

const PRODUCTS: u64 = 100;
const PAGE: u64 = 10;
const PARAMETERS_MAX: usize = 16;
const TEXT_MAX: usize = 64;
const LOGIN: &str = "<!doctype html><title>Shop</title><form action=\"/login\" method=\"post\">\
                     <input name=\"user\"><input type=\"password\" name=\"password\"></form>\n";

/// A shop with a login, a form with an anti-forgery token, a paginated list, and orders. It stores only the counts of
/// `/stats`: a session id contains a digest that proves it, and an order id contains the product.
#[derive(Debug, Default)]
pub struct Shop {
    logins: AtomicU64,
    pages: AtomicU64,
    orders: AtomicU64,
    reads: AtomicU64,
    refused: AtomicU64,
    wrong_one_in: u64,
    expired: Option<u64>,
}

impl Shop {
    /// Creates a shop. Every `wrong_one_in`th order is read back with a wrong total; 0 means none. The session of login
    /// number `expired` (from 1) counts as expired.
    pub fn new(wrong_one_in: u64, expired: Option<u64>) -> Shop {
        Shop { wrong_one_in, expired, ..Shop::default() }
    }

    fn login(&self, request: &MockRequest) -> MockAnswer {
        if request.method() != "POST" {
            return respond_only("POST");
        }
        let Some(_) = parameters(request.body()).get("user").filter(|user| !user.is_empty()) else {
            return refusal(400, "a login needs a `user`");
        };
        let number = self.logins.fetch_add(1, Relaxed) + 1;
        let session = format!("{number}-{:x}", digest(7, &number.to_string()));
        let form = format!(
            "<!doctype html><form action=\"/orders\" method=\"post\">\
             <input type=\"hidden\" name=\"csrf\" value=\"{:x}\"></form>\n",
            digest(8, &session)
        );
        let cookie = format!("session={session}; Path=/; HttpOnly");
        with_field(respond(200, "text/html; charset=utf-8", form), SET_COOKIE, &cookie)
    }

    fn session<'r>(&self, request: &'r MockRequest) -> Option<&'r str> {
        let cookies = request.headers().get("cookie")?.to_str().ok()?;
        let session = cookies.split("; ").find_map(|cookie| cookie.strip_prefix("session="))?;
        let (number, proof) = session.split_once('-')?;
        let is_expired = self.expired.is_some_and(|expired| number.parse() == Ok(expired));
        (proof == format!("{:x}", digest(7, number)) && !is_expired).then_some(session)
    }

    fn products(&self, query: &BTreeMap<String, String>) -> MockAnswer {
        let page = query.get("page").map_or(Ok(1), |page| page.parse::<u64>());
        let Some(page) = page.ok().filter(|page| (1..=PRODUCTS / PAGE).contains(page)) else {
            return refusal(404, "no such page");
        };
        self.pages.fetch_add(1, Relaxed);
        let product = |id| Value::record([("id", integer(id)), ("price", integer(price(id)))]);
        let products = ((page - 1) * PAGE + 1..=page * PAGE).map(product).collect();
        let next = if page < PRODUCTS / PAGE { integer(page + 1) } else { Value::Null };
        answer(200, Value::record([("products", Value::List(products)), ("next", next)]))
    }

    fn order(&self, session: &str, form: &BTreeMap<String, String>) -> MockAnswer {
        if form.get("csrf").is_none_or(|token| *token != format!("{:x}", digest(8, session))) {
            return refusal(403, "wrong token");
        }
        let product = form.get("product").and_then(|product| product.parse::<u64>().ok());
        let Some(product) = product.filter(|product| (1..=PRODUCTS).contains(product)) else {
            return refusal(400, "no such product");
        };
        let id = (self.orders.fetch_add(1, Relaxed) + 1) * 1000 + product;
        with_field(answer(201, receipt(id, 0)), LOCATION, &format!("/orders/{id}"))
    }

    fn receipt(&self, id: u64) -> Value {
        let is_wrong = self.wrong_one_in > 0 && (id / 1000).is_multiple_of(self.wrong_one_in);
        receipt(id, u64::from(is_wrong))
    }

    fn answer_member(&self, request: &MockRequest) -> MockAnswer {
        let Some(session) = self.session(request) else { return refusal(401, "log in first") };
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let order = path.strip_prefix("/orders/").and_then(|id| id.parse::<u64>().ok());
        match (request.method().as_str(), path, order) {
            ("GET", "/products", _) => self.products(&parameters(query.as_bytes())),
            ("POST", "/orders", _) => self.order(session, &parameters(request.body())),
            ("GET", _, Some(id)) if (1..=PRODUCTS).contains(&(id % 1000)) && id >= 1000 => {
                self.reads.fetch_add(1, Relaxed);
                answer(200, self.receipt(id))
            }
            _ => refusal(404, "no such page"),
        }
    }
}

impl Service for Shop {
    fn answer(&self, request: &MockRequest) -> MockAnswer {
        let answer = match request.uri().path() {
            "/" => respond(200, "text/html; charset=utf-8", LOGIN),
            "/login" => self.login(request),
            "/stats" => {
                let counts = [
                    ("logins", &self.logins),
                    ("pages", &self.pages),
                    ("orders", &self.orders),
                    ("reads", &self.reads),
                    ("refused", &self.refused),
                ];
                answer(200, Value::record(counts.map(|(name, count)| (name, integer(count.load(Relaxed))))))
            }
            _ => self.answer_member(request),
        };
        self.refused.fetch_add(u64::from(answer.status().as_u16() >= 400), Relaxed);
        answer
    }
}

fn receipt(id: u64, extra: u64) -> Value {
    let (product, total) = (id % 1000, price(id % 1000) + extra);
    Value::record([("id", integer(id)), ("product", integer(product)), ("total", integer(total))])
}

fn price(product: u64) -> u64 {
    100 + product * 37 % 900
}

fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Parameters of a form or query. If a name is repeated, its last value counts.
fn parameters(form: &[u8]) -> BTreeMap<String, String> {
    let form = std::str::from_utf8(form).unwrap_or_default();
    let all = rest_path_and_query::parameters(form, PARAMETERS_MAX).unwrap_or_default();
    let short = all.into_iter().filter(|(_, value)| value.len() <= TEXT_MAX);
    short.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

fn answer(status: u16, body: Value) -> MockAnswer {
    respond(status, "application/json", json::compose(&body))
}

fn refusal(status: u16, text: &str) -> MockAnswer {
    answer(status, Value::record([("error", text.into())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(shop: &Shop, method: &str, target: &str, cookie: &str, body: &str) -> (u16, String, Option<String>) {
        let request = hyper::Request::builder().method(method).uri(target).header("cookie", cookie);
        let (head, body) = shop.answer(&request.body(body.to_owned().into()).unwrap()).into_parts();
        let field = head.headers.get(SET_COOKIE).or(head.headers.get(LOCATION));
        let field = field.map(|value| value.to_str().unwrap().to_owned());
        (head.status.as_u16(), String::from_utf8(body.into()).unwrap(), field)
    }

    #[test]
    fn a_session_logs_in_lists_and_orders() {
        let shop = Shop::new(0, None);
        let (status, html, cookie) = ask(&shop, "POST", "/login", "", "user=a");
        let cookie = cookie.unwrap();
        let cookie = format!("x=1; {}", cookie.split(';').next().unwrap());
        let csrf = html.split("value=\"").nth(1).unwrap().split('"').next().unwrap();
        let (_, list, _) = ask(&shop, "GET", "/products?page=10", &cookie, "");
        assert!(status == 200 && list.contains(r#""id":100"#) && list.contains(r#""next":null"#), "{list}");
        let (status, receipt, location) = ask(&shop, "POST", "/orders", &cookie, &format!("csrf={csrf}&product=7"));
        assert_eq!((status, location.as_deref()), (201, Some("/orders/1007")));
        assert_eq!(receipt, r#"{"id":1007,"product":7,"total":359}"#);
        assert_eq!(ask(&shop, "GET", "/orders/1007", &cookie, "").1, receipt);
        for (method, target, cookie, body, status) in [
            ("POST", "/login", "", "", 400),
            ("GET", "/login", "", "", 405),
            ("GET", "/products", "", "", 401),
            ("GET", "/products", "session=1-0", "", 401),
            ("GET", "/products?page=11", cookie.as_str(), "", 404),
            ("POST", "/orders", cookie.as_str(), "csrf=1&product=7", 403),
            ("GET", "/orders/1000", cookie.as_str(), "", 404),
        ] {
            assert_eq!(ask(&shop, method, target, cookie, body).0, status, "{method} {target}");
        }
        let stats = ask(&shop, "GET", "/stats", "", "").1;
        assert_eq!(stats, r#"{"logins":1,"pages":1,"orders":1,"reads":1,"refused":7}"#);
    }

    #[test]
    fn plants_faults() {
        let shop = Shop::new(2, Some(1));
        let (_, _, cookie) = ask(&shop, "POST", "/login", "", "user=a");
        assert_eq!(ask(&shop, "GET", "/products", cookie.unwrap().split(';').next().unwrap(), "").0, 401);
        assert_eq!((shop.receipt(1007), shop.receipt(2007)).0.get("total"), Some(&integer(359)));
        assert_eq!(shop.receipt(2007).get("total"), Some(&integer(360)));
    }
}
