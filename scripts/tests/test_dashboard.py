"""The provided dashboard, as Grafana needs it.

Its names are compared with real scrapes by the tests of what is scraped: ObservedApplicationIT for an
application with the library, MetricsServerTest for the runner.
"""

import json
import re

from tests.repository import SCRIPTS

ROOT = SCRIPTS.parent
PANELS = json.loads((ROOT / "monitoring/grafana/dashboards/eventsql.json").read_text())["panels"]


def expressions() -> list[str]:
    return [target["expr"] for panel in PANELS for target in panel["targets"]]


def test_panels_have_their_own_places_and_numbers() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS]

    assert len(set(places)) == len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)


def test_dashboard_shows_what_an_operator_asks_for() -> None:
    shown = " ".join(expressions())

    for name in (
        "outbox_backlog",
        "outbox_age",
        "buffer_bytes",
        "consumer_parked",
        "consumer_dead_letters",
        "runner_",
    ):
        assert f"eventsql_{name}" in shown


def test_tests_that_scrape_read_the_dashboard() -> None:
    """Otherwise a wrong name would be noticed by nothing."""
    tests = {
        "eventsql/spring-boot-starter/src/test/java/io/eventsql/spring/boot/ObservedApplicationIT.java",
        "runner/cli/src/test/java/io/eventsql/runner/measure/MetricsServerTest.java",
    }

    for test in tests:
        assert "monitoring/grafana/dashboards/eventsql.json" in (ROOT / test).read_text()
    # All others are Prometheus's own functions.
    names = set(re.findall(r"\b([a-z]+)_\w+", " ".join(expressions())))
    assert names <= {"eventsql", "jvm", "process", "system"}
