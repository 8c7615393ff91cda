"""The change of names, units and orders that turns a published problem into one of its instances.

:mod:`cbo_gym.problems.variations.instance` draws it. It applies to systems, actions and the data of feedback modes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from cbo_gym.actions import Interval
from cbo_gym.scm.noise import multiply
from cbo_gym.scm.system import System
from cbo_gym.scm.transform import TransformedSystem
from cbo_gym.scm.units import IDENTITY, TransformedComposition, Unit

# Key that separates the random streams of instances from other streams with small numbers.
INSTANCE_STREAM = 7
# Random streams of an instance.
TRANSFORM, NODES, DOMAINS, SETS, ARMS, CONTEXTS = range(6)
# An action in the form of RecordedOptimum.action.
Record = Any
Item = TypeVar("Item")


def instance_generator(instance: int, stream: int) -> np.random.Generator:
    """Return the random stream of one part of an instance."""
    return np.random.default_rng(np.random.SeedSequence(instance, spawn_key=(INSTANCE_STREAM, stream)))


@dataclass(frozen=True)
class Transform:
    """New names, units and orders of a problem's variables, soft parameters and sets.

    A unit is linear in the old one unless it is bent, see :class:`~cbo_gym.scm.units.Unit`.

    Attributes:
        instance: Number of the instance, which is the seed for the orders of sets.
        names: New name of each variable, and of each named soft parameter.
        units: Unit of each transformed node, by its old name.
        reward: Unit of the reward.
        coordinates: New index and unit of each old soft parameter.
    """

    instance: int
    names: Mapping[str, str]
    units: Mapping[str, Unit]
    reward: Unit
    coordinates: tuple[tuple[int, Unit], ...]

    @property
    def keeps_measure(self) -> bool:
        """Whether the expected reward of a random action stays the same, in the reward's new unit."""
        return not any(unit.bend for unit in (*self.units.values(), *(unit for _, unit in self.coordinates)))

    def unit(self, name: str) -> Unit:
        """Return the unit of a node by its old name."""
        return self.units.get(name, IDENTITY)

    def point(self, point: Sequence[float]) -> tuple[float, ...]:
        """Return transformed soft parameters in [0, 1], each at its new index."""
        transformed = [0.0] * len(point)
        for value, (index, unit) in zip(point, self.coordinates, strict=True):
            share = value
            if unit is not IDENTITY:
                (old_low, old_high), (new_low, new_high) = unit.old, unit.new
                native = unit.to_new(old_low + (old_high - old_low) * value)
                share = (native - new_low) / (new_high - new_low)
            transformed[index] = min(max(float(share), 0.0), 1.0)
        return tuple(transformed)

    def values(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return transformed native values by new name."""
        return {self.names[name]: float(self.unit(name).to_new(value)) for name, value in values.items()}

    def record(self, record: Record) -> Record:
        """Return a transformed action of the registry: words, values of variables, or soft parameters in [0, 1]."""
        if isinstance(record, str):
            return self.describe_policy(record)
        return self.values(record) if isinstance(record, Mapping) else list(self.point(record))

    def describe_policy(self, policy: str) -> str:
        """Return the description of a policy, in words of the published problem."""
        return f"as in instance 0, transformed: {policy}"

    def rename(self, names: Iterable[str]) -> frozenset[str]:
        """Return a set of variables by their new names."""
        return frozenset(self.names[name] for name in names)

    def reorder(self, items: Sequence[Item]) -> list[Item]:
        """Return items, one for each soft parameter, in the new order of the parameters."""
        new_indices = [index for index, _ in self.coordinates]
        return [items[new_indices.index(index)] for index in range(len(items))]

    def shuffle(self, items: Sequence[Item], stream: int) -> list[Item]:
        """Return items in another order, which depends on their number, the instance and the stream."""
        return [items[index] for index in instance_generator(self.instance, stream).permutation(len(items))]

    def domains(self, domains: Mapping[str, Interval]) -> dict[str, Interval]:
        """Return transformed domains of hard interventions, in another order."""
        transformed = [(self.names[name], self._interval(name, domain)) for name, domain in domains.items()]
        return dict(self.shuffle(transformed, DOMAINS))

    def _interval(self, name: str, domain: Interval) -> Interval:
        if name not in self.units:
            return domain[0], domain[1]
        low, high = sorted(float(self.units[name].to_new(end)) for end in (domain[0], domain[1]))
        return low, high

    def system(self, system: System, nodes: Sequence[str]) -> TransformedSystem:
        """Return a system in new names and units, its nodes in the order of ``nodes``, which are old names.

        The noise of a bent node, and noise without a distribution in the new unit, keeps its old distribution.
        """
        slopes = {name: unit.slope for name, unit in self.units.items() if not unit.bend}
        noise = {v.name: multiply(v.noise, slopes[v.name]) for v in system.variables if v.name in slopes}
        known = {name: distribution for name, distribution in noise.items() if distribution is not None}
        return TransformedSystem(system, self.names, self.units, nodes, self.coordinates, known)

    def composition(self, composition: Callable[..., Any], nodes: Sequence[str]) -> TransformedComposition:
        """Return the function from the nodes to the reward, in new names and units."""
        units = {name: (self.names[name], self.unit(name)) for name in nodes}
        return TransformedComposition(composition, units, self.reward)
