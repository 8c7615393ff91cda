"""Partial mode: rounds that buy nodes of a function network."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.partial.interface import NOTHING, PartialInterface
from cbo_gym.scm import Floats, Intervention
from cbo_gym.scm.system import Draws, Values
from cbo_gym.task import SAME_INPUT, Action, Observation

# Relative rounding error of a sum of prices.
ROUNDING = 1e-9


class Stock(NamedTuple):
    """The nodes made so far. Arrays have rounds on the first axis and the batch's shape after the second axis.

    Attributes:
        inputs: native parameters of each round, ``(t, q, ...)``; None before the first purchase.
        made: whether each node was made, ``(t, n, ...)``.
        values: value of each node that was made, ``(t, n, ...)``.
        spent: cost of all rounds, a number or an array of the batch's shape.
    """

    inputs: np.ndarray | None = None
    made: np.ndarray | None = None
    values: np.ndarray | None = None
    spent: Any = 0.0


class PartialDynamics(PartialInterface, Dynamics):
    """Purchases of single nodes of a function network, each at its price.

    An action buys a node with given parameters. Its parents' values are those that the parents have had with these
    parameters (the upstream condition): what has been made with the same parameters in an earlier round is used,
    with the noise that it had then, and what has not is made in this round and paid for too. So a full evaluation is
    one purchase of the reward variable with new parameters, or a purchase of each node in turn, at the same cost. The
    chosen node itself is always made. Rounds of the initial data are free and complete, and cannot be continued.

    With ``upstream=False``, parents' values can be chosen, because parts with any value can be bought from others; a
    purchase makes the chosen node only, and the last choice makes all nodes, one from the other.

    ## Action space
    ``Dict(node=Discrete(n), values=Box(0, 1, (q,)))``: the node, in the order of the observation, and all parameters,
    mapped to native units by the problem; those that enter neither the node nor its ancestors have no effect. With
    ``upstream=False`` there is one more choice, all nodes, and ``values`` end with those of the parts.

    ## Observation space
    ``Dict(nodes=Box(n), bought=Box(n), spent=Box(1))``: the observed variables in topological order, the reward last, 0
    (the problem may say another number) for nodes that were not made in this round; 1 for nodes that were made, else
    0; and the cost of all rounds so far. All are zeros at reset.

    ## Reward
    The value of the reward variable if it was made in this round, else the problem's worth of an unfinished product.
    The measure of this mode is the regret of recommendations against cost. A recommendation is a purchase of the reward
    variable, or of all nodes; the recommendation of another node is worth an unfinished product.

    ## Arguments
    ``upstream``: whether parts must be made, True by default. ``budget``: the cost at which purchases end, or None.
    A round whose cost exceeds the rest of the budget buys nothing, and costs nothing. ``costs``: price of each node.

    ## References
    Buathong, Wan, Astudillo, Daulton, Balandat & Frazier (2024), Bayesian optimization of function networks with
    partial evaluations. Without the upstream condition: Buathong & Frazier (2025).
    """

    def start(self) -> Stock:
        return Stock()

    def situate(self, intervention: Intervention, memory: Stock) -> Intervention:
        """Take ancestors from the stock, and buy nothing where the budget is too small."""
        taken = self._take(intervention, memory) if self.upstream else {}
        situated = Intervention(intervention.soft, {**intervention.hard, **taken})
        if self.budget is None:
            return situated
        affordable = memory.spent + self.cost(situated) <= self.budget * (1.0 + ROUNDING)
        *native, choice = situated.soft
        paid: Any = np.where(affordable, choice, float(NOTHING))
        return situated._replace(soft=[*native, float(paid) if paid.ndim == 0 else paid])

    def _take(self, intervention: Intervention, memory: Stock) -> dict[str, tuple[Any, Any]]:
        """Return where ancestors of the chosen node are in stock, and their last values there."""
        inputs, made, values, _ = memory
        if inputs is None or made is None or values is None:
            return {}
        *native, choice = intervention.soft
        chosen, now = np.asarray(choice).astype(int), np.stack(np.broadcast_arrays(*native))
        equal = np.abs(inputs - now) <= self._rounding.reshape(-1, *[1] * (now.ndim - 1))
        taken = {}
        for index, node in enumerate(self.scm.nodes[:-1]):
            matches = made[:, index] & equal[:, self.entering[node]].all(axis=1)
            in_stock = self._makes[chosen, index] & (chosen != index) & matches.any(axis=0)
            if in_stock.any():
                last = len(matches) - 1 - np.argmax(matches[::-1], axis=0)
                value = np.take_along_axis(values[:, index], last[None], axis=0)[0]
                taken[node] = (True, float(value)) if in_stock.ndim == 0 else (in_stock, value)
        return taken

    @cached_property
    def _rounding(self) -> np.ndarray:
        """Largest difference at which two values of a parameter are equal."""
        return SAME_INPUT * np.array([high - low for low, high in self.problem.action_domains])

    def play(self, noise: Draws, intervention: Intervention) -> Values:
        """Return the values of the nodes that were made, the problem's for others, and which were made."""
        values = self.scm.propagate(noise, intervention)
        for node, mask in self.made(intervention).items():
            values[node] = self._where(mask, values[node], self._absent[node])
            values[self._flag(node)] = self._where(mask, 1.0, 0.0)
        return values

    @staticmethod
    def _where(mask: Any, value: Floats, other: float) -> Floats:
        if isinstance(mask, bool):
            return value if mask else other
        return np.where(mask, value, other)

    def remember(self, memory: Stock, intervention: Intervention, values: Values) -> Stock:
        made = self.made(intervention)
        if not any(map(np.any, made.values())):
            return memory
        shape = np.broadcast_shapes(*map(np.shape, intervention.soft))

        def after(earlier: np.ndarray | None, entries: Iterable[Any]) -> np.ndarray:
            row = np.stack([np.broadcast_to(entry, shape) for entry in entries])[None]
            return row if earlier is None else np.concatenate([earlier, row])

        return Stock(
            after(memory.inputs, intervention.soft[: self._width]),
            after(memory.made, made.values()),
            after(memory.values, [values[node] for node in self.scm.nodes]),
            memory.spent + self.cost(intervention),
        )

    def observe_memory(self, memory: Stock) -> Observation:
        return {"spent": np.asarray(memory.spent, dtype=np.float64)[..., None]}

    def known_maximiser(self) -> Action | None:
        best = self.problem.optimal_action
        if best is None:
            return None
        actions = self.whole_actions(np.array([best], dtype=np.float64))
        return {key: value[0] for key, value in actions.items()}
