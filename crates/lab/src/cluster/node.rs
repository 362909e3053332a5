//! `quintain node`: the process on each machine of a cluster. It carries out
//! [`study::node::Order`]s with the same code that a lab without a cluster runs. It ends, with
//! everything it has started, once its lab is gone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use study::node::{BEAT, Hello, Order, SILENCE_MAX, Said, Serve, Stopped};
use study::record::{BuildOutcome, NetworkCounters, Probe};
use study::spec::LoadSpec;

use crate::end::End;
use crate::generator::Generator;
use crate::lines::{Lines, Writer, parse};
use crate::load::Engine;
use crate::process::{Supervisor, wait_readable};
use crate::server::{Ground, Kept};
use crate::spinner::Spinner;
use crate::subject::{Seen, Side, Subject};
use crate::{build, clock, network};

/// Time to end children once the lab is gone. The watchdog and the kernel end the rest.
const ENDING: Duration = Duration::from_secs(2);

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct Options {
    /// The quintain binary.
    pub exe: PathBuf,
    /// Base of relative paths in commands.
    pub directory: PathBuf,
    /// Measures the speed of CPUs: [`crate::probe::run`].
    pub probe: fn(&[u32], &[u32]) -> Vec<Probe>,
}

/// Serves the lab that writes to `input` and reads from `output`, until the lab ends the node or is
/// gone. Call it from the main thread: the kernel kills a thread's children when the thread ends.
/// Fails if the watchdog or the channel to the lab cannot be started.
pub fn serve(input: OwnedFd, output: OwnedFd, options: &Options, hello: Hello) -> io::Result<()> {
    let supervisor = Supervisor::start(&options.exe)?;
    let lab = Lab::new(input, output)?;
    lab.say(&Said::Hello(Box::new(hello)));
    let mut node = Node { lab, options, supervisor: &supervisor, kept: Kept::default(), spinner: None };
    // However it ends, the lab is gone.
    let Gone = node.work();
    Ok(())
}

struct Gone;

impl From<End> for Gone {
    fn from(_: End) -> Self {
        Gone
    }
}

struct Node<'a> {
    lab: Lab,
    options: &'a Options,
    supervisor: &'a Supervisor,
    kept: Kept,
    spinner: Option<(Spinner, Vec<u32>)>,
}

impl Node<'_> {
    fn work(&mut self) -> Gone {
        loop {
            let done = match self.lab.order() {
                Ok(Some(Order::Serve(order))) => self.serve(&order),
                Ok(Some(Order::Load(spec))) => self.load(&spec),
                Ok(Some(Order::Spin { cpus })) => self.spin(&cpus),
                Ok(Some(order)) => self.aside(order),
                Ok(None) => self.lab.wait(&[], None).map(|_| ()),
                Err(gone) => return gone,
            };
            if let Err(gone) = done {
                return gone;
            }
        }
    }

    fn aside(&self, order: Order) -> Result<(), Gone> {
        match order {
            Order::Probe { cpus } => self.lab.say(&Said::Probed((self.options.probe)(&cpus, &[]))),
            Order::Build { command, directory, cpus } => {
                let place = self.options.directory.join(directory.unwrap_or_default());
                let interrupted = || self.lab.is_gone();
                let built = build::build(self.supervisor, &command, &place, &cpus, &interrupted);
                let interrupted = || BuildOutcome::Failed { output_tail: "interrupted".to_owned() };
                self.lab.say(&Said::Built(built.unwrap_or_else(interrupted)));
            }
            // The server or generator has already ended.
            Order::Unload { .. } => self.lab.say(&Said::Unloaded { network: NetworkCounters::default() }),
            Order::Stop { .. } => self.lab.say(&Said::Stopped(Box::default())),
            Order::Announced(_) | Order::Measured(_) | Order::Heard(_) => {}
            order @ (Order::Serve(_) | Order::Load(_) | Order::Spin { .. }) => {
                self.lab.say(&Said::Refused(format!("{order:?} while another order is carried out")));
                return Err(Gone);
            }
            Order::Alive {} | Order::Ping { .. } | Order::Bye {} => {} // Handled by the reader.
        }
        Ok(())
    }

    fn serve(&self, order: &Serve) -> Result<(), Gone> {
        let interrupted = || self.lab.is_gone();
        let ground = Ground {
            supervisor: self.supervisor,
            kept: &self.kept,
            directory: &self.options.directory,
            interrupted: &interrupted,
        };
        let mut subject = match Subject::start(order, ground) {
            Ok(subject) => subject,
            Err((End::Failed(failure), known)) => {
                self.lab.say(&Said::Failed(Box::new(Stopped { failure: Some(failure), ..*known })));
                return Ok(());
            }
            Err((End::Interrupted | End::Lost(_), _)) => return Err(Gone),
        };
        self.lab.say(&Said::Standing(subject.standing()));
        let mut told = Seen::default();
        loop {
            let due = subject.prepare();
            // The handle of an exited process would stay readable.
            let handles = if told.exited { Vec::new() } else { subject.handles() };
            let readable = self.lab.wait(&handles, due)?;
            self.tell(subject.look(&readable)?, &mut told);
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
                self.tell(subject.look(&[])?, &mut told);
            }
        }
    }

    fn tell(&self, seen: Seen, told: &mut Seen) {
        for (is_new, news) in [
            (seen.began && !told.began, Said::Taken { end: false }),
            (seen.ended && !told.ended, Said::Taken { end: true }),
            (seen.exited && !told.exited, Said::Ended {}),
        ] {
            if is_new {
                self.lab.say(&news);
            }
        }
        *told = Seen { exited: seen.exited || told.exited, ..seen };
    }

    fn load(&self, spec: &LoadSpec) -> Result<(), Gone> {
        let counters = || network::read(Path::new("/proc/self/net"));
        let before = counters();
        let mut generator = match Generator::start(self.supervisor, spec, &spec.cpus, &self.options.directory) {
            Ok(generator) => Some(generator),
            Err(error) => {
                self.lab.say(&Said::Broken(format!("cannot be started: {error}")));
                None
            }
        };
        let mut talks = generator.is_some();
        loop {
            let handles = generator.iter().filter(|_| talks).map(Generator::handle).collect::<Vec<_>>();
            let readable = self.lab.wait(&handles, None)?;
            if readable == [true]
                && let Some(generator) = &mut generator
            {
                match generator.lines() {
                    Ok(lines) => lines.iter().for_each(|line| self.relay(line)),
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
                        if let Some(generator) = &mut generator {
                            generator.end(Duration::from_nanos(patience_ns))?;
                        }
                        let between = |(before, after)| network::between(before, after);
                        let network = before.zip(counters()).map(between).unwrap_or_default();
                        self.lab.say(&Said::Unloaded { network });
                        return Ok(());
                    }
                    order => self.aside(order)?,
                }
            }
        }
    }

    /// Forwards a line of the generator unparsed, so that it arrives unchanged.
    fn relay(&self, line: &[u8]) {
        let _ = self.lab.writer.line(&[b"{\"generator\":", line.trim_ascii(), b"}"].concat());
    }

    fn spin(&mut self, cpus: &[u32]) -> Result<(), Gone> {
        let why = match &mut self.spinner {
            Some((spinner, on)) if on == cpus => spinner.check().err(),
            _ => match Spinner::start(cpus, self.supervisor, &self.options.directory) {
                Ok(spinner) => {
                    self.spinner = Some((spinner, cpus.to_vec()));
                    None
                }
                Err(why) => Some(why),
            },
        };
        self.lab.say(&Said::Spinning(why));
        Ok(())
    }
}

/// Channel to the lab. Besides the main thread, one thread reads orders and responds to pings at
/// once. Another sends beats and checks that the lab still does.
struct Lab {
    writer: Writer,
    orders: mpsc::Receiver<Order>,
    /// Readable when there is an order or the lab is gone.
    wake: OwnedFd,
    gone: Arc<AtomicBool>,
    _beats: mpsc::Sender<()>,
}

impl Lab {
    fn new(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        let writer = Writer::new(output, SILENCE_MAX)?;
        let (wake, waker) = io::pipe()?;
        // A full pipe wakes just as well, so lost bytes do not matter.
        let waker = Writer::new(waker, Duration::ZERO)?;
        let wake = OwnedFd::from(wake);
        rustix::fs::fcntl_setfl(&wake, rustix::fs::OFlags::NONBLOCK)?;
        let (sender, orders) = mpsc::channel();
        let gone = Arc::new(AtomicBool::new(false));
        let heard_ns = Arc::new(AtomicU64::new(clock::monotonic_ns()));
        let end = {
            let (gone, waker) = (gone.clone(), waker.clone());
            move || {
                gone.store(true, Ordering::Relaxed);
                let _ = waker.line(b"");
            }
        };
        let (beats, stop) = mpsc::channel::<()>();
        let (ended, pong, heard) = (end.clone(), writer.clone(), heard_ns.clone());
        spawn("orders", move || {
            read_orders(Lines::of(input), &pong, &sender, &waker, &heard);
            ended();
        })?;
        let (is_gone, beat) = (gone.clone(), writer.clone());
        spawn("beats", move || {
            // The sender is dropped when the node ends by itself.
            while stop.recv_timeout(BEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
                let silent = clock::monotonic_ns().saturating_sub(heard_ns.load(Ordering::Relaxed));
                if is_gone.load(Ordering::Relaxed)
                    || silent > clock::nanos(SILENCE_MAX)
                    || beat.say(&Said::Alive {}).is_err()
                {
                    end();
                    let _ = stop.recv_timeout(ENDING);
                    std::process::exit(0);
                }
            }
        })?;
        Ok(Self { writer, orders, wake, gone, _beats: beats })
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Ignores failures: if the lab is gone, other threads notice.
    fn say(&self, said: &Said) {
        let _ = self.writer.say(said);
    }

    fn order(&self) -> Result<Option<Order>, Gone> {
        if self.is_gone() {
            return Err(Gone);
        }
        Ok(self.orders.try_recv().ok())
    }

    fn wait(&self, handles: &[BorrowedFd<'_>], due: Option<Instant>) -> Result<Vec<bool>, Gone> {
        let timeout = due.map_or(BEAT, |due| due.saturating_duration_since(clock::now()).min(BEAT));
        let readable = wait_readable(&[&[self.wake.as_fd()], handles].concat(), timeout);
        if readable[0] {
            let _ = rustix::io::read(&self.wake, &mut [0; 256]);
        }
        if self.is_gone() { Err(Gone) } else { Ok(readable[1..].to_vec()) }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(())
}

fn read_orders(mut lines: Lines, writer: &Writer, sender: &mpsc::Sender<Order>, waker: &Writer, heard_ns: &AtomicU64) {
    while let Ok(Some(lines)) = lines.read() {
        let now_ns = clock::monotonic_ns();
        heard_ns.store(now_ns, Ordering::Relaxed);
        for line in lines {
            match parse::<Order>(&line) {
                Err(text) => {
                    let _ = writer.say(&Said::Refused(text));
                    return;
                }
                Ok(Order::Alive {}) => {}
                Ok(Order::Ping { at_ns }) => {
                    let _ = writer.say(&Said::Pong { at_ns, here_ns: now_ns });
                }
                Ok(Order::Bye {}) => return,
                Ok(order) => {
                    if sender.send(order).is_err() {
                        return;
                    }
                    let _ = waker.line(b"");
                }
            }
        }
    }
}
