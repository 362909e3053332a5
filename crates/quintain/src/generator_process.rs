//! `quintain load --spec`: the generator process of the lab, with the messages of [`study::generator_messages`].

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use load::{Gate, LoadError};
use serde::Deserialize;
use serde_json::value::RawValue;
use study::Json;
use study::generator_messages::{HOLD_MAX, Heard, Told};
use study::spec::LoadSpec;

use crate::command_result::{Done, Exit, cannot};
use crate::{os_limits, output, signals};

pub(crate) fn generator(path: &str) -> Done {
    let mut input: Box<dyn BufRead + Send> = match path {
        "-" => Box::new(BufReader::new(std::io::stdin())),
        _ => Box::new(BufReader::new(File::open(path).map_err(cannot(Exit::Usage, "read", Path::new(path)))?)),
    };
    let end = |told: Told, exit: Exit| output::json_line(told.to_json()).map(|()| exit);
    let spec = match value::<LoadSpec>(&mut input) {
        Ok(spec) => spec,
        Err(error) => return end(Told::Error(format!("cannot parse the specification: {error}")), Exit::Usage),
    };
    if let Err(problem) = os_limits::make_room(&spec) {
        return end(Told::Error(problem.to_string()), Exit::Machine);
    }
    signals::watch_interrupts()?;
    // The thread below ends when the input or the process ends. After a specification in a file, the input is empty.
    let (sender, read) = mpsc::channel();
    let gate = Arc::new(Gate::default());
    let (lab_gate, mut waits) = (gate.clone(), spec.gate);
    std::thread::spawn(move || {
        while let Ok(heard) = value(&mut input) {
            match heard {
                Heard::Go { at_ns } => {
                    lab_gate.open(at_ns);
                    waits = false;
                }
                Heard::Read {} if sender.send(()).is_err() => return,
                Heard::Read {} => {}
            }
        }
        if waits {
            signals::INTERRUPTED.store(true, Ordering::Relaxed);
        }
    });
    let mut tell = |told: Told| {
        let is_over = matches!(told, Told::Measured(_));
        // A failed write is ignored: it means that the lab is gone, and this process ends with the lab.
        let _ = output::json_line(told.to_json());
        if is_over {
            // Connections stay open until the lab has read the line or is gone, or until the timeout.
            let _ = read.recv_timeout(HOLD_MAX);
        }
    };
    match load::run_with_events(&spec, &mut tell, Some(&gate), &signals::INTERRUPTED) {
        Ok(measurement) => end(Told::Measurement(Box::new(measurement)), Exit::Fine),
        Err(error @ LoadError::Unreachable { .. }) => end(Told::Unreachable(error.to_string()), Exit::Subject),
        Err(error) => end(Told::Error(error.to_string()), Exit::Machine),
    }
}

/// Reads exactly one JSON object and nothing after it.
fn value<T: Json>(input: &mut impl BufRead) -> serde_json::Result<T> {
    T::from_json(Box::<RawValue>::deserialize(&mut serde_json::Deserializer::from_reader(input))?.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_need_no_line_breaks_between_them() {
        let mut input = BufReader::new(&b"{\n  \"go\": {\"at_ns\": 1}\n}{\"read\":{}}\n"[..]);
        assert_eq!(value::<Heard>(&mut input).unwrap(), Heard::Go { at_ns: 1 });
        assert_eq!(value::<Heard>(&mut input).unwrap(), Heard::Read {});
        assert!(value::<Heard>(&mut input).unwrap_err().is_eof());
    }
}
