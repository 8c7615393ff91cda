"""Actions that are parameters of mechanisms, as in soft, aggregated and masked mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import floor, log10
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from cbo_gym.actions import Domains
from cbo_gym.actions.costs import Changed
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base.interface import Description, Entry, Interface
from cbo_gym.modes.base.pricing import Priceable
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.problems.transform import Record, Transform
from cbo_gym.scm import Floats, Intervention
from cbo_gym.task import ParametricTask

MISSING = "-"


class ParametricInterface(Interface):
    """A mode whose actions are values of a system's soft parameters."""

    task_class: ClassVar[type[ParametricTask]]
    #: Whether parameters may be categories or integers, or have steps or logarithmic scales.
    takes_mixed_domains: ClassVar[bool] = False

    def require_parameters(self) -> Domains:
        """Return the domains of the soft parameters; raise ArgumentError if the mode cannot take them."""
        if self.problem.data(SuperArms) is not None:
            raise ArgumentError(f"{self.problem.name} is a masked problem, with parameters 0 or 1; no {self.mode} mode")
        if self.scm.action_dim == 0:
            raise ArgumentError(
                f"{self.problem.name} has no soft parameters, so no {self.mode} mode; name them, with their bounds, as "
                "actions of custom_problem or parameters of a study"
            )
        if (typed := self.problem.domains.typed) and not self.takes_mixed_domains:
            raise ArgumentError(
                f"{self.mode} mode takes only numbers between bounds; {self.problem.name} has "
                f"{', '.join(f'{name}: {domain!r}' for name, domain in typed.items())}"
            )
        return self.problem.domains

    def named_values(self, values: Sequence[object] | np.ndarray) -> Description:
        """Return the values of an action's coordinates by parameter, or by node if parameters have no names.

        The value of a node with several parameters is a tuple.
        """
        return {name: get(values) for name, get in self._getters}

    @cached_property
    def _getters(self) -> Sequence[tuple[str, Callable[[Any], Any]]]:
        return [(name, itemgetter(*indices)) for name, indices in self.coordinates.items()]

    @cached_property
    def coordinates(self) -> Mapping[str, tuple[int, ...]]:
        """Indices of coordinates by parameter, or by affected node if parameters have no names."""
        if self.domains.named:
            return {name: (index,) for index, name in enumerate(self.domains.names)}
        return self.coordinates_by_node

    @property
    def coordinates_by_node(self) -> Mapping[str, tuple[int, ...]]:
        """Indices of coordinates by the node whose mechanism they enter."""
        count = len(self.domains)
        by_node = {node: tuple(i for i in entering if i < count) for node, entering in self.scm.action_nodes.items()}
        return {node: coordinates for node, coordinates in by_node.items() if coordinates}

    def priceable(self) -> Priceable:
        """Return the parameters by their names and by node; their prices are for changes from the null action."""
        names = self.domains.names
        items = {node: tuple(names[i] for i in indices) for node, indices in self.coordinates_by_node.items()}
        items |= {name: (name,) for name in names}
        return Priceable(items, [frozenset({name}) for name in names], self._null_values)

    @cached_property
    def _null_values(self) -> Mapping[str, float]:
        """Native value of each parameter in the null action."""
        names = self.domains.names
        native = self.problem.to_native(self.problem.null_action).tolist()
        return dict(zip(names, native[: len(names)], strict=True))

    def changed_items(self, intervention: Intervention) -> Changed:
        """Return the parameters that differ from the null action."""
        return {
            name: (value != null, value)
            for (name, null), value in zip(self._null_values.items(), self.priced_values(intervention), strict=True)
        }

    def priced_values(self, intervention: Intervention) -> Sequence[Floats]:
        """Return the native value of each of the agent's parameters from which its cost is computed."""
        return intervention.soft[: len(self.domains)]

    def affected_nodes(self) -> dict[str, str]:
        names = self.problem.domains.names
        return {node: ", ".join(names[i] for i in indices) for node, indices in self.scm.action_nodes.items()}

    def node_entries(self, intervention: Intervention | None, values: Mapping[str, Floats]) -> dict[str, list[Entry]]:
        entries = [self.entry(i, intervention, values) for i in range(self.scm.action_dim)]
        return {node: [entries[i] for i in indices] for node, indices in self.scm.action_nodes.items()}

    def entry(self, index: int, intervention: Intervention | None, values: Mapping[str, Floats]) -> Entry:
        """Return the entry of one coordinate, in native units; for the arguments see :meth:`node_entries`."""
        name, domain = self.domains.names[index], self.domains.intervals[index]
        if labels := self.domains.categories(index):
            value = MISSING if intervention is None else labels[round(float(intervention.soft[index]))]
            return Entry(f"{name} = {value}", f"{name} = {max(labels, key=len)}")
        value = MISSING if intervention is None else number_format(*domain)(float(intervention.soft[index]))
        return Entry(f"{name} = {value}", f"{name} = {widest_number(*domain)}")

    def transform_record(self, transform: Transform, record: Record) -> Record:
        if not isinstance(record, Mapping):
            return transform.record(record)
        names = [old for old, new in transform.names.items() if new in self.problem.action_names]
        units = zip(names, transform.coordinates, strict=True)
        return {transform.names[name]: float(unit.to_new(record[name])) for name, (_, unit) in units if name in record}

    def task_fields(self) -> dict[str, Any]:
        by_node = self.coordinates_by_node
        return {
            "action_nodes": {name: by_node[name] for name in self.nodes if name in by_node},
            "action_domains": tuple(self.problem.action_domains)[: len(self.domains)],
            "action_names": self.domains.names,
        }


def number_format(low: float, high: float) -> Callable[[float], str]:
    """Return the function that writes numbers of an interval in pictures, with about three significant digits."""
    decimals = min(max(2 - floor(log10(max(abs(low), abs(high)))), 0), 6)
    return f"{{:.{decimals}f}}".format


def widest_number(low: float, high: float) -> str:
    """Return the longer of the two ends of the interval as written by :func:`number_format`."""
    return max(map(number_format(low, high), (low, high)), key=len)
