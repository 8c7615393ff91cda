"""Standard errors that are stated with the values of a round, and their use by surrogates."""

from __future__ import annotations

from typing import Any

import numpy as np

from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.task import Observation


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
