//! The programs of the walkthrough: a discovery service, an adder that adds wrongly, and a client.
//! They use framed Thrift and do not depend on contracts. `README.md` in this directory describes
//! how to run them: `cargo run --example calculator -- ROLE ...`.
#![allow(clippy::print_stdout, reason = "a program of the walkthrough, whose output is its purpose")]
#![allow(clippy::disallowed_methods, reason = "a program of its own, which reads its arguments and its environment")]
#![allow(missing_docs)]

mod programs;
mod rpc;

use std::process::ExitCode;

const USAGE: &str = "usage:
  calculator discovery PORT                 prints the endpoint of the most recently registered adder
  calculator adder PORT DISCOVERY [OFF_BY]  adds, off by -1 by default; registers itself
  calculator client DISCOVERY A B           looks up the adder and calls it

DISCOVERY is host:port. With ADAPTER=host:port in the environment each endpoint is first looked up at the adapter with that address.";

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let done = match arguments[..] {
        ["discovery", port] => programs::discovery(port),
        ["adder", port, discovery] => programs::adder(port, discovery, "-1"),
        ["adder", port, discovery, off_by] => programs::adder(port, discovery, off_by),
        ["client", discovery, a, b] => programs::client(discovery, a, b),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
