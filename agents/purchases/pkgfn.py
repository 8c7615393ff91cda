"""PKGFN: knowledge gradient of single nodes at the best inputs of each (Buathong et al. 2024).

For each node the knowledge gradient per price is maximised over its own parameters and the values of its parents. These
are values in stock, or, if parts can be bought, any values. The best of all nodes is bought.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from cbo_gym.agents.purchases.fast_pkgfn import Offers, SingleNodes

# Number of draws of the nodes' functions while there are many offers.
COARSE_SAMPLES = 4
# Random offers for each input of a node, survivors, generations of offers around them, and number around each.
RANDOM_PER_INPUT, SURVIVORS, GENERATIONS, CHILDREN = 16, 6, 2, 6
# Number of parameters that are combined with each combination of parents in stock.
FILLINGS = 6
# Standard deviation of new offers about a survivor, in units of the ranges.
PERTURBATION = 0.05


class PKGFN(SingleNodes):
    """Knowledge gradient of single nodes, maximised over the inputs of each. Plays partial tasks.

    Args:
        fantasies: number of fantasies of a node's value, 1 to 4,096 (8 as in the published program).
        samples: number of draws of the nodes' functions in the knowledge gradient, 1 to 4,096.
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
            offers = Offers.join([fittest, children])
            gains = self.gains(node, offers, designs, COARSE_SAMPLES)
        return Offers.join([offers.at(np.argsort(-gains)[:SURVIVORS]), unscreened])

    def _needs_stock(self, node: str) -> bool:
        return bool(self.network.parents[node]) and not self.task.parts

    def _first_offers(self, node: str, proposal: np.ndarray, designs: Tensor) -> Offers:
        promising = np.vstack([proposal, designs.cpu().numpy()])
        parents = self.network.parents[node]
        if self._needs_stock(node):
            count = FILLINGS if self.network.actions[node] else 1
            return self.offers_in_stock(node, np.vstack([promising[:count], self.rng.random((count - 1, self._dim))]))
        count = RANDOM_PER_INPUT * (len(parents) + len(self.network.actions[node]))
        points = np.vstack([promising, self.rng.random((count, self._dim))])
        if not parents:
            return Offers(points, np.empty((len(points), 0)))
        values = self.simulate_parents(node, points, int(self.rng.integers(2**31)))
        values[len(promising) :] = self.rng.uniform(*self.ranges_of_parents(node), (count, len(parents)))
        return Offers(points, values)

    def _around(self, node: str, offers: Offers) -> Offers:
        """Return new offers near others, with changes in the parameters of the node and in bought parts."""
        parameters = list(self.network.actions[node])
        if not parameters and not self.task.parts:
            return offers.at(np.arange(0))
        points, values = (np.repeat(array, CHILDREN, axis=0) for array in offers)
        moved = points[:, parameters] + PERTURBATION * self.rng.standard_normal((len(points), len(parameters)))
        points[:, parameters] = moved.clip(0.0, 1.0)
        if self.task.parts and values.shape[1]:
            low, high = self.ranges_of_parents(node)
            step = PERTURBATION * (high - low) * self.rng.standard_normal(values.shape)
            values = np.clip(values + step, low, high)
        return Offers(points, values)
