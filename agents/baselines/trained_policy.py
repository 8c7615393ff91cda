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

    The model must have been trained on environments of :class:`cbo_gym.integrations.sb3.VecEnv`. The agent plays every
    environment that has the same action and observation spaces, such as other instances and variations.

    Args:
        model: the trained model; only its policy is kept.
        deterministic: whether to play the policy's best action instead of drawing from its distribution.
    """

    modes = frozenset(Mode)
    takes_missing = True

    def __init__(self, model: BaseAlgorithm, deterministic: bool = True) -> None:
        saved = BytesIO()
        model.policy.save(saved)  # type: ignore[arg-type]
        # Bytes, because a sweep sends agents to processes and hashes them, and a policy's optimiser cannot be hashed.
        self._policy_class, self._saved, self._deterministic = type(model.policy), saved.getvalue(), deterministic

    def setup(self, seed: int) -> None:
        self._policy = self._policy_class.load(BytesIO(self._saved))  # type: ignore[arg-type]
        trained_space = self._policy.action_space
        choices = int(trained_space.n) if isinstance(trained_space, spaces.Discrete) else None
        self._actions = PolicyActions(self.task.codec, choices)
        observation_space: Any = self.task.observation_space
        for name, trained, expected in (
            ("actions", trained_space, self._actions.space),
            ("observations", self._policy.observation_space, observation_space),
        ):
            if trained != expected:
                raise ArgumentError(
                    f"the policy was trained on {name} in {trained}; those of {self.task.env_id} are in {expected}"
                )
        self._observation = {name: np.zeros(space.shape) for name, space in observation_space.items()}

    def set_context(self, context: np.ndarray) -> None:
        self._observation = {**self._observation, "context": context}

    def act(self, observation: Observation) -> Action:
        self._observation = dict(observation)
        return self.recommend()

    def recommend(self) -> Action:
        """Return the policy's action after the last observation, in the last context."""
        policy_action, _ = self._policy.predict(self._observation, deterministic=self._deterministic)
        return self._actions.to_action(policy_action)
