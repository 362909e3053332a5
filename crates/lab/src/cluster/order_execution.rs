//! `quintain node`: the process on each machine of a cluster. It carries out [`study::node_messages::Order`]s with the
//! code that a lab without a cluster runs. It ends, with everything that it has started, once its lab is gone.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use study::node_messages::{BEAT, Hello, Order, SILENCE_MAX, Said, Serve, Stopped};
use study::record::{BuildOutcome, NetworkCounters};
use study::spec::LoadSpec;

use crate::generator_process::Generator;
use crate::json_lines::{Channel, Lines, Writer, parse};
use crate::load_side::Engine;
use crate::process_start_and_stop::{Supervisor, wait_readable};
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
    let interrupted = || lab.is_gone();
    let supervisor = Supervisor::start(exe)?;
    let ground = Ground { supervisor, kept: Kept::default(), directory, interrupted: &interrupted };
    lab.say(&Said::Hello(Box::new(hello)));
    // Whatever the result, the lab is gone or has ended this node.
    let _ = Node { lab: &lab, ground }.work();
    Ok(())
}

struct Node<'a> {
    lab: &'a Lab,
    ground: Ground<'a>,
}

impl Node<'_> {
    fn work(&self) -> Result<(), End> {
        loop {
            match self.lab.order()? {
                Some(Order::Serve(order)) => self.serve(&order)?,
                Some(Order::Load(spec)) => self.load(&spec)?,
                Some(order) => self.aside(order)?,
                None => _ = self.lab.wait(&[], None)?,
            }
        }
    }

    fn aside(&self, order: Order) -> Result<(), End> {
        match order {
            Order::Probe { cpus } => self.lab.say(&Said::Probed(cpu_probe::run(&cpus, &[]))),
            Order::Build { command, directory, cpus } => {
                let Ground { supervisor, interrupted, .. } = &self.ground;
                let place = self.ground.directory.join(directory.unwrap_or_default());
                let built = build_servers::build(supervisor, &command, &place, &cpus, interrupted);
                let interrupted = || BuildOutcome::Failed { output_tail: "interrupted".to_owned() };
                self.lab.say(&Said::Built(built.unwrap_or_else(interrupted)));
            }
            Order::Spin { cpus } => self.lab.say(&Said::Spinning(self.ground.supervisor.keep_awake(&cpus).err())),
            // These orders may arrive after the server or generator has ended.
            Order::Unload { .. } => self.lab.say(&Said::Unloaded { network: NetworkCounters::default() }),
            Order::Stop { .. } => self.lab.say(&Said::Stopped(Box::default())),
            Order::Announced(_) | Order::Measured(_) | Order::Heard(_) => {}
            order @ (Order::Serve(_) | Order::Load(_)) => {
                self.lab.say(&Said::Refused(format!("{order:?} while another order is carried out")));
                return Err(End::Interrupted);
            }
            Order::Alive {} | Order::Ping { .. } | Order::Bye {} => {} // The channel handles these.
        }
        Ok(())
    }

    fn serve(&self, order: &Serve) -> Result<(), End> {
        let mut known = Stopped::default();
        let mut subject = match Subject::start(order, &self.ground, &mut known) {
            Ok(subject) => subject,
            Err(End::Failed(failure)) => {
                self.lab.say(&Said::Failed(Box::new(Stopped { failure: Some(failure), ..known })));
                return Ok(());
            }
            Err(end) => return Err(end),
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
                        self.lab.say(&Said::Stopped(Box::new(Box::new(subject).stop(failed, known)?)));
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
            let _ = self.lab.writer.line(&[b"{\"generator\":", line.trim_ascii(), b"}"].concat());
        };
        let counters = || network_counters::read(Path::new("/proc/self/net"));
        let before = counters();
        let started = Generator::start(&self.ground.supervisor, spec, &spec.cpus, self.ground.directory);
        let cannot_start = |error| self.lab.say(&Said::Broken(format!("cannot be started: {error}")));
        let mut generator = started.map_err(cannot_start).ok();
        loop {
            let handles = generator.iter().map(Generator::handle).collect::<Vec<_>>();
            let readable = self.lab.wait(&handles, None)?;
            if let ([true], Some(running)) = (&readable[..], &mut generator) {
                match running.lines() {
                    Ok(lines) => lines.iter().for_each(relay),
                    Err(text) => {
                        generator = None;
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

/// Channel to the lab. A thread sends beats, and ends this process if it is still there [`ENDING`] after the lab.
pub struct Lab {
    writer: Writer,
    lines: RefCell<Lines>,
    orders: RefCell<VecDeque<Order>>,
    is_gone: Cell<bool>,
}

impl Lab {
    /// Sends beats from now on, so that the node can take its time before its first message. Fails if the thread cannot
    /// start.
    pub fn new(Channel { input, output: writer }: Channel) -> io::Result<Self> {
        let end = || {
            std::thread::sleep(ENDING);
            std::process::exit(0)
        };
        writer.start_beats(Said::Alive {}, end)?;
        Ok(Self { writer, lines: RefCell::new(input), orders: RefCell::default(), is_gone: Cell::default() })
    }

    /// Reads all orders that have arrived, and returns whether the lab is gone, has been silent for too long or has
    /// ended this node.
    fn is_gone(&self) -> bool {
        let is_readable = || wait_readable(&[self.lines.borrow().handle()], Duration::ZERO)[0];
        while !self.is_gone.get() && is_readable() {
            self.is_gone.set(self.read().is_none());
        }
        self.is_gone.get() || lab_clocks::now() - self.lines.borrow().heard > SILENCE_MAX
    }

    /// Reads orders and answers pings; `None` if there will be no more orders.
    fn read(&self) -> Option<()> {
        let lines = self.lines.borrow_mut().read().ok()??;
        let here_ns = lab_clocks::monotonic_ns();
        for line in lines {
            match parse(&line) {
                Ok(Order::Alive {}) => {}
                Ok(Order::Ping { at_ns }) => self.say(&Said::Pong { at_ns, here_ns }),
                Ok(Order::Bye {}) => return None,
                Ok(order) => self.orders.borrow_mut().push_back(order),
                Err(text) => {
                    self.say(&Said::Refused(text));
                    return None;
                }
            }
        }
        Some(())
    }

    /// Sends a message to the lab. Ignores failures: if the lab is gone, reading shows it.
    fn say(&self, said: &Said) {
        let _ = self.writer.say(said);
    }

    fn order(&self) -> Result<Option<Order>, End> {
        if self.is_gone() { Err(End::Interrupted) } else { Ok(self.orders.borrow_mut().pop_front()) }
    }

    /// Waits for `handles`, an order or the time `due`. Returns one flag per handle. Fails if the lab is gone.
    fn wait(&self, handles: &[BorrowedFd<'_>], due: Option<Instant>) -> Result<Vec<bool>, End> {
        let timeout = match due {
            // An order may have been read while the node checked whether the lab is gone.
            _ if !self.orders.borrow().is_empty() => Duration::ZERO,
            due => due.map_or(BEAT, |due| due.saturating_duration_since(lab_clocks::now()).min(BEAT)),
        };
        let readable = wait_readable(&[&[self.lines.borrow().handle()], handles].concat(), timeout);
        if self.is_gone() { Err(End::Interrupted) } else { Ok(readable[1..].to_vec()) }
    }
}
