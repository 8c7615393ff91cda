"""Runtime to a target: rounds and seconds until the best action of a run reaches a score, as in COCO."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym.evaluation.runs.results import Run

# Scores to reach: 0 is random play, 1 the optimum.
TARGETS = (0.5, 0.8, 0.9, 0.95)


def has_targets(run: Run) -> bool:
    """Return whether a run finished and has a single optimum; in dynamic mode every slice of time has its own."""
    return run.status == "finished" and "slice" not in run.columns and run.optimum > run.random_value


def rounds_to(run: Run, targets: Sequence[float] = TARGETS) -> np.ndarray:
    """Return the first round after which the best action so far has each score; infinite if there is none."""
    scores = 1.0 - run.curve("best_so_far_regret") / (run.optimum - run.random_value)
    return first_rounds(scores >= np.array(targets)[:, None])


def first_rounds(reached: np.ndarray) -> np.ndarray:
    """Return the first true round, counted from 1: shape ``(..., rounds)`` to ``(...)``; infinite if there is none."""
    return np.where(reached.any(-1), reached.argmax(-1) + 1.0, np.inf)


def seconds_to(run: Run, targets: Sequence[float] = TARGETS) -> np.ndarray:
    """Return the agent's seconds until each score: those of its reset, and the mean of a round for each round."""
    return run.reset_seconds + run.seconds_a_round * rounds_to(run, targets)


def shares_reached(times: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the fraction of times (which may be infinite) that are at most each threshold."""
    return np.searchsorted(np.sort(times), thresholds, side="right") / len(times)
