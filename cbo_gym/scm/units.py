"""Changes of the unit of a number: scale, shift, reflection and a smooth bend, one-to-one on the real line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbo_gym.scm.values import Composition, Interval, Number


@dataclass(frozen=True)
class Unit:
    """A map of the real line that takes the ends of one interval to those of another.

    The bend is that of Jones & Pewsey (2009), Sinh-arcsinh distributions, sec. 2: smooth, increasing, and with an
    inverse in closed form.

    Args:
        old: the interval in the old unit.
        new: the interval in the new unit.
        reflected: whether the lower end of ``old`` becomes the upper end of ``new``.
        bend: size of the bend; 0 for a straight line.
    """

    old: Interval
    new: Interval
    reflected: bool = False
    bend: float = 0.0

    @cached_property
    def slope(self) -> float:
        """Slope of a straight map; negative if the map is reflected."""
        size = (self.new[1] - self.new[0]) / (self.old[1] - self.old[0])
        return -size if self.reflected else size

    @cached_property
    def origin(self) -> float:
        """New value of 0 under a straight map."""
        return (self.new[1] if self.reflected else self.new[0]) - self.slope * self.old[0]

    @cached_property
    def _ends(self) -> Interval:
        return math.sinh(math.asinh(-1.0) + self.bend), math.sinh(math.asinh(1.0) + self.bend)

    def to_new(self, value: Number) -> Number:
        """Return the value in the new unit; a straight map takes tensors as well."""
        if not self.bend:
            return self.slope * value + self.origin
        low, high = self._ends
        share = 2.0 * (value - self.old[0]) / (self.old[1] - self.old[0]) - 1.0
        share = (np.sinh(np.arcsinh(share) + self.bend) - low) / (high - low)
        share = 1.0 - share if self.reflected else share
        return self.new[0] + (self.new[1] - self.new[0]) * share

    def to_old(self, value: Number) -> Number:
        """Return the value in the old unit."""
        if not self.bend:
            return (value - self.origin) / self.slope
        low, high = self._ends
        share = (value - self.new[0]) / (self.new[1] - self.new[0])
        share = 1.0 - share if self.reflected else share
        unbent = np.sinh(np.arcsinh(low + (high - low) * share) - self.bend)
        return self.old[0] + (self.old[1] - self.old[0]) * 0.5 * (unbent + 1.0)


# Unit that does not change; tests of identity (``is``) recognise it.
IDENTITY = Unit((0.0, 1.0), (0.0, 1.0))


@dataclass(frozen=True)
class TransformedComposition:
    """A known function of nodes, as a function of renamed nodes in other units.

    Args:
        known: the original function.
        nodes: name -> new name and straight unit.
        reward: straight unit of the result.
    """

    known: Composition
    nodes: Mapping[str, tuple[str, Unit]]
    reward: Unit

    def __call__(self, nodes: Mapping[str, Number]) -> Number:
        values = {name: unit.to_old(nodes[new]) for name, (new, unit) in self.nodes.items() if new in nodes}
        return self.reward.to_new(self.known(values))
