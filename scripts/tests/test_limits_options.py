from pathlib import Path

import pytest
from benchmark.errors import WrongInput
from benchmark.limits_options import LimitsOptions, parser


def test_read_nothing_given_gives_the_documented_defaults() -> None:
    options = LimitsOptions.read([], {})

    assert options.settings == {
        "parts": ["append", "read", "snapshot", "handlers", "transactions", "outbox"],
        "storage": "rows",
        "rounds": 3,
        "round_seconds": 3,
        "read_events": 300000,
        "snapshot_seconds": 60,
        "snapshot_rate": 2000,
        "handlers_events": 20000,
        "handlers_sequential_events": 500,
        "handlers_concurrency": 50,
        "outbox_seconds": 60,
        "outbox_rate": 500,
        "large_events": 10000000,
        "retention_seconds": 20,
        "burst_seconds": 60,
        "burst_rate": 100000,
        "compaction_seconds": 1200,
        "compaction_rate": 20000,
        "cost_seconds": 10,
        "tail_seconds": 60,
        "scheduled_events": 1000000,
        "scheduled_seconds": 30,
        "warmup_seconds": 5,
    }
    assert options.java_options() == ["-Xms1024m", "-Xmx1024m", "-XX:+UseSerialGC"]
    assert options.recycled_wal_mb() == 1024
    assert options.folder("RESULTS_DIR", Path("/repository")) == Path("/repository/results/limits")
    assert options.command() == "bash scripts/run_limits_benchmark.bash"


def test_read_all_given_options_are_used() -> None:
    arguments = ["--only", "append", "--only=snapshot", "--rounds", "4", "--round-seconds", "0.5"]
    arguments += ["--read-events", "1000", "--snapshot-seconds", "600", "--snapshot-rate", "7"]
    arguments += ["--only=handlers", "--handlers-events", "9", "--handlers-sequential-events", "8"]
    arguments += ["--handlers-concurrency=5", "--outbox-seconds=600", "--outbox-rate", "3"]
    arguments += ["--large-events=200000", "--retention-seconds=6", "--burst-seconds", "7"]
    arguments += ["--burst-rate=800", "--compaction-seconds=90", "--compaction-rate", "100"]
    arguments += ["--storage", "blocks", "--cost-seconds=2", "--tail-seconds=9", "--warmup-seconds", "0"]
    arguments += ["--scheduled-events=500", "--scheduled-seconds=3"]
    settings = "min_wal_size=2GB  backend_flush_after=512kB"

    options = LimitsOptions.read(
        arguments,
        {
            "RESULTS_DIR": "/elsewhere",
            "JAVA_OPTS_RUNNER": "-Xmx2g",
            "POSTGRES_SETTINGS": settings,
            "RECYCLED_WAL_MB": "64",
        },
    )

    assert options.settings == {
        "parts": ["append", "snapshot", "handlers"],
        "storage": "blocks",
        "rounds": 4,
        "round_seconds": 0.5,
        "read_events": 1000,
        "snapshot_seconds": 600,
        "snapshot_rate": 7,
        "handlers_events": 9,
        "handlers_sequential_events": 8,
        "handlers_concurrency": 5,
        "outbox_seconds": 600,
        "outbox_rate": 3,
        "large_events": 200000,
        "retention_seconds": 6,
        "burst_seconds": 7,
        "burst_rate": 800,
        "compaction_seconds": 90,
        "compaction_rate": 100,
        "cost_seconds": 2,
        "tail_seconds": 9,
        "scheduled_events": 500,
        "scheduled_seconds": 3,
        "warmup_seconds": 0,
    }
    assert options.java_options() == ["-Xmx2g"]
    assert options.recycled_wal_mb() == 64
    assert options.postgres_settings() == ["min_wal_size=2GB", "backend_flush_after=512kB"]
    assert options.folder("RESULTS_DIR", Path("/repository")) == Path("/elsewhere")
    assert options.command() == (
        f"POSTGRES_SETTINGS='{settings}' RECYCLED_WAL_MB=64 JAVA_OPTS_RUNNER=-Xmx2g "
        + "bash scripts/run_limits_benchmark.bash "
        + " ".join(arguments)
    )


def test_read_parts_at_a_rate_only_run_with_the_simple_compiler() -> None:
    simple = "-XX:TieredStopAtLevel=1"
    assert simple in LimitsOptions.read(["--only=tail", "--only=snapshot"], {}).java_options()
    assert simple not in LimitsOptions.read(["--only=tail", "--only=append"], {}).java_options()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "write"], "argument --only: invalid choice: 'write'"),
        (["--storage", "columns"], "argument --storage: invalid choice: 'columns'"),
        (["--rounds", "0"], "argument --rounds: must be a number between 1 and 1000, but is '0'"),
        (["--rounds", "1.5"], "argument --rounds: must be a number between 1 and 1000, but is '1.5'"),
        (["--round-seconds", "nan"], "argument --round-seconds: must be a number between 0.05 and 3600"),
        (["--read-events", "999"], "argument --read-events: must be a number between 1000 and 1000000000"),
        (["--snapshot-seconds", "0"], "argument --snapshot-seconds: must be a number between 1 and 86400"),
        (["--snapshot-rate", "x"], "argument --snapshot-rate: must be a number between 1 and 1000000"),
        (
            ["--handlers-concurrency", "0"],
            "argument --handlers-concurrency: must be a number between 1 and 10000, but is '0'",
        ),
        (["--outbox-rate", "0"], "argument --outbox-rate: must be a number between 1 and 1000000"),
        (["--snap", "60"], "unrecognized arguments: --snap 60"),
    ],
)
def test_read_wrong_option_names_it_and_the_limit_and_exits_with_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        LimitsOptions.read(arguments, {})

    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_read_wrong_variable_names_it() -> None:
    with pytest.raises(WrongInput, match="JAVA_OPTS_RUNNER cannot be split into options"):
        LimitsOptions.read([], {"JAVA_OPTS_RUNNER": "'"})
    with pytest.raises(WrongInput, match="POSTGRES_SETTINGS must be NAME=VALUE.*but has 'fsync'"):
        LimitsOptions.read([], {"POSTGRES_SETTINGS": "a=1 fsync"})


def test_help_names_every_option_with_its_default_and_variable() -> None:
    text = parser().format_help()

    for shown in ("--only", "--snapshot-rate", "[300000]", "RESULTS_DIR", "[results/limits]", "Exit codes:"):
        assert shown in text
