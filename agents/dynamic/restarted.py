"""CBO and GP-UCB restarted in each time slice, the baselines of Aglietti, Dhir, Gonzalez & Damoulas (2021), sec. 4.

Neither knows that slices follow on one another. CBO takes each for a problem by itself, with the observations of that
slice and the minimal intervention sets of its diagram; GP-UCB, in the place of the paper's BO, sets all variables, and
begins with nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from cbo_gym.agent import Agent
from cbo_gym.agents.black_box.gp_ucb import GPUCB
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.dynamic.slices import SliceAgent, SliceTask, sets_to_explore
from cbo_gym.agents.intervention_sets.cbo import CBO
from cbo_gym.agents.surrogates.causal.causal_prior import EffectModel, ObservationalModel
from cbo_gym.arguments import require_not_negative
from cbo_gym.task import Action, Observation, Round


class Restarted(SliceAgent):
    """An agent of hard tasks that begins afresh in each slice."""

    @abstractmethod
    def make(self) -> tuple[Agent, SliceTask]:
        """A new agent and the slice as it is to see it."""

    def begin(self) -> None:
        self._inner, self._within = self.make()
        self._inner.reset(self._within.task, int(self.rng.integers(2**31)))

    def explore(self) -> Action:
        return self._within.outward(self._inner.act({"nodes": np.zeros(len(self.task.nodes))}))

    def learn(self, past: Round) -> None:
        self._inner.update(*self._within.inward(past), {})

    def slice_estimates(self) -> np.ndarray:
        return self._inner.estimated_rewards()[-len(self.played) :]


class SliceCBO(CBO):
    """CBO that intervenes in every round, on every set that the task offers but the empty one. Plays hard tasks.

    It was given its observations beforehand. Before the first trial it improves on the best prior mean, later on the
    best posterior mean of the trials: observational rewards are of a past in which nothing was set.

    Args:
        model: what tells about the effects of interventions; None for what the observations of the slice tell.
        device: torch device.
    """

    def __init__(self, model: EffectModel | None = None, device: str = "cpu") -> None:
        # with so few trials a slice what is learned of one set would mislead about others
        super().__init__(in_common=False, device=device)
        self._given = model

    def make_model(self) -> EffectModel:
        # the observations are noisy, whatever the trials are
        return self._given or ObservationalModel(replace(self.task, noise=None), self.device)

    def choose_targets(self) -> list[frozenset[str]]:
        return [target for target in self.task.targets if target]

    def act(self, observation: Observation) -> Action:
        if not self.history:
            arm = self._explored[int(self.rng.integers(len(self._explored)))]
            return arm.action(self.rng.random(len(self.task.targets[arm.index])))
        best = self._best()
        found = [arm.maximise(best, self.rng) for arm in self._explored]
        return max(found, key=lambda pair: pair[1])[0]

    def _best(self) -> float:
        estimates = self.estimated_rewards()
        trials = estimates[self._initial :]
        return float(trials.max()) if len(trials) else max(float(arm.beliefs()[1].max()) for arm in self._explored)


class CBORestarted(Restarted):
    """CBO, restarted in each slice. Plays dynamic tasks.

    Args:
        device: torch device.
    """

    def __init__(self, device: str = "cpu") -> None:
        self.device = require_device(device)

    def make(self) -> tuple[Agent, SliceTask]:
        sets = sets_to_explore(self.task)
        return SliceCBO(device=self.device), SliceTask(self.task, sets, self.observed_rounds(self.slice))


class GPUCBRestarted(Restarted):
    """GP-UCB on all manipulable variables, restarted in each slice. Plays dynamic tasks.

    Args:
        beta: how many standard deviations above the posterior mean the bound lies; finite, at least 0.
        device: torch device.

    Raises:
        ArgumentError: if ``beta`` is out of range.
    """

    def __init__(self, beta: float = 0.5, device: str = "cpu") -> None:
        self.beta = require_not_negative("beta", beta)
        self.device = require_device(device)

    def make(self) -> tuple[Agent, SliceTask]:
        return GPUCB(self.beta, self.device), SliceTask(self.task, [frozenset(self.task.manipulable)])
