"""A fake `java` for tests of the order of steps: acts as the given jar.

STAND_IN injects a fault: "" none; "fail:<name>" it exits with 1 immediately; "hang" the runners wait for
SIGTERM and then write a result, like real ones; "lost" the summary exits with 1, and so do the limits
benchmark and the first run of a workload. A workload's file contains its plan as JSON.
"""

import json
import os
import signal
import sys
from pathlib import Path


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


def events_db() -> None:
    servers = [
        {
            "host": "localhost",
            "port": 1000 + n,
            "database": "d",
            "user": "u",
            "password": f"secret-{n}",
            "pid": 4000 + n,
            "standbys": [],
        }
        for n in range(int(option("--count")))
    ]
    data = Path(option("--data-folder"))
    data.mkdir(parents=True)
    unfinished = data / "out"
    unfinished.write_text(json.dumps({"servers": servers}))
    unfinished.rename(option("--out"))
    signal.pause()


def app() -> None:
    # Takes longer to import than everything else that the other programs do.
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/actuator/health" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("localhost", 0), Handler)
    Path(os.environ["PORT_FILE"] + ".tmp").write_text(str(server.server_port))
    Path(os.environ["PORT_FILE"] + ".tmp").rename(os.environ["PORT_FILE"])
    server.serve_forever()


def runner_publish() -> None:
    # Blocked from here on, so that an early signal is not missed.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    shown = (
        "RUNNER_NUMBER",
        "RUNNERS",
        "RUN_ID",
        "DB0_HOST",
        "DB0_PASSWORD",
        "EVENTS_RATE",
        "KEYED",
        "APP_URLS",
        "PROCESSES",
    )
    print("publishing", flush=True)
    if os.environ["STAND_IN"] == "hang":
        signal.sigwait([signal.SIGTERM])
    Path(os.environ["RUNNER_RESULT"]).write_text(json.dumps({name: os.environ.get(name) for name in shown}))


def runner_summarize() -> None:
    out = Path(option("--out"))
    apps = [argument.partition("=")[2] for argument in sys.argv if argument.startswith("--app-url=")]
    workload = {"workload": option("--workload")} if "--workload" in sys.argv else {}
    result = {"run": option("--run"), "command": option("--command"), "apps": apps, **workload}
    out.write_text(json.dumps(result))
    out.with_name("report.txt").write_text("the summary\n")
    sys.exit(1 if os.environ["STAND_IN"] in ("lost", "hang") else 0)


def runner_list() -> None:
    print("the workloads")


def runner_plan() -> None:
    workload = sys.argv[sys.argv.index("plan") + 1]
    file = Path("runner/workloads") / f"{workload}.yaml"
    if not file.exists():
        print(f"There is no workload {workload}", file=sys.stderr)
        sys.exit(2)
    print(file.read_text())


def runner_run() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    print("measuring", flush=True)
    if os.environ["STAND_IN"] == "hang":
        signal.sigwait([signal.SIGTERM])
    arguments = sys.argv[sys.argv.index("run") + 1 :]
    workload = Path(arguments[0])
    run = workload.stem if workload.suffix else option("--only")
    failed = os.environ["STAND_IN"] == "hang" or (
        os.environ["STAND_IN"] == "lost" and run in ("first", "limits")
    )
    result = {
        "format": 2,
        "kind": "phases",
        "workload": arguments[0],
        "run": run,
        "passed": not failed,
        "phases": [],
        "settings": {},
        "command": option("--command"),
        "arguments": arguments,
        "shards": [os.environ.get(f"DB{number}_PASSWORD") for number in range(3)],
    }
    if workload.suffix:
        result |= json.loads(workload.read_text())
        result |= {name: os.environ.get(name) for name in ("DB0_HOST", "ONLY")}
    folder = Path(option("--out")) / run
    folder.mkdir(exist_ok=True)
    (folder / "result.json").write_text(json.dumps(result))
    sys.exit(1 if failed else 0)


def runner_plain() -> None:
    (Path(option("--out")) / option("--only") / "plain.json").write_text(json.dumps({"programs": []}))


if "-jar" in sys.argv:
    jar = Path(option("-jar")).stem
    name = jar if jar != "runner" else f"runner-{sys.argv[sys.argv.index('-jar') + 2]}"
else:
    name = f"runner-{sys.argv[sys.argv.index('-cp') + 3]}"
with Path(os.environ["STAND_IN_IDS"]).open("a") as ids:
    ids.write(f"{os.getpid()}\n")
if os.environ["STAND_IN"] == f"fail:{name}":
    sys.exit("broken on purpose")
{
    "events-db": events_db,
    "app": app,
    "runner-publish": runner_publish,
    "runner-summarize": runner_summarize,
    "runner-list": runner_list,
    "runner-plan": runner_plan,
    "runner-plain": runner_plain,
    "runner-run": runner_run,
}[name]()
