"""A view of a system in other names, units and coordinates, with the same noise and causal effects.

Instances of an environment are such views.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.intervention import Intervention
from cbo_gym.scm.noise import Distribution
from cbo_gym.scm.system import NO_INTERVENTION, Draws, System, Values, Variable, own_noise
from cbo_gym.scm.units import IDENTITY, Unit
from cbo_gym.scm.values import Floats


class TransformedSystem(System):
    """A system whose variables and soft parameters have other names, units and order than those of ``system``.

    Args:
        system: the original system.
        names: old name -> new name, of each variable.
        units: old name -> unit, of variables whose unit changes.
        nodes: old names of the observed variables in their new order, the reward last.
        coordinates: new index and unit of each old soft parameter; empty without soft parameters, or if the mode
            defines them.
        known_noise: old name -> the distribution of its noise that agents know.
    """

    def __init__(
        self,
        system: System,
        names: Mapping[str, str],
        units: Mapping[str, Unit],
        nodes: Sequence[str],
        coordinates: Sequence[tuple[int, Unit]],
        known_noise: Mapping[str, Distribution],
    ) -> None:
        self.system, self.names, self.units, self.coordinates = system, names, units, tuple(coordinates)
        self.reward = names[system.reward]
        self.nodes = tuple(names[name] for name in nodes)
        self.diagram = rename_diagram(system.diagram, names, self.nodes)
        self.action_dim = system.action_dim
        indices = [index for index, _ in self.coordinates] or list(range(system.action_dim))
        action_nodes = {
            names[name]: tuple(indices[i] for i in coordinates_of_node)
            for name, coordinates_of_node in system.action_nodes.items()
        }
        self.action_nodes = {name: action_nodes[name] for name in self.nodes if name in action_nodes}
        self.variables = tuple(
            _rename_variable(v, names[v.name], known_noise.get(v.name, v.noise)) for v in system.variables
        )
        self.noisy = tuple(_rename_variable(v, names[v.name], v.noise) for v in system.noisy)
        self._old = {new: old for old, new in names.items()}

    @property
    def parameter_dependent(self) -> Collection[str]:
        return frozenset(self.names[name] for name in self.system.parameter_dependent)

    @property
    def noise_of_reward(self) -> frozenset[str]:
        return frozenset(self.names[name] for name in self.system.noise_of_reward)

    def draw_noise(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> tuple[np.ndarray, ...]:
        return self.system.draw_noise(rng, size)

    def propagate(self, noise: Draws, intervention: Intervention = NO_INTERVENTION) -> Values:
        """Return the values of all variables by their new names; a set variable has exactly the value of the action."""
        values = {
            self.names.get(name, name): self.units[name].to_new(value) if name in self.units else value
            for name, value in self.system.propagate(noise, self.to_original(intervention)).items()
        }
        for name, (mask, value) in intervention.hard.items():
            values[name] = value if mask is True else np.where(mask, value, values[name])
        return values

    def to_original(self, intervention: Intervention) -> Intervention:
        """Return an intervention in the names, units and coordinates of the original system."""
        soft = intervention.soft
        if self.coordinates and soft:
            soft = [_old_value(unit, soft[index]) for index, unit in self.coordinates]
        hard = {}
        for new, (mask, value) in intervention.hard.items():
            old = self._old[new]
            hard[old] = (mask, _old_value(self.units[old], value) if old in self.units else value)
        return Intervention(soft, hard)

    def __reduce__(self) -> tuple[object, ...]:
        pairs = zip(self.system.variables, self.variables, strict=True)
        known_noise = {old.name: new.noise for old, new in pairs}
        nodes = [self._old[name] for name in self.nodes]
        return type(self), (self.system, self.names, self.units, nodes, self.coordinates, known_noise)


def _rename_variable(variable: Variable, name: str, noise: Distribution) -> Variable:
    return Variable(name, own_noise, noise=noise, observed=variable.observed)


def _old_value(unit: Unit, value: Floats) -> Floats:
    """Convert an intervention's value to the old unit, clipped because mechanisms may fail outside the interval."""
    if unit is IDENTITY:
        return value
    low, high = unit.old
    old = unit.to_old(value)
    return np.clip(old, low, high) if isinstance(old, np.ndarray) else min(max(float(old), low), high)


def rename_diagram(diagram: CausalDiagram, names: Mapping[str, str], nodes: Sequence[str]) -> CausalDiagram:
    """Return a diagram with other names, ``nodes`` in their new order."""
    directed = [(names[a], names[b]) for a, b in diagram.directed]
    bidirected = [[names[name] for name in pair] for pair in diagram.bidirected]
    return CausalDiagram(nodes, directed, bidirected, allow_cycles=diagram.allow_cycles)
