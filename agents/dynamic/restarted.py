"""CBO and GP-UCB restarted in each time slice, the baselines of Aglietti, Dhir, Gonzalez & Damoulas (2021), sec. 4.

Neither knows that slices follow on one another. CBO takes each for a problem by itself, with the observations of that
slice and the minimal intervention sets of its diagram; GP-UCB, in the place of the paper's BO, sets all variables, and
begins with nothing.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from cbo_gym.agent import Agent
from cbo_gym.agents.black_box.gp_ucb import GPUCB
from cbo_gym.agents.dynamic.slice_cbo import SliceCBO
from cbo_gym.agents.dynamic.slices import SliceAgent, SliceTask, sets_to_explore
from cbo_gym.agents.toolbox.limits import require_device
from cbo_gym.arguments import require_not_negative
from cbo_gym.task import Action, Round


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


class CBORestarted(Restarted):
    """CBO, restarted in each slice. Plays dynamic tasks.

    Args:
        device: torch device.
    """

    def __init__(self, device: str = "cpu") -> None:
        require_device(device)
        self.device = device

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
        require_not_negative("beta", beta)
        require_device(device)
        self.beta = beta
        self.device = device

    def make(self) -> tuple[Agent, SliceTask]:
        return GPUCB(self.beta, self.device), SliceTask(self.task, [frozenset(self.task.manipulable)])
