//! Keeps the end of a process's output.

use std::io::{self, PipeReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const KEPT: usize = 8 * 1024;

/// End of the output from a pipe, which a thread drains so that the writer never blocks.
pub(crate) struct Tail(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    cut: bool,
    ended: bool,
}

impl Tail {
    pub(crate) fn of(mut pipe: PipeReader) -> io::Result<Self> {
        let shared = Arc::<(Mutex<State>, Condvar)>::default();
        let theirs = shared.clone();
        std::thread::Builder::new().name("last-words".to_owned()).stack_size(64 * 1024).spawn(move || {
            let (state, ended) = &*theirs;
            let mut buffer = [0; 16 * 1024];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => lock(state).push(&buffer[..count]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            lock(state).ended = true;
            ended.notify_all();
        })?;
        Ok(Self(shared))
    }

    /// Returns the last lines, at most 8 KiB. Waits up to `patience` for all writers to close the pipe.
    pub(crate) fn text(&self, patience: Duration) -> String {
        let (state, ended) = &*self.0;
        let waited = ended.wait_timeout_while(lock(state), patience, |state| !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.text()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // A holder of this lock does not panic, and the bytes would still be valid.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        if self.bytes.len() > KEPT {
            self.bytes.drain(..self.bytes.len() - KEPT);
            self.cut = true;
        }
    }

    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        match text.split_once('\n') {
            Some((_, rest)) if self.cut && !rest.is_empty() => format!("...\n{}", rest.trim_end()),
            _ => text.trim_end().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_short_output_completely() {
        let mut state = State::default();
        state.push(b"one\n");
        state.push(b"two\n\n");
        assert_eq!(state.text(), "one\ntwo");
    }

    #[test]
    fn truncates_long_output_at_a_line() {
        let mut state = State::default();
        for number in 0..10_000 {
            state.push(format!("line {number}\n").as_bytes());
        }
        let text = state.text();
        assert!(text.starts_with("...\nline ") && text.ends_with("line 9999"), "{text}");
        assert!(state.bytes.len() <= KEPT);
    }

    #[test]
    fn keeps_the_end_of_a_long_line() {
        let mut state = State::default();
        state.push(&[b'x'; 3 * KEPT]);
        assert_eq!(state.text().len(), KEPT);
    }

    #[test]
    fn replaces_invalid_utf8() {
        let mut state = State::default();
        state.push(&[0xff, b'a', 0]);
        assert_eq!(state.text(), "\u{fffd}a\0");
    }
}
