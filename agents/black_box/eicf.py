"""EICF: expected improvement for composite functions (Astudillo & Frazier 2019).

The reward is ``g(h(a))`` with a known ``g`` (``task.composition``) of nodes ``h`` that are unknown functions of the
action. Independent GPs model each node from the action; samples of their posteriors go through ``g``, and the action
with the highest Monte Carlo expected improvement of ``g(h(a))`` is played. The causal diagram is ignored.

Where the task has no composition the reward is modelled by a GP itself, and the method is plain Monte Carlo EI.

Departures:

* Improvement is over the best posterior mean of the objective among the actions played, not over the best reward
  seen, which noise would inflate; without noise the two agree.
* The logarithm of a smoothed EI is maximised (qLogEI, Ament et al. 2023), whose gradient does not vanish, with fixed
  Sobol samples in each round (Balandat et al. 2020); the paper ascends plain EI by stochastic gradients.
* Hyper-parameters are those of greatest posterior density under BoTorch's default priors; where the task says that a
  node is not noisy, no noise is learned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from botorch.acquisition import GenericMCObjective, qLogExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from cbo_gym.agent import Agent
from cbo_gym.agents.surrogates.gp import GaussianProcess, is_noiseless
from cbo_gym.agents.surrogates.independent import IndependentGPs
from cbo_gym.agents.toolbox.arguments import require_count
from cbo_gym.agents.toolbox.features import features_of
from cbo_gym.agents.toolbox.initial import few_observations
from cbo_gym.agents.toolbox.search import best_first, maximise
from cbo_gym.agents.toolbox.seeding import seeded_copy
from cbo_gym.task import Action, Info, Mode, Observation, Round, SoftTask


class EICF(Agent):
    """Monte Carlo expected improvement through the known composition of the reward. Plays soft and hard tasks.

    With ``task.composition`` a GP is fitted to every node but the reward; without it only to the reward, and then
    this is plain Monte Carlo expected improvement.

    Args:
        samples: Sobol samples of the posterior, at least 1.
        device: torch device.

    Attributes:
        features: of the task's actions, which the GPs take as inputs.
        surrogates: the GPs of the modelled nodes, each from the action.
        model: these GPs together, as BoTorch takes them.

    Raises:
        ArgumentError: if ``samples`` is out of range.
    """

    modes = frozenset({Mode.SOFT, Mode.HARD})

    def __init__(self, samples: int = 128, device: str = "cpu") -> None:
        require_count("samples", samples)
        self.samples = samples
        self.device = device

    def setup(self, seed: int) -> None:
        task = self.task
        self.features = features_of(task)
        self._composition = task.composition if isinstance(task, SoftTask) else None
        composite = self._composition is not None
        self._modelled = [node for node in task.nodes if (node != task.reward) == composite]
        self._columns = [task.nodes.index(node) for node in self._modelled]
        self.surrogates = [
            GaussianProcess(
                node,
                self.features.input_dim,
                noise_std=0.0 if is_noiseless(task, node) else None,
                device=self.device,
            )
            for node in self._modelled
        ]
        self.model = IndependentGPs(self.surrogates)
        self._objective = GenericMCObjective(self._compose)
        self._sampler = SobolQMCNormalSampler(torch.Size([self.samples]), seed=int(self.rng.integers(2**31)))

    def _compose(self, samples: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: N803
        """Samples of the nodes, ``... x m``, to those of the reward, ``...``."""
        if self._composition is None:
            return samples[..., 0]
        nodes = dict(zip(self._modelled, samples.unbind(-1), strict=True))
        return self._composition(nodes)

    def initial_rounds(self) -> Sequence[Round]:
        return few_observations(self.task)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        inputs = self.features.inputs(self.features.encode(action))
        for surrogate, column in zip(self.surrogates, self._columns, strict=True):
            surrogate.add(inputs, observation["nodes"][column])

    def act(self, observation: Observation) -> Action:
        seed = int(self.rng.integers(2**31))
        if not self.history:
            return seeded_copy(self.task.action_space, seed).sample()
        estimates = self.estimated_rewards()
        played = best_first(self.history, estimates)
        improvement = self.improvement_over(float(estimates.max()))
        return maximise(improvement, self.features, played, seed=seed, device=self.device)

    def improvement_over(self, incumbent: float) -> qLogExpectedImprovement:
        """The logarithm of the expected improvement over ``incumbent``: GP inputs ``b x 1 x d`` to values ``b``."""
        return qLogExpectedImprovement(self.model, incumbent, self._sampler, self._objective)

    def estimated_rewards(self) -> np.ndarray:
        with torch.no_grad():
            posterior = self.model.posterior(self.surrogates[0].inputs.unsqueeze(-2))
            rewards = self._objective(self._sampler(posterior))
        return rewards.mean(0).squeeze(-1).cpu().numpy()
