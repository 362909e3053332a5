//! Calls to endpoints that replies introduced are checked, whatever the route and path.

use std::io::BufReader;

use super::raw_http_peers::{self, Authority, contract_file, exchange, request, response};
use super::world::{Adapter, get};

const SHOP: &str = r#"contract 1

service Shop {
    GET "/store"() { reply identifies Items at result.body.items }
}

service Items {
    GET "/{id}"(id) { ensures there: result.code == 200 }
}
"#;

struct Shop {
    shop: String,
    items: String,
    folder: tempfile::TempDir,
}

impl Shop {
    fn new(tls: Option<&raw_http_peers::Made>) -> Self {
        let port = raw_http_peers::serve(tls, |_| (response(404, "text/plain", "none"), false));
        let items = format!("{}://127.0.0.1:{port}/v1/items", if tls.is_some() { "https" } else { "http" });
        let told = items.clone();
        let port = raw_http_peers::serve(None, move |_| {
            (response(200, "application/json", format!("{{\"items\": \"{told}\"}}")), false)
        });
        Self { shop: format!("http://127.0.0.1:{port}"), items, folder: tempfile::tempdir().unwrap() }
    }

    fn adapter(&self, more: &str) -> Adapter {
        let file = contract_file(self.folder.path(), SHOP);
        Adapter::from_text(&format!(
            "name = 'client'\ncontract = '{file}'\nadmin = '127.0.0.1:0'\nproxy = '127.0.0.1:0'\nallow = ['127.0.0.1:*']\n\
             [[consuming]]\nservice = 'Shop'\nendpoint = '{}'\n\
             [protocols.Shop]\nkind = 'rest'\n[protocols.Items]\nkind = 'rest'\n{more}",
            self.shop
        ))
    }

    fn authority(&self) -> &str {
        self.items.split("://").nth(1).unwrap().split('/').next().unwrap()
    }

    /// Sends a request to the shop through the proxy, like a client without any other configuration.
    fn learn(&self, adapter: &Adapter) {
        let target = format!("{}/store", self.shop);
        assert_eq!(raw_http_peers::ask(&adapter.at("proxy"), &request("GET", &target, &[], b"")).status(), 200);
    }
}

#[track_caller]
fn blamed(adapter: &Adapter, calls: usize) {
    let told = adapter.told();
    assert_eq!(told.matches("Failed postcondition result.code == 200").count(), calls, "{told}");
    let metrics = adapter.running.as_ref().unwrap().metrics();
    assert!(metrics.contains("unchecked_total{reason=\"unlisted\"} 0\n"), "{metrics}");
    assert!(metrics.contains("unchecked_total{reason=\"encrypted\"} 0\n"), "{metrics}");
}

#[test]
fn forward_proxy_checks_calls_to_learned_endpoints() {
    let shop = Shop::new(None);
    let adapter = shop.adapter("");
    shop.learn(&adapter);
    let got = raw_http_peers::ask(&adapter.at("proxy"), &request("GET", &format!("{}/7", shop.items), &[], b""));
    assert_eq!(got.status(), 404);
    blamed(&adapter, 1);
}

#[test]
fn tunnels_to_learned_endpoints_are_checked() {
    let shop = Shop::new(None);
    let adapter = shop.adapter("");
    shop.learn(&adapter);
    let (stream, head) = raw_http_peers::tunnel(&adapter.at("proxy"), shop.authority());
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut tunnel: raw_http_peers::Reader = BufReader::new(Box::new(stream));
    let call = request("GET", "/v1/items/7", &[], b"").to_bytes(1);
    assert_eq!(exchange(&mut tunnel, &call, false).unwrap().status(), 404);
    blamed(&adapter, 1);
}

#[test]
fn https_tunnels_are_checked_with_a_matching_certificate() {
    let made = Authority::new().make("items.test");
    let shop = Shop::new(Some(&made));
    let listen = format!("[tls.listen]\n{}", made.identity());
    let adapter = shop.adapter(&format!("[tls.upstream]\nca = '{}'\n{listen}", made.ca().display()));
    shop.learn(&adapter);
    let (stream, _) = raw_http_peers::tunnel(&adapter.at("proxy"), shop.authority());
    let call = request("GET", "/v1/items/7", &[], b"").to_bytes(1);
    assert_eq!(exchange(&mut raw_http_peers::tls_over(stream, &made, None), &call, false).unwrap().status(), 404);
    blamed(&adapter, 1);
    // Without a certificate for its listeners, the adapter passes TLS through unchecked.
    let adapter = shop.adapter(&format!("[tls.upstream]\nca = '{}'\n", made.ca().display()));
    shop.learn(&adapter);
    let (stream, _) = raw_http_peers::tunnel(&adapter.at("proxy"), shop.authority());
    assert_eq!(exchange(&mut raw_http_peers::tls_over(stream, &made, None), &call, false).unwrap().status(), 404);
    let metrics = adapter.running.as_ref().unwrap().metrics();
    assert!(metrics.contains("unchecked_total{reason=\"encrypted\"} 1\n"), "{metrics}");
}

#[test]
fn resolving_a_longer_path_leads_through_the_adapter() {
    let shop = Shop::new(None);
    let adapter = shop.adapter("");
    let resolve = |path: &str| {
        let answer = get(&adapter.at("admin"), &format!("/resolve?endpoint={}{path}", shop.items));
        serde_json::from_str::<serde_json::Value>(&answer).unwrap()
    };
    assert_eq!(resolve("/7")["intercepted"], false, "nothing is known of it");
    shop.learn(&adapter);
    let resolved = resolve("/7");
    assert_eq!((&resolved["intercepted"], &resolved["service"]), (&true.into(), &"Items".into()), "{resolved}");
    let at = resolved["address"].as_str().unwrap();
    assert_eq!(raw_http_peers::ask(at, &request("GET", "/v1/items/7", &[], b"")).status(), 404);
    blamed(&adapter, 1);
}

#[test]
fn learned_endpoints_survive_a_restart() {
    let shop = Shop::new(None);
    let store = format!("[store]\npath = '{}'\n", shop.folder.path().join("store").display());
    shop.learn(&shop.adapter(&store));
    let adapter = shop.adapter(&store);
    raw_http_peers::ask(&adapter.at("proxy"), &request("GET", &format!("{}/7", shop.items), &[], b""));
    blamed(&adapter, 1);
}

#[test]
fn reports_and_counts_missing_listeners() {
    let shop = Shop::new(None);
    let adapter = shop.adapter("[limits]\nlisteners = 0\n");
    shop.learn(&adapter);
    for _ in 0..2 {
        assert_eq!(adapter.resolve(&shop.items), shop.authority(), "directly");
    }
    let told = adapter.told();
    assert!(told.contains("`limits.listeners` is reached") && told.contains(&shop.items), "{told}");
    let metrics = adapter.running.as_ref().unwrap().metrics();
    assert!(metrics.contains("quintain_adapter_listeners_over_total 2\n"), "{metrics}");
    // Calls through the proxy are checked without a listener.
    raw_http_peers::ask(&adapter.at("proxy"), &request("GET", &format!("{}/7", shop.items), &[], b""));
    blamed(&adapter, 1);
}
