"""A trained model of Stable-Baselines3 as an agent, imported from :mod:`cbo_gym.integrations.sb3`."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from cbo_gym.actions.policies import PolicyActions
from cbo_gym.agent import Agent
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Action, Mode, Observation

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm


class Policy(Agent):
    """A trained model of Stable-Baselines3 as an agent, which plays the model's actions and learns nothing more.

    It plays any environment with the spaces of the one that the model was trained on with
    :class:`cbo_gym.integrations.sb3.VecEnv`, whose instances and variations may differ.

    Args:
        model: the model, of which the policy is kept.
        deterministic: whether to play the policy's best action instead of drawing from its distribution.
    """

    modes = frozenset(Mode)
    takes_missing = True

    def __init__(self, model: BaseAlgorithm, deterministic: bool = True) -> None:
        saved = BytesIO()
        model.policy.save(saved)  # type: ignore[arg-type]
        # Bytes, because a sweep sends and hashes agents, and the optimiser in a policy can be hashed by no library.
        self._kind, self._saved, self._deterministic = type(model.policy), saved.getvalue(), deterministic

    def setup(self, seed: int) -> None:
        self._policy = self._kind.load(BytesIO(self._saved))  # type: ignore[arg-type]
        chosen = self._policy.action_space
        self._actions = PolicyActions(self.task.codec, int(chosen.n) if isinstance(chosen, spaces.Discrete) else None)
        observed: Any = self.task.observation_space
        for name, trained, expected in (
            ("actions", chosen, self._actions.space),
            ("observations", self._policy.observation_space, observed),
        ):
            if trained != expected:
                raise ArgumentError(
                    f"the policy was trained on {name} in {trained}; those of {self.task.env_id} are in {expected}"
                )
        self._last = {name: np.zeros(space.shape) for name, space in observed.items()}

    def set_context(self, context: np.ndarray) -> None:
        self._last = {**self._last, "context": context}

    def act(self, observation: Observation) -> Action:
        self._last = dict(observation)
        return self.recommend()

    def recommend(self) -> Action:
        """Return the policy's action after the last observation, in the context that is known."""
        chosen, _ = self._policy.predict(self._last, deterministic=self._deterministic)
        return self._actions.to_action(chosen)
