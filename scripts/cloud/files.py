"""The files that describe the machines to their user and to the other scripts."""

import fcntl
import json
import os
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmark.errors import WrongInput

from cloud.plan import DATABASES_MAX


@dataclass(frozen=True)
class Address:
    """A machine's public address, and its private one inside the VPC."""

    name: str
    variable: str
    id: int
    public: str
    private: str


@dataclass(frozen=True)
class InfraFiles:
    """The files of one folder, usually the repository's."""

    folder: Path

    @property
    def variables(self) -> Path:
        return self.folder / "infra.env"

    @property
    def description(self) -> Path:
        return self.folder / "infra.json"

    @property
    def passwords(self) -> Path:
        return self.folder / "infra-passwords.env"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "infra-known-hosts"

    @property
    def tag(self) -> str | None:
        """The tag of the machines, from infra.json; None where it has none."""
        tag = self._content().get("tag")
        return None if tag is None else str(tag)

    def _content(self) -> dict[str, Any]:
        """What infra.json says; nothing where it does not exist, or is none of ours."""
        try:
            content = json.loads(self.description.read_text())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def databases(self, tag: str) -> int | None:
        """How many databases were asked for last, from infra.json; None where it says nothing of this tag."""
        if self.tag != tag:
            return None
        number = self._content().get("databases")
        return number if isinstance(number, int) else None

    @property
    def any_exists(self) -> bool:
        return any(file.exists() for file in self._written)

    @property
    def _written(self) -> tuple[Path, ...]:
        return (self.variables, self.passwords, self.description)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Excludes other scripts from the folder and its machines; raises WrongInput while one works there.

        The lock is on the folder itself, so that no file stays, and ends with the process, however it ends.
        """
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise WrongInput(
                    f"another prepare_infra.py or destroy_infra.py works in {self.folder}; wait for its end"
                ) from None
            yield
        finally:
            os.close(descriptor)

    def droplet_ids(self, tag: str) -> frozenset[int]:
        """The machines of infra.json, none if it belongs to another tag."""
        if self.tag != tag:
            return frozenset()
        content = self._content()
        try:
            machines = [*content.get("machines", []), *content.get("others", [])]
            return frozenset(int(machine["id"]) for machine in machines)
        except (ValueError, LookupError, TypeError):
            return frozenset()

    def claim(self, about: Mapping[str, object]) -> None:
        """Writes into infra.json to which tag the passwords belong, with the other facts that are known.

        Raises WrongInput where the files belong to another tag: they have the only copy of its passwords.
        """
        if not self.description.exists():
            self._describe([], about)
        elif self.tag != about["tag"]:
            raise WrongInput(
                f"{self.description} belongs to the tag {self.tag}: remove those machines with "
                f"destroy_infra.py --tag {self.tag}, or choose another --folder"
            )
        else:
            self._describe_as({**self._content(), **about})

    def write(self, machines: Sequence[Address]) -> None:
        """Writes infra.env. It contains no secrets."""
        _replace(self.variables, environment(machines), 0o644)

    def describe(
        self, machines: Sequence[Address], others: Sequence[Mapping[str, object]], about: Mapping[str, object]
    ) -> None:
        """Writes infra.json; `others` are machines that exist, too, by id and name."""
        self._describe(machines, {**about, "others": list(others)} if others else about)

    def _describe(self, machines: Sequence[Address], about: Mapping[str, object]) -> None:
        self._describe_as({**about, "machines": [asdict(machine) for machine in machines]})

    def _describe_as(self, content: Mapping[str, object]) -> None:
        _replace(self.description, json.dumps(content, indent=2) + "\n", 0o644)

    def add_passwords(self, databases: int) -> None:
        """Generates the missing passwords; a database keeps the one it has."""
        known = self.passwords.read_text() if self.passwords.exists() else ""
        names = [f"DB{number}_PASSWORD" for number in range(databases)]
        missing = [name for name in names if f"{name}=" not in known]
        if missing:
            _replace(
                self.passwords,
                known + "".join(f"{name}={secrets.token_urlsafe(24)}\n" for name in missing),
                0o600,
            )

    def remove(self) -> None:
        """Removes the files, and what a killed script or ssh-keygen has left next to them.

        infra.json is the last one, because it says to which tag the others belong.
        """
        unfinished = [file for each in self._written for file in self.folder.glob(f".{each.name}.*")]
        old_hosts = self.known_hosts.with_name(f"{self.known_hosts.name}.old")
        for file in (*unfinished, old_hosts, *self._written):
            file.unlink(missing_ok=True)


def environment(machines: Sequence[Address]) -> str:
    """Variables to `source`: machines from outside, databases as the app and the runners reach them.

    A runner works on the machine of the database it writes to. Those of a larger number of databases, which
    the shell may still have, are removed.
    """
    values: dict[str, str] = {}
    databases = sum(machine.variable.startswith("EVENTS_DB") for machine in machines)
    former = [
        form.format(number)
        for number in range(databases, DATABASES_MAX)
        for form in ("EVENTS_DB{}_HOST", "EVENTS_DB{}_PRIVATE_HOST", "DB{}_HOST", "RUNNER{}_HOST")
    ]
    for machine in machines:
        values[f"{machine.variable}_HOST"] = machine.public
        values[f"{machine.variable}_PRIVATE_HOST"] = machine.private
        if machine.variable.startswith("EVENTS_DB"):
            number = machine.variable.removeprefix("EVENTS_DB")
            values[f"DB{number}_HOST"] = machine.private
            values[f"RUNNER{number}_HOST"] = machine.public
    if "RUNNER0_HOST" in values:
        values["RUNNER_HOST"] = values["RUNNER0_HOST"]
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
    return (f"unset {' '.join(former)}\n" if former else "") + exports


def _replace(file: Path, text: str, mode: int) -> None:
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        # The mode is set before the text is written.
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "w") as output:
            output.write(text)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
