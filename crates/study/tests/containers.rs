//! Tests of studies with containers and companions.

use study::plan::{ContainerPlan, EngineChoice};
use study::{ExpandOptions, Plan, Profile, expand, parse};

const STUDY: &str = r#"
question = "What does a container cost?"
[subject]
command = "server -p {port}"
environment = { CACHE = "127.0.0.1:{db_port}" }
[subject.variants.container]
image = "localhost/mine:{tag}"
command = "-p {port} -d {db_port}"
engine = "podman"
options = "--memory '1 g'"
[companion.db]
command = "memcached -p {port}"
cpus = 2
[companion.api]
image = "api"
publish = 8080
fresh = false
environment = { LISTEN = "{port}" }
[load]
protocol = "http"
clients = 10
stop = "1s"
[factors]
runs_as = ["process", "container"]
tag = ["a", "b"]
"#;

fn plan(machine_cpus: u32) -> Plan {
    let study = parse(STUDY).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let options = ExpandOptions {
        name: "test".to_owned(),
        seed: 1,
        profile: Profile::Default,
        machine_cpus,
        generators_apart: false,
        sets: Vec::new(),
    };
    expand(&study, &options).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

fn mistakes(replacements: &[(&str, &str)]) -> String {
    let mut text = STUDY.to_owned();
    for (old, new) in replacements {
        assert!(text.contains(old), "{old}");
        text = text.replacen(old, new, 1);
    }
    let hint = |hint: &Option<String>| hint.as_ref().map(|hint| format!("\n  {hint}")).unwrap_or_default();
    let told = parse(&text).expect_err("the study has errors");
    told.iter().map(|told| format!("{told}{}", hint(&told.hint))).collect::<Vec<_>>().join("\n")
}

#[test]
fn variant_runs_in_a_container() {
    let plan = plan(8);
    let [process, _, container, other] = plan.points.as_slice() else { panic!("{} points", plan.points.len()) };
    assert_eq!(process.subject.process.container, None);
    let expected = ContainerPlan {
        image: "localhost/mine:a".to_owned(),
        engine: EngineChoice::Podman,
        publish: None,
        options: "--memory '1 g'".to_owned(),
    };
    assert_eq!(container.subject.process.container, Some(expected));
    assert_eq!(container.subject.process.command, "-p {port} -d {db_port}");
    assert_eq!(
        other.subject.process.container.as_ref().map(|container| container.image.as_str()),
        Some("localhost/mine:b")
    );
}

#[test]
fn companions_have_their_own_cpus() {
    let large = plan(8);
    let point = &large.points[0];
    let names = point.companions.iter().map(|one| (one.name.as_str(), one.cpus, one.fresh)).collect::<Vec<_>>();
    assert_eq!(names, [("api", 1, false), ("db", 2, true)]);
    assert_eq!((point.companion_cpus, point.subject.cpus, &point.unrunnable), (3, 1, &None));
    assert_eq!(point.companions[0].process.container.as_ref().and_then(|container| container.publish), Some(8080));
    assert_eq!(point.companions[0].process.command, "");
    assert_eq!(point.subject.process.environment["CACHE"], "127.0.0.1:{db_port}");
    assert!(plan(4).points[0].unrunnable.is_some(), "server, generator and three more are five");
}

#[test]
fn reports_invalid_images_and_options_together() {
    insta::assert_snapshot!(mistakes(&[
        ("image = \"localhost/mine:{tag}\"", "image = \"My Image {tag}\""),
        ("engine = \"podman\"", "engine = \"podmann\""),
        ("--memory '1 g'", "--network=none -p 80:80 -v /a:/b"),
        ("publish = 8080", "publish = 80800"),
        ("command = \"memcached -p {port}\"", "command = \"memcached\"\noptions = \"--rm\""),
    ]));
}

#[test]
fn container_needs_an_image_and_a_port() {
    insta::assert_snapshot!(mistakes(&[
        ("image = \"localhost/mine:{tag}\"\n", ""),
        ("publish = 8080", "cpus = 0"),
        ("[companion.db]", "[companion.subject]"),
        ("cpus = 2", "cpu = 2"),
        ("clients = 10", "clients = \"{db_port}\""),
    ]));
}
