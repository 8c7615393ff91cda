"""CascadeEI: expected improvement of a cascade that may be stopped after each stage (Kusakawa et al. 2022).

A cascade is a chain of nodes, its stages. A *product* is the result of the first stages with some parameters. A round
compares a new product with all unfinished ones: for each, the expected improvement of the reward is maximised over the
parameters of the stages that remain, and divided by their prices. The next stage of the best product is bought. All
products are compared again in the next round, so one that came out badly is not continued.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.arguments import whole_number
from cbo_gym.agents.common.improvement import standard_improvement
from cbo_gym.agents.common.limits import MAX_SAMPLES
from cbo_gym.agents.purchases.base import PurchaseAgent
from cbo_gym.errors import UnsupportedModeError
from cbo_gym.task import Action

# Largest number of products that are compared, chosen at random if there are more.
MAX_PRODUCTS = 48
# Random parameters for each product, survivors of all, generations of parameters around these, and number around each.
FILLINGS, SURVIVORS, GENERATIONS, CHILDREN = 32, 8, 4, 12
# Standard deviation of the first generation about its parents; each later one has half of the one before.
RADIUS = 0.2


class Plans(NamedTuple):
    """Ways to finish products.

    Attributes:
        points: parameters of each of b plans, ``(b, q)``.
        is_fixed: whether each parameter is fixed, because a stage of the product was made with it, ``(b, q)``.
        known: values of the stages that the product has, NaN for the others, ``(b, n)``.
    """

    points: np.ndarray
    is_fixed: np.ndarray
    known: np.ndarray

    def at(self, rows: np.ndarray) -> Plans:
        return Plans(*(column[rows] for column in self))

    @classmethod
    def join(cls, parts: Sequence[Plans]) -> Plans:
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


class CascadeEI(PurchaseAgent):
    """Expected improvement of a cascade per price of the stages that remain, stage by stage. Plays partial tasks.

    Args:
        samples: number of draws of the stages before the last, 1 to 4,096 (1000 in the published program).
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    revision = 2

    def __init__(self, samples: int = 64, device: str = "cpu") -> None:
        super().__init__(device)
        self.samples = whole_number("samples", samples, at_least=1, at_most=MAX_SAMPLES)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        nodes = self.network.nodes
        chain = {node: (nodes[index - 1],) if index else () for index, node in enumerate(nodes)}
        is_chain = self.network.parents == chain and nodes == self.task.nodes
        if not is_chain or self.task.parts or self.task.composition is not None:
            raise UnsupportedModeError(
                f"CascadeEI plays chains of nodes with the upstream condition; {self.task.env_id} has "
                f"{self.task.diagram.to_dagitty()}; choose FastPKGFN, PKGFN, KGFN, TSFN or FullEIFN"
            )

    def choose(self, seed: int) -> Action:
        plans = self.first_plans()
        if plans is None:
            return self.buy(self.task.nodes[0], self.best())
        scores = self.scores(plans)
        for generation in range(GENERATIONS):
            fittest = np.argsort(-scores)[:SURVIVORS]
            parents = plans.at(np.repeat(fittest, CHILDREN))
            steps = RADIUS / 2**generation * self.rng.standard_normal(parents.points.shape)
            moved = np.where(parents.is_fixed, parents.points, (parents.points + steps).clip(0.0, 1.0))
            children = parents._replace(points=moved)
            plans = Plans.join([plans.at(fittest), children])
            scores = np.concatenate([scores[fittest], self.scores(children)])
        best = int(scores.argmax())
        return self.buy(self.next_node(plans.known[best]), plans.points[best])

    def first_plans(self) -> Plans | None:
        """Return plans for a new product and for those in stock, with random parameters and the best ones.

        Return None if the remaining budget pays for none of their next stages.
        """
        products = [np.full(self._dim, np.nan)]
        for index in range(len(self.task.nodes) - 1):
            products += list(self.stock.parameters_of(index))
        if len(products) > MAX_PRODUCTS:
            indices = self.rng.choice(np.arange(1, len(products)), MAX_PRODUCTS - 1, replace=False)
            products = [products[0], *(products[index] for index in indices)]
        plans = []
        for product in products:
            known = self.stock.values_at(product)
            is_finished = not np.isnan(known).any()
            if is_finished or self.price(self.next_node(known)) > self.remaining_budget:
                continue
            is_fixed = np.isfinite(product)
            points = np.vstack([self.best(), self.rng.random((FILLINGS, self._dim))])
            points[:, is_fixed] = product[is_fixed]
            plans.append(Plans(points, np.tile(is_fixed, (len(points), 1)), np.tile(known, (len(points), 1))))
        return Plans.join(plans) if plans else None

    def next_node(self, known: np.ndarray) -> str:
        """Return the next stage of a product, given the values of its stages, ``(n,)``."""
        return self.task.nodes[int(np.argmax(np.isnan(known)))]

    def scores(self, plans: Plans) -> np.ndarray:
        """Return the expected improvement of plans per price of the stages that remain, ``(b,)``."""
        prices = np.array([self.price(node) for node in self.task.nodes])
        remaining = np.where(np.isnan(plans.known), prices, 0.0).sum(-1)
        return self.expected_improvement(plans).cpu().numpy() / np.maximum(remaining, 1e-12)

    def expected_improvement(self, plans: Plans) -> Tensor:
        """Return the expected improvement on the best reward so far, exact in the last stage, ``(b,)``."""
        incumbent = max(past.reward for past in self.history)
        known = torch.from_numpy(plans.known).to(self.network.inputs)
        draw = self.sample_nodes(self.samples)

        def value(node: str, inputs: Tensor) -> Tensor:
            if node == self.task.reward:
                mean, std = self.network.surrogates[node].posterior(inputs)
                return std * standard_improvement((mean - incumbent) / std.clamp_min(1e-12))
            known_values = known[:, [self._index[node]]]
            return torch.where(known_values.isfinite(), known_values, draw(node, inputs))

        with torch.no_grad():
            points = torch.from_numpy(plans.points).to(self.network.inputs)
            return self.network.propagate(points, value)[self.task.reward].mean(-1)
