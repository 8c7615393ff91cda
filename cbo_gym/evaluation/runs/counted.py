"""Selection of the run of each cell that counts, and the label of the environment under which runs are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from packaging.version import Version

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import revisions_of
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD

# End of the labels of environments that are played blind.
BLIND = ", blind"


def newest(runs: Iterable[Run]) -> list[Run]:
    """Return the run that counts for each environment, horizon, batch, agent and seed, sorted in this order.

    A verified run goes before an unverified one, then the newest revision, the newest version, a finished run, and the
    latest.
    """

    def rank(run: Run) -> tuple[Any, ...]:
        return not run.unverified, revisions_of(run), Version(run.version), run.status == "finished", run.date

    kept = {identity(run): run for run in sorted(runs, key=rank)}
    return [kept[cell] for cell in sorted(kept)]


def identity(run: Run) -> tuple[str, int, int, str, int]:
    """Return the cell of a run: environment, horizon, batch, agent and seed."""
    return run.env, run.horizon, run.batch, run.agent, run.seed


def env_label(run: Run) -> str:
    """Return the environment with its horizon and batch, because only such runs are compared.

    Blind runs have a separate label, which names no instance because every run has another one.
    """
    batches = f" in batches of {run.batch}" if run.batch > 1 else ""
    if not run.secret:
        return f"{run.env}, T={run.horizon}{batches}"
    return f"{without_keywords(run.env, INSTANCE_KEYWORD)}, T={run.horizon}{batches}{BLIND}"


def without_blind_runs(runs: Sequence[Run]) -> Sequence[Run]:
    """Leave out blind runs, unless there are no others."""
    return [run for run in runs if not run.secret] or runs


@lru_cache(maxsize=2**14)
def without_keywords(label: str, *names: str) -> str:
    """Return an environment's label without some of its keywords."""
    spec = Spec.from_label(label)
    return str(Spec(spec.name, tuple(pair for pair in spec.parameters if pair[0] not in names)))
