#!/usr/bin/env python3
"""Rewrites results of the limits of the first format, a structure for each part, as parts with named figures.

Usage: python3 scripts/convert_limits_results.py RESULT...
"""

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

LATENCIES = ("p50", "p99", "max")
Tables = dict[str, dict[str, dict[str, Any]]]


def figure(value: float, unit: str = "", rounds: list[float] | None = None) -> dict[str, Any]:
    # Three rounds: the bootstrap interval of their median is their range.
    interval = {"low": min(rounds), "high": max(rounds), "rounds": rounds} if rounds else {}
    return {"value": value, "unit": unit, **interval}


def rate(tables: Tables, old: dict[str, Any], table: str = "rates") -> dict[str, Any]:
    row = tables.setdefault(table, {}).setdefault(old["name"], {})
    row["events_per_second"] = figure(old["events_per_second"], "events/s", old["rounds_events_per_second"])
    row["events_per_call"] = figure(old["events_per_call"])
    return row


def ratio(of: dict[str, Any], to: dict[str, Any]) -> dict[str, Any]:
    pairs = zip(of["rounds_events_per_second"], to["rounds_events_per_second"], strict=True)
    rounds = [one / other for one, other in pairs]
    return figure(median(rounds), "", rounds)


def append(old: dict[str, Any], tables: Tables) -> None:
    tables[""] = {
        "event_bytes_mean": {"value": figure(old["event_bytes_mean"], "bytes")},
        "copy_events_per_commit": {"value": figure(old["copy_events_per_commit"])},
    }
    for copy in old["copy"]:
        rate(tables, copy)
    for way in old["library"]:
        row = rate(tables, way)
        for copy, shown in zip(old["copy"], way["ratio_to_copy"], strict=True):
            # What the report of that time showed: the ratio of the medians.
            row[f"vs {copy['name']}"] = {**ratio(way, copy), "value": shown}


def read(old: dict[str, Any], tables: Tables) -> None:
    tables[""] = {"events": {"value": figure(old["events"])}}
    for state in ("never_analyzed", "analyzed"):
        for segment in old[state]["segments"]:
            row = tables.setdefault("segment", {}).setdefault(f"{segment['segment']}, {state}", {})
            row["reltuples"] = figure(segment["reltuples"])
            row["bytes"] = figure(segment["bytes"], "bytes")
        for page in old[state]["pages"]:
            row = tables.setdefault("pages", {}).setdefault(page["name"], {})
            row[state] = figure(page["events_per_second"], "events/s", page["rounds_events_per_second"])
            row["events_per_call"] = figure(page["events_per_call"])
        slowest = tables.setdefault("slowest page size of at least 1000 / fastest", {})
        slowest[state] = {"value": figure(old[state]["slowest_large_to_fastest"])}


def handlers(old: dict[str, Any], tables: Tables) -> None:
    tables[""] = {
        "handler_ms": {"value": figure(old["handler_ms"], "ms")},
        "keys": {"value": figure(old["keys"])},
        "target_events_per_second": {"value": figure(old["bar_events_per_second"], "events/s")},
        "speedup_by_key": {"value": figure(old["parallel_to_sequential"])},
    }
    for run in (old["sequential"], old["parallel"]):
        keys = run["key_concurrency"]
        tables.setdefault("handlers", {})["sequential" if keys == 1 else f"{keys} keys in parallel"] = {
            "events": figure(run["events"]),
            "events_per_second": figure(run["events_per_second"], "events/s"),
            "lost": figure(run["events_lost"]),
            "duplicated": figure(run["events_duplicated"]),
            "out_of_order": figure(run["order_violations"]),
        }


def transactions(old: dict[str, Any], tables: Tables) -> None:
    for way in ("plain_row", "publish", "relayed"):
        rate(tables, old[way])
    compared = {**ratio(old["publish"], old["plain_row"]), "value": old["publish_to_plain_row"]}
    tables["ratios"] = {"publish / plain row": {"value": compared}}


def outbox(old: dict[str, Any], tables: Tables) -> None:
    for kind in ("without", "with"):
        run = old[kind]
        for number, tenth in enumerate(run["tenths"]):
            row = tables.setdefault("tenths", {}).setdefault(f"tenth {number + 1}", {})
            row[f"{kind}_p99_ms"] = figure(tenth["plain_latency_ms"]["p99"], "ms")
            row[f"{kind}_bytes"] = figure(tenth["outbox_bytes_max"], "bytes")
            row[f"{kind}_events"] = figure(tenth["outbox_events_max"])
        runs = tables.setdefault("runs", {})
        values = {
            "direct_events": figure(run["plain_events"]),
            "direct_p50_ms": figure(run["plain_latency_ms"]["p50"], "ms"),
            "direct_p99_ms": figure(run["plain_latency_ms"]["p99"], "ms"),
            "transactions_p50_ms": figure(run["transaction_latency_ms"]["p50"], "ms"),
            "transactions_p99_ms": figure(run["transaction_latency_ms"]["p99"], "ms"),
            "committed_events": figure(run["transactions"]),
            "stored_events": figure(run["events_in_stream"]),
        }
        if run["snapshot_age_transactions"] is not None:
            values["snapshot_age_transactions"] = figure(run["snapshot_age_transactions"])
        for name, value in values.items():
            runs.setdefault(name, {})[kind] = value
    tables["ratios"] = {
        "direct p99, with / without": {"value": figure(old["p99_with_to_without"])},
        "outbox size with a snapshot, last tenth / second tenth": {
            "value": figure(old["outbox_bytes_last_to_second_tenth"])
        },
    }


PARTS = {
    "append": (append, "the library and COPY into the same tables"),
    "read": (read, "a partition from its start, by page size"),
    "handlers": (handlers, "a slow handler on one partition, each key in order"),
    "transactions": (transactions, "Spring transactions that write a business row and one event"),
    "outbox": (outbox, "transactions and direct publishes, without and with a long-running snapshot"),
}


def part(name: str, old: dict[str, Any]) -> dict[str, Any]:
    convert, title = PARTS[name]
    tables: Tables = {}
    convert(old, tables)
    return {
        "name": name,
        "title": title,
        "tables": [
            {
                "name": table,
                "rows": [{"name": row, "figures": figures} for row, figures in rows.items()],
            }
            for table, rows in tables.items()
        ],
    }


def numbers(settings: dict[str, Any]) -> dict[str, float]:
    return {
        "rounds": settings["rounds"]["count"],
        "round_seconds": settings["rounds"]["seconds"],
        "read_events": settings["read_events"],
        "snapshot_seconds": settings["snapshot"]["seconds"],
        "snapshot_rate": settings["snapshot"]["events_per_second"],
        "warmup_seconds": settings["snapshot"]["warmup_seconds"],
        "handlers_events": settings["handlers"]["events"],
        "handlers_sequential_events": settings["handlers"]["sequential_events"],
        "handlers_concurrency": settings["handlers"]["key_concurrency"],
        "outbox_seconds": settings["outbox"]["seconds"],
        "outbox_rate": settings["outbox"]["events_per_second"],
    }


def convert(old: dict[str, Any]) -> dict[str, Any]:
    settings = old["settings"]
    return {
        "format": 2,
        "workload": "limits",
        "run": "limits",
        "run_id": old["run"],
        "kind": "limits",
        "description": "How close the library comes to the limits of PostgreSQL and of slow handlers.",
        "command": old["command"],
        "git_commit": old["git_commit"],
        "started_at": "",
        "finished_at": "",
        "passed": not old["interrupted"],
        "interrupted": old["interrupted"],
        "problems": [],
        "settings": {
            "name": "limits",
            "kind": "limits",
            "environment": {"server": "postgres", "databases": 1, "standbys": "none", "server_options": {}},
            "driver": "eventsql",
            "driver_options": {},
            "events": {"bytes": 0, "keys": 0},
            "streams": 1,
            "partitions": 10,
            "consumers": 0,
            "replayers": 0,
            "consume_timeout_seconds": 120,
            "phases": [],
            "limits": {"parts": settings["parts"], "storage": "rows", "numbers": numbers(settings)},
            "variables": {},
        },
        "driver": {
            "name": "eventsql",
            "version": f"PostgreSQL {old['postgres_version']}",
            "durability": "committed by PostgreSQL, subject to its fsync and synchronous_commit",
            "order": "per key",
            "delivery": "at least once",
        },
        "machine": {
            "cpus": old["cpus"],
            "memory_mb": 0,
            "os": old["os"],
            "java_version": old["java_version"],
        },
        "databases": [
            {
                "name": "shard0",
                "version": old["postgres_version"],
                "fsync": old["fsync"],
                "synchronous_commit": old["synchronous_commit"],
                "synchronous_standby_names": "",
                "clock_offset_ms": 0.0,
            }
        ],
        "phases": [],
        "consumers": [],
        "replayers": [],
        "parts": [part(name, old[name]) for name in PARTS if name in old],
    }


for path in map(Path, sys.argv[1:]):
    fields = convert(json.loads(path.read_text()))
    lines = [
        f"{json.dumps(name)}:{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"
        for name, value in fields.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
