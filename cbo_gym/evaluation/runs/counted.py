"""Which of several runs with the same identity is used in comparisons, and under which label of its environment.

The identity of a run is its environment, number of rounds, size of batches, agent and seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from packaging.version import Version

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import revisions_of
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD

# Suffix of the labels of environments that are played blind.
BLIND = ", blind"


def newest(runs: Iterable[Run]) -> list[Run]:
    """Return one run of each :func:`identity`, sorted by it.

    Verified runs are preferred to unverified ones; then the newest revision, the newest version, finished runs, and the
    latest date.
    """

    def rank(run: Run) -> tuple[Any, ...]:
        return not run.unverified, revisions_of(run), Version(run.version), run.status == "finished", run.date

    best = {identity(run): run for run in sorted(runs, key=rank)}
    return [best[key] for key in sorted(best)]


def identity(run: Run) -> tuple[str, int, int, str, int]:
    """Return environment, horizon, batch, agent and seed of a run."""
    return run.env, run.horizon, run.batch, run.agent, run.seed


def env_label(run: Run) -> str:
    """Return the label of an environment with the number of rounds and the size of batches; runs with it are compared.

    Blind runs have a separate label, which names no instance, because every seed has another one.
    """
    batches = f" in batches of {run.batch}" if run.batch > 1 else ""
    if not run.secret:
        return f"{run.env}, T={run.horizon}{batches}"
    return f"{without_keywords(run.env, INSTANCE_KEYWORD)}, T={run.horizon}{batches}{BLIND}"


def without_blind_runs(runs: Sequence[Run]) -> Sequence[Run]:
    """Return the runs that are not blind, or all runs if all are blind."""
    return [run for run in runs if not run.secret] or runs


@lru_cache(maxsize=2**14)
def without_keywords(label: str, *names: str) -> str:
    """Return an environment's label without some of its keywords."""
    spec = Spec.from_label(label)
    return str(Spec(spec.name, tuple(pair for pair in spec.parameters if pair[0] not in names)))
