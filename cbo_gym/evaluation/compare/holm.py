"""Several tests at once: p-values corrected for how many there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order of these, of hypotheses that are tested together.

    At most a share of a level has any true one whose adjusted value is below it: Holm (1979), A simple sequentially
    rejective multiple test procedure.
    """
    order = np.argsort(p_values, kind="stable")
    left = len(p_values) - np.arange(len(p_values))
    found = np.empty(len(p_values))
    found[order] = np.minimum(1.0, np.maximum.accumulate(left * np.asarray(p_values, dtype=float)[order]))
    return found.tolist()
