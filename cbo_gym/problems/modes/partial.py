"""A problem's data for partial mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cbo_gym._util.arguments import is_finite_number
from cbo_gym.actions import Interval
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.problems.base import ModeData, ProblemStatement, require_interval
from cbo_gym.problems.transform import Transform


@dataclass(frozen=True)
class NodePurchases(ModeData):
    """Values shown for nodes that a round of partial mode does not buy, and ranges of ready-made parts.

    A round buys the value of one node, after those of its parents. A *part* is a node with children; with
    ``upstream=False`` an action may choose the values of a node's parts, because they can be bought ready-made.

    Args:
        unfinished: reward of a round that does not buy the reward variable, at most that of any round that does.
        ranges: part -> native ``(low, high)`` of the values with which it can be bought; empty if none can be bought.
        absent: node -> value shown in rounds that do not buy it, 0 by default.
    """

    unfinished: float
    ranges: Mapping[str, Interval] = field(default_factory=dict)
    absent: Mapping[str, float] = field(default_factory=dict)

    def check(self, problem: ProblemStatement) -> None:
        *others, _ = problem.scm.nodes
        for name, value in {"the reward": self.unfinished, **self.absent}.items():
            if not is_finite_number(value):
                raise ArgumentError(f"{name} needs a finite value in rounds without it; given {value!r}")
        if unknown := [name for name in self.absent if name not in others]:
            raise ArgumentError(f"absent values are of the nodes {others}; given {short_repr(unknown)}")
        parts = [name for name in others if problem.scm.diagram.children(name)]
        for name, interval in self.ranges.items():
            if name not in parts:
                raise ArgumentError(f"{name!r} is no part; these are {parts}{did_you_mean(name, parts)}")
            require_interval(f"the values of the part {name!r}", interval)
        if self.ranges and (missing := [name for name in parts if name not in self.ranges]):
            raise ArgumentError(f"give ranges of all parts, or none; {missing} are missing")

    def transform(self, transform: Transform) -> NodePurchases:
        nodes = [name for name, unit in transform.units.items() if unit != transform.reward]
        absent = transform.values({name: self.absent.get(name, 0.0) for name in nodes})
        return NodePurchases(float(transform.reward.to_new(self.unfinished)), transform.domains(self.ranges), absent)
