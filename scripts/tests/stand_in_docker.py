"""A fake `docker` for tests that replace versions of a container: keeps names and images in a file.

DOCKER_STATE names the file; an image with "broken" in its name never becomes healthy, and a container marked
"ill" in it is unhealthy until it starts again. After the number of commands in DOCKER_DIES, it kills the
calling script once the command is done.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

file = Path(os.environ["DOCKER_STATE"])
state: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"containers": {}, "commands": 0}
containers: dict[str, dict[str, Any]] = state["containers"]
arguments = sys.argv[1:]


def named() -> str:
    return arguments[-1]


def run() -> int:
    name = arguments[arguments.index("--name") + 1]
    assert name not in containers
    containers[name] = {"image": named(), "running": True, "ill": False, "id": f"id-{state['commands']}"}
    containers[name]["options"] = arguments
    return 0


def inspect() -> int:
    if named() not in containers:
        return 1
    container = containers[named()]
    template = arguments[arguments.index("--format") + 1]
    if "Health.Log" in template:
        print("127.0.0.1:5432 - accepting connections\n10.0.0.9:5432 - no response")
    elif "Health" in template:
        healthy = container["running"] and not container["ill"] and "broken" not in container["image"]
        print(str(container["running"]).lower(), "healthy" if healthy else "starting")
    elif "RestartCount" in template:
        print(3 if "broken" in container["image"] else 0)
    elif ".Id" in template:
        print(container["id"])
    else:
        print(container["image"])
    return 0


def ps() -> int:
    name = arguments[arguments.index("--filter") + 1].removeprefix("name=^").removesuffix("$")
    print("0123456789ab" if name in containers else "")
    return 0


def rename() -> int:
    containers[arguments[2]] = containers.pop(arguments[1])
    return 0


def rm() -> int:
    return 0 if containers.pop(named(), None) else 1


def stop() -> int:
    containers[named()]["running"] = False
    return 0


def start() -> int:
    containers[named()].update(running=True, ill=False)
    return 0


def load() -> int:
    print("Loaded image: eventsql-events-db:1")
    return 0


def nothing() -> int:
    return 0


changing = {
    "run": run,
    "rename": rename,
    "rm": rm,
    "stop": stop,
    "start": start,
}
reading = {
    "inspect": inspect,
    "ps": ps,
    "load": load,
    "logs": nothing,
    "image": nothing,
    "exec": nothing,
}
command = arguments[0]
status = (changing.get(command) or reading[command])()
if command in changing:
    state["commands"] += 1
    file.write_text(json.dumps(state))
    if state["commands"] == int(os.environ.get("DOCKER_DIES", "0")):
        os.kill(os.getppid(), signal.SIGKILL)
sys.exit(status)
