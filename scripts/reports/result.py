"""The result of a run, as needed by plots and pages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

PERCENTILES = ("p50", "p90", "p99", "p999", "max")
# Labels of latencies, by their names in result.json.
LATENCIES = {
    "publish_latency_ms": "intended send to acknowledgement",
    "service_latency_ms": "call to acknowledgement",
    "schedule_delay_ms": "intended send to call",
    "end_to_end_latency_ms": "intended send to handler",
}
HISTOGRAMS = {
    "publish_latency_micros": "intended send to acknowledgement",
    "end_to_end_micros": "intended send to handler",
    "schedule_delay_micros": "intended send to call",
}
LOCAL_SCRIPTS = ("run_local_benchmark.bash", "run_workload.bash", "run_queries.bash")


class NoReport(Exception):
    """A folder that cannot be drawn; the message has the reason."""


@dataclass(frozen=True)
class Span:
    """A phase on the time axis, in seconds since the start of the measured part."""

    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Measurement:
    """The numbers of one phase; rates in events/s, None where there is no value."""

    name: str
    measured: bool
    offered_rate: float | None
    publish_rate: float | None
    consume_rate: float | None
    events_failed: int
    events_missed: int
    latencies: Mapping[str, Mapping[str, float] | None]

    def latency(self, name: str, percentile: str) -> float | None:
        """In milliseconds."""
        return (self.latencies.get(name) or {}).get(percentile)


@dataclass(frozen=True)
class Result:
    """A measured run. Reads result.json of every former format."""

    folder: Path
    data: Mapping[str, Any]

    @staticmethod
    def read(folder: Path) -> "Result":
        """Raises NoReport for a folder without a result, or with a result of another kind."""
        file = folder / "result.json"
        try:
            data = json.loads(file.read_text())
        except FileNotFoundError:
            raise NoReport(f"there is no {file}") from None
        except ValueError as e:
            raise NoReport(f"{file} cannot be read: {e}") from None
        if "kind" not in data and "publish_rate" not in data:
            raise NoReport(f"{file} is not the result of a run that is drawn")
        return Result(folder.resolve(), data)

    @property
    def kind(self) -> str:
        return str(self.data.get("kind", "publish"))

    @property
    def name(self) -> str:
        """The run's name; for the main job the name of its folder."""
        return str(self.data["run"]) if self.kind != "publish" else self.folder.name

    @property
    def workload(self) -> str | None:
        return self.data.get("workload")

    @property
    def title(self) -> str:
        """The workload and the run, or one name where both are equal."""
        return ": ".join(dict.fromkeys(filter(None, (self.workload, self.name))))

    @property
    def passed(self) -> bool:
        return bool(self.data["passed"])

    @property
    def interrupted(self) -> bool:
        return bool(self.data.get("interrupted"))

    @property
    def problems(self) -> Sequence[str]:
        return [str(problem) for problem in self.data.get("problems", [])]

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings by their full names, such as `events.bytes`, without the run's name."""
        settings = flatten(self.data.get("settings", {}))
        settings.pop("name", None)
        return settings

    @cached_property
    def series(self) -> pd.DataFrame | None:
        """A row each second; None where the run has none."""
        series = self.data.get("series")
        if not series or not series.get("t"):
            return None
        columns = {name: values for name, values in series.items() if name != "interval_seconds"}
        return _frame(columns)

    @cached_property
    def resources(self) -> pd.DataFrame | None:
        """A row each second, a column for each thing sampled, such as `database-0.cpu_cores`."""
        resources = self.data.get("resources")
        if not resources or not resources.get("t") or not resources.get("columns"):
            return None
        return _frame({"t": resources["t"], **resources["columns"]})

    @cached_property
    def spans(self) -> Sequence[Span]:
        """The phases of the series, up to the end of the last one."""
        if self.series is None or "phase" not in self.series:
            return []
        spans: list[Span] = []
        for time, phase in zip(self.series["t"], self.series["phase"], strict=True):
            if phase is None:
                continue
            name = str(phase)
            if spans and spans[-1].name == name:
                spans[-1] = Span(name, spans[-1].start, float(time) + 1)
            else:
                spans.append(Span(name, float(time), float(time) + 1))
        return spans

    @cached_property
    def measurements(self) -> Sequence[Measurement]:
        """The numbers of each phase; the main job has one."""
        if self.kind == "publish":
            return [
                _measurement(
                    {
                        "name": "measured",
                        "offered_rate": self.data.get("rate_asked") or None,
                        "events_failed": self.data.get("publish_errors", 0),
                        **self.data,
                    }
                )
            ]
        return [_measurement(phase) for phase in self.data.get("phases", [])]

    @property
    def measured(self) -> Sequence[Measurement]:
        return [measurement for measurement in self.measurements if measurement.measured]

    @property
    def trials(self) -> pd.DataFrame:
        """A row for each trial of a blast or a sweep."""
        return pd.DataFrame(self.data.get("trials", []))

    @property
    def parts(self) -> Sequence[Mapping[str, Any]]:
        """The parts of a run of kind limits or queries: tables of named figures."""
        return list(self.data.get("parts") or [])

    @property
    def median_trial(self) -> Measurement:
        """The measurement that represents the trials of a run without phases."""
        trials = self.trials
        rate = trials["throughput_events_per_second"].median() if "latency_mean_ms" in trials else None
        return _measurement({"name": "median trial", "publish_rate": rate})

    @property
    def cpus(self) -> int | None:
        cpus = self.data.get("machine", self.data).get("cpus")
        return int(cpus) if cpus else None

    @property
    def databases(self) -> Sequence[Mapping[str, Any]]:
        """The versions and settings that the databases reported."""
        if "databases" in self.data:
            return list(self.data["databases"])
        if "fsync" in self.data:
            shown = {name: self.data[name] for name in ("fsync", "synchronous_commit")}
            return [{"version": self.data["postgres_version"], **shown}] * int(self.data["shards"])
        return []

    @property
    def command(self) -> str:
        return str(self.data.get("command", ""))

    @property
    def is_on_one_machine(self) -> bool:
        """Whether the load is known to have run on the machine of the servers."""
        if any(script in self.command for script in LOCAL_SCRIPTS):
            return True
        return self.resources is not None and any(
            column.startswith(("database-", "broker")) and column.endswith(".cpu_cores")
            for column in self.resources.columns
        )

    @property
    def checks(self) -> Mapping[str, int]:
        """The errors found by the consumers, added up."""
        names = ("events_lost", "events_duplicated", "order_violations")
        consumers = self.data.get("consumers", [self.data])
        return {name: sum(int(consumer.get(name, 0)) for consumer in consumers) for name in names}


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested settings: lists of simple values stay, other lists get numbers."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            flat |= flatten({str(number): item for number, item in enumerate(value)}, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _frame(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype="object" if name == "phase" else "float64")
            for name, values in columns.items()
        }
    )


def _measurement(phase: Mapping[str, Any]) -> Measurement:
    # Without consumers the rate is unknown, not zero.
    has_consumers = bool(phase.get("end_to_end_latency_ms"))
    return Measurement(
        name=str(phase["name"]),
        measured=bool(phase.get("measured", True)),
        offered_rate=phase.get("offered_rate"),
        publish_rate=phase.get("publish_rate"),
        consume_rate=phase.get("consume_rate") if has_consumers else None,
        events_failed=int(phase.get("events_failed") or 0),
        events_missed=int(phase.get("events_missed") or 0),
        latencies={name: phase.get(name) for name in LATENCIES},
    )
