"""EICF: expected improvement for composite functions (Astudillo & Frazier 2019).

The reward of an action ``a`` is ``g(h(a))``: a known function ``g`` (``task.composition``) of the other nodes, whose
values ``h(a)`` are unknown functions of the action. Independent GPs map the action to each node. A round plays the
action with the highest Monte Carlo expected improvement of ``g(h(a))`` under their posteriors. The causal diagram is
ignored.

Without a composition, a GP models the reward itself, and the method is plain Monte Carlo EI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from botorch.acquisition import GenericMCObjective, qLogExpectedImprovement
from torch import Tensor

from cbo_gym.agents.black_box.improvement import NodeImprovement
from cbo_gym.task import Action, SoftTask


class EICF(NodeImprovement):
    """Monte Carlo expected improvement through the known composition of the reward. Plays soft and hard tasks.

    With ``task.composition`` a GP is fitted to every node but the reward, without it only to the reward.
    """

    def setup(self, seed: int) -> None:
        self._composition = self.task.composition if isinstance(self.task, SoftTask) else None
        self._objective = GenericMCObjective(self._compose)
        super().setup(seed)

    def modelled_nodes(self) -> list[str]:
        reward = self.task.reward
        return [reward] if self._composition is None else [node for node in self.task.nodes if node != reward]

    def _compose(self, samples: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: N803
        if self._composition is None:
            return samples[..., 0]
        nodes = dict(zip(self._modelled, samples.unbind(-1), strict=True))
        return self._composition(nodes)

    def improvement(self, estimates: np.ndarray) -> qLogExpectedImprovement:
        return self.improvement_over(float(estimates.max()))

    def improvement_over(self, incumbent: float) -> qLogExpectedImprovement:
        """Return the log expected improvement over ``incumbent``: GP inputs ``b x 1 x d`` to values ``b``."""
        return qLogExpectedImprovement(self.model, incumbent, self.sampler, self._objective)

    def reward_posterior_at(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        rewards = self._objective(self.sampler(self.model.posterior(inputs.unsqueeze(-2)))).squeeze(-1)
        return rewards.mean(0), rewards.std(0, correction=0)

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> Mapping[str, np.ndarray] | None:
        nodes = super().sample_outcomes(actions, count, seed, noise=noise)
        if nodes is None or self._composition is None:
            return nodes
        samples = torch.stack([torch.from_numpy(nodes[name]) for name in self._modelled], -1)
        return {**nodes, self.task.reward: self._compose(samples).numpy()}

    def estimated_rewards(self) -> np.ndarray:
        with torch.no_grad():
            return self.reward_posterior_at(self.inputs)[0].cpu().numpy()
