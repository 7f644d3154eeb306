"""The command line of the measured queries."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from queries import MODULE, command_line, parser


def test_command_has_the_options_and_the_broker(tmp_path: Path) -> None:
    target = tmp_path / MODULE / "target"
    target.mkdir(parents=True)
    (target / "classpath.txt").write_text("a.jar:b.jar\n")
    context = cast("Any", SimpleNamespace(root=tmp_path, temporary=tmp_path / "data"))
    options = parser().parse_args(["--only", "session", "--events", "10", "--latency-seconds", "0"])

    command = command_line(options, context, "127.0.0.1:9092")

    assert command[command.index("-cp") + 1] == f"{target / 'classes'}:a.jar:b.jar"
    assert command[-7:] == [
        "--events=10",
        "--rounds=3",
        "--latency-seconds=0",
        "--only",
        "session",
        "--kafka",
        "127.0.0.1:9092",
    ]
    assert "--kafka" not in command_line(options, context, None)
