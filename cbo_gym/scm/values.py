"""Values that mechanisms take and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

Floats = float | np.ndarray  # a number, or an array of numbers; arrays broadcast together
FloatOrArray = TypeVar("FloatOrArray", float, np.ndarray)  # one of them, the kind that goes in and comes out
Composition = Callable[[Mapping[str, Any]], Any]  # name -> number, array or tensor, to the reward
