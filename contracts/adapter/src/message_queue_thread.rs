//! A thread that handles messages in order.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// A thread that handles messages in order. Dropping it waits until all messages are handled and the thread has ended.
pub(crate) struct Worker<M> {
    pub(crate) messages: SyncSender<M>,
    thread: Option<JoinHandle<()>>,
}

impl<M: Send + 'static> Worker<M> {
    /// Starts the thread. `run` must return once the channel is closed. At most `bound` messages wait.
    pub(crate) fn start(name: &str, bound: usize, run: impl FnOnce(&Receiver<M>) + Send + 'static) -> io::Result<Self> {
        let (messages, received) = sync_channel(bound);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&received))?;
        Ok(Self { messages, thread: Some(thread) })
    }
}

impl<M> Drop for Worker<M> {
    fn drop(&mut self) {
        // Replacing the sender closes the channel.
        self.messages = sync_channel(0).0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
