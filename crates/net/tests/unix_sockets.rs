//! Tests Unix sockets on both backends: paths that are created, removed, in use or left behind.

use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::harness::{CONFIG, OnUnix, OpenEpoll, OpenUring, Opener, Pair, has_uring, until};
use net::{Address, CloseReason, Config, Driver, Event};

macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod epoll { $(#[test] fn $name() { super::$name(&super::OnUnix::new(super::OpenEpoll)) })* }
        mod uring { $(#[test] fn $name() {
            if super::has_uring() { super::$name(&super::OnUnix::new(super::OpenUring)) }
        })* }
    };
}

suite!(
    a_path_goes_with_its_listener,
    a_path_goes_with_its_driver,
    a_path_that_is_somebody_else_s_stays,
    a_path_that_is_taken_says_by_what,
    what_cannot_be_a_path_is_said,
    a_full_queue_is_told,
    an_address_can_be_used_again,
);

fn listen<O: Opener>(open: &O, path: &Path) -> String {
    let mut driver = open.open(&CONFIG);
    driver.listen(&Address::Unix(path.to_owned()), 8).map_or_else(
        |error| format!("{:?}: {error}", error.kind()).replace(path.to_str().unwrap(), "PATH"),
        |(_, at)| {
            assert_eq!(at, Address::Unix(path.to_owned()));
            "ok".to_owned()
        },
    )
}

fn a_path_goes_with_its_listener<O: Opener>(open: &OnUnix<O>) {
    let path = open.path();
    let mut driver = open.open(&CONFIG);
    let (listener, at) = driver.listen(&Address::Unix(path.clone()), 8).unwrap();
    let mut pair = Pair::connect(driver, &at); // In io_uring, an accept is pending from now on.
    assert!(path.exists());
    pair.driver.stop_listening(listener);
    assert!(!path.exists());
    pair.driver.stop_listening(listener);
    pair.driver.send(pair.client, b"still").unwrap();
    assert_eq!(pair.receive(pair.server, 5), b"still");
}

fn a_path_goes_with_its_driver<O: Opener>(open: &OnUnix<O>) {
    for turned in [false, true] {
        let path = open.path();
        let mut driver = open.open(&CONFIG);
        driver.listen(&Address::Unix(path.clone()), 8).unwrap();
        if turned {
            driver.turn(Some(0)).unwrap();
        }
        assert!(path.exists());
        drop(driver);
        assert!(!path.exists());
    }
}

fn a_path_that_is_somebody_else_s_stays<O: Opener>(open: &OnUnix<O>) {
    let path = open.path();
    let mut driver = open.open(&CONFIG);
    let (listener, _) = driver.listen(&Address::Unix(path.clone()), 8).unwrap();
    std::fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    driver.stop_listening(listener);
    drop(driver);
    assert!(path.exists());
    drop(other);
}

fn a_path_that_is_taken_says_by_what<O: Opener>(open: &OnUnix<O>) {
    let path = open.path();
    let other = UnixListener::bind(&path).unwrap();
    assert_eq!(listen(open, &path), "AddrInUse: another server is listening on `PATH`");
    drop(other);
    let left = "AddrInUse: `PATH` was left behind by a server that has exited: remove it first (`rm PATH`)";
    assert_eq!(listen(open, &path), left);
    assert!(path.exists(), "it is not ours to remove");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(listen(open, &path), "ok");
    std::fs::write(&path, "").unwrap();
    assert_eq!(listen(open, &path), "AddrInUse: `PATH` already exists and is not a socket");
}

fn what_cannot_be_a_path_is_said<O: Opener>(open: &OnUnix<O>) {
    let long = open.path().join("x".repeat(100));
    assert!(listen(open, &long).starts_with(
        "InvalidInput: the path of a Unix socket is limited to 107 bytes, this one has \
                                         "
    ));
    let error = open.open(&CONFIG).connect(&Address::Unix(long)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let nowhere = open.path().join("no/such/folder.sock");
    assert!(listen(open, &nowhere).starts_with("NotFound: "));
    let file = open.path();
    std::fs::write(&file, "").unwrap();
    let [missing, refused] = [CloseReason::NoSuchFile, CloseReason::Refused];
    for (path, expected) in [(open.path(), missing), (nowhere, missing), (file, refused)] {
        let mut driver = open.open(&CONFIG);
        let conn = driver.connect(&Address::Unix(path)).unwrap();
        until(&mut driver, |_, event| {
            assert!(matches!(event, Event::Closed(c, reason) if c == conn && reason == expected), "{event:?}");
            true
        });
    }
}

fn a_full_queue_is_told<O: Opener>(open: &OnUnix<O>) {
    let mut server = open.open(&CONFIG);
    let mut clients = open.open(&CONFIG);
    let (_, at) = server.listen(&open.address(), 1).unwrap();
    for _ in 0..2 {
        clients.connect(&at).unwrap();
        until(&mut clients, |_, event| matches!(event, Event::Connected(_)));
    }
    let third = clients.connect(&at).unwrap();
    until(&mut clients, |_, event| {
        assert!(matches!(event, Event::Closed(c, CloseReason::QueueFull) if c == third), "{event:?}");
        true
    });
    until(&mut server, |_, event| matches!(event, Event::Accepted(..)));
    clients.connect(&at).unwrap();
    until(&mut clients, |_, event| matches!(event, Event::Connected(_)));
}

fn an_address_can_be_used_again<O: Opener>(open: &OnUnix<O>) {
    let address = open.address();
    for _ in 0..3 {
        let mut driver = open.open(&Config { connections: 2, ..CONFIG });
        let (_, at) = driver.listen(&address, 8).unwrap();
        Pair::connect(driver, &at);
    }
}
