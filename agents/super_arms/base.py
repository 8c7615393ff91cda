"""SuperArmAgent: the base class of the agents of masked mode that score every super arm.

In masked mode an action is a *super arm*, a set of at most s of the N *base arms*. A selected base arm adds its random
signal to its node; the signals of the others are masked, that is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cbo_gym.actions.spaces import SuperArmSpace
from cbo_gym.agent import Agent, UnsupportedModeError
from cbo_gym.agent_registry.zoo import name_of
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.values import Composition
from cbo_gym.task import Action, Info, MaskedTask, Mode, Observation

# Largest number of super arms; a table with a row for each then takes a gigabyte.
MAX_SUPER_ARMS = 200_000


def require_separable(task: MaskedTask, agent: str) -> None:
    """Raise UnsupportedModeError unless a task is a separable SEM whose signals are masked."""
    if not task.components:
        raise UnsupportedModeError(
            f"{agent} needs a separable system of structural equations with known component functions; "
            f"{task.env_id} has none"
        )
    if task.reward in task.action_nodes:
        raise UnsupportedModeError(f"{agent} masks exogenous signals; in {task.env_id} the mask is on the nodes")


def payoff_of(task: MaskedTask) -> Callable[[np.ndarray], np.ndarray]:
    """Return h of a separable task, a function from nodes ``(..., N)`` to payoffs ``(...)``."""
    assert task.composition is not None
    return partial(_compose, task.composition, task.nodes[:-1])


def _compose(composition: Composition, names: Sequence[str], nodes: np.ndarray) -> np.ndarray:
    return np.asarray(composition({name: nodes[..., i] for i, name in enumerate(names)}))


class SuperArmAgent(Agent):
    """Base class of the agents that score every super arm.

    Attributes:
        super_arms: all super arms, entries 0 or 1, shape ``(A, N)``.
        limit: s, the largest number of base arms in a super arm.
        played: row in ``super_arms`` of the action of every round of ``history``.
    """

    modes = frozenset({Mode.MASKED})
    task: MaskedTask

    super_arms: np.ndarray
    limit: int
    played: list[int]

    def setup(self, seed: int) -> None:
        space = self.task.action_space
        assert isinstance(space, SuperArmSpace)
        if space.count > MAX_SUPER_ARMS:
            raise ArgumentError(
                f"{space.arms} base arms with at most {space.size} at a time give {space.count} super arms; "
                f"{name_of(self)} scores every one and takes at most {MAX_SUPER_ARMS}: lower super_arm_size"
            )
        self.super_arms, self.limit = space.all(), space.size
        self._row_of = {arm.tobytes(): row for row, arm in enumerate(self.super_arms)}
        self.played = []

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        self.played.append(self._row_of[np.asarray(action, dtype=self.super_arms.dtype).tobytes()])

    def best(self, scores: np.ndarray) -> Action:
        """Return the super arm with the highest of the ``scores`` ``(A,)``; ties are broken at random."""
        return self.super_arms[self.rng.choice(np.flatnonzero(scores == scores.max()))].copy()

    def rarest_super_arm(self, counts: np.ndarray) -> Action:
        """Return the super arm of the s base arms with the lowest ``counts`` ``(N,)``; ties are broken at random."""
        order = np.lexsort((self.rng.random(len(counts)), counts))
        super_arm = np.zeros(len(counts), dtype=self.super_arms.dtype)
        super_arm[order[: self.limit]] = 1
        return super_arm
