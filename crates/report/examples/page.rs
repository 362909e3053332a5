//! Writes the page and figures of a simulated run, for review and for the browser test: `cargo run -p report --example
//! page -- volley page.html`.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(which), Some(path)) = (arguments.next(), arguments.next().map(PathBuf::from)) else {
        return Err("usage: page volley|sweep|threads|capacity|builds|through|cluster|one FILE.html".into());
    };
    let (mut run, mut records) = match which.as_str() {
        "sweep" => fixtures::sweep(),
        "threads" => fixtures::threads(),
        "capacity" => fixtures::capacity(),
        "builds" => fixtures::builds(),
        "through" => fixtures::through(),
        "cluster" => fixtures::cluster(),
        _ => fixtures::volley(),
    };
    if which == "one" {
        // A machine with two CPUs supports only one level of cores.
        let one = |level: Option<&study::Level>| level == Some(&study::Level::Integer(1));
        records.retain(|record| one(record.factors.get("cores")));
        for point in run.plan.points.iter_mut().filter(|point| !one(point.factors.get("cores"))) {
            point.unrunnable = Some("needs 3 CPUs, this machine has 2".to_owned());
        }
    }
    let findings = analysis::analyze(&run, &records);
    fs::write(&path, report::html(&findings)?)?;
    for (name, svg) in report::figure_svgs(&findings, report::Background::Light) {
        fs::write(path.with_file_name(format!("{which}-{name}.png")), report::figure_png(&name, &svg)?.bytes)?;
        fs::write(path.with_file_name(format!("{which}-{name}.svg")), svg)?;
    }
    Ok(())
}
