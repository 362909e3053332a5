"""Reads exports with the tools they are made for: Apache Otava, hdrhistogram, and JSON Schemas if no registry has a tool.

    python3 .ci/exports.py QUINTAIN

Runs a small study three times, with quotes in the name of a level, and reads every export. Prints a line for each. Exits with 1
if one failed. Skips tools that are not installed.
"""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from parts import end, part

quintain = str(pathlib.Path(sys.argv[1]).resolve())
temporary = tempfile.TemporaryDirectory()
folder = pathlib.Path(temporary.name)
STUDY = r"""
question = "Do other tools read it?"
[subject]
command = "quintain serve pingpong -p {port}"
environment = { LEVEL = "{name}" }
[load]
protocol = "pingpong"
clients = 2
threads = 1
warmup = "50ms"
stop = "300ms"
[factors]
name = ["plain", "a, \"b\" 'c'; d=/.. <e> %41 ä"]
[trials]
stop = { min = 2, max = 2 }
"""


def run(*args, **more):
    done = subprocess.run([quintain, *args], cwd=folder, capture_output=True, text=True, timeout=300, env=environment, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


environment = dict(os.environ, PATH=f"{pathlib.Path(quintain).parent}:{os.environ['PATH']}")
(folder / "mini.toml").write_text(STUDY)
for _ in range(3):
    run("run", "mini.toml")
records = [record for record in json.loads(run("report", "-f", "records"))["records"] if "measured" in record["outcome"]]
findings = json.loads(run("report", "-f", "json"))
assert len(records) == 4 and len(findings["rows"]) == 2


@part("Bencher Metric Format by its schema")
def _():
    import jsonschema

    # https://bencher.dev/docs/reference/bencher-metric-format
    number = {"type": "number"}
    metric = {"type": "object", "properties": {"value": number, "lower_value": number, "upper_value": number}, "required": ["value"]}
    benchmark = {"type": "object", "patternProperties": {".+": metric}, "minProperties": 1}
    read = json.loads(run("report", "-f", "bencher"))
    jsonschema.validate(read, {"type": "object", "patternProperties": {".+": benchmark}, "minProperties": 2, "maxProperties": 2})
    for row, metrics in zip(sorted(findings["rows"], key=lambda row: row["point"] == 0), read.values()):
        assert metrics["throughput"]["value"] == row["metrics"]["throughput"]["mean"]
    return f"{sum(map(len, read.values()))} metrics of {', '.join(read)}"


@part("github-action-benchmark by a schema")
def _():
    import jsonschema

    run("report", "-f", "github-benchmark", "-o", "github")
    text = {"type": "string", "minLength": 1}
    properties = {"name": text, "unit": text, "value": {"type": "number"}, "range": text, "extra": text}
    one = {"type": "object", "properties": properties, "required": ["name", "unit", "value"], "additionalProperties": False}
    counts = []
    for tool in ("customSmallerIsBetter", "customBiggerIsBetter"):
        read = json.loads((folder / "github" / f"{tool}.json").read_text())
        jsonschema.validate(read, {"type": "array", "items": one, "minItems": 1})
        counts.append(f"{len(read)} for {tool}")
    return ", ".join(counts)


@part("Trace Event Format by a schema")
def _():
    import jsonschema

    number, text = {"type": "number", "minimum": 0}, {"type": "string", "minLength": 1}
    base = {"ph": text, "name": text, "pid": number, "tid": number, "ts": number}

    def event(phase, **more):
        properties = {**base, "ph": {"const": phase}, **more}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    counters = {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 1}
    anything = {"type": "object"}
    kinds = [event("M", args=anything), event("X", dur=number), event("C", args=counters), event("i", s={"enum": ["g", "p", "t"]}, args=anything)]
    events = {"type": "array", "items": {"oneOf": kinds}, "minItems": 10}
    read = json.loads(run("report", "-f", "trace", "--trial", "1"))
    jsonschema.validate(read, {"type": "object", "properties": {"traceEvents": events}, "required": ["traceEvents"]})
    return f"{len(read['traceEvents'])} events"


@part("hdrhistogram")
def _():
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader

    run("report", "-f", "hdr", "-o", "all.hlog")
    reader = HistogramLogReader(str(folder / "all.hlog"), HdrHistogram(1, 3_600_000_000_000, 3))
    merged = {}
    for record in records:
        read = reader.get_next_interval_histogram()
        latency = record["outcome"]["measured"]["service"]
        assert read.get_total_count() == latency["count"], "no count is lost"
        assert read.get_max_value() == read.get_highest_equivalent_value(latency["max"])
        merged.setdefault(read.get_tag(), HdrHistogram(1, 3_600_000_000_000, 3)).add(read)
    assert reader.get_next_interval_histogram() is None

    # Each line of the percentile text has a value of the merged log and the count of values up to it. (The library's own text has
    # other percentiles than HdrHistogram's, because it does not use a whole number of halvings.)
    run("report", "-f", "hgrm", "-o", "percentiles")
    for tag, histogram in merged.items():
        lines = (folder / "percentiles" / f"{tag.replace('/', ',')}.hgrm").read_text().splitlines()
        assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
        steps = [line.split() for line in lines[1:] if line and not line.startswith("#")]
        known = {step.value_iterated_to: step.total_count_to_this_value for step in histogram.get_recorded_iterator()}
        total = histogram.get_total_count()
        for value, level, count, *inverse in steps:
            at = histogram.get_highest_equivalent_value(round(float(value) * 1e6))
            assert known[at] == int(count) >= float(level) * total - 1e-6 * total, (value, level, count)
            assert not inverse or abs(float(inverse[0]) - 1 / (1 - float(level))) <= 0.005 + 1e-4 * float(inverse[0])
        assert steps[-1][1:] == ["1.000000000000", str(total)] and len(steps) > 20
    return f"{len(records)} intervals, {len(merged)} percentile files: {', '.join(merged)}"


@part("hdrhistogram with a load")
def _():
    from hdrh.histogram import HdrHistogram

    server = subprocess.Popen([quintain, "serve", "pingpong", "-p", "0"], stdout=subprocess.PIPE, text=True)
    try:
        address = "127.0.0.1:" + server.stdout.readline().split()[1]
        loaded = json.loads(run("load", f"pingpong://{address}", "-c", "2", "-d", "300ms", "--warmup", "50ms", "--json", "--hdr", "load.hlog"))
    finally:
        server.terminate()
        server.wait(timeout=20)
    lines = [line for line in (folder / "load.hlog").read_text().splitlines() if line.startswith("Tag=")]
    assert len(lines) == 1 and base64.b64decode(lines[0].rsplit(",", 1)[1])
    read = HdrHistogram.decode(lines[0].rsplit(",", 1)[1])
    assert read.get_total_count() == loaded["requests"], loaded
    median = loaded["latency_ns"]["p50"]
    median = median["value"] if isinstance(median, dict) else median
    assert abs(read.get_value_at_percentile(50) / median - 1) < 0.002, median
    return f"{read.get_total_count()} requests"


@part("prometheus_client with a running load")
def _():
    import time
    import urllib.request

    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    def scrape():
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
            families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
        samples = (sample for family in families.values() for sample in family.samples)
        return families, {(sample.name.removeprefix("quintain_load_"), *sample.labels.values()): sample.value for sample in samples}

    server = subprocess.Popen([quintain, "serve", "http", "-p", "0"], stdout=subprocess.PIPE, text=True)
    load = None
    try:
        address = "127.0.0.1:" + server.stdout.readline().split()[1]
        command = [quintain, "load", f"http://{address}/", "-c", "2", "-d", "2s", "--warmup", "0s", "--json", "--metrics", "127.0.0.1:0"]
        load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        url = load.stderr.readline().removeprefix("metrics: ").strip()
        deadline = time.monotonic() + 30
        families, first = scrape()
        while first["latency_seconds_count",] == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
            families, first = scrape()
        time.sleep(0.5)
        _, second = scrape()
        loaded = json.loads(load.communicate(timeout=60)[0])
    finally:
        for process in filter(None, (load, server)):
            process.terminate()
            process.wait(timeout=20)
    assert 0 < first["requests_total",] < second["requests_total",] <= loaded["requests"], (first, second, loaded)
    assert first["latency_seconds_count",] < second["latency_seconds_count",] <= second["requests_total",]
    assert first["clients",] == 2 and first["phase", "measure"] == 1
    assert families["quintain_load_latency_seconds"].unit == "seconds" and families["quintain_load_latency_seconds"].type == "histogram"
    return f"{len(families)} families of OpenMetrics, {second['requests_total',]:.0f} requests at the second scrape"


@part("Apache Otava")
def _():
    import otava  # noqa: F401

    run("report", "-f", "otava", "-o", "otava")
    tool = pathlib.Path(sys.executable).parent / "otava"

    def ask(*args):
        done = subprocess.run([tool, *args, "--config-file", "otava.yaml"], cwd=folder / "otava", capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    tests = json.loads((folder / "otava" / "otava.yaml").read_text())["tests"]
    listed = ask("list-tests").split()
    assert len(tests) == 2 and all(name in listed for name in tests), listed
    for name, test in tests.items():
        assert set(test["metrics"]) <= set(ask("list-metrics", name).split())
        analyzed = ask("analyze", name, "--since", "2000-01-01")
        table = [line for line in analyzed.splitlines() if re.match(r"20\d\d-", line)]
        assert len(table) == 3, analyzed
    return f"{len(tests)} tests of {len(table)} runs, {len(test['metrics'])} metrics"


end()
