"""Folders of a run."""

import contextlib
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

TIME_FORMAT = "%Y-%m-%dT%H-%M-%SZ"


def create_result_folder(parent: Path, now: datetime) -> Path:
    """Creates a folder named after the time in UTC; runs of the same second get a number."""
    name = now.astimezone(UTC).strftime(TIME_FORMAT)
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


@contextlib.contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Creates a folder that only its owner can read, and removes it when the block ends."""
    folder.mkdir(parents=True, mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
