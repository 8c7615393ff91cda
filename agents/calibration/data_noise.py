"""What agents know of the noise in their data: nodes without noise, and standard errors stated with values."""

from __future__ import annotations

from typing import Any

import numpy as np

from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.scm.noise import Zero
from cbo_gym.task import Observation, Task


def is_noiseless(task: Task, node: str) -> bool:
    """Return whether ``node`` is known to be a function of the action alone.

    This is so if the diagram is known, the noise is known to be zero at the node and all its ancestors, and none of
    them has a latent cause.
    """
    if task.graph.diagram is None:
        return False
    upstream = task.diagram.ancestors([node])
    if task.noise is None or any(pair & upstream for pair in task.diagram.bidirected):
        return False
    return all(isinstance(task.noise[name], Zero) for name in upstream)


def standard_error(observation: Observation, column: int) -> float:
    """Return the stated standard error of the node with index ``column``; 0 if none was stated."""
    std = observation.get("std")
    return 0.0 if std is None or np.isnan(std[column]) else float(std[column])


def add_measured(surrogate: Any, inputs: Any, output: Any, error: float) -> None:
    """Add an observation with its standard error; surrogates other than :class:`GaussianProcess` ignore the error."""
    if error and isinstance(surrogate, GaussianProcess):
        surrogate.add(inputs, output, error)
    else:
        surrogate.add(inputs, output)
