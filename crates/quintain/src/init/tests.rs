//! Tests of the studies that `quintain init` writes and of its questions.

use study::Profile;

use super::*;

fn args(flags: &[(&str, &str)]) -> InitArgs {
    let mut args = InitArgs::default();
    for (flag, value) in flags {
        let value = (*value).to_owned();
        match *flag {
            "kind" => args.kind = InitKind::from_str(&value, false).ok(),
            "command" => args.command = Some(value),
            "base" => args.base = Some(value),
            "head" => args.head = Some(value),
            "proxy" => args.proxy = Some(value),
            "protocol" => args.protocol = Some(value),
            "port" => args.port = crate::cli::port(&value).ok(),
            "path" => args.path = Some(value),
            "objective" => args.objective = Some(value),
            other => panic!("{other}"),
        }
    }
    args
}

fn drafted(flags: &[(&str, &str)], cpus: usize) -> Draft {
    let mut mistakes = Mistakes::default();
    let draft = draft(args(flags), cpus, &mut mistakes);
    if let Err(problem) = mistakes.end() {
        panic!("{flags:?}: {problem}");
    }
    draft
}

#[test]
fn every_draft_makes_a_valid_study() {
    let kinds: [&[(&str, &str)]; 5] = [
        &[("command", "./my \"server\" -p {port}")],
        &[("base", "./old -p {port}"), ("head", "'./ne w' -p {port}")],
        &[("command", "./server -p {port}"), ("proxy", "/opt/Hä-Proxy_2 {port} {next_port}")],
        &[("kind", "cache"), ("command", "memcached -p {port} -U 0"), ("protocol", "memcached")],
        &[("kind", "capacity"), ("command", "./server {port}"), ("objective", "p99 < 2ms and errors < 1%")],
    ];
    for protocol in Protocol::with_scheme().map(Protocol::name) {
        for kind in kinds {
            for (port, cpus) in [(None, 2), (Some("8080"), 1)] {
                let is_of_caches = kind.contains(&("kind", "cache"));
                if is_of_caches && !matches!(super::protocol(protocol, &mut Mistakes::default()), Protocol::Cache(_)) {
                    continue;
                }
                let mut flags = kind.to_vec();
                flags.retain(|(flag, _)| *flag != "protocol");
                flags.push(("protocol", protocol));
                flags.extend(port.map(|port| ("port", port)));
                let text = study_text::of(&drafted(&flags, cpus), "mine");
                for profile in Profile::ALL {
                    let options = ExpandOptions {
                        name: "mine".into(),
                        seed: 1,
                        profile,
                        machine_cpus: cpus as u32,
                        generators_apart: false,
                        sets: Vec::new(),
                    };
                    let plan = study::parse(&text).and_then(|study| study::expand(&study, &options));
                    let plan = plan.unwrap_or_else(|found| panic!("{flags:?} {profile:?}: {found:?}\n{text}"));
                    assert!(plan.points.iter().all(|point| point.unrunnable.is_none()), "{flags:?}\n{text}");
                    assert!(
                        profile == Profile::Quick || plan.estimate().seconds_max < 5.0 * 60.0,
                        "{:?}",
                        plan.estimate()
                    );
                }
            }
        }
    }
}

#[test]
fn the_text_of_two_versions() {
    let draft = drafted(&[("base", "./old -p {port}"), ("head", "./new -p {port}")], 2);
    insta::assert_snapshot!(study_text::of(&draft, "versions"));
}

#[test]
fn missing_flags_follow_from_the_others() {
    for (flags, kind, protocol) in [
        (&[("command", "x {port}")][..], InitKind::One, "http"),
        (&[("command", "x {port}"), ("protocol", "redis")], InitKind::Cache, "redis"),
        (&[("command", "x {port}"), ("kind", "cache")], InitKind::Cache, "memcached"),
        (&[("base", "x {port}"), ("head", "y {port}")], InitKind::Versions, "http"),
        (&[("command", "x {port}"), ("proxy", "p {port} {next_port}")], InitKind::Proxy, "http"),
        (&[("command", "x {port}"), ("objective", "p50 < 1ms")], InitKind::Capacity, "http"),
    ] {
        let draft = drafted(flags, 2);
        assert_eq!((draft.kind, draft.protocol.name()), (kind, protocol), "{flags:?}");
    }
}

#[test]
fn question_names_the_interpreted_script() {
    for (command, named) in [
        ("perl a/server.pl {port}", "How fast is server.pl,"),
        ("./server -p {port}", "How fast is server,"),
        ("go run . {port}", "How fast is go,"),
    ] {
        assert!(study_text::of(&drafted(&[("command", command)], 2), "x").contains(named), "{command}");
    }
}

#[test]
fn answers_replace_flags() {
    let mut asked = InitArgs::default();
    ask_in(&mut asked, &mut "tow\nversions\n\n./old\n./new\n0\n8080\n\n/health\n".as_bytes()).unwrap();
    assert_eq!(
        (asked.kind, asked.base.as_deref(), asked.head.as_deref(), asked.path.as_deref()),
        (Some(InitKind::Versions), Some("./old"), Some("./new"), Some("/health"))
    );
    assert_eq!((asked.port, asked.protocol.as_deref()), (Some(8080), Some("http")));
    let ended = ask_in(&mut InitArgs::default(), &mut "one\n".as_bytes()).unwrap_err();
    assert_eq!(ended.exit, Exit::Usage);
    let mut given = args(&[("command", "x")]);
    ask_in(&mut given, &mut "".as_bytes()).unwrap();
    assert_eq!(given.protocol, None, "with a command there are no questions");
}
