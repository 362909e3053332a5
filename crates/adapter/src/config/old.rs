//! Configurations of Whip's adapters: the keys `name spec interpreters server_proxies client_proxies`, and proxy strings.
//!
//! ```text
//! proxy = host:port { "fromhttppath" 'PATH' | "knownbyport" PORT | "mapstoservice" SERVICE | "proxiedby" host:port }
//! interpreter = thrift(idl='FILE', ns=..., protocol='binary|compact|binary-https', transport='framed|buffered') | soap(wsdl='FILE') | rest()
//! ```
//!
//! `redirector_port` becomes the port of the admin address, whose `/resolve` does what the redirector did. What has no meaning here
//! (`ns`, `cert`, `protocol`, which is told from the bytes) is passed over as Whip did.

use super::section::Section;
use super::{Config, Consuming, Family, Protocol, Providing, checks, limits, nothing, reports, store, tls};
use crate::endpoint::{Pattern, is_address};

pub(super) fn config(section: &Section<'_>) -> Config {
    section.only(&["name", "redirector_port", "spec", "interpreters", "server_proxies", "client_proxies", "allow"]);
    let name = section.needed("name");
    section.needed("spec");
    let protocols = interpreters(section);
    let mut providing = Vec::new();
    for (text, place_key) in strings(section, "server_proxies") {
        match proxy(&text) {
            Ok(proxy) => {
                let host = "0.0.0.0";
                let plain = proxy.known_by.map(|port| format!("{host}:{port}"));
                let adapters =
                    proxy.proxied_by.as_deref().and_then(|at| at.rsplit_once(':')).map(|at| format!("{host}:{}", at.1));
                let own = proxy.address.rsplit_once(':').map_or("", |parts| parts.0);
                let known = proxy.known_by.map_or(proxy.address.clone(), |port| format!("{own}:{port}"));
                providing.push(Providing {
                    endpoint: identity(&protocols, &proxy.service, &known, proxy.path.as_deref()),
                    service: proxy.service,
                    forward: proxy.address,
                    plain,
                    adapters,
                    adapters_at: proxy.proxied_by,
                });
            }
            Err(wrong) => section.mistake(place_key, format!("`{text}`: {wrong}"), Some(PROXY.to_owned())),
        }
    }
    let mut consuming = Vec::new();
    for (text, place_key) in strings(section, "client_proxies") {
        match proxy(&text) {
            Ok(proxy) => consuming.push(Consuming {
                endpoint: identity(&protocols, &proxy.service, &proxy.address, proxy.path.as_deref()),
                service: proxy.service,
                listen: None,
                peer: proxy.proxied_by,
                labels: Vec::new(),
            }),
            Err(wrong) => section.mistake(place_key, format!("`{text}`: {wrong}"), Some(PROXY.to_owned())),
        }
    }
    let port = section.count("redirector_port", 10_123, 0, 65_535);
    // Whip dials whatever it learns; who moves a configuration over expects that it still works.
    let allow =
        if section.has("allow") { section.patterns("allow") } else { Pattern::parse("*:*").into_iter().collect() };
    Config {
        name,
        contract: section.path("spec").unwrap_or_default(),
        protocols,
        providing,
        consuming,
        admin: Some(format!("127.0.0.1:{port}")),
        proxy: None,
        local: [127, 0, 0, 1].into(),
        allow,
        store: store(nothing()),
        reports: reports(nothing()),
        checks: checks(nothing()),
        limits: limits(nothing()),
        tls: tls(nothing()),
        calls: None,
        threads: 1,
    }
}

const PROXY: &str = "as `adder:8001 mapstoservice Adder proxiedby adder:38001`";

fn strings<'k>(section: &Section<'_>, key: &'k str) -> Vec<(String, &'k str)> {
    section.texts(key).into_iter().map(|(text, _)| (text, key)).collect()
}

/// The endpoint as contracts name it: a URL for what is carried by HTTP.
fn identity(protocols: &[Protocol], service: &str, address: &str, path: Option<&str>) -> String {
    match protocols.iter().find(|protocol| protocol.service == service).map(|protocol| protocol.family) {
        Some(Family::Thrift) | None => address.to_owned(),
        Some(Family::ThriftHttp) => format!("https://{address}{}", path.unwrap_or("/")),
        Some(Family::Soap | Family::Rest) => format!("http://{address}{}", path.unwrap_or("/")),
    }
}

#[derive(Debug, Default, PartialEq)]
struct Proxy {
    address: String,
    service: String,
    proxied_by: Option<String>,
    known_by: Option<u16>,
    path: Option<String>,
}

/// Reads a proxy string.
fn proxy(text: &str) -> Result<Proxy, String> {
    let mut words = text.split_whitespace();
    let address = words.next().unwrap_or_default();
    if !is_address(address) {
        return Err(format!("`{address}` is no `host:port`"));
    }
    let mut proxy = Proxy { address: address.to_owned(), ..Proxy::default() };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("nothing behind `{word}`"))?;
        match word {
            "mapstoservice" => proxy.service = value.to_owned(),
            "proxiedby" if is_address(value) => proxy.proxied_by = Some(value.to_owned()),
            "proxiedby" => return Err(format!("`{value}` is no `host:port`")),
            "knownbyport" => proxy.known_by = Some(value.parse().map_err(|_| format!("`{value}` is no port"))?),
            "fromhttppath" => proxy.path = Some(value.trim_matches(['\'', '"']).to_owned()),
            other => return Err(format!("`{other}` is not understood")),
        }
    }
    if proxy.service.is_empty() {
        return Err("`mapstoservice` is missing".to_owned());
    }
    Ok(proxy)
}

fn interpreters(section: &Section<'_>) -> Vec<Protocol> {
    let Some(table) = section.section("interpreters") else { return Vec::new() };
    let mut protocols = Vec::new();
    for service in section.keys_of("interpreters") {
        let Some(text) = table.text(&service) else { continue };
        let Some((kind, arguments)) = text.trim().strip_suffix(')').and_then(|text| text.split_once('(')) else {
            table.mistake(
                &service,
                format!("`{text}` is no interpreter"),
                Some("as `thrift(idl='a.thrift')`".to_owned()),
            );
            continue;
        };
        let argument = |name: &str| {
            arguments.split(',').find_map(|pair| {
                let (key, value) = pair.split_once('=')?;
                (key.trim() == name).then(|| value.trim().trim_matches(['\'', '"']).to_owned())
            })
        };
        let (family, file) = match kind.trim() {
            "thrift" if argument("protocol").as_deref() == Some("binary-https") => (Family::ThriftHttp, Some("idl")),
            "thrift" => (Family::Thrift, Some("idl")),
            "soap" => (Family::Soap, Some("wsdl")),
            "rest" => (Family::Rest, None),
            other => {
                let hint = "one of `thrift`, `soap`, `rest`".to_owned();
                table.mistake(&service, format!("there is no interpreter `{other}`"), Some(hint));
                continue;
            }
        };
        let schema = file.and_then(argument);
        if let Some(missing) = file.filter(|_| schema.is_none()) {
            table.mistake(&service, format!("`{missing}` is missing"), None);
        }
        let schema = schema.map(|path| section.joined(&path));
        protocols.push(Protocol { schema_service: service.clone(), service, family, schema });
    }
    protocols
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_strings() {
        let all =
            "discovery:7999 mapstoservice AdderDiscovery proxiedby discovery:38000 knownbyport 8000 fromhttppath '/p'";
        let expect = Proxy {
            address: "discovery:7999".to_owned(),
            service: "AdderDiscovery".to_owned(),
            proxied_by: Some("discovery:38000".to_owned()),
            known_by: Some(8000),
            path: Some("/p".to_owned()),
        };
        assert_eq!(proxy(all), Ok(expect));
        for (text, says) in [
            ("", "no `host:port`"),
            ("a:1", "`mapstoservice` is missing"),
            ("a:1 mapstoservice", "nothing behind"),
            ("a:1 mapstoservice A using b", "`using`"),
            ("a:1 mapstoservice A knownbyport x", "no port"),
            ("a:1 mapstoservice A proxiedby x", "no `host:port`"),
        ] {
            let wrong = proxy(text).unwrap_err();
            assert!(wrong.contains(says), "{text}: {wrong}");
        }
    }
}
