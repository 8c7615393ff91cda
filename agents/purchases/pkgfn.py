"""PKGFN: knowledge gradient of single nodes at the best inputs of each (Buathong et al. 2024).

For each node the knowledge gradient per price is maximised over its own parameters and the values of its parents that
have been made, or, where parts can be bought, over all values. The best of all nodes is bought.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from cbo_gym.agents.purchases.fast_pkgfn import Offers, SingleNodes

# Draws of the nodes' functions for the choice among many inputs.
COARSE_SAMPLES = 4
# Number of random candidates for each input of a node; of candidates that are kept; of generations of new candidates
# around those kept; and of new ones around each.
RANDOM_PER_INPUT, SURVIVORS, GENERATIONS, CHILDREN = 16, 6, 2, 6
# Parameters that are combined with each combination of parts in stock.
FILLINGS = 6
PERTURBATION = 0.05


class PKGFN(SingleNodes):
    """Knowledge gradient of single nodes, maximised over the inputs of each. Plays partial tasks.

    Args:
        fantasies: fantasies of a node's value, 1 to 4,096 (8 as in the published program).
        samples: draws of the nodes' functions in the knowledge gradient, 1 to 4,096.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    revision = 4

    def offers(self, node: str, proposal: np.ndarray, designs: Tensor) -> Offers:
        offers = self._first_offers(node, proposal, designs)
        if len(offers.points) <= 1:
            return offers
        # Few draws misjudge small gains, so the offers at the proposal and at the best parameters are not screened.
        unscreened = offers.at(np.arange(0 if self._needs_stock(node) else 2))
        gains = self.gains(node, offers, designs, COARSE_SAMPLES)
        for _ in range(GENERATIONS):
            fittest = offers.at(np.argsort(-gains)[:SURVIVORS])
            children = self._around(node, fittest)
            if not len(children.points):
                break
            offers = Offers(*(np.concatenate(pair) for pair in zip(fittest, children, strict=True)))
            gains = self.gains(node, offers, designs, COARSE_SAMPLES)
        survivors = offers.at(np.argsort(-gains)[:SURVIVORS])
        return Offers(*(np.concatenate(pair) for pair in zip(survivors, unscreened, strict=True)))

    def _needs_stock(self, node: str) -> bool:
        return bool(self.network.parents[node]) and not self.task.parts

    def _first_offers(self, node: str, proposal: np.ndarray, designs: Tensor) -> Offers:
        known = np.vstack([proposal, designs.cpu().numpy()])
        parents = self.network.parents[node]
        if self._needs_stock(node):
            count = FILLINGS if self.network.actions[node] else 1
            return self.offers_in_stock(node, np.vstack([known[:count], self.rng.random((count - 1, self._width))]))
        count = RANDOM_PER_INPUT * (len(parents) + len(self.network.actions[node]))
        points = np.vstack([known, self.rng.random((count, self._width))])
        if not parents:
            return Offers(points, np.empty((len(points), 0)))
        values = self.simulate_parents(node, points, int(self.rng.integers(2**31)))
        low, high = np.array([(i[0], i[1]) for i in (self.task.parts[parent] for parent in parents)]).T
        values[len(known) :] = self.rng.uniform(low, high, (count, len(parents)))
        return Offers(points, values)

    def _around(self, node: str, offers: Offers) -> Offers:
        """Return offers whose parameters of the node, and bought parts, are near those of others."""
        own = list(self.network.actions[node])
        if not own and not self.task.parts:
            return offers.at(np.arange(0))
        points, values = (np.repeat(array, CHILDREN, axis=0) for array in offers)
        moved = points[:, own] + PERTURBATION * self.rng.standard_normal((len(points), len(own)))
        points[:, own] = moved.clip(0.0, 1.0)
        if self.task.parts and values.shape[1]:
            low, high = np.array([(i[0], i[1]) for i in map(self.task.parts.get, self.network.parents[node]) if i]).T
            step = PERTURBATION * (high - low) * self.rng.standard_normal(values.shape)
            values = np.clip(values + step, low, high)
        return Offers(points, values)
