"""The provided dashboard shows existing meters only."""

import json
import re

from tests.repository import SCRIPTS

ROOT = SCRIPTS.parent
# Suffixes that Prometheus adds to a meter's name, by its kind and unit.
KIND = r"(_seconds_sum|_seconds_count|_total|)$"
UNIT = r"_events$"


def meters(name: str) -> set[str]:
    """Returns the meters that Prometheus may show by this name."""
    without_kind = re.sub(KIND, "", name)
    return {meter.replace("_", ".") for meter in (without_kind, re.sub(UNIT, "", without_kind))}


def test_dashboard_shows_documented_meters_only() -> None:
    documented = set(re.findall(r"`(eventsql\.[a-z.]+)`", (ROOT / "docs/observability.md").read_text()))
    dashboard = json.loads((ROOT / "monitoring/grafana/dashboards/eventsql.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown = {name for expression in expressions for name in re.findall(r"eventsql_[a-z_]+", expression)}

    assert len(shown) > 5
    assert {name for name in shown if not meters(name) & documented} == set()
