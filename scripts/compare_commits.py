"""Measures two commits in turns and prints the ratios of their figures: see --help."""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmark.errors import Interrupted
from benchmark.intervals import ratios
from benchmark.signals import Signals

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target/compare-commits"
BENCHMARK = "scripts/local_benchmark.py"
RESULTS_LINE = "Results: "

ROUNDS_MIN = 2
ROUNDS_MAX = 100

RUNS = {
    "default": "",
    "one-a-call": "SHARDS=1 EVENTS_RATE=0 EVENTS_TO_PUBLISH=1000000",
    "batches": "SHARDS=1 EVENTS_RATE=0 EVENTS_TO_PUBLISH=3000000 EVENTS_BATCH_SIZE=100 CALLERS=4",
    "async": "SHARDS=1 EVENTS_RATE=0 EVENTS_TO_PUBLISH=3000000 ASYNC=true",
}
# Fields of result.json: rates in events per second, and milliseconds from the intended send to the handler.
RATES = ("publish_rate", "consume_rate")
LATENCIES = ("p50", "p99")

EPILOG = """\
A run is a set of variables of run_local_benchmark.bash. Both commits are checked out and built below
target/compare-commits, where the results stay. Every round runs each commit once, in alternating order,
so that a slow quarter of an hour hits both. The printed ratio is B divided by A: the median of the
rounds' ratios with a bootstrap 95 % interval. Figures are rates in events per second, latencies from the
intended send to the handler in ms, and the processors used by runners, apps and databases in µs per event.
Keep the machine idle while it measures.

Examples:
  bash scripts/compare_commits.bash HEAD~1 HEAD
  bash scripts/compare_commits.bash --rounds 7 --run one-a-call --run batches main~5 main
  bash scripts/compare_commits.bash --run 'SHARDS=1 EVENTS_RATE=1000 EVENTS_TO_PUBLISH=60000' A B

Exit codes: 0 measured; 1 a run failed; 2 wrong usage; 130 after Ctrl-C, 143 after SIGTERM.
"""


def variables(run: str) -> dict[str, str]:
    """The variables of a run: one of the named ones, or given as NAME=VALUE words."""
    pairs = [word.partition("=") for word in shlex.split(RUNS.get(run, run))]
    if any(not name or not equals for name, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"'{run}' is neither one of {', '.join(RUNS)} nor NAME=VALUE words")
    return {name: value for name, _, value in pairs}


def rounds(text: str) -> int:
    if not text.isdigit() or not ROUNDS_MIN <= int(text) <= ROUNDS_MAX:
        raise argparse.ArgumentTypeError(f"must be between {ROUNDS_MIN} and {ROUNDS_MAX}, but is {text}")
    return int(text)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="compare_commits.bash",
        description="Measures two commits in turns on this machine and prints the ratios of their figures.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("a", metavar="A", help="the commit to compare with")
    parser.add_argument("b", metavar="B", help="the commit to be judged")
    parser.add_argument("--rounds", type=rounds, default=5, help="runs of each commit [5]")
    parser.add_argument(
        "--run",
        action="append",
        dest="runs",
        metavar="RUN",
        help=f"{', '.join(RUNS)}, or variables of run_local_benchmark.bash; may be repeated [all named ones]",
    )
    parser.add_argument("--warmup-seconds", default="20", help="WARMUP_SECONDS of each run [20]")
    given = parser.parse_args(words)
    try:
        given.runs = {run: variables(run) for run in given.runs or RUNS}
    except argparse.ArgumentTypeError as e:
        parser.error(str(e))
    return given


@contextmanager
def work_tree(side: str, commit: str) -> Iterator[Path]:
    """A work tree of the commit, removed when the block ends."""
    folder = FOLDER / f"{side}-{git('rev-parse', '--short=12', f'{commit}^{{commit}}')}"
    remove_work_tree(folder)
    try:
        git("worktree", "add", "--quiet", "--force", "--detach", str(folder), commit)
        yield folder
    finally:
        remove_work_tree(folder)


def remove_work_tree(folder: Path) -> None:
    """Removes a work tree if there is one, also an incomplete one of a killed comparison."""
    if folder.exists():
        shutil.rmtree(folder)
    if f"worktree {folder}" in git("worktree", "list", "--porcelain").splitlines():
        # Forced twice, because git locks it until it is complete.
        git("worktree", "remove", "--force", "--force", str(folder))


def git(*words: str) -> str:
    # Unlike run(), this lets git finish when a signal arrives, so that nothing writes to a folder afterwards.
    with subprocess.Popen(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        printed, _ = process.communicate()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return printed.strip()


def measure(folder: Path, environment: Mapping[str, str], log: Path) -> dict[str, float]:
    """Runs the benchmark of a work tree once; returns the figures of its result."""
    with log.open("a") as out:
        # From the project's own script, not its wrapper: plots are not needed here.
        run = subprocess.Popen(
            [sys.executable, BENCHMARK],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=out,
            text=True,
        )
        try:
            printed, _ = run.communicate()
        except Interrupted:
            # It stops its databases and apps itself, which takes a while.
            run.terminate()
            run.communicate()
            raise
        out.write(printed)
    last = printed.rstrip().rpartition("\n")[2]
    if run.returncode != 0 or not last.startswith(RESULTS_LINE):
        raise RuntimeError(f"{folder.name} ended with status {run.returncode}, see {log}")
    result = json.loads(Path(last.removeprefix(RESULTS_LINE)).read_text())
    return figures(result)


def figures(result: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a result.json; latencies only at a given rate: at full speed they follow from it."""
    found = {name: float(result[name]) for name in RATES}
    if result.get("rate_asked"):
        found |= {f"{name} ms": float(result["end_to_end_latency_ms"][name]) for name in LATENCIES}
    columns = result.get("resources", {}).get("columns", {})
    # The first sample has no interval before it; a process that has not been sampled at a time has none.
    cores = [
        mean([sample for sample in column[1:] if sample is not None])
        for name, column in columns.items()
        if name.endswith(".cpu_cores")
    ]
    if cores:
        found["cpu µs/event"] = sum(cores) * 1e6 / result["publish_rate"]
    return found


def turns(count: int) -> Iterator[tuple[int, str]]:
    """The order of measuring: A B, B A, A B ..."""
    for number in range(count):
        for side in ("ab", "ba")[number % 2]:
            yield number, side


def compare(given: argparse.Namespace) -> list[dict[str, object]]:
    """Measures all runs of both commits; returns a row for each run and figure."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with work_tree("a", given.a) as a, work_tree("b", given.b) as b:
        return measure_in_turns(given, {"a": a, "b": b})


def measure_in_turns(given: argparse.Namespace, folders: Mapping[str, Path]) -> list[dict[str, object]]:
    log = FOLDER / "log.txt"
    found: dict[str, dict[str, list[dict[str, float]]]] = {run: {"a": [], "b": []} for run in given.runs}
    for number, side in turns(given.rounds):
        for run, chosen in given.runs.items():
            environment = {
                "WARMUP_SECONDS": given.warmup_seconds,
                "RESULTS_DIR": str(FOLDER / "results"),
                **chosen,
            }
            one = measure(folders[side], environment, log)
            found[run][side].append(one)
            shown = ", ".join(f"{name} {number_text(value)}" for name, value in one.items())
            print(f"round {number + 1} of {given.rounds}, {side.upper()}, {run}: {shown}", flush=True)
    return [
        row(run, figure, *([one[figure] for one in sides[side]] for side in "ab"))
        for run, sides in found.items()
        for figure in sides["a"][0]
        if all(figure in one for side in "ab" for one in sides[side])
    ]


def number_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def row(run: str, figure: str, of_a: Sequence[float], of_b: Sequence[float]) -> dict[str, object]:
    interval = ratios(of_a, of_b)
    return {
        "run": run,
        "figure": figure,
        "a": list(of_a),
        "b": list(of_b),
        "ratio": interval.median,
        "low": interval.low,
        "high": interval.high,
    }


def text(rows: Sequence[Mapping[str, object]]) -> str:
    """The rows as a table."""
    lines = [f"{'run':<14} {'figure':<14} {'rounds':>6} {'A':>10} {'B':>10}  B / A (95 % interval)"]
    for one in rows:
        sides = [values for values in (one["a"], one["b"]) if isinstance(values, list)]
        medians = [median(values) for values in sides]
        lines.append(
            f"{one['run']:<14} {one['figure']:<14} {len(sides[0]):>6}"
            f" {number_text(medians[0]):>10} {number_text(medians[1]):>10}"
            f"  {one['ratio']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
        )
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    given = arguments(words)
    try:
        rows = compare(given)
    except (RuntimeError, subprocess.CalledProcessError) as e:
        print(f"Comparison aborted: {e}", file=sys.stderr)
        return 1
    except Interrupted as e:
        print("Comparison cancelled", file=sys.stderr)
        return 128 + e.signal_number
    out = FOLDER / "comparison.json"
    kept = {"a": given.a, "b": given.b, "rounds": given.rounds, "rows": rows}
    out.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"\n{text(rows)}\n\nResults: {out}")
    return 0


if __name__ == "__main__":
    Signals().install()
    sys.exit(main(sys.argv[1:]))
