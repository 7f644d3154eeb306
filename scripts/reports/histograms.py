"""Decodes the histograms in result.json."""

from dataclasses import dataclass

import numpy as np
from hdrh.histogram import HdrHistogram

# The highest percentile: one event in a million is slower.
NINES_MAX = 6
# The lowest percentile, about 11%: the fastest events are of no interest.
FIRST_NINE = 0.05
POINTS_PER_NINE = 30


@dataclass(frozen=True)
class Spectrum:
    """Latency by percentile: `nines` is 1 for 90%, 2 for 99% and so on."""

    nines: list[float]
    latency_ms: list[float]


def spectrum(encoded: str) -> Spectrum | None:
    """The spectrum of an HdrHistogram of microseconds as base64 text; None for an empty one.

    It ends at the percentile above which there is only one value.
    """
    histogram = HdrHistogram.decode(encoded)
    count = histogram.get_total_count()
    if count == 0:
        return None
    last = min(max(float(np.log10(count)), 1.0), NINES_MAX)
    nines = np.linspace(FIRST_NINE, last, int(last * POINTS_PER_NINE) + 2)
    values = [histogram.get_value_at_percentile(100 * (1 - 10.0**-nine)) for nine in nines]
    # A logarithmic axis has no zero, so values below the resolution are drawn at the resolution.
    return Spectrum([float(nine) for nine in nines], [max(value, 1) / 1000 for value in values])
