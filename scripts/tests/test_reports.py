"""Pages and plots of example results and of kept ones; test_pages.py opens them in a browser."""

import copy
import json
import random
import re
import struct
from pathlib import Path
from typing import Any

import draw_report
import pytest
from reports import facts, page, run_page, run_plots, tables, trial_plots
from reports.comparison_plots import latency_ranges, throughput, varied_number
from reports.histograms import spectrum
from reports.result import NoReport, Result
from reports.style import milliseconds, short, size, spread
from reports.sweep_plots import all_trials, by_factor
from tests import example_results as example

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
SHORT: example.Phases = (("warm-up", False, 1000, 5000, 2), ("steady", True, 1000, 5000, 4))


def result(data: dict[str, Any], folder: str = "run") -> Result:
    return Result(Path(folder), data)


def test_run_page_is_self_contained_and_shows_the_outcome(drawn: Path) -> None:
    html = (drawn / "2-failed" / "report.html").read_text()

    assert "1 &lt;lost&gt;" in html
    assert "<lost>" not in html
    assert '<span class="badge failed">failed</span>' in html
    assert "2 cores, database and load on the same machine, durable settings" in html
    assert "bash scripts/run_workload.bash fan-out --only failed" in html
    assert "at least once" in html
    assert "0 lost, 0 duplicated, 0 out of order" in html
    # XML namespaces are not requests.
    loaded = re.findall(r'(?:src|href)="(?!#|data:)([^"]*)"', html)
    assert loaded == []


def test_run_page_says_when_the_load_saturated_the_machine() -> None:
    saturated = {**example.publish_result(1000), "machine_busy_share": 0.964, "machine_saturated": True}
    idle = {**example.publish_result(1000), "machine_busy_share": 0.4, "machine_saturated": False}
    sentence = "The machine&#x27;s processors were 96% busy: latencies include waiting for a processor."

    assert sentence in run_page.header(result(saturated), "run")
    assert "busy" not in run_page.header(result(idle), "run")
    assert "busy" not in run_page.header(result(example.publish_result(1000)), "a former result")


def test_run_page_shows_how_warm_the_jvms_were() -> None:
    data = {
        **example.publish_result(1000),
        "machine_busy_share": 0.4,
        "warmup_seconds": 60.0,
        "warmup_warm": False,
        "compilation_seconds": 3.2,
        "runner_java_options": ["-Xmx1g", "-XX:+UseSerialGC"],
        "app_java_options": ["-Xmx2g"],
    }

    shown = facts.machine(result(data))

    assert "60 s, after which the JVMs still compiled" in shown
    assert "-Xmx1g -XX:+UseSerialGC" in shown
    assert "40%" in shown
    assert "warm-up" not in facts.machine(result(example.publish_result(1000)))


def test_run_page_has_a_png_for_each_plot(drawn: Path) -> None:
    html = (drawn / "2-failed" / "report.html").read_text()

    plots = re.findall(r'data-plot="([a-z-]+)"', html)
    assert plots == ["rates", "latency", "percentiles", "backlog", "resources", "tables"]
    for name in plots:
        width, height = struct.unpack(">II", (drawn / "2-failed" / f"{name}.png").read_bytes()[16:24])
        assert width > 1000
        assert height > 300


def test_plots_follow_the_page_into_dark_mode(drawn: Path) -> None:
    html = (drawn / "2-failed" / "report.html").read_text()

    svg = html[html.index("<svg") : html.rindex("</svg>")]
    assert "var(--blue)" in svg
    assert re.findall(r"#[0-9a-f]{6}\b", svg) == []


def test_comparison_shows_numbers_with_guarantees_and_links_the_runs(drawn: Path) -> None:
    html = (drawn / "comparison.html").read_text()

    assert "failed: failed" in html
    assert "flushed to disk (fsync)" in html
    links = re.findall(r'<a href="([^"]*)"', html)
    assert links == ["1-blast/report.html", "2-failed/report.html", "10-main/report.html"]
    assert "fan-out" in html
    assert (drawn / "comparison-blast-blast.png").exists()


def test_comparison_machines_never_share_a_table(tmp_path: Path) -> None:
    one, other = example.phases_result("a"), example.phases_result("b")
    other["machine"] = {**other["machine"], "os": "another kernel"}
    example.write(tmp_path, {"a": one, "b": other})

    assert draw_report.main(["--comparison-only", str(tmp_path)]) == 0

    html = (tmp_path / "comparison.html").read_text()
    titles = re.findall(r"Numbers and guarantees, 2 CPUs, ([A-Za-z ]+)", html)
    assert titles == ["Linux", "another kernel"]
    assert html.count("<td>one run</td>") == 2


def test_kept_results_are_drawn(tmp_path: Path) -> None:
    source = max((ROOT / "results").glob("20*/**/*rate-1000/result.json"))
    (kept,) = example.write(tmp_path, {"kept": json.loads(source.read_text())})

    assert draw_report.main([str(kept)]) == 0

    html = (kept / "report.html").read_text()
    plots = re.findall(r'data-plot="([a-z-]+)"', html)
    assert plots[:4] == ["rates", "latency", "percentiles", "backlog"]
    assert (kept / "series.csv").exists()
    assert "durable settings (fsync=on, synchronous_commit=on)" in html
    assert not (tmp_path / "comparison.html").exists()


def test_page_of_limits_shows_figures_with_intervals() -> None:
    result = Result.read(Path(__file__).resolve().parents[2] / "results/2026-11-22/8-limits")

    shown = "".join(facts.figures(result.parts[0]))

    assert "<td>COPY BINARY, 1 connection</td>" in shown
    assert re.search(r"<td>265,799 \([\d,]+ to [\d,]+\) events/s</td>", shown)
    assert "append" in run_page.headline(result)


def test_page_of_queries_has_their_figures(tmp_path: Path) -> None:
    (kept,) = example.write(tmp_path, {"kept": example.queries_result()})

    assert draw_report.main([str(kept)]) == 0

    html = (kept / "report.html").read_text()
    assert "<td>pass-through</td>" in html
    assert "latency: age of a result" in html
    assert not (tmp_path / "comparison.html").exists()


def test_tables_of_a_kept_result_are_written(tmp_path: Path) -> None:
    (kept,) = example.write(tmp_path, {"kept": example.publish_result(1000)})
    data = json.loads((kept / "result.json").read_text())

    tables.write_missing(Result.read(kept))

    series = (kept / "series.csv").read_text().splitlines()
    assert series[0].split(",") == [name for name in data["series"] if name != "interval_seconds"]
    assert [line.split(",")[0] for line in series[1:]] == [str(t) for t in data["series"]["t"]]
    resources = (kept / "resources.csv").read_text().splitlines()
    assert resources[0].split(",") == ["t", *data["resources"]["columns"]]
    assert not (kept / "trials.csv").exists()


def test_existing_tables_are_kept(tmp_path: Path) -> None:
    (kept,) = example.write(tmp_path, {"kept": example.sweep_result("kept")})
    (kept / "resources.csv").write_text("measured")

    tables.write_missing(Result.read(kept))

    assert (kept / "resources.csv").read_text() == "measured"
    data = json.loads((kept / "result.json").read_text())
    assert len((kept / "trials.csv").read_text().splitlines()) == 1 + len(data["trials"])


def test_draw_report_nothing_to_draw_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example.write(tmp_path, {"limits": {"append": {}}, "broken": {}})
    (tmp_path / "broken" / "result.json").write_text("{")

    assert draw_report.main([str(tmp_path / "limits"), str(tmp_path / "broken")]) == 1
    assert draw_report.main([str(tmp_path / "empty")]) == 1

    errors = capsys.readouterr().err
    assert "is not the result of a run that is drawn" in errors
    assert "broken/result.json cannot be read" in errors
    assert "there is no result.json in" in errors


def test_comparison_omits_other_kinds_of_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example.write(
        tmp_path, {"a": example.sweep_result("a"), "b": example.sweep_result("b"), "limits": {"append": {}}}
    )

    assert draw_report.main(["--comparison-only", str(tmp_path)]) == 0

    assert "is not the result of a run that is drawn" in capsys.readouterr().err
    assert (tmp_path / "comparison.html").exists()
    assert not (tmp_path / "a/report.html").exists()


def test_label_shows_only_what_the_result_contains() -> None:
    data = example.phases_result()
    assert "same machine" in facts.label(result(data))

    elsewhere = {**data, "command": "runner run fan-out", "resources": None}
    assert "same machine" not in facts.label(result(elsewhere))

    weak = copy.deepcopy(data)
    weak["databases"][0]["synchronous_commit"] = "off"
    assert "NOT durable settings (fsync=on, synchronous_commit=off)" in facts.label(result(weak))

    replicated = copy.deepcopy(data)
    replicated["databases"][0]["synchronous_standby_names"] = "ANY 1 (a, b)"
    assert "commits wait for standbys (ANY 1 (a, b))" in facts.label(result(replicated))

    foreign = {**data, "databases": []}
    assert facts.label(result(foreign)).endswith("flushed to disk (fsync)")


def test_stress_shows_accepted_rate_and_recovery() -> None:
    html = facts.stress(result(example.stress_result()))

    assert "96.9%" in html
    assert "790 at its start, 801 at its end" in html
    assert "after 2 s" in html
    assert "of app" not in html


def test_sweep_has_a_row_for_each_number_of_events_and_compares_with_copy() -> None:
    swept = result(example.sweep_result("base"))

    shown = facts.trials([swept])

    assert trial_plots.sweep(swept) is not None
    assert shown.count("<tr>") == 5
    assert '<td class="number">1,000,000</td>' in shown
    assert shown.count("%</td>") == 1
    assert "<th>run</th>" not in shown


def test_search_shows_the_rates_and_the_limit() -> None:
    found = result(example.search_result())

    figure = trial_plots.search(found)

    assert figure is not None
    title = figure.axes[0].get_title(loc="left")
    assert title == "Latency (p99) by rate; the highest that held: 50k/s"
    assert facts.search(found).count("<tr>") == 5


def test_result_seconds_after_the_last_phase_belong_to_none() -> None:
    data = example.phases_result(phases=SHORT)
    data["series"]["phase"][-1] = None

    assert [(span.name, span.end) for span in result(data).spans] == [("warm-up", 0), ("steady", 3)]


def test_result_without_consumers_consumed_nothing_to_show() -> None:
    data = example.phases_result(phases=SHORT)
    for phase in data["phases"]:
        phase |= {"consume_rate": 0.0, "end_to_end_latency_ms": None}

    assert [measurement.consume_rate for measurement in result(data).measurements] == [None, None]


def test_result_spans_are_the_phases_on_the_time_axis() -> None:
    spans = result(example.phases_result(phases=SHORT)).spans

    assert [(span.name, span.start, span.end) for span in spans] == [("warm-up", -2, 0), ("steady", 0, 4)]


def test_result_missing_values_are_gaps() -> None:
    series = result(example.phases_result(phases=SHORT)).series

    assert series is not None
    assert series["consume_rate"].isna().tolist() == [True, False, False, False, False, False]


def test_result_other_kinds_of_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoReport, match="there is no"):
        Result.read(tmp_path)


def test_plots_without_data_are_omitted() -> None:
    nothing = result(
        {**example.phases_result(phases=SHORT), "series": None, "resources": None, "histograms": {}}
    )

    assert [name for name, _, draw in run_plots.PLOTS if draw(nothing) is not None] == []


def test_several_databases_are_one_line() -> None:
    data = example.phases_result(phases=SHORT)
    columns = data["resources"]["columns"]
    columns["database-1.cpu_cores"] = [2.0] * 6
    columns["database-0.cpu_cores"] = [1.0] * 6
    columns["database-1-a.cpu_cores"] = [0.5] * 6
    frame = result(data).resources
    assert frame is not None

    summed = run_plots._summed(frame, "cpu_cores")

    assert sorted(summed) == ["2 databases", "runner", "standby"]
    assert summed["2 databases"].tolist() == [3.0] * 6


def test_spectrum_is_that_of_the_values() -> None:
    points = spectrum(example.histogram(random.Random(1), middle_ms=2.0))

    assert points is not None
    middle = min(range(len(points.nines)), key=lambda index: abs(points.nines[index] - 0.30103))
    assert points.latency_ms[middle] == pytest.approx(2.0, rel=0.1)
    assert points.latency_ms == sorted(points.latency_ms)
    assert points.nines[-1] == pytest.approx(3.3, abs=0.01)


def test_spectrum_of_an_empty_histogram_is_none() -> None:
    assert spectrum(example.histogram(random.Random(1), middle_ms=1, count=0)) is None


def test_varied_number_is_the_rate_or_the_only_setting_that_differs() -> None:
    rates = [result(example.publish_result(rate), str(rate)) for rate in (1000, 2000, 3000)]
    consumers = [result(example.phases_result(f"c{n}", phases=SHORT, consumers=n)) for n in (1, 5, 10)]
    two = [
        result(example.phases_result(f"c{n}", phases=SHORT, consumers=n, streams=11 - n)) for n in (1, 5, 10)
    ]

    by_rate, by_consumers = varied_number(rates), varied_number(consumers)
    assert by_rate is not None
    assert by_rate.values == {"1000": 1000, "2000": 2000, "3000": 3000}
    assert by_consumers is not None
    assert (by_consumers.title, by_consumers.values) == ("consumers", {"c1": 1, "c5": 5, "c10": 10})
    assert varied_number(two) is None
    assert varied_number(rates[:2]) is None


def test_sweep_one_factor_differs_and_the_others_are_those_of_the_base() -> None:
    trials = all_trials(
        [
            result(example.sweep_result("base")),
            result(example.sweep_result("small", buffer=1024)),
            result(example.sweep_result("three", nodes=3)),
        ]
    )

    sizes = by_factor(trials, "buffer_size_bytes")
    assert sorted(sizes["buffer_size_bytes"].unique()) == [1024, 102_400]
    assert sizes["node_count"].unique().tolist() == [1]
    assert by_factor(trials, "cluster_type").empty


def test_latency_ranges_show_the_slowest_of_all_phases() -> None:
    slow = example.phases_result("slow", phases=example.STRESS)
    slow["phases"][2]["publish_latency_ms"] = {**example.LATENCY, "max": 5000.0}

    figure = latency_ranges([result(slow), result(example.phases_result("fast"))], "publish_latency_ms")

    assert figure is not None
    assert [axes.get_xlim()[1] > 5000 for axes in figure.axes] == [True] * 4


def test_throughput_omits_rates_that_all_sustained() -> None:
    def phases(most: float) -> example.Phases:
        return (("set-rate", True, 1000, 50_000, 5), ("fastest", True, 60_000, most, 5))

    runs = [
        result(example.phases_result(name, phases=phases(most)), name)
        for name, most in (("a", 50_000), ("b", 9_000))
    ]

    for shown, titles in ((runs, ["fastest"]), (runs[:1] * 2, ["set-rate", "fastest"])):
        figure = throughput(shown)
        assert figure is not None
        assert [re.findall(r"phase (\S+);", axes.get_title(loc="left"))[0] for axes in figure.axes] == titles


def test_spread_moves_labels_apart_and_keeps_them_inside() -> None:
    assert spread([10, 50], 12, 100) == [10, 50]
    assert spread([10, 12, 14], 12, 100) == [10, 22, 34]
    assert spread([95, 99], 12, 100) == [88, 100]
    assert spread([], 12, 100) == []


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.123, "0.12"), (5, "5"), (12.34, "12.3"), (999, "999"), (1000, "1k")]
)
def test_short_numbers(value: float, text: str) -> None:
    assert short(value) == text


def test_units() -> None:
    assert [milliseconds(value) for value in (0, 0.05, 0.5, 15, 1500)] == [
        "0",
        "50 µs",
        "0.5 ms",
        "15 ms",
        "1.5 s",
    ]
    assert [size(value) for value in (100, 1024, 102_400, 1 << 20)] == ["100 B", "1 KiB", "100 KiB", "1 MiB"]


def test_table_omits_empty_columns() -> None:
    shown = page.table(["a", "b", "c"], [[1, None, "<x>"], [None, None, "y"]])

    assert "<th>b</th>" not in shown
    assert "&lt;x&gt;" in shown
    assert '<td class="number">1</td>' in shown
