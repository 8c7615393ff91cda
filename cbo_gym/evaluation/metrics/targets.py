"""Runtime to a target: rounds and seconds until the best action of a run has a score, as in COCO."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym.evaluation.runs.results import Run

#: Scores: 0 is random play, 1 the optimum.
TARGETS = (0.5, 0.8, 0.9, 0.95)


def has_targets(run: Run) -> bool:
    """Return whether a run finished and has one optimum, which runs over slices of time do not."""
    return run.status == "finished" and "slice" not in run.columns and run.optimum > run.random_value


def rounds_to(run: Run, targets: Sequence[float] = TARGETS) -> np.ndarray:
    """Return the first rounds after which the best action so far had at least these scores; infinite if none."""
    scores = 1.0 - run.curve("best_so_far_regret") / (run.optimum - run.random_value)
    return first_rounds(scores >= np.array(targets)[:, None])


def first_rounds(reached: np.ndarray) -> np.ndarray:
    """Return the first true round, from 1, infinite if there is none: shape ``(..., rounds)`` to ``(...)``."""
    return np.where(reached.any(-1), reached.argmax(-1) + 1.0, np.inf)


def seconds_to(run: Run, targets: Sequence[float] = TARGETS) -> np.ndarray:
    """Return the agent's seconds up to these rounds: of its reset, and the mean of a round times the rounds."""
    return run.reset_seconds + run.seconds_a_round * rounds_to(run, targets)


def shares(times: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the share of times, some of them infinite, that are at most each threshold."""
    return np.searchsorted(np.sort(times), thresholds, side="right") / len(times)
