"""ArmAgent: the base class of the bandit algorithms, with the choice of arms and the estimates of their rewards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from cbo_gym._util.arguments import require_word
from cbo_gym.agent import Agent, UnsupportedModeError
from cbo_gym.agent_registry.zoo import name_of
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.scopes import is_minimal, pomis
from cbo_gym.task import Action, DiscreteTask, Info, Mode, Observation

Sets = Literal["all", "minimal", "possibly_optimal"]
SETS: tuple[Sets, ...] = ("all", "minimal", "possibly_optimal")


class ArmAgent(Agent):
    """Base class of methods that model each arm by its own rewards. Plays discrete tasks.

    Args:
        sets: the sets of variables whose arms are considered: "all"; the "minimal" intervention sets, in which every
            variable affects the reward given the others; or the "possibly_optimal" ones among these (POMIS).
            See Lee & Bareinboim (2018), Definitions 1 and 2.

    Attributes:
        considered: indices of the arms that the agent may play, in random order.
        counts: number of plays of each of the task's arms; a mean over n rounds counts as n plays.
        sums: sum of the rewards of each of the task's arms.

    Raises:
        ArgumentError: for another value of ``sets``; by :meth:`update` for a reward outside [0, 1].
        UnsupportedModeError: by :meth:`reset`, if a possibly optimal set that is to be considered has no arms.
    """

    modes = frozenset({Mode.DISCRETE})
    takes_missing = True
    takes_precision = True
    task: DiscreteTask
    considered: np.ndarray

    def __init__(self, sets: Sets = "all") -> None:
        self.sets: Sets = require_word("sets", sets, SETS)

    def setup(self, seed: int) -> None:
        self.counts = np.zeros(len(self.task.arms))
        self.sums = np.zeros(len(self.task.arms))
        self.considered = self.rng.permutation(arms_of(self.task, self.sets))

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        if not 0.0 <= reward <= 1.0:
            raise ArgumentError(f"{name_of(self)} needs rewards in [0, 1]; {self.task.env_id} gave {reward}")
        super().update(action, observation, reward, info)
        count = float(observation.get("count", 1.0))
        self.counts[int(action)] += count
        self.sums[int(action)] += count * reward

    def recommend(self) -> Action:
        """Return the considered arm with the highest estimate."""
        if not self.history:
            return super().recommend()
        return self.considered[np.argmax(self.means()[self.considered])]

    def means(self) -> np.ndarray:
        """Return estimates of every arm's expected reward: the mean with one success and one failure added."""
        return (self.sums + 1.0) / (self.counts + 2.0)

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return means and standard deviations of the arms' Beta posteriors, from uniform priors."""
        arms = np.array([int(action) for action in actions])
        mean = self.means()[arms]
        return mean, np.sqrt(mean * (1.0 - mean) / (self.counts[arms] + 3.0))

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> Mapping[str, np.ndarray] | None:
        """Draw expected rewards from the arms' Beta posteriors; return None with noise, which has no model."""
        if noise:
            return None
        arms = np.array([int(action) for action in actions])
        distinct, columns = np.unique(arms, return_inverse=True)
        successes, failures = self.sums[distinct] + 1.0, (self.counts - self.sums)[distinct] + 1.0
        draws = np.random.default_rng(seed).beta(successes, failures, (count, len(distinct)))
        return {self.task.reward: draws[:, columns]}

    def estimated_rewards(self) -> np.ndarray:
        return self.means()[[int(past.action) for past in self.history]]


def arms_of(task: DiscreteTask, sets: Sets) -> list[int]:
    """Return the indices of the task's arms on the ``sets`` of variables.

    Raises:
        UnsupportedModeError: if ``sets`` is "possibly_optimal" and a possibly optimal set has no arm.
    """
    targets = [frozenset(arm) for arm in task.arms]
    available = dict.fromkeys(targets)
    chosen: Iterable[frozenset[str]] = available
    if sets == "minimal":
        chosen = {target for target in available if is_minimal(task.diagram, task.reward, target)}
    if sets == "possibly_optimal":
        chosen = pomis(task.diagram, task.reward, frozenset[str]().union(*targets))
        if missing := [sorted(target) for target in chosen if target not in available]:
            example = min(missing)
            description = f"{len(example)} variables at once" if len(example) > 4 else f"{{{', '.join(example)}}}"
            raise UnsupportedModeError(
                f"{task.env_id} has no arms that set {description}, which may be optimal; add such arms, or choose an "
                "agent that plays all arms alike: UCB, TS or SuccessiveRejects"
            )
    return [index for index, target in enumerate(targets) if target in chosen]
