//! `quintain serve`: reference servers, and mock services for measuring the proxies in front of them.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lab::lab_clocks::nanos;
use mocks::{Chess, Evernote, MockError, MockListen, Service, Shop, Twitter, serve_mock};
use serde_json::json;
use servers::{
    CacheLimits, CacheProtocol, CacheServer, CacheShared, Calibrate, Hostile, Http, HttpLimits, Listen, Pauses,
    Pingpong, ServeError, Shutdown,
};
use stats::Histogram;

use crate::cli::{ListenArgs, MockArgs, MockTlsArgs, ServeCacheArgs, ServeHttpArgs, ServeKind};
use crate::collected_mistakes::Mistakes;
use crate::command_result::{Exit, Problem, Result, machine, usage};
use crate::{output, signals};

/// Default connection limit of `serve http`, if descriptors allow that many.
const CONNECTIONS: u32 = 65_536;
/// Number of descriptors for standard streams, listener, event loops, and connections that are being refused.
const OTHER_DESCRIPTORS: u64 = 512;

pub(crate) fn serve(kind: ServeKind, mistakes: Mistakes) -> Result<()> {
    let shutdown = Arc::new(Shutdown::default());
    signals::on_end({
        let shutdown = Arc::clone(&shutdown);
        move |again| if again { shutdown.force() } else { shutdown.ask() }
    })?;
    let serve_one = |mock: &MockArgs, tls: Option<MockTlsArgs>, service: Arc<dyn Service>| {
        serve_services(mock, tls, &[mock.port], |_| vec![service], &shutdown)
    };
    match kind {
        ServeKind::Pingpong(listen) => {
            servers::serve_pingpong(&listen.into(), &|_| Pingpong::default(), &shutdown, ready)?;
        }
        ServeKind::Calibrate { listen, delay, pause, pause_every, seed } => {
            let pauses = pause.zip(pause_every);
            let pauses = pauses.map(|(length, every)| Pauses { length_ns: nanos(length), every_ns: nanos(every) });
            if pauses.is_some_and(|pauses| pauses.length_ns >= pauses.every_ns) {
                return Err(usage("`--pause` must be shorter than `--pause-every`"));
            }
            let handler = |thread| Calibrate::new(delay, pauses, seed, thread);
            let handlers = servers::serve_calibrate(&listen.into(), &handler, &shutdown, ready)?;
            output::json_line(true_times(handlers.iter().map(Calibrate::service_ns)))?;
        }
        ServeKind::Http(args) => http(*args, &shutdown)?,
        ServeKind::Cache(args) => serve_cache(*args, mistakes, &shutdown)?,
        ServeKind::MockEvernote { mock, tls, notes_port, profile } => {
            let services = |bound: &[SocketAddr]| {
                let url = format!("https://{}/", bound[1]);
                let user = Arc::new(Evernote::user(url.clone())) as Arc<dyn Service>;
                vec![user, Arc::new(Evernote::notes(profile, url))]
            };
            serve_services(&mock, Some(tls), &[mock.port, notes_port], services, &shutdown)?;
        }
        ServeKind::MockChess { mock, games, identities } => {
            serve_one(&mock, None, Arc::new(Chess::new(games as usize, identities)))?;
        }
        ServeKind::MockShop { mock, wrong_total, expire } => {
            serve_one(&mock, None, Arc::new(Shop::new(wrong_total, expire)))?;
        }
        ServeKind::MockTwitter { mock, tls, identities } => {
            serve_one(&mock, Some(tls), Arc::new(Twitter::new(identities)))?;
        }
        ServeKind::Hostile { port, kind, after } => {
            let address = SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, port)).into();
            let listen = Listen { address, threads: 1, backend: net::Choice::Auto, connections: None, drain_ns: 0 };
            servers::serve_hostile(&listen, &|_| Hostile::new(kind(after)), &shutdown, ready)?;
        }
    }
    Ok(())
}

fn http(args: ServeHttpArgs, shutdown: &Shutdown) -> Result<()> {
    let limits = HttpLimits {
        head_bytes: args.max_head,
        headers: args.max_headers.into(),
        body_bytes: args.max_body,
        idle_ns: nanos(args.idle_timeout),
        head_ns: nanos(args.head_timeout),
        body_ns: nanos(args.body_timeout),
        body_bytes_per_s: args.body_rate,
        send_ns: nanos(args.send_timeout),
        linger_ns: nanos(args.linger),
        streams: args.streams,
        requests: args.requests_per_connection.unwrap_or(u32::MAX),
    };
    let names = ["localhost".to_owned(), args.listen.host.to_string()].into_iter().chain(args.cert_names);
    let tls = args.tls.then(|| mocks::tls_config(&names.collect::<Vec<_>>(), args.cert_out.as_deref())).transpose()?;
    let listen = limited(args.listen, args.connections, args.drain)?;
    let minimal = args.minimal;
    let handler = |thread| Http::new(&limits, args.seed, thread, lab::lab_clocks::unix_seconds).minimal(minimal);
    let handlers = match tls {
        None => servers::serve_http(&listen, &handler, shutdown, ready)?,
        Some(mut config) => {
            config.alpn_protocols = servers::http_protocols();
            let config = Arc::new(config);
            let handler = |thread| servers::Tls::new(handler(thread), Arc::clone(&config));
            let handlers = servers::serve_https(&listen, &handler, shutdown, ready)?;
            handlers.into_iter().map(servers::Tls::into_inner).collect()
        }
    };
    let Some(path) = args.log else { return Ok(()) };
    let times = true_times(handlers.iter().map(Http::service_ns));
    if path.as_os_str() == "-" {
        return output::json_line(times);
    }
    output::file(&path, &(times.map_err(machine)? + "\n"))
}

fn serve_cache(args: ServeCacheArgs, mut mistakes: Mistakes, shutdown: &Shutdown) -> Result<()> {
    let speaks_memcached = matches!(args.protocol, CacheProtocol::Auto | CacheProtocol::Memcached);
    let versions = args.cas.unwrap_or(speaks_memcached);
    if versions && args.protocol == CacheProtocol::Http {
        mistakes.add(usage("`--cas on`: HTTP has no item versions").hint("drop it"));
    }
    mistakes.end()?;
    let (capacity_bytes, idle, stall) = (args.maxmem, args.idle_timeout, args.stall_timeout);
    let config = cache::Config {
        capacity_bytes,
        values_only: (!args.counts_everything).then(|| capacity_bytes.saturating_mul(2).saturating_add(1 << 20)),
        evictor: args.evict,
        threads: args.listen.threads as usize,
        key_bytes_max: args.key_max as usize,
        value_bytes_max: args.value_max as usize,
        versions,
        // Clients cannot know this number, so that they cannot choose keys with equal hashes.
        seed: args.seed.unwrap_or_else(|| RandomState::new().hash_one(std::process::id())),
    };
    let limits = CacheLimits {
        idle_ns: if idle.is_zero() { CacheLimits::DEFAULT.idle_ns } else { nanos(idle) },
        request_ns: nanos(stall),
        send_ns: nanos(stall),
        ..CacheLimits::DEFAULT
    };
    let shared = CacheShared::new(config, args.protocol, limits, lab::lab_clocks::unix_nanos);
    let shared = Arc::new(shared.map_err(|error| Problem::new(Exit::Usage, error))?);
    let listen = limited(args.listen, args.connections, args.drain)?;
    servers::serve_cache(&listen, &|_| CacheServer::new(Arc::clone(&shared)), shutdown, ready)?;
    Ok(())
}

/// Adds the connection limit: `asked`, or at most [`CONNECTIONS`]. Fails if descriptors do not suffice for `asked`.
fn limited(listen: ListenArgs, asked: Option<u32>, drain: Duration) -> Result<Listen> {
    let wanted = asked.unwrap_or(CONNECTIONS);
    let needed = u64::from(wanted) + OTHER_DESCRIPTORS;
    let have = net::thread_and_process::raise_open_files(needed).unwrap_or_else(|most| most);
    let room = u32::try_from(have.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or(u32::MAX);
    if asked.is_some_and(|asked| room < asked) {
        let text = format!("{wanted} connections need {needed} file descriptors, but the limit is {have}");
        let hint = "raise the hard limit (`ulimit -Hn`, `LimitNOFILE` in a service) or lower `--connections`";
        return Err(Problem::text(Exit::Machine, text).hint(hint));
    }
    Ok(Listen { connections: Some(wanted.min(room).max(1) as usize), drain_ns: nanos(drain), ..listen.into() })
}

/// Service times that `serve calibrate` and `serve http` measured, as the ground truth for a generator.
#[derive(serde::Serialize)]
struct TrueTimes {
    requests: u64,
    service_ns: serde_json::Value,
    histogram: study::record::Histogram,
}

fn true_times<'a>(threads: impl Iterator<Item = &'a Histogram>) -> serde_json::Result<String> {
    let mut service = Histogram::new();
    threads.for_each(|thread| service.merge(thread));
    let [p50, p90, p95, p99, p999] = [0.5, 0.9, 0.95, 0.99, 0.999].map(|share| service.quantile(share));
    let (mean, max) = (service.mean(), service.max());
    let service_ns = json!({ "mean": mean, "p50": p50, "p90": p90, "p95": p95, "p99": p99, "p999": p999, "max": max });
    serde_json::to_string(&TrueTimes { requests: service.len(), service_ns, histogram: (&service).into() })
}

fn ready(address: &net::Address) {
    let place = address.inet().map_or_else(|| address.to_string(), |inet| inet.port().to_string());
    // A failed write only means that no process waits for the port.
    let _ = output::data(&format!("ready {place}"));
}

impl From<ListenArgs> for Listen {
    fn from(args: ListenArgs) -> Self {
        let inet = || SocketAddr::new(args.host, args.port).into();
        let address = args.unix.map_or_else(inet, net::Address::Unix);
        Listen { address, threads: args.threads, backend: args.backend, connections: None, drain_ns: 0 }
    }
}

impl From<ServeError> for Problem {
    fn from(error: ServeError) -> Self {
        match &error {
            ServeError::Listen { address: net::Address::Inet(_), source }
                if source.kind() == std::io::ErrorKind::AddrInUse =>
            {
                Problem::new(Exit::Usage, error).hint("`-p 0` picks a free port")
            }
            ServeError::Listen { address: net::Address::Unix(_), .. } => Problem::new(Exit::Usage, error),
            _ => Problem::new(Exit::Machine, error),
        }
    }
}

/// Serves the services of a mock, one per port, until `shutdown`. Fails if it cannot listen.
fn serve_services(
    args: &MockArgs,
    tls: Option<MockTlsArgs>,
    ports: &[u16],
    services: impl FnOnce(&[SocketAddr]) -> Vec<Arc<dyn Service>>,
    shutdown: &Shutdown,
) -> Result<()> {
    let own = || ["localhost".to_owned(), args.host.to_string()].into_iter();
    let tls = tls.map(|tls| (own().chain(tls.cert_names).collect(), tls.cert_out));
    let (names, cert_out) = tls.unwrap_or_default();
    let listen = MockListen {
        threads: args.threads,
        connections: args.connections as usize,
        body_bytes: usize::try_from(args.max_body).unwrap_or(usize::MAX),
        idle: args.idle_timeout,
        patience: args.body_timeout,
        drain: args.drain,
        delay: args.delay,
        seed: args.seed,
        names,
        cert_out,
    };
    let addresses = ports.iter().map(|port| SocketAddr::new(args.host, *port)).collect::<Vec<_>>();
    // Clients connect to the first port first.
    Ok(serve_mock(&listen, &addresses, services, shutdown, |bound| ready(&bound[0].into()))?)
}

impl From<MockError> for Problem {
    fn from(error: MockError) -> Self {
        match error {
            MockError::Serve(error) => error.into(),
            MockError::Certificate { .. } | MockError::Write { .. } => Problem::new(Exit::Usage, error),
        }
    }
}
