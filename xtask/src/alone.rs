//! A server on a CPU of its own, for measurements outside of `quintain run`.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server that ends with this.
pub(crate) struct Alone(Child);

impl Alone {
    /// Starts a command on a CPU and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, or does not listen in time.
    pub(crate) fn start(cpu: u32, command: &[String], port: u16) -> Result<Self, String> {
        let mut taskset = Command::new("taskset");
        taskset.args(["-c", &cpu.to_string()]).args(command).stdout(Stdio::null());
        let mut server = Self(taskset.spawn().map_err(|error| format!("error: taskset: {error}"))?);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begun.elapsed() > PATIENCE || server.0.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(format!("error: `{}` does not listen on port {port}", command.join(" ")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that nobody listens on.
///
/// # Errors
/// There is none.
pub(crate) fn free_port() -> Result<u16, String> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(port.map_err(|error| format!("error: no free port: {error}"))?.port())
}
