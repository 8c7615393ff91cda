"""Constrained expected improvement without a graph (Gardner, Kusner, Xu, Weinberger & Cunningham 2014).

Independent GPs map the action to the reward and to every constrained node. A round plays the action with the greatest
expected improvement over the best feasible one, times the probability of feasibility. The causal diagram is ignored.
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
    """Expected improvement times the probability of feasibility. Plays soft and hard tasks, constrained or not.

    Attributes:
        surrogates: the GPs of the reward, which comes first, and of the constrained nodes.
    """

    takes_kinds = True
    takes_limits = True

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self._indices = [self._modelled.index(constraint.node) for constraint in self.task.constraints]

    def modelled_nodes(self) -> list[str]:
        return list(dict.fromkeys([self.task.reward, *(constraint.node for constraint in self.task.constraints)]))

    def improvement(self, estimates: np.ndarray) -> qLogExpectedImprovement:
        feasible = self._violations(caution=0.0) == 0.0
        best = estimates[feasible].max() if feasible.any() else estimates.min()
        units = [_unit(self.surrogates[index].outputs) for index in self._indices]
        limits: list[Callable[[Tensor], Tensor]] = [
            partial(_standardise, constraint=constraint, index=index, unit=unit)
            for constraint, index, unit in zip(self.task.constraints, self._indices, units, strict=True)
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
        mean, std = (torch.stack(moments, -1) for moments in zip(*map(self._at_data, self._indices), strict=True))
        return violations(self.task.constraints, mean, std, caution).cpu().numpy()

    def _at_data(self, index: int) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return self.surrogates[index].posterior(self.inputs)


def _unit(outputs: Tensor) -> float:
    return max(float(outputs.std(correction=0)), 1e-12) if len(outputs) else 1.0


def _first(samples: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: N803  (BoTorch's name)
    return samples[..., 0]


def _standardise(samples: Tensor, constraint: Constraint, index: int, unit: float) -> Tensor:
    """Return a constraint for BoTorch: samples ``... x m`` to values that are at most 0 if it is met."""
    return constraint.excess(samples[..., index]) / unit
