"""The command line of the measured queries."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from queries import COMMAND, MODULE, command_line, parser


def test_command_has_the_options_and_the_broker(tmp_path: Path) -> None:
    target = tmp_path / MODULE / "target"
    target.mkdir(parents=True)
    (target / "classpath.txt").write_text("a.jar:b.jar\n")
    result = tmp_path / "results/result.json"
    context = cast("Any", SimpleNamespace(root=tmp_path, temporary=tmp_path / "data", result=result))
    arguments = ["--only", "session", "--events", "10", "--latency-seconds", "0"]
    options = parser().parse_args(arguments)

    command = command_line(options, arguments, context, ["--kafka=127.0.0.1:9092"])

    assert command[command.index("-cp") + 1] == f"{target / 'classes'}:a.jar:b.jar"
    assert command[command.index("--out") + 1] == str(result)
    assert command[command.index("--command") + 1] == f"{COMMAND} {' '.join(arguments)}"
    assert command[-6:] == [
        "--events=10",
        "--rounds=3",
        "--latency-seconds=0",
        "--only",
        "session",
        "--kafka=127.0.0.1:9092",
    ]
