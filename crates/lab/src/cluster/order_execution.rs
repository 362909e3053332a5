//! `quintain node`: the process on each machine of a cluster. It carries out [`study::node_messages::Order`]s with the
//! code that a lab without a cluster runs. It ends, with everything that it has started, once its lab is gone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use study::node_messages::{BEAT, Hello, Order, SILENCE_MAX, Said, Serve, Stopped};
use study::record::{BuildOutcome, NetworkCounters};
use study::spec::LoadSpec;

use crate::generator_process::Generator;
use crate::json_lines::{Lines, Writer, parse};
use crate::load_side::Engine;
use crate::process_start_and_stop::{Supervisor, wait_readable};
use crate::run::Spinner;
use crate::server_side::{Side, Subject};
use crate::start_server::{Ground, Kept};
use crate::trial_end_reason::End;
use crate::{build_servers, cpu_probe, lab_clocks, network_counters};

/// Time for a node to end its children once the lab is gone. The watchdog and the kernel end the rest.
const ENDING: Duration = Duration::from_secs(2);

/// Carries out the lab's orders until the lab is gone or ends the node. `exe` is the quintain binary, and relative paths
/// in commands start at `directory`. Must be called from the main thread, because the kernel kills a thread's children
/// with it. Fails if the watchdog cannot be started.
pub fn serve(lab: Lab, exe: &Path, directory: &Path, hello: Hello) -> io::Result<()> {
    let supervisor = Supervisor::start(exe)?;
    lab.say(&Said::Hello(Box::new(hello)));
    // Whatever the result, the lab is gone or has ended this node.
    let _ = Node { lab, directory, supervisor: &supervisor, kept: Kept::default() }.work();
    Ok(())
}

struct Node<'a> {
    lab: Lab,
    directory: &'a Path,
    supervisor: &'a Supervisor,
    kept: Kept,
}

impl Node<'_> {
    fn work(&self) -> Result<(), End> {
        let mut spinner = None;
        loop {
            match self.lab.order()? {
                Some(Order::Serve(order)) => self.serve(&order)?,
                Some(Order::Load(spec)) => self.load(&spec)?,
                Some(Order::Spin { cpus }) => {
                    self.lab.say(&Said::Spinning(Spinner::keep(&mut spinner, &cpus, self.supervisor).err()));
                }
                Some(order) => self.aside(order)?,
                None => _ = self.lab.wait(&[], None)?,
            }
        }
    }

    fn aside(&self, order: Order) -> Result<(), End> {
        match order {
            Order::Probe { cpus } => self.lab.say(&Said::Probed(cpu_probe::run(&cpus, &[]))),
            Order::Build { command, directory, cpus } => {
                let place = self.directory.join(directory.unwrap_or_default());
                let interrupted = || self.lab.is_gone();
                let built = build_servers::build(self.supervisor, &command, &place, &cpus, &interrupted);
                let interrupted = || BuildOutcome::Failed { output_tail: "interrupted".to_owned() };
                self.lab.say(&Said::Built(built.unwrap_or_else(interrupted)));
            }
            // These orders may arrive after the server or generator has ended.
            Order::Unload { .. } => self.lab.say(&Said::Unloaded { network: NetworkCounters::default() }),
            Order::Stop { .. } => self.lab.say(&Said::Stopped(Box::default())),
            Order::Announced(_) | Order::Measured(_) | Order::Heard(_) => {}
            order @ (Order::Serve(_) | Order::Load(_) | Order::Spin { .. }) => {
                self.lab.say(&Said::Refused(format!("{order:?} while another order is carried out")));
                return Err(End::Interrupted);
            }
            Order::Alive {} | Order::Ping { .. } | Order::Bye {} => {} // The reader handles these.
        }
        Ok(())
    }

    fn serve(&self, order: &Serve) -> Result<(), End> {
        let interrupted = || self.lab.is_gone();
        let (supervisor, kept, directory) = (self.supervisor, &self.kept, self.directory);
        let ground = Ground { supervisor, kept, directory, interrupted: &interrupted };
        let mut subject = match Subject::start(order, ground) {
            Ok(subject) => subject,
            Err((End::Failed(failure), known)) => {
                self.lab.say(&Said::Failed(Box::new(Stopped { failure: Some(failure), ..*known })));
                return Ok(());
            }
            Err((end, _)) => return Err(end),
        };
        self.lab.say(&Said::Standing(subject.standing));
        loop {
            let due = subject.prepare();
            let readable = self.lab.wait(&subject.handles(), due)?;
            subject.look(&readable)?.iter().for_each(|said| self.lab.say(said));
            while let Some(order) = self.lab.order()? {
                match order {
                    Order::Announced(moments) => subject.announce(moments)?,
                    Order::Measured(span) => subject.measured(span)?,
                    Order::Stop { failed } => {
                        self.lab.say(&Said::Stopped(Box::new(Box::new(subject).stop(failed)?)));
                        return Ok(());
                    }
                    order => self.aside(order)?,
                }
                subject.look(&[])?.iter().for_each(|said| self.lab.say(said));
            }
        }
    }

    fn load(&self, spec: &LoadSpec) -> Result<(), End> {
        // A line of the generator is forwarded unparsed, so that it arrives unchanged.
        let relay = |line: &Vec<u8>| {
            let _ = self.lab.shared.writer.line(&[b"{\"generator\":", line.trim_ascii(), b"}"].concat());
        };
        let counters = || network_counters::read(Path::new("/proc/self/net"));
        let before = counters();
        let started = Generator::start(self.supervisor, spec, &spec.cpus, self.directory);
        let cannot_start = |error| self.lab.say(&Said::Broken(format!("cannot be started: {error}")));
        let mut generator = started.map_err(cannot_start).ok();
        let mut talks = generator.is_some();
        loop {
            let handles = generator.iter().filter(|_| talks).map(Generator::handle).collect::<Vec<_>>();
            let readable = self.lab.wait(&handles, None)?;
            if let ([true], Some(generator)) = (&readable[..], &mut generator) {
                match generator.lines() {
                    Ok(lines) => lines.iter().for_each(relay),
                    Err(text) => {
                        talks = false;
                        self.lab.say(&Said::Broken(text));
                    }
                }
            }
            while let Some(order) = self.lab.order()? {
                match order {
                    Order::Heard(heard) => generator.iter_mut().try_for_each(|generator| generator.tell(heard))?,
                    Order::Unload { patience_ns } => {
                        let patience = Duration::from_nanos(patience_ns);
                        generator.iter_mut().try_for_each(|generator| generator.end(patience).map(drop))?;
                        let between = |(before, after)| network_counters::between(before, after);
                        let network = before.zip(counters()).map(between).unwrap_or_default();
                        self.lab.say(&Said::Unloaded { network });
                        return Ok(());
                    }
                    order => self.aside(order)?,
                }
            }
        }
    }
}

/// Channel to the lab. A thread reads orders, answers pings, sends beats and watches the lab's beats.
pub struct Lab {
    shared: Arc<Shared>,
    orders: mpsc::Receiver<Order>,
    /// Pipe that is readable when there is an order or the lab is gone.
    wake: OwnedFd,
    _end: mpsc::Sender<()>,
}

struct Shared {
    writer: Writer,
    waker: Writer,
    is_gone: AtomicBool,
}

impl Lab {
    /// Opens the channel to the lab that writes to `input` and reads from `output`. Sends beats from now on, so that
    /// the node can take its time before its first message. Fails if a pipe or thread cannot be created.
    pub fn new(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        let (wake, waker) = io::pipe()?;
        let wake = OwnedFd::from(wake);
        rustix::fs::fcntl_setfl(&wake, rustix::fs::OFlags::NONBLOCK)?;
        // Bytes that the waker loses do not matter: a full pipe is readable too.
        let (writer, waker) = (Writer::new(output, SILENCE_MAX)?, Writer::new(waker, Duration::ZERO)?);
        let shared = Arc::new(Shared { writer, waker, is_gone: AtomicBool::new(false) });
        let (sender, orders) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let theirs = shared.clone();
        let run = move || theirs.run(Lines::of(input), &sender, &ended);
        std::thread::Builder::new().name("orders".to_owned()).spawn(run)?;
        Ok(Self { shared, orders, wake, _end: end })
    }

    fn is_gone(&self) -> bool {
        self.shared.is_gone.load(Ordering::Relaxed)
    }

    /// Sends a message to the lab. Ignores failures: if the lab is gone, other threads notice.
    fn say(&self, said: &Said) {
        let _ = self.shared.writer.say(said);
    }

    fn order(&self) -> Result<Option<Order>, End> {
        if self.is_gone() { Err(End::Interrupted) } else { Ok(self.orders.try_recv().ok()) }
    }

    /// Waits for `handles`, an order or the time `due`. Returns one flag per handle. Fails if the lab is gone.
    fn wait(&self, handles: &[BorrowedFd<'_>], due: Option<Instant>) -> Result<Vec<bool>, End> {
        let timeout = due.map_or(BEAT, |due| due.saturating_duration_since(lab_clocks::now()).min(BEAT));
        let readable = wait_readable(&[&[self.wake.as_fd()], handles].concat(), timeout);
        if readable[0] {
            let _ = rustix::io::read(&self.wake, &mut [0; 256]);
        }
        if self.is_gone() { Err(End::Interrupted) } else { Ok(readable[1..].to_vec()) }
    }
}

impl Shared {
    /// Exchanges messages until the lab is gone or silent for too long. If the sender of `ended` is not dropped soon
    /// after that, ends this process.
    fn run(&self, lines: Lines, sender: &mpsc::Sender<Order>, ended: &mpsc::Receiver<()>) {
        self.exchange(lines, sender);
        self.is_gone.store(true, Ordering::Relaxed);
        let _ = self.waker.line(b"");
        if ended.recv_timeout(ENDING) == Err(mpsc::RecvTimeoutError::Timeout) {
            std::process::exit(0);
        }
    }

    fn exchange(&self, mut lines: Lines, sender: &mpsc::Sender<Order>) {
        let (mut heard, mut beat) = (lab_clocks::now(), lab_clocks::now());
        loop {
            let pause = (beat + BEAT).saturating_duration_since(lab_clocks::now());
            let is_readable = wait_readable(&[lines.handle()], pause)[0];
            let now = lab_clocks::now();
            if now >= beat + BEAT {
                beat = now;
                if now - heard > SILENCE_MAX && !is_readable || self.writer.say(&Said::Alive {}).is_err() {
                    return;
                }
            }
            if !is_readable {
                continue;
            }
            let Ok(Some(lines)) = lines.read() else { return };
            let now_ns = lab_clocks::monotonic_ns();
            heard = now;
            for line in lines {
                match parse::<Order>(&line) {
                    Err(text) => {
                        let _ = self.writer.say(&Said::Refused(text));
                        return;
                    }
                    Ok(Order::Alive {}) => {}
                    Ok(Order::Ping { at_ns }) => _ = self.writer.say(&Said::Pong { at_ns, here_ns: now_ns }),
                    Ok(Order::Bye {}) => return,
                    Ok(order) => match sender.send(order) {
                        Ok(()) => _ = self.waker.line(b""),
                        Err(_) => return,
                    },
                }
            }
        }
    }
}
