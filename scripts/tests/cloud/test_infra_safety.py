"""What must not happen to machines that cost: made twice, forgotten, unprotected, others' removed."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cloud.files import InfraFiles
from tests.cloud.fake_api import FINGERPRINT, TOKEN, FakeApi, Json, Trouble
from tests.cloud.scripts import FILES, NAMES, TAG, CloudScripts, add_default_vpc, names

pytestmark = pytest.mark.slow


def write_requests(api: FakeApi) -> list[str]:
    return [request for request in api.requests if not request.startswith("GET")]


def after_each(api: FakeApi, act: Callable[[str], None]) -> None:
    """Calls `act` with each request, as "METHOD path", after it was carried out."""
    answer = api.answer

    def answer_and_act(method: str, path: str, query: Json, body: Json) -> tuple[int, Json]:
        result = answer(method, path, query, body)
        act(f"{method} {path}")
        return result

    api.answer = answer_and_act  # type: ignore[method-assign]


def droplet(api: FakeApi, name: str) -> Json:
    (found,) = [each for each in api.droplets.values() if each["name"] == name]
    return found


# One folder at a time.


@pytest.mark.parametrize("second", ["prepare", "destroy"])
def test_second_script_in_the_folder_is_refused_while_the_first_works(
    scripts: CloudScripts, api: FakeApi, second: str
) -> None:
    """Two prepare_infra.py made eight machines, and destroy_infra.py left addresses of removed ones."""
    results: list[tuple[str, str, int]] = []

    def start_second(request: str) -> None:
        if request == "POST /v2/droplets" and not results:
            # The server is in a thread of this process, so the second script must be a process.
            process = scripts.start(second, *(["--yes"] if second == "destroy" else []))
            results.append((*process.communicate(timeout=60), process.returncode))

    after_each(api, start_second)
    first = scripts.run("prepare")

    assert first.returncode == 0, first.stderr
    ((_, stderr, status),) = results
    assert status == 2
    assert stderr == (
        f"another prepare_infra.py or destroy_infra.py works in {scripts.files}; wait for its end\n"
    )
    assert names(api) == NAMES
    assert not [request for request in api.requests if request.startswith("DELETE")]


def test_lock_ends_with_a_killed_script_and_leaves_no_file(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        ["flock", "--exclusive", "--no-fork", str(tmp_path), "sh", "-c", "echo locked; exec sleep 600"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    with pytest.raises(Exception, match="wait for its end"), InfraFiles(tmp_path).locked():
        pass

    holder.kill()
    holder.communicate()

    with InfraFiles(tmp_path).locked():
        assert list(tmp_path.iterdir()) == []


# Each machine exactly once.


def test_machine_listed_so_late_that_it_was_made_twice_is_reported(
    scripts: CloudScripts, api: FakeApi
) -> None:
    api.troubles.append(Trouble("POST", "/v2/droplets", 503, {"Retry-After": "0"}, done=True))
    # The first one is listed only after the second one was created.
    api.listed_after = 5

    result = scripts.run("prepare")

    assert result.returncode == 1
    assert "there are 2 droplets called" in result.stderr and "each costs" in result.stderr
    assert not (scripts.files / "infra.env").exists()


def test_second_machine_of_a_name_is_found_at_the_end(scripts: CloudScripts, api: FakeApi) -> None:
    """Such as one created by a script on another computer, while this one waited for ssh."""

    def add(request: str) -> None:
        if (scripts.folder / f"seen/eventsql@203.0.113.{len(NAMES)}").exists() and len(api.droplets) == 4:
            original = droplet(api, NAMES[2])
            api.add_droplet(NAMES[2], TAG, vpc=original["vpc_uuid"])

    after_each(api, add)

    result = scripts.run("prepare")

    if len(api.droplets) == 4:
        # Nothing was asked after the last machine had been reached: that is the fault.
        pytest.fail("the names were not counted at the end")
    assert result.returncode == 1
    assert f"there are 2 droplets called {NAMES[2]}" in result.stderr


def test_machine_removed_while_others_are_prepared_is_reported(scripts: CloudScripts, api: FakeApi) -> None:
    removed: list[Json] = []

    def remove(request: str) -> None:
        if list((scripts.folder / "seen").iterdir()) and not removed:
            removed.append(api.droplets.pop(droplet(api, NAMES[3])["id"]))

    after_each(api, remove)

    result = scripts.run("prepare")

    # It is either still waited for, or missing at the end.
    assert result.returncode == 1 or not removed
    assert "removed while this script was running" in result.stderr
    assert not (scripts.files / "infra.env").exists()


# A machine without its tag.


def test_machine_that_lost_its_tag_is_shown_and_tagged_again(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare")
    lost = droplet(api, NAMES[1])
    lost["tags"] = []

    shown = scripts.run("show")
    again = scripts.run("prepare")

    assert f"{NAMES[1]} ({lost['id']})" in shown.stdout
    assert "WITHOUT THE TAG" in shown.stdout
    assert again.returncode == 0, again.stderr
    assert "had lost the tag" in again.stdout
    assert lost["tags"] == [TAG]
    assert names(api) == NAMES


@pytest.mark.parametrize("known_by", ["infra.json", "VPC"])
def test_machine_that_lost_its_tag_is_removed(scripts: CloudScripts, api: FakeApi, known_by: str) -> None:
    scripts.run("prepare")
    lost = droplet(api, NAMES[0])
    lost["tags"] = []
    if known_by == "infra.json":
        lost["vpc_uuid"] = "another"
    else:
        (scripts.files / "infra.json").write_text(json.dumps({"tag": TAG, "machines": []}))

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert api.droplets == {}


# Nothing of others is removed.


def test_machine_of_others_in_the_default_vpc_is_neither_tagged_nor_removed(
    scripts: CloudScripts, api: FakeApi
) -> None:
    """The benchmark's VPC stays as the region's default, and others' machines land in it."""
    scripts.run("prepare")
    scripts.run("destroy", "--yes")
    web = api.add_droplet("web-1", "prod", vpc="vpc-0")

    prepared = scripts.run("prepare")
    destroyed = scripts.run("destroy", "--yes")

    assert prepared.returncode == 0, prepared.stderr
    assert destroyed.returncode == 0, destroyed.stderr
    assert web["tags"] == ["prod"]
    assert list(api.droplets) == [web["id"]]
    assert (
        f"droplet   web-1 ({web['id']}): stays, since prepare_infra.py has not created it\n"
        in destroyed.stdout
    )


def test_vpc_with_a_machine_of_others_stays(scripts: CloudScripts, api: FakeApi) -> None:
    add_default_vpc(api)
    scripts.run("prepare")
    web = api.add_droplet("web-1", "prod", vpc="vpc-1")

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert list(api.droplets) == [web["id"]]
    assert f"fra1: stays, since it has web-1 ({web['id']})\n" in result.stdout


def test_tag_of_another_project_without_machines_stays(scripts: CloudScripts, api: FakeApi) -> None:
    """Its firewall protects the machines that get the tag next."""
    api.tags["prod"] = {"name": "prod"}
    api.firewalls["web"] = {"id": "web", "name": "web", "tags": ["prod"], "inbound_rules": []}

    result = scripts.run("destroy", "--tag", "prod", "--yes")

    assert result.returncode == 0, result.stderr
    assert write_requests(api) == []
    assert "tag       prod: stays, since other resources have it\n" in result.stdout


def test_tag_of_another_project_removes_nothing(scripts: CloudScripts, api: FakeApi) -> None:
    api.tags["prod"] = {"name": "prod", "resources": {"count": 3, "droplets": {"count": 2}}}
    api.vpcs["theirs"] = {"id": "theirs", "name": "prod", "region": "fra1", "default": False}
    ids = [api.add_droplet(name, "prod", vpc="theirs")["id"] for name in ("prod-web", "prod-app")]
    for name in ("prod-firewall", "web"):
        api.firewalls[name] = {"id": name, "name": name, "tags": ["prod"], "inbound_rules": []}

    result = scripts.run("destroy", "--tag", "prod", "--yes")

    assert result.returncode == 0, result.stderr
    assert write_requests(api) == []
    assert list(api.droplets) == ids
    for line in (
        f"droplet   prod-web ({ids[0]}): stays, since prepare_infra.py has not created it\n",
        f"droplet   prod-app ({ids[1]}): stays, since prepare_infra.py has not created it\n",
        "firewall  prod-firewall: stays, since prepare_infra.py has not created it\n",
        "firewall  web: stays, since prepare_infra.py has not created it\n",
        "tag       prod: stays, since other resources have it\n",
    ):
        assert line in result.stdout
    assert "Nothing has the tag" not in result.stdout


def test_tag_of_another_project_is_not_prepared(scripts: CloudScripts, api: FakeApi) -> None:
    """The firewall would close the ports of its machines."""
    api.tags["prod"] = {"name": "prod"}
    api.add_droplet("prod-web", "prod", vpc="theirs")

    result = scripts.run("prepare", "--tag", "prod")

    assert result.returncode == 2
    assert "the tag prod is used by 1 droplet(s) that prepare_infra.py has not created" in result.stderr
    assert write_requests(api) == []


def test_machine_of_others_with_the_tag_keeps_it_and_the_firewall(
    scripts: CloudScripts, api: FakeApi
) -> None:
    add_default_vpc(api)
    scripts.run("prepare")
    other = api.add_droplet("guest", TAG, vpc="mine")["id"]

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert list(api.droplets) == [other]
    assert (len(api.firewalls), list(api.tags), list(api.vpcs)) == (1, [TAG], ["mine"])
    assert f"firewall  {TAG}-firewall: stays, since it protects the droplets that stay\n" in result.stdout


def test_vpc_with_something_else_in_it_stays_and_is_not_waited_for(
    scripts: CloudScripts, api: FakeApi
) -> None:
    add_default_vpc(api)
    scripts.run("prepare")
    api.vpc_members["vpc-1"] = ["do:dbaas:13f7a2f6"]

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 0, result.stderr
    assert api.droplets == {}
    assert "fra1: stays, since it has do:dbaas:13f7a2f6\n" in result.stdout
    assert "DELETE /v2/vpcs/vpc-1" not in api.requests


# What is not listed yet.


@pytest.mark.parametrize("is_default", [False, True])
def test_machine_that_is_not_listed_yet_is_removed(
    scripts: CloudScripts, api: FakeApi, is_default: bool
) -> None:
    """Ctrl-C during its creation, and destroy_infra.py at once."""
    api.listed_after = 6
    description = f"Made by prepare_infra.py, tag {TAG}"
    ours = {"id": "ours", "name": f"{TAG}-vpc", "description": description, "region": "fra1"}
    api.vpcs["ours"] = {**ours, "ip_range": "10.110.0.0/20", "default": is_default}
    new = api.add_droplet(NAMES[0], TAG, vpc="ours")["id"]

    shown = scripts.run("show")
    result = scripts.run("destroy", "--yes")

    assert f"{NAMES[0]} ({new}), in the VPC but not listed" in shown.stdout
    assert result.returncode == 0, result.stderr
    assert f"droplet {NAMES[0]} ({new}): removed\n" in result.stdout
    assert api.droplets == {}


# Every machine is tried.


def test_machine_that_cannot_be_removed_does_not_keep_the_others(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare")
    refused = droplet(api, NAMES[0])["id"]
    api.troubles.append(Trouble("DELETE", f"/v2/droplets/{refused}", 422))

    result = scripts.run("destroy", "--yes")

    assert result.returncode == 1
    assert list(api.droplets) == [refused]
    assert f"droplet {NAMES[0]} ({refused}) stays, and costs: removing droplet {refused}" in result.stderr
    # The firewall protects it.
    assert len(api.firewalls) == 1
    assert sorted(file.name for file in scripts.files.iterdir()) == FILES
    assert scripts.run("destroy", "--yes").returncode == 0
    assert api.droplets == {}


# Options that changed.


def test_allowed_addresses_change_without_touching_machines(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare", "--allow", "203.0.113.7/32")
    before = len(api.requests)

    result = scripts.run("prepare", "--allow", "198.51.100.0/24", "--allow", "2001:db8::/32")

    assert result.returncode == 0, result.stderr
    written = [request for request in api.requests[before:] if not request.startswith("GET")]
    assert written == ["PUT /v2/firewalls/firewall-0"]
    (firewall,) = api.firewalls.values()
    assert firewall["inbound_rules"][0]["sources"] == {"addresses": ["198.51.100.0/24", "2001:db8::/32"]}
    assert firewall["tags"] == [TAG]
    assert "changed, ssh and ping from 198.51.100.0/24, 2001:db8::/32" in result.stdout


def test_allowed_addresses_stay_where_none_are_given(scripts: CloudScripts, api: FakeApi) -> None:
    """Otherwise the next run would open ssh to all addresses."""
    scripts.run("prepare", "--allow", "203.0.113.7/32")
    # The API may return a range of one address as an address.
    (firewall,) = api.firewalls.values()
    for rule in firewall["inbound_rules"][:2]:
        rule["sources"] = {"addresses": ["203.0.113.7"]}
    before = len(api.requests)

    result = scripts.run("prepare")

    assert result.returncode == 0, result.stderr
    assert "ssh and ping from 203.0.113.7/32" in result.stdout
    assert [request for request in api.requests[before:] if not request.startswith("GET")] == []


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_fewer_databases_than_exist_are_named_with_the_whole_cost(
    scripts: CloudScripts, api: FakeApi, options: tuple[str, ...]
) -> None:
    scripts.run("prepare")

    result = scripts.run("prepare", "--databases", "1", *options)

    assert result.returncode == 0, result.stderr
    for name in NAMES[2:]:
        assert f"{name} ({droplet(api, name)['id']}): s-4vcpu-8gb-amd" in result.stdout
    assert "though these options do not ask for it" in result.stdout
    assert "Together: 0.2812 USD an hour, at most 189.00 USD a month" in result.stdout
    known = InfraFiles(scripts.files).droplet_ids(TAG)
    assert known == set(api.droplets)


def test_another_image_than_that_of_the_machines_is_named(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare")

    result = scripts.run("prepare", "--image", "ubuntu-24-04-x64")

    assert result.returncode == 0, result.stderr
    assert "It exists with debian-12-x64, not with ubuntu-24-04-x64, and stays so" in result.stdout
    assert f"{NAMES[0]}: s-2vcpu-2gb-amd, debian-12-x64" in result.stdout


def test_number_of_databases_stays_where_none_is_given(scripts: CloudScripts, api: FakeApi) -> None:
    """Otherwise a change of the firewall would create machines."""
    scripts.run("prepare", "--databases", "1")

    result = scripts.run("prepare", "--allow", "198.51.100.0/24")

    assert result.returncode == 0, result.stderr
    assert names(api) == NAMES[:2]


@pytest.mark.parametrize("script", ["show", "destroy"])
def test_tag_of_the_folder_is_taken_where_none_is_given(
    scripts: CloudScripts, api: FakeApi, script: str
) -> None:
    """Otherwise "Nothing has the tag" would hide machines that cost."""
    scripts.run("prepare", "--tag", "another")

    result = scripts.run(script, *(["--yes"] if script == "destroy" else []))

    assert result.returncode == 0, result.stderr
    assert "another-app" in result.stdout
    assert (api.droplets == {}) == (script == "destroy")


def test_other_tag_of_the_folder_is_named(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare", "--tag", "another")

    shown = scripts.run("show", "--tag", "nothing")
    destroyed = scripts.run("destroy", "--tag", "nothing", "--yes")

    assert "have the tag another, and are not shown" in shown.stdout
    assert "they belong to another, not to nothing" in destroyed.stdout
    assert len(api.droplets) == 4


def test_machines_of_other_tags_are_named_without_the_files(scripts: CloudScripts, api: FakeApi) -> None:
    scripts.run("prepare", "--tag", "another")
    for file in scripts.files.iterdir():
        file.unlink()

    shown = scripts.run("show")
    destroyed = scripts.run("destroy", "--yes")

    for result in (shown, destroyed):
        assert "The tag another has 4 machine(s), which cost: --tag another\n" in result.stdout
    assert len(api.droplets) == 4


def test_variables_of_databases_that_are_not_planned_any_more_are_unset(scripts: CloudScripts) -> None:
    scripts.run("prepare", "--databases", "1")

    names = ("DB0_HOST", "DB1_HOST", "EVENTS_DB1_HOST", "EVENTS_DB1_PRIVATE_HOST", "RUNNER2_HOST")
    given = subprocess.run(
        ["bash", "-c", f"source '{scripts.files}/infra.env'; compgen -v"],
        env={"PATH": os.environ["PATH"], **dict.fromkeys(names, "stale")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert [name for name in names if name in given] == ["DB0_HOST"]


def test_first_boot_that_ended_without_docker_is_not_waited_for(scripts: CloudScripts) -> None:
    result = scripts.run("prepare", SSH_STATUS="76")

    assert result.returncode == 1
    assert "its first boot has ended without Docker" in result.stderr
    assert "not done within" not in result.stderr


# What could fail only after machines were made, or for a quarter of an hour.


def test_missing_ssh_is_reported_before_a_machine_is_made(scripts: CloudScripts, api: FakeApi) -> None:
    nothing = scripts.folder / "nothing"
    nothing.mkdir()

    result = scripts.run("prepare", PATH=str(nothing))

    assert result.returncode == 2
    assert result.stderr == "the program ssh is not in PATH (Debian: apt-get install openssh-client)\n"
    assert write_requests(api) == []


# All kinds of answers to one request, and two to each of the others.
@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("/v2/sizes", "<html>Log in</html>", "text/html"),
        *(
            ("/v2/sizes", text, "application/json")
            for text in ("<html>", "null", "[]", "{}", '{"sizes": null}', '"x"', "")
        ),
        *(
            (path, text, "application/json")
            for path in ("/v2/droplets", "/v2/vpcs", f"/v2/account/keys/{FINGERPRINT}", "/v2/firewalls")
            for text in ("null", "{}")
        ),
    ],
)
def test_strange_answer_to_a_read_is_a_clear_error(
    scripts: CloudScripts, api: FakeApi, path: str, text: str, kind: str
) -> None:
    api.troubles.append(Trouble("GET", path.replace(":", "%3A"), 200, text=text, kind=kind))
    if "keys" in path:
        api.troubles.append(Trouble("GET", path, 200, text=text, kind=kind))

    result = scripts.run("prepare")

    assert result.returncode == 1
    assert "the API answered with success, but not with what its description promises" in result.stderr
    assert "Traceback" not in result.stderr
    assert write_requests(api) == []


@pytest.mark.parametrize("kind", ["tags", "vpcs", "firewalls", "droplets"])
@pytest.mark.parametrize("is_done", [False, True])
def test_strange_answer_to_a_create_makes_no_second_resource(
    scripts: CloudScripts, api: FakeApi, kind: str, is_done: bool
) -> None:
    api.troubles.append(Trouble("POST", f"/v2/{kind}", 201, text='{"odd": []}', done=is_done))

    result = scripts.run("prepare")

    if is_done:
        assert result.returncode == 0, result.stderr
        assert names(api) == NAMES
    else:
        assert result.returncode == 1
        assert "not with what its description promises" in result.stderr
        assert api.created(kind) == 1


@pytest.mark.parametrize("given", [f"MD5:{FINGERPRINT}", FINGERPRINT.upper(), f"md5:{FINGERPRINT.upper()}"])
def test_fingerprint_as_other_programs_print_it_is_found(scripts: CloudScripts, given: str) -> None:
    assert scripts.run("prepare", SSH_KEY_FINGERPRINT=given).returncode == 0


@pytest.mark.parametrize("script", ["prepare", "show", "destroy"])
def test_line_break_inside_the_token_is_refused_at_once(
    scripts: CloudScripts, api: FakeApi, script: str
) -> None:
    result = scripts.run(script, DO_API_TOKEN=f"{TOKEN[:10]}\n{TOKEN[10:]}")

    assert result.returncode == 2
    assert "DO_API_TOKEN must be one word of ASCII" in result.stderr
    assert api.requests == []


def test_line_break_at_the_end_of_the_token_is_harmless(scripts: CloudScripts) -> None:
    assert scripts.run("show", DO_API_TOKEN=f"{TOKEN}\n").returncode == 0


def test_last_attempt_is_made_at_the_deadline(scripts: CloudScripts, api: FakeApi) -> None:
    """It said that something was not done within a time, without having waited for so long."""
    api.troubles.append(Trouble("GET", "/v2/sizes", 503))

    result = scripts.run("prepare", "--dry-run", "--pause-seconds", "30", "--wait-seconds", "0.3")

    assert result.returncode == 0, result.stderr
    assert api.requests.count("GET /v2/sizes") >= 2
