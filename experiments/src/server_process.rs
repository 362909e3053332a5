//! Starts servers for a measurement, and finds the build of quintain to use.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a simple shell command, in which `{port}` is a free port. Returns once the port accepts connections.
    pub(crate) fn start(command: &str) -> Result<Self, String> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.map_err(|error| format!("error: no free port: {error}"))?.port();
        let command = command.replace("{port}", &port.to_string());
        let child = Command::new("sh").args(["-c", &format!("exec {command}")]).stdout(Stdio::null()).spawn();
        let mut server = Self { child: child.map_err(|error| format!("error: sh: {error}"))?, port };
        let start = Instant::now();
        while TcpStream::connect(server.address()).is_err() {
            if start.elapsed() > START_TIMEOUT || server.exit_status().is_some() {
                return Err(format!("error: `{command}` does not listen"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns `program` or, without one, the build of quintain next to this program, preferably an optimized one.
pub(crate) fn quintain(program: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(program) = program {
        return Ok(program.to_path_buf());
    }
    let own = std::env::current_exe().map_err(|error| format!("error: the path of this program: {error}"))?;
    let target = own.parent().and_then(Path::parent).unwrap_or(Path::new(""));
    let builds = ["release/quintain", "debug/quintain"].map(|build| target.join(build));
    let missing = || format!("error: `{}` does not exist\n\nhelp: cargo build --release", builds[0].display());
    builds.iter().find(|build| build.is_file()).cloned().ok_or_else(missing)
}
