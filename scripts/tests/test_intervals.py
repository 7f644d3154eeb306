import pytest
from benchmark.intervals import interval, ratios


def test_interval_holds_the_median_and_is_within_the_values() -> None:
    found = interval([10, 30, 20, 50, 40])

    assert found.median == 30
    assert 10 <= found.low < 30 < found.high <= 50


def test_interval_of_one_value_has_no_width() -> None:
    assert interval([7]) == interval([7, 7, 7])


def test_interval_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        interval([])


def test_ratios_are_paired_round_by_round() -> None:
    found = ratios([100, 200, 400], [110, 220, 440])

    assert found.low == found.median == found.high == pytest.approx(1.1)


def test_ratios_of_unequal_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="2 and 1"):
        ratios([1, 2], [1])
