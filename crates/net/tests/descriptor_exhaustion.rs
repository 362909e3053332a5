//! Tests of the behavior without free file descriptors. They have their own binary, since the limit is per process.

mod harness;

use harness::{CONFIG, OpenEpoll, OpenUring, Opener, address, has_uring, until};
use net::{Close, Config, Driver, Event};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the limit that allows `free` more descriptors. A new descriptor gets the lowest free number.
fn limit_for(free: usize) -> u64 {
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str().unwrap().parse::<u64>().unwrap();
    let listed: Vec<u64> = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| number(entry.unwrap())).collect();
    // One of the listed descriptors was that of the directory itself, which has been closed since.
    let is_open =
        |&number: &u64| listed.contains(&number) && std::fs::exists(format!("/proc/self/fd/{number}")).unwrap();
    (0..).filter(|number| !is_open(number)).nth(free).unwrap()
}

fn limit_descriptors(current: Option<u64>) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
}

/// The third connection waits in the kernel's queue until an earlier one closes.
fn accepting_waits_for_a_close<O: Opener>(open: &O) {
    let before = getrlimit(Resource::Nofile).current;
    let mut server = open.open(&CONFIG);
    let mut clients = open.open(&Config { connections: 3, ..CONFIG });
    let (_, at) = server.listen(&address(), 8).unwrap();
    for _ in 0..3 {
        clients.connect(&at).unwrap();
    }
    let mut stand = 0;
    until(&mut clients, |_, event| {
        assert!(matches!(event, Event::Connected(_)), "{event:?}");
        stand += 1;
        stand == 3
    });
    limit_descriptors(Some(limit_for(2)));
    let error = clients.connect(&at).unwrap_err();
    assert_eq!(error.to_string(), "all 3 connection slots are in use");
    let mut accepted = Vec::new();
    until(&mut server, |_, event| {
        let Event::Accepted(_, conn) = event else { panic!("{event:?}") };
        accepted.push(conn);
        accepted.len() == 2
    });
    for _ in 0..5 {
        server.turn(Some(server.now() + 1_000_000)).unwrap();
        assert!(server.next_event().is_none());
    }
    server.close(accepted[0], Close::Reset);
    let mut told = Vec::new();
    until(&mut server, |_, event| {
        told.push(event);
        told.len() == 2
    });
    assert!(matches!(told[0], Event::Closed(conn, _) if conn == accepted[0]), "{told:?}");
    assert!(matches!(told[1], Event::Accepted(..)), "{told:?}");
    limit_descriptors(before);
}

fn nothing_to_close_is_an_error<O: Opener>(open: &O) {
    let before = getrlimit(Resource::Nofile).current;
    let mut server = open.open(&CONFIG);
    let mut clients = open.open(&CONFIG);
    let (_, at) = server.listen(&address(), 8).unwrap();
    clients.connect(&at).unwrap();
    until(&mut clients, |_, event| matches!(event, Event::Connected(_)));
    limit_descriptors(Some(limit_for(0)));
    let error = (0..100).find_map(|_| {
        let result = server.turn(Some(server.now() + 10_000_000));
        assert!(server.next_event().is_none());
        result.err()
    });
    assert_eq!(error.expect("an error").raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
    limit_descriptors(before);
    until(&mut server, |_, event| matches!(event, Event::Accepted(..)));
}

#[test]
fn drivers_handle_descriptor_exhaustion() {
    accepting_waits_for_a_close(&OpenEpoll);
    nothing_to_close_is_an_error(&OpenEpoll);
    if has_uring() {
        accepting_waits_for_a_close(&OpenUring);
        nothing_to_close_is_an_error(&OpenUring);
    }
}
