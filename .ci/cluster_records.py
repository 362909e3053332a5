"""Checks that several generators act as one load. Reads `quintain report -f records` from stdin."""
import json
import sys


def check(records, generators=3):
    """Checks every trial and returns a summary."""
    assert records, "no trials"
    apart_most = 0
    for record in records:
        whole, parts = record["outcome"]["measured"], [agent["measurement"] for agent in record["agents"]]
        assert len(parts) == generators and whole["requests"] == sum(part["requests"] for part in parts), "counts are sums"
        assert whole["service"]["count"] == whole["requests"] == sum(window["requests"] for window in whole["windows"])
        mean = whole["service"]["sum"] / whole["service"]["count"]
        held = whole["requests"] / whole["duration_ns"] * mean / whole["in_flight_mean"]
        assert abs(held - 1) < 0.05, f"Little's law over all: {held}"
        began = [agent["measurement"]["began_ns"] for agent in record["agents"]]
        doubt = 2 * max(agent["clock"]["error_ns"] for agent in record["agents"])
        apart = max(began) - min(began) + doubt
        assert apart < 1_000_000, f"starts {apart} ns apart, {doubt} ns of it doubt of clocks"
        apart_most = max(apart_most, apart)
        assert all(agent["verdict"]["limited_by"] for agent in record["agents"])
    return (f"{len(records)} trials of {generators} generators: counts are sums, Little holds, "
            f"starts at most {apart_most / 1e3:.0f} us apart")


if __name__ == "__main__":
    print(check(json.load(sys.stdin)["records"]))
