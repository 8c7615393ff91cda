"""Optuna: its samplers (TPE, CMA-ES, Gaussian process, quasi-Monte Carlo ...) as agents.

Akiba, Sano, Yanase, Ohta & Koyama (2019), Optuna: a next-generation hyperparameter optimization framework. Needs the
extra ``optuna``: ``pip install 'cbo-gym[optuna]'``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cbo_gym._util.arguments import require_word
from cbo_gym.agents.baselines.ask_tell import AskTell
from cbo_gym.errors import naming_the_extra
from cbo_gym.task import Action, Observation

SAMPLERS = {
    "TPE": "TPESampler",
    "CMA-ES": "CmaEsSampler",
    "GP": "GPSampler",
    "QMC": "QMCSampler",
    "Random": "RandomSampler",
}


def coordinates(dim: int) -> list[str]:
    """Return names of the coordinates of a unit box in trials."""
    return [f"x{index:03d}" for index in range(dim)]


class Optuna(AskTell):
    """A sampler of Optuna on the flattened actions, TPE by default. Plays every mode.

    Args:
        sampler: ``"TPE"``, ``"CMA-ES"``, ``"GP"``, ``"QMC"`` or ``"Random"``.

    Raises:
        ArgumentError: for any other sampler.
        MissingExtraError: if Optuna is not installed.
    """

    def __init__(self, sampler: str = "TPE") -> None:
        self.sampler = require_word("sampler", sampler, SAMPLERS)
        with naming_the_extra("the agent Optuna"):
            # Imported here, because the other agents do not need it.
            import optuna

        self._optuna = optuna

    def start(self, dim: int, seed: int) -> None:
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        sampler = getattr(self._optuna.samplers, SAMPLERS[self.sampler])(seed=seed)
        self._study = self._optuna.create_study(direction="maximize", sampler=sampler)
        self._box: dict[str, Any] = {
            name: self._optuna.distributions.FloatDistribution(0.0, 1.0) for name in coordinates(dim)
        }
        # Trials without a reward yet, by point.
        self._trials: dict[bytes, Any] = {}

    def act_given_pending(
        self, observation: Observation, pending: Any, count: int = 1, contexts: Any = None
    ) -> list[Action]:
        """Ask for parallel trials, which Optuna supports."""
        return [self.act(observation) for _ in range(count)]

    def ask(self) -> np.ndarray:
        trial = self._study.ask(self._box)
        point = np.array([trial.params[name] for name in self._box])
        self._trials[point.tobytes()] = trial
        return point

    def tell(self, point: np.ndarray, reward: float) -> None:
        trial = self._trials.pop(point.tobytes(), None)
        # The round belongs to the initial data.
        if trial is None:
            parameters = dict(zip(self._box, point.tolist(), strict=True))
            past = self._optuna.trial.create_trial(params=parameters, distributions=self._box, value=reward)
            self._study.add_trial(past)
        else:
            self._study.tell(trial, reward)
