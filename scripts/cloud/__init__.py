"""Machines for a benchmark at DigitalOcean: made, shown, removed."""

import sys

# Here, since every script comes by here first: even its --help needs what follows.
try:
    import pydo  # noqa: F401
except ModuleNotFoundError as e:
    print(
        f"The Python module {e.name} is missing; "
        "run: bash scripts/init_python_env.bash && source venv/bin/activate",
        file=sys.stderr,
    )
    sys.exit(2)
