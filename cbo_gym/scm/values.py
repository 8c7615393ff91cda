"""Types of the values of mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

# Lower and upper end of an interval.
Interval = tuple[float, float]
# A float, or an array or tensor of floats.
Number = Any
# A number, or an array of numbers; arrays broadcast together.
Floats = float | np.ndarray
# Type of an argument and of the result.
FloatOrArray = TypeVar("FloatOrArray", float, np.ndarray)
# A known reward: a function from a dictionary, name -> number, array or tensor, to the reward.
Composition = Callable[[Mapping[str, Any]], Any]
