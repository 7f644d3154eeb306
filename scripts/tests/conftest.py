from pathlib import Path

import draw_report
import pytest
from tests import example_results as example


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder with a blank in its path: every script and every helper of a test must quote it."""
    folder = tmp_path / "a b"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of three runs, one of them failed, with everything drawn: what takes the longest is done once."""
    folder = tmp_path_factory.mktemp("set")
    phases: example.Phases = (("warm-up", False, 1000, 5000, 2), ("steady", True, 1000, 5000, 4))
    failed = {**example.phases_result("failed", phases=phases), "passed": False, "problems": ["1 <lost>"]}
    example.write(
        folder,
        {
            "2-failed": failed,
            "10-main": example.publish_result(1000),
            "1-blast": example.blast_result(trials=5),
        },
    )
    assert draw_report.main([str(folder)]) == 0
    return folder
