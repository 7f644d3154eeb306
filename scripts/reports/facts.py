"""The tables and texts of a page, taken from the result without assumptions."""

from collections.abc import Mapping, Sequence
from typing import Any

from reports.page import Html, facts, table, value_text
from reports.result import LATENCIES, PERCENTILES, Result


def label(result: Result) -> str:
    """Describes the measured machine in one line."""
    parts = []
    if result.cpus:
        parts.append(f"{result.cpus} core{'' if result.cpus == 1 else 's'}")
    if result.is_on_one_machine:
        parts.append(
            "database and load on the same machine" if result.databases else "everything on the same machine"
        )
    if result.databases:
        parts.append(durability(result))
    elif (driver := result.data.get("driver")) and driver.get("durability"):
        parts.append(str(driver["durability"]))
    return ", ".join(parts)


def hardware(result: Result) -> str:
    """The processors and the system, such as "2 CPUs, Linux 6.18"."""
    system = result.data.get("machine", result.data)
    return f"{result.cpus} CPUs, {system.get('os')}"


def durability(result: Result) -> str:
    """Whether the databases' own settings make an acknowledged commit durable."""
    values = {
        name: sorted({str(database.get(name, "unknown")) for database in result.databases})
        for name in ("fsync", "synchronous_commit")
    }
    shown = ", ".join(f"{name}={'/'.join(value)}" for name, value in values.items())
    durable = values["fsync"] == ["on"] and set(values["synchronous_commit"]) <= {
        *("on", "local", "remote_write", "remote_apply")
    }
    standbys = sorted({str(database.get("synchronous_standby_names") or "") for database in result.databases})
    waits = f"; commits wait for standbys ({', '.join(filter(None, standbys))})" if any(standbys) else ""
    return f"{'durable' if durable else 'NOT durable'} settings ({shown}){waits}"


def numbers(result: Result) -> Html:
    """A row for each phase: rates and duration."""
    columns = [
        *("phase", "offered/s", "published/s", "consumed/s", "failed", "missed"),
        *("publish p50 ms", "p99 ms", "p99.9 ms", "max ms", "to handler p50 ms", "p99 ms", "max ms"),
    ]
    rows: list[Sequence[object]] = []
    for phase in result.measurements:
        rows.append(
            [
                phase.name if phase.measured else f"({phase.name})",
                *(phase.offered_rate, phase.publish_rate, phase.consume_rate),
                *(phase.events_failed, phase.events_missed),
                *(phase.latency("publish_latency_ms", p) for p in ("p50", "p99", "p999", "max")),
                *(phase.latency("end_to_end_latency_ms", p) for p in ("p50", "p99", "max")),
            ]
        )
    return table(columns, rows)


def latencies(result: Result) -> Html:
    """Every latency of every measured phase, in milliseconds."""
    several = len(result.measured) > 1
    rows = [
        [phase.name if several else None, text, *(phase.latency(name, p) for p in PERCENTILES)]
        for phase in result.measured
        for name, text in LATENCIES.items()
        if phase.latencies.get(name)
    ]
    return table(["phase", "latency, ms", "p50", "p90", "p99", "p99.9", "max"], rows)


def guarantees(result: Result) -> Html:
    """The guarantees of the system, and whether the run confirmed them."""
    driver = result.data.get("driver") or {}
    checks = result.checks
    checked = (
        f"{checks['events_lost']} lost, {checks['events_duplicated']} duplicated,"
        f" {checks['order_violations']} out of order"
    )
    has_consumers = bool(result.data.get("consumers", result.kind == "publish"))
    return facts(
        {
            "system": " ".join(filter(None, (driver.get("name"), driver.get("version")))),
            "durability": driver.get("durability"),
            "order": driver.get("order"),
            "delivery": driver.get("delivery"),
            "database settings": durability(result) if result.databases else None,
            "found by the consumers of this run": checked if has_consumers else "not checked: no consumers",
        }
    )


def machine(result: Result) -> Html:
    """Machine, time and versions of the measurement."""
    offsets = [
        database["clock_offset_ms"]
        for database in result.databases
        if database.get("clock_offset_ms") is not None
    ]
    return facts(
        {
            **_versions(result),
            **_conditions(result),
            "clock offset of the databases, ms": offsets or None,
            "measured": " to ".join(
                filter(None, (result.data.get("started_at"), result.data.get("finished_at")))
            ),
        }
    )


def saturation(result: Result) -> str | None:
    """Says that latencies include waiting for a processor, where the load saturated the machine."""
    if not result.data.get("machine_saturated"):
        return None
    busy = float(result.data["machine_busy_share"])
    return f"The machine's processors were {busy:.0%} busy: latencies include waiting for a processor."


def _conditions(result: Result) -> dict[str, object]:
    """How busy the machine was, and how warm the JVMs were; nothing for older results."""
    data = result.data
    busy = data.get("machine_busy_share")
    seconds = data.get("warmup_seconds")
    warmth = {True: ", until the JVMs hardly compiled", False: ", after which the JVMs still compiled"}
    warm = warmth.get(bool(data.get("warmup_warm"))) if data.get("warmup_warm") is not None else ""
    return {
        "processors busy while measuring": f"{busy:.0%}" if busy is not None else None,
        "warm-up": f"{seconds:.0f} s{warm}" if seconds is not None else None,
        "compilers active while measuring, s": data.get("compilation_seconds"),
        "JVM options of the runners": " ".join(data.get("runner_java_options") or []) or None,
        "JVM options of the apps": " ".join(data.get("app_java_options") or []) or None,
    }


def machine_of_several(result: Result) -> Html:
    """What runs of one machine and commit have in common."""
    return facts(_versions(result))


def _versions(result: Result) -> dict[str, object]:
    system = result.data.get("machine", result.data)
    versions = sorted({str(database["version"]) for database in result.databases})
    return {
        "cores": result.cpus,
        "memory": f"{system['memory_mb']:,} MB" if system.get("memory_mb") else None,
        "system": system.get("os"),
        "Java": system.get("java_version"),
        "PostgreSQL": ", ".join(versions),
        "commit": result.data.get("git_commit"),
    }


def trials(results: Sequence[Result]) -> Html:
    """A summary of the trials of blasts and sweeps; a row for each number of events of a sweep."""
    rows: list[Sequence[object]] = []
    for result in results:
        if result.trials.empty:
            continue
        name = result.name if len(results) > 1 else None
        if result.kind == "blast":
            middle = result.trials.median(numeric_only=True)
            rows.append(
                [
                    *(name, None, len(result.trials), None, None, middle["throughput_events_per_second"]),
                    *(middle["bandwidth_mb_per_second"], middle["latency_mean_ms"], None),
                ]
            )
            continue
        limit = result.data.get("copy_limit") or {}
        for count, times in result.trials.groupby("event_count")["duration_ms"]:
            median = float(times.median())
            of_copy = f"{limit['duration_ms'] / median:.0%}" if limit.get("events") == count else None
            rows.append(
                [
                    *(name, int(str(count)), len(times), median, float(times.max())),
                    *(int(str(count)) / median * 1000, None, None, of_copy),
                ]
            )
    columns = [
        *("run", "events", "trials", "median ms", "maximum ms", "median events/s", "median MB/s"),
        *("mean latency ms", "of a plain COPY over one connection"),
    ]
    return table(columns, rows)


def figures(part: Mapping[str, Any]) -> list[Html]:
    """The tables of a part; a figure of several rounds with its 95 % interval."""
    shown = []
    for figure_table in part["tables"]:
        rows = figure_table["rows"]
        columns = list(dict.fromkeys(column for row in rows for column in row["figures"]))
        cells = [[row["name"], *(_figure(row["figures"].get(column)) for column in columns)] for row in rows]
        shown.append(table([figure_table["name"], *columns], cells))
    return shown


def _figure(figure: Mapping[str, Any] | None) -> str | None:
    if figure is None:
        return None
    texts = [value_text(float(figure[name])) for name in ("value", "low", "high") if name in figure]
    number = texts[0] if len(texts) == 1 else f"{texts[0]} ({texts[1]} to {texts[2]})"
    return f"{number} {figure['unit']}".strip()


def search(result: Result) -> Html:
    """The rates that were tried."""
    trials = result.data.get("search", {}).get("trials", [])
    return table(
        ["rate/s", "latency ms", "within the limit"],
        [
            [trial.get("rate"), trial.get("latency_ms"), "yes" if trial.get("held") else "no"]
            for trial in trials
        ],
    )


def stress(result: Result) -> Html:
    """Behaviour under overload, and recovery."""
    overload = result.data["stress"]
    recovery = overload.get("recovery_seconds")
    memory = {
        f"resident memory of {name}, MB": f"{value_text(part['start'])} at its start,"
        f" {value_text(part['end'])} at its end"
        for name, part in overload["resident_mb"].items()
        if part["start"] is not None and part["end"] is not None
    }
    return facts(
        {
            "overload": f"phase {overload['overload']}",
            "accepted, of the maximum": f"{overload['accepted_of_maximum']:.1%}",
            "slots missed, of those offered": f"{overload['missed_share']:.1%}",
            **memory,
            "recovered (as quick as the phase before, three seconds in a row)": (
                "not within what was measured" if recovery is None else f"after {value_text(recovery)} s"
            ),
        }
    )
