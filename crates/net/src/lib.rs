//! The only interface to the kernel: one [`Driver`] trait with three backends.
//!
//! * `sim`: a network with a virtual clock and a seed, for tests of whole engines;
//! * `epoll`: notifications of readiness, available everywhere;
//! * `io_uring`: notifications of completions, available if the kernel supports the required features.
//!
//! A caller waits in [`Driver::turn`] and then takes events until none is left:
//!
//! ```
//! use net::{Address, Close, Config, Driver, Event};
//!
//! /// Sends received bytes back until a connection closes.
//! fn echo<D: Driver>(driver: &mut D) -> std::io::Result<()> {
//!     loop {
//!         driver.turn(None)?; // Submits all operations and waits for an event.
//!         while let Some(event) = driver.next_event() {
//!             match event {
//!                 Event::Data(conn, data) => {
//!                     let bytes = driver.bytes(data).to_vec();
//!                     if driver.send(conn, &bytes).is_err() {
//!                         driver.close(conn, Close::Reset); // The peer does not read.
//!                     }
//!                 }
//!                 Event::EndOfStream(conn) => driver.close(conn, Close::Graceful),
//!                 Event::Closed(..) => return Ok(()),
//!                 _ => {}
//!             }
//!         }
//!     }
//! }
//!
//! # use net::sim::{Network, Sim, ready_made_peers};
//! # let config = Config { connections: 4, receive_bytes: 64, send_bytes_max: 64, pause_reads_above_bytes: 64 };
//! # let mut driver = Sim::new(1, &config, Network::PERFECT);
//! # let (_, address) = driver.listen(&Address::Inet("10.0.0.1:0".parse().unwrap()), 8).unwrap();
//! # let seen = Default::default();
//! # driver.client(address.inet().unwrap(), 0, ready_made_peers::client(1, 0, &seen));
//! # echo(&mut driver).unwrap();
//! # assert_eq!((seen.borrow().answered.len(), seen.borrow().wrong), (1, 1));
//! ```
//!
//! A loop is generic over [`Driver`] and compiled for each backend. [`choose`] selects the backend once, and the driver
//! is created on the thread that uses it. Drivers have no callbacks, so there is no recursion. In steady state, nothing
//! is allocated, except that an outgoing buffer grows up to its limit if the peer reads slowly.

mod address;
mod backend;
mod connection_slots;
mod driver;
mod epoll;
mod outgoing;
mod precise_waits;
pub mod sim;
mod socket;
pub mod thread_and_process;
mod uring;

pub use address::Address;
pub use backend::{Backend, Choice, choose, probe};
pub use driver::{
    Close, CloseReason, Config, Conn, Data, Driver, Event, KernelDriver, Listener, Nanos, SendError, Waker,
};
pub use epoll::Epoll;
pub use uring::Uring;
