from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from benchmark.folders import create_result_folder, temporary_folder


def test_create_result_folder_is_named_after_the_time_in_utc(tmp_path: Path) -> None:
    here = datetime(2026, 11, 21, 23, 5, 9, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))

    folder = create_result_folder(tmp_path / "results" / "local", here)

    assert folder == tmp_path / "results" / "local" / "2026-11-22T02-35-09Z"
    assert folder.is_dir()


def test_create_result_folder_same_second_gets_a_number(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    names = [create_result_folder(tmp_path, now).name for _ in range(3)]

    assert names == ["2026-01-02T03-04-05Z", "2026-01-02T03-04-05Z-2", "2026-01-02T03-04-05Z-3"]


def test_temporary_folder_is_private_and_removed_after_a_failure(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"

    with pytest.raises(RuntimeError), temporary_folder(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "data").mkdir()
        (folder / "data" / "file").write_text("x")
        raise RuntimeError

    assert not folder.exists()
