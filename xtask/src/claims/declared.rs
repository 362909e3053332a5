//! What the four sources state, and how each statement is tested again. The words are ours, the numbers theirs.

use crate::claims::claim::{At, Claim, Command, Look, Parameter, Range, Ratio, Size, Source, Trend};

/// How far a statement such as "no effect" or "roughly 50" may be off. The sources name no margin, so these are ours.
const SAME: f64 = 1.05;
const ROUGHLY: f64 = 0.1;
/// Blocks that every answer rests on at least.
const BLOCKS: &str = "trials.stop.min=12";

/// Every claim, in the order of the page.
pub fn claims() -> Vec<Claim> {
    [volley(), whaleconnect(), whip(), cache()].concat()
}

fn at(levels: &[(&str, &str)]) -> At {
    levels.iter().map(|&(factor, level)| (factor.to_owned(), level.to_owned())).collect()
}

fn ratio(metric: &str, factor: &str, from: &str, to: &str, levels: &[(&str, &str)]) -> Ratio {
    let owned = str::to_owned;
    Ratio { metric: owned(metric), factor: owned(factor), from: owned(from), to: owned(to), at: at(levels) }
}

fn run(study: &'static str, sets: &[&str]) -> Command {
    Command::Run { study, sets: sets.iter().chain([&BLOCKS]).map(|set| (*set).to_owned()).collect() }
}

const fn within(low: f64, high: f64) -> Range {
    Range { low, high }
}

const ABOVE_ONE: Range = within(1.0, f64::INFINITY);
const BELOW_ONE: Range = within(0.0, 1.0);
const UNCHANGED: Range = within(1.0 / SAME, SAME);

fn claim(source: Source, section: &'static str, id: &str, statement: &str, command: Command, look: Look) -> Claim {
    Claim { id: id.to_owned(), source, section, statement: statement.to_owned(), command, look, only_on: None }
}

fn untested(why: &'static str, needs: &'static str) -> Look {
    Look::Untested { why, needs }
}

fn volley() -> Vec<Claim> {
    const SERVERS: [&str; 5] = ["c-threaded", "go", "go-blocking", "rust", "rust-multiplex"];
    const CORES: &str = "cores=1,2,4,5,6,8,10,12,20,30,40";
    let new = |id: &str, statement: &str, command, look| {
        claim(Source::Volley, "Preliminary results", id, statement, command, look)
    };
    let servers = format!("server={}", SERVERS.join(","));
    let sweep = || run("volley", &[&servers, CORES, "clients=80", "trials.stop.max_time=4h"]);
    let mut all = Vec::new();
    for server in SERVERS {
        let series = || at(&[("server", server), ("clients", "80")]);
        let law = |parameter, range| Look::Law { factor: "cores", series: series(), parameter, range };
        all.push(new(
            &format!("volley-peak-{server}"),
            &format!("`{server}` with 80 clients is fastest at about 5 cores."),
            sweep(),
            law(Parameter::Peak, within(4.0, 6.0)),
        ));
        all.push(new(
            &format!("volley-coherency-{server}"),
            &format!("Keeping caches coherent costs `{server}` more with each further core (coherency above zero)."),
            sweep(),
            law(Parameter::Coherency, within(0.0, f64::INFINITY)),
        ));
        all.push(new(
            &format!("volley-drop-{server}"),
            &format!("`{server}` with 80 clients is slower on 40 cores than on 5."),
            sweep(),
            Look::Ratios {
                ratios: vec![ratio("throughput", "cores", "5", "40", &[("server", server), ("clients", "80")])],
                range: BELOW_ONE,
            },
        ));
    }
    all.extend([
        new(
            "volley-spin-lock",
            "About 80 % of the time is spent in `_raw_spin_lock`, called from `sendto`.",
            Command::None,
            untested("a lock of Linux 3.16 under 40 cores", "`--profile` on 40 cores with Linux 3.16"),
        ),
        new(
            "volley-slow-servers",
            "Servers that work for milliseconds per request scale nearly linearly over cores.",
            Command::None,
            untested(
                "no study varies the work per request together with cores",
                "a study of `quintain serve calibrate` with 1 ms of work over cores, on more than 8 CPUs",
            ),
        ),
        Claim {
            section: "Contributing servers",
            only_on: Some("the machine of the example session, which the source does not name"),
            ..new(
                "volley-one-client",
                "The example session with one client has a mean latency of 9.04 µs.",
                run("volley", &["server=c-threaded", "cores=1", "clients=1", "trials.stop.max_time=10m"]),
                Look::Value {
                    metric: "latency_mean",
                    at: at(&[("server", "c-threaded"), ("cores", "1"), ("clients", "1")]),
                    range: within(9_035.0, 9_045.0),
                },
            )
        },
        Claim {
            section: "Contributing servers",
            ..new(
                "volley-one-client-spread",
                "The example session with one client has a standard deviation of 1.25 µs between requests.",
                Command::None,
                untested(
                    "no metric is the standard deviation between requests",
                    "that metric, and the machine of the session",
                ),
            )
        },
    ]);
    all
}

fn whaleconnect() -> Vec<Claim> {
    const DESKTOP: &str = "AMD Ryzen 7 2700X";
    const LOCAL: &str = "threads=2,4,6,8,10,12";
    let new =
        |id: &str, statement: &str, command, look| claim(Source::WhaleConnect, "Results", id, statement, command, look);
    let threads = |from: &str, to: &str| ratio("throughput", "threads", from, to, &[("server", "quintain")]);
    let sweep = || run("http-threads", &[LOCAL, "trials.stop.max_time=45m"]);
    let pair =
        |from: &str, to: &str| run("http-threads", &[&format!("threads={from},{to}"), "trials.stop.max_time=15m"]);
    let mut all = Vec::new();
    // Five trials each: operating system, threads, mean and standard deviation, requests per second.
    for (system, table) in [
        ("Windows", [(4, 148_726, 9_319), (8, 172_144, 1_592)]),
        ("macOS", [(2, 121_794, 1_202), (4, 146_494, 2_382)]),
        ("Linux", [(4, 364_409, 15_646), (8, 480_115, 15_883)]),
    ] {
        let name = system.to_lowercase();
        for (threads, mean, deviation) in table {
            all.push(new(
                &format!("whaleconnect-remote-{name}-{threads}"),
                &format!(
                    "On {system} with {threads} threads and the load from a second machine: {mean} \
                     requests per second, standard deviation {deviation}."
                ),
                Command::Other("quintain load -t 12 -c 400 -d 5s http://HOST:PORT/"),
                untested(
                    "a single load on another machine is no run of a store",
                    "the source's machines, a gigabit switch, and a generator on a second host",
                ),
            ));
        }
        let [(few, ..), (many, ..)] = table;
        let (few, many) = (few.to_string(), many.to_string());
        let tested = if system == "Linux" { "" } else { " (tested on Linux)" };
        all.push(new(
            &format!("whaleconnect-scales-{name}"),
            &format!("Throughput rises from {few} to {many} threads on {system}{tested}."),
            pair(&few, &many),
            Look::Ratios { ratios: vec![threads(&few, &many)], range: ABOVE_ONE },
        ));
    }
    for (id, statement) in [
        ("macos", "The standard deviation of throughput rises from 2 to 4 threads on macOS."),
        ("linux", "The standard deviation of throughput rises from 4 to 8 threads on Linux."),
    ] {
        all.push(new(
            &format!("whaleconnect-spread-{id}"),
            statement,
            Command::None,
            untested(
                "no report compares standard deviations",
                "an interval for their ratio, and a generator on a second host",
            ),
        ));
    }
    // Ten trials each on one machine; the interval of the source's mean is Student's t of its own deviation, with
    // t(9, .975) = 2.262.
    for (threads, mean, deviation) in [
        (2, 107_345.0, 3_326.0),
        (4, 273_615.0, 8_849.0),
        (6, 409_329.0, 5_015.0),
        (8, 558_097.0, 4_679.0),
        (10, 621_257.0, 2_669.0),
        (12, 604_717.0, 3_374.0),
    ] {
        let half = 2.262 * deviation / f64::sqrt(10.0);
        let level = threads.to_string();
        all.push(Claim {
            only_on: Some(DESKTOP),
            ..new(
                &format!("whaleconnect-local-{threads}"),
                &format!(
                    "With {threads} threads and the load on the same machine: {mean} requests \
                     per second, standard deviation {deviation}."
                ),
                sweep(),
                Look::Value {
                    metric: "throughput",
                    at: at(&[("server", "quintain"), ("threads", &level)]),
                    range: within(mean - half, mean + half),
                },
            )
        });
    }
    let steps = [("2", "4"), ("4", "6"), ("6", "8"), ("8", "10")];
    all.extend([
        new(
            "whaleconnect-local-order",
            "On one machine each two further threads raise throughput, from 2 to 10.",
            sweep(),
            Look::Ratios { ratios: steps.map(|(from, to)| threads(from, to)).to_vec(), range: ABOVE_ONE },
        ),
        new(
            "whaleconnect-local-drop",
            "On one machine 12 threads are slower than 10.",
            sweep(),
            Look::Ratios { ratios: vec![threads("10", "12")], range: BELOW_ONE },
        ),
        new(
            "whaleconnect-local-slope",
            "On one machine 10 threads have 5.79 times the throughput of 2 (its means; 5.66 to 5.92 by \
             their deviations).",
            sweep(),
            Look::Ratios { ratios: vec![threads("2", "10")], range: within(5.66, 5.92) },
        ),
        new(
            "whaleconnect-local-peak",
            "On one machine throughput is highest at about 10 threads.",
            sweep(),
            Look::Law {
                factor: "threads",
                series: at(&[("server", "quintain")]),
                parameter: Parameter::Peak,
                range: within(9.0, 11.0),
            },
        ),
        new(
            "whaleconnect-remote-better-few",
            "With 4 threads the load from a second machine sees a higher throughput than the load on the same one.",
            Command::None,
            untested(
                "a study drives its load from the same machine",
                "a generator on a second host, in the blocks of one run",
            ),
        ),
        new(
            "whaleconnect-remote-worse-many",
            "With 8 threads the load from a second machine sees a lower throughput than the load on the same one.",
            Command::None,
            untested(
                "a study drives its load from the same machine",
                "a generator on a second host, in the blocks of one run",
            ),
        ),
    ]);
    all
}

fn whip() -> Vec<Claim> {
    const SECTION: &str = "Running with Docker Compose";
    let new = |id: &str, statement: &str, command, look| claim(Source::Whip, SECTION, id, statement, command, look);
    let long = || run("whip", &["ops=10000", "through=direct,adapter", "trials.stop.max_time=40m"]);
    let both = || run("whip", &["ops=1000,10000", "through=adapter", "trials.stop.max_time=40m"]);
    let mut all = Vec::new();
    for (case, name, bytes) in [("evernote", "Evernote", 75.0), ("chess", "Chess", 50.0), ("twitter", "Twitter", 50.0)]
    {
        let place = || at(&[("case", case), ("through", "adapter"), ("ops", "10000")]);
        let trend = |what, trend| Look::OverRequests { what, at: place(), trend };
        all.extend([
            new(
                &format!("whip-memory-{case}"),
                &format!("{name}: the resident set of the adapter levels off over requests."),
                long(),
                trend("proxy_rss", Trend::Flat),
            ),
            new(
                &format!("whip-store-{case}"),
                &format!("{name}: the store of the adapter grows linearly with requests."),
                long(),
                trend("proxy_store", Trend::Line),
            ),
            new(
                &format!("whip-latency-{case}"),
                &format!("{name}: the latency of the adapter does not grow over requests."),
                long(),
                trend("proxy_time", Trend::Flat),
            ),
            new(
                &format!("whip-bytes-{case}"),
                &format!("{name}: the adapter adds roughly {bytes} bytes per operation (taken as ±10 %)."),
                long(),
                Look::Value {
                    metric: "m1a_bytes_per_request",
                    at: place(),
                    range: within(bytes * (1.0 - ROUGHLY), bytes * (1.0 + ROUGHLY)),
                },
            ),
            new(
                &format!("whip-bytes-fixed-{case}"),
                &format!("{name}: the bytes per operation do not depend on the number of operations (within 5 %)."),
                both(),
                Look::Ratios {
                    ratios: vec![ratio(
                        "m1a_bytes_per_request",
                        "ops",
                        "1000",
                        "10000",
                        &[("case", case), ("through", "adapter")],
                    )],
                    range: UNCHANGED,
                },
            ),
            Claim {
                section: "Experimental Setup",
                ..new(
                    &format!("whip-adds-{case}"),
                    &format!("{name}: the adapter adds to the time of each request."),
                    long(),
                    Look::Ratios {
                        ratios: vec![ratio("latency_mean", "through", "direct", "adapter", &[("case", case)])],
                        range: ABOVE_ONE,
                    },
                )
            },
        ]);
    }
    let bytes =
        |from| ratio("m1a_bytes_per_request", "case", from, "evernote", &[("through", "adapter"), ("ops", "10000")]);
    all.extend([
        new(
            "whip-bytes-order",
            "Evernote adds more bytes per operation than Chess and Twitter.",
            long(),
            Look::Ratios { ratios: vec![bytes("chess"), bytes("twitter")], range: ABOVE_ONE },
        ),
        new(
            "whip-bytes-machine",
            "Of all figures, only the bytes per operation do not depend on the machine.",
            Command::None,
            untested("one machine has been measured", "the run of the bytes above on a second machine"),
        ),
        new(
            "whip-duration",
            "10,000 operations take 45 to 60 minutes.",
            Command::None,
            untested("the time of the original's containers and Python processes", "the original's containers"),
        ),
    ]);
    all
}

fn cache() -> Vec<Claim> {
    let workload = "Part 1: Workload generation";
    let baseline = "Part 2: Baseline latency and throughput";
    let sensitivity = "Part 3: Sensitivity testing";
    let driver = "Part 1: multi-threaded benchmark";
    let server = "Part 2: multithreaded server";
    let new =
        |section, id: &str, statement: &str, command, look| claim(Source::Cache, section, id, statement, command, look);
    let factors = || {
        let sets = ["maxmem=10MB,1MB", "evictor=lru,fifo,none", "trials.stop.max=12", "trials.stop.max_time=45m"];
        run("cache-sensitivity", &sets)
    };
    let sizes = || run("cache-interaction", &["trials.stop.max=12", "trials.stop.max_time=30m"]);
    let drawn = || Command::Other("quintain workload show course");
    let hits = || run("cache-baseline", &["fill=true,false", "trials.stop.max=12", "trials.stop.max_time=40m"]);
    const FAST: (&str, &str) = ("optimisation", "release");
    let slow = |metric| ratio(metric, "optimisation", "release", "unoptimised", &[]);
    let memory = |metric| ratio(metric, "maxmem", "10MB", "1MB", &[FAST]);
    let all_memory = |metric| ratio(metric, "maxmem", "10MB", "1MB", &[]);
    let evictor = |metric: &str, to: &str, levels: &[(&str, &str)]| ratio(metric, "evictor", "lru", to, levels);
    let values = |metric, maxmem| ratio(metric, "value_scale", "100", "400", &[("maxmem", maxmem)]);
    let ratios = |ratios: Vec<Ratio>, range| Look::Ratios { ratios, range };
    let mut all = vec![
        new(
            workload,
            "cache-key-size",
            "Keys have 28 bytes on average.",
            drawn(),
            Look::Drawn { size: Size::Key, range: within(27.5, 28.5) },
        ),
        new(
            workload,
            "cache-value-size",
            "Values have 200 bytes on average.",
            drawn(),
            Look::Drawn { size: Size::Value, range: within(199.5, 200.5) },
        ),
        new(
            workload,
            "cache-reuse",
            "The reuse of 0.96 is that of six hours in the paper on the workload ETC.",
            Command::None,
            untested("a figure of a paper, not of a measurement", "the paper"),
        ),
    ];
    for (fill, words) in [("true", "where misses are filled"), ("false", "where misses are not filled")] {
        all.push(new(
            workload,
            &format!("cache-hit-ratio-fill-{fill}"),
            &format!(
                "A memory limit of 10 MB and a reuse of 0.96 lead to a hit ratio of 0.80 over a million \
                 requests (tested {words}; the source does not tell)."
            ),
            hits(),
            Look::Value { metric: "hit_ratio", at: at(&[("fill", fill)]), range: within(0.795, 0.805) },
        ));
    }
    all.extend([
        new(
            baseline,
            "cache-variance",
            "A workload of a million requests lowers the variance of throughput.",
            Command::None,
            untested("no report compares variances", "an interval for their ratio"),
        ),
        new(
            baseline,
            "cache-histogram",
            "The histogram of latency falls exponentially.",
            Command::Other("quintain run cache-baseline"),
            untested("the report draws the distribution and fits none", "a test of fit"),
        ),
    ]);
    for (metric, words) in [("latency_p95", "p95 of the latency"), ("throughput", "throughput")] {
        let id = |name: &str| format!("cache-{name}-{}", metric.replace("latency_", ""));
        let worse = if metric == "throughput" { BELOW_ONE } else { ABOVE_ONE };
        all.extend([
            new(
                sensitivity,
                &id("optimisation"),
                &format!("Of the factors, optimisation changes {words} most."),
                factors(),
                Look::Larger {
                    ratio: slow(metric),
                    than: vec![all_memory(metric), evictor(metric, "fifo", &[]), evictor(metric, "none", &[])],
                },
            ),
            new(
                sensitivity,
                &id("evictor"),
                &format!("With 10 MB the eviction policy has no effect on {words} (within 5 %)."),
                factors(),
                ratios(["fifo", "none"].map(|to| evictor(metric, to, &[("maxmem", "10MB"), FAST])).to_vec(), UNCHANGED),
            ),
            new(
                sensitivity,
                &id("fifo"),
                &format!("FIFO has a worse {words} than LRU."),
                factors(),
                ratios(vec![evictor(metric, "fifo", &[FAST])], worse),
            ),
            new(
                sensitivity,
                &id("evictor-memory"),
                &format!(
                    "Memory limit and eviction policy may act on {words} together (tested: more from LRU to \
                     none with 1 MB)."
                ),
                factors(),
                Look::Larger {
                    ratio: evictor(metric, "none", &[("maxmem", "1MB"), FAST]),
                    than: vec![evictor(metric, "none", &[("maxmem", "10MB"), FAST])],
                },
            ),
            new(
                sensitivity,
                &id("memory"),
                &format!("1 MB has a slightly worse {words} than 10 MB (tested: worse)."),
                factors(),
                ratios(vec![memory(metric)], worse),
            ),
            new(
                sensitivity,
                &id("values-small"),
                &format!("With 1 MB the size of values hardly changes {words} (within 5 %)."),
                sizes(),
                ratios(vec![values(metric, "1MB")], UNCHANGED),
            ),
            new(
                sensitivity,
                &id("values-large"),
                &format!("The size of values changes {words} more with 10 MB than with 1 MB."),
                sizes(),
                Look::Larger { ratio: values(metric, "10MB"), than: vec![values(metric, "1MB")] },
            ),
        ]);
    }
    let client = |to| ratio("latency_mean", "threads", "1", to, &[("mode", "closed")]);
    let bears = |from| ratio("throughput", "threads", from, "4", &[("mode", "closed")]);
    let clients = || run("cache-clients", &["trials.stop.max_time=40m"]);
    let others = ["1", "2", "3", "5", "6", "7", "8"];
    let scaled = |to| ratio("throughput", "threads", "1", to, &[]);
    let threads = || run("cache-threads", &["trials.stop.max_time=12m"]);
    all.extend([
        new(
            sensitivity,
            "cache-uniform",
            "Throughput differs less between the conditions than p95 does (tested on optimisation, the largest).",
            factors(),
            Look::Larger { ratio: slow("latency_p95"), than: vec![slow("throughput")] },
        ),
        new(
            sensitivity,
            "cache-mac",
            "The Mac is slower than the Linux machine.",
            Command::None,
            untested(
                "runs of two machines share no blocks",
                "both machines, and macOS, which quintain does not measure",
            ),
        ),
        new(
            driver,
            "cache-latency-over-clients",
            "The mean latency hardly depends on the number of threads of the driver, 1 to 4 (within 5 %).",
            clients(),
            ratios(["2", "3", "4"].map(client).to_vec(), UNCHANGED),
        ),
        new(
            driver,
            "cache-most-clients",
            "Throughput is highest with four threads of the driver.",
            clients(),
            ratios(others.map(bears).to_vec(), ABOVE_ONE),
        ),
        Claim {
            only_on: Some("the course's machine with 8 hardware threads, which the source does not name"),
            ..new(
                driver,
                "cache-most",
                "The highest throughput without saturation is 20.1 requests per millisecond, with four threads of the \
                 driver.",
                clients(),
                Look::Value {
                    metric: "throughput",
                    at: at(&[("mode", "closed"), ("threads", "4")]),
                    range: within(20_050.0, 20_150.0),
                },
            )
        },
        new(
            server,
            "cache-threads",
            "Two to four threads of the server do not raise throughput (above one thread by 5 % at most).",
            threads(),
            ratios(["2", "3", "4"].map(scaled).to_vec(), within(0.0, SAME)),
        ),
        Claim {
            only_on: Some("the course's machine with 8 hardware threads, which the source does not name"),
            ..new(
                server,
                "cache-threads-limit",
                "Four threads of the server do not exceed 20 requests per millisecond.",
                threads(),
                Look::Value { metric: "throughput", at: at(&[("threads", "4")]), range: within(0.0, 20_000.0) },
            )
        },
        new(
            server,
            "cache-three-clients",
            "A server with several threads fails under more than three clients (tested: 50 connections on \
             four threads meet errors).",
            threads(),
            Look::Value { metric: "error_share", at: at(&[("threads", "4")]), range: within(0.0, f64::INFINITY) },
        ),
    ]);
    all
}
