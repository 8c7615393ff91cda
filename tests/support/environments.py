"""Selections of the registered environments. By default contracts are checked on a few that cover all modes, families
of systems and tags, and the record of behaviour on one of each mode; slow tests use one of each kind, or all.
Environments with several objectives, whose rewards are arrays, have separate tests.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from cbo_gym.envs.registration import SEVERAL
from cbo_gym.envs.registry import EnvEntry, entries, find_entry


def _kind(entry: EnvEntry) -> tuple[object, ...]:
    """Return the family of systems, the mode, and the tags, such as noise, costs, latent causes and cycles."""
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
    """Return a few of ONE_OF_A_KIND that cover all families, modes with and without noise, and tags; greedy choice."""
    chosen, left = [], set().union(*map(_facts, ONE_OF_A_KIND))
    while left:
        chosen.append(max(ONE_OF_A_KIND, key=lambda env_id: len(_facts(env_id) & left)))
        left -= _facts(chosen[-1])
    return tuple(chosen)


COVERING = _covering()


def with_slow(env_ids: Iterable[str]) -> list[Any]:
    """Return ids as parameters; those outside ``COVERING`` are slow."""
    return [pytest.param(name, marks=[] if name in COVERING else [pytest.mark.slow]) for name in env_ids]


EVERY_ID = with_slow(IDS)
KINDS = with_slow(ONE_OF_A_KIND)


def kinds_of(mode: str) -> list[Any]:
    """Return one environment of each kind in a mode, as parameters."""
    return with_slow(env_id for env_id in ONE_OF_A_KIND if find_entry(env_id).mode == mode)
