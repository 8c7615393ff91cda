"""optuna_objective: an environment as what a study of Optuna maximises."""

from __future__ import annotations

from typing import Any

import numpy as np

from cbo_gym.agents.baselines.optuna import coordinates
from cbo_gym.arguments import whole_number
from cbo_gym.exchange.opening import opened, require_function


class OptunaObjective:
    """Called with a trial, plays one round and returns its reward.

    The trial's parameters ``x000``, ``x001``, ... are a point of the codec's unit box; what was played is the trial's
    user attribute ``action``, in words and native units. For one thread.

    Args:
        env: environment id, also with parameters, or an environment, which is reset.
        seed: of the rounds' noise, at least 0.
        env_parameters: more keyword arguments of the environment.

    Attributes:
        env: the environment, without a limit of rounds.

    Raises:
        ArgumentTypeError: if ``env`` is neither an id nor an environment.
        ArgumentError: for an unknown environment, bad parameters, or the contextual mode, whose best action depends on
            what a trial does not see.
    """

    def __init__(self, env: Any, seed: int = 0, **env_parameters: Any) -> None:
        self.env = opened(env, env_parameters)
        require_function(self.env.feedback)
        self.env.reset(seed=whole_number("seed", seed, at_least=0))
        self._codec = self.env.feedback.codec
        self._names = coordinates(self._codec.dim)

    def __call__(self, trial: Any) -> float:
        point = np.array([trial.suggest_float(name, 0.0, 1.0) for name in self._names])
        action = self._codec.to_action(point)
        _, reward, *_ = self.env.step(action)
        trial.set_user_attr("action", self._codec.to_text(self._codec.to_record(action)))
        return reward


def optuna_objective(env: Any, seed: int = 0, **env_parameters: Any) -> OptunaObjective:
    """What a study of Optuna maximises::

        study = optuna.create_study(direction="maximize")
        study.optimize(cbo_gym.optuna_objective("CBO/Alpine2-v0"), n_trials=50)

    Arguments and errors are those of :class:`OptunaObjective`. On the leaderboard, Optuna's samplers are the agent
    :class:`~cbo_gym.agents.baselines.optuna.Optuna`.
    """
    return OptunaObjective(env, seed, **env_parameters)
