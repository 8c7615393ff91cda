"""The registered environments as tests need them. By default contracts go through a few that cover all modes, families
of systems and tags, and the record of behaviour through one of each mode; slow tests go through one of a kind or all.
Those with several objectives, whose rewards are arrays, are apart and have tests of their own.
"""

from collections.abc import Iterable
from typing import Any

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


def _facts(env_id: str) -> set[tuple[str, ...]]:
    entry = find_entry(env_id)
    noise = "noiseless" if "noiseless" in entry.tags else "noisy"
    return {("family", entry.problem.partition(":")[0]), ("mode", entry.mode, noise), *(("tag", t) for t in entry.tags)}


def _covering() -> tuple[str, ...]:
    """A few of ONE_OF_A_KIND with all families, modes with and without noise, and tags, chosen greedily."""
    chosen, left = [], set().union(*map(_facts, ONE_OF_A_KIND))
    while left:
        chosen.append(max(ONE_OF_A_KIND, key=lambda env_id: len(_facts(env_id) & left)))
        left -= _facts(chosen[-1])
    return tuple(chosen)


COVERING = _covering()


def with_slow(env_ids: Iterable[str]) -> list[Any]:
    """Ids as parameters, slow but for the covering ones."""
    return [pytest.param(one, marks=[] if one in COVERING else [pytest.mark.slow]) for one in env_ids]


EVERY_ID = with_slow(IDS)
KINDS = with_slow(ONE_OF_A_KIND)


def kinds_of(mode: str) -> list[Any]:
    """One environment of a kind, of those of a mode, as parameters."""
    return with_slow(env_id for env_id in ONE_OF_A_KIND if find_entry(env_id).mode == mode)
