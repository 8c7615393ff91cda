"""Stable-Baselines3 on vector environments, in any mode: training, and trained policies as agents.

``VecEnv`` wraps one vector environment in the interface of Stable-Baselines3: flat actions, and the last observation of
an episode in ``info``. ``Policy`` plays a trained model in ``evaluate`` and ``sweep``. For a single environment use
``cbo_gym.envs.wrappers.FlattenAction`` or ``DiscreteAction``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from cbo_gym.actions.codec import Actions
from cbo_gym.actions.policies import PolicyActions
from cbo_gym.agent import UnsupportedModeError
from cbo_gym.agents.baselines.trained_policy import Policy as Policy
from cbo_gym.envs import CausalBanditVectorEnv
from cbo_gym.envs.making import env_spec
from cbo_gym.errors import ArgumentError, naming_the_extra
from cbo_gym.task import StepInfo

with naming_the_extra("cbo_gym.integrations.sb3", "sb3"):
    from stable_baselines3.common.vec_env import VecEnv as BaseVecEnv

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices


class VecEnv(BaseVecEnv):
    """Vector environment for models of ``stable_baselines3``: many experiments on one system, stepped together.

    Args:
        env_id: a registered environment, also with parameters: ``"CBO/BinaryTree-v0(depth=3)"``.
        num_envs: number of experiments, at least 1.
        discrete: number of evenly spread actions, for models with discrete actions such as DQN; None for the action
            space ``Box(-1, 1, (dim,))``, which PPO and SAC expect.
        seed: seed of the first reset; experiment ``i`` is seeded with ``seed + i``.
        parameters: keyword arguments of the environment, with ``render_mode="rgb_array"`` for ``render`` and the
            library's ``VecVideoRecorder``: a picture shows all experiments, side by side.

    Raises:
        ArgumentError: if ``num_envs`` is below 1 or ``discrete`` below 2.
        UnsupportedModeError: if the environment has several objectives.
        gymnasium.error.Error: for an unknown id.
    """

    def __init__(
        self, env_id: str, num_envs: int = 1, *, discrete: int | None = None, seed: int | None = None, **parameters: Any
    ) -> None:
        spec = env_spec(env_id, parameters)
        env = gym.make_vec(spec.name, num_envs=num_envs, vectorization_mode="vector_entry_point", **spec.keywords)
        assert isinstance(env, CausalBanditVectorEnv)
        if objectives := env.dynamics.problem.outcomes.objectives:
            raise UnsupportedModeError(
                f"Stable-Baselines3 maximises one reward; {env_id} has several objectives: "
                f"{', '.join(map(str, objectives))}"
            )
        self._env = env
        self._actions = PolicyActions(env.dynamics.codec, discrete)
        self.metadata = env.metadata
        super().__init__(num_envs, env.single_observation_space, self._actions.space)
        self._seed = seed
        # Actions that step_async received and step_wait has not yet played.
        self._pending: Actions = None

    def reset(self) -> dict[str, np.ndarray]:
        observation, _ = self._env.reset(seed=self._seed)
        # Later resets continue the random generators.
        self._seed = None
        return observation

    def to_action(self, chosen: np.ndarray) -> Actions:
        """Return the environment's action for a policy's choice, or for each of a batch of choices."""
        return self._actions.to_action(chosen)

    def step_async(self, actions: np.ndarray) -> None:
        self._pending = self.to_action(actions)

    def step_wait(self) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, list[StepInfo]]:
        observation, rewards, _, truncated, _ = self._env.step(self._pending)
        infos: list[StepInfo] = [{} for _ in range(self.num_envs)]
        # The experiments are truncated together, because all play the same round.
        if truncated.any():
            for index, info in enumerate(infos):
                info["terminal_observation"] = {key: value[index] for key, value in observation.items()}
                info["TimeLimit.truncated"] = True
            observation = self.reset()
        return observation, rewards, truncated, infos

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._seed = seed
        return [None if seed is None else seed + index for index in range(self.num_envs)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return a picture of the last round of each experiment, for ``render``.

        Raises:
            ArgumentError: unless the render mode is ``"rgb_array"``.
        """
        if self.render_mode != "rgb_array":
            raise ArgumentError(f"pictures need VecEnv(..., render_mode='rgb_array'); it is {self.render_mode!r}")
        return self._env.render()  # type: ignore[return-value]

    def close(self) -> None:
        self._env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(self._env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: object, indices: VecEnvIndices = None) -> None:
        raise NotImplementedError("the experiments share one system; make another environment to change it")

    def env_method(
        self, method_name: str, *method_args: object, indices: VecEnvIndices = None, **method_kwargs: object
    ) -> list[Any]:
        raise NotImplementedError("the experiments are stepped together and have no separate methods")

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
