"""optuna_objective: an environment as the objective of a study of Optuna."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from cbo_gym._util.arguments import MAX_NOISE_SEED, seed_number
from cbo_gym.actions import Categorical, Integer, Interval, Range
from cbo_gym.actions.codec import ArmCodec, CellCodec, ChoiceCodec, Codec, SuperArmCodec
from cbo_gym.errors import ArgumentError
from cbo_gym.integrations.opening import open_env, require_function
from cbo_gym.task import Action

# Parameter of a trial that chooses the target set, or the arm.
SET = "set"
# User attribute of a trial that holds the action as a point of the codec's unit box.
POINT = "point"


@singledispatch
def suggest(codec: Codec, trial: Any) -> Action:
    """Suggest the action of a trial, whose parameters have the system's names and native units.

    A coordinate of a box has one parameter. A coordinate of a cell has two: ``"a0, one end"`` and ``"a0, other end"``.
    The parameter ``"set"`` chooses an arm, or a target set whose variables have parameters too. A base arm has a
    parameter that is True or False; if more base arms are True than the limit allows, the first ones are pulled.
    """
    return codec.to_action(
        np.array([_unit(codec, index, trial, name) for index, name in enumerate(codec.domains.names)])
    )


@suggest.register
def _cell(codec: CellCodec, trial: Any) -> Action:
    ends = [
        [_unit(codec, index, trial, f"{name}, {end}") for index, name in enumerate(codec.domains.names)]
        for end in ("one end", "other end")
    ]
    return codec.to_action(np.ravel(ends))


@suggest.register
def _super_arm(codec: SuperArmCodec, trial: Any) -> Action:
    chosen = [trial.suggest_categorical(name, [False, True]) for name in codec.arms]
    return codec.to_action(np.array(chosen, dtype=np.float64))


@suggest.register
def _choice(codec: ChoiceCodec, trial: Any) -> Action:
    choice = trial.suggest_categorical(SET, list(codec.choices))
    members = codec.sets[codec.choices.index(choice)]
    pairs = zip(codec.domains.names, codec.domains.intervals, strict=True)
    return codec.from_record({name: _native(trial, name, domain) for name, domain in pairs if name in members})


@suggest.register
def _arm(codec: ArmCodec, trial: Any) -> Action:
    names = [codec.to_string(dict(arm)) for arm in codec.arms]
    return names.index(trial.suggest_categorical(SET, names))


def _unit(codec: Codec, index: int, trial: Any, name: str) -> float:
    """Suggest the value of a coordinate, and return it scaled to [0, 1]."""
    value = _native(trial, name, codec.domains.intervals[index])
    number = codec.domains.number(codec.domains.names[index], value)
    return float(np.clip(codec.domains.scales[index].to_unit(number), 0.0, 1.0))


def _native(trial: Any, name: str, domain: Interval) -> Any:
    low, high = domain
    match domain:
        case Categorical():
            return trial.suggest_categorical(name, domain.categories)
        case Integer():
            return trial.suggest_int(name, int(low), int(high))
        case Range():
            return trial.suggest_float(name, low, high, step=domain.step, log=domain.scale == "log")
    return trial.suggest_float(name, low, high)


class OptunaObjective:
    """Objective that plays a round for each trial and returns its reward.

    A trial has the system's parameters by name, in native units, see :func:`suggest`. Its user attribute ``action``
    describes the action in words. An objective must not be used by several threads at once.

    Args:
        env: environment id, also with parameters, or an environment, which is reset.
        seed: seed of the rounds' noise, from 0 to 2**128 - 1.
        env_parameters: more keyword arguments of the environment.

    Attributes:
        env: The environment, without a limit of rounds.

    Raises:
        ArgumentTypeError: if ``env`` is neither an id nor an environment.
        ArgumentError: for an unknown environment, bad parameters, or the contextual mode, whose best action depends on
            the context.
    """

    def __init__(self, env: Any, seed: int = 0, **env_parameters: Any) -> None:
        self.env = open_env(env, env_parameters)
        require_function(self.env.dynamics)
        self.env.reset(seed=seed_number(seed, at_most=MAX_NOISE_SEED))
        self._codec = self.env.dynamics.codec

    def __call__(self, trial: Any) -> float:
        action = suggest(self._codec, trial)
        _, reward, *_ = self.env.step(action)
        trial.set_user_attr("action", self._codec.to_string(self._codec.to_record(action)))
        trial.set_user_attr(POINT, self._codec.to_point(action).tolist())
        return reward

    def recommend(self, study: Any) -> Action:
        """Return the action to deploy: that of the trial with the highest posterior mean of a Gaussian process.

        ``study.best_trial`` has the highest observed reward, which with noise may be due to chance.

        Args:
            study: study with trials of this objective.

        Raises:
            ArgumentError: if no trial has ended.
            MissingExtraError: without the extra ``agents``.
        """
        # Imported here, because only a recommendation needs the extra ``agents``.
        from cbo_gym.agents.gp.model import GaussianProcess

        trials = study.get_trials(deepcopy=False)
        ended = [trial for trial in trials if trial.value is not None and POINT in trial.user_attrs]
        if not ended:
            raise ArgumentError("no trial of this objective has ended, so there is nothing to recommend")
        points = np.array([trial.user_attrs[POINT] for trial in ended])
        rewards = np.array([trial.value for trial in ended])
        model = GaussianProcess("reward", points.shape[1])
        model.add(points, rewards)
        best = int(model.mean(model.inputs).argmax())
        return self._codec.to_action(points[best])


def optuna_objective(env: Any, seed: int = 0, **env_parameters: Any) -> OptunaObjective:
    """Return the objective of an environment for a study of Optuna, to be maximised.

    Example::

        objective = cbo_gym.optuna_objective("CBO/Alpine2-v0")
        study = optuna.create_study(direction="maximize")
        study.optimize(objective, n_trials=50)
        print(objective.recommend(study))

    Arguments and errors are those of :class:`OptunaObjective`. On the leaderboard, Optuna's samplers are the agent
    :class:`~cbo_gym.agents.baselines.optuna.Optuna`.
    """
    return OptunaObjective(env, seed, **env_parameters)
