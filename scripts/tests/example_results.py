"""Invented results in the format of real ones, for tests of drawing. Nothing here was measured."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hdrh.histogram import HdrHistogram

LATENCY = {"p50": 0.6, "p90": 1.2, "p99": 4.2, "p999": 9.9, "max": 31.0, "mean": 0.8}
GUARANTEES = {
    "name": "eventsql",
    "version": "PostgreSQL 18.6",
    "durability": "flushed to disk (fsync)",
    "order": "per key",
    "delivery": "at least once",
}

Phases = Sequence[tuple[str, bool, float, float, int]]
# Name, whether it is measured, offered rate, highest rate, seconds.
STEADY: Phases = (("warm-up", False, 1000, 50_000, 5), ("steady", True, 1000, 50_000, 60))
STRESS: Phases = (
    ("warm-up", False, 1000, 50_000, 5),
    ("sustainable", True, 48_000, 48_000, 30),
    ("overload", True, 240_000, 46_500, 120),
    ("recovery", True, 24_000, 48_000, 30),
)


def histogram(random_source: random.Random, middle_ms: float, count: int = 2_000) -> str:
    values = HdrHistogram(1, 3_600_000_000, 3)
    for _ in range(count):
        values.record_value(max(1, int(1000 * middle_ms * random_source.lognormvariate(0, 0.7))))
    encoded = values.encode()
    return encoded.decode() if isinstance(encoded, bytes) else str(encoded)


def phases_result(
    run: str = "1-consumer", workload: str = "fan-out", phases: Phases = STEADY, **settings: object
) -> dict[str, Any]:
    """Of `runner run`, with a series and resources that follow the phases."""
    source = random.Random(run)
    seconds = [(phase, offset) for phase in phases for offset in range(phase[4])]
    unmeasured = sum(phase[4] for phase in phases if not phase[1])
    series: dict[str, list[Any]] = {name: [] for name in SERIES_COLUMNS}
    resources: dict[str, list[float]] = {name: [] for name in RESOURCE_COLUMNS}
    size = 20.0
    for second, ((name, _, offered, most, _), _) in enumerate(seconds):
        rate = min(offered, most) * source.uniform(0.97, 1.03)
        load = rate / 50_000
        size += rate * 0.0004
        slow = 60.0 if offered > most else 1.0
        row: dict[str, Any] = {
            "t": second - unmeasured,
            "phase": name,
            "offered_rate": offered,
            "publish_rate": rate,
            "consume_rate": rate * source.uniform(0.98, 1.02) if second else None,
            "failed": 0,
            "missed": max(0.0, offered - most),
            "in_flight": 100_000 if offered > most else 20 * source.uniform(0.5, 2),
            "lag": 900 * load * source.lognormvariate(0, 0.5),
            "publish_p50_ms": 0.7 * slow * source.lognormvariate(0, 0.1),
            "publish_p99_ms": 4 * slow * source.lognormvariate(0, 0.3),
            "publish_max_ms": 9 * slow * source.lognormvariate(0, 0.6),
            "end_to_end_p50_ms": 1.6 * slow * source.lognormvariate(0, 0.1),
            "end_to_end_p99_ms": 8 * slow * source.lognormvariate(0, 0.3),
        }
        for column, value in row.items():
            series[column].append(value)
        used = {
            "runner.cpu_cores": 0.7 * load + source.uniform(0, 0.05),
            "runner.rss_mb": 700 + 100 * load,
            "runner.heap_mb": 200 + 300 * source.random(),
            "database-0.cpu_cores": 1.1 * load + source.uniform(0, 0.05),
            "database-0.rss_mb": 260 + second,
            "machine.disk_read_mb_per_second": 0.0,
            "machine.disk_write_mb_per_second": 30 * load * source.uniform(0.7, 1.5),
            "shard0.wal_mb_per_second": 24 * load * source.uniform(0.9, 1.1),
            "shard0.database_mb": size,
            "shard0.dead_tuples": (second % 45) * 700 * load,
            "shard0.autovacuums": 12 + second // 45,
            "shard0.checkpoints": 1 + second // 60,
            "shard0.commits_per_second": 900 * load,
        }
        for column, value in used.items():
            resources[column].append(value)
    return {
        "format": 2,
        "workload": workload,
        "run": run,
        "run_id": "1ab7ad49",
        "kind": "phases",
        "description": "1, 5 and 10 consumers of one stream.",
        "command": f"bash scripts/run_workload.bash {workload} --only {run}",
        "git_commit": "0123456789abcdef",
        "started_at": "2026-11-21T10:00:00Z",
        "finished_at": "2026-11-21T10:01:10Z",
        "passed": True,
        "interrupted": False,
        "problems": [],
        "settings": {
            "events": {"bytes": 0, "keys": 0},
            "streams": 1,
            "consumers": 1,
            "phases": [
                {"name": name, "rate": rate, "seconds": length} for name, _, rate, _, length in phases
            ],
            **settings,
        },
        "driver": GUARANTEES,
        "machine": {"cpus": 2, "memory_mb": 24000, "os": "Linux", "java_version": "25.0.3"},
        "databases": [
            {
                "name": "shard0",
                "version": "18.6",
                "fsync": "on",
                "synchronous_commit": "on",
                "synchronous_standby_names": "",
                "clock_offset_ms": 0.1,
            }
        ],
        "phases": [_phase(*phase) for phase in phases],
        "consumers": [
            {
                "stream": "s",
                "consumer": "c0",
                "events_seen": 60_000,
                "events_lost": 0,
                "events_duplicated": 0,
                "order_violations": 0,
            }
        ],
        "series": {"interval_seconds": 1, **series},
        "resources": {"interval_seconds": 1, "t": series["t"], "columns": resources},
        "histograms": {
            "publish_latency_micros": histogram(source, 0.7),
            "end_to_end_micros": histogram(source, 1.6),
        },
    }


SERIES_COLUMNS = (
    *("t", "phase", "offered_rate", "publish_rate", "consume_rate", "failed", "missed", "in_flight", "lag"),
    *("publish_p50_ms", "publish_p99_ms", "publish_max_ms", "end_to_end_p50_ms", "end_to_end_p99_ms"),
)
RESOURCE_COLUMNS = (
    *("runner.cpu_cores", "runner.rss_mb", "runner.heap_mb"),
    *("database-0.cpu_cores", "database-0.rss_mb"),
    *("machine.disk_read_mb_per_second", "machine.disk_write_mb_per_second"),
    *("shard0.wal_mb_per_second", "shard0.database_mb", "shard0.dead_tuples", "shard0.autovacuums"),
    *("shard0.checkpoints", "shard0.commits_per_second"),
)


def _phase(name: str, measured: bool, offered: float, most: float, seconds: int) -> dict[str, Any]:
    rate = min(offered, most)
    return {
        "name": name,
        "measured": measured,
        "started_at_micros": 0,
        "seconds": seconds,
        "offered_rate": offered,
        "events_sent": int(rate * seconds),
        "events_published": int(rate * seconds),
        "events_failed": 0,
        "events_missed": int(max(0, offered - most) * seconds),
        "errors": [],
        "publish_rate": rate,
        "publish_mb_per_second": rate * 0.00023,
        "consume_rate": rate,
        "publish_latency_ms": LATENCY,
        "service_latency_ms": LATENCY,
        "schedule_delay_ms": LATENCY,
        "end_to_end_latency_ms": {**LATENCY, "p50": 1.6, "p99": 8.0},
    }


def stress_result(run: str = "stress") -> dict[str, Any]:
    return {
        **phases_result(run, "stress", STRESS),
        "stress": {
            "overload": "overload",
            "accepted_of_maximum": 0.969,
            "missed_share": 0.8,
            "resident_mb": {"runner": {"start": 790.5, "end": 801.0}, "app": {"start": None, "end": None}},
            "recovery_seconds": 2,
        },
    }


def search_result() -> dict[str, Any]:
    tried = ((1000, 2.0, True), (200_000, 900.0, False), (50_000, 9.0, True), (60_000, 21.0, False))
    return {
        **phases_result("maximum", "maximum"),
        "kind": "search",
        "settings": {"search": {"latency": "publish", "percentile": 99, "limit_ms": 15}},
        "search": {
            "best_rate": 50_000,
            "trials": [{"rate": rate, "latency_ms": latency, "held": held} for rate, latency, held in tried],
        },
    }


def blast_result(size: int = 8192, trials: int = 257) -> dict[str, Any]:
    source = random.Random(size)
    rows = []
    for trial in range(1, trials + 1):
        rate = 60_000 * 8192 / (size + 4096) * source.lognormvariate(0, 0.15)
        rows.append(
            {
                "trial": trial,
                "duration_seconds": 10_000 / rate,
                "events": 10_000,
                "data_bytes": 10_000 * size,
                "failures": 0,
                "throughput_events_per_second": rate,
                "bandwidth_mb_per_second": rate * size / 1e6,
                "latency_mean_ms": 4_000_000 / rate,
                "latency_stddev_ms": 12.0,
            }
        )
    return {
        **_without_phases(f"{size}-bytes", "blast", "blast"),
        "settings": {"events": {"bytes": size, "keys": 0}, "blast": {"messages": 10_000, "repeats": trials}},
        "trials": rows,
    }


def sweep_result(run: str, *, buffer: int = 102_400, nodes: int = 1, cluster: str = "none") -> dict[str, Any]:
    source = random.Random(run)
    rows = [
        {
            "cluster_type": cluster,
            "node_count": nodes,
            "event_type": "account_created",
            "buffer_type": "waiting",
            "buffer_size_bytes": buffer,
            "event_count": count,
            "trial": trial,
            "duration_ms": (1.5 + count / (20 + buffer / 2000)) * source.lognormvariate(0, 0.2),
            "measured_on": "2026-11-21",
        }
        for count in (1, 100, 10_000, 1_000_000)
        for trial in range(1, 11)
    ]
    return {
        **_without_phases(run, "sweep", "sweep"),
        "settings": {"sweep": {"buffer_bytes": buffer, "trials": 10}},
        "trials": rows,
        "copy_limit": {"events": 1_000_000, "duration_ms": 3400.0},
    }


def queries_result(kafka: bool = True) -> dict[str, Any]:
    """Of run_queries.bash: the library's consumer and one query."""

    def figure(*rounds: float, unit: str = "") -> dict[str, Any]:
        return {"value": sorted(rounds)[len(rounds) // 2], "unit": unit, "rounds": list(rounds)}

    query = {"events_per_second": figure(700_000, 600_000, 800_000, unit="events/s")}
    query["vs consumer"] = figure(0.7, 0.75, 0.8)
    if kafka:
        query["vs Kafka source"] = figure(1.4, 1.2, 1.1)
    consumer = {"events_per_second": figure(1_000_000, 800_000, 1_100_000, unit="events/s")}
    latency = {
        "results": {"value": 5000, "unit": ""},
        "p50_ms": {"value": 12, "unit": "ms"},
        "p99_ms": {"value": 41, "unit": "ms"},
    }
    return {
        **_without_phases("queries", "queries", "queries"),
        "parts": [
            {
                "name": "throughput",
                "title": "how many stored events are read per second, in turns",
                "tables": [
                    {
                        "name": "way",
                        "rows": [
                            {"name": "the library's consumer", "figures": consumer},
                            {"name": "pass-through", "figures": query},
                        ],
                    }
                ],
            },
            {
                "name": "latency",
                "title": "age of a result",
                "tables": [
                    {
                        "name": "",
                        "rows": [
                            {
                                "name": "published",
                                "figures": {"value": {"value": 1000, "unit": "events/s"}},
                            }
                        ],
                    },
                    {"name": "query", "rows": [{"name": "pass-through", "figures": latency}]},
                ],
            },
        ],
    }


def _without_phases(run: str, workload: str, kind: str) -> dict[str, Any]:
    result = phases_result(run, workload)
    for name in ("series", "histograms", "consumers", "resources"):
        del result[name]
    return {**result, "kind": kind, "phases": [], "description": "Made up."}


def publish_result(rate: int, databases: int = 1) -> dict[str, Any]:
    """Of the main job."""
    made = phases_result(f"{databases}-{rate}", phases=(("measured", True, rate, 25_000 * databases, 20),))
    slow = 1 + rate / 5000
    return {
        "format": 2,
        "kind": "publish",
        "workload": "rate",
        "run": "1ab7ad49",
        "passed": True,
        "problems": [],
        "interrupted": False,
        "shards": databases,
        "rate_asked": rate,
        "settings": {"load": {"events_per_second": rate // databases}},
        "events_lost": 0,
        "events_duplicated": 0,
        "order_violations": 0,
        "publish_errors": 0,
        "publish_rate": float(rate),
        "consume_rate": float(rate),
        **{
            name: {percentile: value * slow for percentile, value in LATENCY.items()}
            for name in (
                "publish_latency_ms",
                "service_latency_ms",
                "end_to_end_latency_ms",
                "schedule_delay_ms",
            )
        },
        "fsync": "on",
        "synchronous_commit": "on",
        "postgres_version": "18.6",
        "java_version": "25.0.3",
        "os": "Linux",
        "cpus": 2,
        "git_commit": "0123456789abcdef",
        "command": f"SHARDS={databases} EVENTS_RATE={rate} bash scripts/run_local_benchmark.bash",
        "series": made["series"],
        "resources": made["resources"],
        "histograms": made["histograms"],
    }


def write(parent: Path, results: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """A folder for each result."""
    folders = []
    for name, result in results.items():
        folder = parent / name
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(json.dumps(result))
        folders.append(folder)
    return folders
