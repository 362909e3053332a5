//! Every flag of the binary, defined once: parsing, `--help` and suggestions come from here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A benchmarking laboratory for network servers.
///
/// quintain starts the server under test, pins it, drives it, repeats with fresh server processes until the answer is
/// tight, and says in words and pictures what was found, how sure it is, and whether the server or the generator was
/// the limit.
#[derive(Debug, Parser)]
#[command(name = "quintain", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 fine, 1 a gate failed, 2 a mistake in what was asked, 3 the subject failed, \
                          4 this machine cannot do it, 130 interrupted.\n\
                          Data goes to stdout, progress and messages to stderr; `--json` is for machines.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Carry a study out: build, start, load, repeat, store, report (the main job)
    Run(RunArgs),
    /// Load a server that runs already, as one would with wrk or oha
    Load(Box<LoadArgs>),
    /// Start a reference server
    Serve(ServeArgs),
    /// Check a study and show its plan, the number of trials and the time
    Check(CheckArgs),
    /// List the runs in the store
    Runs(StoreArgs),
    /// Render a run again
    Report(ReportArgs),
    /// Is this machine fit to measure on?
    Doctor(DoctorArgs),
    /// Measure what the generator can do here against a null server, and keep it
    Calibrate(CalibrateArgs),
    /// Look at a workload for caches
    Workload(WorkloadArgs),
    /// Stand before one party and ask contracts of what passes
    Adapter(AdapterArgs),
    /// Check a contract, explain a report, look into an adapter's store
    Contract(ContractArgs),
    /// Become a command, pinned; how the lab starts subjects
    #[command(hide = true)]
    Exec(ExecArgs),
    /// Kill what a lab that died had started
    #[command(hide = true)]
    Watchdog,
    /// Keep processors awake at the lowest priority
    #[command(hide = true)]
    Spin(SpinArgs),
}

/// The file where runs are kept, unless another is named.
pub(crate) const STORE: &str = "quintain.db";

/// Where runs are kept.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// SQLite file that keeps runs and trials
    #[arg(long, value_name = "FILE", default_value = STORE)]
    pub(crate) store: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "On SIGHUP the contract and its schemas are read anew; one with mistakes changes nothing.")]
pub(crate) struct AdapterArgs {
    /// The configuration, TOML
    pub(crate) config: PathBuf,
    /// Check the configuration and all files that it names, and start nothing
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ContractArgs {
    #[command(subcommand)]
    pub(crate) verb: ContractVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContractVerb {
    /// Tell all mistakes of a contract, and what in it cannot be meant
    #[command(after_help = "Exit codes: 0 fine, 1 a warning with `--strict`, 2 a mistake.")]
    Check {
        /// The contract; schemas that it names are read, too
        file: PathBuf,
        /// Exit with 1 where there is a warning; mistakes exit with 2 in any case
        #[arg(long)]
        strict: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say why the blame of a report falls where it does
    Explain(ExplainArgs),
    /// Look into the store of an adapter that does not run
    State(StateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Reports of an adapter as lines of JSON; `-` is standard input
    pub(crate) reports: PathBuf,
    /// Only those of this clause, `Adder.add.sum`
    #[arg(long)]
    pub(crate) clause: Option<String>,
    /// Only those of the call with this number
    #[arg(long)]
    pub(crate) call: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// The store's file
    #[arg(long, value_name = "FILE")]
    pub(crate) store: PathBuf,
    #[command(subcommand)]
    pub(crate) verb: StateVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StateVerb {
    /// List all service entries
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the entries of one endpoint
    Get {
        /// As the contract names it
        endpoint: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget entries
    Purge {
        /// Those of this endpoint
        #[arg(long)]
        endpoint: Option<String>,
        /// All of them
        #[arg(long, conflicts_with = "endpoint")]
        all: bool,
    },
}

/// What is common to everything that expands a study.
#[derive(Clone, Debug, Args)]
pub(crate) struct StudyArgs {
    /// A file, or the name of one in `studies/`
    pub(crate) study: String,
    /// A quick look: fewer points and trials, under a minute, no claim of confidence
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// The whole sweep of the study; what this machine cannot run is a row that says so
    #[arg(long)]
    pub(crate) full: bool,
    /// Replace levels of a factor (`cores=1,2`) or a value of the study (`load.stop.duration=2s`)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) sets: Vec<(String, String)>,
    /// Seed of the order of the trials and of every request; the same seed gives the same plan
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Go on with an interrupted run of this study, the latest or the one named, with the plan it began with
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest", conflicts_with_all = ["quick", "full", "sets", "seed", "backend"])]
    pub(crate) resume: Option<String>,
    /// Write the HTML report here [default: STUDY.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// What idle processors do while a trial runs: the machine's own way, or kept awake by SCHED_IDLE spinners
    #[arg(long, value_enum, default_value_t = Idle::Machine)]
    pub(crate) idle: Idle,
    /// The generator's door to the kernel; the study's own choice when not given
    #[arg(long, value_enum)]
    pub(crate) backend: Option<Backend>,
    /// Processors to use, `0-3,8`; all that this process may use when not given
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    /// Processors to plan for, `0-3,8`; all that this process may use when not given
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Headings of `quintain load --help`.
const REQUESTS: &str = "Requests";
const SEARCH: &str = "Search";
const CACHES: &str = "Caches";
const JOURNEYS: &str = "Journeys";
const TLS: &str = "TLS";
const RIGHT: &str = "Right answers";
const GENERATOR: &str = "Generator";
const OUTPUT: &str = "Output";

#[derive(Debug, Args)]
#[command(after_help = LOAD_HELP, override_usage = "quintain load [OPTIONS] URL\n       quintain load [OPTIONS] --urls FILE\n       quintain load [OPTIONS] --journey NAME|FILE")]
pub(crate) struct LoadArgs {
    /// `http://host:port/path`, `https://...`, `pingpong://host:port`; of caches `memcached://`, `memcached+meta://`, `redis://`, `redis+resp3://`, `http-cache://`
    #[arg(required_unless_present_any = ["spec", "urls", "journey"], value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Connections, over all threads
    #[arg(short = 'c', long, alias = "connections", value_name = "N", default_value = "10", allow_negative_numbers = true, value_parser = given(clients))]
    pub(crate) clients: Given<u32>,
    /// Worker threads
    #[arg(short = 't', long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = given(threads))]
    pub(crate) threads: Given<u32>,
    /// How long to measure [default: 5s; of a trace to its end, 10m at most]
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", allow_negative_numbers = true, value_parser = given(some_time))]
    pub(crate) duration: Option<Given<Duration>>,
    /// Send exactly N requests after the warm-up, instead of measuring for a time; errors are among them. Give up when for twice
    /// --timeout nothing comes
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = given(count), conflicts_with_all = ["duration", "until", "volley"])]
    pub(crate) requests: Option<Given<u64>>,
    /// Measure until the interval of the mean latency is this narrow (`1%`), at most ten times --duration
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = given(percentage), conflicts_with = "volley")]
    pub(crate) until: Option<Given<f64>>,
    /// Measure by volley's own rule (95 % normal interval of the mean within 5 us, 3 minutes at most)
    #[arg(long)]
    pub(crate) volley: bool,
    /// Open loop: offered requests a second over all connections (`50k`)
    #[arg(short = 'R', long, value_name = "RATE", group = "open", allow_negative_numbers = true, value_parser = given(rate))]
    pub(crate) rate: Option<Given<f64>>,
    /// Search for the highest rate that keeps an objective, `p99<5ms` or `p99 < 5ms and errors < 0.1%`; --duration is that of each trial
    #[arg(long, value_name = "OBJECTIVE", group = "open", conflicts_with_all = ["rate", "requests", "until", "volley"], help_heading = SEARCH)]
    pub(crate) find: Option<String>,
    /// The lowest rate tried, where the search begins [default: half of what a closed loop reaches]
    #[arg(long, value_name = "RATE", requires = "find", allow_negative_numbers = true, value_parser = given(rate), help_heading = SEARCH)]
    pub(crate) find_from: Option<Given<f64>>,
    /// The highest rate tried [default: no limit]
    #[arg(long, value_name = "RATE", requires = "find", allow_negative_numbers = true, value_parser = given(rate), help_heading = SEARCH)]
    pub(crate) find_to: Option<Given<f64>>,
    /// How far the two ends of the answer may lie apart [default: 5%]
    #[arg(long, value_name = "PERCENT", requires = "find", allow_negative_numbers = true, value_parser = given(percentage), help_heading = SEARCH)]
    pub(crate) resolution: Option<Given<f64>>,
    /// Gaps of the open loop
    #[arg(long, value_enum, value_name = "LAW", default_value_t = Gaps::Poisson, requires = "open")]
    pub(crate) arrivals: Gaps,
    /// Closed loop: pause of a client between an answer and its next request
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = given(duration), default_value = "0s", conflicts_with = "open")]
    pub(crate) think: Given<Duration>,
    /// Load so long before measuring, `2s`; of a cache also `steady` or `50%` of -n [default: 500ms; of a cache `steady`, 1m at most; of a trace 0s]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = given(warmup))]
    pub(crate) warmup: Option<Given<WarmupRule>>,
    /// An answer later than this counts as a timeout; if it still comes, its latency is kept
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = given(timeout), default_value = "2s")]
    pub(crate) timeout: Given<Duration>,
    #[command(flatten)]
    pub(crate) journey: JourneyArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    /// Door to the kernel
    #[arg(long, value_enum, default_value_t = Backend::Auto, help_heading = GENERATOR)]
    pub(crate) backend: Backend,
    /// Pin worker i to the i-th of these processors, `1` or `2-5`
    #[arg(long, value_name = "LIST", allow_negative_numbers = true, value_parser = given(cpu_list), help_heading = GENERATOR)]
    pub(crate) cpus: Option<Given<Cpus>>,
    /// Seed of everything random: arrivals, the order of requests
    #[arg(long, default_value_t = 1, help_heading = GENERATOR)]
    pub(crate) seed: u64,
    /// Print one JSON object
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// No live line, no notes
    #[arg(short = 'q', long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// For users of wrk: does nothing, quantiles are always shown
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) latency: bool,
    /// Read a LoadSpec (JSON) from a file or, with `-`, from stdin, and print progress and Measurement as JSON lines
    #[arg(long, value_name = "FILE", hide = true, exclusive = true)]
    pub(crate) spec: Option<String>,
}

/// What loads of journeys alone know.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JourneyArgs {
    /// Instead of a URL: what users do call by call, `evernote`, `chess`, `twitter`, or a file; -n is calls, made in whole journeys
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["url", "urls", "rate", "find", "volley", "think"], help_heading = JOURNEYS)]
    pub(crate) journey: Option<String>,
    /// Where one of its services is, instead of what the journey says; may be given several times
    #[arg(long = "target", value_name = "NAME=URL", value_parser = key_value, requires = "journey", help_heading = JOURNEYS)]
    pub(crate) targets: Vec<(String, String)>,
    /// Ask here where an endpoint is to be dialled: GET /resolve?endpoint=URL gives {"address": "ip:port"}, or 404
    #[arg(long, value_name = "URL", requires = "journey", help_heading = JOURNEYS)]
    pub(crate) resolve: Option<String>,
    /// Another user in every journey, or one for each client, in all its journeys: `{number}` is then the client's
    #[arg(long, value_enum, default_value_t = JourneyIdentities::Fresh, requires = "journey", help_heading = JOURNEYS)]
    pub(crate) identities: JourneyIdentities,
    /// Write the times of every call to this file, CSV
    #[arg(long, value_name = "FILE", requires = "journey", help_heading = JOURNEYS)]
    pub(crate) calls: Option<PathBuf>,
}

/// Whether users of journeys, and what mocks give out, come again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum JourneyIdentities {
    #[default]
    Fresh,
    Reused,
}

/// What is done before measuring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WarmupRule {
    Time(Duration),
    /// So much of the number of requests, a fraction.
    Share(f64),
    Steady,
}

impl Default for WarmupRule {
    fn default() -> Self {
        WarmupRule::Time(Duration::ZERO)
    }
}

fn warmup(text: &str) -> Result<WarmupRule, String> {
    if text == "steady" {
        return Ok(WarmupRule::Steady);
    }
    if text.ends_with('%') {
        let share = study::units::fraction(text).map_err(|error| error.to_string())?;
        let fits = (0.0..=10.0).contains(&share);
        return if fits { Ok(WarmupRule::Share(share)) } else { Err("expected 0% to 1000%".to_owned()) };
    }
    duration(text).map(WarmupRule::Time)
}

/// What loads of caches alone know.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CacheArgs {
    /// What a cache is asked: a preset (`quintain workload show` draws them), or a file with `[load.workload]` or its content alone [default: etc-2012]
    #[arg(long, value_name = "NAME|FILE", help_heading = CACHES)]
    pub(crate) workload: Option<String>,
    /// Replay this trace instead, `.zst` or plain; its end is the end of the load
    #[arg(long, value_name = "FILE", requires = "trace_format", conflicts_with_all = ["key_count", "find"], help_heading = CACHES)]
    pub(crate) trace: Option<String>,
    /// Whose it is: Twitter's CSV, Meta's CSV, libCacheSim's binary records, or one key a line
    #[arg(long, value_enum, value_name = "FORMAT", requires = "trace", help_heading = CACHES)]
    pub(crate) trace_format: Option<TraceFormat>,
    /// When its operations are sent: at their `recorded` times, an open loop, or as the load says [default: none]
    #[arg(long, value_enum, value_name = "RULE", requires = "trace", help_heading = CACHES)]
    pub(crate) trace_gaps: Option<TraceGaps>,
    /// With recorded gaps: so many times as fast [default: 1]
    #[arg(long, value_name = "FACTOR", requires = "trace_gaps", allow_negative_numbers = true, value_parser = given(factor), help_heading = CACHES)]
    pub(crate) trace_speed: Option<Given<f64>>,
    /// Keys of the population, instead of the workload's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = given(count), help_heading = CACHES)]
    pub(crate) key_count: Option<Given<u64>>,
    /// Whether a GET that misses is followed by a SET of its key, instead of the workload's choice
    #[arg(long, value_enum, value_name = "YES|NO", help_heading = CACHES)]
    pub(crate) fill: Option<YesNo>,
}

fn factor(text: &str) -> Result<f64, String> {
    text.parse::<f64>().ok().filter(|factor| factor.is_finite()).ok_or_else(|| "expected a number".to_owned())
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    Twitter,
    MetaKv,
    OracleGeneral,
    Plain,
}

/// When the operations of a trace are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceGaps {
    None,
    Recorded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum YesNo {
    Yes,
    No,
}

/// What HTTP alone knows. Values are text here: they are read together, so that all mistakes are told at once.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HttpArgs {
    /// A file of requests instead of a URL: `[WEIGHT] [METHOD] URL` a line, all of one server, drawn by weight
    #[arg(long, value_name = "FILE", conflicts_with = "url", help_heading = REQUESTS)]
    pub(crate) urls: Option<PathBuf>,
    /// Method; of --urls, where a line has none [default: GET; POST for a URL with a body]
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = REQUESTS)]
    pub(crate) method: Option<String>,
    /// Header field, `Name: value`; may be given several times
    #[arg(short = 'H', long = "header", value_name = "FIELD", help_heading = REQUESTS)]
    pub(crate) headers: Vec<String>,
    /// Body; of --urls, for lines with another method than GET or HEAD
    #[arg(long, value_name = "TEXT", help_heading = REQUESTS)]
    pub(crate) body: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "body", help_heading = REQUESTS)]
    pub(crate) body_file: Option<PathBuf>,
    /// Requests in flight on one connection at most [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = REQUESTS)]
    pub(crate) pipeline: Option<String>,
    /// How long a connection is used [default: keep-alive]
    #[arg(long, value_enum, value_name = "USE", hide_default_value = true, help_heading = REQUESTS)]
    pub(crate) connection: Option<ConnectionUse>,
    /// The same as `--connection per-request`
    #[arg(long, visible_alias = "disable-keepalive", conflicts_with = "connection", help_heading = REQUESTS)]
    pub(crate) no_keepalive: bool,
    /// Connect to this Unix socket; the URL gives the Host field and the path
    #[arg(long, value_name = "PATH", help_heading = REQUESTS)]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Statuses of right answers, `200,201`, `200-204` or `2xx` [default: 2xx]
    #[arg(long, value_name = "LIST", help_heading = RIGHT)]
    pub(crate) expect_status: Option<String>,
    /// The body of right answers, all of it
    #[arg(long, value_name = "TEXT", help_heading = RIGHT)]
    pub(crate) expect_body: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "expect_body", help_heading = RIGHT)]
    pub(crate) expect_body_file: Option<PathBuf>,
    /// For users of wrk, who are told what there is instead
    #[arg(short = 's', long, value_name = "FILE", hide = true)]
    pub(crate) script: Option<String>,
    /// https: accept any certificate
    #[arg(short = 'k', long, help_heading = TLS)]
    pub(crate) insecure: bool,
    /// https: trust these roots (PEM) instead of the public ones
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = TLS)]
    pub(crate) cacert: Option<PathBuf>,
    /// https: a whole handshake for each connection, no resumed sessions
    #[arg(long, help_heading = TLS)]
    pub(crate) no_resume: bool,
}

const LOAD_HELP: &str = "Examples:\n  \
    quintain load -t2 -c400 -d10s http://127.0.0.1:8080/\n      \
        as with wrk: 400 connections, each sends when it has its answer\n  \
    quintain load -c 400 --rate 50k http://127.0.0.1:8080/\n      \
        an open loop: what users see who do not wait for each other\n  \
    quintain load -c 400 --find 'p99<5ms and errors<0.1%' http://127.0.0.1:8080/\n      \
        the highest rate that keeps this, as a range\n  \
    quintain load -X POST --body '{\"n\":1}' -H 'Content-Type: application/json' --expect-status 201 URL\n  \
    quintain load --urls mix.txt -c 100 -d 1m --json > mix.json\n  \
    quintain load --no-keepalive -c 50 https://127.0.0.1:8443/ --cacert root.pem\n  \
    quintain load memcached://127.0.0.1:11211 --workload etc-2012 -c 50\n      \
        a cache: hit ratio with causes, misses filled, every value verified\n  \
    quintain load redis://127.0.0.1:6379 --trace cluster52.zst --trace-format twitter --trace-gaps recorded\n      \
        a recorded trace, its operations at their own times\n  \
    quintain load pingpong://127.0.0.1:7000 -c 80 -t 2 -d 5s\n\n\
    In a closed loop (no --rate) a client sends when it has its answer: latency is service time. With --rate requests are \
    sent by a timetable and latency is response time, from the moment each was meant to be sent.\n\n\
    A client whose connection is lost waits 1 ms before it opens another, and twice as long each time, up to 100 ms, until an \
    answer comes: its back-off. The report says how many clients were in back-off.";

/// How long a connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConnectionUse {
    KeepAlive,
    PerRequest,
}

/// A value as it was given, and what it was read as. A flag that is wrong does not hide the mistakes of others.
#[derive(Clone, Debug)]
pub(crate) struct Given<T>(pub(crate) Result<T, String>);

/// A reader for clap that never fails.
fn given<T: Clone + Send + Sync + 'static>(
    read: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Given<T>, std::convert::Infallible> + Clone {
    move |text| Ok(Given(read(text)))
}

#[derive(Debug, Args)]
pub(crate) struct WorkloadArgs {
    #[command(subcommand)]
    pub(crate) kind: WorkloadKind,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadKind {
    /// Draw a workload and hold what was drawn against its laws: lengths, popularity, operations, with goodness of fit
    Show(WorkloadShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WorkloadShowArgs {
    /// A study with `[load.workload]`, of whose factors the first levels count, or the content of that table
    #[arg(conflicts_with = "preset")]
    pub(crate) study: Option<String>,
    /// course, course-no-fill, etc-2012, etc-2012-location-0, twitter-c12, -c45, -c52, ycsb-a to -d, ycsb-f [default: etc-2012]
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// Operations to draw
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    pub(crate) operations: u64,
    /// Seed of the stream
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write table and figure as a page here
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the figure here: drawn and law
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) kind: ServeKind,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeKind {
    /// Answer each 32-bit word with the word plus one; prints `ready PORT`
    Pingpong(ListenArgs),
    /// Answer after a delay drawn from a stated law, and log the true service times (JSON, at the end)
    Calibrate(ServeCalibrateArgs),
    /// Serve HTTP/1.1: fixed answers, bodies of any length, an echo, delays by a stated law
    Http(Box<ServeHttpArgs>),
    /// Serve a cache: memcached's text and meta protocol, RESP2/3 and HTTP on one port, under an exact cap of memory
    Cache(Box<ServeCacheArgs>),
    /// Answer as Evernote does in the benchmark of Whip: Thrift in HTTPS, an account and, on a port that it tells, its notes
    MockEvernote(Box<ServeEvernoteArgs>),
    /// Play chess by mail as in the benchmark of Whip: SOAP, the WSDL at /?wsdl
    MockChess(Box<ServeChessArgs>),
    /// Answer as Twitter does in the benchmark of Whip: REST in HTTPS
    MockTwitter(Box<ServeTwitterArgs>),
    /// Misbehave, to test generators
    #[command(hide = true)]
    Hostile(ServeHostileArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ListenArgs {
    /// Threads, each with an event loop; the first one accepts too
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,
    /// Port; 0 lets the kernel choose
    #[arg(short = 'p', long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,
    /// Listen on a Unix socket of this path instead; it is removed at the end
    #[arg(long, value_name = "PATH", conflicts_with_all = ["host", "port"])]
    pub(crate) unix: Option<PathBuf>,
    /// Door to the kernel
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    pub(crate) backend: Backend,
}

impl ListenArgs {
    pub(crate) fn address(&self) -> net::Address {
        match &self.unix {
            Some(path) => net::Address::Unix(path.clone()),
            None => SocketAddr::new(self.host, self.port).into(),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Targets: / /plaintext /json /bytes/N /chunked/N?chunk=BYTES /echo (POST) /health\n         \
    /delay?mean=1ms&dist=exponential (constant, exponential, lognormal, bimodal)\n\n\
    SIGTERM ends it in order: it accepts no more, answers what was asked and closes; a second one ends it at once.")]
pub(crate) struct ServeHttpArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Connections open at the same time; one more is answered with 503 [default: 65536, or what descriptors allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// Bytes of a request's head; more is answered with 431
    #[arg(long, value_name = "BYTES", default_value = "32KiB", value_parser = head_bytes)]
    pub(crate) max_head: usize,
    /// Fields of a request's head; more are answered with 431
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) max_headers: u16,
    /// Bytes of a request's body; more is answered with 413
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = bytes)]
    pub(crate) max_body: u64,
    /// A connection may stand without a request for so long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) idle_timeout: Duration,
    /// A head may take so long from its first byte to its last; longer is answered with 408
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) head_timeout: Duration,
    /// A body may take so long ...
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) body_timeout: Duration,
    /// ... and then must come at this rate, bytes a second on average; slower is answered with 408
    #[arg(long, value_name = "BYTES", default_value = "1KiB", value_parser = bytes)]
    pub(crate) body_rate: u64,
    /// A client may take so long to read 31 KiB of an answer; then it is cut off
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) send_timeout: Duration,
    /// A connection is read from for so long after an answer that closes it unasked, so that the client sees the answer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub(crate) linger: Duration,
    /// After SIGTERM, connections may go on for so long
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) drain: Duration,
    /// Seed of the delays
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// At the end, write the true service times of /delay to this file (JSON); `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "memcached: get gets gat gats set add replace append prepend cas delete incr decr touch flush_all version stats \
    verbosity quit, mg ms md ma mn me\nRESP: GET SET SETEX PSETEX SETNX GETSET GETDEL GETEX APPEND STRLEN INCR DECR INCRBY DECRBY DEL UNLINK \
    MGET MSET EXISTS TYPE TOUCH SCAN EXPIRE PEXPIRE EXPIREAT PEXPIREAT EXPIRETIME PEXPIRETIME TTL PTTL PERSIST MULTI EXEC DISCARD WATCH \
    UNWATCH PING ECHO FLUSHALL FLUSHDB INFO DBSIZE CONFIG COMMAND HELLO CLIENT SELECT QUIT RESET\nHTTP: GET /k, PUT /k/v, DELETE /k, HEAD /k, HEAD /, POST /reset\n\n\
    Its own memory stays below --maxmem, 4 MiB and 16 KiB a connection, and what values over 16 KiB \
    and transactions take that are on their way.\n\n\
    SIGTERM ends it in order: it accepts no more, answers what was asked and closes; a second one ends it at once."
)]
pub(crate) struct ServeCacheArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// The cap of the cache's memory: keys, values and all that it adds to them
    #[arg(long, value_name = "BYTES", default_value = "64MB", value_parser = given(bytes))]
    pub(crate) maxmem: Given<u64>,
    /// Who leaves when there is no room: `density` (quintain's own, also `ours`), `s3-fifo`, `sieve`, `clock`, `lru`, `fifo`, or
    /// `none`, which refuses instead
    #[arg(long, value_name = "NAME", default_value = "density", value_parser = given(evictor))]
    pub(crate) evict: Given<cache::Evictor>,
    /// What the cap counts: `everything`, or `values` alone as small teaching caches do; then memory ends at twice the cap and 1 MiB
    #[arg(long, value_enum, default_value_t = Counting::Everything)]
    pub(crate) accounting: Counting,
    /// What connections speak; `auto` tells by the first bytes of each
    #[arg(long, value_enum, default_value_t = Speech::Auto)]
    pub(crate) protocol: Speech,
    /// Keep a version of each item for `cas` and `WATCH`, 8 bytes an item [default: on where memcached may be spoken]
    #[arg(long, value_enum)]
    pub(crate) cas: Option<OnOff>,
    /// Keep the time of each item's last use for the meta flag `l`, 4 bytes per item
    #[arg(long, value_enum, default_value_t = OnOff::Off)]
    pub(crate) access_times: OnOff,
    /// The longest value; a small cache takes less, a quarter of one of its shards
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = given(bytes))]
    pub(crate) value_max: Given<u64>,
    /// The longest key; memcached's protocol has 250 at most
    #[arg(long, value_name = "BYTES", default_value = "250B", value_parser = given(bytes))]
    pub(crate) key_max: Given<u64>,
    /// A connection may stand without a request for so long; 0s is for ever
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = given(duration))]
    pub(crate) idle_timeout: Given<Duration>,
    /// A client may take so long to send the next bytes of a request, or to read 64 KiB of answers; then it is cut off
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = given(duration))]
    pub(crate) stall_timeout: Given<Duration>,
    /// Connections open at the same time; one more is told so and closed [default: 65536, or what descriptors allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// After SIGTERM, connections may go on for so long
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = given(duration))]
    pub(crate) drain: Given<Duration>,
    /// Seed of the hash of keys and of the evictor's draws [default: another each time]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

/// What all mocks have.
#[derive(Debug, Args)]
pub(crate) struct MockArgs {
    /// Port; 0 lets the kernel choose
    #[arg(short = 'p', long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,
    /// Threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,
    /// Connections open at the same time; more wait to be accepted
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: u32,
    /// Bytes of a request's body; more is answered with 413
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = bytes)]
    pub(crate) max_body: u64,
    /// A connection may stand without a whole head of a request for so long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = some_time)]
    pub(crate) idle_timeout: Duration,
    /// A body, and a TLS handshake, may take so long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    pub(crate) body_timeout: Duration,
    /// Law of the delay of each answer, as of `serve calibrate`; to the millisecond
    #[arg(long, default_value = "null", value_parser = crate::serve::law)]
    pub(crate) delay: crate::serve::Law,
    /// Seed of the delays
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// After SIGTERM, connections may go on for so long
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) drain: Duration,
}

/// What mocks have that are encrypted.
#[derive(Debug, Args)]
pub(crate) struct MockTlsArgs {
    /// Write the root of the certificate, which is made at start, to this file (PEM), for clients to trust
    #[arg(long, value_name = "FILE")]
    pub(crate) cert_out: Option<PathBuf>,
    /// A further name or address that the certificate has, beside `localhost` and the address; may be given several times
    #[arg(long = "cert-name", value_name = "NAME")]
    pub(crate) cert_names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeEvernoteArgs {
    #[command(flatten)]
    pub(crate) mock: MockArgs,
    #[command(flatten)]
    pub(crate) tls: MockTlsArgs,
    /// Port of the notes; 0 lets the kernel choose
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) notes_port: u16,
    /// Replies as the benchmark was published, or those that the paper's contracts are about: keys and tokens of their own for each user
    #[arg(long, value_enum, default_value_t = MockProfile::Shipped)]
    pub(crate) profile: MockProfile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MockProfile {
    Shipped,
    Paper,
}

#[derive(Debug, Args)]
pub(crate) struct ServeChessArgs {
    #[command(flatten)]
    pub(crate) mock: MockArgs,
    /// Games that are kept, the oldest being forgotten first, and one of two players when they begin another; the published benchmark kept one
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) games: u32,
    /// A number of its own for every game, or for every two players
    #[arg(long, value_enum, default_value_t = JourneyIdentities::Fresh)]
    pub(crate) identities: JourneyIdentities,
}

#[derive(Debug, Args)]
pub(crate) struct ServeTwitterArgs {
    #[command(flatten)]
    pub(crate) mock: MockArgs,
    #[command(flatten)]
    pub(crate) tls: MockTlsArgs,
    /// Ids of their own for every request, or for every user who is asked about
    #[arg(long, value_enum, default_value_t = JourneyIdentities::Fresh)]
    pub(crate) identities: JourneyIdentities,
}

/// What the cap of a cache counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Counting {
    Everything,
    Values,
}

/// What the connections of a cache speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speech {
    Auto,
    Memcached,
    Redis,
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct ServeCalibrateArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Law of the delays: `null`, `constant:1ms`, `exponential:1ms`, `lognormal:1ms,0.5` (median, sigma),
    /// `bimodal:100us,5ms,0.02` (low, high, share of the high)
    #[arg(long, default_value = "null", value_parser = crate::serve::law)]
    pub(crate) delay: crate::serve::Law,
    /// Stop answering for so long ...
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "pause_every")]
    pub(crate) pause: Option<Duration>,
    /// ... once in every so long
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "pause")]
    pub(crate) pause_every: Option<Duration>,
    /// Seed of the delays
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ServeHostileArgs {
    /// Port; 0 lets the kernel choose
    #[arg(short = 'p', long, default_value_t = 0)]
    pub(crate) port: u16,
    /// What it does
    #[arg(long, value_enum)]
    pub(crate) kind: Hostility,
    /// Of `freeze` and `freeze-one`: answers before that
    #[arg(long, value_name = "N", default_value_t = 1500)]
    pub(crate) after: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Hostility {
    WrongWords,
    EndlessData,
    OneByteAtATime,
    NeverAnswer,
    CloseAtOnce,
    /// Falls silent on all connections
    Freeze,
    /// Falls silent on one connection
    FreezeOne,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Name of a run, or the beginning of one
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// In which form
    #[arg(short = 'f', long, value_enum, default_value_t = Format::Terminal, conflicts_with_all = ["json", "raw"])]
    pub(crate) format: Format,
    /// Write to this file instead of stdout
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The data files of a seed: `volley` gives `server clients cores mean stddev num_samples`, `whip` writes `bytes clientcalls memory times` of each
    /// trial whose middle tells its calls into DIR
    #[arg(long, value_enum)]
    pub(crate) raw: Option<Raw>,
    /// Folder for `--raw whip`
    #[arg(value_name = "DIR", requires = "raw")]
    pub(crate) folder: Option<PathBuf>,
    /// Write every figure as `NAME.svg` and `NAME.png` into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Terminal,
    Html,
    #[value(alias = "markdown")]
    Md,
    Csv,
    /// One row a trial, full precision
    CsvTrials,
    /// Effects of the factors: sources of variation, levels, changes
    CsvEffects,
    /// Miss-ratio curves, measured and simulated
    CsvMissRatio,
    /// What middles add, by design point and metric
    CsvAdded,
    /// Series over requests, with their slopes
    CsvOverRequests,
    /// The findings
    Json,
    /// The run and its records, as they were stored
    Records,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Raw {
    Volley,
    Whip,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON: findings and host facts
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Protocol; may be given several times [default: each of them]
    #[arg(long = "protocol", value_enum, value_name = "PROTOCOL")]
    pub(crate) protocols: Vec<Calibrated>,
    /// Measure although something else keeps the machine busy
    #[arg(long)]
    pub(crate) force: bool,
    /// How long each step is measured
    #[arg(short = 'd', long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Door to the kernel
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    pub(crate) backend: Backend,
    /// What idle processors do meanwhile
    #[arg(long, value_enum, default_value_t = Idle::Machine)]
    pub(crate) idle: Idle,
}

/// Protocols that there is a null server of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Calibrated {
    Pingpong,
    Http,
    Memcached,
    Redis,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Processors, `0-3,8`
    #[arg(long, value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// Die with this process
    #[arg(long, value_name = "PID")]
    pub(crate) parent: Option<u32>,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct SpinArgs {
    /// Processors, `0-3,8`
    #[arg(long, value_parser = cpu_list)]
    pub(crate) cpus: Cpus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    Auto,
    Epoll,
    #[value(name = "io_uring", alias = "uring")]
    IoUring,
}

impl From<Backend> for study::spec::Backend {
    fn from(backend: Backend) -> Self {
        match backend {
            Backend::Auto => Self::Auto,
            Backend::Epoll => Self::Epoll,
            Backend::IoUring => Self::IoUring,
        }
    }
}

impl From<Backend> for net::Choice {
    fn from(backend: Backend) -> Self {
        match backend {
            Backend::Auto => Self::Auto,
            Backend::Epoll => Self::Epoll,
            Backend::IoUring => Self::IoUring,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Idle {
    Machine,
    Spin,
}

impl From<Idle> for study::record::IdlePolicy {
    fn from(idle: Idle) -> Self {
        match idle {
            Idle::Machine => Self::Machine,
            Idle::Spin => Self::Spin,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gaps {
    Poisson,
    Constant,
}

/// Processor numbers, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpus(pub(crate) Vec<u32>);

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected KEY=VALUE, as in `cores=1,2`".to_owned()),
    }
}

/// The numbers of `0-3,8`, ascending and each once.
fn cpu_list(text: &str) -> Result<Cpus, String> {
    match lab::cpus::parse(text)? {
        cpus if cpus.is_empty() => Err("expected processors like `0-3,8`".to_owned()),
        cpus => Ok(Cpus(cpus)),
    }
}

/// A count within bounds.
fn within(text: &str, most: u32) -> Result<u32, String> {
    let count = study::units::count(text).map_err(|error| error.to_string())?;
    match u32::try_from(count) {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        _ => Err(format!("{text} is not in 1 to {most}")),
    }
}

fn clients(text: &str) -> Result<u32, String> {
    within(text, 1_000_000)
}

fn threads(text: &str) -> Result<u32, String> {
    within(text, 1024)
}

fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("more than no time is needed".to_owned()),
        some => Ok(some),
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short < Duration::from_millis(1) => Err(format!("`{text}` is less than 1ms")),
        time => Ok(time),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    study::units::duration_ns(text).map(Duration::from_nanos).map_err(|error| error.to_string())
}

fn bytes(text: &str) -> Result<u64, String> {
    study::units::bytes(text).map_err(|error| error.to_string())
}

fn evictor(text: &str) -> Result<cache::Evictor, String> {
    if text == "ours" {
        return Ok(cache::Evictor::Density);
    }
    text.parse().map_err(|error: cache::UnknownEvictor| error.to_string())
}

/// What each connection may keep in memory.
fn head_bytes(text: &str) -> Result<usize, String> {
    let bytes = usize::try_from(bytes(text)?).unwrap_or(usize::MAX);
    if (256..=16 << 20).contains(&bytes) { Ok(bytes) } else { Err("expected 256 to 16MiB".to_owned()) }
}

fn count(text: &str) -> Result<u64, String> {
    match study::units::count(text).map_err(|error| error.to_string())? {
        0 => Err("at least 1".to_owned()),
        count => Ok(count),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    study::units::rate_per_s(text).map_err(|error| error.to_string())
}

fn percentage(text: &str) -> Result<f64, String> {
    let fraction = study::units::fraction(text).map_err(|error| error.to_string())?;
    if fraction > 0.0 && fraction <= 0.5 {
        Ok(fraction)
    } else {
        Err("expected more than 0 and at most 50%".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn processors_are_lists_of_ranges() {
        assert_eq!(cpu_list("0-2,8,1").unwrap().0, [0, 1, 2, 8]);
        for wrong in ["", "a", "3-1", ",", "-1", "0-99999"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
    }
}
