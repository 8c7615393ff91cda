"""Ranges of seeds: those used for tuning are never used for published verdicts.

* :data:`TUNING` and :data:`TUNING_INSTANCES`: seeds of runs and of random families by which defaults, rules and
  parameters are chosen;
* :data:`PUBLICATION`: seeds and instances for published verdicts alone; no default, rule or parameter may depend on
their results.

All other seeds are free and may have influenced a choice; the first published results had seeds from 0 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TUNING = range(100, 1000)
TUNING_INSTANCES = range(300, 700)
# Seeds and instances for publication.
PUBLICATION = range(1000, 2000)
# The keyword of random families.
INSTANCE_SEED = "instance_seed"


def is_for_publication(seed: int, keywords: Mapping[str, Any], first: int = PUBLICATION.start) -> bool:
    """Return whether a run may count for a published verdict.

    Args:
        seed: Seed of the run.
        keywords: Keywords of its environment, with ``instance_seed`` if it is of a random family.
        first: First seed and instance that may count.
    """
    allowed = range(first, PUBLICATION.stop)
    return seed in allowed and keywords.get(INSTANCE_SEED, first) in allowed
