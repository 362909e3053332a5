//! The one door to the kernel: one [`Driver`], three backends.
//!
//! * `sim`: a network with a virtual clock and a seed, for tests of whole engines;
//! * `epoll`: readiness, true everywhere;
//! * `io_uring`: completions, where the kernel has what is needed.
//!
//! A caller turns the driver and takes events until there are none:
//!
//! ```text
//! driver.turn(wake_at)?;                    // one submit, one wait
//! while let Some(event) = driver.next_event() {
//!     match event { Event::Data { conn, .. } => { ...; driver.send(conn, &answer)?; } ... }
//! }
//! ```
//!
//! No callback ever runs inside the driver, so there is no recursion; nothing is allocated after the driver was
//! built, but for an outgoing buffer that a slow reader makes grow up to its limit.

mod driver;
mod epoll;
mod open;
mod outgoing;
pub mod sim;
mod slots;
mod socket;
pub mod thread;
mod uring;

pub use driver::{
    Close, CloseReason, Config, Conn, Data, Driver, Event, KernelDriver, Listener, Nanos, SendError, Waker,
};
pub use epoll::Epoll;
pub use open::{Backend, Choice, Opened, choose, open, probe};
pub use uring::Uring;
