//! Tests of the page and its figures, on example runs and on impossible findings.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use stats::Rng;
use study::plan::{Figure, FigureKind, Level};
use study::record::{Finding, FindingState, IdlePolicy};

use super::{PAGE_LIMIT, figure_svgs, html};
use crate::figures::{self, Detail};
use crate::panel::Scale;
use crate::panel::Shape;
use crate::panel::style::Background;
use analysis::findings::{
    Estimate, FINDINGS_VERSION, Factor, Findings, Mark, MetricFinding, Row, RowState, TrialFinding, Warning,
};
use fixtures as example;

pub(crate) fn nothing() -> Findings {
    Findings {
        version: FINDINGS_VERSION,
        profile: "default".to_owned(),
        level: 0.95,
        metric: "latency_mean".to_owned(),
        ..Findings::default()
    }
}

fn volley() -> Findings {
    static VOLLEY: LazyLock<Findings> = LazyLock::new(|| {
        let (run, records) = example::volley();
        analysis::analyze(&run, &records)
    });
    VOLLEY.clone()
}

#[test]
fn machines_and_generators_of_a_cluster() {
    let (run, records) = example::cluster();
    let page = html(&analysis::analyze(&run, &records)).unwrap();
    for part in ["cluster: s1 subject (32 CPUs)", "Generators, median over trials", "<summary>Machine l3</summary>"] {
        assert!(page.contains(part), "{part}");
    }
    let page = html(&volley()).unwrap();
    for part in ["cluster: ", "Generators, median", "network-bound", "<summary>Machine "] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn an_interaction_joins_levels_with_units() {
    let (run, records) = example::builds();
    let findings = analysis::analyze(&run, &records);
    let drawings = figures::figures(&findings, Detail::FULL);
    let words = &drawings[0];
    assert_eq!(
        (words.name.as_str(), words.title.as_str()),
        ("1-interaction-throughput", "Throughput over maxmem, by build")
    );
    assert_eq!(words.panels.len(), 2, "one for each number of clients");
    for panel in &words.panels {
        assert!(matches!(panel.x.scale, Scale::Linear { .. } | Scale::Log { .. }), "{:?}", panel.x);
        assert!(!matches!(panel.y.scale, Scale::Slots { .. }));
        for layer in &panel.layers {
            let Shape::Marks { marks, joined: true } = &layer.shape else { panic!("{layer:?}") };
            assert!(marks.len() == 2 && marks.iter().all(|mark| mark.bar.is_some()), "{marks:?}");
        }
    }
    assert_eq!(words.keys.iter().map(|key| key.label.as_str()).collect::<Vec<_>>(), ["O0", "O2"]);
    assert!(matches!(drawings[1].panels[0].x.scale, Scale::Linear { .. } | Scale::Log { .. }), "clients are numbers");
    let page = html(&findings).unwrap();
    assert!(page.contains("<h2 id=\"effects\">") && page.contains(&findings.effects[0].sentences[0]));
}

fn figure(kind: FigureKind, y: &str) -> Figure {
    Figure {
        kind,
        x: None,
        y: Some(y.to_owned()),
        y_more: Vec::new(),
        series: None,
        facet: None,
        interval: 0.95,
        title: None,
        policies: Vec::new(),
        x_unit_bytes: None,
    }
}

fn every_kind() -> Vec<Figure> {
    use FigureKind::{Ecdf, Line, Quantiles, Scatter, Timeline};
    [Line, Scatter, Ecdf, Quantiles, Timeline].map(|kind| figure(kind, "throughput")).to_vec()
}

/// All metrics of one run, except the metrics of proxies, which caches do not have.
fn known() -> impl Iterator<Item = &'static study::Metric> {
    let of_proxies = |name: &str| name.starts_with("proxy_");
    study::METRICS.iter().take_while(move |metric| !of_proxies(metric.name))
}

fn made(servers: usize, cores: i64, clients: i64, draw: &mut dyn FnMut() -> f64) -> Findings {
    let mut f = nothing();
    let numbers = |n: i64| (1..=n).map(Level::Integer).collect::<Vec<_>>();
    let names: Vec<Level> = (0..servers).map(|server| Level::Text(format!("server-{server}"))).collect();
    let factor =
        |name: &str, levels: &[Level], numeric| Factor { name: name.to_owned(), levels: levels.to_vec(), numeric };
    f.factors = vec![
        factor("server", &names, false),
        factor("cores", &numbers(cores), true),
        factor("clients", &numbers(clients), true),
    ];
    let template = volley().rows.into_iter().find(|row| row.latency.is_some()).expect("the example measures something");
    f.metrics = known().collect();
    f.metric = "throughput".to_owned();
    f.figures = every_kind();
    for server in &names {
        for cores in numbers(cores) {
            for clients in numbers(clients) {
                let point = f.rows.len();
                let mut row =
                    Row { point, label: format!("{server}, cores {cores}, clients {clients}"), ..template.clone() };
                row.factors = BTreeMap::from(
                    [("server", server.clone()), ("cores", cores.clone()), ("clients", clients)]
                        .map(|(k, v)| (k.to_owned(), v)),
                );
                for metric in known() {
                    let estimate = Estimate { point: draw(), low: draw(), high: draw(), level: 0.95, n: 8 };
                    let finding = MetricFinding {
                        at_least: false,
                        estimate: Some(estimate),
                        mean: Some(draw()),
                        stddev: Some(draw()),
                        s_between: Some(draw()),
                        s_within: Some(draw()),
                        best_trial_s: Some(draw()),
                        target_met: Some(false),
                        note: None,
                    };
                    row.metrics.insert(metric.name.to_owned(), finding);
                }
                for trial in &mut row.trials {
                    trial.values.insert("throughput", draw());
                    trial.order = (trial.order * 7919 + point as u32) % 4000;
                }
                if point % 7 == 3 {
                    row.marks = vec![Mark::GeneratorBound];
                }
                f.rows.push(row);
            }
        }
    }
    f
}

#[test]
#[ignore = "slow: a page of 800 rows"]
fn pages_of_any_study_list_their_omissions() {
    let mut rng = Rng::new(3);
    let mut f = made(40, 5, 4, &mut || 1e3 + 1e3 * rng.unit_f64());
    let template = f.rows[0].trials[0].clone();
    for row in &mut f.rows {
        row.trials = (0..30)
            .map(|block| TrialFinding { block, order: block * 800 + row.point as u32, ..template.clone() })
            .collect();
    }
    let page = html(&f).unwrap();
    assert_sound(&page);
    assert!(page.contains("Left out of this page for its size: "), "some figure");
    assert!(page.contains("server-0, cores 1, clients 1"), "the first rows");

    let detail = |row: usize| format!("{row}: {}", "a long remark ".repeat(200));
    let details = (0..1_000).map(detail).collect();
    f.warnings = vec![Warning { details, ..Warning::new(study::WarningKind::Other, "remarks", 0) }];
    let page = html(&f).unwrap();
    assert_sound(&page);
    assert!(page.contains(" more, left out of this page for its size; "), "some rows");
}

fn assert_sound(page: &str) {
    assert!(page.len() < PAGE_LIMIT, "{} bytes", page.len());
    for forbidden in [
        "NaN",
        "inf ",
        "inf,",
        "\"inf",
        "-inf",
        "src=",
        "@import",
        "url(",
        "http://",
        "https://",
        "<link rel=\"stylesheet",
    ] {
        let found = page.find(forbidden).map(|at| {
            let from = (0..at.saturating_sub(60)).rev().find(|i| page.is_char_boundary(*i)).unwrap_or(0);
            let to = (at + 60..=page.len()).find(|i| page.is_char_boundary(*i)).unwrap_or(page.len());
            &page[from..to]
        });
        assert_eq!(found, None, "`{forbidden}`");
    }
}

fn assert_in_bounds(f: &Findings) {
    for drawing in figures::figures(f, Detail::FULL) {
        for panel in drawing.panels.iter().flat_map(|panel| panel.all()) {
            let lying = matches!(panel.y.scale, Scale::Slots { .. });
            let within = |scale: &Scale, value: f64| {
                let place = scale.place(value).unwrap_or_else(|| panic!("{}: {value} has no place", drawing.name));
                assert!((-1e-6..=1.0 + 1e-6).contains(&place), "{}: {value} at {place} of {scale:?}", drawing.name);
            };
            for layer in &panel.layers {
                match &layer.shape {
                    Shape::Rule(value) => within(&panel.y.scale, *value),
                    Shape::Curve(points)
                    | Shape::Fit(points)
                    | Shape::Simulated(points)
                    | Shape::Plain { points, .. }
                    | Shape::Dust { points, .. } => points.iter().for_each(|(x, y)| {
                        within(&panel.x.scale, *x);
                        within(&panel.y.scale, *y);
                    }),
                    Shape::Heat(cells) => cells.iter().for_each(|cell| {
                        [cell.x.0, cell.x.1].iter().for_each(|x| within(&panel.x.scale, *x));
                        [cell.y.0, cell.y.1].iter().for_each(|y| within(&panel.y.scale, *y));
                    }),
                    Shape::Band(points) => points.iter().for_each(|(x, low, high)| {
                        within(&panel.x.scale, *x);
                        within(&panel.y.scale, *low);
                        within(&panel.y.scale, *high);
                    }),
                    Shape::Marks { marks, .. } => marks.iter().for_each(|mark| {
                        within(&panel.x.scale, mark.x);
                        within(&panel.y.scale, mark.y);
                        let along = if lying { &panel.x.scale } else { &panel.y.scale };
                        for end in mark.bar.into_iter().flat_map(|(low, high)| [low, high]) {
                            within(along, end);
                        }
                    }),
                }
            }
        }
    }
}

#[test]
fn example_page_has_answer_and_tables() {
    let f = volley();
    let page = html(&f).unwrap();
    assert_sound(&page);
    assert_in_bounds(&f);
    let needed = [
        "id=\"figures\"",
        "id=\"results\"",
        "id=\"warnings\"",
        "id=\"machine\"",
        "id=\"method\"",
        "id=\"reproduce\"",
        "generator-bound",
        "signal 11",
        "needs 4096 open files",
        "does not measure the server alone",
        "± half",
    ];
    for text in needed {
        assert!(page.contains(text), "`{text}`");
    }
    assert!(page.contains(&format!("Seed {} reproduces", f.seed)));
    for row in &f.rows {
        for warning in &row.warnings {
            let says = |text: &String| text.contains(&warning.text);
            let told = f.warnings.iter().any(|line| says(&line.text) || line.details.iter().any(says));
            assert!(told, "`{}` is on no list of the page", warning.text);
        }
    }
    assert!(!page.contains("class=\"banner\""));
    let quick = html(&Findings { quick: true, ..f }).unwrap();
    assert!(quick.contains("class=\"banner\"") && quick.contains("no stated confidence"));
}

#[test]
fn every_measured_point_has_its_marker_with_its_bar() {
    let f = volley();
    for drawing in figures::figures(&f, Detail::FULL).iter().filter(|drawing| drawing.name.contains("-line-")) {
        let layers = drawing.panels.iter().flat_map(|panel| &panel.layers);
        let marks = layers
            .filter_map(|layer| if let Shape::Marks { marks, .. } = &layer.shape { Some(marks) } else { None })
            .flatten();
        let marks: Vec<_> = marks.collect();
        assert_eq!(marks.len(), f.rows.iter().filter(|row| row.n > 0).count(), "{}", drawing.name);
        assert!(marks.iter().all(|mark| mark.bar.is_some_and(|(low, high)| low < mark.y.max(mark.x) && high > low)));
        assert_eq!(
            marks.iter().filter(|mark| mark.hollow).count(),
            f.rows.iter().filter(|row| row.n > 0 && row.is_marked()).count()
        );
        assert_eq!(drawing.hollow, "generator-bound");
        assert!(drawing.notes.iter().any(|note| note.contains("needs 4096 open files")), "{:?}", drawing.notes);
    }
}

#[test]
fn a_figure_has_the_level_that_it_asks_for() {
    let mut f = volley();
    let wanted = |interval| Figure { interval, ..figure(FigureKind::Line, "latency_mean") };
    f.figures = vec![wanted(0.95), wanted(0.99)];
    let drawings = figures::figures(&f, Detail::FULL);
    let width = |drawing: &figures::Drawing| {
        let layer = &drawing.panels[0].layers[0];
        let Shape::Marks { marks, .. } = &layer.shape else { panic!("{layer:?}") };
        marks[0].bar.map(|(low, high)| high - low).unwrap()
    };
    // The ratio of Student's t with 7 degrees of freedom at 99 % and 95 % in printed tables: 3.4995 / 2.3646.
    assert!((width(&drawings[1]) / width(&drawings[0]) - 1.4798).abs() < 1e-3);
    assert!(drawings[1].caption.contains("99 % intervals"));
}

#[test]
fn idle_policies_are_separate_series() {
    let mut f = volley();
    let spun: Vec<Row> = f.rows.iter().filter(|row| row.n > 0).cloned().collect();
    f.rows.extend(spun.into_iter().map(|row| Row { idle: Some(IdlePolicy::Spin), ..row }));
    f.figures = every_kind();
    f.probes = None;
    let drawings = figures::figures(&f, Detail::FULL);
    for drawing in drawings.iter().filter(|drawing| !drawing.keys.is_empty()) {
        let labels: Vec<&str> = drawing.keys.iter().map(|key| key.label.as_str()).collect();
        assert_eq!(labels.len(), 6, "{}", drawing.name);
        assert_eq!(labels[..2], ["c-epoll, idle machine", "c-epoll, idle spin"], "{}", drawing.name);
    }
    assert!(html(&f).unwrap().contains("both policies, as separate series"));
}

#[test]
fn draws_fits_through_their_points() {
    let (run, records) = example::sweep();
    let f = analysis::analyze(&run, &records);
    assert_sound(&html(&f).unwrap());
    assert_in_bounds(&f);
    let drawings = figures::figures(&f, Detail::FULL);
    let line = drawings.iter().find(|drawing| drawing.name.contains("line-throughput")).unwrap();
    let fits =
        line.panels[0].layers.iter().filter(|layer| matches!(&layer.shape, Shape::Fit(points) if points.len() > 30));
    assert_eq!(fits.count(), f.scalability.iter().filter(|found| found.fit.is_some()).count());
    assert!(line.caption.contains("Universal Scalability Law"));
}

#[test]
fn draws_trials_with_fit_and_hollow_generator_bound_ones() {
    let (run, records) = example::threads();
    let f = analysis::analyze(&run, &records);
    let page = html(&f).unwrap();
    assert_sound(&page);
    assert_in_bounds(&f);
    for text in [
        "Valid responses per second",
        "sample standard deviation, k/s",
        "24 of 40",
        "503 to GET /",
        "12 with status 503",
        "http, GET /",
    ] {
        assert!(page.contains(text), "`{text}`");
    }
    let drawings = figures::figures(&f, Detail::FULL);
    let scatter = drawings.iter().find(|drawing| drawing.name.contains("scatter")).unwrap();
    assert!(
        scatter.caption.ends_with("Dotted: the fitted Universal Scalability Law; shaded: its interval."),
        "{}",
        scatter.caption
    );
    let shapes = scatter.panels[0].layers.iter().map(|layer| &layer.shape).collect::<Vec<_>>();
    let [Shape::Band(band), Shape::Fit(line), Shape::Marks { marks, .. }] = shapes.as_slice() else {
        panic!("{shapes:?}")
    };
    assert_eq!((band.len(), line.len()), (41, 41));
    assert!(band.iter().zip(line).all(|((_, low, high), (_, at))| low <= at && at <= high));
    assert_eq!(marks.len(), 64, "a marker a trial");
    assert_eq!((marks.iter().filter(|mark| mark.hollow).count(), scatter.hollow.as_str()), (8, "generator-bound"));
    // A single generator-bound trial is drawn hollow, even if its row is not marked.
    let mut few = f.clone();
    few.rows[0].trials[2].marks = vec![Mark::GeneratorBound];
    let drawings = figures::figures(&few, Detail::FULL);
    let Shape::Marks { marks, .. } = &drawings[0].panels[0].layers[2].shape else { panic!() };
    assert_eq!(marks.iter().filter(|mark| mark.hollow).count(), 9);
}

#[test]
fn several_metrics_are_series_of_their_own() {
    let mut f = volley();
    let quantiles = ["latency_p90", "latency_p99", "latency_p999"].map(str::to_owned).to_vec();
    let wanted = Figure { x: Some("cores".to_owned()), y_more: quantiles, ..figure(FigureKind::Line, "latency_p50") };
    f.figures = vec![wanted.clone()];
    let drawing = &figures::figures(&f, Detail::FULL)[0];
    let labels = drawing.keys.iter().map(|key| key.label.as_str()).collect::<Vec<_>>();
    assert_eq!(labels, ["p50", "p90", "p99", "p99.9"]);
    assert_eq!(drawing.title, "Median latency, p90 latency, p99 latency, p99.9 latency over cores");
    let titles = drawing.panels.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>();
    assert_eq!(
        titles,
        [
            "c-epoll, clients 40",
            "c-epoll, clients 80",
            "go, clients 40",
            "go, clients 80",
            "rust-tokio, clients 40",
            "rust-tokio, clients 80"
        ]
    );
    for panel in &drawing.panels {
        assert_eq!((panel.layers.len(), panel.y.label.as_str()), (4, "latency, ms"));
        let first = panel.layers.iter().map(|layer| match &layer.shape {
            Shape::Marks { marks, joined: true } => marks[0].y,
            other => panic!("{other:?}"),
        });
        assert!(first.collect::<Vec<_>>().is_sorted(), "p50 is below p99.9");
    }
    assert_in_bounds(&f);
    // Each row keeps its position and series with two idle policies, and with a single level.
    let spun: Vec<Row> = f.rows.iter().filter(|row| row.n > 0).cloned().collect();
    f.rows.extend(spun.into_iter().map(|row| Row { idle: Some(IdlePolicy::Spin), ..row }));
    let drawing = &figures::figures(&f, Detail::FULL)[0];
    let labels = drawing.keys.iter().map(|key| key.label.as_str()).collect::<Vec<_>>();
    assert_eq!(labels[..3], ["p50, idle machine", "p50, idle spin", "p90, idle machine"]);
    let mut one = volley();
    one.rows.retain(|row| row.factors["cores"] == Level::Integer(1));
    one.figures = vec![wanted];
    let drawing = &figures::figures(&one, Detail::FULL)[0];
    assert!(drawing.panels.iter().all(|panel| panel.y.scale == Scale::Slots { count: 4 }));
    assert_in_bounds(&one);
}

#[test]
fn draws_a_single_level_with_names() {
    let mut f = volley();
    f.rows.retain(|row| row.factors["cores"] == Level::Integer(1));
    f.figures = vec![Figure { x: Some("cores".to_owned()), ..figure(FigureKind::Line, "throughput") }];
    let drawings = figures::figures(&f, Detail::FULL);
    for panel in &drawings[0].panels {
        assert_eq!(panel.y.scale, Scale::Slots { count: 3 });
        assert!(panel.layers.iter().all(|layer| matches!(layer.shape, Shape::Marks { joined: false, .. })));
    }
    assert!(drawings[0].caption.contains("At cores 1."), "{}", drawings[0].caption);
    assert_in_bounds(&f);
}

#[test]
fn hostile_names_stay_text() {
    const EVIL: &str = "</title></svg></style><script>alert(1)</script>\"'`{{7*7}}&lt;\u{0}\u{1b}";
    let mut f = volley();
    f.answer.push(analysis::findings::Sentence { text: EVIL.to_owned(), from: analysis::findings::Source::Rows });
    f.method.push(EVIL.to_owned());
    f.warnings.push(Warning { details: vec![EVIL.to_owned()], ..Warning::new(study::WarningKind::Other, EVIL, 0) });
    f.command.push(EVIL.to_owned());
    f.doctor.push(Finding { check: EVIL.into(), state: FindingState::Bad, text: EVIL.into(), hint: Some(EVIL.into()) });
    f.machine.sysctls.insert(EVIL.to_owned(), EVIL.to_owned());
    f.revision = Some(EVIL.to_owned());
    for text in
        [&mut f.run, &mut f.study, &mut f.question, &mut f.study_text, &mut f.machine.name, &mut f.machine.cpu_model]
    {
        *text = EVIL.to_owned();
    }
    let evil = Level::Text(EVIL.to_owned());
    f.factors[0].levels[0] = evil.clone();
    for row in f.rows.iter_mut().take(4) {
        row.factors.insert(f.factors[0].name.clone(), evil.clone());
        row.label = EVIL.to_owned();
        row.stop_reason = EVIL.to_owned();
    }
    f.rows[1].state = RowState::Failed(EVIL.to_owned());
    f.rows[1].n = 0;
    f.figures = every_kind();
    f.figures[0].title = Some(EVIL.to_owned());
    let page = html(&f).unwrap();
    assert!(page.contains("alert(1)"), "the name is shown");
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(page.matches("</script>").count(), 1);
    assert_eq!(page.matches("</style>").count(), 1);
    assert_eq!(page.matches("</title>").count(), page.matches("<title>").count());
    assert_eq!(page.matches("</svg>").count(), page.matches("<svg ").count());
    for (name, svg) in figure_svgs(&f, Background::Light) {
        assert!(!svg.contains("<script"), "{name}");
        assert!(!svg.chars().any(|c| c.is_control() && c != '\n'), "{name}");
        assert_eq!(svg.matches("</svg>").count(), 1, "{name}");
        crate::figure_png(&name, &svg).unwrap();
    }
}

#[test]
#[ignore = "slow: a page of 500 points"]
fn five_hundred_points_fit() {
    let mut rng = Rng::new(7);
    let f = made(5, 10, 10, &mut || 1e5 * (1.0 + rng.unit_f64()));
    assert_eq!(f.rows.len(), 500);
    let page = html(&f).unwrap();
    assert_sound(&page);
    let rows = page.split("id=\"results\"").nth(1).unwrap().split("</table>").next().unwrap().matches("<tr>").count();
    assert_eq!(rows, 501, "every design point keeps its row");
    assert!(page.contains("more panels are not drawn"), "omitted panels are reported");
    for (name, svg) in figure_svgs(&f, Background::Light) {
        crate::figure_png(&name, &svg).unwrap();
    }
}

#[test]
fn empty_findings_make_a_page() {
    let page = html(&nothing()).unwrap();
    assert_sound(&page);
    assert!(page.contains("No answer: nothing was measured."));
    assert!(page.contains("No data."));
    assert_eq!(figure_svgs(&nothing(), Background::Light).len(), 4);
}

#[test]
fn no_number_breaks_a_page() {
    const ODD: [f64; 14] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        1e-9,
        1e15,
        123.456,
    ];
    for seed in 0..16 {
        let mut rng = Rng::new(seed);
        let even = seed % 2 == 0;
        let mut draw = || {
            let pick = rng.below(ODD.len() as u64) as usize;
            if even { ODD[pick] } else { (rng.unit_f64() - 0.3) * 10f64.powi(rng.below(600) as i32 - 300) }
        };
        let f = made(2, 2 + (seed % 3) as i64, 1 + (seed % 2) as i64, &mut draw);
        let page = html(&f).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_sound(&page);
        for (name, svg) in figure_svgs(&f, Background::Light) {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "seed {seed}: {name}");
            if seed < 2 {
                crate::figure_png(&name, &svg).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
        }
        assert_in_bounds(&f);
    }
}

#[test]
fn odd_levels_of_factors_are_drawn_or_left_out() {
    let mut draw = || 5.0;
    let mut f = made(2, 3, 1, &mut draw);
    let odd = [Level::Number(f64::NAN), Level::Number(f64::NEG_INFINITY), Level::Number(1e300)];
    for (index, level) in odd.into_iter().enumerate() {
        f.factors[1].levels[index] = level.clone();
        for row in f.rows.iter_mut().filter(|row| row.factors["cores"] == Level::Integer(index as i64 + 1)) {
            row.factors.insert("cores".to_owned(), level.clone());
        }
    }
    html(&f).unwrap();
    figure_svgs(&f, Background::Light);
}

#[test]
fn trials_without_values_have_no_marker() {
    let mut f = volley();
    f.figures = vec![figure(FigureKind::Timeline, "throughput")];
    let failed =
        f.rows.iter().flat_map(|row| &row.trials).filter(|trial: &&TrialFinding| trial.failed.is_some()).count();
    assert!(failed > 0, "the example has failed trials");
    let measured: usize = f.rows.iter().map(|row| row.n).sum();
    let drawings = figures::figures(&f, Detail::FULL);
    let timeline = drawings.iter().find(|drawing| drawing.name.contains("timeline")).unwrap();
    let layers = timeline.panels.iter().flat_map(|panel| &panel.layers);
    let marks: usize =
        layers.map(|layer| if let Shape::Marks { marks, .. } = &layer.shape { marks.len() } else { 0 }).sum();
    assert_eq!(marks, measured);
}

fn names(drawing: &figures::Drawing) -> Vec<String> {
    let of_panel = |panel: &crate::panel::Panel| {
        let slots = [&panel.x, &panel.y].into_iter().flat_map(|axis| axis.major.iter().map(|(_, label)| label.clone()));
        let ends = panel.named_layers().map(|layer| layer.name.clone());
        slots.chain(ends).chain([panel.title.clone()]).collect::<Vec<_>>()
    };
    let panels = drawing.panels.iter().flat_map(|panel| panel.all()).flat_map(of_panel);
    drawing.legend().iter().map(|key| key.label.clone()).chain(panels).collect()
}

#[test]
fn figures_do_not_name_constant_factors() {
    let runs = [example::sweep(), example::capacity(), example::threads()];
    for (run, records) in runs {
        let f = analysis::analyze(&run, &records);
        let fixed = f.factors.iter().filter(|factor| !factor.varies());
        let fixed = fixed.map(|factor| (factor.name.clone(), factor.levels[0].to_string())).collect::<Vec<_>>();
        // A number may occur by chance, so it counts only after the name of its factor.
        let shown = |(name, level): &(String, String)| match level.parse::<f64>() {
            Ok(_) => format!("{name} {level}"),
            Err(_) => level.clone(),
        };
        let named = |text: &str| fixed.iter().any(|pair| text.contains(&shown(pair)));
        for drawing in figures::figures(&f, Detail::FULL) {
            let named = names(&drawing).into_iter().filter(|text| named(text)).collect::<Vec<_>>();
            assert_eq!(named, Vec::<String>::new(), "{} of {}", drawing.name, f.study);
        }
        assert!(f.rows.iter().all(|row| !named(&row.label)), "{:?}", f.rows[0].label);
        for (_, level) in &fixed {
            assert!(html(&f).unwrap().contains("All rows: ") && html(&f).unwrap().contains(level.as_str()));
        }
    }
}

#[test]
fn a_contender_has_one_colour_in_all_figures() {
    let mut f = volley();
    // The figure of the CPU probes is removed, because its series are CPUs, not contenders.
    f.probes = None;
    let by = |x: Option<&str>, series: Option<&str>, kind| Figure {
        x: x.map(str::to_owned),
        series: series.map(str::to_owned),
        ..figure(kind, "latency_p99")
    };
    f.figures = vec![
        by(Some("cores"), Some("server"), FigureKind::Line),
        by(Some("server"), None, FigureKind::Line),
        by(Some("server"), Some("clients"), FigureKind::Interaction),
        by(Some("clients"), None, FigureKind::Scatter),
        by(None, None, FigureKind::Ecdf),
    ];
    let mut colours = BTreeMap::<String, std::collections::BTreeSet<usize>>::new();
    let drawings = figures::figures(&f, Detail::FULL);
    for key in drawings.iter().flat_map(|drawing| &drawing.keys) {
        colours.entry(key.label.clone()).or_default().insert(key.series);
    }
    for (number, contender) in ["c-epoll", "go", "rust-tokio"].into_iter().enumerate() {
        assert_eq!(colours.remove(contender).map(Vec::from_iter), Some(vec![number]), "{contender}");
    }
    assert!(colours.len() == 4 && colours.values().flatten().all(|number| *number > 2), "{colours:?}");
    let inside = drawings.last().unwrap();
    for (panel, trial) in inside.panels.iter().zip(&f.inside) {
        let contender = &f.rows[trial.row].factors["server"];
        let number = f.factors[0].levels.iter().position(|level| level == contender);
        let mut series = panel.all().flat_map(|panel| &panel.layers).filter_map(|layer| layer.series);
        assert!(series.all(|series| Some(series) == number), "{contender}");
    }
}

#[test]
fn long_names_are_not_cut() {
    let mut f = volley();
    let long =
        |level: &Level| Level::Text(format!("{level}-with-everything-that-a-name can hold, and more of it").repeat(2));
    f.factors[0].levels.iter_mut().for_each(|level| *level = long(level));
    for row in &mut f.rows {
        let level = long(&row.factors["server"]);
        row.label = row.label.replace(&row.factors["server"].to_string(), &level.to_string());
        row.factors.insert("server".to_owned(), level);
    }
    f.figures = every_kind();
    f.figures.push(Figure { x: Some("server".to_owned()), ..figure(FigureKind::Interaction, "latency_p99") });
    f.figures.push(Figure { x: Some("server".to_owned()), ..figure(FigureKind::Line, "latency_p99") });
    let drawn = |svg: &str| {
        let texts = svg.split("<text").skip(1).filter_map(|text| text.split_once('>')?.1.split_once("</text>"));
        texts.map(|(text, _)| text).collect::<String>().replace(' ', "")
    };
    for (drawing, (name, svg)) in figures::figures(&f, Detail::FULL).iter().zip(figure_svgs(&f, Background::Light)) {
        let texts = drawn(&svg);
        assert!(!svg.contains('…'), "{name}");
        for text in names(drawing).into_iter().filter(|text| text.len() > 20) {
            assert!(texts.contains(&text.replace(' ', "")), "{name}: {text}");
        }
    }
}

#[test]
fn limits_trial_timelines_to_keep_pages_small() {
    let (run, records) = example::sweep();
    let mut f = analysis::analyze(&run, &records);
    let mut rng = Rng::new(3);
    // The worst case has all columns and bands, all of them different.
    for trial in &mut f.inside {
        let first = trial.columns[0].clone();
        let column = |at: u64| analysis::findings::Column {
            from_ns: at * 2_000_000,
            to_ns: (at + 1) * 2_000_000,
            bands: (0..165).map(|band| (band, 1 + rng.below(1 << (band % 40)))).collect(),
            errors: at % 3,
            ..first.clone()
        };
        trial.columns = (0..120).map(column).collect();
    }
    let drawings = figures::figures(&f, Detail::FULL);
    let inside = drawings.last().unwrap();
    assert_eq!((inside.panels.len(), f.rows.len()), (12, 16));
    assert_eq!(inside.notes[0], "Not drawn, to keep the page small: go, cores 16; and 3 more up to go, cores 40.");
    assert_in_bounds(&f);
    let page = html(&f).unwrap();
    assert_sound(&page);
    assert!(page.contains("<details><summary><h3>Inside a trial</h3></summary>"));
    for panel in &inside.panels {
        let cells = panel.all().flat_map(|panel| &panel.layers).map(|layer| match &layer.shape {
            Shape::Heat(cells) => cells.len(),
            _ => 0,
        });
        assert!(cells.sum::<usize>() <= 120 * 32);
    }
}

#[test]
fn latency_over_rate_joins_shares_and_searches() {
    let (run, records) = example::capacity();
    let mut f = analysis::analyze(&run, &records);
    let drawn = |f: &Findings| {
        figures::figures(f, Detail::FULL).into_iter().find(|drawing| drawing.name.ends_with("over-rate"))
    };
    let drawing = drawn(&f).unwrap();
    let titles = drawing.panels.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>();
    assert_eq!(titles, ["p50", "p99", "p99.9"]);
    assert!(drawing.panels.iter().all(|panel| panel.y == drawing.panels[0].y), "one scale");
    let [layer] = drawing.panels[1].layers.as_slice() else { panic!("{drawing:?}") };
    let Shape::Marks { marks, joined: true } = &layer.shape else { panic!("{layer:?}") };
    let steps = f.capacities[0].search.as_ref().unwrap().steps.iter().filter_map(|step| step.rate_per_s);
    let mut rates = steps.chain(f.rows.iter().filter_map(|row| row.trials[0].offered_per_s)).collect::<Vec<_>>();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    assert_eq!(marks.iter().map(|mark| mark.x).collect::<Vec<_>>(), rates);
    let share = marks.iter().find(|mark| Some(mark.x) == f.rows[1].trials[0].offered_per_s).unwrap();
    let estimate = f.rows[1].estimate("latency_p99").unwrap();
    assert_eq!((share.y, share.bar), (estimate.point, Some((estimate.low, estimate.high))));
    // An interval below zero does not extend the axis, and marked points are hollow.
    let wide = f.rows[1].metrics.get_mut("latency_p99").and_then(|found| found.estimate.as_mut()).unwrap();
    wide.low = -1e9;
    f.rows[0].marks = vec![Mark::GeneratorBound];
    let below = drawn(&f).unwrap();
    assert_eq!((&below.panels[1].y, below.hollow.as_str()), (&drawing.panels[1].y, "generator-bound"));
    assert_in_bounds(&f);
    f.capacities.clear();
    for row in &mut f.rows {
        let rate = Level::Number(row.trials[0].offered_per_s.unwrap());
        row.factors.insert("load".to_owned(), rate);
    }
    assert!(drawn(&f).is_none());
    f.figures.clear();
    assert!(drawn(&f).is_some());
    assert!(drawn(&volley()).is_none(), "closed loops have no rate");
}

#[test]
fn axes_of_quantities_have_no_negative_values() {
    // Such intervals occur if three trials differ by more than their mean.
    let mut f = volley();
    f.figures = Vec::new();
    for found in f.rows.iter_mut().flat_map(|row| row.metrics.values_mut()) {
        if let Some(estimate) = &mut found.estimate {
            estimate.low = -1.6 * estimate.point;
            estimate.high = 3.6 * estimate.point;
        }
    }
    let drawings = figures::figures(&f, Detail::FULL);
    let of_quantities = ["-line-throughput", "-line-latency_mean", "-over-rate", "-inside", "-steps"];
    let drawings = drawings.iter().filter(|drawing| of_quantities.iter().any(|name| drawing.name.ends_with(name)));
    let mut axes = 0;
    for drawing in drawings {
        for axis in drawing.panels.iter().flat_map(|panel| panel.all()).flat_map(|panel| [&panel.x, &panel.y]) {
            if let Scale::Linear { low, .. } | Scale::Log { low, .. } = axis.scale {
                axes += 1;
                assert!(low >= 0.0 || axis.label == "clients", "{}: {axis:?}", drawing.name);
                assert!(axis.major.iter().all(|(value, _)| *value >= 0.0), "{}: {axis:?}", drawing.name);
            }
        }
    }
    assert!(axes >= 8, "{axes}");
    assert_in_bounds(&f);
}

#[test]
fn only_results_and_their_figures_are_unfolded() {
    let f = volley();
    let page = html(&f).unwrap();
    let unfolded = page.split("<details class=\"section\">").next().unwrap();
    let at = |text: &str| unfolded.find(text).unwrap_or_else(|| panic!("`{text}` is folded"));
    let order = ["class=\"answer\"", "href=\"#warnings\"", "id=\"results\"", "id=\"figures\"", "<svg"].map(at);
    assert!(order.is_sorted(), "{order:?}");
    let folded = ["failures", "warnings", "comparisons", "more-figures", "machine", "method", "reproduce"];
    for anchor in folded {
        assert!(!unfolded.contains(&format!("id=\"{anchor}\"")), "{anchor}");
        assert_eq!(page.matches(&format!("<summary><h2 id=\"{anchor}\"")).count(), 1, "{anchor}");
    }
    assert_eq!(page.matches("<details").count(), page.matches("</details>").count());
    let drawings = figures::figures(&f, Detail::FULL);
    let supporting = drawings.iter().filter(|drawing| drawing.supporting).map(|drawing| drawing.title.as_str());
    let supporting = supporting.collect::<Vec<_>>();
    for title in ["Trials over time, by throughput", "Latency by quantile"] {
        assert!(supporting.contains(&title), "{supporting:?}");
    }
}

#[test]
fn code_between_backticks_is_marked() {
    let text = super::blocks::text;
    assert_eq!(text("run `quintain doctor <x>`, or `one"), "run `quintain doctor &lt;x&gt;`, or `one");
    assert_eq!(text("run `quintain doctor <x>`."), "run <code>quintain doctor &lt;x&gt;</code>.");
}
