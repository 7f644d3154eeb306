"""How long tests wait for a process: a limit only for one that hangs, since a machine may be busy."""

import signal
import subprocess

import pytest

WAIT_SECONDS = 600
# For the stacks that a process prints before it dies.
ABORT_SECONDS = 30


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Waits for a process to end; returns its standard output and error.

    One that hangs gets SIGABRT, so that Python with PYTHONFAULTHANDLER=1 prints where it is, and the test
    fails with all it printed.
    """
    try:
        return process.communicate(timeout=WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
    try:
        out, err = process.communicate(timeout=ABORT_SECONDS)
        printed = f"{out}\n{err}"
    except subprocess.TimeoutExpired as e:
        # Another process still has its pipes.
        printed = f"{e.stdout!r}\n{e.stderr!r}"
    pytest.fail(f"{process.args!r} had not ended after {WAIT_SECONDS} s:\n{printed}")
