"""Everything that is downloaded is named by its content, and no container has more rights than it needs."""

import re
from itertools import takewhile
from pathlib import Path

import pytest
from tests.repository import SCRIPTS

ROOT = SCRIPTS.parent
DIGEST = r"@sha256:[0-9a-f]{64}"
SERVICES = ("events-db", "app", "runner", "prometheus", "grafana")


def section(name: str) -> str:
    """The part of compose.yaml that describes the service; the databases share one."""
    lines = (ROOT / "compose.yaml").read_text().splitlines(keepends=True)
    header = "x-events-db: &events-db\n" if name == "events-db" else f"  {name}:\n"
    indent = len(header) - len(header.lstrip())
    after = lines[lines.index(header) + 1 :]
    return "".join(takewhile(lambda line: len(line) - len(line.lstrip()) > indent, after))


@pytest.mark.parametrize("component", ["app", "events-db", "runner"])
def test_base_images_are_pinned_by_digest(component: str) -> None:
    assert re.search(
        rf"^ARG BASE_IMAGE=\S+:\S+{DIGEST}$", (ROOT / component / "Dockerfile").read_text(), re.MULTILINE
    )


def test_images_of_compose_are_built_here_or_pinned_by_digest() -> None:
    images = re.findall(r"image: (\S+)", (ROOT / "compose.yaml").read_text())

    assert len(images) == len(SERVICES)
    assert [
        image for image in images if not image.startswith("eventsql-") and not re.search(f"{DIGEST}$", image)
    ] == []


@pytest.mark.parametrize("service", SERVICES)
def test_services_of_compose_are_confined(service: str) -> None:
    assert "<<: *confined\n" in section(service)
    confined = re.search(
        r"^x-confined: &confined\n((?:  .*\n)+)", (ROOT / "compose.yaml").read_text(), re.MULTILINE
    )
    assert confined is not None
    assert confined[1] == (
        '  cap_drop: [ALL]\n  security_opt: ["no-new-privileges:true"]\n  pids_limit: 1024\n'
    )


def test_grafana_has_no_admin_with_a_known_password() -> None:
    """Without its login form, admin:admin was still accepted by its API."""
    grafana = section("grafana")

    assert 'GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: "true"' in grafana
    assert 'GF_AUTH_BASIC_ENABLED: "false"' in grafana
    assert "GF_AUTH_ANONYMOUS_ORG_ROLE" not in grafana


def test_ports_of_compose_are_open_to_this_machine_only() -> None:
    ports = re.findall(r'ports: \["([^"]+)"\]', (ROOT / "compose.yaml").read_text())

    assert len(ports) == 3
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("file", sorted(SCRIPTS.glob("requirements*.txt")), ids=lambda file: file.name)
def test_python_packages_have_hashes_and_the_chosen_versions(file: Path) -> None:
    text = file.read_text()
    packages = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())

    assert [package for package in packages if "--hash=sha256:" not in package] == []
    chosen = file.with_suffix(".in").read_text().split()
    assert chosen
    assert [line for line in chosen if not re.search(rf"^{re.escape(line)}[ ;\\]", text, re.MULTILINE)] == []


@pytest.mark.parametrize("script", ["init_python_env.bash", "lib/python.bash"])
def test_pip_requires_the_hashes(script: str) -> None:
    assert "pip install --quiet" in (SCRIPTS / script).read_text()
    assert "--require-hashes" in (SCRIPTS / script).read_text()


def test_prometheus_scrapes_the_runner() -> None:
    port = re.search(r"METRICS_PORT: (\d+)", section("runner"))
    assert port is not None
    assert (
        f"names: [runner]\n        type: A\n        port: {port[1]}\n"
        in (ROOT / "monitoring/prometheus.yaml").read_text()
    )
    # Otherwise the name does not resolve.
    assert "docker compose run --rm --use-aliases runner" in (ROOT / "compose.yaml").read_text()
