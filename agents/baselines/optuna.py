"""Optuna: its samplers (TPE, CMA-ES, Gaussian process, quasi-Monte Carlo ...) as agents.

Akiba, Sano, Yanase, Ohta & Koyama (2019), Optuna: a next-generation hyperparameter optimization framework. Needs the
extra ``optuna``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cbo_gym._util.arguments import require_word
from cbo_gym.actions import Categorical, Integer, Range, TypedDomain
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

    Integers, steps, categories and logarithmic scales become Optuna's own distributions.

    Args:
        sampler: ``"TPE"``, ``"CMA-ES"``, ``"GP"``, ``"QMC"`` or ``"Random"``.

    Raises:
        ArgumentError: for any other sampler.
        MissingExtraError: if Optuna is not installed.
    """

    takes_mixed_domains = True

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
        domains = self.task.codec.domains
        # The values come last; a plain coordinate is any number in [0, 1].
        typed = [domains.typed.get(name) for name in domains.names] if domains.typed else []
        self._domains = [*[None] * (dim - len(typed)), *typed]
        pairs = zip(coordinates(dim), self._domains, strict=True)
        self._box: dict[str, Any] = {name: self._distribution(domain) for name, domain in pairs}
        # Trials without a reward yet, by point.
        self._trials: dict[bytes, Any] = {}

    def _distribution(self, domain: TypedDomain | None) -> Any:
        """Return the distribution of a coordinate: in native units if its domain is typed, else in [0, 1]."""
        distributions = self._optuna.distributions
        if isinstance(domain, Categorical):
            return distributions.CategoricalDistribution(domain.categories)
        if isinstance(domain, Integer):
            return distributions.IntDistribution(int(domain.low), int(domain.high))
        if isinstance(domain, Range):
            return distributions.FloatDistribution(domain.low, domain.high, log=domain.scale == "log", step=domain.step)
        return distributions.FloatDistribution(0.0, 1.0)

    def act_given_pending(
        self, observation: Observation, pending: Any, count: int = 1, contexts: Any = None, measured: Any = None
    ) -> list[Action]:
        """Ask for parallel trials, which Optuna supports."""
        return [self.act(observation) for _ in range(count)]

    def ask(self) -> np.ndarray:
        trial = self._study.ask(self._box)
        values = [trial.params[name] for name in self._box]
        pairs = zip(self._domains, values, strict=True)
        point = np.array([value if domain is None else domain.to_unit(domain.number(value)) for domain, value in pairs])
        self._trials[point.tobytes()] = trial
        return point

    def tell(self, point: np.ndarray, reward: float) -> None:
        trial = self._trials.pop(point.tobytes(), None)
        # The round belongs to the initial data.
        if trial is None:
            played = self.task.codec.to_point(self.task.codec.to_action(point))
            values = [
                value if domain is None else domain.label(float(np.clip(domain.to_native(level), *domain)))
                for domain, value, level in zip(self._domains, point.tolist(), played.tolist(), strict=True)
            ]
            parameters = dict(zip(self._box, values, strict=True))
            past = self._optuna.trial.create_trial(params=parameters, distributions=self._box, value=reward)
            self._study.add_trial(past)
        else:
            self._study.tell(trial, reward)
