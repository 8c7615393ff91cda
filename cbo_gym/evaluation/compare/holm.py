"""Correction of p-values for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values of hypotheses that are tested together, in the given order.

    The probability that the adjusted value of any true hypothesis is below a level is at most that level: Holm (1979),
    A simple sequentially rejective multiple test procedure.
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * np.asarray(p_values, dtype=float)[order]))
    return adjusted.tolist()
