"""Fewer initial rounds than a task has, for methods whose cost grows with the third power of their number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from cbo_gym.task import HardTask, Round, Task

MOST_OBSERVATIONS = 200  # a Gaussian process learns next to nothing from more of them


def few_observations(task: Task) -> Sequence[Round]:
    """The task's initial data, with the first ``MOST_OBSERVATIONS`` of the rounds in which nothing was set."""
    if not isinstance(task, HardTask):
        return task.initial_data
    observed = [not task.targets[int(past.action["target"])] for past in task.initial_data]
    counts = accumulate(observed)
    return [
        past
        for past, was_observed, count in zip(task.initial_data, observed, counts, strict=True)
        if not was_observed or count <= MOST_OBSERVATIONS
    ]
