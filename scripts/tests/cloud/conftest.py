from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cloud.fake_api import FakeApi, serving
from tests.cloud.scripts import CloudScripts


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving() as api:
        yield api


@pytest.fixture
def scripts(tmp_path: Path, api: FakeApi) -> CloudScripts:
    return CloudScripts.create(tmp_path, api)
