"""Creates, shows and removes the machines of a benchmark at DigitalOcean."""

import sys

# Every script imports this first, and even its --help needs the module.
try:
    import pydo  # noqa: F401
except ModuleNotFoundError as e:
    print(
        f"The Python module {e.name} is missing; "
        "run: bash scripts/init_python_env.bash && source venv/bin/activate",
        file=sys.stderr,
    )
    sys.exit(2)
