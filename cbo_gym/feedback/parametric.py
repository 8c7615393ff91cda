"""Actions that are parameters of mechanisms: what the soft, the aggregated and the masked mode have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from cbo_gym.actions import Domains
from cbo_gym.errors import ArgumentError
from cbo_gym.feedback.base import Description, Feedback
from cbo_gym.task import ParametricTask


class ParametricFeedback(Feedback):
    """A mode whose actions are the soft parameters of a system, which keep their own names where they have any."""

    task_class: ClassVar[type[ParametricTask]]

    def require_parameters(self) -> Domains:
        """Native units of the soft parameters.

        Raises:
            ArgumentError: if the problem has none, or only those of a super arm.
        """
        if self.problem.super_arms is not None:
            raise ArgumentError(f"{self.problem.name} is a masked problem, with parameters 0 or 1; no {self.mode} mode")
        if self.scm.action_dim == 0:
            raise ArgumentError(f"{self.problem.name} has no soft parameters, so no {self.mode} mode")
        return self.problem.domains

    def named_values(self, values: Sequence[object] | np.ndarray) -> Description:
        """One value a coordinate, by the parameters' own names; else by node, a tuple where a node has several."""
        return {
            name: values[own[0]] if len(own) == 1 else tuple(values[i] for i in own)
            for name, own in self.places.items()
        }

    @cached_property
    def places(self) -> Mapping[str, tuple[int, ...]]:
        """The coordinates by the parameters' own names; where they have none, by the node that they act on."""
        if self.problem.domains.named:
            return {name: (place,) for place, name in enumerate(self.problem.domains.names)}
        return self.scm.action_nodes

    def acted_on(self) -> dict[str, str]:
        names = self.problem.domains.names
        return {node: ", ".join(names[i] for i in own) for node, own in self.scm.action_nodes.items()}

    def task_fields(self) -> dict[str, Any]:
        entering = self.scm.action_nodes
        return {
            "action_nodes": {name: entering[name] for name in self.nodes if name in entering},
            "action_domains": tuple(self.problem.action_domains),
            "action_names": self.problem.domains.names,
        }
