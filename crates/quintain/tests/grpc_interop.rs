//! Calls of gRPC's interoperability tests to servers of grpc-go and tonic. Source: grpc/grpc,
//! doc/interop-test-descriptions.md.

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, Server};

/// Source: grpc/grpc, doc/health-checking.md.
const HEALTH: &str = r#"
syntax = "proto3";
package grpc.health.v1;
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse {
  enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
  ServingStatus status = 1;
}
service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); }
"#;

/// Message as JSON with a payload of `size` zero bytes, which base64 writes as `A`. `size` must be a multiple of 3.
fn payload(size: usize) -> String {
    assert!(size.is_multiple_of(3));
    format!(r#"{{"payload": {{"body": "{}"}}}}"#, "A".repeat(size / 3 * 4))
}

#[test]
#[ignore = "slow: builds a Go server"]
fn grpc_calls_interoperate_with_grpc_go() {
    interoperates("grpc-go", true);
}

#[test]
#[ignore = "slow: builds a Rust server"]
fn grpc_calls_interoperate_with_tonic() {
    interoperates("grpc-tonic", false);
}

#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "it starts a server of others and prints skips")]
fn interoperates(name: &str, ends_streams_at_deadline: bool) {
    let subjects = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../subjects").canonicalize().unwrap();
    let made = Command::new("make").arg("-C").arg(subjects.join(name)).arg(name).output().unwrap();
    let text = String::from_utf8_lossy(&made.stderr);
    if let Some(reason) = text.lines().find(|line| line.starts_with("missing toolchain:")) {
        return println!("gRPC interoperability with {name} not checked: {reason}");
    }
    assert!(made.status.success(), "{text}");
    let server = Server::spawn(Command::new(subjects.join(name).join(name)).args(["-p", "0"]));
    let folder = Folder::new();
    folder.write("health.proto", HEALTH);
    let test = subjects.join("grpc-go/test.proto").display().to_string();
    let call_of = |proto: &str, path: &str, body: &str, more: &[&str]| {
        let url = format!("http://127.0.0.1:{}/{path}", server.port);
        folder.write("body.json", body);
        let args = ["load", "--grpc", "--proto", proto, "--body-file", "body.json", "-c", "2", "-m", "2", "-n", "40"];
        let more = [&args, &["--warmup", "0s", "-t", "1", "--json", &url][..], more].concat();
        folder.quintain(&more).json()
    };
    let call = |path: &str, body: &str, more: &[&str]| call_of(&test, &format!("grpc.testing.{path}"), body, more);

    let inputs = [27_183, 9, 1_827, 45_903].map(payload).join(", ");
    let outputs = r#"{"responseParameters": [{"size": 31415}, {"size": 9}, {"size": 2653}, {"size": 58979}]}"#;
    let large = payload(271_827).replacen('{', r#"{"responseSize": 314159, "#, 1);
    let turn = |answer: u32| format!(r#"{{"responseParameters": [{{"size": {answer}}}]}}"#);
    let turns = format!("[{}]", [31_415, 9, 2_653, 58_979].map(turn).join(", "));
    let sum = "$.aggregatedPayloadSize == 74922";
    for (name, path, body, messages, more) in [
        ("empty_unary", "TestService/EmptyCall", "", 1.0, &["--expect-length", "5..5"][..]),
        ("large_unary", "TestService/UnaryCall", &large, 1.0, &["--expect-length", "314172..314172"]),
        ("client_streaming", "TestService/StreamingInputCall", &format!("[{inputs}]"), 1.0, &["--expect-json", sum]),
        ("server_streaming", "TestService/StreamingOutputCall", outputs, 4.0, &["--expect-length", "93102..93102"]),
        (
            "full_duplex",
            "TestService/FullDuplexCall",
            &format!("[{outputs}, {outputs}]"),
            8.0,
            &["--expect-length", "186204..186204"],
        ),
        (
            "ping_pong",
            "TestService/FullDuplexCall",
            &turns,
            4.0,
            &["--messages", "in-turn", "--expect-length", "93102..93102"],
        ),
        ("custom_metadata", "TestService/EmptyCall", "", 1.0, &["-H", "x-grpc-test-echo-initial: value"]),
    ] {
        let json = call(path, body, more);
        assert_eq!((&json["requests"], &json["errors"]), (&40.into(), &serde_json::json!({})), "{name}: {json}");
        assert_eq!(json["streams"]["messages_per_response"], messages, "{name}: {json}");
    }
    let empty = call("TestService/FullDuplexCall", "[]", &["--expect-length", "0..0"]);
    assert_eq!((&empty["requests"], &empty["errors"]), (&40.into(), &serde_json::json!({})), "empty_stream: {empty}");
    let health =
        call_of("health.proto", "grpc.health.v1.Health/Check", "", &["--expect-json", r#"$.status == "SERVING""#]);
    assert_eq!((&health["requests"], &health["errors"]), (&40.into(), &serde_json::json!({})), "health: {health}");

    let status = |message: &str| format!(r#"{{"responseStatus": {{"code": 2, "message": "{message}"}}}}"#);
    let special = r"\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
    let slow = r#"[{"responseParameters": [{"size": 1, "intervalUs": 20000}]}]"#;
    for (name, path, body, more, expected) in [
        (
            "status_code_and_message",
            "TestService/UnaryCall",
            status("test message").as_str(),
            &[][..],
            "grpc-status 2 (UNKNOWN): test message",
        ),
        (
            "special_status_message",
            "TestService/UnaryCall",
            &status(special),
            &[],
            &format!("grpc-status 2 (UNKNOWN): {special}"),
        ),
        ("unimplemented_method", "TestService/UnimplementedCall", "", &[], "grpc-status 12 (UNIMPLEMENTED)"),
        ("unimplemented_service", "UnimplementedService/UnimplementedCall", "", &[], "grpc-status 12 (UNIMPLEMENTED)"),
        (
            "timeout_on_sleeping_server",
            "TestService/FullDuplexCall",
            slow,
            &["-H", "grpc-timeout: 1m"],
            "grpc-status 4 (DEADLINE_EXCEEDED)",
        ),
    ] {
        if name == "timeout_on_sleeping_server" && !ends_streams_at_deadline {
            println!("{name} not checked: this server ignores the deadline of a response that has begun");
            continue;
        }
        let json = call(path, body, more);
        // The server may still respond at the deadline, so a single error is enough.
        let least = if name == "timeout_on_sleeping_server" { 1 } else { 40 };
        assert!(json["errors"]["grpc-status"].as_u64() >= Some(least), "{name}: {json}");
        let example = json["error_examples"]["grpc-status"].as_str().unwrap();
        assert!(example.contains(expected), "{name}: {example}");
    }
}
