"""CBO and GP-UCB restarted in each time slice, the baselines of Aglietti, Dhir, Gonzalez & Damoulas (2021), sec. 4.

Both ignore earlier slices. CBO treats each slice as a problem by itself, with the observations of that slice and the
minimal intervention sets of its diagram. GP-UCB, in place of the paper's BO, sets all variables and uses no
observations.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from cbo_gym._util.arguments import require_not_negative
from cbo_gym.agent import Agent
from cbo_gym.agents.black_box.gp_ucb import GPUCB
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.dynamic.slices import SliceAgent, sets_to_explore, slice_view
from cbo_gym.agents.intervention_sets.causal_prior import EffectModel, ObservationalModel
from cbo_gym.agents.intervention_sets.cbo import CBO
from cbo_gym.agents.intervention_sets.hard_view import HardView
from cbo_gym.task import Action, Observation, Round


class Restarted(SliceAgent):
    """An agent of hard tasks that is restarted in each slice."""

    @abstractmethod
    def make(self) -> tuple[Agent, HardView]:
        """Make a new agent, and the slice as the hard task that it plays."""

    def begin(self) -> None:
        self._inner, self._view = self.make()
        self._inner.reset(self._view.task, int(self.rng.integers(2**31)))

    def explore(self) -> Action:
        return self._view.from_hard(self._inner.act({"nodes": np.zeros(len(self.task.nodes))}))

    def learn(self, past: Round) -> None:
        nodes = {"nodes": past.observation["nodes"]}
        self._inner.update(self._view.to_hard(past.action), nodes, past.reward, {})

    def slice_estimates(self) -> np.ndarray:
        return self._inner.estimated_rewards()[-len(self.slice_rounds) :]


class SliceCBO(CBO):
    """CBO that intervenes in every round, on any target set of the task but the empty one. Plays hard tasks.

    Improvement is measured from the best posterior mean of the trials, before the first trial from the best prior mean.
    The rewards of observations do not count.

    Args:
        effects: model of the effects of interventions; None for one that learns from the observations of the slice.
        device: torch device.
    """

    def __init__(self, effects: EffectModel | None = None, device: str = "cpu") -> None:
        # With so few trials per slice, errors of one set in a shared GP would affect the others.
        super().__init__(in_common=False, device=device)
        self._effect_model = effects

    def make_effects(self) -> EffectModel:
        # The observations are noisy, even if the trials are not.
        return self._effect_model or ObservationalModel(replace(self.task, noise=None), self.device)

    def choose_targets(self) -> list[frozenset[str]]:
        return [target for target in self.task.targets if target]

    def act(self, observation: Observation) -> Action:
        if not self.history:
            model = self._explored[int(self.rng.integers(len(self._explored)))]
            return model.action(self.rng.random(len(self.task.targets[model.index])))
        return self.improve(self._explored)

    def incumbent(self) -> float:
        trials = self.estimated_rewards()[self._initial :]
        if len(trials):
            return float(trials.max())
        return max(float(model.candidates()[1].max()) for model in self._explored)


class CBORestarted(Restarted):
    """CBO, restarted in each slice. Plays dynamic tasks.

    Args:
        device: torch device.
    """

    def __init__(self, device: str = "cpu") -> None:
        self.device = require_device(device)

    def make(self) -> tuple[Agent, HardView]:
        sets = sets_to_explore(self.task)
        return SliceCBO(device=self.device), slice_view(self.task, sets, self.observed_rounds(self.slice))


class GPUCBRestarted(Restarted):
    """GP-UCB on all manipulable variables, restarted in each slice. Plays dynamic tasks.

    Args:
        beta: width of the upper confidence bound in posterior standard deviations; finite, at least 0.
        device: torch device.

    Raises:
        ArgumentError: if ``beta`` is out of range.
    """

    def __init__(self, beta: float = 0.5, device: str = "cpu") -> None:
        self.beta = require_not_negative("beta", beta)
        self.device = require_device(device)

    def make(self) -> tuple[Agent, HardView]:
        return GPUCB(self.beta, self.device), slice_view(self.task, [frozenset(self.task.manipulable)])
