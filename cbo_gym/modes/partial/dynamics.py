"""Partial mode: rounds that buy nodes of a function network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """The nodes made so far.

    Attributes:
        rounds: the native parameters of each round that made a node, then for each node whether it was made, 1 or 0,
            then the values of the nodes, shape ``(..., q + 2n, t)``; None before the first purchase.
        spent: cost of all rounds, a number or an array of the batch's shape.
    """

    rounds: np.ndarray | None = None
    spent: Any = 0.0


class Purchase(Intervention):
    """An intervention in a round, with the nodes that it makes, see :meth:`PartialInterface.made`."""

    made: dict[str, Any]


class PartialDynamics(PartialInterface, Dynamics):
    """Purchases of single nodes of a function network, each at its price.

    An action buys a node with given parameters. Its ancestors must have been made with these parameters (the upstream
    condition). An ancestor that was made with them in an earlier round keeps its value from that round. Any other
    ancestor is made in this round, and paid for too. A full evaluation is therefore one purchase of the reward
    variable with new parameters, or a purchase of each node in turn, at the same cost. The chosen node itself is always
    made. Rounds of the initial data are free and complete, and cannot be continued.

    With ``upstream=False``, parents' values can be chosen, because parts with any value can be bought from others; a
    purchase makes the chosen node only, and the last choice makes all nodes, causes before effects.

    ## Action space
    ``Dict(node=Discrete(n), values=Box(0, 1, (q,)))``: the node, in the order of the observation, and all parameters,
    mapped to native units by the problem; those that enter neither the node nor its ancestors have no effect. With
    ``upstream=False`` there is one more choice, all nodes, and ``values`` end with those of the parts.

    ## Observation space
    ``Dict(nodes=Box(n), bought=Box(n), spent=Box(1))``: the observed variables in topological order, the reward last, 0
    (the problem may say another number) for nodes that were not made in this round; 1 for nodes that were made, else
    0; and the cost of all rounds so far. All are zeros at reset.

    ## Reward
    The value of the reward variable if it was made in this round, else the problem's reward of an unfinished product.
    The measure of this mode is the regret of recommendations against cost. A recommendation is a purchase of the reward
    variable, or of all nodes; the recommendation of another node has the reward of an unfinished product.

    ## Arguments
    ``upstream``: whether parts must be made, True by default. ``budget``: the cost at which purchases end, or None.
    A round that costs more than the remaining budget buys nothing, and costs nothing. ``costs``: price of each node.

    ## References
    Buathong, Wan, Astudillo, Daulton, Balandat & Frazier (2024), Bayesian optimization of function networks with
    partial evaluations. Without the upstream condition: Buathong & Frazier (2025).
    """

    def start(self) -> Stock:
        return Stock()

    def in_round(self, intervention: Intervention, memory: Stock) -> Intervention:
        """Set ancestors to their values in stock, and buy nothing where the budget is too small."""
        in_stock = self._values_in_stock(intervention, memory) if self.upstream else {}
        purchase = self._purchase(intervention.soft, {**intervention.hard, **in_stock})
        if self.budget is None:
            return purchase
        *native, choice = intervention.soft
        affordable: Any = memory.spent + self.cost(purchase) <= self.budget * (1.0 + ROUNDING)
        if type(choice) is float:
            return purchase if affordable else self._purchase([*native, float(NOTHING)], purchase.hard)
        return self._purchase([*native, np.where(affordable, choice, float(NOTHING))], purchase.hard)

    def _purchase(self, soft: Sequence[Floats], hard: Mapping[str, tuple[Any, Any]]) -> Purchase:
        purchase = Purchase(soft, hard)
        purchase.made = super().made(purchase)
        return purchase

    def made(self, intervention: Intervention) -> dict[str, Any]:
        # A step needs this several times, so the purchase has the result.
        return intervention.made if isinstance(intervention, Purchase) else super().made(intervention)

    def _values_in_stock(self, intervention: Intervention, memory: Stock) -> dict[str, tuple[Any, Any]]:
        """Return the ancestors of the chosen node in stock: node -> mask of the experiments, and its latest values."""
        *native, choice = intervention.soft
        is_single = type(choice) is float
        if memory.rounds is None or (is_single and not self._ancestors[int(choice)]):
            return {}
        width, count = self._width, len(self.scm.nodes)
        parameters = np.array(native) if is_single else np.stack(np.broadcast_arrays(*native), axis=-1)
        made, values = memory.rounds[..., width : width + count, :], memory.rounds[..., width + count :, :]
        differs = np.abs(memory.rounds[..., :width, :] - parameters[..., None]) > self._rounding
        # A node matches if it was made, and no parameter differs that enters it or its ancestors.
        matches = made > self._enters @ differs.astype(float)
        last = matches.shape[-1] - 1 - matches[..., ::-1].argmax(axis=-1)
        if is_single:
            in_stock = [index for index in self._ancestors[int(choice)] if matches[index, last[index]]]
            return {self.scm.nodes[index]: (True, values[index, last[index]].item()) for index in in_stock}
        masks = self._upstream[np.asarray(choice).astype(int)] & matches.any(axis=-1)
        latest = np.take_along_axis(values, last[..., None], axis=-1)[..., 0]
        columns = zip(self.scm.nodes, np.moveaxis(masks, -1, 0), np.moveaxis(latest, -1, 0), strict=True)
        return {node: (mask, value) for node, mask, value in columns if mask.any()}

    @cached_property
    def _upstream(self) -> np.ndarray:
        """Whether each choice needs each node as an ancestor; the last row is for ``NOTHING``."""
        return self._makes & (np.eye(*self._makes.shape) == 0.0)

    @cached_property
    def _ancestors(self) -> list[list[int]]:
        """Indices of the nodes that each choice needs as ancestors; the last list is for ``NOTHING``."""
        return [np.flatnonzero(needs).tolist() for needs in self._upstream]

    @cached_property
    def _enters(self) -> np.ndarray:
        """Whether each node or its ancestors have each parameter, 1 or 0."""
        entering = [self.entering[node] for node in self.scm.nodes]
        return np.array([[float(index in indices) for index in range(self._width)] for indices in entering])

    @cached_property
    def _rounding(self) -> np.ndarray:
        """Largest difference at which two values of a parameter are equal, shape ``(q, 1)``."""
        return SAME_INPUT * np.array([[high - low] for low, high in self.problem.action_domains])

    def play(self, noise: Draws, intervention: Intervention) -> Values:
        """Return the values of the nodes that were made, default values of the others, and flags of those made."""
        made = self.made(intervention)
        # Nodes that no round of the batch makes need no mechanism.
        idle = {node: (True, self._absent[node]) for node, mask in made.items() if mask is False}
        values = self.scm.propagate(noise, Intervention(intervention.soft, {**idle, **intervention.hard}))
        for node, mask in made.items():
            absent, flag = self._absent[node], self._flags[node]
            if mask is True:
                values[flag] = 1.0
            elif mask is False:
                values[node], values[flag] = absent, 0.0
            else:
                values[node], values[flag] = np.where(mask, values[node], absent), np.where(mask, 1.0, 0.0)
        return values

    def remember(self, memory: Stock, intervention: Intervention, values: Values) -> Stock:
        made = self.made(intervention)
        is_single = type(intervention.soft[-1]) is float
        if not any(made.values() if is_single else map(np.any, made.values())):
            return memory
        entries = [*intervention.soft[: self._width], *made.values(), *(values[node] for node in self.scm.nodes)]
        if is_single:
            column = np.array(entries)
        else:
            column = np.stack(np.broadcast_arrays(*entries, intervention.soft[-1])[:-1], axis=-1)
        column = column[..., None]
        rounds = column if memory.rounds is None else np.concatenate([memory.rounds, column], axis=-1)
        return Stock(rounds, memory.spent + self.cost(intervention))

    def observe_memory(self, memory: Stock) -> Observation:
        return {"spent": np.asarray(memory.spent, dtype=np.float64)[..., None]}

    def known_maximiser(self) -> Action | None:
        best = self.problem.optimal_action
        if best is None:
            return None
        actions = self.whole_actions(np.array([best], dtype=np.float64))
        return {key: value[0] for key, value in actions.items()}
