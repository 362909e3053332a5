//! `quintain serve cache` as a process, loaded with every protocol: flags, counters, limits, traces and shutdown.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::{Folder, Server};
use serde_json::{Value, json};

const SCHEMES: [&str; 3] = ["memcached", "redis", "http-cache"];

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn stats<const N: usize>(server: &Server, names: [&str; N]) -> [u64; N] {
    let mut stream = connect(server);
    stream.write_all(b"stats\r\n").unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap).take_while(|line| line != "END");
    let all = lines.collect::<Vec<_>>();
    names.map(|name| {
        let value = all.iter().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        value.unwrap_or_else(|| panic!("{name} in {all:?}")).parse().unwrap()
    })
}

fn load(folder: &Folder, server: &Server, scheme: &str, flags: &[&str]) -> Value {
    let url = format!("{scheme}://127.0.0.1:{}", server.port);
    folder.quintain(&[&["load", &url, "--json"], flags].concat()).expect(0).json()
}

fn number(json: &Value, path: &str) -> u64 {
    json.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} in {json}"))
}

#[test]
fn all_wrong_flags_are_reported_at_once() {
    let folder = Folder::new();
    let wrong = ["serve", "cache", "--maxmem", "1", "--evict", "lur", "--value-max", "1GiB", "--key-max", "0B"];
    let ran = folder.quintain(&[&wrong[..], &["--stall-timeout", "0s", "--protocol", "http", "--cas", "on"]].concat());
    let ran = ran.expect(2);
    for words in ["--maxmem", "--evict", "lru, clock", "--value-max", "--key-max", "--stall-timeout", "--cas on"] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    assert_eq!(ran.out, "");
    for (flags, words) in [
        (&["--maxmem", "100B"][..], "bookkeeping alone needs"),
        (&["--protocol", "mongo"], "possible values: "),
        (&["--connections", "0"], "1..=1000000"),
        (&["--unix", "no/such/folder/socket"], "no/such/folder/socket"),
        (&["--unix", "a", "--port", "1"], "cannot be used with"),
    ] {
        let ran = folder.quintain(&[&["serve", "cache"], flags].concat()).expect(2);
        assert!(ran.err.contains(words), "{flags:?}: {}", ran.err);
    }
    let server = Server::start(&["cache"]);
    let ran = folder.quintain(&["serve", "cache", "-p", &server.port.to_string()]).expect(2);
    assert!(ran.err.contains("= help: `-p 0` picks a free port"), "{}", ran.err);
}

#[test]
fn sigterm_drains_pending_requests() {
    let server = Server::start(&["cache", "--threads", "2"]);
    let mut stream = connect(&server);
    stream.write_all(b"set k 0 0 3\r\nabc\r\n").unwrap();
    stream.read_exact(&mut [0; 8]).unwrap();
    // A half-received request is answered once its second half arrives, even after SIGTERM.
    stream.write_all(b"set l 0 0 3\r\nd").unwrap();
    server.signal("TERM");
    stream.write_all(b"ef\r\nget k l\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert_eq!(said, "STORED\r\nVALUE k 0 3\r\nabc\r\nVALUE l 0 3\r\ndef\r\nEND\r\n");
    let port = server.port;
    assert_eq!(server.end(), "");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

const MIXED: &str = "preset = \"ycsb-a\"\noperations = { get = 70, set = 20, delete = 10 }\nkeys.count = 500\nkeys.popularity = \"uniform\"\n\
                     values.size = { law = \"gamma\", shape = 2, scale = 60 }\n";

#[test]
fn load_and_server_counts_agree_for_every_scheme() {
    let folder = Folder::new();
    folder.write("mixed.toml", MIXED);
    for scheme in SCHEMES {
        let server = Server::start(&["cache", "--threads", "2"]);
        let flags = ["-c", "6", "-t", "2", "-n", "6000", "--warmup", "0s", "--workload", "mixed.toml"];
        let json = load(&folder, &server, scheme, &flags);
        assert_eq!((number(&json, "/requests"), &json["errors"]), (6_000, &json!({})), "{scheme}: {json}");
        let counts = json.pointer("/cache/counts").unwrap();
        let count = |name: &str| number(counts, &format!("/{name}"));
        let ours = [count("hits"), count("misses"), count("sets") + count("fills") + count("rewrites")];
        assert_eq!(ours, stats(&server, ["get_hits", "get_misses", "cmd_set"]), "{scheme}: {json}");
        assert_eq!(count("hits") + count("misses") + count("sets") + count("deletes"), 6_000, "{scheme}");
        // Some deletions find no key.
        let [deleted] = stats(&server, ["delete_hits"]);
        assert!(deleted > 0 && deleted <= count("deletes"), "{scheme}: {deleted}");
        assert!(count("hits") > 2_000 && count("misses") > 200, "{scheme}: {json}");
        assert_eq!(number(counts, "/causes/capacity"), 0, "64 MB hold all of it");
        assert_eq!(number(&json, "/cache/footprint_keys"), 500);
    }
}

#[test]
fn only_values_beyond_the_limit_are_refused() {
    let folder = Folder::new();
    // Half of the keys have values of 300 bytes, but the limit is 200 bytes.
    let sizes = "values.size = { law = \"bimodal\", low = 50, high = 300, high_share = 0.5 }\n";
    folder.write("large.toml", &format!("[load.workload]\npreset = \"ycsb-a\"\nkeys.count = 400\n{sizes}"));
    for scheme in SCHEMES {
        let server = Server::start(&["cache", "--value-max", "200B"]);
        let flags = ["-c", "4", "-n", "4000", "--warmup", "0s", "--workload", "large.toml"];
        let json = load(&folder, &server, scheme, &flags);
        assert_eq!((number(&json, "/requests"), &json["errors"]), (4_000, &json!({})), "{scheme}: {json}");
        let counts = json.pointer("/cache/counts").unwrap();
        let [stored, hits] = stats(&server, ["cmd_set", "get_hits"]);
        assert_eq!((number(counts, "/sets") + number(counts, "/fills"), number(counts, "/hits")), (stored, hits));
        assert!(number(counts, "/refused_sets") > 500 && number(counts, "/causes/refused") > 200, "{scheme}: {json}");
    }
}

/// Trace of 6,000 operations in three seconds on 300 keys of 12 to 61 bytes, each set before it is read.
fn twitter() -> String {
    let mut lines = String::new();
    for index in 0..6_000_u64 {
        let key = index * 7919 % 300;
        let operation = match index {
            0..300 => "set",
            _ if index % 20 == 0 => "delete",
            _ if index % 10 == 0 => "set",
            _ => "get",
        };
        let (time, key_bytes, value_bytes, ttl) = (index / 2_000, 12 + key % 50, 1 + key % 400, 3_600);
        let ttl = if operation == "set" { ttl } else { 0 };
        lines += &format!("{time},namespace:{key},{key_bytes},{value_bytes},9,{operation},{ttl}\n");
    }
    lines
}

#[test]
fn a_trace_is_replayed_in_every_scheme() {
    let folder = Folder::new();
    folder.write("t.csv", &twitter());
    let trace = ["--trace", "t.csv", "--trace-format", "twitter"];
    let deletes = (300..6_000).filter(|index| index % 20 == 0).count() as u64;
    let sets = 300 + (300..6_000).filter(|index| index % 20 != 0 && index % 10 == 0).count() as u64;
    for scheme in SCHEMES {
        let server = Server::start(&["cache"]);
        // With one client, operations arrive in the order of the trace.
        let json = load(&folder, &server, scheme, &[&trace[..], &["-c", "1"]].concat());
        assert_eq!((number(&json, "/requests"), &json["errors"]), (6_000, &json!({})), "{scheme}: {json}");
        let counts = json.pointer("/cache/counts").unwrap();
        assert_eq!((number(counts, "/sets"), number(counts, "/deletes")), (sets, deletes), "{scheme}");
        assert_eq!(number(counts, "/hits") + number(counts, "/misses"), 6_000 - sets - deletes, "{scheme}");
        assert_eq!(number(counts, "/misses"), number(counts, "/causes/invalidation"), "{scheme}: {counts}");
        let [stored, hits, misses] = stats(&server, ["cmd_set", "get_hits", "get_misses"]);
        assert_eq!((stored, hits), (sets, number(counts, "/hits")), "{scheme}");
        assert_eq!((misses, number(counts, "/fills")), (number(counts, "/misses"), 0), "{scheme}");
        let replayed = json.pointer("/cache/trace").unwrap();
        assert_eq!((number(replayed, "/keys"), &replayed["ended"]), (300, &json!(true)));
        let mean = (0..300).map(|key| 12 + key % 50).sum::<u64>() as f64 / 300.0;
        assert_eq!(replayed["key_bytes_mean"], json!(mean), "{scheme}");
        assert_eq!(json["stop_reason"], "the end of the trace");
    }
    let server = Server::start(&["cache"]);
    let json = load(&folder, &server, "redis", &[&trace[..], &["-c", "6", "-t", "3"]].concat());
    assert_eq!((number(&json, "/requests"), number(&json, "/cache/trace/operations")), (6_000, 6_000));
    let timed = [&trace[..], &["--trace-gaps", "recorded", "--trace-speed", "10", "-c", "8", "-t", "2"]].concat();
    let json = load(&folder, &server, "memcached", &timed);
    assert_eq!((number(&json, "/requests"), &json["errors"]), (6_000, &json!({})), "{json}");
    assert_eq!(json["latency_ns"]["clock"], "response");
    // The load is not faster than requested: three seconds of trace at ten times the speed.
    assert!(json["duration_s"].as_f64().unwrap() >= 0.2999, "{json}");
}

#[test]
fn trace_errors_have_a_location() {
    let folder = Folder::new();
    let server = Server::start(&["cache"]);
    let url = format!("memcached://127.0.0.1:{}", server.port);
    let mut lines = twitter();
    lines += "3,namespace:1,12,1,9,peek,0\n";
    folder.write("bad.csv", &lines);
    folder.write("good.csv", &twitter());
    folder.write("empty.csv", "");
    for (flags, words) in [
        (&["--trace", "bad.csv", "--trace-format", "twitter"][..], "bad.csv:6001: unknown operation `peek`"),
        (&["--trace", "empty.csv", "--trace-format", "twitter"], "the trace `empty.csv` is empty"),
        (&["--trace", "none.csv", "--trace-format", "twitter"], "cannot read the trace `none.csv`"),
        (&["--trace", ".", "--trace-format", "twitter"], "not a regular file"),
        (&["--trace", "good.csv", "--trace-format", "meta-kv"], "good.csv:1: the header line has no `key`"),
        (&["--trace", "good.csv", "--trace-format", "oracle-general"], "good.csv: record "),
        (&["--trace", "good.csv", "--trace-format", "plain"], "has no key and value sizes"),
        (&["--trace", "good.csv"], "--trace-format"),
        (
            &["--trace", "good.csv", "--trace-format", "twitter", "--trace-gaps", "recorded", "--rate", "5"],
            "`--rate` cannot be combined with the recorded gaps",
        ),
        (&["--trace", "good.csv", "--trace-format", "twitter", "--warmup", "1h"], "ended during the warm-up"),
    ] {
        let ran = folder.quintain(&[&["load", &url, "-c", "2"], flags].concat());
        assert_eq!(ran.code, Some(2), "{flags:?}: {} {}", ran.out, ran.err);
        assert!(ran.err.contains(words), "{flags:?}: {}", ran.err);
    }
}

fn anonymous_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn large_values_in_flight_stay_within_the_documented_memory() {
    const CLIENTS: u64 = 300;
    let server = Server::start(&["cache", "--maxmem", "16MB"]);
    let value = vec![b'v'; 800_000];
    for is_whole in [true, false] {
        let mut clients = (0..CLIENTS).map(|_| connect(&server)).collect::<Vec<_>>();
        for (key, client) in clients.iter_mut().enumerate() {
            client.write_all(format!("set k{key} 0 0 800000\r\n").as_bytes()).unwrap();
            client.write_all(&value[..if is_whole { value.len() } else { value.len() / 2 }]).unwrap();
        }
        if is_whole {
            for client in &mut clients {
                client.write_all(b"\r\n").unwrap();
                let mut line = String::new();
                BufReader::new(client).read_line(&mut line).unwrap();
                assert!(
                    ["STORED\r\n", "SERVER_ERROR out of memory storing object\r\n"].contains(&line.as_str()),
                    "{line}"
                );
            }
        }
        // Bound in `quintain serve cache --help`: --maxmem, 4 MiB, four of the largest items, 16 KiB per connection.
        let documented = 16_000_000 + (4 << 20) + 4 * ((1 << 20) + 250) + CLIENTS * (16 << 10);
        let used = anonymous_bytes(&server);
        assert!(used <= documented, "{used} of {documented} bytes, whole: {is_whole}");
    }
    drop(server);
}
