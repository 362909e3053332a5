//! Compares how fast quintain and CEL evaluate clauses, in eleven rounds, not counting the conversion of messages for
//! CEL. Prints medians and ranges. Usage: `cargo run --release --manifest-path experiments/cel/Cargo.toml`.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example measures and prints")]

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use contract::monitor::report::Kind;
use contract::{Contract, Env, MessageValue, OperationId, STEPS_MAX, Scratch, Value, check};

const ROUNDS: usize = 11;

const TEXT: &str = r#"contract 1
service S {
    find(offset: int) { requires offset >= 0 }
    users() -> {users: list<{id_str: text}>} { ensures all(u in result.users: "u" + u.id_str != "u") }
}"#;

fn main() {
    let checked = check(TEXT, None);
    let contract = checked.contract.expect("this text is a contract");
    let service = contract.service("S").expect("it has this service");
    let operation = |name| contract.operation(service, name).expect("it has this operation");

    let ours = clause(&contract, operation("find"));
    let theirs = cel_clause();
    print("offset >= 0", "ns", &compare(200_000, ours, theirs));

    let ours = texts(&contract, operation("users"));
    let theirs = cel_texts();
    print("20 joined texts", "ns", &compare(5_000, ours, theirs));
}

fn compare(count: u32, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> [Vec<f64>; 2] {
    let mut times = [Vec::new(), Vec::new()];
    let round = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..count).for_each(|_| run());
        start.elapsed().as_nanos() as f64 / f64::from(count)
    };
    // Discards a first round of each engine, in which CPU caches and branch predictors are cold.
    round(&mut ours);
    round(&mut theirs);
    for at in 0..ROUNDS {
        // Alternates which engine runs first, so that neither always follows the other.
        let (first, second): (&mut dyn FnMut(), &mut dyn FnMut()) =
            if at % 2 == 0 { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
        let (first, second) = (round(first), round(second));
        let (ours, theirs) = if at % 2 == 0 { (first, second) } else { (second, first) };
        times[0].push(ours);
        times[1].push(theirs);
    }
    times
}

fn print(what: &str, unit: &str, [ours, theirs]: &[Vec<f64>; 2]) {
    let shown = |times: &[f64]| {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1])
    };
    let ratios = theirs.iter().zip(ours).map(|(theirs, ours)| theirs / ours).collect::<Vec<_>>();
    for (name, times) in [("ours", ours), ("cel", theirs)] {
        let (median, least, most) = shown(times);
        println!("{what:<18} {name:<5} {median:8.1} {unit}   [{least:.1}, {most:.1}]");
    }
    let (median, least, most) = shown(&ratios);
    println!("{what:<18} cel takes {median:.1} times as long   [{least:.1}, {most:.1}]");
}

fn clause(contract: &Contract, operation: OperationId) -> impl FnMut() {
    let clause = contract.clauses(operation, Kind::Precondition).next().expect("it has one");
    let mut scratch = Scratch::default();
    move || {
        let args = [Value::Int(black_box(7))];
        assert_eq!(black_box(clause.judge(env(&args, Value::Missing), &mut scratch)), Ok(true));
    }
}

fn env<'a>(args: &'a [Value<'a>], outcome: Value<'a>) -> Env<'a> {
    Env { args, outcome, receiver: "127.0.0.1:3912", steps_max: STEPS_MAX }
}

fn texts(contract: &Contract, operation: OperationId) -> impl FnMut() {
    let user = |user| MessageValue::record([("id_str", MessageValue::text(format!("11{user:010}")))]);
    let reply = MessageValue::record([("users", MessageValue::List((0..20).map(user).collect()))]);
    let clause = contract.clauses(operation, Kind::Postcondition).next().expect("it has one");
    let mut scratch = Scratch::default();
    move || {
        let outcome = black_box(reply.value());
        assert_eq!(black_box(clause.judge(env(&[], outcome), &mut scratch)), Ok(true));
    }
}

fn cel_clause() -> impl FnMut() {
    let program = cel::Program::compile("offset >= 0").expect("CEL understands it");
    let mut context = cel::Context::default();
    context.add_variable_from_value("offset", 7_i64);
    move || assert_eq!(black_box(program.execute(black_box(&context))).expect("it has a value"), true.into())
}

fn cel_texts() -> impl FnMut() {
    let program = cel::Program::compile("result.users.all(u, 'u' + u.id_str != 'u')").expect("CEL understands it");
    let user = |user: i32| cel::Value::from(HashMap::from([("id_str", format!("11{user:010}"))]));
    let users = (0..20).map(user).collect::<Vec<_>>();
    let mut context = cel::Context::default();
    context.add_variable_from_value("result", HashMap::from([("users", cel::Value::from(users))]));
    move || assert_eq!(black_box(program.execute(black_box(&context))).expect("it has a value"), true.into())
}
