"""GP-UCB (Srinivas, Krause, Kakade & Seeger 2010), the baseline of Sussex, Makarova & Krause (2023), sec. 5.

One GP maps the action to the reward; every round plays the action with the highest ``mean + beta * std``. The causal
diagram and the observations of the other nodes are ignored. In contextual mode the context is a further input, as in
CGP-UCB (Krause & Ong 2011).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.arguments import require_not_negative
from cbo_gym.agents.calibration.data_noise import add_measured, is_noiseless, standard_error
from cbo_gym.agents.calibration.forecast import ForecastsByNode
from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.common.initial import SearchAgent
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.common.search import best_first, maximise
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.protocols import MakeSurrogate, Surrogate
from cbo_gym.task import Action, ContextualTask, Info, Mode, Observation


class GPUCB(ForecastsByNode, SearchAgent):
    """Upper confidence bound on one GP from action to reward. Plays soft, hard, contextual and adversarial tasks.

    Args:
        beta: distance of the bound from the posterior mean in standard deviations; finite, at least 0. A small value
            may keep the agent at the first pronounced local optimum, as on Dropwave; a large value costs reward in
            tasks with many variables, as on Rosenbrock.
        device: torch device.

    Attributes:
        features: features of the task's actions. The inputs of the GP are these features, then the context.
        make_surrogate: factory of the surrogate.
        surrogate: the GP from the action to the reward.

    Raises:
        ArgumentError: if ``beta`` is out of range.
    """

    modes = frozenset({Mode.SOFT, Mode.HARD, Mode.CONTEXTUAL, Mode.ADVERSARIAL})
    takes_missing = True
    takes_precision = True
    takes_mixed_domains = True
    takes_limits = True

    make_surrogate: ClassVar[MakeSurrogate] = GaussianProcess

    def __init__(self, beta: float = 2.0, device: str = "cpu") -> None:
        self.beta = require_not_negative("beta", beta)
        self.device = require_device(device)

    def setup(self, seed: int) -> None:
        self.features = features_of(self.task)
        dim = self.features.input_dim
        self._contexts = self.task.contexts if isinstance(self.task, ContextualTask) else ()
        noiseless = not self._contexts and is_noiseless(self.task, self.task.reward)
        # Surrogates need not accept the keyword if there are no categories.
        keywords: dict[str, Any] = {"categories": categories} if (categories := self.features.categories) else {}
        self.surrogate = self.make_surrogate(
            self.task.reward,
            dim + len(self._contexts),
            noise_std=0.0 if noiseless else None,
            # Contexts are in native units, actions in [0, 1].
            rescale=range(dim, dim + len(self._contexts)),
            device=self.device,
            **keywords,
        )
        self._context = torch.zeros(len(self._contexts), dtype=torch.float64, device=self.device)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        inputs = self.features.of_actions([action])[0].to(self.device)
        add_measured(self.surrogate, self._with_context(inputs).cpu(), reward, standard_error(observation, -1))
        if self._contexts:
            self.set_context(observation["context"])

    def act(self, observation: Observation) -> Action:
        if self._contexts:
            self.set_context(observation["context"])
        return super().act(observation)

    def search(self, seed: int) -> Action:
        played = best_first(self.history, self.estimated_rewards())
        return maximise(self.upper_bound, self.features, played, seed=seed, device=self.device)

    def set_context(self, context: np.ndarray) -> None:
        self._context = torch.tensor(context).to(self._context)

    def _with_context(self, inputs: Tensor) -> Tensor:
        if not self._contexts:
            return inputs
        return torch.cat([inputs, self._context.expand(*inputs.shape[:-1], -1)], -1)

    def upper_bound(self, inputs: Tensor) -> Tensor:
        """Return upper confidence bounds in the last context, shape ``b``, at the features ``b x 1 x d`` of actions."""
        return self.surrogate.bound(self._with_context(inputs), self.beta).squeeze(-1)

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        inputs = self.features.of_actions([action])[0].to(self.device)
        with torch.no_grad():
            return {self.task.reward: float(self.surrogate.mean(self._with_context(inputs)[None])[0])}

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad():
            mean, std = self.surrogate.posterior(self.forecast_inputs(actions))
        return mean.cpu().numpy(), std.cpu().numpy()

    def forecast_inputs(self, actions: Sequence[Action]) -> Tensor:
        return self._with_context(super().forecast_inputs(actions))

    def surrogates_by_node(self) -> Mapping[str, Surrogate]:
        return {self.task.reward: self.surrogate}

    def estimated_rewards(self) -> np.ndarray:
        """Return posterior means of the rewards of the actions played; for a contextual task, in the last context."""
        inputs = self.surrogate.inputs[:, : self.features.input_dim]
        with torch.no_grad():
            return self.surrogate.bound(self._with_context(inputs), 0.0).cpu().numpy()
