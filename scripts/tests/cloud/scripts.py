"""Runs the cloud scripts as a user does, with a fake ssh."""

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import destroy_infra
import prepare_infra
import show_infra
from benchmark.signals import STOP_SIGNALS
from cloud.script import run
from tests.cloud.fake_api import FINGERPRINT, TOKEN, FakeApi
from tests.repository import SCRIPTS

# Answers that the machine is still installing the first time, and that it is ready afterwards.
SSH = """#!/bin/sh
for argument; do address=$argument; [ "${argument#eventsql@}" = "$argument" ] || break; done
if [ -n "$SSH_FAILS" ]; then echo "$SSH_FAILS" >&2; exit 255; fi
if [ -n "$SSH_STATUS" ]; then exit "$SSH_STATUS"; fi
if [ -e "$SSH_SEEN/$address" ]; then exit 0; fi
touch "$SSH_SEEN/$address"
exit 1
"""


TAG = "eventsql-benchmark"
NAMES = [f"{TAG}-app", *(f"{TAG}-events-db-{n}" for n in range(3))]
FILES = ["infra-passwords.env", "infra.env", "infra.json"]

MAINS = {"prepare": prepare_infra.main, "show": show_infra.main, "destroy": destroy_infra.main}


@dataclass(frozen=True)
class Result:
    """The exit code and the output of a script."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class CloudScripts:
    """The scripts of one test, with a folder of its own for what they write."""

    folder: Path
    api: FakeApi

    @staticmethod
    def create(folder: Path, api: FakeApi) -> "CloudScripts":
        ssh = folder / "bin/ssh"
        ssh.parent.mkdir()
        ssh.write_text(SSH)
        ssh.chmod(0o755)
        (folder / "seen").mkdir()
        (folder / "files").mkdir()
        return CloudScripts(folder, api)

    @property
    def files(self) -> Path:
        return self.folder / "files"

    def options(self) -> list[str]:
        times = ["--pause-seconds", "0.02", "--wait-seconds", "20"]
        return ["--api-url", self.api.url, "--folder", str(self.files), *times]

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "SSH_SEEN": str(self.folder / "seen"),
            "SSH_FAILS": "",
            "SSH_STATUS": "",
            "DO_API_TOKEN": TOKEN,
            "SSH_KEY_FINGERPRINT": FINGERPRINT,
        }

    def start(self, script: str, *arguments: str) -> subprocess.Popen[str]:
        """Starts a process of its own, to be killed."""
        return subprocess.Popen(
            [sys.executable, str(SCRIPTS / f"{script}_infra.py"), *self.options(), *arguments],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, script: str, *arguments: str, answer: str = "", **environment: str) -> Result:
        """Runs in this process, because most of the time of a script is its start."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, {**self.environment(), **environment}),
            mock.patch.object(sys, "stdin", io.StringIO(answer)),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            kept_signal_handlers(),
        ):
            status = run(lambda: MAINS[script]([*self.options(), *arguments]))
        result = Result(status, out.getvalue(), err.getvalue())
        token = environment.get("DO_API_TOKEN") or TOKEN
        assert token not in result.stdout + result.stderr
        return result


@contextlib.contextmanager
def kept_signal_handlers() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def names(api: FakeApi) -> list[str]:
    return sorted(droplet["name"] for droplet in api.droplets.values())


def add_default_vpc(api: FakeApi) -> None:
    """Makes it the region's default, so that the benchmark's is not."""
    api.vpcs["mine"] = {"id": "mine", "name": "mine", "description": "", "region": "fra1", "default": True}
