"""Constrained expected improvement without a graph (Gardner, Kusner, Xu, Weinberger & Cunningham 2014).

Independent GPs map the action to the reward and to every constrained node. A round plays the action with the greatest
expected improvement over the best feasible one, times the probability of feasibility. The causal diagram is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from botorch.acquisition import GenericMCObjective, qLogExpectedImprovement
from torch import Tensor

from cbo_gym.agents.black_box.improvement import NodeImprovement
from cbo_gym.agents.calibration.safe_play import SafePlay, safety_arguments
from cbo_gym.agents.common.feasibility import CAUTION, violations
from cbo_gym.task import Action, Constraint, HardTask


class ConstrainedEI(NodeImprovement):
    """Expected improvement times the probability of feasibility. Plays soft and hard tasks, constrained or not.

    Args:
        samples: number of Sobol samples of the posterior, 1 to 4,096.
        device: torch device.
        safety: largest probability, by the model, that any round misses a constraint of the task; only actions that
            the model certifies are then played. None to play actions that are merely likely to be feasible.
        safe_start: with ``safety``, an action that meets the constraints, as variable -> value in native units; None if
            the initial data suffice to certify one.

    Attributes:
        surrogates: the GPs of the reward, which comes first, and of the constrained nodes.
        safe_play: the choice among certified actions; None without ``safety``.
    """

    takes_mixed_domains = True
    takes_limits = True

    def __init__(
        self,
        samples: int = 128,
        device: str = "cpu",
        safety: float | None = None,
        safe_start: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(samples, device)
        self.safety, self.safe_start = safety_arguments(safety, safe_start)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self.safe_play: SafePlay | None = None
        if self.safety is not None:
            self.safe_play = SafePlay(self.task, self.features, self.safety, self.safe_start, self.device)
        # Index of each constraint's surrogate.
        self._constrained = [self._modelled.index(constraint.node) for constraint in self.task.constraints]

    def first(self, seed: int) -> Action:
        return super().first(seed) if self.safe_play is None else self.safe_play.first()

    def search(self, seed: int) -> Action:
        if self.safe_play is None:
            return super().search(seed)
        return self.safe_play.choose(self, self.improvement(self.estimated_rewards()), self.features, seed)

    def constrained_posterior(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        means, stds = [], []
        for constraint, index in zip(self.task.constraints, self._constrained, strict=True):
            mean, std = self.surrogates[index].posterior(inputs)
            if (set_value := self._set_value(constraint, inputs)) is not None:
                is_set, value = set_value
                mean, std = value.where(is_set, mean), std.where(~is_set, 0.0)
            means.append(mean)
            stds.append(std)
        return torch.stack(means, -1), torch.stack(stds, -1)

    def max_relative_std(self, inputs: Tensor) -> Tensor:
        _, stds = self.constrained_posterior(inputs)
        gps: list[Any] = [self.surrogates[index] for index in self._constrained]
        return (stds / torch.stack([gp.prior_std(inputs) for gp in gps], -1)).amax(-1)

    def _set_value(self, constraint: Constraint, inputs: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return whether actions set the constrained node, and to which value, ``(b,)`` each; None if none can."""
        names = list(self.task.manipulable) if isinstance(self.task, HardTask) else []
        if constraint.node not in names:
            return None
        index = names.index(constraint.node)
        value = self.task.codec.domains.scales[index].to_native(inputs[:, index])
        return inputs[:, len(names) + index] > 0.5, value

    def constrained_gps(self) -> list[list[Any]]:
        return [[self.surrogates[index]] for index in self._constrained]

    def modelled_nodes(self) -> list[str]:
        return list(dict.fromkeys([self.task.reward, *(constraint.node for constraint in self.task.constraints)]))

    def improvement(self, estimates: np.ndarray) -> qLogExpectedImprovement:
        is_feasible = self._violations(caution=0.0) == 0.0
        best = estimates[is_feasible].max() if is_feasible.any() else estimates.min()
        constraints: list[Callable[[Tensor], Tensor]] = [
            partial(_standardise, constraint=constraint, index=index, std=_output_std(self.surrogates[index].outputs))
            for constraint, index in zip(self.task.constraints, self._constrained, strict=True)
        ]
        objective = GenericMCObjective(_reward_samples)
        return qLogExpectedImprovement(
            self.model, float(best), self.sampler, objective, constraints=constraints or None
        )

    def reward_posterior_at(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.surrogates[0].posterior(inputs)

    def estimated_rewards(self) -> np.ndarray:
        return self._posterior_at_data(0)[0].cpu().numpy()

    def estimated_violations(self) -> np.ndarray:
        return self._violations(CAUTION)

    def _violations(self, caution: float) -> np.ndarray:
        if not self.task.constraints:
            return np.zeros(len(self.history))
        means, stds = zip(*map(self._posterior_at_data, self._constrained), strict=True)
        mean, std = torch.stack(means, -1), torch.stack(stds, -1)
        return violations(self.task.constraints, mean, std, caution).cpu().numpy()

    def _posterior_at_data(self, index: int) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return self.surrogates[index].posterior(self.inputs)


def _output_std(outputs: Tensor) -> float:
    """Return the standard deviation of a GP's data, positive; 1 without data."""
    return max(float(outputs.std(correction=0)), 1e-12) if len(outputs) else 1.0


def _reward_samples(samples: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: N803  (BoTorch's name)
    return samples[..., 0]


def _standardise(samples: Tensor, constraint: Constraint, index: int, std: float) -> Tensor:
    """Return standardised values of a constraint, which are at most 0 if it is met, from samples ``... x m``."""
    return constraint.excess(samples[..., index]) / std
