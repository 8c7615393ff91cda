"""Which of several runs with the same identity is used in comparisons, and under which label of its environment.

The identity of a run is its environment, number of rounds, size of batches, agent and seed.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from packaging.version import Version

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import short_repr
from cbo_gym.evaluation.runs.results import CURVES, TIMING_COLUMNS, Run
from cbo_gym.evaluation.runs.revisions import revisions_of
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD

# Suffix of the labels of environments that are played blind.
BLIND = ", blind"
# Relative differences up to this size are due to rounding.
ROUNDING = 1e-6


def newest(runs: Iterable[Run]) -> list[Run]:
    """Return one run of each :func:`identity`, sorted by it.

    Verified runs are preferred to unverified ones; then the newest revision, the newest version, finished runs, and the
    latest date. A warning says if unpublished runs of an id differ, as those of two instances of a class may, or if
    runs on an environment have other optima, because its problem was edited.
    """

    def rank(run: Run) -> tuple[Any, ...]:
        return not run.unverified, revisions_of(run), Version(run.version), run.status == "finished", run.date

    ordered = sorted(runs, key=rank)
    best = {identity(run): run for run in ordered}
    if other := [run for run in ordered if _differ(run, best[identity(run)])]:
        warnings.warn(
            f"{len(other)} runs are left out, such as that of {other[0].agent} on {short_repr(other[0].env)}, seed "
            f"{other[0].seed}, because a later run with this label, of the same code, was played differently. Give "
            "agents with other parameters labels of their own: evaluate(agent, env, seed, label='k=3')",
            stacklevel=3,
        )
    scales: defaultdict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for run in best.values():
        if run.status == "finished":
            scales[run.env, run.horizon].append((run.optimum, run.random_value))
    if edited := [env for (env, _), values in scales.items() if any(map(_spread, zip(*values, strict=True)))]:
        warnings.warn(
            f"runs on {short_repr(edited[0])} are of different systems, with other optima or values of random actions, "
            "so they cannot be compared; play the older ones again, or give the problems different names",
            stacklevel=3,
        )
    return [best[key] for key in sorted(best)]


def _differ(run: Run, later: Run) -> bool:
    """Return whether two runs have the same id and version, but other rounds; False for published and failed runs."""
    if run is later or CURVES in vars(run) | vars(later) or run.status != "finished":
        return False
    if (run.id, run.version) != (later.id, later.version):
        return False
    first, second = (table.drop(TIMING_COLUMNS, strict=False) for table in (run.table, later.table))
    return not first.equals(second)


def _spread(values: Sequence[float]) -> bool:
    """Return whether values differ by more than rounding."""
    return max(values) - min(values) > ROUNDING * max(map(abs, values))


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
