"""Which of several runs of the same count, and as what environment they are compared."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from packaging.version import Version

from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import revisions_of
from cbo_gym.labels import Spec
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD


def newest(runs: Iterable[Run]) -> list[Run]:
    """One run for each environment, horizon, agent and seed, sorted by these.

    Of several one counts that is not unverified; of such the newest revision and version, of this a run that finished
    rather than one that did not, and of such the latest.
    """
    by_age = sorted(
        runs,
        key=lambda run: (
            not run.unverified,
            revisions_of(run),
            Version(run.version),
            run.status == "finished",
            run.date,
        ),
    )
    kept = {identity(run): run for run in by_age}
    return [kept[what] for what in sorted(kept)]


def identity(run: Run) -> tuple[str, int, int, str, int]:
    """The fields that runs share of which only one counts: environment, horizon, batch, agent and seed."""
    return run.env, run.horizon, run.batch, run.agent, run.seed


def env_label(run: Run) -> str:
    """The environment with its horizon, for runs of different lengths are not compared; blind ones are apart.

    Of blind runs the instance is left out: each has its own.
    """
    together = f" in batches of {run.batch}" if run.batch > 1 else ""
    if not run.secret:
        return f"{run.env}, T={run.horizon}{together}"
    return f"{without_keywords(run.env, INSTANCE_KEYWORD)}, T={run.horizon}{together}, blind"


@lru_cache(maxsize=2**14)
def without_keywords(label: str, *names: str) -> str:
    """An environment's label without some of its keywords."""
    spec = Spec.told(label)
    return str(Spec(spec.name, tuple(pair for pair in spec.parameters if pair[0] not in names)))
