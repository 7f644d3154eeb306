"""The order of a set's runs whose time of measurement is unknown."""

import re
from pathlib import Path


def natural_order(path: Path) -> list[tuple[int, str]]:
    """Sorts numbers in names by their value: 5-consumers before 10-consumers."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", str(path))]
