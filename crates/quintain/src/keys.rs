//! Keys that are pressed while something runs: read as they come, without echo. Ctrl-C and Ctrl-Z do what they always do.

use std::io::{IsTerminal, stdin};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// How the terminal was.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The keys of the terminal, until this is dropped.
#[derive(Debug)]
pub(crate) struct Keys {
    are_read: bool,
}

impl Keys {
    /// `wanted`: keys mean something. They are not read where stdin is no terminal, or belongs to another job.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { are_read: wanted && is_ours() && take().is_ok() }
    }

    /// Whether any are read.
    pub(crate) fn are_read(&self) -> bool {
        self.are_read
    }

    /// The next one that was pressed, if any.
    pub(crate) fn next(&mut self) -> Option<u8> {
        // Of another job's terminal a read would stop this one.
        if !self.are_read || !is_ours() {
            return None;
        }
        let stdin = stdin();
        let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&Timespec::default()));
        let mut key = [0];
        match ready {
            Ok(1..) => match rustix::io::read(&stdin, &mut key) {
                Ok(1) => Some(key[0]),
                // The terminal went away.
                _ => {
                    self.are_read = false;
                    None
                }
            },
            _ => None,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore();
    }
}

/// Whether stdin is a terminal, and this job is in its foreground.
fn is_ours() -> bool {
    stdin().is_terminal() && tcgetpgrp(stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

fn take() -> rustix::io::Result<()> {
    let before = tcgetattr(stdin())?;
    let mut now = before.clone();
    now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(stdin(), OptionalActions::Now, &now)?;
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    Ok(())
}

/// The terminal as it was, however this process ends.
pub(crate) fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take()
        && is_ours()
    {
        // Nobody to tell: the terminal may be gone.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
    }
}
