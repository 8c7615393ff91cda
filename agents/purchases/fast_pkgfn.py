"""FastPKGFN: knowledge gradient of single nodes at the inputs of one proposal (Buathong & Frazier 2025).

The expected improvement of full evaluations proposes parameters. Each node is offered with these, and with the values
of its parents that have been made (the paper: that a simulation gives, because parts can be bought there). The node
with the largest knowledge gradient per price is bought.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.arguments import whole_number
from cbo_gym.agents.common.limits import MAX_SAMPLES
from cbo_gym.agents.purchases.base import PurchaseAgent
from cbo_gym.agents.purchases.knowledge_gradient import knowledge_gradient
from cbo_gym.task import Action

# Combinations of parts in stock that are offered to a node.
MAX_COMBINATIONS = 48
# Designs of the knowledge gradient: maximisers of drawn networks, and points around the best design.
DRAWN_DESIGNS, LOCAL_DESIGNS = 10, 10
# Radius of the points around the best design, in [0, 1].
LOCAL_RADIUS = 0.1


class Offers(NamedTuple):
    """Purchases of one node.

    Attributes:
        points: parameters, ``(b, q)``.
        parents: native values of the node's parents, ``(b, parents)``.
    """

    points: np.ndarray
    parents: np.ndarray

    def at(self, rows: np.ndarray) -> Offers:
        """Return some of the offers."""
        return Offers(self.points[rows], self.parents[rows])


class KnowledgeGradientAgent(PurchaseAgent):
    """Base class of agents that value purchases by the gain of the best posterior mean over a set of designs.

    Args:
        fantasies: fantasies of a node's value, 1 to 4,096.
        samples: draws of the nodes' functions in the knowledge gradient, 1 to 4,096.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    def __init__(self, fantasies: int = 8, samples: int = 32, device: str = "cpu") -> None:
        super().__init__(device)
        self.fantasies = whole_number("fantasies", fantasies, at_least=1, at_most=MAX_SAMPLES)
        self.samples = whole_number("samples", samples, at_least=1, at_most=MAX_SAMPLES)

    def designs(self, seed: int) -> Tensor:
        """Return the designs among which the best is sought: the best now, points around it, maximisers of draws."""
        best = torch.from_numpy(self.best()).to(self.network.inputs)
        generator = torch.Generator().manual_seed(seed)
        directions = torch.randn((LOCAL_DESIGNS, self._width), dtype=torch.float64, generator=generator)
        radii = torch.rand((LOCAL_DESIGNS, 1), dtype=torch.float64, generator=generator) ** (1.0 / self._width)
        local = best + (LOCAL_RADIUS * radii * torch.nn.functional.normalize(directions)).to(best)
        return torch.cat([best[None], local.clamp(0.0, 1.0), self.maximisers_of_draws(DRAWN_DESIGNS, seed).to(best)])


class SingleNodes(KnowledgeGradientAgent):
    """Base class of agents that buy the node with the largest knowledge gradient per price."""

    def choose(self, seed: int) -> Action:
        proposal, designs = self.propose(seed), self.designs(seed)
        best: tuple[float, str, Offers] | None = None
        for node in self.network.nodes:
            price = self.price(node)
            if price > self.remaining_budget or (node == self.task.reward and self.task.composition is not None):
                continue
            offers = self.offers(node, proposal, designs)
            if not len(offers.points):
                continue
            gains = self.gains(node, offers, designs, self.samples) / max(price, 1e-12)
            index = int(gains.argmax())
            if gains[index] > 0.0 and (best is None or float(gains[index]) > best[0]):
                best = float(gains[index]), node, offers.at(np.array([index]))
        if best is None:
            return self.fallback_purchase(proposal)
        _, node, offers = best
        parts = dict(zip(self.network.parents[node], offers.parents[0].tolist(), strict=True))
        return self.buy(node, offers.points[0], parts)

    def fallback_purchase(self, proposal: np.ndarray) -> Action:
        """Return the purchase if no node has a positive gain: all nodes, or beyond the budget the cheapest node."""
        prices = {node: self.price(node) for node in self.modelled_nodes}
        if float(np.sum([self.price(node) for node in self.task.nodes])) <= self.remaining_budget:
            return self.buy_all(proposal)
        return self.buy(min(prices, key=prices.__getitem__), proposal)

    def gains(self, node: str, offers: Offers, designs: Tensor, samples: int) -> np.ndarray:
        """Return the knowledge gradient of offers of a node, ``(b,)``."""
        parameters = offers.points[:, list(self.network.actions[node])]
        inputs = torch.from_numpy(np.hstack([offers.parents, parameters])).to(self.network.inputs)
        return knowledge_gradient(self, designs, {node: inputs}, self.fantasies, samples)[node].cpu().numpy()

    @abstractmethod
    def offers(self, node: str, proposal: np.ndarray, designs: Tensor) -> Offers:
        """Return the purchases of a node from which to choose; none if its parents can be neither taken nor bought."""

    def offers_in_stock(self, node: str, fillings: np.ndarray) -> Offers:
        """Return purchases of a node whose parents are in stock.

        Args:
            node: a node with parents.
            fillings: parameters ``(f, q)``, which replace those that enter none of the parents.
        """
        parents = [self._index[parent] for parent in self.network.parents[node]]
        combinations = self.stock.combinations(parents, MAX_COMBINATIONS, self.rng)
        points = np.where(np.isnan(combinations[:, None]), fillings, combinations[:, None]).reshape(-1, self._width)
        entering = self.stock.entering[self._index[node]]
        _, first = np.unique(points[:, entering], axis=0, return_index=True)
        known = np.array([self.stock.values_at(point) for point in points[first]]).reshape(-1, len(self.task.nodes))
        # Nothing can be learned from a value that is known without noise.
        new = np.isnan(known[:, self._index[node]]) if node not in self.network.noisy else np.ones(len(known), bool)
        return Offers(points[first][new], known[new][:, parents])

    def simulate_parents(self, node: str, points: np.ndarray, seed: int) -> np.ndarray:
        """Return values of a node's parents with parameters ``(b, q)`` in a network drawn from the posterior."""
        generator = torch.Generator().manual_seed(seed)
        draws: dict[str, Tensor] = {}

        def value(name: str, inputs: Tensor) -> Tensor:
            draws[name] = self.network.surrogates[name].draw(generator)(inputs)
            return draws[name]

        with torch.no_grad():
            self.rewards(torch.from_numpy(points).to(self.network.inputs), value)
        columns = [draws[parent].reshape(-1).cpu().numpy() for parent in self.network.parents[node]]
        ranges: Mapping[str, tuple[float, float]] = {name: (i[0], i[1]) for name, i in self.task.parts.items()}
        inside = [np.clip(c, *ranges[p]) for c, p in zip(columns, self.network.parents[node], strict=True)]
        return np.stack(inside, axis=-1)


class FastPKGFN(SingleNodes):
    """Knowledge gradient of single nodes at the inputs of one proposal by expected improvement. Plays partial tasks.

    Args:
        fantasies: fantasies of a node's value, 1 to 4,096 (8 as in the published program).
        samples: draws of the nodes' functions in the knowledge gradient, 1 to 4,096.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    revision = 3

    def offers(self, node: str, proposal: np.ndarray, designs: Tensor) -> Offers:
        if not self.network.parents[node]:
            return Offers(proposal[None], np.empty((1, 0)))
        if self.task.parts:
            return Offers(proposal[None], self.simulate_parents(node, proposal[None], int(self.rng.integers(2**31))))
        return self.offers_in_stock(node, np.stack([proposal, self.best()]))
