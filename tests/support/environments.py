"""The registered environments as tests need them. A contract holds for every one: :func:`cbo_gym.testing.check_problem`
and the record go through all by default, other contracts through one of a kind, and through all in the slow tests.
Anything else is shown on one of a kind. Those with several objectives, whose rewards are arrays, are apart and have
tests of their own.
"""

import pytest

from cbo_gym.envs.registration import SEVERAL
from cbo_gym.envs.registry import EnvEntry, entries, find_entry


def _kind(entry: EnvEntry) -> tuple[object, ...]:
    """The family of systems, the mode, and what sets its members apart: noise, costs, latent causes, cycles."""
    return entry.problem.partition(":")[0], entry.mode, *sorted(entry.tags)


ONE_REWARD = tuple(entry for entry in entries() if SEVERAL not in entry.tags)
IDS = tuple(entry.id for entry in ONE_REWARD)
SEVERAL_OBJECTIVES = tuple(entry.id for entry in entries() if SEVERAL in entry.tags)
FIRST_OF_MODE = {entry.mode: entry.id for entry in reversed(entries())}
#: mixed benchmarks have no instances
HAVE_INSTANCES = [entry.id for entry in entries() if "mixed" not in entry.tags]
LAST_OF_MODE = {entry.mode: entry.id for entry in entries() if entry.id in HAVE_INSTANCES}
ONE_OF_A_KIND = tuple({_kind(entry): entry.id for entry in reversed(ONE_REWARD)}.values())[::-1]

#: all ids as parameters, slow but for one of a kind
EVERY_ID = [pytest.param(one, marks=[] if one in ONE_OF_A_KIND else [pytest.mark.slow]) for one in IDS]


def kinds_of(mode: str) -> list[str]:
    """One environment of a kind, of those of a mode."""
    return [env_id for env_id in ONE_OF_A_KIND if find_entry(env_id).mode == mode]
