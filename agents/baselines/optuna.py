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

# Value of the argument ``sampler`` -> class in ``optuna.samplers``.
SAMPLERS = {
    "TPE": "TPESampler",
    "CMA-ES": "CmaEsSampler",
    "GP": "GPSampler",
    "QMC": "QMCSampler",
    "Random": "RandomSampler",
}


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
            # Imported late, because the other agents do not need it.
            import optuna  # noqa: F401

    def start(self, dim: int, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = getattr(optuna.samplers, SAMPLERS[self.sampler])(seed=seed)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        domains = self.task.codec.domains
        # The values of variables are the last coordinates; the domain None stands for any number in [0, 1].
        typed = [domains.typed.get(name) for name in domains.names] if domains.typed else []
        self._domains = [*[None] * (dim - len(typed)), *typed]
        self._distributions: dict[str, Any] = {
            f"x{index:03d}": self._distribution(domain) for index, domain in enumerate(self._domains)
        }
        # Trials without a reward yet, by point.
        self._trials: dict[bytes, Any] = {}

    def _distribution(self, domain: TypedDomain | None) -> Any:
        """Return the distribution of a coordinate: in native units if its domain is typed, else in [0, 1]."""
        from optuna import distributions

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
        trial = self._study.ask(self._distributions)
        point = np.array(
            [
                trial.params[name] if domain is None else domain.to_unit(domain.number(trial.params[name]))
                for name, domain in zip(self._distributions, self._domains, strict=True)
            ]
        )
        self._trials[point.tobytes()] = trial
        return point

    def tell(self, point: np.ndarray, reward: float) -> None:
        if (trial := self._trials.pop(point.tobytes(), None)) is not None:
            self._study.tell(trial, reward)
            return
        # The point belongs to the initial data. The codec moves it to the levels of typed domains.
        leveled = self.task.codec.to_point(self.task.codec.to_action(point))
        values = [
            value if domain is None else domain.label(float(np.clip(domain.to_native(level), *domain)))
            for domain, value, level in zip(self._domains, point.tolist(), leveled.tolist(), strict=True)
        ]
        parameters = dict(zip(self._distributions, values, strict=True))
        from optuna.trial import create_trial

        self._study.add_trial(create_trial(params=parameters, distributions=self._distributions, value=reward))
