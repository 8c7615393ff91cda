"""Which seeds are for what: those by which anything was chosen judge nothing.

A seed of a run, and an ``instance_seed`` of a random family, is of one of these:

* :data:`TUNING` and :data:`TUNING_INSTANCES`: by which defaults, rules and parameters are chosen;
* :data:`PUBLICATION`, of both: for published verdicts alone. No default, rule or parameter may hang on what they give.

Others are free, and may have chosen something: the first published results had seeds from 0 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TUNING = range(100, 1000)
TUNING_INSTANCES = range(300, 700)
PUBLICATION = range(1000, 2000)  # of seeds and of instances
INSTANCE_SEED = "instance_seed"  # the keyword of random families


def is_for_publication(seed: int, keywords: Mapping[str, Any], first: int = PUBLICATION.start) -> bool:
    """Whether a run may count for a published verdict.

    Args:
        seed: of the run.
        keywords: of its environment, with ``instance_seed`` if it is of a random family.
        first: of the seeds and instances that may.
    """
    may = range(first, PUBLICATION.stop)
    return seed in may and keywords.get(INSTANCE_SEED, first) in may
