//! All flags of the binary. Parsing, `--help` and suggestions come from these definitions.

use std::io::Read;
use std::net::SocketAddr;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::Findings;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Command, Parser, Subcommand, ValueEnum};
use config::Invalid;
use report::exports::{EXPORTS, Export, LatencyFile};
use servers::{CacheProtocol, Http2Fault, Kind as Misbehaviour};
use study::Metric;
use study::gate;
use study::keys::{CLIENT_COUNT, Kind, LOAD, STUDY, allowed_words};
use study::load_limits_and_defaults::BODY_MAX_BYTES;
use study::record::IdlePolicy;
use study::spec::{Backend, Connection, Identities, Stage, ThinkTime};
use study::url::Url;
use study::workload::trace;
use study::{load_shape, time_law, units, validate_http};

use crate::collected_mistakes::Collected;

/// A benchmarking laboratory for network servers.
///
/// Starts the server under test, pins it to CPUs, loads it, and repeats with a fresh process until the confidence interval is tight. Reports the result, its uncertainty, and whether the server or the generator was the bottleneck.
#[derive(Debug, Parser)]
#[command(name = "quintain", version, help_template = grouped_help(), after_help = include_str!("help/exit-codes.txt").trim_ascii_end(), arg_required_else_help = true, max_term_width = 110, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Groups of commands in `quintain --help`, in display order.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Measure", &["run", "compare", "check", "init", "studies"]),
    ("Load a running server", &["load", "workload"]),
    ("Serve", &["serve", "verify"]),
    ("Contracts", &["contract", "adapter"]),
    ("Results", &["report", "runs", "history"]),
    ("This machine", &["doctor", "calibrate"]),
    ("Setup", &["help", "completions", "man"]),
];

/// Builds the template of the main help, because clap lists subcommands but cannot group them.
fn grouped_help() -> String {
    let verbs = <Verb as Subcommand>::augment_subcommands(Command::new("quintain"));
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n\n\
                    Start here: quintain run volley --quick, quintain init --command './server -p {port}'\n"
        .to_owned();
    for (group, names) in GROUPS {
        text += &format!("\n{group}:\n");
        for name in names {
            let about = verbs.find_subcommand(name).and_then(Command::get_about);
            text += &format!("  {name:<13}{}\n", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    text + "\nOptions:\n{options}{after-help}"
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a study: build servers, measure, store trials, write the report
    Run(RunArgs),
    /// Load a running server, as with wrk or oha
    Load(Box<LoadArgs>),
    /// Compare two servers, revisions or levels in pairs, until the answer is known
    Compare(Box<CompareArgs>),
    /// Start a reference server
    #[command(subcommand)]
    Serve(ServeKind),
    /// Validate a study and print its plan, trial count and duration
    #[command(after_help = STUDY_HELP)]
    Check {
        #[command(flatten)]
        study: StudyArgs,
        /// CPUs to plan for, e.g. `0-3,8` [default: all available to this process]
        #[arg(long, value_name = "LIST", value_parser = cpu_list)]
        cpus: Option<Cpus>,
        /// Print the plan as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a study of your own server: tries it once, then says what to run
    Init(Box<InitArgs>),
    /// List the built-in studies, print one, copy one to change it
    #[command(args_conflicts_with_subcommands = true)]
    Studies {
        #[command(subcommand)]
        verb: Option<StudiesVerb>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the runs in the store; remove, export and import them
    Runs(RunsArgs),
    /// Show the runs of a study on each machine by revision and time
    History(HistoryArgs),
    /// Check that a server responds correctly, before measuring its speed
    Verify(VerifyArgs),
    /// Render the report of a stored run
    Report(ReportArgs),
    /// Check whether this machine, or each of a cluster, is fit for measurements
    Doctor {
        /// Print JSON: findings and host facts
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Measure the generator's own limit on this machine and store it
    Calibrate(CalibrateArgs),
    /// Inspect a cache workload
    #[command(subcommand)]
    Workload(WorkloadKind),
    /// Run a proxy that checks messages against a contract
    #[command(after_help = "SIGHUP reloads the contract and its schemas; if they have errors, nothing changes.")]
    Adapter {
        /// Configuration file (TOML)
        config: PathBuf,
        /// Validate the configuration and every file it names, then exit
        #[arg(long)]
        check: bool,
    },
    /// Check contracts, explain violations, inspect an adapter's store
    #[command(subcommand)]
    Contract(ContractVerb),
    /// Print help for a command, or the keys of a study or case file (`help study`)
    Help {
        /// A command, or command and subcommand (`contract state`); or `study` or `cases`, or one of its tables (`study load.stop`)
        #[arg(value_name = "TOPIC")]
        topic: Vec<String>,
    },
    /// Print completions for a shell
    #[command(after_help = include_str!("help/completions.txt").trim_ascii_end())]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands to a directory
    Man {
        /// Directory for the pages of all commands [default: print the main page to stdout]
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Run a command pinned to CPUs, as the lab starts servers
    #[command(hide = true)]
    Exec {
        /// CPUs, e.g. `0-3,8`
        #[arg(long, value_parser = cpu_list)]
        cpus: Option<Cpus>,
        /// Exit when this process exits
        #[arg(long, value_name = "PID")]
        parent: Option<u32>,
        /// Command and arguments
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Kill the processes left behind by a lab that died
    #[command(hide = true)]
    Watchdog,
    /// Keep CPUs awake at the lowest priority
    #[command(hide = true)]
    Spin {
        /// CPUs, e.g. `0-3,8`
        #[arg(long, value_parser = cpu_list)]
        cpus: Cpus,
    },
    /// Work for a lab on another machine
    #[command(hide = true)]
    Node(NodeArgs),
}

pub(crate) const STORE: &str = "quintain.db";

#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// SQLite database of runs and trials
    #[arg(long, value_name = "FILE", default_value = STORE, global = true)]
    pub(crate) store: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContractVerb {
    /// Report errors and suspicious clauses in a contract
    #[command(after_help = "Exit codes: 0 success, 1 warnings with `--strict`, 2 errors.")]
    Check {
        /// Contract file; schemas it names are read as well
        file: PathBuf,
        /// Exit with 1 on warnings; errors always exit with 2
        #[arg(long)]
        strict: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Explain who a report blames, and why
    Explain {
        /// Adapter reports, one JSON object per line (`-`: stdin)
        reports: PathBuf,
        /// Only reports of this clause, e.g. `Adder.add.sum`
        #[arg(long)]
        clause: Option<String>,
        /// Only reports of the call with this number
        #[arg(long)]
        call: Option<u64>,
    },
    /// Inspect the store of a stopped adapter
    State {
        /// Store file
        #[arg(long, value_name = "FILE")]
        store: PathBuf,
        #[command(subcommand)]
        verb: StateVerb,
    },
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
        /// Endpoint, as written in the contract
        endpoint: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete entries
    Purge {
        /// Delete the entries of this endpoint
        #[arg(long)]
        endpoint: Option<String>,
        /// Delete all entries
        #[arg(long, conflicts_with = "endpoint")]
        all: bool,
    },
}

#[derive(Debug, Default, Args)]
#[command(after_help = include_str!("help/init.txt").trim_ascii_end())]
pub(crate) struct InitArgs {
    /// Study file to write (`mine.toml`), or a directory for it [default: `server.toml`, or a name by kind, here]
    #[arg(value_name = "FILE|DIR")]
    pub(crate) place: Option<PathBuf>,
    /// Write a journey from this browser recording (HAR) instead of a study
    #[arg(long, value_name = "RECORDING", conflicts_with_all = ["kind", "command", "base", "head", "proxy", "protocol", "port", "path", "method", "header", "body", "expect_status", "expect_body", "objective"])]
    pub(crate) har: Option<PathBuf>,
    /// What to find out [default: from the other flags, otherwise one]
    #[arg(long, value_enum)]
    pub(crate) kind: Option<InitKind>,
    /// Command that starts the server, with {port} in place of its port; no shell
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Two versions: command of the first
    #[arg(long, value_name = "COMMAND")]
    pub(crate) base: Option<String>,
    /// Two versions: command of the second
    #[arg(long, value_name = "COMMAND")]
    pub(crate) head: Option<String>,
    /// Command that starts a proxy, with {port} for its own port and {next_port} for the server's
    #[arg(long, value_name = "COMMAND")]
    pub(crate) proxy: Option<String>,
    /// `http`, `https`, `pingpong`; or a cache: `memcached`, `redis`, `http-cache` [default: http; for a cache, memcached]
    #[arg(long)]
    pub(crate) protocol: Option<String>,
    /// Fixed port, for a server that cannot be given one [default: a free one, passed as {port}]
    #[arg(long, value_name = "PORT", allow_negative_numbers = true, value_parser = Collected(port))]
    pub(crate) port: Option<u16>,
    /// HTTP: path and query to request [default: /]
    #[arg(long, value_parser = Collected(validate_http::target))]
    pub(crate) path: Option<String>,
    /// HTTP: method [default: GET; POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD", value_parser = Collected(validate_http::method))]
    pub(crate) method: Option<String>,
    /// HTTP: header, `Name: value`; repeatable
    #[arg(id = "header", short = 'H', long, value_name = "FIELD", value_parser = Collected(validate_http::field))]
    pub(crate) headers: Vec<(String, String)>,
    /// HTTP: request body
    #[arg(long, value_name = "TEXT")]
    pub(crate) body: Option<String>,
    /// HTTP: valid status codes, `200,201`, `200-204` or `2xx` [default: 2xx]
    #[arg(long, value_name = "LIST", value_parser = Collected(statuses_text))]
    pub(crate) expect_status: Option<String>,
    /// HTTP: exact body of a valid response
    #[arg(long, value_name = "TEXT")]
    pub(crate) expect_body: Option<String>,
    /// Capacity: the objective [default: 'p99 < 5ms']
    #[arg(long)]
    pub(crate) objective: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitKind {
    /// How fast one server is
    One,
    /// Which of two versions is faster
    Versions,
    /// What a proxy adds
    Proxy,
    /// How fast a cache is, and how often it hits
    Cache,
    /// The highest rate that meets an objective
    Capacity,
}

impl InitKind {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().expect("no kind is hidden").get_name().to_owned()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudiesVerb {
    /// Print a built-in study
    Show {
        /// Name of the study
        name: String,
    },
    /// Copy a built-in study and all that it names: servers, contracts, templates; overwrites nothing
    Copy {
        /// Name of the study
        name: String,
        /// Directory; the study goes to `studies/` in it [default: the working directory]
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

/// Help on the working directory of a study's commands.
const STUDY_HELP: &str = "Commands and file names of a study are relative to the directory of its file; of a file in a directory `studies`, to the directory above; \
                          of stdin, to the working directory. Store and report are written to the working directory.";

const RUN_CODES: &str = "Exit codes: 0 success, 1 a candidate fails the `[gate]` of the study, 2 usage error, 3 server under test failed, \
                         4 not possible on this machine, 125 no verdict with `undecided = \"125\"`, 130 interrupted.";

/// Flags of every command that expands a study.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StudyArgs {
    /// Study file, with or without `.toml`; or the name of a study in `studies/`, or of a built-in one; or `-` for stdin
    pub(crate) study: String,
    /// Quick run: fewer design points and trials, under a minute, no confidence level
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Run the full sweep; design points that cannot run here are listed as such
    #[arg(long)]
    pub(crate) full: bool,
    /// Override factor levels (`cores=1,2`) or a study value (`load.stop.duration=2s`)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) sets: Vec<(String, String)>,
    /// Random seed of trial order and requests; same seed, same plan
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/verify.txt").trim_ascii_end())]
pub(crate) struct VerifyArgs {
    /// URL of a running server, or a study (file or name), each of whose servers is built and checked
    pub(crate) target: Option<String>,
    /// Start this server, a fresh process for each case; `{port}` is its port
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Built-in cases: pingpong, http, http2, cache, none [default: those of the URL or study; none with `--command`]
    #[arg(long, value_parser = suite)]
    pub(crate) protocol: Option<ChosenSuite>,
    /// Add the cases of this file (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) cases: Vec<PathBuf>,
    /// Check only the case of this name
    #[arg(long = "case", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Path that the built-in HTTP cases request [default: that of the URL or study, or /]
    #[arg(long, value_parser = validate_http::target)]
    pub(crate) path: Option<String>,
    /// Random seed of the values in requests [default: from the clock]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// List the cases and exit
    #[arg(long)]
    pub(crate) list: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Built-in cases to run; `None` for none.
pub(crate) type ChosenSuite = Option<study::verification::Suite>;

fn suite(text: &str) -> Result<ChosenSuite, String> {
    let suites = study::verification::SUITES;
    match suites.iter().find(|(name, _)| *name == text) {
        Some((_, suite)) => Ok(Some(*suite)),
        None if text == "none" => Ok(None),
        None => Err(format!("expected one of {}, none", suites.map(|(name, _)| name).join(", "))),
    }
}

#[derive(Debug, Args)]
#[command(after_help = format!("{STUDY_HELP}\n\n{RUN_CODES}"))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    /// Resume an interrupted run of this study with its original plan [default: the latest]
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest", conflicts_with_all = ["quick", "full", "sets", "seed", "backend"])]
    pub(crate) resume: Option<String>,
    /// Write the HTML report here [default: STUDY.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Options of every run.
#[derive(Clone, Debug, Args)]
pub(crate) struct HowArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Idle-CPU policy during trials: the machine's default, or keep CPUs awake with SCHED_IDLE spinners
    #[arg(long, value_parser = one_of(IDLE_POLICIES), default_value = "machine")]
    pub(crate) idle: IdlePolicy,
    /// I/O backend of the generator [default: as in the study]
    #[arg(long, value_parser = one_of(allowed_words::BACKENDS))]
    pub(crate) backend: Option<Backend>,
    /// CPUs to use, e.g. `0-3,8` [default: all available to this process]
    #[arg(long, value_name = "LIST", value_parser = cpu_list, conflicts_with_all = ["cluster", "hosts"])]
    pub(crate) cpus: Option<Cpus>,
    /// Wait up to TIME, after the builds, until no other process uses CPUs; then start in any case
    #[arg(long, value_name = "TIME", value_parser = some_time, conflicts_with_all = ["cluster", "hosts"])]
    pub(crate) wait_quiet: Option<Duration>,
    /// Profile the server with perf in one further trial of each design point: flame graphs and the hottest functions in the report
    #[arg(long)]
    pub(crate) profile: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClusterArgs {
    /// The machines of this file: the server on one, a generator on each of the others
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    pub(crate) cluster: Option<PathBuf>,
    /// The same in short, reached with ssh: `subject=10.0.0.11,load=10.0.0.12-14`; `local` is this machine
    #[arg(long, value_name = "LIST")]
    pub(crate) hosts: Option<String>,
    /// Copy this binary to machines that have another or none
    #[arg(long)]
    pub(crate) deploy: bool,
}

impl ClusterArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.cluster.is_some() || self.hosts.is_some()
    }
}

/// Headings of `quintain compare --help`.
const SIDES: &str = "Baseline and candidate";
pub(crate) const LOAD_OF_PAIRS: &str = "Load";
const DECISION: &str = "Decision";
const PAIRS: Kind = Kind::Count(stats::gate::FIRST_LOOK as u64, stats::gate::PAIRS_MAX as u64);

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/compare.txt").trim_ascii_end(), next_help_heading = "Output and machine", override_usage = "quintain compare --base CMD --head CMD [OPTIONS] URL\n       quintain compare --base-rev REV --head-rev REV [--build CMD] --command CMD [OPTIONS] URL\n       quintain compare STUDY FACTOR=BASE FACTOR=HEAD [OPTIONS]\n       quintain compare RUN RUN")]
pub(crate) struct CompareArgs {
    /// URL without host and port (`pingpong://`, `http:///path`, `memcached://`); or a study and two levels; or two stored runs
    #[arg(value_name = "WHAT", num_args = 1..=3, help_heading = None)]
    pub(crate) what: Vec<String>,
    /// Command of the baseline; `{port}` is its port
    #[arg(long, value_name = "CMD", requires = "head", help_heading = SIDES)]
    pub(crate) base: Option<String>,
    /// Command of the candidate
    #[arg(long, value_name = "CMD", requires = "base", help_heading = SIDES)]
    pub(crate) head: Option<String>,
    /// Revision of the baseline, in the git repository of the working directory
    #[arg(long, value_name = "REV", requires = "head_rev", requires = "command", conflicts_with = "base", help_heading = SIDES)]
    pub(crate) base_rev: Option<String>,
    /// Revision of the candidate
    #[arg(long, value_name = "REV", requires = "base_rev", help_heading = SIDES)]
    pub(crate) head_rev: Option<String>,
    /// Build command, run in the worktree of each revision, in the same directory as here
    #[arg(long, value_name = "CMD", requires = "base_rev", help_heading = SIDES)]
    pub(crate) build: Option<String>,
    /// Command that starts the server of a revision; `{port}` is its port
    #[arg(long, value_name = "CMD", requires = "base_rev", help_heading = SIDES)]
    pub(crate) command: Option<String>,
    /// Build both revisions again every K pairs, each time in another directory: the layout of one build can cause a difference
    #[arg(long, value_name = "K", requires = "build", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = SIDES)]
    pub(crate) rebuild_every: Option<u32>,
    /// Run the baseline a third time in each block and compare it with itself: shows the noise and
    /// the false alarms of this machine
    #[arg(long, help_heading = SIDES)]
    pub(crate) null: bool,
    /// CPUs of the server
    #[arg(long, value_name = "N", default_value = "1", help_heading = SIDES)]
    pub(crate) server_cpus: String,
    /// Connections
    #[arg(short = 'c', long, alias = "connections", value_name = "N", default_value = "10", help_heading = LOAD_OF_PAIRS)]
    pub(crate) clients: String,
    /// Worker threads of the generator [default: one per CPU that the server leaves]
    #[arg(short = 't', long, value_name = "N", help_heading = LOAD_OF_PAIRS)]
    pub(crate) threads: Option<String>,
    /// Measurement time of a trial; many short trials decide sooner than few long ones
    #[arg(short = 'd', long, value_name = "TIME", default_value = "200ms", help_heading = LOAD_OF_PAIRS)]
    pub(crate) duration: String,
    /// Warm-up of each trial; give servers that compile as they run more
    #[arg(long, value_name = "TIME", default_value = "100ms", help_heading = LOAD_OF_PAIRS)]
    pub(crate) warmup: String,
    /// Open loop: offered rate over all connections, requests per second (`50k`), or a shape
    #[arg(short = 'R', long, value_name = "RATE", help_heading = LOAD_OF_PAIRS)]
    pub(crate) rate: Option<String>,
    /// Method of HTTP requests [default: GET; POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = LOAD_OF_PAIRS)]
    pub(crate) method: Option<String>,
    /// Header, `Name: value`; repeatable
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = Collected(validate_http::field), help_heading = LOAD_OF_PAIRS)]
    pub(crate) headers: Vec<(String, String)>,
    /// Request body
    #[arg(long, value_name = "TEXT", help_heading = LOAD_OF_PAIRS)]
    pub(crate) body: Option<String>,
    /// Maximum requests in flight per connection
    #[arg(long, value_name = "N", help_heading = LOAD_OF_PAIRS)]
    pub(crate) pipeline: Option<String>,
    /// Valid status codes [default: 2xx]
    #[arg(long, value_name = "LIST", help_heading = LOAD_OF_PAIRS)]
    pub(crate) expect_status: Option<String>,
    /// A new connection for each request
    #[arg(long, visible_alias = "disable-keepalive", help_heading = LOAD_OF_PAIRS)]
    pub(crate) no_keepalive: bool,
    /// https: accept any certificate
    #[arg(short = 'k', long, help_heading = LOAD_OF_PAIRS)]
    pub(crate) insecure: bool,
    /// Cache workload: a preset
    #[arg(long, value_name = "NAME", help_heading = LOAD_OF_PAIRS)]
    pub(crate) workload: Option<String>,
    /// Any other key of a study (`load.timeout=5s`, `subject.ready_timeout=30s`), or levels of its factors
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value, help_heading = LOAD_OF_PAIRS)]
    pub(crate) sets: Vec<(String, String)>,
    /// Compare this metric alone [default: median and p99 latency, throughput, CPU per request and memory, with one error]
    #[arg(long, value_name = "METRIC", value_parser = Collected(metric), conflicts_with = "fail_if", help_heading = DECISION)]
    pub(crate) metric: Option<String>,
    /// Fail when the candidate is shown to be worse than this, relative to the baseline or in absolute terms: `p99 > 1.05 or throughput < -3% or p99 > 5ms`
    #[arg(long, value_name = "CONDITIONS", help_heading = DECISION)]
    pub(crate) fail_if: Option<String>,
    /// Fraction of its requests that the candidate may fail beyond what the baseline fails; more makes it fail, or worse [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = number("gate.allow_errors"), help_heading = DECISION)]
    pub(crate) allow_errors: Option<f64>,
    /// How to treat a candidate without a result: exit with 0, 1, or 125
    #[arg(long, value_name = "OUTCOME", value_parser = one_of(gate::UNDECIDED), default_value = "pass", help_heading = DECISION)]
    pub(crate) undecided: study::gate::Undecided,
    /// Without --fail-if: stop when the ratio is known to within this [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = number("trials.stop.comparison"), conflicts_with = "fail_if", help_heading = DECISION)]
    pub(crate) within: Option<f64>,
    /// Maximum number of pairs
    #[arg(long, value_name = "N", default_value = "1000", value_parser = Collected(whole_in::<u32>(PAIRS)), help_heading = DECISION)]
    pub(crate) max_pairs: u32,
    /// Begin no further pair after this
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = Collected(max_time), help_heading = DECISION)]
    pub(crate) max_time: String,
    /// Random seed of the order of trials and of requests
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Resume an interrupted comparison [default: the latest]; give the same flags again
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest")]
    pub(crate) resume: Option<String>,
    /// Write the answer and the table as Markdown, for a pull request (`-`: stdout, instead of the report)
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the verdicts as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print the study that these flags make, and run nothing
    #[arg(long)]
    pub(crate) print_study: bool,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Headings of `quintain load --help`.
const REQUESTS: &str = "Requests";
const SEARCH: &str = "Search";
const CACHES: &str = "Caches";
const JOURNEYS: &str = "Journeys";
const TLS: &str = "TLS";
const RIGHT: &str = "Response checks";
const GENERATOR: &str = "Generator";
const OUTPUT: &str = "Output";

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/load.txt").trim_ascii_end(), override_usage = "quintain load [OPTIONS] URL\n       quintain load [OPTIONS] --urls FILE\n       quintain load [OPTIONS] --journey NAME|FILE")]
pub(crate) struct LoadArgs {
    /// `http://host:port/path`, `https://...`, `pingpong://host:port`; or a cache: `memcached://`, `redis://`, `http-cache://`
    #[arg(required_unless_present_any = ["spec", "urls", "journey"], value_name = "URL", value_parser = Collected(url))]
    pub(crate) url: Option<ValidUrl>,
    /// Connections in total, across all threads; `1..400 over 60s` adds clients over time
    #[arg(short = 'c', long, alias = "connections", value_name = "N", default_value = "10", allow_negative_numbers = true, value_parser = Collected(clients))]
    pub(crate) clients: Shaped<u32>,
    /// Worker threads, on each machine
    #[arg(short = 't', long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = whole::<u32>("load.threads"))]
    pub(crate) threads: u32,
    /// Measurement time; without a unit in seconds [default: 5s; for a trace, to its end, at most 10m]
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", allow_negative_numbers = true, value_parser = Collected(load_time))]
    pub(crate) duration: Option<Duration>,
    /// Send exactly N requests after the warm-up (errors included) instead of measuring for a time; give up after twice
    /// --timeout without a response
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>("load.stop.requests"), conflicts_with_all = ["duration", "until", "volley"])]
    pub(crate) requests: Option<u64>,
    /// Stop when the interval of the mean latency is this narrow (`1%`); at most ten times --duration
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = number("load.stop.relative"), conflicts_with = "volley")]
    pub(crate) until: Option<f64>,
    /// Use volley's stop rule (95 % normal interval of the mean within 5 us, at most 3 minutes)
    #[arg(long)]
    pub(crate) volley: bool,
    /// Exit with 1 if this load is beyond a limit, with 4 if it does not decide: `p99 > 5ms or errors > 0.1%`
    #[arg(long, value_name = "CONDITIONS", conflicts_with = "find")]
    pub(crate) fail_if: Option<String>,
    /// Open loop: offered rate over all connections, requests per second (`50k`), or a shape: `1k..10k over 60s`, `1k, 2k,
    /// 5k for 20s each`, `1k for 30s, 9k for 5s, 1k for 30s`
    #[arg(short = 'R', long, value_name = "RATE", group = "open", allow_negative_numbers = true, value_parser = Collected(offered_rate))]
    pub(crate) rate: Option<Shaped<f64>>,
    /// Find the highest rate that meets an objective, e.g. `p99<5ms` or `p99 < 5ms and errors < 0.1%`; --duration applies to each trial
    #[arg(long, value_name = "OBJECTIVE", group = "open", conflicts_with_all = ["rate", "requests", "until", "volley", "cluster", "hosts"], help_heading = SEARCH)]
    pub(crate) find: Option<String>,
    /// Lowest rate to try, where the search starts [default: half the closed-loop rate]
    #[arg(long, value_name = "RATE", requires = "find", allow_negative_numbers = true, value_parser = Collected(units::rate_per_s), help_heading = SEARCH)]
    pub(crate) find_from: Option<f64>,
    /// Highest rate to try [default: no limit]
    #[arg(long, value_name = "RATE", requires = "find", allow_negative_numbers = true, value_parser = Collected(units::rate_per_s), help_heading = SEARCH)]
    pub(crate) find_to: Option<f64>,
    /// Width of the range at which the search stops [default: 5%]
    #[arg(long, value_name = "PERCENT", requires = "find", allow_negative_numbers = true, value_parser = number("load.search.resolution"), help_heading = SEARCH)]
    pub(crate) resolution: Option<f64>,
    /// Arrival process of the open loop
    #[arg(long = "arrivals", value_name = "LAW", value_parser = one_of(allowed_words::ARRIVALS), action = ArgAction::Set, default_value = "poisson", requires = "open")]
    pub(crate) are_poisson: bool,
    /// Closed loop: think time between a response and the next request, such as `2s`, `exponential:2s` or `uniform:1s,3s`
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = Collected(time_law::think), default_value = LOAD.key("think").default_text(), conflicts_with = "open")]
    pub(crate) think: ThinkTime,
    /// Warm-up before measuring, such as `2s`; for caches also `steady` or `50%` of -n [default: 1s; 0s with -n, for traces and for journeys; `steady` for caches, at most 1m]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = Collected(warmup))]
    pub(crate) warmup: Option<WarmupRule>,
    /// Response timeout; a late response counts as an error, but its latency is kept
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = time("load.timeout"), default_value = LOAD.key("timeout").default_text())]
    pub(crate) timeout: Duration,
    /// Run a user journey instead of loading a URL: `evernote`, `chess`, `twitter`, or a file; -n counts calls, in whole journeys, and --rate journeys per second; repeatable, with weights: `browse.toml=9`
    #[arg(id = "journey", long, value_name = "NAME|FILE[=WEIGHT]", value_parser = weighted_journey, conflicts_with_all = ["url", "urls", "volley"], help_heading = JOURNEYS)]
    pub(crate) journeys: Vec<(String, u32)>,
    /// Override the URL of a service of the journey; repeatable
    #[arg(id = "target", long, value_name = "NAME=URL", value_parser = key_value, requires = "journey", help_heading = JOURNEYS)]
    pub(crate) targets: Vec<(String, String)>,
    /// Resolve endpoints with this service: GET /resolve?endpoint=URL returns {"address": "ip:port"}, or 404
    #[arg(long, value_name = "URL", requires = "journey", help_heading = JOURNEYS)]
    pub(crate) resolve: Option<String>,
    /// Users: new for every journey (`fresh`), or one per client (`reused`; `{number}` is then the client's)
    #[arg(long, value_name = "WHICH", value_parser = one_of(allowed_words::IDENTITIES), default_value = LOAD.key("identities").default_text(), requires = "journey", help_heading = JOURNEYS)]
    pub(crate) identities: Identities,
    /// Run each journey once and print its requests, responses and values
    #[arg(long, requires = "journey", conflicts_with_all = ["rate", "find", "requests", "duration", "until", "calls", "cluster", "hosts", "json"], help_heading = JOURNEYS)]
    pub(crate) trace_session: bool,
    /// Write the timing of every call to this CSV file
    #[arg(long, value_name = "FILE", requires = "journey", conflicts_with_all = ["log_share", "find", "cluster", "hosts"], help_heading = JOURNEYS)]
    pub(crate) calls: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    /// I/O backend
    #[arg(long, value_parser = one_of(allowed_words::BACKENDS), default_value = "auto", help_heading = GENERATOR)]
    pub(crate) backend: Backend,
    /// Pin worker i to the i-th CPU of this list, e.g. `1` or `2-5`
    #[arg(long, value_name = "LIST", allow_negative_numbers = true, value_parser = Collected(cpu_list), conflicts_with_all = ["cluster", "hosts"], help_heading = GENERATOR)]
    pub(crate) cpus: Option<Cpus>,
    /// Random seed of arrivals and request order
    #[arg(long, default_value_t = 1, help_heading = GENERATOR)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Print one JSON object
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Write the latencies as an HdrHistogram: percentiles in ms to FILE.hgrm, or a log in ns to FILE.hlog
    #[arg(long, value_name = "FILE", value_parser = hdr_file, conflicts_with = "find", help_heading = OUTPUT)]
    pub(crate) hdr: Option<(PathBuf, LatencyFile)>,
    /// Write each measured request to FILE, as CSV or, for FILE.jsonl, as JSON lines; at most a million
    #[arg(long, value_name = "FILE", conflicts_with_all = ["find", "cluster", "hosts"], help_heading = OUTPUT)]
    pub(crate) log: Option<PathBuf>,
    /// Fraction of the requests in --log [default: 100%]
    #[arg(long, value_name = "PERCENT", requires = "log", value_parser = number("load.check"), help_heading = OUTPUT)]
    pub(crate) log_share: Option<f64>,
    /// Serve /metrics as OpenMetrics at this IP:PORT while the load runs; port 0 picks a free one and prints it
    #[arg(long, value_name = "ADDR", value_parser = socket_address, conflicts_with = "find", help_heading = OUTPUT)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Suppress progress and notes
    #[arg(short = 'q', long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// Accepted for wrk compatibility; quantiles are always printed
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) latency: bool,
    /// Read a LoadSpec (JSON) from a file or, with `-`, from stdin, and print progress and Measurement as JSON lines
    #[arg(long, value_name = "FILE", hide = true, exclusive = true)]
    pub(crate) spec: Option<String>,
}

/// Parses a journey and its weight, such as `browse.toml=9`. The default weight is 1.
fn weighted_journey(text: &str) -> Result<(String, u32), Invalid> {
    let Some((name, weight)) = text.rsplit_once('=') else { return Ok((text.to_owned(), 1)) };
    let weight = weight.parse().ok().filter(|weight| (1..=1_000_000).contains(weight));
    let wrong = || Invalid::new(format!("the weight of `{name}` must be a whole number from 1 to 1,000,000"));
    Ok((name.to_owned(), weight.ok_or_else(wrong)?))
}

/// A number, and its stages if it changes over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shaped<T> {
    pub(crate) number: T,
    pub(crate) shape: Vec<Stage>,
}

/// Parses the rate of an open loop per second. The number is the mean.
fn offered_rate(text: &str) -> Result<Shaped<f64>, Invalid> {
    let shape = if load_shape::is_shape(text) { load_shape::parse(text)? } else { Vec::new() };
    let number = if shape.is_empty() { units::rate_per_s(text)? } else { load_shape::mean_per_s(&shape) };
    Ok(Shaped { number, shape })
}

/// Parses the number of clients of a closed loop. The number is the maximum.
fn clients(text: &str) -> Result<Shaped<u32>, Invalid> {
    let shape = if load_shape::is_shape(text) { load_shape::parse_clients(text)? } else { Vec::new() };
    let number = if shape.is_empty() { CLIENT_COUNT.parse_flag(text)? as u32 } else { load_shape::clients_max(&shape) };
    Ok(Shaped { number, shape })
}

/// Rule that decides when the warm-up ends and measuring begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum WarmupRule {
    Time(Duration),
    /// The warm-up has this fraction of the number of requests.
    Share(f64),
    #[default]
    Steady,
}

fn warmup(text: &str) -> Result<WarmupRule, Invalid> {
    match text {
        "steady" => Ok(WarmupRule::Steady),
        text if text.ends_with('%') => units::fraction(text).map(WarmupRule::Share),
        text => duration(text).map(WarmupRule::Time),
    }
}

/// Flags that only cache loads accept.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CacheArgs {
    /// Cache workload: a preset (see `quintain workload show --help`), or a file with `[load.workload]` or only its content [default: etc-2012]
    #[arg(long, value_name = "NAME|FILE", help_heading = CACHES)]
    pub(crate) workload: Option<String>,
    /// Replay this trace instead (plain or `.zst`); the load ends with it
    #[arg(long, value_name = "FILE", requires = "trace_format", conflicts_with_all = ["key_count", "find"], help_heading = CACHES)]
    pub(crate) trace: Option<String>,
    /// Trace format: Twitter CSV, Meta CSV, libCacheSim binary, or one key per line
    #[arg(long, value_name = "FORMAT", value_parser = one_of(trace::FORMATS), requires = "trace", help_heading = CACHES)]
    pub(crate) trace_format: Option<trace::Format>,
    /// Timing: `recorded` (open loop, at the trace's times) or `none` (as the load flags say) [default: none]
    #[arg(long, value_name = "RULE", value_parser = one_of(allowed_words::GAPS), requires = "trace", help_heading = CACHES)]
    pub(crate) trace_gaps: Option<study::workload::Gaps>,
    /// Speed-up of recorded timing [default: 1]
    #[arg(long, value_name = "FACTOR", requires = "trace_gaps", allow_negative_numbers = true, value_parser = number("load.workload.trace.speed"), help_heading = CACHES)]
    pub(crate) trace_speed: Option<f64>,
    /// Number of distinct keys; overrides the workload
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>("load.workload.keys.count"), help_heading = CACHES)]
    pub(crate) key_count: Option<u64>,
    /// Follow a missed GET with a SET of its key; overrides the workload
    #[arg(long, value_name = "YES|NO", value_parser = one_of(&[("yes", true), ("no", false)]), help_heading = CACHES)]
    pub(crate) fill: Option<bool>,
}

const IDLE_POLICIES: &[(&str, IdlePolicy)] = &[("machine", IdlePolicy::Machine), ("spin", IdlePolicy::Spin)];
const SERVER_BACKENDS: &[(&str, net::Choice)] =
    &[("auto", net::Choice::Auto), ("epoll", net::Choice::Epoll), ("io_uring", net::Choice::IoUring)];
const CACHE_PROTOCOLS: &[(&str, CacheProtocol)] = &[
    ("auto", CacheProtocol::Auto),
    ("memcached", CacheProtocol::Memcached),
    ("redis", CacheProtocol::Redis),
    ("http", CacheProtocol::Http),
];
const MOCK_PROFILES: &[(&str, mocks::Profile)] =
    &[("shipped", mocks::Profile::Shipped), ("paper", mocks::Profile::Paper)];
const MOCK_IDENTITIES: &[(&str, mocks::Identities)] =
    &[("fresh", mocks::Identities::Fresh), ("reused", mocks::Identities::Reused)];
/// Function that builds a kind of misbehavior from the number of correct responses before it.
pub(crate) type Misbehave = fn(u64) -> Misbehaviour;
const HOSTILE_KINDS: &[(&str, Misbehave)] = &[
    ("wrong-words", |_| Misbehaviour::WrongWords),
    ("endless-data", |_| Misbehaviour::EndlessData),
    ("one-byte-at-a-time", |_| Misbehaviour::OneByteAtATime),
    ("never-answer", |_| Misbehaviour::NeverAnswer),
    ("close-at-once", |_| Misbehaviour::CloseAtOnce),
    ("freeze", Misbehaviour::Freeze),
    ("freeze-one", Misbehaviour::FreezeOne),
    ("http2-silence", |after| Misbehaviour::Http2(Http2Fault::Silence, after)),
    ("http2-http1", |after| Misbehaviour::Http2(Http2Fault::Http1, after)),
    ("http2-no-credit", |after| Misbehaviour::Http2(Http2Fault::NoCredit, after)),
    ("http2-goaway", |after| Misbehaviour::Http2(Http2Fault::GoAway, after)),
    ("http2-reset", |after| Misbehaviour::Http2(Http2Fault::Reset, after)),
    ("http2-refuse", |after| Misbehaviour::Http2(Http2Fault::Refuse, after)),
    ("http2-closed-stream", |after| Misbehaviour::Http2(Http2Fault::ClosedStream, after)),
    ("http2-header-bomb", |after| Misbehaviour::Http2(Http2Fault::HeaderBomb, after)),
    ("http2-continuation-flood", |after| Misbehaviour::Http2(Http2Fault::ContinuationFlood, after)),
    ("http2-ping-flood", |after| Misbehaviour::Http2(Http2Fault::PingFlood, after)),
    ("http2-settings-flood", |after| Misbehaviour::Http2(Http2Fault::SettingsFlood, after)),
];

/// Parses one of the words in `known` into its value, as in a study.
fn one_of<T: Copy + Send + Sync + 'static>(known: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(known.iter().map(|(word, _)| *word));
    words.map(|word| known.iter().find(|(name, _)| *name == word).expect("clap has checked the word").1)
}

/// Flags that only HTTP loads accept.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(crate) struct HttpArgs {
    /// File of requests instead of a URL, picked by weight: per line `[WEIGHT] [METHOD] URL`, or vegeta's JSON; one server
    #[arg(long, visible_alias = "targets", value_name = "FILE", conflicts_with = "url", help_heading = REQUESTS)]
    pub(crate) urls: Option<PathBuf>,
    /// Method; with --urls, for lines without one [default: GET; POST for a URL with a body]
    #[arg(short = 'X', long, value_name = "METHOD", value_parser = Collected(validate_http::method), help_heading = REQUESTS)]
    pub(crate) method: Option<String>,
    /// Header, `Name: value`, which may have values; repeatable
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = Collected(validate_http::field), help_heading = REQUESTS)]
    pub(crate) headers: Vec<(String, String)>,
    /// Request body, which may have values; with --urls, for lines with a method other than GET or HEAD
    #[arg(long, value_name = "TEXT", help_heading = REQUESTS)]
    pub(crate) body: Option<String>,
    /// Read the request body from a file
    #[arg(long, value_name = "FILE", value_parser = Collected(content), conflicts_with = "body", help_heading = REQUESTS)]
    pub(crate) body_file: Option<Content>,
    /// Maximum requests in flight per connection [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>("load.pipeline"), help_heading = REQUESTS)]
    pub(crate) pipeline: Option<u32>,
    /// Send HTTP/2: by ALPN to https://, by prior knowledge to http://
    #[arg(long, conflicts_with = "pipeline", help_heading = REQUESTS)]
    pub(crate) http2: bool,
    /// Send gRPC calls to http://host:port/package.Service/Method; --body or --body-file is the encoded message, or JSON with --proto
    #[arg(long, help_heading = REQUESTS)]
    pub(crate) grpc: bool,
    /// Messages of --grpc are JSON, by this .proto file or descriptor set; a JSON list is a client stream
    #[arg(long, value_name = "FILE", requires = "grpc", help_heading = REQUESTS)]
    pub(crate) proto: Option<PathBuf>,
    /// When a gRPC call sends several messages: all at once, or each after a message of the response [default: at-once]
    #[arg(long, value_name = "ORDER", value_parser = one_of(allowed_words::GRPC_MESSAGES), requires = "grpc", help_heading = REQUESTS)]
    pub(crate) messages: Option<bool>,
    /// Maximum requests in flight per HTTP/2 connection [default: 1]
    #[arg(short = 'm', long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>("load.streams"), help_heading = REQUESTS)]
    pub(crate) streams: Option<u32>,
    /// Flow-control window of each HTTP/2 stream, `64KiB` [default: the largest, which never throttles]
    #[arg(long, value_name = "BYTES", value_parser = whole::<u32>("load.stream_window"), help_heading = REQUESTS)]
    pub(crate) stream_window: Option<u32>,
    /// Flow-control window of each HTTP/2 connection [default: the largest, which never throttles]
    #[arg(long, value_name = "BYTES", value_parser = whole::<u32>("load.connection_window"), help_heading = REQUESTS)]
    pub(crate) connection_window: Option<u32>,
    /// Maximum size of the HPACK table for HTTP/2 responses [default: 4KiB]
    #[arg(long, value_name = "BYTES", value_parser = whole::<u32>("load.header_table"), help_heading = REQUESTS)]
    pub(crate) header_table: Option<u32>,
    /// Connection reuse [default: keep-alive]
    #[arg(long, value_name = "USE", value_parser = one_of(allowed_words::CONNECTIONS), help_heading = REQUESTS)]
    pub(crate) connection: Option<Connection>,
    /// Same as `--connection per-request`
    #[arg(long, visible_alias = "disable-keepalive", conflicts_with = "connection", help_heading = REQUESTS)]
    pub(crate) no_keepalive: bool,
    /// Close each connection after N requests and open a new one
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>("load.requests_per_connection"), conflicts_with_all = ["connection", "no_keepalive"], help_heading = REQUESTS)]
    pub(crate) requests_per_connection: Option<u32>,
    /// Connect to this Unix socket; the URL sets the Host header and the path
    #[arg(long, value_name = "PATH", value_parser = Collected(socket), help_heading = REQUESTS)]
    pub(crate) unix_socket: Option<String>,
    /// Connect to this address instead of the URL's, whose host stays in the Host header and the certificate
    #[arg(long, value_name = "HOST:PORT", value_parser = Collected(host_and_port), conflicts_with = "unix_socket", help_heading = REQUESTS)]
    pub(crate) connect_to: Option<String>,
    /// Send all requests, also to http://, through tunnels that this HTTP proxy opens (CONNECT)
    #[arg(long, value_name = "HOST:PORT", value_parser = Collected(host_and_port), conflicts_with = "unix_socket", help_heading = REQUESTS)]
    pub(crate) http_proxy: Option<String>,
    /// Valid status codes, `200,201`, `200-204` or `2xx` [default: 2xx]
    #[arg(long, value_name = "LIST", value_parser = Collected(validate_http::statuses), help_heading = RIGHT)]
    pub(crate) expect_status: Option<Statuses>,
    /// Exact body of a valid response
    #[arg(long, value_name = "TEXT", help_heading = RIGHT)]
    pub(crate) expect_body: Option<String>,
    /// Read the expected body from a file
    #[arg(long, value_name = "FILE", value_parser = Collected(content), conflicts_with = "expect_body", help_heading = RIGHT)]
    pub(crate) expect_body_file: Option<Content>,
    /// Value in the JSON body of a valid response: `$.id == {{seq}}`, with a path of RFC 9535; repeatable
    #[arg(long, value_name = "CHECK", value_parser = Collected(json_check), help_heading = RIGHT)]
    pub(crate) expect_json: Vec<(String, String)>,
    /// Regular expression that matches the body of a valid response
    #[arg(long, value_name = "REGEX", value_parser = Collected(validate_http::regex), help_heading = RIGHT)]
    pub(crate) expect_matches: Option<String>,
    /// Length of the body of a valid response, bytes, `100..2000`
    #[arg(long, value_name = "RANGE", value_parser = Collected(validate_http::length_range), help_heading = RIGHT)]
    pub(crate) expect_length: Option<(u64, u64)>,
    /// Fraction of the responses to which --expect-json, --expect-matches and --expect-length apply [default: 100%]
    #[arg(long, value_name = "PERCENT", value_parser = number("load.check"), help_heading = RIGHT)]
    pub(crate) check: Option<f64>,
    /// For users of wrk: the error names the alternative
    #[arg(short = 's', long, value_name = "FILE", value_parser = Collected(script), hide = true)]
    pub(crate) script: Option<String>,
    /// https: accept any certificate
    #[arg(short = 'k', long, help_heading = TLS)]
    pub(crate) insecure: bool,
    /// https: trust these root certificates (PEM) instead of the public ones
    #[arg(long, value_name = "FILE", value_parser = Collected(readable), conflicts_with = "insecure", help_heading = TLS)]
    pub(crate) cacert: Option<String>,
    /// https: client certificate (PEM), with the ones between it and its root; may include the key
    #[arg(long, value_name = "FILE", value_parser = Collected(readable), help_heading = TLS)]
    pub(crate) cert: Option<String>,
    /// https: private key of --cert (PEM) [default: the file of --cert]
    #[arg(long, value_name = "FILE", value_parser = Collected(readable), requires = "cert", help_heading = TLS)]
    pub(crate) key: Option<String>,
    /// https: full handshake on every connection, no session resumption
    #[arg(long, help_heading = TLS)]
    pub(crate) no_resume: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadKind {
    /// Sample a workload and test the sample against its distributions: lengths, popularity, operations; prints goodness of fit
    Show(WorkloadShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WorkloadShowArgs {
    /// A study with `[load.workload]` (first level of each factor), or a file with the content of that table
    #[arg(conflicts_with = "preset")]
    pub(crate) study: Option<String>,
    /// Built-in workload: course, course-no-fill, etc-2012, etc-2012-location-0, twitter-c12, twitter-c45, twitter-c52, ycsb-a to ycsb-d, ycsb-f [default: etc-2012]
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// Number of operations to sample
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    pub(crate) operations: u64,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the table and figure to this HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the figure to this file: sample and distribution
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeKind {
    /// Ping-pong: return each 32-bit word plus one; prints `ready PORT`
    Pingpong(ListenArgs),
    /// Respond after a random delay of known distribution; log the true service times (JSON, on exit)
    Calibrate {
        #[command(flatten)]
        listen: ListenArgs,
        /// Delay distribution: `null`, `constant:1ms`, `exponential:1ms`, `uniform:1ms,3ms`, `lognormal:1ms,0.5`
        /// (median, sigma), `bimodal:100us,5ms,0.02` (low, high, fraction of high)
        #[arg(long, default_value = "null", value_parser = law)]
        delay: Law,
        /// Length of each pause in responding
        #[arg(long, value_name = "TIME", value_parser = duration, requires = "pause_every")]
        pause: Option<Duration>,
        /// Time between pauses
        #[arg(long, value_name = "TIME", value_parser = duration, requires = "pause")]
        pause_every: Option<Duration>,
        /// Random seed of the delays
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// HTTP/1.1 and HTTP/2, with or without TLS: fixed responses, bodies of any length, echo, random delays
    Http(Box<ServeHttpArgs>),
    /// Serve a cache: memcached's text protocol, RESP2/3 and HTTP on one port, with an exact memory limit
    Cache(Box<ServeCacheArgs>),
    /// A shop to try journeys on: login, cookie, form, list in pages, orders; counts at /stats
    MockShop {
        #[command(flatten)]
        mock: Box<MockArgs>,
        /// Show every Nth order with a wrong total (0: none)
        #[arg(long, value_name = "N", default_value_t = 0)]
        wrong_total: u64,
        /// End the session of the Nth login early
        #[arg(long, value_name = "N")]
        expire: Option<u64>,
    },
    /// Mock of Whip's Evernote benchmark: Thrift over HTTPS, an account service and a notes service on a second port
    MockEvernote {
        #[command(flatten)]
        mock: Box<MockArgs>,
        #[command(flatten)]
        tls: MockTlsArgs,
        /// Port of the notes service (0: any free port)
        #[arg(long, value_name = "PORT", default_value_t = 0)]
        notes_port: u16,
        /// Responses: as published (`shipped`), or as the paper's contracts need (`paper`: keys and tokens per user)
        #[arg(long, value_parser = one_of(MOCK_PROFILES), default_value = "shipped")]
        profile: mocks::Profile,
    },
    /// Mock of Whip's chess benchmark: SOAP, the WSDL at /?wsdl
    MockChess {
        #[command(flatten)]
        mock: Box<MockArgs>,
        /// Games to keep; the oldest is dropped first, and a new game of the same two players replaces the old one (the published benchmark kept one)
        #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        games: u32,
        /// Game ids: new for every game, or one per pair of players
        #[arg(long, value_name = "WHICH", value_parser = one_of(MOCK_IDENTITIES), default_value = LOAD.key("identities").default_text())]
        identities: mocks::Identities,
    },
    /// Mock of Whip's Twitter benchmark: REST over HTTPS
    MockTwitter {
        #[command(flatten)]
        mock: Box<MockArgs>,
        #[command(flatten)]
        tls: MockTlsArgs,
        /// Ids: new for every request, or one per requested user
        #[arg(long, value_name = "WHICH", value_parser = one_of(MOCK_IDENTITIES), default_value = LOAD.key("identities").default_text())]
        identities: mocks::Identities,
    },
    /// Misbehave on purpose, to test generators
    #[command(hide = true)]
    Hostile {
        /// Port (0: any free port)
        #[arg(short = 'p', long, default_value_t = 0)]
        port: u16,
        /// Kind of misbehavior
        #[arg(long, value_parser = one_of(HOSTILE_KINDS))]
        kind: Misbehave,
        /// `freeze`, `freeze-one`, `http2-...`: correct responses before the misbehavior
        #[arg(long, value_name = "N", default_value_t = 1500)]
        after: u64,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ListenArgs {
    /// Event-loop threads; the first also accepts connections
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,
    /// Port (0: any free port)
    #[arg(short = 'p', long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,
    /// Listen on a Unix socket of this path instead; removed on exit
    #[arg(long, value_name = "PATH", conflicts_with_all = ["host", "port"])]
    pub(crate) unix: Option<PathBuf>,
    /// I/O backend
    #[arg(long, value_parser = one_of(SERVER_BACKENDS), default_value = "auto")]
    pub(crate) backend: net::Choice,
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/serve-http.txt").trim_ascii_end())]
pub(crate) struct ServeHttpArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Serve https, with a new certificate for `localhost` and the address
    #[arg(long)]
    pub(crate) tls: bool,
    /// --tls: write the root certificate to this file (PEM), for clients to trust (`--cacert`)
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(crate) cert_out: Option<PathBuf>,
    /// --tls: another name or address for the certificate; repeatable
    #[arg(long = "cert-name", value_name = "NAME", requires = "tls")]
    pub(crate) cert_names: Vec<String>,
    /// Maximum open connections; further ones get 503, or GOAWAY over HTTP/2 [default: 65536, or as many as file descriptors allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// Maximum size of a request head; larger ones get 431
    #[arg(long, value_name = "BYTES", default_value = "32KiB", value_parser = whole_in::<usize>(Kind::Bytes(256, 16 << 20)))]
    pub(crate) max_head: usize,
    /// Maximum number of request headers; more get 431
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) max_headers: u16,
    /// Maximum size of a request body; larger ones get 413
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = units::bytes)]
    pub(crate) max_body: u64,
    /// Maximum open streams per HTTP/2 connection; further ones are refused
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) streams: u32,
    /// Close a connection after N requests, over HTTP/2 with GOAWAY, as nginx's `keepalive_requests` does [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) requests_per_connection: Option<u32>,
    /// Close a connection idle for this long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) idle_timeout: Duration,
    /// Time limit for receiving a request head; slower ones get 408
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) head_timeout: Duration,
    /// Grace period for a request body; after it, --body-rate applies
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) body_timeout: Duration,
    /// Minimum average rate of a request body, bytes per second; slower ones get 408
    #[arg(long, value_name = "BYTES", default_value = "1KiB", value_parser = units::bytes)]
    pub(crate) body_rate: u64,
    /// Disconnect a client that takes longer than this to read 31 KiB of a response
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) send_timeout: Duration,
    /// Keep reading this long after a server-initiated close, so the client receives the response
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub(crate) linger: Duration,
    /// Drain time after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) drain: Duration,
    /// Leave the `Server` and `Date` headers out of all responses
    #[arg(long)]
    pub(crate) minimal: bool,
    /// Random seed of the delays
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the true service times of /delay to this file on exit (JSON); `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/serve-cache.txt").trim_ascii_end())]
pub(crate) struct ServeCacheArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Memory limit: keys, values and all overhead
    #[arg(long, value_name = "BYTES", default_value = "64MB", value_parser = Collected(cache_memory))]
    pub(crate) maxmem: u64,
    /// Eviction policy: `density` (quintain's own, also `ours`), `s3-fifo`, `sieve`, `clock`, `lru`, `fifo`, or
    /// `none`, which rejects new items when full
    #[arg(long, value_name = "NAME", default_value = "density", value_parser = Collected(evictor))]
    pub(crate) evict: cache::Evictor,
    /// What --maxmem counts: `everything`, or `values` only (total memory is then at most twice the limit plus 1 MiB)
    #[arg(long = "accounting", value_name = "ACCOUNTING", value_parser = one_of(&[("everything", true), ("values", false)]), action = ArgAction::Set, default_value = "everything")]
    pub(crate) counts_everything: bool,
    /// Protocol; `auto` detects it from the first bytes of each connection
    #[arg(long, value_parser = one_of(CACHE_PROTOCOLS), default_value = "auto")]
    pub(crate) protocol: CacheProtocol,
    /// Keep a version of each item for `cas`, 8 bytes per item [default: on if the protocol may be memcached]
    #[arg(long, value_parser = one_of(&[("on", true), ("off", false)]))]
    pub(crate) cas: Option<bool>,
    /// Maximum value size; a small cache allows less (a quarter of a shard)
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = Collected(value_max))]
    pub(crate) value_max: u64,
    /// Maximum key length; the memcached protocol allows at most 250
    #[arg(long, value_name = "BYTES", default_value = "250B", value_parser = Collected(whole_in::<u64>(Kind::Bytes(1, cache::KEY_BYTES_MAX as u64))))]
    pub(crate) key_max: u64,
    /// Close a connection idle for this long; 0s means never
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = Collected(duration))]
    pub(crate) idle_timeout: Duration,
    /// Disconnect a client that stalls this long while sending a request or reading 64 KiB of responses
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = Collected(some_time))]
    pub(crate) stall_timeout: Duration,
    /// Maximum open connections; further ones get an error and are closed [default: 65536, or as many as file descriptors allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// Drain time after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = Collected(duration))]
    pub(crate) drain: Duration,
    /// Random seed of key hashing and eviction [default: random]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

/// Flags of all mocks.
#[derive(Debug, Args)]
pub(crate) struct MockArgs {
    /// Port (0: any free port)
    #[arg(short = 'p', long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,
    /// Worker threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,
    /// Maximum open connections; further ones wait to be accepted
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: u32,
    /// Maximum size of a request body; larger ones get 413
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = units::bytes)]
    pub(crate) max_body: u64,
    /// Close a connection without a complete request head after this long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = some_time)]
    pub(crate) idle_timeout: Duration,
    /// Time limit for receiving a request body, and for a TLS handshake
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    pub(crate) body_timeout: Duration,
    /// Response delay distribution, as in `serve calibrate`; millisecond resolution
    #[arg(long, default_value = "null", value_parser = law)]
    pub(crate) delay: Law,
    /// Random seed of the delays
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Drain time after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) drain: Duration,
}

/// Flags of mocks with TLS.
#[derive(Debug, Args)]
pub(crate) struct MockTlsArgs {
    /// Write the generated root certificate to this file (PEM), for clients to trust
    #[arg(long, value_name = "FILE")]
    pub(crate) cert_out: Option<PathBuf>,
    /// Add a name or address to the certificate, besides `localhost` and the address; repeatable
    #[arg(long = "cert-name", value_name = "NAME")]
    pub(crate) cert_names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run name or unique prefix
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Output format
    #[arg(short = 'f', long, value_parser = format(), default_value = "terminal", conflicts_with_all = ["json", "raw"])]
    pub(crate) format: Format,
    /// Trial to show with `--format trace`, by its place in the order of the run, from 0 [default: the first with a measurement]
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "raw"])]
    pub(crate) trial: Option<u32>,
    /// Write to this file instead of stdout; with a format of several files, to this directory
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Raw data in the original tool's format: `volley` gives `server clients cores mean stddev num_samples`, `whip` writes `bytes clientcalls memory times` of each
    /// trial with recorded proxy calls to DIR
    #[arg(long, value_enum)]
    pub(crate) raw: Option<Raw>,
    /// Directory for `--raw whip`
    #[arg(value_name = "DIR", requires = "raw")]
    pub(crate) folder: Option<PathBuf>,
    /// Write every figure as `NAME.svg` and `NAME.png` to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
    /// Draw the figures on a dark background
    #[arg(long, requires = "figures")]
    pub(crate) dark: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<RunsVerb>,
    #[command(flatten)]
    pub(crate) filter: RunsFilter,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Criteria for the runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct RunsFilter {
    /// Only runs of this study
    #[arg(long, value_name = "NAME")]
    pub(crate) study: Option<String>,
    /// Only runs in this state
    #[arg(long, value_parser = states())]
    pub(crate) state: Option<String>,
    /// Only runs that started at most this long ago (`7d`, `12h`), or on or after a date (`2026-11-20`), UTC
    #[arg(long, value_name = "TIME|DATE")]
    pub(crate) since: Option<String>,
    /// Only runs on the machine of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
}

fn states() -> PossibleValuesParser {
    let failed = PossibleValue::new("failed").help("It has ended, and all of its trials failed");
    PossibleValuesParser::new(["running".into(), "complete".into(), failed, "out-of-time".into(), "interrupted".into()])
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsVerb {
    /// Remove runs and their trials, without asking, and shrink the store
    ///
    /// Their space goes back to the disk, unless a run is in progress in the store: then later trials use the space, and the next `rm` shrinks the store. A large store
    /// from an older quintain shrinks only with `--rewrite`. Runs in progress are refused.
    Rm {
        /// Run names or unique prefixes
        #[arg(required_unless_present = "rewrite", value_name = "RUN")]
        runs: Vec<String>,
        /// Rewrite the whole store without unused space (VACUUM): it takes as long as copying it twice
        #[arg(long, conflicts_with = "dry_run")]
        rewrite: bool,
        /// Print what would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Write a run to a file that `quintain runs import` reads: JSON lines in gzip, with a SHA-256
    Export {
        /// Run name or unique prefix
        run: String,
        /// File [default: RUN.jsonl.gz]
        #[arg(short = 'o', long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Store the run of a file, marked as imported
    Import {
        /// File written by `quintain runs export`
        file: PathBuf,
        /// Store it under this name [default: its own]
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("help/history.txt").trim_ascii_end())]
pub(crate) struct HistoryArgs {
    /// Name of the study, or its file
    pub(crate) study: String,
    /// Metric, as in `quintain help study` [default: that of the study's stop rule]
    pub(crate) metric: Option<String>,
    /// Only design points with these levels: `server=go,clients=40`; repeatable [default: the first 6]
    #[arg(long = "point", value_name = "FACTOR=LEVEL,...")]
    pub(crate) points: Vec<String>,
    /// Only runs that started at most this long ago (`30d`), or on or after a date (`2026-11-20`), UTC
    #[arg(long, value_name = "TIME|DATE")]
    pub(crate) since: Option<String>,
    /// Only runs on the machine of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Write a page with the lines over runs to this file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Output format of a report.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    Terminal,
    Html,
    Json,
    Records,
    /// Another text of the findings.
    Text(fn(&Findings) -> String),
    /// A format that other tools read.
    Export(&'static Export),
}

fn format() -> impl TypedValueParser<Value = Format> {
    let own = [
        ("terminal", "", Format::Terminal),
        ("html", "", Format::Html),
        ("md", "", Format::Text(report::markdown)),
        ("csv", "", Format::Text(report::csv)),
        ("csv-trials", "One row per trial, full precision", Format::Text(report::csv_trials)),
        (
            "csv-effects",
            "Effects of the factors: sources of variation, levels, changes",
            Format::Text(report::csv_effects),
        ),
        ("csv-miss-ratio", "Miss-ratio curves, measured and simulated", Format::Text(report::csv_miss_ratios)),
        ("csv-added", "Proxy overhead, by design point and metric", Format::Text(report::csv_added)),
        ("csv-over-requests", "Trends over requests, with slopes", Format::Text(report::csv_over_requests)),
        ("json", "Analysis results", Format::Json),
        ("records", "The run and its records, as stored", Format::Records),
    ];
    let exports = EXPORTS.iter().map(|export| (export.name, export.text, Format::Export(export)));
    let value = |(name, help, format): (&'static str, &'static str, Format)| {
        let value = PossibleValue::new(name).aliases((name == "md").then_some("markdown"));
        (if help.is_empty() { value } else { value.help(help) }, format)
    };
    let all = own.into_iter().chain(exports).map(value).collect::<Vec<_>>();
    let names = PossibleValuesParser::new(all.iter().map(|(name, _)| name.clone()));
    names.map(move |text| all.iter().find(|(name, _)| name.matches(&text, false)).expect("clap has checked the name").1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Raw {
    Volley,
    Whip,
}

/// Protocol of a null server, and the `COMMAND` of `quintain COMMAND` that starts it.
pub(crate) type NullServer = (&'static str, &'static str);

/// Null servers by protocol. Several generators can load only the first [`OF_CLUSTERS`].
pub(crate) const NULL_SERVERS: &[(&str, NullServer)] = &[
    ("pingpong", ("pingpong", "serve calibrate --delay null")),
    ("http", ("http", "serve http")),
    ("memcached", ("memcached", "serve cache --protocol memcached")),
    ("redis", ("redis", "serve cache --protocol redis")),
];
pub(crate) const OF_CLUSTERS: usize = 2;

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Protocol; repeatable [default: all]
    #[arg(long = "protocol", value_name = "PROTOCOL", value_parser = one_of(NULL_SERVERS))]
    pub(crate) protocols: Vec<NullServer>,
    /// Measure even if the machine is busy
    #[arg(long)]
    pub(crate) force: bool,
    /// Measurement time per step
    #[arg(short = 'd', long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// I/O backend
    #[arg(long, value_parser = one_of(allowed_words::BACKENDS), default_value = "auto")]
    pub(crate) backend: Backend,
    /// Idle-CPU policy
    #[arg(long, value_parser = one_of(IDLE_POLICIES), default_value = "machine")]
    pub(crate) idle: IdlePolicy,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Directory that paths in commands are relative to
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The lab writes to stdin and reads from stdout
    #[arg(long, required_unless_present = "join", conflicts_with = "join")]
    pub(crate) stdio: bool,
    /// The lab listens there; the environment has the ticket, `QUINTAIN_TICKET`
    #[arg(long, value_name = "ADDRESS:PORT", requires = "lab")]
    pub(crate) join: Option<SocketAddr>,
    /// SHA-256 of the lab's certificate, the only one accepted
    #[arg(long, value_name = "FINGERPRINT", requires = "join")]
    pub(crate) lab: Option<String>,
    /// Which of the machines this is, from 0 [default: as mpirun, PRRTE, Slurm or Kubernetes say]
    #[arg(long, value_name = "N", requires = "join")]
    pub(crate) rank: Option<u32>,
}

/// Parses a number with the unit and range of the study key at `path`.
fn number(path: &'static str) -> Collected<impl Fn(&str) -> Result<f64, Invalid> + Clone> {
    Collected(move |text: &str| STUDY.at(path).kind.parse_flag(text))
}

fn whole<T: TryFrom<u64>>(path: &'static str) -> Collected<impl Fn(&str) -> Result<T, Invalid> + Clone> {
    Collected(whole_in(STUDY.at(path).kind))
}

/// Parses a whole number with the unit and range of `kind`.
fn whole_in<T: TryFrom<u64>>(kind: Kind) -> impl Fn(&str) -> Result<T, Invalid> + Clone {
    let fits = |number: f64| T::try_from(number as u64).ok().expect("the range fits the flag");
    move |text: &str| kind.parse_flag(text).map(fits)
}

fn time(path: &'static str) -> Collected<impl Fn(&str) -> Result<Duration, Invalid> + Clone> {
    Collected(move |text: &str| STUDY.at(path).kind.parse_flag(text).map(|ns| Duration::from_nanos(ns as u64)))
}

/// Distribution of a random delay in ns; `None` for no delay.
pub(crate) type Law = Option<stats::Distribution>;

/// Parses `null` (no delay) or a distribution in the syntax of [`time_law::parse`].
fn law(text: &str) -> Result<Law, Invalid> {
    if text == "null" { Ok(None) } else { time_law::parse(text).map(Some) }
}

/// CPU numbers in ascending order. clap would take a field that is declared as a `Vec` for a repeatable flag.
pub(crate) type Cpus = Vec<u32>;

pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())) {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key, value)),
        _ => Err("expected KEY=VALUE, as in `cores=1,2`".to_owned()),
    }
}

/// Parses an IP address and a port, such as `127.0.0.1:9100`.
fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected IP:PORT, such as 127.0.0.1:9100 or [::1]:0".to_owned())
}

/// URL of a load. `None` is never used, because it stands for an invalid URL, which is an error.
pub(crate) type ValidUrl = Option<Url>;

fn url(text: &str) -> Result<ValidUrl, Invalid> {
    study::url::parse(text).map(Some)
}

pub(crate) type Statuses = Vec<u16>;

/// Checks a list of statuses and returns it unchanged.
fn statuses_text(text: &str) -> Result<String, Invalid> {
    validate_http::statuses(text).map(|_| text.to_owned())
}

/// Parses a check of a JSON body, such as `$.id == 7`, into its path and the expected value.
fn json_check(text: &str) -> Result<(String, String), Invalid> {
    let missing = || Invalid::new(format!("`{text}` has no `==`")).hint("write `$.id == 7`");
    let (path, value) = text.split_once("==").ok_or_else(missing)?;
    Ok((path.trim().to_owned(), validate_http::json_check(path.trim(), value.trim())?))
}

fn script(_: &str) -> Result<String, Invalid> {
    let hint = "use `--urls FILE` for a mix of requests, or `-X`, `-H` and `--body`";
    Err(Invalid::new("wrk Lua scripts are not supported").hint(hint))
}

fn host_and_port(text: &str) -> Result<String, Invalid> {
    let url = study::url::parse(&format!("http://{text}")).ok();
    let address = url.filter(|url| url.target == "/" && text.ends_with(&format!(":{}", url.port)));
    let wrong = || Invalid::new(format!("`{text}` is not `HOST:PORT`")).hint("for example `10.0.0.5:8443`");
    Ok(address.ok_or_else(wrong)?.address())
}

/// Maximum length of a Unix socket path in bytes: `sun_path` has 108, including the terminating zero (unix(7)).
const SOCKET_PATH_MAX_BYTES: usize = 107;

fn socket(text: &str) -> Result<String, Invalid> {
    let size = text.len();
    if (1..=SOCKET_PATH_MAX_BYTES).contains(&size) && !text.contains('\0') {
        return Ok(text.to_owned());
    }
    let invalid = Invalid::new(format!("a path of {size} bytes, expected 1 to {SOCKET_PATH_MAX_BYTES}"));
    Err(if size > 0 { invalid.hint("start in the directory of the socket and give a shorter path") } else { invalid })
}

/// Path and content of a file.
pub(crate) type Content = (PathBuf, Vec<u8>);

fn content(text: &str) -> Result<Content, String> {
    let path = PathBuf::from(text);
    read_file(&path, BODY_MAX_BYTES).map(|bytes| (path, bytes))
}

/// Checks that a file is readable and returns its path. The TLS code checks the content.
fn readable(text: &str) -> Result<String, String> {
    content(text).map(|_| text.to_owned())
}

/// Reads a file, or standard input for `-`. Fails if it has more than `most` bytes.
pub(crate) fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
    };
    match read {
        Err(error) => Err(format!("cannot read `{}`: {error}", path.display())),
        Ok(read) if read as u64 > most => Err(format!("`{}` has more than {} MiB", path.display(), most >> 20)),
        Ok(_) => Ok(bytes),
    }
}

fn cpu_list(text: &str) -> Result<Cpus, String> {
    match lab::cpu_list::parse(text)? {
        cpus if cpus.is_empty() => Err("expected CPUs like `0-3,8`".to_owned()),
        cpus => Ok(cpus),
    }
}

fn in_range<T: PartialOrd>(value: T, range: impl RangeBounds<T>, expected: impl Into<String>) -> Result<T, Invalid> {
    if range.contains(&value) { Ok(value) } else { Err(Invalid::new(expected)) }
}

/// Parses the name of a latency file. Its extension, `.hgrm` or `.hlog`, determines its kind.
fn hdr_file(text: &str) -> Result<(PathBuf, LatencyFile), String> {
    let path = PathBuf::from(text);
    let kind = match path.extension().and_then(std::ffi::OsStr::to_str) {
        Some("hgrm") => LatencyFile::Percentiles,
        Some("hlog") => LatencyFile::Log,
        _ => return Err("expected a name that ends in `.hgrm` (percentiles) or `.hlog` (log)".to_owned()),
    };
    Ok((path, kind))
}

pub(crate) fn port(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| format!("`{text}` is not a port: expected 1 to 65535"))
}

/// Parses the duration of a load, in seconds if it has no unit, as in wrk. It must be above 0.
fn load_time(text: &str) -> Result<Duration, Invalid> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    if is_number { some_time(&format!("{text}s")) } else { some_time(text) }
}

fn some_time(text: &str) -> Result<Duration, Invalid> {
    in_range(duration(text)?, Duration::from_nanos(1).., "must be greater than 0")
}

fn duration(text: &str) -> Result<Duration, Invalid> {
    units::duration_ns(text).map(Duration::from_nanos)
}

fn cache_memory(text: &str) -> Result<u64, Invalid> {
    let (bytes, least) = (units::bytes(text)?, cache::MEMORY_BYTES_MIN);
    let found = in_range(bytes, least.., format!("{bytes} bytes is too small: bookkeeping alone needs {least}"));
    found.map_err(|invalid| invalid.hint("`--maxmem 1MB` holds a few thousand items"))
}

fn value_max(text: &str) -> Result<u64, Invalid> {
    let bytes = units::bytes(text)?;
    in_range(bytes, 1..1 << 28, format!("{bytes} bytes, expected at least 1 byte and less than 256MiB"))
}

fn evictor(text: &str) -> Result<cache::Evictor, String> {
    if text == "ours" { Ok(cache::Evictor::Density) } else { text.parse() }
}

pub(crate) fn metric(name: &str) -> Result<String, Invalid> {
    let unknown =
        || Invalid::new(format!("unknown metric `{name}`")).hint(config::nearest::suggestion(name, Metric::names()));
    Metric::find(name).map(|metric| metric.name.to_owned()).ok_or_else(unknown)
}

/// Checks a time limit and returns it unchanged.
fn max_time(text: &str) -> Result<String, Invalid> {
    STUDY.at("trials.stop.max_time").kind.parse_flag(text).map(|_| text.to_owned())
}
