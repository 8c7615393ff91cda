"""Models of the rewards of one target set, and the search for the values with the greatest expected improvement.

CBO and its variants have one such model for each target set: :class:`EmptySetModel` for the empty set,
:class:`SeparateSetModel` or :class:`SharedSetModel` for the others.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.actions import Costs, Domains
from cbo_gym.agents.calibration.data_noise import is_noiseless, standard_error
from cbo_gym.agents.calibration.forecast import MIN_FREEDOM
from cbo_gym.agents.common.features import Levels
from cbo_gym.agents.intervention_sets.acquisition import evolve, log_augmented_ei_factor, log_expected_improvement
from cbo_gym.agents.intervention_sets.candidate_graphs import CandidateGraphs
from cbo_gym.agents.intervention_sets.causal_prior import CausalGP, EffectModel, GPQuery, ObservationalModel, RewardGP
from cbo_gym.agents.intervention_sets.evidence import residual_std
from cbo_gym.agents.intervention_sets.sets_gp import SetsGP, novelty
from cbo_gym.task import Action, HardTask, Observation

# Number of quasi-random points for each variable of a set.
CANDIDATES = 128
# Parameters of the search, see :func:`evolve`.
SURVIVORS, CHILDREN = 4, 12
RADII = (0.03, 0.005)


class SharedConfig(NamedTuple):
    """The task, effect model, costs and torch device that the set models of an agent share."""

    task: HardTask
    effects: EffectModel
    costs: Costs
    device: str


class InterventionSetModel(ABC):
    """Model of E[Y | do(x)] for one target set.

    Attributes:
        index: position of the set among the task's targets.
        cost: cost of playing the set, without the part that depends on the values.
    """

    def __init__(self, task: HardTask, index: int, cost: float) -> None:
        self.index = index
        self.cost = cost
        self._members = [column for column, name in enumerate(task.manipulable) if name in task.targets[index]]
        self._count = len(task.manipulable)
        self._unset = task.codec.domains.unset

    @abstractmethod
    def observe(self, action: Action, observation: Observation, reward: float) -> None:
        """Learn from a round in which the set was played."""

    @abstractmethod
    def adjust(self, mean: float, unit: float) -> None:
        """Adjust the prior to the rewards of all sets: their mean, and their standard deviation ``unit``."""

    def refresh(self) -> None:  # noqa: B027  (does nothing for the empty set, which has no causal prior)
        """Update the causal prior with the current observations."""

    @abstractmethod
    def estimates(self) -> np.ndarray:
        """Return the posterior means at the actions played, in the order of the rounds."""

    def prior_means(self) -> np.ndarray:
        """Return estimates from observations alone at the actions played, in the order of the rounds."""
        return self.estimates()

    @abstractmethod
    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of E[Y | do(x)] at points ``n x d`` of the set, each ``(n,)``."""

    def members_of(self, values: np.ndarray) -> Tensor:
        """Return the columns of the set's variables from values ``n x d`` of all manipulable variables."""
        return torch.as_tensor(values[:, self._members])

    @abstractmethod
    def candidates(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return points ``n x d`` of the set, and the mean and standard deviation of E[Y | do(x)], each ``(n,)``."""

    @abstractmethod
    def maximise(self, best: float, rng: np.random.Generator, augmented: bool = False) -> tuple[Action, float]:
        """Return the action with the greatest expected improvement (EI) over ``best`` per cost, and its log(EI / cost).

        If ``augmented``, EI is multiplied by the factor of :func:`log_augmented_ei_factor`.
        """

    @property
    @abstractmethod
    def noise(self) -> float:
        """Standard deviation of a reward around E[Y | do(x)]."""

    def unexplained_noise(self) -> float | None:
        """Return an estimate of :attr:`noise` from observations alone; ``None`` if they are too few.

        It is the standard deviation of the reward's residuals in a regression on the set's variables, see
        :func:`residual_std`.
        """
        return None

    def log_surcharge(self, values: Tensor) -> Tensor:
        """Return log(c / ``cost``), ``(n,)``, where c is the whole cost of playing values ``n x d`` in [0, 1]."""
        return values.new_zeros(len(values))

    def action(self, values: np.ndarray) -> Action:
        """Return the action that sets the set's variables to values in [0, 1]."""
        all_values = self._unset.copy()
        all_values[self._members] = values
        return {"target": np.int64(self.index), "values": all_values}

    def _log_improvement(self, mean: Tensor, std: Tensor, best: float, augmented: bool) -> Tensor:
        improvement = log_expected_improvement(mean, std, best)
        if augmented and self.noise:
            improvement = improvement + log_augmented_ei_factor(std, self.noise)
        return improvement


class EmptySetModel(InterventionSetModel):
    """Model of E[Y] without intervention: the mean of the n rewards, with the standard error s / sqrt(n).

    The standard deviation s counts one additional reward, ``unit`` away from the mean, so that it is positive for any
    n.
    """

    def __init__(self, task: HardTask, index: int, cost: float) -> None:
        super().__init__(task, index, cost)
        self._rewards: list[float] = []

    def observe(self, action: Action, observation: Observation, reward: float) -> None:
        self._rewards.append(reward)

    def adjust(self, mean: float, unit: float) -> None:
        rewards = np.array(self._rewards)
        count = len(rewards)
        self._mean = float(rewards.mean()) if count else mean
        squares = float(np.square(rewards - self._mean).sum())
        self._noise = math.sqrt((unit**2 + squares) / (count + 1))
        self._std = self._noise / math.sqrt(max(1, count))

    def estimates(self) -> np.ndarray:
        return np.full(len(self._rewards), self._mean)

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        mean, std = torch.tensor([[self._mean], [self._std]], dtype=torch.float64).expand(2, len(points))
        return mean, std

    def draw(self, count: int, columns: int, rng: np.random.Generator, noise: bool) -> np.ndarray:
        """Return draws of E[Y], the same in all columns, or of Y with ``noise``, ``(count, columns)``."""
        freedom = max(len(self._rewards) - 1, MIN_FREEDOM)
        draws = self._mean + self._std * rng.standard_t(freedom, (count, 1))
        return draws + float(noise) * self._noise * rng.standard_normal((count, columns))

    def candidates(self) -> tuple[Tensor, Tensor, Tensor]:
        point = torch.empty((1, 0), dtype=torch.float64)
        return point, *self.posterior(point)

    def act(self) -> Action:
        """Return the action that sets nothing."""
        return self.action(np.empty(0))

    def maximise(self, best: float, rng: np.random.Generator, augmented: bool = False) -> tuple[Action, float]:
        _, mean, std = self.candidates()
        return self.act(), float(self._log_improvement(mean, std, best, augmented)) - math.log(self.cost)

    @property
    def noise(self) -> float:
        return self._noise


class SetModel(InterventionSetModel):
    """Model of a nonempty set, with the search for the values with the greatest expected improvement."""

    # Argument ``prior`` of _predict at the candidates; refresh computes it.
    _prior: tuple[Tensor, Tensor]
    _gp: RewardGP

    def __init__(self, config: SharedConfig, index: int, seed: int) -> None:
        task, effects, self._costs, device = config
        self._target = task.targets[index]
        super().__init__(task, index, self._costs.fixed_cost(self._target))
        domains = Domains({name: domain for name, domain in task.manipulable.items() if name in self._target})
        self._scales = dict(zip(domains.names, domains.scales, strict=True))
        self._effects = effects
        self._effect = partial(effects.effect, self._target)
        self._covariates = [task.nodes.index(name) for name in self._scales]
        self._reward, self._reward_column = task.reward, task.nodes.index(task.reward)
        dim = len(self._members)
        engine = SobolEngine(dim, scramble=True, seed=seed)
        self._candidates = engine.draw(CANDIDATES * dim, dtype=torch.float64).to(device)
        self._categories, self._levels = domains.category_counts, Levels.of(domains)
        if self._levels is not None:
            self._candidates = self._levels.from_uniform(self._candidates).unique(dim=0)
        self._codec, self._limits = task.codec, task.codec.limits
        if self._limits is not None:
            # Draw half of the candidates within the limits. The repair puts most of the others on the limits.
            is_set = self._limits.members_of(self._target)
            inside = self._limits.sample(is_set, len(self._candidates) // 2, np.random.default_rng(seed))
            self._candidates[: len(inside)] = torch.as_tensor(inside[:, is_set]).to(device)
            self._candidates = self._within_limits(self._candidates)

    @abstractmethod
    def _predict(self, values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of E[Y | do(x)] at values ``n x d``; ``prior`` is computed if None."""

    def adjust(self, mean: float, unit: float) -> None:
        self._gp.unit = unit

    @property
    def noise(self) -> float:
        return self._gp.noise_of_rewards

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        return self._predict(points.to(self._candidates))

    @abstractmethod
    def gp_queries(self, values: Tensor) -> dict[str, GPQuery]:
        """Return outcome (the reward or another node) -> GP query at values ``n x d``; empty without separate GPs."""

    def _within_limits(self, values: Tensor) -> Tensor:
        """Move values ``n x d`` within the limits of the next action; values that satisfy them do not change."""
        if (limits := self._codec.limits) is None:
            return values
        points = values.new_zeros((len(values), self._count))
        points[:, self._members] = values
        is_set = torch.zeros_like(points, dtype=torch.bool)
        is_set[:, self._members] = True
        repaired = limits.repair(points, is_set, torch)[:, self._members]
        return repaired if self._levels is None else self._levels.round(repaired)

    def candidates(self) -> tuple[Tensor, Tensor, Tensor]:
        with torch.no_grad():
            return self._candidates, *self._predict(self._candidates, self._prior)

    def maximise(self, best: float, rng: np.random.Generator, augmented: bool = False) -> tuple[Action, float]:
        def score(values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> Tensor:
            with torch.no_grad():
                return self._log_gain(values, best, augmented, prior) - self.log_surcharge(values)

        # A user may fix variables of the next action, which changes its limits.
        limits_changed = self._codec.limits is not self._limits
        candidates = self._within_limits(self._candidates) if limits_changed else self._candidates
        scores = score(candidates, None if limits_changed else self._prior)
        values, gain = evolve(
            candidates,
            scores,
            score,
            rng,
            radii=RADII,
            survivors=min(SURVIVORS, len(scores)),
            children=CHILDREN,
            levels=self._levels,
            repair=None if self._codec.limits is None else self._within_limits,
        )
        return self.action(values), gain - math.log(self.cost)

    def _log_gain(self, values: Tensor, best: float, augmented: bool, prior: tuple[Tensor, Tensor] | None) -> Tensor:
        """Return log EI at values ``n x d``, shape ``(n,)``."""
        return self._log_improvement(*self._predict(values, prior), best, augmented)

    def log_surcharge(self, values: Tensor) -> Tensor:
        if not any(name in self._costs.per_unit for name in self._scales):
            return super().log_surcharge(values)
        columns = zip(self._scales.items(), values.unbind(-1), strict=True)
        # Name -> whether the variable is set, and its values.
        settings = {name: (True, scale.to_native(column)) for (name, scale), column in columns}
        return (self._costs.of(settings) / self.cost).log()

    def unexplained_noise(self) -> float | None:
        rows = self._effects.observations
        return residual_std(rows[:, self._covariates], rows[:, self._reward_column])

    def _values_of(self, action: Action) -> Tensor:
        return torch.as_tensor(np.asarray(action["values"], dtype=np.float64)[self._members]).to(self._candidates)


class SeparateSetModel(SetModel):
    """A set of variables with a separate GP."""

    _gp: CausalGP

    def __init__(self, config: SharedConfig, index: int, seed: int) -> None:
        super().__init__(config, index, seed)
        task = config.task
        noise_std = 0.0 if is_noiseless(task, task.reward) else None
        name = f"{task.reward} | do({', '.join(sorted(self._target))})"
        self._gp = CausalGP(name, len(self._members), self._effect, config.device, noise_std, self._categories)

    def observe(self, action: Action, observation: Observation, reward: float) -> None:
        self._gp.observe(self._values_of(action), reward, standard_error(observation, -1))

    def refresh(self) -> None:
        self._prior = self._effect(self._candidates)
        self._gp.expected_noise = self.unexplained_noise()
        if len(self._gp):
            self._gp.refresh()

    def estimates(self) -> np.ndarray:
        with torch.no_grad():
            return self._gp.means_at_data().cpu().numpy()

    def prior_means(self) -> np.ndarray:
        return self._gp.prior_means().cpu().numpy()

    def gp_queries(self, values: Tensor) -> dict[str, GPQuery]:
        return {self._reward: self._gp.query(values.to(self._candidates))}

    def _predict(self, values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return self._gp.predict(values, prior)


class SharedSetModel(SetModel):
    """A set of variables that shares its GP with the other sets."""

    _gp: SetsGP
    _effects: ObservationalModel | CandidateGraphs

    def __init__(self, config: SharedConfig, index: int, seed: int, gp: SetsGP) -> None:
        super().__init__(config, index, seed)
        self._gp = gp
        self._columns = [config.task.nodes.index(name) for name in config.task.manipulable]
        self._domains = config.task.codec.domains
        # Values played so far, ``n x d``.
        self._values = self._candidates[:0]

    def observe(self, action: Action, observation: Observation, reward: float) -> None:
        values = self._values_of(action)[None]
        self._values = torch.cat([self._values, values])
        self._gp.observe(self.index, *self._inputs(values), reward, standard_error(observation, -1))

    def refresh(self) -> None:
        self._prior = self._inputs(self._candidates)
        if len(self._values):
            self._gp.revise(self.index, *self._inputs(self._values))

    def _inputs(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs of the shared GP at values ``n x d``, and the means of the causal prior there.

        The inputs are the values of all manipulable variables, with the mean (of a category, the mode) of the
        observations for those that are not set; 1 for each variable that is set, else 0; the standard deviation of the
        causal prior; and the novelty.
        """
        mean, std = self._effect(values)
        columns = zip(self._domains.scales, self._effects.observations[:, self._columns].unbind(-1), strict=True)
        observed = torch.stack([scale.to_unit(column) for scale, column in columns], -1)
        inputs = values.new_zeros((len(values), 2 * self._count + 2))
        inputs[:, : self._count] = observed.mean(0).clamp(0.0, 1.0) if len(observed) else 0.5
        if len(observed):
            for index in self._gp.categories:
                inputs[:, index] = observed[:, index].mode().values
        inputs[:, self._members] = values
        inputs[:, [self._count + column for column in self._members]] = 1.0
        relevant = observed if self._effects.informs(self._target) else observed[:0]
        inputs[:, -2], inputs[:, -1] = std, novelty(values, relevant[:, self._members])
        return inputs, mean

    def estimates(self) -> np.ndarray:
        with torch.no_grad():
            return self._gp.means_at_data(self.index).cpu().numpy()

    def prior_means(self) -> np.ndarray:
        return self._gp.prior_means(self.index).cpu().numpy()

    def gp_queries(self, values: Tensor) -> dict[str, GPQuery]:
        inputs, means = self._inputs(values.to(self._candidates))
        return {self._reward: GPQuery(self._gp, inputs, means)}

    def _predict(self, values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return self._gp.predict(*(prior or self._inputs(values)))
