"""StableBaselines3: PPO, SAC, DQN and the other algorithms of that library behind the Agent interface.

Raffin, Hill, Gleave, Kanervisto, Ernestus & Dormann (2021), Stable-Baselines3: reliable reinforcement learning
implementations. Needs the extra ``sb3``. These algorithms run the loop over rounds themselves, but an agent must return
from ``act``. So the algorithm learns in a separate thread, on an environment whose ``step`` passes the action to the
agent and waits for the outcome.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces

from cbo_gym._util.arguments import require_word, whole_number
from cbo_gym.actions import Space
from cbo_gym.actions.policies import MAX_CHOICES, PolicyActions
from cbo_gym.agent import Agent
from cbo_gym.agents.common.limits import require_device
from cbo_gym.errors import naming_the_extra
from cbo_gym.task import Action, Info, Mode, Observation, StepInfo

#: Defaults for experiments of a few hundred rounds.
SHORT_RUN: dict[str, dict[str, Any]] = {
    "PPO": {"n_steps": 10, "batch_size": 10, "learning_rate": 3e-3},
    "A2C": {"n_steps": 5},
    "SAC": {"learning_starts": 10, "learning_rate": 3e-3},
    "TD3": {"learning_starts": 10},
    "DDPG": {"learning_starts": 10},
    "DQN": {
        "learning_rate": 3e-3, "learning_starts": 10, "target_update_interval": 10, "exploration_fraction": 0.3,
        "train_freq": 1,
    },
}  # fmt: skip


class _StopLearningError(Exception):
    """Raised in the learning thread to end it."""


class _Outcome(NamedTuple):
    """The reward of a round, and the context of the next."""

    context: np.ndarray
    reward: float


class _QueueEnv(gym.Env[np.ndarray, Action]):
    """The environment of the algorithm, which exchanges actions and outcomes with the agent through queues.

    The agent sets the observation space once it knows the size of a context.
    """

    def __init__(self, action_space: Space) -> None:
        # The algorithm's actions, or the error that ended it; and their outcomes, or None to stop the thread.
        self.actions: SimpleQueue[np.ndarray | BaseException] = SimpleQueue()
        self.outcomes: SimpleQueue[_Outcome | None] = SimpleQueue()
        self.action_space = action_space

    def wait_for_outcome(self) -> _Outcome:
        outcome = self.outcomes.get()
        if outcome is None:
            raise _StopLearningError
        return outcome

    def reset(self, *, seed: int | None = None, options: StepInfo | None = None) -> tuple[np.ndarray, StepInfo]:
        return self.wait_for_outcome().context, {}

    def step(self, action: Action) -> tuple[np.ndarray, float, bool, bool, StepInfo]:
        self.actions.put(action)
        context, reward = self.wait_for_outcome()
        return context, reward, False, False, {}


class StableBaselines3(Agent):
    """An algorithm of Stable-Baselines3, PPO by default, that learns while it plays. Plays every mode.

    Args:
        algorithm: name of the algorithm's class: ``"PPO"``, ``"SAC"``, ``"DQN"``, ``"A2C"``, ``"TD3"``, ``"DDPG"``.
        actions: number of evenly spread actions among which DQN chooses, 2 to 65,536; ignored by the others.
        device: torch device.
        parameters: keyword arguments of the algorithm, which override the defaults of this module.

    Raises:
        ArgumentError: for an unknown algorithm, or if an argument is out of range.
        MissingExtraError: if Stable-Baselines3 is not installed.
    """

    modes = frozenset(Mode)
    takes_missing = True

    def __init__(self, algorithm: str = "PPO", actions: int = 64, device: str = "cpu", **parameters: Any) -> None:
        require_word("algorithm", algorithm, SHORT_RUN)
        count = whole_number("actions", actions, at_least=2, at_most=MAX_CHOICES)
        require_device(device)
        with naming_the_extra("the agent StableBaselines3"):
            # Imported here, because the other agents do not need it.
            import stable_baselines3

        self._algorithm = getattr(stable_baselines3, algorithm)
        self._parameters = {"gamma": 0.0, "device": device, **SHORT_RUN[algorithm], **parameters}
        self._count = count if algorithm == "DQN" else None

    def setup(self, seed: int) -> None:
        self._stop()
        self._actions = PolicyActions(self.task.codec, self._count)
        self._env = _QueueEnv(self._actions.space)
        self._thread: Thread | None = None
        self._learner_seed = seed % 2**31
        self._randomness = _global_randomness()
        # Outcome of the last round, until act passes it to the algorithm.
        self._unsent: _Outcome | None = None

    def act(self, observation: Observation) -> Action:
        # The first outcome answers reset, which takes no reward.
        outcome = self._unsent or _Outcome(_context(observation), 0.0)
        self._unsent = None
        with self._agent_randomness():
            if self._thread is None:
                self._env.observation_space = spaces.Box(-np.inf, np.inf, outcome.context.shape, dtype=np.float64)
                parameters = {"seed": self._learner_seed, **self._parameters}
                # The thread holds no reference to the agent, so that __del__ of a dropped agent can stop the thread.
                arguments = (self._env, self._algorithm, parameters, self.task.horizon)
                self._thread = Thread(target=_learn, args=arguments, daemon=True)
                self._thread.start()
            self._env.outcomes.put(outcome)
            action_or_error = self._env.actions.get()
        if isinstance(action_or_error, BaseException):
            raise action_or_error
        return self._actions.to_action(action_or_error)

    def act_given_pending(
        self, observation: Observation, pending: Any, count: int = 1, contexts: Any = None, measured: Any = None
    ) -> list[Action]:
        """Return the last pending action again, because the algorithm needs its outcome to choose another."""
        return [pending[-1]] * count

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if self._thread is not None:
            self._unsent = _Outcome(_context(observation), self._standardise(float(reward)))

    def _standardise(self, reward: float) -> float:
        rewards = [entry.reward for entry in self.history]
        spread = float(np.std(rewards))
        return (reward - float(np.mean(rewards))) / spread if spread > 0.0 else 0.0

    @contextmanager
    def _agent_randomness(self) -> Iterator[None]:
        """Use the agent's states for the global random generators, from which the library draws."""
        outer = _global_randomness()
        _set_global_randomness(self._randomness)
        try:
            yield
        finally:
            self._randomness = _global_randomness()
            _set_global_randomness(outer)

    def _stop(self) -> None:
        thread = getattr(self, "_thread", None)
        if thread is not None and thread.is_alive():
            self._env.outcomes.put(None)
            thread.join()

    def __del__(self) -> None:
        self._stop()


def _context(observation: Observation) -> np.ndarray:
    # A copy, because the library keeps it.
    return np.array(observation.get("context", [1.0]))


def _learn(env: _QueueEnv, algorithm: Any, parameters: dict[str, Any], rounds: int) -> None:
    # Imported here, because only this agent needs it.
    from stable_baselines3.common.logger import Logger

    try:
        model = algorithm("MlpPolicy", env, **parameters)
        if not {"tensorboard_log", "verbose"} & parameters.keys():
            # The default logger makes a folder for each run.
            model.set_logger(Logger(folder=None, output_formats=[]))
        # Schedules, such as DQN's exploration, end with the task's horizon. Learning goes on if more rounds are played.
        while True:
            model.learn(rounds, reset_num_timesteps=False)
    except _StopLearningError:
        pass
    # The method act, which waits for an action, raises the error.
    except BaseException as error:
        env.actions.put(error)


def _global_randomness() -> tuple[Any, ...]:
    return random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002


def _set_global_randomness(state: tuple[Any, ...]) -> None:
    random.setstate(state[0])
    np.random.set_state(state[1])  # noqa: NPY002
    torch.set_rng_state(state[2])
