"""Constrained expected improvement without a graph (Gardner, Kusner, Xu, Weinberger & Cunningham 2014).

Independent GPs model the reward and every constrained node from the action alone; the action with the greatest
expected improvement over the best feasible one, times the probability of feasibility, is played. The causal diagram is
ignored: a baseline for methods that use it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from botorch.acquisition import GenericMCObjective, qLogExpectedImprovement
from torch import Tensor

from cbo_gym.agents.black_box.improvement import NodeImprovement
from cbo_gym.agents.common.feasibility import CAUTION, violations
from cbo_gym.task import Constraint


class ConstrainedEI(NodeImprovement):
    """Expected improvement times the probability of feasibility. Plays soft and hard tasks, without constraints too.

    Attributes:
        surrogates: the GPs of the reward, which comes first, and of the constrained nodes.
    """

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self._places = [self._modelled.index(one.node) for one in self.task.constraints]

    def modelled(self) -> list[str]:
        return list(dict.fromkeys([self.task.reward, *(one.node for one in self.task.constraints)]))

    def improvement(self, estimates: np.ndarray) -> qLogExpectedImprovement:
        feasible = self._violations(caution=0.0) == 0.0
        best = estimates[feasible].max() if feasible.any() else estimates.min()
        spreads = [max(float(self.surrogates[place].outputs.std(correction=0)), 1e-12) for place in self._places]
        limits: list[Callable[[Tensor], Tensor]] = [
            partial(_standardised, constraint=one, place=place, unit=unit)
            for one, place, unit in zip(self.task.constraints, self._places, spreads, strict=True)
        ]
        objective = GenericMCObjective(_first)
        return qLogExpectedImprovement(self.model, float(best), self.sampler, objective, constraints=limits or None)

    def reward_belief(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.surrogates[0].posterior(inputs)

    def estimated_rewards(self) -> np.ndarray:
        return self._at_data(0)[0].cpu().numpy()

    def estimated_violations(self) -> np.ndarray:
        return self._violations(CAUTION)

    def _violations(self, caution: float) -> np.ndarray:
        if not self.task.constraints:
            return np.zeros(len(self.history))
        mean, std = (torch.stack(part, -1) for part in zip(*map(self._at_data, self._places), strict=True))
        return violations(self.task.constraints, mean, std, caution).cpu().numpy()

    def _at_data(self, place: int) -> tuple[Tensor, Tensor]:
        surrogate = self.surrogates[place]
        with torch.no_grad():
            return surrogate.posterior(surrogate.inputs)


def _first(samples: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: N803  (BoTorch's name)
    return samples[..., 0]


def _standardised(samples: Tensor, constraint: Constraint, place: int, unit: float) -> Tensor:
    """A constraint as BoTorch takes it: samples ``... x m`` to numbers that are at most 0 where it is met."""
    return constraint.excess(samples[..., place]) / unit
