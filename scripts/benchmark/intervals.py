"""Medians and ratios of repeated measurements, with what a bootstrap says about them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from random import Random
from statistics import median

RESAMPLES = 10_000
SEED = 20_261_122


@dataclass(frozen=True)
class Interval:
    """The median of several values and its bootstrap 95 % interval."""

    median: float
    low: float
    high: float


def interval(values: Sequence[float]) -> Interval:
    """The median of the values, at least one, and its interval."""
    if not values:
        raise ValueError("there are no values")
    medians: list[float] = []
    for indices, times in resamples(len(values)).items():
        medians.extend(repeat(median(values[index] for index in indices), times))
    medians.sort()
    return Interval(median(values), medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1])


@cache
def resamples(count: int) -> Counter[tuple[int, ...]]:
    """How often each resample of this number of values is drawn, as the sorted indices of its values.

    They are the same for all values, and of a few values there are few different ones.
    """
    random = Random(SEED)
    return Counter(tuple(sorted(random.choices(range(count), k=count))) for _ in range(RESAMPLES))


def ratios(of_a: Sequence[float], of_b: Sequence[float]) -> Interval:
    """B divided by A, round by round: the median and its interval."""
    if len(of_a) != len(of_b) or not of_a:
        raise ValueError(f"rounds must be paired, but there are {len(of_a)} and {len(of_b)}")
    return interval([b / a for a, b in zip(of_a, of_b, strict=True)])
