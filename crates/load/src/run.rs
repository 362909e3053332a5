//! Runs a load on real sockets, with threads, CPU pinning and the system's clock.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::{Address, Backend, Choice, Driver};
use study::Workload;
use study::generator_messages::{Progress, Told};
use study::record::Measurement;
use study::spec::{self, Dialect, LoadSpec, Target};

use crate::coordinator::{Control, Coordinator};
use crate::journey::{MESSAGE_BYTES_MAX, Plan, Sessions};
use crate::measurement::build_measurement;
use crate::operation_stream::KEY_MAX_BYTES;
use crate::protocol::{Cache, Codec, Http, Http2, HttpCache, Memcached, Pingpong, Protocol, Redis, Shared, Values};
use crate::query_memory_limit::query_memory_limit;
use crate::server_endpoint::Server;
use crate::tls::{Alpn, Connector};
use crate::trace_distributor::{self, Tape, TraceDistributor};
use crate::worker::{self, Done, Task};
use crate::worker_threads::{Gate, LoadError, kernel, pin, run_workers, usage};

/// Time limit for connecting to each of a name's addresses.
const RESOLVE_PATIENCE: Duration = Duration::from_secs(1);
pub(crate) const RECEIVE_BYTES: usize = 16_384;
/// Size of a connection's send buffer in bytes, in addition to twice the number of bytes that can be in flight.
const SEND_BYTES_MAX: usize = 65_536;

/// Maximum length of a cache request around its key, its value and the name of the server, bytes: one line of memcached,
/// five lines of Redis, or the head of an HTTP request.
const FRAME_MAX_BYTES: usize = 256;

/// Runs a worker, given its task and its part of a trace.
type RunWorker<'a> = Box<dyn Fn(Task<'_>, Option<Tape>) -> Result<Done, LoadError> + Sync + 'a>;

/// Runs the load `spec`. Calls `progress` on the caller's thread a few times per second. Setting `abort` ends the load
/// soon and keeps the results. Fails with [`LoadError`]; invalid or missing responses are results, not failures.
pub fn run(spec: &LoadSpec, progress: &mut dyn FnMut(Progress), abort: &AtomicBool) -> Result<Measurement, LoadError> {
    let mut tell = |event| {
        if let Told::Progress(seen) = event {
            progress(seen);
        }
    };
    run_with_events(spec, &mut tell, None, abort)
}

/// Runs a load like [`run`], and calls `tell` on the caller's thread when measuring starts and ends. Connections stay
/// open until `tell` returns from [`Told::Measured`], at most about [`study::generator_messages::HOLD_MAX`]. If `spec`
/// has a gate, `gate` is required, and the caller opens it after [`Told::Connected`]. Fails like [`run`].
pub fn run_with_events(
    spec: &LoadSpec,
    tell: &mut dyn FnMut(Told),
    gate: Option<&Gate>,
    abort: &AtomicBool,
) -> Result<Measurement, LoadError> {
    let mut mistakes = crate::check(spec);
    let gate = gate.filter(|_| spec.gate);
    if spec.gate && gate.is_none() {
        mistakes.push("`gate` is only supported if a lab controls the start".to_owned());
    }
    if !mistakes.is_empty() {
        return Err(LoadError::Spec(mistakes));
    }
    let plan = Plan::of(&spec.target, spec.seed).map_err(LoadError::Spec)?;
    let counted = plan.as_ref().map(|plan| plan.in_sessions(spec));
    let spec = counted.as_ref().unwrap_or(spec);
    let plan = plan.map(|plan| Ok((plan.servers()?, Arc::new(plan)))).transpose()?;
    let server = match (&spec.target, &plan) {
        (_, Some((servers, _))) => servers.get(0).clone(),
        (target, None) => {
            let (tls, alpn, tunnel_to) = match target {
                Target::Http { tls, http2, tunnel_to, .. } => {
                    (tls.as_ref(), if *http2 { Alpn::HTTP2 } else { Alpn::HTTP1 }, tunnel_to.clone())
                }
                _ => (None, Alpn::HTTP1, None),
            };
            let tls = tls.map(|tls| Connector::over(alpn, tls).map_err(LoadError::Tls)).transpose()?;
            Server { address: resolve(target.address())?, tunnel_to, tls, host: String::new() }
        }
    };
    let choice = match (spec.backend, &spec.target) {
        // Result of 7 alternating runs against nginx with 50 and 400 clients: CPU time on epoll was 0.97 and 0.98 of
        // io_uring's (both intervals include 1), and epoll uses less memory. Caches are similar but were not measured.
        (spec::Backend::Auto, Target::Http { .. } | Target::Cache { .. } | Target::Journey { .. })
        | (spec::Backend::Epoll, _) => Choice::Epoll,
        (spec::Backend::Auto, Target::Pingpong { .. }) => Choice::Auto,
        (spec::Backend::IoUring, _) => Choice::IoUring,
    };
    let (backend, backend_note) = net::choose(choice).map_err(|source| kernel("backend", source))?;

    let workers = spec.workers();
    let shared = match &spec.target {
        Target::Cache { workload, .. } => {
            Some(Arc::new(Shared::new(workload, spec.seed, net::thread_and_process::monotonic_ns()).map_err(invalid)?))
        }
        _ => None,
    };
    let (mut dealer, mut tapes) = (None, Vec::new());
    let mut limit_bytes = None;
    let run_worker: RunWorker<'_> = match (&spec.target, &plan, &shared) {
        (_, Some((servers, plan)), _) => Box::new(move |task, _| {
            let (servers, plan) = (servers.clone(), plan.clone());
            if plan.http2 {
                let sessions = Sessions::<true>::new(plan, servers, task.index, task.workers);
                return drive(task, backend, sessions, MESSAGE_BYTES_MAX);
            }
            let sessions = Sessions::<false>::new(plan, servers, task.index, task.workers);
            drive(task, backend, sessions, MESSAGE_BYTES_MAX)
        }),
        (Target::Cache { address, dialect, workload }, _, Some(keys)) => {
            limit_bytes = server.address.inet().and_then(|address| query_memory_limit(address, *dialect));
            if let Some((trace, seen)) = workload.trace.as_ref().zip(keys.replayed.as_ref()) {
                let input = trace_distributor::open(&trace.file).map_err(LoadError::Trace)?;
                let (distributor, of_workers) =
                    TraceDistributor::new(workload, &keys.texts, spec.seed, workers, seen).map_err(invalid)?;
                (dealer, tapes) = (Some((distributor, input)), of_workers);
                tapes.reverse();
            }
            let host = if address.starts_with("unix:") { "localhost" } else { address };
            Box::new(move |task, tape| {
                let (most, keys) = (workload.values.max_bytes, (keys.clone(), tape));
                match dialect {
                    Dialect::Memcached => ask(task, backend, Memcached::new(most), workload, keys),
                    Dialect::Redis => ask(task, backend, Redis::new(most), workload, keys),
                    Dialect::HttpCache => ask(task, backend, HttpCache::new(host), workload, keys),
                }
            })
        }
        (Target::Http { requests, tls, http2, http2_settings, in_turn, expect, directory, .. }, ..) => {
            let values = Values::new(directory, spec.seed);
            if *http2 {
                let mut http = Http2::new(tls.is_some(), requests, expect, values).map_err(LoadError::Spec)?;
                http.in_turn = *in_turn;
                http.settings = *http2_settings;
                Box::new(move |task, _| {
                    let of_worker = http.of_worker(task.index, task.workers);
                    drive(task, backend, of_worker, http.request_bytes_max())
                })
            } else {
                let http = Http::new(requests, expect, spec.connection, values).map_err(LoadError::Spec)?;
                Box::new(move |task, _| {
                    let of_worker = http.of_worker(task.index, task.workers);
                    drive(task, backend, of_worker, http.request_bytes_max())
                })
            }
        }
        (Target::Pingpong { .. }, ..) => Box::new(move |task, _| drive(task, backend, Pingpong::default(), 0)),
        (Target::Cache { .. } | Target::Journey { .. }, ..) => unreachable!("they have keys, or a plan"),
    };
    let control = Control::new(spec, workers);
    let cpu_before = net::thread_and_process::process_cpu_ns();
    let failed = &AtomicBool::new(false);
    let (control, run_worker) = (&control, &run_worker);
    let jobs = (0..workers).map(|place| {
        let task = Task {
            spec,
            server: server.clone(),
            index: spec.worker(place),
            workers: spec.workers_of_all(),
            place,
            clients: spec.clients_of(place),
            control,
            connections_per_client: plan.as_ref().map_or(1, |(servers, plan)| plan.connections_per_client(servers)),
        };
        let tape = tapes.pop();
        move || {
            pin(spec.cpu_of(place), &format!("worker {}", task.index))?;
            run_worker(task, tape)
        }
    });
    let jobs = jobs.collect::<Vec<_>>();
    let address_text = server.address.to_string();
    let (finished, dealt) = std::thread::scope(|scope| {
        let reading = dealer.map(|(dealer, input)| {
            std::thread::Builder::new().name("trace".to_owned()).spawn_scoped(scope, move || {
                let dealt = dealer.deal(input);
                if dealt.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                dealt
            })
        });
        let coordinator = Coordinator::new(spec, control, gate, tell, net::thread_and_process::monotonic_ns());
        let finished = run_workers(coordinator, control, &address_text, (abort, failed), jobs);
        let dealt = reading.map_or(Ok(()), |thread| {
            let thread = thread.map_err(|source| kernel("start the thread that reads the trace", source))?;
            thread.join().map_err(|_| LoadError::Panicked(workers))?.map_err(LoadError::Trace)
        });
        (finished, dealt)
    });
    dealt?;
    let (ended, done) = finished?;
    let backend = if backend == Backend::Epoll { "epoll" } else { "io_uring" };
    let cpu_ns = net::thread_and_process::process_cpu_ns().saturating_sub(cpu_before);
    let mut measurement = build_measurement(spec, ended, &done, shared.as_deref());
    (measurement.backend, measurement.backend_note) = (backend.to_owned(), backend_note);
    measurement.process_cpu_ns = cpu_ns;
    measurement.process_rss_max_bytes = net::thread_and_process::process_peak_rss().unwrap_or(0);
    measurement.address = address_text;
    if let Some(cache) = &mut measurement.cache {
        cache.limit_bytes = limit_bytes;
    }
    if let Some((_, plan)) = &plan {
        plan.add_results(&mut measurement, spec, &done);
    }
    Ok(measurement)
}

fn ask(
    task: Task<'_>,
    backend: Backend,
    codec: impl Codec,
    workload: &Workload,
    (shared, tape): (Arc<Shared>, Option<Tape>),
) -> Result<Done, LoadError> {
    let part = (task.spec.seed, task.index, task.workers);
    let frame_bytes = FRAME_MAX_BYTES + task.spec.target.address().len();
    let request_bytes = KEY_MAX_BYTES + workload.values.max_bytes as usize + frame_bytes;
    drive(task, backend, Cache::new(codec, workload, shared, part, tape).map_err(invalid)?, request_bytes)
}

fn drive(task: Task<'_>, backend: Backend, protocol: impl Protocol, request_bytes: usize) -> Result<Done, LoadError> {
    let config = net::Config {
        connections: task.clients as usize * task.connections_per_client,
        receive_bytes: RECEIVE_BYTES,
        // TLS adds less than 1 %, so twice the size leaves enough room.
        send_bytes_max: request_bytes * task.spec.pipeline as usize * 2 + SEND_BYTES_MAX,
        pause_reads_above_bytes: usize::MAX,
    };
    let what = format!("worker {}", task.index);
    let done = match backend {
        Backend::Epoll => net::Epoll::new(&config).and_then(|driver| run_on(task, driver, protocol)),
        Backend::Uring => net::Uring::new(&config).and_then(|driver| run_on(task, driver, protocol)),
    };
    done.map_err(|source| kernel(&what, source))
}

fn run_on(task: Task<'_>, mut driver: impl Driver, protocol: impl Protocol) -> io::Result<Done> {
    let control = task.control;
    let done = worker::run(task, &mut driver, protocol, usage, |_| {});
    if done.is_ok() {
        control.hold(); // Dropping the driver closes all connections.
    }
    done
}

fn invalid(error: String) -> LoadError {
    LoadError::Spec(vec![error])
}

/// Resolves a name to its first address that accepts connections: `localhost` may be `::1`, but the server 127.0.0.1.
pub(crate) fn resolve(address: &str) -> Result<Address, LoadError> {
    let mut found =
        Address::resolve(address).map_err(|source| LoadError::Resolve { address: address.to_owned(), source })?;
    let answers = |address: &Address| match address {
        Address::Inet(address) => TcpStream::connect_timeout(address, RESOLVE_PATIENCE).is_ok(),
        Address::Unix(_) => true,
    };
    let chosen = if found.len() > 1 { found.iter().position(answers) } else { None };
    Ok(found.swap_remove(chosen.unwrap_or(0)))
}
