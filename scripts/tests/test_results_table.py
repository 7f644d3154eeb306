import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import results_table
from cost_tables import costs
from results_table import ROOT, markdown, overview, read, replace, summary, table
from tests import example_results as example


def sets() -> list[Path]:
    """The kept sets, newest first."""
    return sorted((folder for folder in (ROOT / "results").glob("20*") if folder.is_dir()), reverse=True)


def run(**changes: object) -> dict[str, Any]:
    latency = {"p50": 0.51, "p99": 1234.56}
    return {
        "command": "SHARDS=1 bash scripts/run_local_benchmark.bash",
        "passed": True,
        "publish_rate": 1000.0,
        "consume_rate": 12345.6,
        "publish_latency_ms": latency,
        "end_to_end_latency_ms": latency,
        "cpus": 2,
        "postgres_version": "18.6",
        "fsync": "on",
        "synchronous_commit": "on",
        "java_version": "25",
        "os": "Linux",
        "git_commit": "0123456789",
        **changes,
    }


def test_table_has_a_row_for_each_run_and_the_machine() -> None:
    lines = table([run()]).splitlines()

    assert lines[2] == "| `SHARDS=1` | 12,346/s | 0.5 / 1,234.6 ms | 0.5 / 1,234.6 ms | one run |"
    assert "`fsync=on`, `synchronous_commit=on`" in lines[-1]
    assert lines[-1].endswith("commit 01234567.")


def test_table_several_runs_of_a_command_are_a_median_with_its_interval() -> None:
    rates = (5000, 3000, 4000, 1000, 2000)
    text = table(
        [
            run(),
            *(
                run(command="bash scripts/run_local_benchmark.bash", consume_rate=rate, rate_asked=1)
                for rate in rates
            ),
        ]
    )

    lines = text.splitlines()
    assert lines[2].startswith(
        "| default | 3,000 (1,000–5,000)/s | 0.5 (0.5–0.5) / 1,234.6 (1,234.6–1,234.6) ms"
    )
    assert lines[3].startswith("| `SHARDS=1` | 12,346/s |")
    assert lines[2].endswith(" | 5 |")


def test_main_rounds_of_the_main_workload_are_rows_of_the_table(tmp_path: Path) -> None:
    for number in (1, 2):
        folder = tmp_path / f"main/round-{number}/slow"
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(run(workload="main", kind="publish")))

    assert "| `SHARDS=1` | 12,346 (12,346–12,346)/s |" in markdown(tmp_path, tmp_path)


def test_table_different_settings_shows_all() -> None:
    assert "`fsync=off, on`" in table([run(), run(fsync="off")])


def test_table_different_machines_have_a_table_each() -> None:
    text = table([run(), run(os="another kernel"), run()])

    assert text.count("| command |") == 2
    assert text.count("CPUs shared by databases") == 2
    assert [line.count("another kernel") for line in text.splitlines() if "CPUs" in line] == [0, 1]


def test_table_run_that_did_not_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="did not pass"):
        table([run(passed=False)])


def test_replace_keeps_the_surrounding_text() -> None:
    readme = f"before\n{results_table.BEGIN}\nold\n{results_table.END}\nafter\n"

    assert replace(readme, "new") == readme.replace("old", "new")


def test_main_empty_folder_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        results_table.main([str(tmp_path)])

    assert ended.value.code == 2
    assert "there is no such result.json" in capsys.readouterr().err


def test_main_writes_the_table_into_the_file(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "result.json").write_text(json.dumps(run()))
    readme = tmp_path / "README.md"
    readme.write_text(f"{results_table.BEGIN}\n{results_table.END}\n")

    assert results_table.main([str(tmp_path), "--readme", str(readme)]) == 0

    assert "12,346/s" in readme.read_text()


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        ("README.md", lambda: summary(sets())),
        ("docs/benchmarks.md", lambda: overview(sets())),
        ("docs/performance.md", lambda: costs([result for one in sets() for result in read(one)])),
        *((f"results/{one.name}/README.md", lambda one=one: markdown(one, one)) for one in sets()),
    ],
)
def test_pages_show_kept_results(page: str, tables: Callable[[], str]) -> None:
    text = (ROOT / page).read_text()

    assert replace(text, tables()) == text


def test_workloads_have_a_table_each_with_links_to_their_runs(tmp_path: Path) -> None:
    consumer = example.phases_result()
    seconds = len(consumer["series"]["t"])
    cores = {"runner": 0.25, "database-0": 1.0, "database-1": 0.5}
    columns = {f"{name}.cpu_cores": [used] * seconds for name, used in cores.items()}
    example.write(
        tmp_path / "set",
        {
            "fan-out/1-consumer": {**consumer, "passed": False, "resources": {"columns": columns}},
            "rate/slow": example.publish_result(1000) | {"workload": "rate"},
        },
    )

    lines = markdown(tmp_path / "set", tmp_path).splitlines()

    # Results of the main job have no start time.
    assert lines[0] == "### rate"
    assert lines[4].startswith("| [slow](set/rate/slow) | 1,000/s | 1,000/s |")
    assert lines[4].endswith("| 0 / 0 / 0 | one run | yes |")
    assert lines[6:8] == ["### fan-out", "1, 5 and 10 consumers of one stream."]
    assert lines[11] == (
        "| [1-consumer](set/fan-out/1-consumer) | eventsql"
        " | flushed to disk (fsync); per key; at least once | 1,000/s | 1,000/s | 0.6 / 4.2 ms"
        " | 0.6 / 4.2 ms | 4.20 ms | 1.6 / 8.0 ms | database 1.50, runner 0.25 | 0 / 0 / 0"
        " | one run | **no** |"
    )
    assert lines[-1] == (
        "2 CPUs, Linux, Java 25.0.3, PostgreSQL 18.6 with `fsync=on`, `synchronous_commit=on`;"
        " commit 01234567."
    )


def test_workloads_stress_has_a_table_of_its_own(tmp_path: Path) -> None:
    example.write(tmp_path, {"a": example.stress_result("a"), "b": example.search_result()})

    text = markdown(tmp_path, tmp_path)

    assert "| a | 97% | 80% | runner 790 / 801 MB | 2 s |" in text
    assert "| [b](b) | p99 of publish 15 ms | 50,000/s | 4 | one run | yes |" in text
    assert overview([tmp_path]) == ""


def test_workloads_only_the_named_ones(tmp_path: Path) -> None:
    example.write(tmp_path, {"a": example.sweep_result("base"), "b": example.blast_result(trials=3)})

    sweep = markdown(tmp_path, tmp_path, ["sweep"])

    assert sweep.startswith("### sweep")
    assert "| [a](a) | 1,000,000 | 10 |" in sweep
    assert "### blast" not in sweep
    assert "| [b](b) | 3 | 0 |" in markdown(tmp_path, tmp_path, ["blast"])


def test_queries_have_a_row_for_each_way_to_read(tmp_path: Path) -> None:
    example.write(tmp_path, {"a": example.queries_result()})

    lines = markdown(tmp_path, tmp_path).splitlines()

    assert lines[0] == "### queries"
    assert lines[3] == (
        "| run | query | read | of the consumer | of Flink's Kafka source"
        " | age of results at 1,000/s, p50 / p99 | runs | passed |"
    )
    assert lines[5] == (
        "| [a](a) | the library's consumer | 1,000,000 (800,000–1,100,000)/s |  |  |  | one run | yes |"
    )
    assert lines[6] == (
        "| [a](a) | pass-through | 700,000 (600,000–800,000)/s | 0.75 (0.70–0.80) | 1.20 (1.10–1.40)"
        " | 12 / 41 ms | one run | yes |"
    )
    assert overview([tmp_path]) == ""


def test_queries_without_kafka_have_no_column_for_it(tmp_path: Path) -> None:
    example.write(tmp_path, {"a": example.queries_result(kafka=False)})

    assert "Kafka" not in markdown(tmp_path, tmp_path)


def test_overview_has_the_comparison_of_systems(tmp_path: Path) -> None:
    phases: example.Phases = (
        ("warm-up", False, 0, 20_000, 5),
        ("single", True, 0, 20_000, 5),
        ("latency", True, 1000, 20_000, 5),
    )
    slow = example.phases_result("slow", "compare", phases)
    runs = {"a": example.phases_result("a", "compare", phases), "b": {**slow, "passed": False}}
    example.write(tmp_path, {**runs, "c": example.phases_result()})

    lines = overview([tmp_path]).splitlines()

    assert lines[2] == (
        "| run | settings | is acknowledged when | single | publish to handler at 1,000/s, p50 / p99 | runs |"
        " passed |"
    )
    assert lines[4].startswith("| a | defaults | flushed to disk (fsync) | ")
    assert lines[4].endswith("/s | 1.6 / 8.0 ms | one run | yes |")
    assert lines[5].endswith("| **no** |")
    assert len(lines) == 8  # with the machine


def test_overview_has_each_comparison_and_the_summary_the_largest(tmp_path: Path) -> None:
    phases: example.Phases = (("single", True, 0, 20_000, 5),)
    all_systems, newer = tmp_path / "1", tmp_path / "2"
    example.write(all_systems, {name: example.phases_result(name, "compare", phases) for name in ("a", "b")})
    example.write(newer, {"c": example.phases_result("c", "compare", phases)})

    rows = [line for line in overview([newer, all_systems]).splitlines() if line.startswith("| ")]

    assert [row.split(" ")[1] for row in rows] == ["run", "a", "b", "run", "c"]
    assert "| c |" not in summary([newer, all_systems])


COMPARED: example.Phases = (("single", True, 0, 20_000, 5), ("latency", True, 1000, 20_000, 5))


def compared(rate: float) -> dict[str, Any]:
    """A run of the comparison that published at the rate."""
    result = example.phases_result("a", "compare", COMPARED, driver_options={"lanes": "2"})
    single, latency = result["phases"]
    phases = [{**single, "publish_rate": rate, "consume_rate": rate / 2}, latency]
    return {**result, "phases": phases}


def write_rounds(folder: Path, *results: dict[str, Any]) -> None:
    example.write(folder, {f"round-{number}/a": result for number, result in enumerate(results)})


def test_rounds_are_a_median_with_its_interval(tmp_path: Path) -> None:
    write_rounds(tmp_path, *(compared(rate) for rate in (100, 300, 200, 500, 400)))

    row = overview([tmp_path]).splitlines()[4]

    assert row.startswith("| a | `lanes=2` | flushed to disk (fsync) | 300 (100–500)/s | ")
    assert row.endswith(" | 5 | yes |")


def test_interrupted_round_does_not_count(tmp_path: Path) -> None:
    part = {**compared(900), "phases": compared(900)["phases"][:1], "interrupted": True, "passed": False}
    write_rounds(tmp_path, compared(100), compared(300), part)

    row = overview([tmp_path]).splitlines()[4]

    assert " 200 (100–300)/s " in row
    assert row.endswith(" | 2 | yes |")


def test_summary_refuses_a_run_that_did_not_pass(tmp_path: Path) -> None:
    write_rounds(tmp_path, compared(100), {**compared(200), "passed": False})

    with pytest.raises(ValueError, match="a did not pass"):
        summary([tmp_path])


def test_interrupted_schedule_has_a_row_of_what_was_measured(tmp_path: Path) -> None:
    interrupted = held("a", 1.0, 8.0)
    interrupted["settings"]["phases"].append({"name": "recovery", "rate": 2000, "seconds": 20})
    example.write(tmp_path, {"a": {**interrupted, "interrupted": True}})

    assert "| a | defaults | 20 / 60 instead of 600 / 1,800 | 100.00% |" in markdown(
        tmp_path, tmp_path, ["hold-still"]
    )


def test_machines_never_share_a_table(tmp_path: Path) -> None:
    one, other = compared(100), compared(200)
    other["machine"] = {**other["machine"], "os": "another kernel"}
    write_rounds(tmp_path, one, other)

    lines = overview([tmp_path]).splitlines()

    assert [line.split(" | ")[3] for line in lines if line.startswith("| a ")] == ["100/s", "200/s"]
    assert sum(line.startswith("| run ") for line in lines) == 2


def test_workloads_machines_never_share_a_table_and_rounds_are_named(tmp_path: Path) -> None:
    one, other = example.phases_result(), example.phases_result()
    other["machine"] = {**other["machine"], "os": "another kernel"}
    write_rounds(tmp_path, one, other)

    text = markdown(tmp_path, tmp_path)

    assert text.count("| run |") == 2
    assert "On 2 CPUs, Linux:\n\n| run |" in text
    assert "On 2 CPUs, another kernel:\n\n| run |" in text
    assert "| [a, round 0](round-0/a) |" in text


def test_workloads_have_ratios_to_the_limits_measured_with_them(tmp_path: Path) -> None:
    example.write(tmp_path, {"a": example.phases_result()})
    limits = {"fsyncs_per_second": 400, "loopback_round_trip_micros": 16, "copy_rows_per_second": None}
    (tmp_path / "a/plain.json").write_text(json.dumps({"programs": [], "limits": limits}))

    lines = markdown(tmp_path, tmp_path).splitlines()

    assert lines[3].endswith(
        "| p50 to handler in loopback round trips | events per flush of the disk | runs | passed |"
    )
    assert lines[5].endswith("| 0 / 0 / 0 | 100 | 2.5 | one run | yes |")


def test_plain_programs_and_limits_stand_beside(tmp_path: Path) -> None:
    write_rounds(tmp_path, compared(800), compared(1600))
    for number, rate in enumerate((1000, 2000)):
        plain = {
            "programs": [{"phase": "single", "publish_rate": rate, "consume_rate": rate}],
            "limits": {
                "fsyncs_per_second": 400,
                "loopback_round_trip_micros": 16,
                "copy_rows_per_second": 4000,
            },
        }
        (tmp_path / f"round-{number}/a/plain.json").write_text(json.dumps(plain))

    text = overview([tmp_path])

    assert "400 flushes of 8 KiB/s; 16 µs for a loopback round trip; 4,000 rows/s by binary COPY" in text
    row = next(line for line in text.splitlines() if line.startswith("| a | 0.80"))
    assert row.startswith(
        "| a | 0.80 (0.80–0.80) | **0.40 (0.40–0.40)** | 3.0 (2.0–4.0) | 0.30 (0.20–0.40) | "
    )
    assert "Bold: tuned, but below 80% of its plain program." in text


def held(run: str, consumed: float, p99: float) -> dict[str, Any]:
    """A run next to an old snapshot that consumed this share, with this p99."""
    phases: example.Phases = (("clean", True, 2000, 9000, 20), ("held", True, 2000, 9000, 60))
    result = example.phases_result(run, "hold-still", phases)
    series, asked = result["series"], result["settings"]["phases"]
    asked[0]["full_seconds"] = 600
    asked[1] |= {"held_snapshot": True, "full_seconds": 1800}
    series["publish_rate"] = [2000.0] * 80
    series["consume_rate"] = [2000.0] * 20 + [2000.0 * consumed] * 60
    series["lag"] = [3.0] * 80
    result["resources"]["columns"] |= {
        "shard0.dead_tuples": [10.0] * 20 + [5000.0] * 60,
        "shard0.database_mb": [20.0] * 80,
    }
    result["phases"][1]["end_to_end_latency_ms"] = {**example.LATENCY, "p99": p99}
    return result


def test_a_shortened_schedule_has_rows_of_its_own_below(tmp_path: Path) -> None:
    whole = held("a", 1.0, 9.0)
    for phase in whole["settings"]["phases"]:
        phase |= {"seconds": phase["full_seconds"]}
    example.write(
        tmp_path,
        {"round-1/a": held("a", 1.0, 8.0), "round-2/a": held("a", 1.0, 8.0), "whole/a": whole},
    )

    lines = markdown(tmp_path, tmp_path, ["hold-still"]).splitlines()

    rows = [line for line in lines if line.startswith("| a | defaults | ")]
    assert len(rows) == 2
    assert rows[0].startswith("| a | defaults | 600 / 1,800 | 100.00% |")
    assert rows[1].startswith("| a | defaults | 20 / 60 instead of 600 / 1,800 | 100.00% (100.00%–100.00%) |")


def test_held_snapshots_have_a_table_that_marks_what_is_missed(tmp_path: Path) -> None:
    lost = held("b", 0.9, 40.0)
    lost["consumers"][0]["events_lost"] = 1200
    example.write(
        tmp_path,
        {"round-1/a": held("a", 1.0, 8.0), "round-2/a": held("a", 1.0, 9.0), "round-1/b": lost},
    )

    lines = markdown(tmp_path, tmp_path, ["hold-still"]).splitlines()

    heading = next(
        number for number, line in enumerate(lines) if line.startswith("Next to an old snapshot, on")
    )
    assert lines[heading + 2] == (
        "| run | settings | seconds | consumed while held | p99 publish to handler, clean / held"
        " | held / clean | backlog at their ends | dead rows at their ends | database MB at their ends"
        " | left at the end | runs | passed |"
    )
    assert lines[heading + 4] == (
        "| a | defaults | 20 / 60 instead of 600 / 1,800 | 100.00% (100.00%–100.00%)"
        " | 8.0 (8.0–8.0) / 8.5 (8.0–9.0) ms | 1.06 (1.00–1.12) | 3 (3–3) / 3 (3–3)"
        " | 10 (10–10) / 5,000 (5,000–5,000) | 20 (20–20) / 20 (20–20) | 0 (0–0) | 2 | yes |"
    )
    assert lines[heading + 5] == (
        "| b | defaults | 20 / 60 instead of 600 / 1,800 | **90.00%** | 8.0 / 40.0 ms | **5.00** | 3 / 3"
        " | 10 / 5,000 | 20 / 20 | **1,200** | one run | yes |"
    )
