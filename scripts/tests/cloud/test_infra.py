"""Creates and removes machines, against a fake API that keeps state and injects errors."""

import ast
import json
import re
import shlex
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from cloud import ssh
from cloud.cloud_init import user_data
from cloud.files import InfraFiles
from tests.cloud.fake_api import TOKEN, FakeApi, Trouble
from tests.cloud.scripts import FILES, NAMES, TAG, CloudScripts, add_default_vpc, names
from tests.repository import SCRIPTS

pytestmark = pytest.mark.slow


def kill_after(scripts: CloudScripts, api: FakeApi, request: str, script: str, *arguments: str) -> None:
    """Kills the script as soon as such a request is done, before it gets the answer."""
    answer = api.answer
    killed: list[str] = []

    def answer_and_kill(method: str, path: str, query: dict[str, object], body: dict[str, object]) -> object:
        result = answer(method, path, query, body)
        if f"{method} {path}".startswith(request) and not killed:
            process.kill()
            process.wait()
            killed.append(path)
        return result

    api.answer = answer_and_kill  # type: ignore[method-assign,assignment]
    process = scripts.start(script, *arguments)
    process.communicate(timeout=60)
    assert len(killed) == 1


def test_fresh_start_creates_everything_and_writes_the_addresses(scripts: CloudScripts, api: FakeApi) -> None:
    result = scripts.run("prepare", "--allow", "203.0.113.0/24")

    assert result.returncode == 0, result.stderr
    assert names(api) == NAMES
    (vpc,) = api.vpcs.values()
    (firewall,) = api.firewalls.values()
    assert firewall["tags"] == [TAG]
    outside, inside = {"addresses": ["203.0.113.0/24"]}, {"tags": [TAG]}
    assert [(rule["ports"], rule["sources"]) for rule in firewall["inbound_rules"]] == [
        ("22", outside),
        ("0", outside),
        # A range of addresses could be another project's in the same VPC.
        ("5432", inside),
        ("8080", inside),
    ]
    assert {droplet["vpc_uuid"] for droplet in api.droplets.values()} == {vpc["id"]}
    description = json.loads((scripts.files / "infra.json").read_text())
    assert [machine["name"] for machine in description["machines"]] == NAMES
    variables = (scripts.files / "infra.env").read_text()
    for machine in description["machines"]:
        assert f"export {machine['variable']}_HOST={machine['public']}\n" in variables
        assert f"export {machine['variable']}_PRIVATE_HOST={machine['private']}\n" in variables
    database = description["machines"][3]
    assert f"export DB2_HOST={database['private']}\n" in variables
    assert f"export RUNNER2_HOST={database['public']}\n" in variables
    assert re.search(rf"{NAMES[1]}: \d+ s, still installing\n{NAMES[1]}: ready", result.stdout)
    # The firewall exists before any machine does.
    assert api.requests.index("POST /v2/firewalls") < api.requests.index("POST /v2/droplets")


def test_secrets_are_only_in_a_file_of_the_owner(scripts: CloudScripts) -> None:
    result = scripts.run("prepare")

    passwords = scripts.files / "infra-passwords.env"
    assert passwords.stat().st_mode & 0o777 == 0o600
    values = re.findall(r"^DB(\d)_PASSWORD=([\w-]{32})$", passwords.read_text(), re.MULTILINE)
    assert [number for number, _ in values] == ["0", "1", "2"]
    assert len({value for _, value in values}) == 3
    seen = result.stdout + result.stderr
    for file in scripts.files.iterdir():
        seen += file.read_text() if file != passwords else ""
        assert TOKEN not in file.read_text()
    assert [value for _, value in values if value in seen] == []


def test_second_run_creates_nothing(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare")
    files = {file.name: file.read_text() for file in scripts.files.iterdir()}
    before = len(api.requests)

    result = scripts.run("prepare")

    assert result.returncode == 0, result.stderr
    assert [request for request in api.requests[before:] if not request.startswith("GET")] == []
    assert {file.name: file.read_text() for file in scripts.files.iterdir()} == files


def test_incomplete_infrastructure_is_completed(scripts: CloudScripts, api: FakeApi) -> None:
    api.tags[TAG] = {"name": TAG}
    kept = api.add_droplet(NAMES[1], TAG)["id"]

    result = scripts.run("prepare")

    assert result.returncode == 0, result.stderr
    assert names(api) == NAMES
    assert kept in api.droplets
    assert (api.created("tags"), api.created("droplets")) == (0, 3)


@pytest.mark.parametrize("made", ["tags", "vpcs", "firewalls", "droplets"])
def test_killed_anywhere_the_next_run_resumes(scripts: CloudScripts, api: FakeApi, made: str) -> None:
    kill_after(scripts, api, f"POST /v2/{made}", "prepare")

    result = scripts.run("prepare")

    assert result.returncode == 0, result.stderr
    assert names(api) == NAMES
    assert (len(api.tags), len(api.vpcs), len(api.firewalls)) == (1, 1, 1)
    assert api.created("droplets") == 4


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("status", [500, 503])
def test_create_in_doubt_makes_no_second_machine(
    scripts: CloudScripts, api: FakeApi, status: int, is_done: bool
) -> None:
    api.troubles.append(Trouble("POST", "/v2/droplets", status, {"Retry-After": "0"}, is_done))
    # It is not listed immediately.
    api.listed_after = 2

    result = scripts.run("prepare")

    assert result.returncode == 0, result.stderr
    assert names(api) == NAMES
    assert api.created("droplets") == (4 if is_done else 5)


def test_too_many_requests_are_retried_after_retry_after(scripts: CloudScripts, api: FakeApi) -> None:
    api.troubles.append(Trouble("GET", "/v2/sizes", 429, {"Retry-After": "1"}))
    api.troubles.append(Trouble("POST", "/v2/droplets", 429, {"Retry-After": "0"}))

    result = scripts.run("prepare")

    assert result.returncode == 0, result.stderr
    assert names(api) == NAMES
    assert api.created("droplets") == 5
    first, second = [
        moment
        for moment, request in zip(api.moments, api.requests, strict=True)
        if request == "GET /v2/sizes"
    ][:2]
    assert second - first >= 1


def test_retry_after_beyond_the_deadline_fails(scripts: CloudScripts, api: FakeApi) -> None:
    api.troubles.append(Trouble("GET", "/v2/sizes", 429, {"Retry-After": "3600"}))

    result = scripts.run("prepare")

    assert result.returncode == 1
    assert "listing sizes: asked to wait for 3600 s, which is beyond the limit of 20 s" in result.stderr
    assert "not done within" not in result.stderr


def test_wrong_token_is_reported_without_printing_it(scripts: CloudScripts, api: FakeApi) -> None:
    result = scripts.run("prepare", DO_API_TOKEN="dop_v1_wrong")

    assert result.returncode == 2
    assert "DO_API_TOKEN is wrong" in result.stderr
    assert len(api.requests) == 1


def test_refused_create_is_reported_and_not_retried(scripts: CloudScripts, api: FakeApi) -> None:
    api.troubles.append(Trouble("POST", "/v2/droplets", 422))

    result = scripts.run("prepare")

    assert result.returncode == 1
    assert f"creating droplet {NAMES[0]}: the API answered 422: as the test wants it" in result.stderr
    assert api.created("droplets") == 1


def test_droplet_that_never_runs_fails_at_the_deadline(scripts: CloudScripts, api: FakeApi) -> None:
    api.becomes_active = False

    result = scripts.run("prepare", "--wait-seconds", "0.5")

    assert result.returncode == 1
    assert result.stderr == f"Starting {NAMES[0]}: not done within 0.5 s\n"
    assert not (scripts.files / "infra.env").exists()


def test_changed_host_key_is_refused_at_once(scripts: CloudScripts) -> None:
    result = scripts.run("prepare", SSH_FAILS="Host key verification failed.")

    assert result.returncode == 1
    assert "another ssh host key than before" in result.stderr


def test_changed_options_are_refused(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare")

    result = scripts.run("prepare", "--app-size", "s-4vcpu-8gb-amd")

    assert result.returncode == 1
    assert f"{NAMES[0]} already exists as s-2vcpu-2gb-amd in fra1" in result.stderr
    assert api.created("droplets") == 4


def test_size_that_is_sold_out_matters_only_to_missing_machines(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare")
    api.sold_out = {"s-2vcpu-2gb-amd", "s-4vcpu-8gb-amd"}

    assert scripts.run("prepare").returncode == 0

    number = next(each["id"] for each in api.droplets.values() if each["name"] == NAMES[0])
    del api.droplets[number]
    result = scripts.run("prepare")
    assert result.returncode == 1
    assert result.stderr == "the size s-2vcpu-2gb-amd is not available in the region fra1\n"


def test_dry_run_prints_the_price_and_creates_nothing(scripts: CloudScripts, api: FakeApi) -> None:
    result = scripts.run("prepare", "--dry-run")

    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "Together: 0.2812 USD an hour, at most 189.00 USD a month"
    assert {request for request in api.requests if not request.startswith("GET")} == set()
    assert list(scripts.files.iterdir()) == []


def test_machine_after_200_others_is_found(scripts: CloudScripts, api: FakeApi) -> None:
    for number in range(230):
        api.add_droplet(f"other-{number}", "another-tag")
    for name in NAMES:
        api.add_droplet(name, TAG, "s-2vcpu-2gb-amd" if name.endswith("app") else "s-4vcpu-8gb-amd")

    result = scripts.run("prepare")

    assert result.returncode == 0, result.stderr
    assert api.created("droplets") == 0


def test_destroy_removes_exactly_what_has_the_tag(scripts: CloudScripts, api: FakeApi) -> None:
    add_default_vpc(api)
    api.firewalls["mine"] = {"id": "mine", "name": "mine", "tags": ["web"]}
    other = api.add_droplet(NAMES[0], "another-tag")["id"]
    scripts.run("prepare")
    # For a while after they were removed, the VPC still has members.
    api.troubles.append(Trouble("DELETE", "/v2/vpcs/vpc-1", 403))

    result = scripts.run("destroy", answer=f"{TAG}\n")

    assert result.returncode == 0, result.stderr
    assert list(api.droplets) == [other]
    assert (list(api.firewalls), list(api.vpcs), api.tags) == (["mine"], ["mine"], {})
    assert api.requests.count("DELETE /v2/vpcs/vpc-1") == 2
    assert api.requests[-6] == "DELETE /v2/vpcs/vpc-1"
    assert list(scripts.files.iterdir()) == []


@pytest.mark.parametrize("answer", ["", "yes\n"])
def test_destroy_without_consent_removes_nothing(scripts: CloudScripts, api: FakeApi, answer: str) -> None:
    scripts.run("prepare")

    result = scripts.run("destroy", answer=answer)

    assert result.returncode == 1
    assert names(api) == NAMES
    assert [request for request in api.requests if request.startswith("DELETE")] == []


@pytest.mark.parametrize("removed", ["droplets", "firewalls", "tags", "vpcs"])
def test_destroy_resumes_after_it_was_killed(scripts: CloudScripts, api: FakeApi, removed: str) -> None:
    add_default_vpc(api)
    scripts.run("prepare")
    # A machine that is being removed is still listed.
    api.listed_on = 3
    kill_after(scripts, api, f"DELETE /v2/{removed}", "destroy", "--yes")

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert (api.droplets, api.firewalls, list(api.vpcs), api.tags) == ({}, {}, ["mine"], {})
    assert list(scripts.files.iterdir()) == []
    assert scripts.run("destroy", "--yes").stdout == f"Nothing has the tag {TAG}.\n"


def test_default_vpc_of_the_region_stays_and_is_not_waited_for(scripts: CloudScripts, api: FakeApi) -> None:
    # It is the first one of the region.
    scripts.run("prepare")

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert list(api.vpcs) == ["vpc-0"]
    assert (api.droplets, api.firewalls, api.tags) == ({}, {}, {})
    assert list(scripts.files.iterdir()) == []
    stays = (
        f"VPC       {TAG}-vpc, 10.110.0.0/20, fra1: stays, since DigitalOcean never removes a region's "
        "default VPC; it costs nothing\n"
    )
    assert stays in result.stdout
    for script in ("show", "destroy"):
        assert scripts.run(script).stdout == f"Nothing has the tag {TAG}.\n{stays}"
    assert scripts.run("prepare").returncode == 0
    assert list(api.vpcs) == ["vpc-0"]


def test_default_vpc_in_another_region_says_what_to_choose(scripts: CloudScripts) -> None:
    scripts.run("prepare")
    scripts.run("destroy", "--yes")

    result = scripts.run("prepare", "--region", "ams3")

    assert result.returncode == 1
    assert "is in fra1, not in ams3; choose that --region, or another --tag" in result.stderr


def test_destroy_prints_what_it_waits_for(scripts: CloudScripts, api: FakeApi) -> None:
    add_default_vpc(api)
    scripts.run("prepare")
    api.listed_on = 2
    api.troubles.extend([Trouble("DELETE", "/v2/vpcs/vpc-1", 403), Trouble("DELETE", "/v2/vpcs/vpc-1", 403)])

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert result.stdout.count("droplets still being removed: 4\n") == 1
    waiting = "removing the VPC: the API answered 403: as the test wants it; retrying for up to 20 s\n"
    assert result.stdout.count(waiting) == 1


def test_resource_created_during_destroy_is_reported(scripts: CloudScripts, api: FakeApi) -> None:
    add_default_vpc(api)
    scripts.run("prepare")
    answer = api.answer

    def answer_and_create(
        method: str, path: str, query: dict[str, object], body: dict[str, object]
    ) -> object:
        result = answer(method, path, query, body)
        if f"{method} {path}" == "DELETE /v2/vpcs/vpc-1":
            api.tags[TAG] = {"name": TAG}
        return result

    api.answer = answer_and_create  # type: ignore[method-assign,assignment]

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 1
    assert result.stderr == f"not everything was removed; run destroy_infra.py again:\ntag       {TAG}\n"
    assert sorted(file.name for file in scripts.files.iterdir()) == FILES


def test_machine_that_is_being_created_is_removed_afterwards(scripts: CloudScripts, api: FakeApi) -> None:
    api.tags[TAG] = {"name": TAG}
    number = api.add_droplet(NAMES[0], TAG)["id"]

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert api.droplets == {}
    assert api.requests.count(f"DELETE /v2/droplets/{number}") == 2
    assert "Droplet already has a pending event." in result.stdout


def test_other_refusal_to_remove_a_machine_is_reported_at_once(scripts: CloudScripts, api: FakeApi) -> None:
    number = api.add_droplet(NAMES[0], TAG)["id"]
    api.troubles.append(Trouble("DELETE", f"/v2/droplets/{number}", 422))

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 1
    assert f"removing droplet {number}: the API answered 422: as the test wants it" in result.stderr


def test_files_of_another_tag_are_kept(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare")
    before = {file.name: file.read_text() for file in scripts.files.iterdir()}
    api.tags["another"] = {"name": "another"}

    # The first time the tag exists, the second time it does not.
    for _ in range(2):
        result = scripts.run("destroy", "--yes", "--tag", "another")
        assert result.returncode == 0, result.stderr
        assert f"Kept the files in {scripts.files}" in result.stdout
        assert {file.name: file.read_text() for file in scripts.files.iterdir()} == before
    assert names(api) == NAMES


def test_another_tag_is_not_prepared_over_the_files_of_the_first(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare")
    before = {file.name: file.read_text() for file in scripts.files.iterdir()}

    result = scripts.run("prepare", "--tag", "another")

    assert result.returncode == 2
    assert f"infra.json belongs to the tag {TAG}: remove those machines with" in result.stderr
    assert {file.name: file.read_text() for file in scripts.files.iterdir()} == before
    assert names(api) == NAMES
    assert "another" not in api.tags


def test_files_without_a_known_tag_are_kept(scripts: CloudScripts) -> None:
    passwords = scripts.files / "infra-passwords.env"
    passwords.write_text("DB0_PASSWORD=by-hand\n")

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert f"Kept the files in {scripts.files}" in result.stdout
    assert passwords.exists()


@pytest.mark.parametrize(("answer", "left"), [("", FILES), (f"{TAG}\n", [])])
def test_files_of_machines_that_are_not_found_are_removed_with_consent(
    scripts: CloudScripts, api: FakeApi, answer: str, left: list[str]
) -> None:
    scripts.run("prepare")
    # The machines no longer exist, or the token belongs to another team.
    for kind in (api.droplets, api.firewalls, api.vpcs, api.tags):
        kind.clear()

    result = scripts.run("destroy", answer=answer)

    assert result.returncode == (1 if left else 0), result.stderr
    assert f"files     in {scripts.files}: of machines that no longer exist, or" in result.stdout
    assert sorted(file.name for file in scripts.files.iterdir()) == left


def test_passwords_of_machines_that_never_became_ready_are_removed(
    scripts: CloudScripts, api: FakeApi
) -> None:
    api.troubles.append(Trouble("POST", "/v2/droplets", 422))
    assert scripts.run("prepare").returncode == 1
    assert (scripts.files / "infra-passwords.env").exists()

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert list(scripts.files.iterdir()) == []


def test_leftovers_next_to_the_files_are_ignored_and_removed(tmp_path: Path) -> None:
    files = InfraFiles(tmp_path)
    files.claim({"tag": TAG})
    # Of a script that was killed while it wrote, and of ssh-keygen -R.
    names = [".infra.env.17", ".infra.json.17", ".infra-passwords.env.17", "infra-known-hosts.old"]
    for name in names:
        (tmp_path / name).touch()
    ignored = subprocess.run(
        ["git", "check-ignore", *names], cwd=SCRIPTS.parent, capture_output=True, text=True
    )

    files.remove()

    assert ignored.stdout.split() == names
    assert list(tmp_path.iterdir()) == []


def test_description_of_the_files_is_removed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = InfraFiles(tmp_path)
    files.claim({"tag": TAG})
    files.add_passwords(1)
    removed: list[str] = []
    monkeypatch.setattr(Path, "unlink", lambda file, missing_ok: removed.append(file.name))

    files.remove()

    # So an interrupted removal still knows to which tag the others belong.
    assert removed.index("infra-passwords.env") < removed.index("infra.json") == len(removed) - 1


def test_known_hosts_in_a_folder_with_a_blank_are_one_file() -> None:
    file = Path("/a folder/infra-known-hosts")

    # ssh splits unquoted text as a shell does.
    assert [shlex.split(option)[0] for option in ssh.options(file) if "UserKnownHosts" in option] == [
        f"UserKnownHostsFile={file}"
    ]


@pytest.mark.parametrize(
    "comment", ['"quoted"', "a: b", "a #b", "a\\b", "'single'", "jörg@мир.😀", "- [x, {y}]"]
)
def test_key_is_one_string_of_yaml_whatever_its_comment_is(comment: str) -> None:
    key = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ {comment}"

    (line,) = [line for line in user_data(f"{key}\n").splitlines() if "ssh-ed25519" in line]

    # A string of JSON is one of YAML with the same meaning.
    assert line.startswith("      - ")
    assert json.loads(line.removeprefix("      - ")) == key


@pytest.mark.parametrize("script", ["prepare", "show", "destroy"])
def test_missing_modules_are_reported_with_how_to_install_them(script: str) -> None:
    # -S: without what is installed.
    result = subprocess.run(
        [sys.executable, "-S", str(SCRIPTS / f"{script}_infra.py"), "--help"], capture_output=True, text=True
    )

    assert result.returncode == 2
    assert result.stderr == (
        "The Python module pydo is missing; "
        "run: bash scripts/init_python_env.bash && source venv/bin/activate\n"
    )


def test_everything_imported_is_pinned() -> None:
    lines = (SCRIPTS / "requirements-cloud.txt").read_text().splitlines()
    pinned = {line.partition("==")[0] for line in lines if "==" in line}
    imported = set()
    for file in (SCRIPTS / "cloud").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module).partition(".")[0])
    installed = packages_distributions()
    foreign = imported & set(installed)

    assert foreign >= {"azure", "pydo"}
    assert [name for name in foreign if not pinned & set(installed[name])] == []


def test_show_prints_addresses_and_price(scripts: CloudScripts) -> None:
    scripts.run("prepare")

    result = scripts.run("show")

    assert result.returncode == 0, result.stderr
    assert f"{NAMES[0]}: 203.0.113.1 (public), 10.110.0.1 (private)" in result.stdout
    assert result.stdout.splitlines()[-1] == "Together: 0.2812 USD an hour, at most 189.00 USD a month"


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ([], {"DO_API_TOKEN": ""}, "DO_API_TOKEN must be set"),
        ([], {"SSH_KEY_FINGERPRINT": ""}, "SSH_KEY_FINGERPRINT must be set"),
        ([], {"SSH_KEY_FINGERPRINT": "00:00"}, "SSH_KEY_FINGERPRINT must be an MD5 fingerprint of 16 bytes"),
        ([], {"SSH_KEY_FINGERPRINT": "00:" * 15 + "00"}, "SSH_KEY_FINGERPRINT names no key"),
        ([], {"SSH_KEY_FINGERPRINT": "SHA256:abc"}, "SSH_KEY_FINGERPRINT must be an MD5 fingerprint"),
        ([], {"DO_API_TOKEN": "dop_v1_first\nsecond"}, "DO_API_TOKEN must be one word of ASCII"),
        ([], {"SSH_KEY_FILE": "/no/such/key"}, "SSH_KEY_FILE must be a private key, but /no/such/key is no"),
        (["--databases", "0"], {}, "--databases must be a number between 1 and 16, but is 0"),
        (["--allow", "everyone"], {}, "--allow must be a range"),
        (["--tag", "My tag"], {}, "--tag must be lower-case"),
        (["--api-url", "http://example.org"], {}, "--api-url must begin with https://"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_created(
    scripts: CloudScripts, api: FakeApi, arguments: list[str], environment: dict[str, str], message: str
) -> None:
    result = scripts.run("prepare", *arguments, **environment)

    assert result.returncode == 2
    assert message in result.stderr
    assert [request for request in api.requests if not request.startswith("GET")] == []
