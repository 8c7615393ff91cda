"""Ranges of seeds: seeds used for tuning are never used for published verdicts.

* :data:`TUNING` and :data:`TUNING_INSTANCES`: seeds of runs, and instances of random families of environments, by whose
  results defaults, rules and parameters are chosen;
* :data:`PUBLICATION`: seeds and instances for published verdicts; no choice may depend on their results.

Any other seed may have influenced a choice; the first published results had seeds from 0 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TUNING = range(100, 1000)
TUNING_INSTANCES = range(300, 700)
PUBLICATION = range(1000, 2000)
# Parameter of the environments of random families.
INSTANCE_SEED = "instance_seed"


def is_for_publication(seed: int, keywords: Mapping[str, Any], first: int = PUBLICATION.start) -> bool:
    """Return whether a run may count for a published verdict.

    Args:
        seed: Seed of the run.
        keywords: Parameters of its environment, including ``instance_seed`` for a random family.
        first: First seed and first instance that may count.
    """
    allowed = range(first, PUBLICATION.stop)
    return seed in allowed and keywords.get(INSTANCE_SEED, first) in allowed
