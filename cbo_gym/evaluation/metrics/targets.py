"""Runtime to a target: after how many rounds and seconds the best action of a run reached a score (as in COCO)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym.evaluation.runs.results import Run

TARGETS = (0.5, 0.8, 0.9, 0.95)  # scores: 0 is random play, 1 the optimum


def has_targets(run: Run) -> bool:
    """Whether a run has one optimum to come near: those over slices of time have several."""
    return run.status == "finished" and "slice" not in run.columns and run.optimum > run.random_value


def rounds_to(run: Run, targets: Sequence[float] = TARGETS) -> np.ndarray:
    """The first rounds after which the best action so far had at least these scores; infinite if there are none."""
    scores = 1.0 - run.curve("best_so_far_regret") / (run.optimum - run.random_value)
    return first_rounds(scores >= np.array(targets)[:, None])


def first_rounds(there: np.ndarray) -> np.ndarray:
    """The first round, from 1, of each row that has one, infinite for the others: ``... x rounds`` to ``...``."""
    return np.where(there.any(-1), there.argmax(-1) + 1.0, np.inf)


def seconds_to(run: Run, targets: Sequence[float] = TARGETS) -> np.ndarray:
    """The agent's own seconds until then: for getting ready and for as many mean rounds."""
    return run.reset_seconds + run.seconds_a_round * rounds_to(run, targets)


def shares(times: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The share of times, infinite ones too, that are at most each of ``at``."""
    return np.searchsorted(np.sort(times), at, side="right") / len(times)
