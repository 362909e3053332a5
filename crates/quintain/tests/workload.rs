//! `quintain workload show` from the user's point of view.

use crate::common::Folder;

fn show(args: &[&str]) -> crate::common::Ran {
    Folder::new().quintain(&[&["workload", "show"], args].concat())
}

#[test]
fn samples_are_shown_with_their_distribution() {
    insta::assert_snapshot!("workload_etc", show(&["-n", "200000"]).expect(0).out);
    insta::assert_snapshot!(
        "workload_course_no_fill",
        show(&["--preset", "course-no-fill", "-n", "200000"]).expect(0).out
    );
}

#[test]
fn same_seed_gives_the_same_json() {
    let read =
        |seed: &str| show(&["--preset", "twitter-c12", "-n", "20000", "--seed", seed, "--json"]).expect(0).json();
    let (one, again, other) = (read("1"), read("1"), read("2"));
    assert_eq!(one, again);
    assert_ne!(one, other);
    assert_eq!(
        (&one["operations"], &one["version"], &one["lengths"][0]["drawn"]["p50"]),
        (&20_000.into(), &1.into(), &44.into())
    );
    assert!(one["fits"].as_array().unwrap().iter().all(|fit| fit["p"].as_f64().unwrap() > 1e-3), "{one}");
}

#[test]
fn a_study_and_its_figure() {
    let folder = Folder::new();
    folder.write("w.toml", "[load.workload]\npreset = \"ycsb-b\"\nkeys = { exponent = 0.7, count = 5000 }\nvalues.size = { law = \"gamma\", shape = 1, scale = 200 }\n");
    folder.quintain(&["workload", "show", "w.toml", "-n", "50000", "--svg", "w.svg", "--html", "w.html"]).expect(0);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (svg, html) = (read("w.svg"), read("w.html"));
    assert!(svg.starts_with("<svg") && svg.contains("Popularity") && svg.contains("Value lengths"));
    assert!(html.contains("</svg>") && html.contains("follows its distribution"));
}

#[test]
fn reports_errors_with_their_location() {
    let folder = Folder::new();
    folder.write(
        "w.toml",
        "[load.workload]\npreset = \"course\"\noperations = { get = -1 }\nkeys = { popularity = \"zipf\" }\n",
    );
    insta::assert_snapshot!("workload_mistakes", folder.quintain(&["workload", "show", "w.toml"]).expect(2).err);
    insta::assert_snapshot!("workload_preset", show(&["--preset", "etc-2021"]).expect(2).err);
    insta::assert_snapshot!("workload_scans", show(&["--preset", "ycsb-e"]).expect(2).err);
}
