"""The order in which a set's runs are shown where it is not known when they were measured."""

import re
from pathlib import Path


def natural_order(path: Path) -> list[tuple[int, str]]:
    """Sorts numbers in names by their value: 5-consumers before 10-consumers."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", str(path))]
