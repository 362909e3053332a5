//! The three programs.

use std::sync::{Arc, Mutex};

use codecs::value::Value;

use crate::rpc::{Failure, Remote, serve};

/// Returns the endpoint of the most recently registered adder.
pub(crate) fn discovery(port: &str) -> Result<(), Failure> {
    let known = Arc::new(Mutex::new((String::new(), 0)));
    serve(port, "AdderDiscovery", move |method, arguments| {
        let mut known = known.lock().expect("no thread panics while holding the lock");
        if method == "register_adder" {
            *known = (text(&arguments[0]), number(&arguments[1]));
            return Value::Null;
        }
        Value::record([("host", Value::Text(known.0.clone())), ("port", Value::Integer(known.1))])
    })
}

/// Adds numbers, with a constant error. Registers itself first.
pub(crate) fn adder(port: &str, discovery: &str, off_by: &str) -> Result<(), Failure> {
    let (number_of_port, off_by) = (port.parse::<i64>()?, off_by.parse::<i64>()?);
    let host = Value::Text("127.0.0.1".to_owned());
    let own = Value::record([("host", host), ("port", Value::Integer(number_of_port))]);
    Remote::connect("AdderDiscovery", discovery)?.call("register_adder", own)?;
    serve(port, "Adder", move |_, arguments| {
        // Sums outside the range of i32 are clamped.
        let sum = number(&arguments[0]) + number(&arguments[1]) + off_by;
        Value::Integer(sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)))
    })
}

/// Looks up the adder and calls it.
pub(crate) fn client(discovery: &str, a: &str, b: &str) -> Result<(), Failure> {
    let info = Remote::connect("AdderDiscovery", discovery)?.call("get_adder_info", Value::record([]))?;
    let adder = format!("{}:{}", text(&info.get("host").cloned()), number(&info.get("port").cloned()));
    let numbers = [("a", Value::Integer(a.parse()?)), ("b", Value::Integer(b.parse()?))];
    let sum = Remote::connect("Adder", &adder)?.call("add", Value::record(numbers))?;
    println!("{a} + {b} = {}", number(&Some(sum)));
    Ok(())
}

fn text(value: &Option<Value>) -> String {
    match value {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

fn number(value: &Option<Value>) -> i64 {
    match value {
        Some(Value::Integer(number)) => *number,
        _ => 0,
    }
}
