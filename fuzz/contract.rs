//! Assertions for any contract, any message and any metadata block between adapters.
#![allow(dead_code, reason = "each target uses one function")]

use contract::metadata::{CallContext, decode_reply, decode_request, encode_reply, encode_request};
use contract::monitor::report::Kind;
use contract::{Env, STEPS_MAX, Scratch, Severity, Tape, TapeId, Value, check};

/// Checks that a text is a contract or has errors with valid locations.
pub(crate) fn contract_parse(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let checked = check(text, None);
    let lines = text.split('\n').count();
    for finding in &checked.findings {
        assert!(text.get(finding.span.clone()).is_some() || text.len() > contract::TEXT_MAX_BYTES, "{finding:?}");
        assert!((1..=lines).contains(&finding.line) && finding.column >= 1, "{finding:?}");
    }
    let mistaken = checked.findings.iter().any(|finding| finding.severity == Severity::Mistake);
    assert_eq!(checked.contract.is_none(), mistaken);
}

/// Checks that a clause, given with a line feed and a message, is evaluated within the budget, with a stable verdict.
pub(crate) fn contract_eval(bytes: &[u8]) {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
    let Ok(clause) = std::str::from_utf8(&bytes[..end]) else { return };
    let Some(contract) = check(&format!("contract 1 service S {{ f(m) {{ requires {clause} }} }}"), None).contract
    else {
        return;
    };
    let Some(operation) = contract.service("S").and_then(|service| contract.operation(service, "f")) else { return };
    let mut tape = Tape::new();
    let mut rest = &bytes[end + 1..];
    let message = value(&mut rest, &mut tape, 0);
    let args = [tape.value(message)];
    let env = Env { args: &args, outcome: Value::Missing, receiver: "host:1", steps_max: STEPS_MAX };
    let mut scratch = Scratch::default();
    for clause in contract.clauses(operation, Kind::Precondition) {
        let whole = clause.judge(env, &mut scratch);
        assert_eq!(clause.judge(env, &mut scratch), whole);
        let cut = clause.judge(Env { steps_max: 20, ..env }, &mut scratch);
        assert!(cut.is_err() || cut == whole, "{cut:?} {whole:?}");
    }
}

/// Builds a message from bytes, which give each value's kind and then its content.
fn value(rest: &mut &[u8], tape: &mut Tape<'static>, depth: u16) -> TapeId {
    let mut byte = || match rest.split_first() {
        Some((first, after)) => {
            *rest = after;
            *first
        }
        None => 0,
    };
    match byte() % 9 {
        1 => tape.add(Value::Opaque),
        2 => {
            let value = byte() & 1 == 1;
            tape.add(Value::Bool(value))
        }
        3 => {
            let value = i64::from(byte() as i8);
            tape.add(Value::Int(value << (8 * (value & 7))))
        }
        4 => {
            let value = f64::from_bits(u64::from_le_bytes(std::array::from_fn(|_| byte())));
            tape.add(Value::Float(value))
        }
        kind @ (5 | 8) => {
            let length = usize::from(byte());
            let taken = (0..length).map(|_| byte()).collect::<Vec<_>>();
            if kind == 5 { tape.text(String::from_utf8_lossy(&taken).into_owned()) } else { tape.bytes(taken) }
        }
        kind @ (6 | 7) if depth < 200 => {
            let count = byte() % 16;
            let mut items = Vec::new();
            for _ in 0..count {
                let name = if kind == 6 { value(rest, tape, 200) } else { TapeId::default() };
                items.push((name, value(rest, tape, depth + 1)));
            }
            if kind == 6 { tape.map_of(items) } else { tape.list(items.into_iter().map(|(_, item)| item)) }
        }
        _ => tape.add(Value::Missing),
    }
}

/// Checks that a block is rejected or is metadata that survives a round trip.
pub(crate) fn metadata_block(bytes: &[u8]) {
    let known = CallContext { receiver: "127.0.0.1:8000", service: "Chess", sender: "a" };
    if let Some(request) = decode_request(bytes, known) {
        assert_eq!(decode_request(&encode_request(&request, known), known), Some(request));
    }
    if let Some(reply) = decode_reply(bytes, known) {
        assert_eq!(decode_reply(&encode_reply(&reply, known), known), Some(reply));
    }
}
