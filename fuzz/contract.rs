//! Assertions for any contract, any message and any metadata block between adapters.
#![allow(dead_code, reason = "each target uses one function")]

use contract::metadata::{CallContext, decode_reply, decode_request, encode_reply, encode_request};
use contract::monitor::report::Kind;
use contract::{Env, MessageValue, STEPS_MAX, Scratch, Severity, Value, check};

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
    let mut rest = &bytes[end + 1..];
    let message = value(&mut rest, 0);
    let args = [message.value()];
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
fn value(rest: &mut &[u8], depth: u16) -> MessageValue<'static> {
    let mut byte = || match rest.split_first() {
        Some((first, after)) => {
            *rest = after;
            *first
        }
        None => 0,
    };
    match byte() % 9 {
        1 => Value::Opaque.into(),
        2 => {
            let value = byte() & 1 == 1;
            Value::Bool(value).into()
        }
        3 => {
            let value = i64::from(byte() as i8);
            Value::Int(value << (8 * (value & 7))).into()
        }
        4 => {
            let value = f64::from_bits(u64::from_le_bytes(std::array::from_fn(|_| byte())));
            Value::Float(value).into()
        }
        kind @ (5 | 8) => {
            let length = usize::from(byte());
            let taken = (0..length).map(|_| byte()).collect::<Vec<_>>();
            let text = || MessageValue::text(String::from_utf8_lossy(&taken).into_owned());
            if kind == 5 { text() } else { MessageValue::Bytes(taken.into()) }
        }
        6 if depth < 200 => {
            let count = byte() % 16;
            MessageValue::Map((0..count).map(|_| (value(rest, 200), value(rest, depth + 1))).collect())
        }
        7 if depth < 200 => {
            let count = byte() % 16;
            MessageValue::List((0..count).map(|_| value(rest, depth + 1)).collect())
        }
        _ => Value::Missing.into(),
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
