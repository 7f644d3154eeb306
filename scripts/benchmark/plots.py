"""Draws results where that is possible; a benchmark does not need plots."""

import subprocess
import sys
from pathlib import Path

VENV = Path(".venv")
# Exists when .venv is complete: see make_venv in lib/python.bash.
VENV_STAMP = VENV / "requirements.sha256"
DRAW_SECONDS = 600


def draw(root: Path, folder: Path, *options: str) -> None:
    """Draws the run or runs in a folder, or prints why there are no plots."""
    if not (root / VENV_STAMP).is_file():
        print(
            f"No plots: {VENV} is missing; bash scripts/draw_report.bash {folder} creates it and draws them",
            file=sys.stderr,
            flush=True,
        )
        return
    command = [str(root / VENV / "bin/python"), str(root / "scripts/draw_report.py"), *options, str(folder)]
    try:
        # In a session of its own, so that Ctrl-C in the terminal reaches only this script.
        status = subprocess.run(command, start_new_session=True, timeout=DRAW_SECONDS, check=False).returncode
    except (OSError, subprocess.TimeoutExpired) as e:
        print(f"No plots: {e}", file=sys.stderr, flush=True)
        return
    if status != 0:
        print(f"No plots: drawing ended with status {status}", file=sys.stderr, flush=True)
