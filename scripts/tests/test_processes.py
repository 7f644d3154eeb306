import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmark.errors import Failure
from benchmark.processes import Processes, stop_with_this_process
from benchmark.signals import Signals
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent.parent

# Prints its id and then that of a child of its own, and waits; both stop on SIGTERM.
PARENT_AND_CHILD = """
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(os.getpid(), child.pid, flush=True)
signal.pause()
"""

# The same, but both ignore SIGTERM.
STUBBORN = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(os.getpid(), child.pid, flush=True)
while True:
    signal.pause()
"""

# Exits immediately and leaves a child running.
LEAVER = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(os.getpid(), child.pid, flush=True)
"""

# Starts both, prints when they run, and waits for a signal.
BENCHMARK = """
import signal, sys
from pathlib import Path
from benchmark.errors import Interrupted
from benchmark.processes import Processes
from benchmark.signals import Signals
folder = Path(sys.argv[1])
signals = Signals()
signals.install()
try:
    with Processes(signals, folder, folder) as processes:
        children = []
        for name, code in (("obedient", sys.argv[2]), ("stubborn", sys.argv[3])):
            child = processes.start(name, [sys.executable, "-c", code], {}, 1)
            processes.wait_until(lambda: child.log.read_text().endswith("\\n"), name, 30, [child])
            print(child.log.read_text().strip(), flush=True)
        signal.pause()
except Interrupted as e:
    print("interrupted by", e.signal_number, flush=True)
    sys.exit(128 + e.signal_number)
"""

# Starts a child, prints its id, and waits to be killed.
KILLED = """
import signal, sys
from pathlib import Path
from benchmark.processes import Processes
from benchmark.signals import Signals
folder = Path(sys.argv[1])
code = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
with Processes(Signals(), folder, folder) as processes:
    child = processes.start("child", [sys.executable, "-c", code], {}, 5)
    processes.wait_until(lambda: child.log.read_text().endswith("\\n"), "child", 30, [child])
    print(child.log.read_text().strip(), flush=True)
    signal.pause()
"""


def is_running(process_id: int) -> bool:
    """Whether the process runs; a zombie has ended."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def start_until_ids(processes: Processes, name: str, code: str, stop_seconds: float) -> list[int]:
    child = processes.start(name, [sys.executable, "-c", code], {}, stop_seconds)
    needed = [] if code == LEAVER else [child]
    processes.wait_until(lambda: child.log.read_text().endswith("\n"), name, 30, needed)
    return [int(number) for number in child.log.read_text().split()]


@pytest.mark.parametrize("code", [PARENT_AND_CHILD, STUBBORN, LEAVER])
def test_exit_by_exception_stops_the_whole_group(tmp_path: Path, code: str) -> None:
    ids: list[int] = []

    with pytest.raises(RuntimeError), Processes(Signals(), tmp_path, tmp_path) as processes:
        ids = start_until_ids(processes, "child", code, 1)
        assert is_running(ids[1])
        raise RuntimeError

    assert len(ids) == 2
    assert [number for number in ids if is_running(number)] == []


def test_exit_does_not_touch_processes_started_elsewhere(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    try:
        with Processes(Signals(), tmp_path, tmp_path) as processes:
            start_until_ids(processes, "child", PARENT_AND_CHILD, 5)

        assert is_running(other.pid)
    finally:
        other.kill()
        other.wait()


def test_signals_stop_all_children(tmp_path: Path) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    benchmarks = {number: start_benchmark(tmp_path / str(number)) for number in numbers}
    ids: dict[signal.Signals, list[int]] = {}
    for number, benchmark in benchmarks.items():
        assert benchmark.stdout is not None
        ids[number] = [int(i) for _ in range(2) for i in benchmark.stdout.readline().split()]
        assert len(ids[number]) == 4
        assert all(is_running(i) for i in ids[number])

    # All in parallel, because each waits for those that ignore SIGTERM.
    for number, benchmark in benchmarks.items():
        benchmark.send_signal(number)

    for number, benchmark in benchmarks.items():
        assert benchmark.stdout is not None
        assert benchmark.stdout.read() == f"interrupted by {number.value}\n"
        assert benchmark.wait(30) == 128 + number
        assert [i for i in ids[number] if is_running(i)] == []


def start_benchmark(folder: Path) -> subprocess.Popen[str]:
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", BENCHMARK, str(folder), PARENT_AND_CHILD, STUBBORN],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(not stop_with_this_process(), reason="not supported by this system")
def test_sigkill_stops_the_children_too(tmp_path: Path) -> None:
    benchmark = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert benchmark.stdout is not None
    child = int(benchmark.stdout.readline())
    assert is_running(child)

    benchmark.kill()

    assert benchmark.wait(30) == -signal.SIGKILL
    deadline = time.monotonic() + WAIT_SECONDS
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    outlives = is_running(child)
    if outlives:
        os.kill(child, signal.SIGKILL)
    assert not outlives


def test_signal_while_deferred_is_raised_at_the_end() -> None:
    code = """
import os, signal
from benchmark.signals import Signals
from benchmark.errors import Interrupted
signals = Signals()
signals.install()
steps = []
try:
    with signals.deferred():
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("kept on")
    steps.append("not reached")
except Interrupted:
    steps.append("interrupted")
os.kill(os.getpid(), signal.SIGINT)
steps.append("second one ignored")
print(steps)
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_SECONDS,
    )

    assert result.stdout.strip() == "['kept on', 'interrupted', 'second one ignored']"


def test_start_with_report_separates_and_prints_both_outputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "import sys; print('one'); print('two'); print('trouble', file=sys.stderr)"
    with Processes(Signals(), tmp_path, tmp_path) as processes:
        child = processes.start("runner-1", [sys.executable, "-c", code], {}, 5, tmp_path / "runner-1.txt")
        processes.wait_until(lambda: child.status is not None, "runner-1", 30, [])
        child.join_readers()
        assert child.status == 0

    assert (tmp_path / "runner-1.txt").read_text() == "one\ntwo\n"
    assert (tmp_path / "runner-1.log").read_text() == "trouble\n"
    shown = capsys.readouterr()
    assert shown.out == "[runner-1] one\n[runner-1] two\n"
    assert shown.err == "[runner-1] trouble\n"


def test_wait_until_process_that_ended_fails_with_its_last_output(tmp_path: Path) -> None:
    with Processes(Signals(), tmp_path, tmp_path) as processes:
        child = processes.start("app", [sys.executable, "-c", "print('no port'); exit(3)"], {}, 5)

        with pytest.raises(Failure, match=r"app ended with status 3, see .*app\.log\n  no port"):
            processes.wait_until(lambda: False, "Starting the app", 30, [child])


def test_wait_until_too_long_fails(tmp_path: Path) -> None:
    with Processes(Signals(), tmp_path, tmp_path) as processes:
        child = processes.start("app", [sys.executable, "-c", PARENT_AND_CHILD], {}, 5)

        with pytest.raises(Failure, match=r"Starting the app took longer than 0 s, see .*app\.log"):
            processes.wait_until(lambda: False, "Starting the app", 0, [child])


def test_status_of_a_signalled_process_is_negative(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with Processes(Signals(), tmp_path, tmp_path) as processes:
        child = processes.start("app", [sys.executable, "-c", code], {}, 5)
        processes.wait_until(lambda: child.status is not None, "app", 30, [])

        assert child.status == -signal.SIGKILL


def test_signal_while_cleaning_up_is_raised_when_the_script_continues() -> None:
    code = """
import os, signal
from benchmark.errors import Interrupted
from benchmark.signals import Signals
signals = Signals()
signals.install()
signals.ignore_from_now()
os.kill(os.getpid(), signal.SIGTERM)
print("cleaned up")
try:
    signals.listen_again()
except Interrupted as e:
    print("interrupted by", e.signal_number)
"""
    output = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_SECONDS,
    ).stdout

    assert output == f"cleaned up\ninterrupted by {signal.SIGTERM.value}\n"
