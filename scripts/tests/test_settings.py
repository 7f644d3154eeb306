import pytest
from benchmark.errors import WrongInput
from benchmark.java import clean_environment
from benchmark.settings import VARIABLES, Settings, usage

AT_A_RATE = ["-Xms512m", "-Xmx1024m", "-XX:+UseSerialGC", "-XX:+AlwaysPreTouch", "-XX:TieredStopAtLevel=1"]
AT_FULL_SPEED = ["-Xms1024m", "-Xmx1024m", "-XX:+UseSerialGC"]


def test_read_nothing_set_gives_the_documented_defaults() -> None:
    settings = Settings.read({})

    assert settings.shards == 3
    assert settings.members == 1
    assert settings.app_options == settings.runner_options == AT_A_RATE
    assert settings.runner_environment() == {
        "EVENTS_RATE": "5000",
        "EVENTS_TO_PUBLISH": "100000",
        "EVENTS_BATCH_SIZE": "1",
        "CALLERS": "50",
        "PARTITIONS": "10",
        "KEYED": "false",
        "KEYS": "1000",
        "ASYNC": "false",
        "CONSUME_TIMEOUT": "120",
        "WARMUP_SECONDS": "10",
        "WARMUP_MAX_SECONDS": "60",
    }
    assert settings.app_environment() == {"PARTITIONS": "10"}
    assert settings.command() == "bash scripts/run_local_benchmark.bash"


def test_read_every_variable_is_used() -> None:
    settings = Settings.read(
        {
            "SHARDS": "1",
            "EVENTS_RATE": "0",
            "KEYED": "TRUE",
            "EVENT_BYTES": "80",
            "PAGE_EVENTS": "10",
            "JAVA_OPTS_APP": "-Xmx2g '-Da=b c'",
            "RESULTS_DIR": "elsewhere",
            "UNRELATED": "x",
        }
    )

    assert settings.shards == 1
    assert settings.runner_environment()["KEYED"] == "true"
    assert settings.runner_environment()["EVENT_BYTES"] == "80"
    assert settings.app_environment()["PAGE_EVENTS"] == "10"
    assert settings.app_options == ["-Xmx2g", "-Da=b c"]
    assert settings.runner_options == AT_FULL_SPEED
    assert settings.command() == (
        "SHARDS=1 EVENTS_RATE=0 EVENT_BYTES=80 KEYED=true PAGE_EVENTS=10 "
        "JAVA_OPTS_APP='-Xmx2g '\"'\"'-Da=b c'\"'\"'' bash scripts/run_local_benchmark.bash"
    )


@pytest.mark.parametrize(
    ("environment", "megabytes"),
    [
        ({}, 0),
        ({"EVENTS_RATE": "0"}, 1024),
        ({"EVENTS_RATE": "0", "RECYCLED_WAL_MB": "0"}, 0),
        ({"RECYCLED_WAL_MB": "100"}, 100),
    ],
)
def test_recycled_wal_mb_is_for_full_speed_unless_given(environment: dict[str, str], megabytes: int) -> None:
    assert Settings.read(environment).recycled_wal_mb == megabytes


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({"MEMBERS": "2"}, AT_A_RATE),
        ({"MEMBERS": "3"}, ["-Xms512m", "-Xmx682m", *AT_A_RATE[2:]]),
        ({"MEMBERS": "16"}, ["-Xms256m", "-Xmx256m", *AT_A_RATE[2:]]),
        ({"MEMBERS": "3", "EVENTS_RATE": "0"}, ["-Xms682m", "-Xmx682m", "-XX:+UseSerialGC"]),
        ({"MEMBERS": "16", "JAVA_OPTS_APP": "-Xmx2g"}, ["-Xmx2g"]),
    ],
)
def test_app_options_several_members_share_the_memory(
    environment: dict[str, str], options: list[str]
) -> None:
    assert Settings.read(environment).app_options == options


def test_runner_options_the_simple_compiler_is_for_rates_only() -> None:
    assert Settings.read({}).runner_options == AT_A_RATE
    assert Settings.read({"EVENTS_RATE": "0"}).runner_options == AT_FULL_SPEED
    assert Settings.read({"JAVA_OPTS_RUNNER": "-Xmx2g"}).runner_options == ["-Xmx2g"]
    assert Settings.read({}).workload_runner_options == AT_FULL_SPEED
    assert Settings.read({"JAVA_OPTS_RUNNER": "-Xmx2g"}).workload_runner_options == ["-Xmx2g"]


@pytest.mark.parametrize(
    ("environment", "shortest", "longest"),
    [
        ({}, "10", "60"),
        ({"EVENTS_RATE": "0"}, "10", "30"),
        ({"WARMUP_SECONDS": "7"}, "7", "0"),
        ({"WARMUP_SECONDS": "0", "EVENTS_RATE": "0"}, "0", "0"),
    ],
)
def test_runner_environment_an_explicit_warmup_is_exact(
    environment: dict[str, str], shortest: str, longest: str
) -> None:
    passed = Settings.read(environment).runner_environment()

    assert (passed["WARMUP_SECONDS"], passed["WARMUP_MAX_SECONDS"]) == (shortest, longest)


def test_read_empty_variable_counts_as_unset() -> None:
    assert Settings.read({"SHARDS": " "}).shards == 3


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"SHARDS": "0"}, "SHARDS must be a number between 1 and 16, but is '0'"),
        ({"SHARDS": "17"}, "SHARDS must be a number between 1 and 16, but is '17'"),
        ({"SHARDS": "three"}, "SHARDS must be a number between 1 and 16, but is 'three'"),
        ({"SHARDS": "1.5"}, "SHARDS must be a number between 1 and 16, but is '1.5'"),
        ({"SHARDS": "\u0663"}, "SHARDS must be a number between 1 and 16, but is '\u0663'"),
        ({"EVENTS_RATE": "-1"}, "EVENTS_RATE must be a number between 0 and 1000000, but is '-1'"),
        (
            {"EVENTS_TO_PUBLISH": "0"},
            "EVENTS_TO_PUBLISH must be a number between 1 and 1000000000, but is '0'",
        ),
        (
            {"EVENTS_BATCH_SIZE": "5001"},
            "EVENTS_BATCH_SIZE must be a number between 1 and 5000, but is '5001'",
        ),
        ({"CALLERS": "0"}, "CALLERS must be a number between 1 and 10000, but is '0'"),
        ({"MEMBERS": "0"}, "MEMBERS must be a number between 1 and 16, but is '0'"),
        ({"MEMBERS": "17"}, "MEMBERS must be a number between 1 and 16, but is '17'"),
        ({"PARTITIONS": "1001"}, "PARTITIONS must be a number between 1 and 1000, but is '1001'"),
        ({"EVENT_BYTES": "79"}, "EVENT_BYTES must be a number between 80 and 4194304, but is '79'"),
        ({"KEYED": "yes"}, "KEYED must be true or false, but is 'yes'"),
        ({"ASYNC": "1"}, "ASYNC must be true or false, but is '1'"),
        ({"KEYS": "0"}, "KEYS must be a number between 1 and 1000000, but is '0'"),
        ({"WARMUP_SECONDS": "-1"}, "WARMUP_SECONDS must be a number between 0 and 86400, but is '-1'"),
        ({"CONSUME_TIMEOUT": "0"}, "CONSUME_TIMEOUT must be a number between 1 and 86400, but is '0'"),
        ({"PAGE_EVENTS": "0"}, "PAGE_EVENTS must be a number between 1 and 10000, but is '0'"),
        ({"RECYCLED_WAL_MB": "2001"}, "RECYCLED_WAL_MB must be a number between 0 and 2000, but is '2001'"),
        ({"JAVA_OPTS_RUNNER": "'"}, "JAVA_OPTS_RUNNER cannot be split into options"),
        (
            {"KEYED": "true", "EVENTS_RATE": "0", "KEYS": "49"},
            "KEYS must be at least CALLERS (50), because a key belongs to one caller, but is 49",
        ),
        (
            {"EVENT_BYTES": "4000000", "EVENTS_BATCH_SIZE": "2"},
            "EVENT_BYTES times EVENTS_BATCH_SIZE must be at most 7549747, but is 8000000",
        ),
    ],
)
def test_read_wrong_value_names_variable_and_limit(environment: dict[str, str], message: str) -> None:
    with pytest.raises(WrongInput) as error:
        Settings.read(environment)

    assert str(error.value).startswith(message)


def test_usage_names_every_variable_with_its_default() -> None:
    lines = usage().splitlines()

    for variable in VARIABLES:
        line = next(line for line in lines if line.split()[:1] == [variable.name])
        assert not variable.default or line.endswith(f"[{variable.default}]")


def test_variables_of_the_shell_reach_no_child_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload has settings of its own, and a result shows only those that were given to it."""
    for name in ("EVENT_BYTES", "METRICS_PORT", "HOME"):
        monkeypatch.setenv(name, "4096")

    assert [name for name in ("EVENT_BYTES", "METRICS_PORT", "HOME") if name in clean_environment()] == [
        "HOME"
    ]
