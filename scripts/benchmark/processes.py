"""Child processes that never outlive the benchmark."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TextIO

from benchmark.errors import Failure
from benchmark.signals import Signals

POLL_SECONDS = 0.1
KILL_SECONDS = 2.0


@dataclass
class Child:
    """A process started here, the leader of a process group of its own."""

    name: str
    process: subprocess.Popen[str]
    log: Path
    stop_seconds: float
    readers: list[threading.Thread] = field(default_factory=list)
    stopped: bool = False

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs.

        The process is reaped only by stop(), so that its id is not reused before.
        """
        if self.process.returncode is not None or not hasattr(os, "waitid"):
            return self.process.poll()
        ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def terminate(self) -> None:
        """Asks the process to stop, without waiting."""
        if self.status is None:
            os.kill(self.process.pid, signal.SIGTERM)

    def stop(self) -> None:
        """Stops the process and its whole group: SIGTERM first, SIGKILL after the deadline."""
        if self.stopped:
            return
        self.stopped = True
        self.terminate()
        deadline = time.monotonic() + self.stop_seconds
        while self.status is None and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        # If the process has ended on its own, this stops the processes it has left.
        self._signal_group(signal.SIGKILL if self.status is None else signal.SIGTERM)
        self.process.wait()
        while self._signal_group(0) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        self._signal_group(signal.SIGKILL)
        # A killed process takes a moment to exit; the deadline is for zombies that are never reaped.
        killed = time.monotonic()
        while self._signal_group(0) and time.monotonic() < killed + KILL_SECONDS:
            time.sleep(POLL_SECONDS)
        self.join_readers()
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def join_readers(self) -> None:
        """Waits until all output is written."""
        for reader in self.readers:
            reader.join(timeout=5)

    def _signal_group(self, number: int) -> bool:
        """Signals all members; returns False if there are none."""
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


class Processes:
    """Starts children, and stops them in reverse order when the block ends, however it ends."""

    def __init__(self, signals: Signals, logs: Path, folder: Path) -> None:
        self._signals = signals
        self._logs = logs
        self._folder = folder
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signals.ignore_from_now()
        for child in self._children:
            # All at the same time, so that the slow ones stop concurrently.
            if child.name.startswith("runner"):
                child.terminate()
        for child in reversed(self._children):
            child.stop()

    def start(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        stop_seconds: float,
        report: Path | None = None,
    ) -> Child:
        """Starts a process.

        Its output goes to logs/<name>.log. With a report, standard output goes there instead, and both
        are printed, too, each line after the process's name.
        """
        log = self._logs / f"{name}.log"
        with self._signals.deferred():
            if report is None:
                with log.open("w") as output:
                    process = self._popen(command, environment, output, output)
            else:
                process = self._popen(command, environment, subprocess.PIPE, subprocess.PIPE)
            child = Child(name, process, log, stop_seconds)
            self._children.append(child)
        if report is not None:
            child.readers = [
                _copy_lines(process.stdout, report, name, sys.stdout),
                _copy_lines(process.stderr, log, name, sys.stderr),
            ]
        return child

    def _popen(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        out: int | TextIO,
        err: int | TextIO,
    ) -> subprocess.Popen[str]:
        # In a session of its own, so that Ctrl-C in the terminal reaches only this script, which stops
        # its children in the right order. Standard input is a pipe without data; when it is closed, the
        # databases stop.
        return subprocess.Popen(
            [*stop_with_this_process(), *command],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def wait_until(
        self, condition: Callable[[], bool], what: str, seconds: float, needed: Sequence[Child]
    ) -> None:
        """Waits for a condition; raises Failure after the time, or when a process it needs has ended."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.require_running(needed)
            if time.monotonic() > deadline:
                raise Failure(f"{what} took longer than {seconds:.0f} s, see {needed[-1].log}")
            time.sleep(POLL_SECONDS)

    @staticmethod
    def require_running(needed: Sequence[Child]) -> None:
        """Raises Failure if one of the processes has ended."""
        for child in needed:
            if child.status is not None:
                raise Failure(
                    f"{child.name} ended with status {child.status}, see {child.log}{_tail(child.log)}"
                )


@cache
def stop_with_this_process() -> Sequence[str]:
    """Returns the prefix of a command that gets SIGTERM when this process dies, even by SIGKILL.

    Empty where the system does not support it, as outside Linux.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return []
    prefix = [setpriv, "--pdeathsig", "TERM"]
    # Some versions do not have this option.
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else []


def _copy_lines(source: IO[str] | None, file: Path, name: str, console: TextIO) -> threading.Thread:
    def copy() -> None:
        if source is None:
            return
        with source, file.open("w") as output:
            for line in source:
                output.write(line)
                output.flush()
                # One write a line, so that lines of several processes do not mix.
                console.write(f"[{name}] {line}" if line.strip() else line)
                console.flush()

    thread = threading.Thread(target=copy, name=f"copy-{name}", daemon=True)
    thread.start()
    return thread


def _tail(log: Path, lines: int = 15) -> str:
    with contextlib.suppress(OSError):
        last = log.read_text(errors="replace").splitlines()[-lines:]
        return "".join(f"\n  {line}" for line in last)
    return ""
