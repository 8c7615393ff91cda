"""FastPKGFN: knowledge gradient of single nodes at the inputs of one proposal (Buathong & Frazier 2025).

The parameters with the best expected improvement of a full evaluation are the proposal. For each node, a few purchases
with these parameters are offered; the values of its parents are those in stock, or, if parts can be bought as in the
paper, simulated ones. The node with the largest knowledge gradient per price is bought.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.arguments import whole_number
from cbo_gym.agents.common.limits import MAX_SAMPLES
from cbo_gym.agents.purchases.base import PurchaseAgent
from cbo_gym.agents.purchases.knowledge_gradient import knowledge_gradient
from cbo_gym.task import Action

# Largest number of combinations of parents in stock that are offered for a node.
MAX_COMBINATIONS = 48
# Numbers of designs of the knowledge gradient: maximisers of drawn networks, and points around the best design.
DRAWN_DESIGNS, LOCAL_DESIGNS = 10, 10
# Radius of the points around the best design, in [0, 1].
LOCAL_RADIUS = 0.1


class Offers(NamedTuple):
    """Purchases of one node.

    Attributes:
        points: parameters of each of b purchases, ``(b, q)``.
        parents: native values of the node's parents, ``(b, parents)``.
    """

    points: np.ndarray
    parents: np.ndarray

    def at(self, rows: np.ndarray) -> Offers:
        return Offers(*(column[rows] for column in self))

    @classmethod
    def join(cls, parts: Sequence[Offers]) -> Offers:
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


class KnowledgeGradientAgent(PurchaseAgent):
    """Base class of agents that value purchases by the gain of the best posterior mean over a set of designs."""

    def __init__(self, fantasies: int = 8, samples: int = 32, device: str = "cpu") -> None:
        super().__init__(device)
        self.fantasies = whole_number("fantasies", fantasies, at_least=1, at_most=MAX_SAMPLES)
        self.samples = whole_number("samples", samples, at_least=1, at_most=MAX_SAMPLES)

    def designs(self, seed: int) -> Tensor:
        """Return designs ``a x q``: the best parameters now, points around them, and maximisers of drawn networks."""
        best = torch.from_numpy(self.best()).to(self.network.inputs)
        generator = torch.Generator().manual_seed(seed)
        directions = torch.randn((LOCAL_DESIGNS, self._dim), dtype=torch.float64, generator=generator)
        radii = torch.rand((LOCAL_DESIGNS, 1), dtype=torch.float64, generator=generator) ** (1.0 / self._dim)
        local = best + (LOCAL_RADIUS * radii * torch.nn.functional.normalize(directions)).to(best)
        return torch.cat([best[None], local.clamp(0.0, 1.0), self.maximisers_of_draws(DRAWN_DESIGNS, seed).to(best)])


class SingleNodes(KnowledgeGradientAgent):
    """Base class of agents that buy the node with the largest knowledge gradient per price."""

    def choose(self, seed: int) -> Action:
        proposal, designs = self.propose(seed), self.designs(seed)
        best: tuple[float, str, Offers] | None = None
        for node in self.network.nodes:
            price = self.price(node)
            if price > self.remaining_budget or self.is_composition(node):
                continue
            offers = self.offers(node, proposal, designs)
            if not len(offers.points):
                continue
            gains = self.gains(node, offers, designs, self.samples) / max(price, 1e-12)
            index = int(gains.argmax())
            if gains[index] > 0.0 and (best is None or float(gains[index]) > best[0]):
                best = float(gains[index]), node, offers.at(np.array([index]))
        if best is None:
            if np.sum([self.price(node) for node in self.task.nodes]) <= self.remaining_budget:
                return self.buy_all(proposal)
            return self.buy(min(self.modelled_nodes, key=self.price), proposal)
        _, node, offers = best
        parts = dict(zip(self.network.parents[node], offers.parents[0].tolist(), strict=True))
        return self.buy(node, offers.points[0], parts)

    def gains(self, node: str, offers: Offers, designs: Tensor, samples: int) -> np.ndarray:
        """Return the knowledge gradient of offers of a node, ``(b,)``."""
        parameters = offers.points[:, list(self.network.actions[node])]
        inputs = torch.from_numpy(np.hstack([offers.parents, parameters])).to(self.network.inputs)
        return knowledge_gradient(self, node, inputs, designs, self.fantasies, samples).cpu().numpy()

    @abstractmethod
    def offers(self, node: str, proposal: np.ndarray, designs: Tensor) -> Offers:
        """Return the purchases of a node from which to choose; none if its parents are neither in stock nor parts."""

    def offers_in_stock(self, node: str, fillings: np.ndarray) -> Offers:
        """Return purchases of a node whose parents are in stock.

        Args:
            node: a node with parents.
            fillings: parameters ``(f, q)``, of which those that enter none of the parents are used.
        """
        index, parents = self._index[node], [self._index[parent] for parent in self.network.parents[node]]
        combinations = self.stock.combinations(parents, MAX_COMBINATIONS, self.rng)[:, None]
        points = np.where(np.isnan(combinations), fillings, combinations).reshape(-1, self._dim)
        _, distinct = np.unique(points[:, self.stock.entering[index]], axis=0, return_index=True)
        points = points[distinct]
        values = np.array([self.stock.values_at(point) for point in points]).reshape(-1, len(self.task.nodes))
        offers = Offers(points, values[:, parents])
        # Nothing can be learned from a value that is known without noise.
        return offers if node in self.network.noisy else offers.at(np.isnan(values[:, index]))

    def simulate_parents(self, node: str, points: np.ndarray, seed: int) -> np.ndarray:
        """Return values ``(b, parents)`` of a node's parents, from one draw of the network at parameters ``(b, q)``."""
        generator = torch.Generator().manual_seed(seed)
        draws: dict[str, Tensor] = {}

        def value(name: str, inputs: Tensor) -> Tensor:
            draws[name] = self.network.surrogates[name].draw(generator)(inputs)
            return draws[name]

        with torch.no_grad():
            self.rewards(torch.from_numpy(points).to(self.network.inputs), value)
        low, high = self.ranges_of_parents(node)
        columns = [draws[parent].reshape(-1).cpu().numpy() for parent in self.network.parents[node]]
        return np.stack(columns, axis=-1).clip(low, high)

    def ranges_of_parents(self, node: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper ends of the values of a node's parents as parts, ``(parents,)`` each."""
        low, high = np.array([[*self.task.parts[parent]] for parent in self.network.parents[node]]).T
        return low, high


class FastPKGFN(SingleNodes):
    """Knowledge gradient of single nodes at the inputs of one proposal by expected improvement. Plays partial tasks.

    Args:
        fantasies: number of fantasies of a node's value, 1 to 4,096 (8 as in the published program).
        samples: number of draws of the nodes' functions in the knowledge gradient, 1 to 4,096.
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
