"""The provided dashboard shows existing meters only."""

import json
import re

from tests.repository import SCRIPTS

ROOT = SCRIPTS.parent
# Suffixes that Prometheus adds to a meter's name, by its kind.
ENDINGS = r"(_seconds_sum|_seconds_count|_total|)$"


def test_dashboard_shows_documented_meters_only() -> None:
    documented = set(re.findall(r"`(eventsql\.[a-z.]+)`", (ROOT / "docs/observability.md").read_text()))
    dashboard = json.loads((ROOT / "monitoring/grafana/dashboards/eventsql.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown = {name for expression in expressions for name in re.findall(r"eventsql_[a-z_]+", expression)}

    assert len(shown) > 5
    assert {name for name in shown if re.sub(ENDINGS, "", name).replace("_", ".") not in documented} == set()
