"""CBO: causal Bayesian optimisation (Aglietti, Lu, Paleyes & Gonzalez 2020), EICBO in Sussex et al. (2023), sec. 5.

A GP tells the reward of the values that are set. Its prior comes from the observations: the mean is their estimate of
E[Y | do(x)] (see :mod:`cbo_gym.agents.surrogates.causal.causal_prior`), and the uncertainty of that estimate is added
to the prior variance. A round observes (plays the empty set) with probability epsilon, which improves the prior of all
sets, and else plays the set and values of the greatest expected improvement divided by their cost.

Epsilon depends on the coverage C = Vol(hull of the observations) / Vol(domain) over the variables that are set, and on
the number N of observations. The paper's Eq. 6 multiplies, C x N / N_max; the authors' program divides.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from scipy.spatial import ConvexHull, QhullError
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.actions import Costs
from cbo_gym.actions.codec import UNSET
from cbo_gym.agent import Agent
from cbo_gym.agents.common.initial import few_observations
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.surrogates.causal.causal_prior import CausalGP, EffectModel, ObservationalModel
from cbo_gym.agents.surrogates.causal.sets_gp import SetsGP, novelty
from cbo_gym.agents.surrogates.causal.unexplained import unexplained
from cbo_gym.agents.surrogates.gp.model import is_noiseless
from cbo_gym.arguments import require_positive, require_truth_value, require_word, whole_number
from cbo_gym.errors import ArgumentError, did_you_mean, shortened, shown
from cbo_gym.scm.scopes import minimal_intervention_sets, pomis
from cbo_gym.task import Action, HardTask, Info, Mode, Observation, Round

CANDIDATES = 128  # quasi-random points for every variable of a set
SURVIVORS = 4
CHILDREN = 12  # around each survivor
RADII = (0.03, 0.005)  # standard deviations of the two generations of points around the best ones
EARLY = 20  # rounds, of which every second counts by what it teaches
MOST_OFTEN = 0.5  # epsilon where the coverage is divided by N / N_max, however small that is
Scaling = Literal["divide", "multiply"]
#: coverage and N / N_max -> epsilon
SCALINGS: dict[str, Callable[[float, float], float]] = {
    "divide": lambda covered, progress: min(MOST_OFTEN, covered / progress),
    "multiply": lambda covered, progress: covered * progress,
}
#: variable, or set of variables -> cost
GivenCosts = Mapping[str | tuple[str, ...] | frozenset[str], float]
CostsBySet = dict[frozenset[str], float]
EQUAL = Costs(base=1.0)  # of all sets, where nothing is paid
LISTS = list | tuple | set | frozenset
NAMED_TARGETS = {"MIS": minimal_intervention_sets, "POMIS": pomis}


def _read_costs(given: Any) -> CostsBySet:
    """Costs of sets of variables; that of a variable by its name is the set's with it alone."""
    sets = [key for key in given if not isinstance(key, str)] if isinstance(given, Mapping) else [()]
    if not all(isinstance(key, tuple | frozenset) and key and _are_names(key) for key in sets):
        raise ArgumentError(
            "costs map variables, or sets of them as tuples or frozensets of names, to numbers, such as "
            f"{{'X': 1.0, ('X', 'Z'): 3.0}}; given {shown(given)}"
        )
    named = {frozenset([key] if isinstance(key, str) else key): cost for key, cost in given.items()}
    return {
        key: float(require_positive(f"the cost of {shortened(', '.join(sorted(key)))}", cost))
        for key, cost in named.items()
    }


def _read_targets(given: Any) -> Collection[frozenset[str]] | str | None:
    if given is None or (isinstance(given, str) and given in NAMED_TARGETS):
        return given
    if not (isinstance(given, LISTS) and all(map(_are_names, given))):
        raise ArgumentError(
            f"targets are {' or '.join(map(repr, NAMED_TARGETS))} or sets of names; "
            f"given {shown(given)}{did_you_mean(given, NAMED_TARGETS)}"
        )
    return tuple(frozenset(target) for target in given)


def _are_names(given: Any) -> bool:
    return isinstance(given, str | LISTS) and all(isinstance(name, str) for name in given)


class CBO(Agent):
    """Expected improvement on a GP of all target sets, with priors learned by observing. Plays hard tasks.

    Args:
        targets: the sets to intervene on: "MIS" or "POMIS" for those of the task's that are minimal intervention
            sets, or possibly optimal ones (which makes it CaBO), or the sets themselves; None for all of the task's.
        costs: variable -> cost of setting it, or set of variables (a tuple or frozenset of names) -> cost of setting
            just these, finite and above 0; 1 for a variable that is not named, and the sum for a set that is not.
            None for the task's costs, or the same for all sets where it has none.
        max_observations: N_max, the number of observations, the initial ones included, after which there are no
            more; 1 to 10,000.
        scaling: "divide" or "multiply" the coverage by N / N_max.
        in_common: whether all sets have one GP, and some early rounds count by what they teach; False for a GP a set
            and plain expected improvement, the paper's method.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range; by :meth:`reset` if ``targets`` or ``costs`` name what the task
            does not have.
    """

    modes = frozenset({Mode.HARD})
    task: HardTask
    learns_from_interventions = False  # whether they move the priors of all sets

    def __init__(
        self,
        targets: Iterable[Iterable[str]] | str | None = None,
        costs: GivenCosts | None = None,
        max_observations: int = 60,
        scaling: Scaling = "divide",
        in_common: bool = True,
        device: str = "cpu",
    ) -> None:
        self.costs = None if costs is None else _read_costs(costs)
        self.scaling: Scaling = require_word("scaling", scaling, SCALINGS)
        self.in_common = require_truth_value("in_common", in_common)
        self.device = require_device(device)
        self.targets = _read_targets(targets)
        self.max_observations = whole_number("max_observations", max_observations, at_least=1, at_most=10_000)

    def setup(self, seed: int) -> None:
        task = self.task
        if strangers := sorted(frozenset().union(*(self.costs or ())) - set(task.manipulable)):
            raise ArgumentError(
                f"costs name {strangers}; {task.env_id} lets {list(task.manipulable)} be set"
                f"{did_you_mean(strangers[0], task.manipulable)}"
            )
        self._initial = len(self.initial_rounds())
        self._model = self.make_model()
        if self.in_common:
            known = 0.0 if is_noiseless(self.task, self.task.reward) else None
            self._common = SetsGP(self.task.reward, len(self.task.manipulable), self.device, known)
        self.believed_costs = self._believed_costs()
        self._observing = self.make_empty_arm(task.targets.index(frozenset()))
        self._arms: list[Arm] = [
            self.make_arm(index, int(self.rng.integers(2**31))) if target else self._observing
            for index, target in enumerate(task.targets)
        ]
        self.explore(self.choose_targets())

    def _believed_costs(self) -> Costs:
        if self.costs is None:
            return self.task.costs or EQUAL
        alone = {name: self.costs.get(frozenset([name]), 1.0) for name in self.task.manipulable}
        return Costs(variables=alone, sets={names: cost for names, cost in self.costs.items() if len(names) > 1})

    @property
    def cost_of_observing(self) -> float:
        """The cost by which an improvement from observing is divided."""
        costs = self.believed_costs
        if costs is not self.task.costs:
            return 1.0
        return costs.constant or min((costs.fixed(target) for target in self.task.targets if target), default=1.0)

    def make_model(self) -> EffectModel:
        """A model of the effects of interventions, from observations."""
        return ObservationalModel(self.task, self.device)

    def make_empty_arm(self, index: int) -> EmptySetArm:
        """The belief about only observing, which has this index among the task's target sets."""
        return EmptySetArm(self.task, index, self.cost_of_observing)

    def make_arm(self, index: int, seed: int) -> SetArm:
        """The belief about another of the task's target sets; ``seed`` is that of its search."""
        return (
            SharingArm(self.setting, index, seed, self._common) if self.in_common else OwnArm(self.setting, index, seed)
        )

    @property
    def setting(self) -> Setting:
        """What the beliefs about the sets have in common."""
        return Setting(self.task, self._model, self.believed_costs, self.device)

    def explore(self, targets: Collection[frozenset[str]]) -> None:
        """From now on maximise the improvement in these target sets."""
        self._explored = [arm for arm, target in zip(self._arms, self.task.targets, strict=True) if target in targets]
        names = frozenset().union(*targets)
        self._places = [self.task.nodes.index(name) for name in self.task.manipulable if name in names]
        self._domains = np.array([domain for name, domain in self.task.manipulable.items() if name in names])
        self._stale = True

    def choose_targets(self) -> Collection[frozenset[str]]:
        """The target sets whose improvement is to be maximised."""
        task, targets = self.task, self.targets
        if targets is None:
            return task.targets
        if isinstance(targets, str):
            return NAMED_TARGETS[targets](task.diagram, task.reward, task.manipulable)
        if unknown := [sorted(target) for target in targets if target not in task.targets]:
            listed = [sorted(target) for target in task.targets]
            raise ArgumentError(f"targets must be among those of {task.env_id}, {listed}; given {unknown}")
        return targets

    def initial_rounds(self) -> Sequence[Round]:
        return few_observations(self.task)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        arm = self._arms[int(action["target"])]
        initial = len(self.history) < self._initial
        super().update(action, observation, reward, info)
        arm.observe(action, float(reward))
        self._stale |= self.learns_from_interventions
        if arm is not self._observing or initial or self._may_observe:
            self._model.add(action, observation, float(reward))
            self._stale |= arm is self._observing or not self._count  # the flat prior is the mean of all rewards

    def act(self, observation: Observation) -> Action:
        if not self._explored or self.rng.random() < self.epsilon or not self.history:
            return self._observing.act()
        best = self.incumbent()
        for arm in self._explored:
            arm.augmented = self._looks
        found = [arm.maximise(best, self.rng) for arm in self._explored]
        return max(found, key=lambda pair: pair[1])[0]

    @property
    def _looks(self) -> bool:
        """Whether a play of this round counts by what it teaches."""
        rounds = len(self.history) - self._initial
        return self.in_common and rounds < EARLY and rounds % 2 == 0

    def incumbent(self) -> float:
        """The expected reward that is to be improved upon."""
        return float(self.estimated_rewards().max())

    @property
    def explored(self) -> frozenset[frozenset[str]]:
        """The target sets of the task whose improvement is maximised."""
        return frozenset(self.task.targets[arm.index] for arm in self._explored)

    @property
    def _count(self) -> int:
        return len(self._model.observations)

    @property
    def _may_observe(self) -> bool:
        return self._count < self.max_observations

    @property
    def epsilon(self) -> float:
        """The probability of observing in this round."""
        if not self._may_observe:
            return 0.0
        if not self._places or self._count <= len(self._places):
            return 1.0
        observed = self._model.observations[:, self._places].cpu().numpy()
        return SCALINGS[self.scaling](coverage(observed, self._domains), self._count / self.max_observations)

    def estimated_rewards(self) -> np.ndarray:
        """Posterior means of E[Y | action], shape ``(len(history),)``.

        Sets that are not explored, of which there may be a few initial rewards, are judged by the observations alone:
        else the luckiest of many would seem the best.
        """
        self._refresh()
        targets = np.array([int(past.action["target"]) for past in self.history], dtype=int)
        estimates = np.empty(len(targets))
        for index in np.unique(targets):
            arm = self._arms[index]
            estimates[targets == index] = arm.estimates() if arm in self._explored else arm.expectations()
        return estimates

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray]:
        self._refresh()
        found = np.empty((2, len(actions)))
        targets = np.array([int(action["target"]) for action in actions])
        for index in np.unique(targets):
            own = np.flatnonzero(targets == index)
            found[:, own] = self._arms[index].believed(np.stack([actions[place]["values"] for place in own.tolist()]))
        return found[0], found[1]

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        self._refresh()
        index = int(action["target"])
        values = np.asarray(action["values"], dtype=np.float64)
        domains = self.task.manipulable.items()
        pairs = [(one, value) for one, value in zip(domains, values, strict=True) if one[0] in self.task.targets[index]]
        set_to = {name: low + (high - low) * float(value) for (name, (low, high)), value in pairs}
        return set_to | {self.task.reward: float(self._arms[index].believed(values[None])[0, 0])}

    def _refresh(self) -> None:
        rewards = [past.reward for past in self.history] or [0.0]
        spread, mean = float(np.std(rewards)), float(np.mean(rewards))
        unit = spread if spread > 1e-12 * abs(mean) else 1.0  # what spread constant rewards show is rounding
        for arm in self._arms:
            arm.adjust(mean, unit)
            if self._stale and arm in self._explored:
                arm.refresh()
        if self._stale and self.in_common:
            known = [arm.expected_noise for arm in self._explored if arm.expected_noise is not None]
            self._common.expected_noise = float(np.median(known)) if known else None
        self._stale = False


class Setting(NamedTuple):
    """What the arms of an agent have in common: its task, effect model and costs, and the torch device."""

    task: HardTask
    model: EffectModel
    costs: Costs
    device: str


class Arm(ABC):
    """A target set: what is believed of its rewards, and the search of its values.

    Attributes:
        index: of the set among the task's targets.
        cost: of playing it, without what depends on the values.
        expected_noise: standard deviation that its rewards have by the observations; None if unknown.
        augmented: whether an improvement is worth what share of its uncertainty a play would remove.
    """

    expected_noise: float | None = None
    augmented = False

    def __init__(self, task: HardTask, index: int, cost: float) -> None:
        self.index = index
        self.cost = cost
        self._members = [place for place, name in enumerate(task.manipulable) if name in task.targets[index]]
        self._count = len(task.manipulable)

    @abstractmethod
    def observe(self, action: Action, reward: float) -> None:
        """Learn from a round in which the set was played."""

    @abstractmethod
    def adjust(self, mean: float, unit: float) -> None:
        """Adjust the prior to the mean and the spread of all rewards."""

    def refresh(self) -> None:  # noqa: B027  (the empty set has no causal prior)
        """Bring the causal prior up to date with the observations."""

    @abstractmethod
    def estimates(self) -> np.ndarray:
        """Posterior means of the actions played, in their order."""

    def believed(self, values: np.ndarray) -> np.ndarray:
        """:meth:`belief`, ``2 x n``, at values ``n x d`` of all variables that can be set."""
        with torch.no_grad():
            return torch.stack(self.belief(torch.as_tensor(values[:, self._members]))).cpu().numpy()

    @abstractmethod
    def belief(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of E[Y | do(x)] at points ``n x d`` of the set, each ``(n,)``."""

    def expectations(self) -> np.ndarray:
        """The same before their rewards were seen; of the empty set, whose rewards are observations, with them."""
        return self.estimates()

    @abstractmethod
    def maximise(self, best: float, rng: np.random.Generator) -> tuple[Action, float]:
        """The action with the highest expected improvement over ``best``, and log(EI / cost) there."""

    @abstractmethod
    def beliefs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Points ``n x d`` of the set, and mean and standard deviation of E[Y | do(x)] there, each ``(n,)``."""

    @property
    @abstractmethod
    def noise(self) -> float:
        """Standard deviation of a reward about E[Y | do(x)]."""

    def log_improvement(self, mean: Tensor, std: Tensor, best: float) -> Tensor:
        """log of the expected improvement over ``best`` for beliefs as of :meth:`belief`."""
        improvement = log_expected_improvement(mean, std, best)
        return improvement + log_augmented_ei_factor(std, self.noise) if self.augmented and self.noise else improvement

    def log_surcharge(self, values: Tensor) -> Tensor:
        """log(cost of playing the values / ``cost``), shape ``(n,)`` for values ``n x d`` in [0, 1]."""
        return values.new_zeros(len(values))

    def action(self, values: np.ndarray) -> Action:
        """The action that sets the set's variables to values in [0, 1]."""
        chosen = np.full(self._count, UNSET)
        chosen[self._members] = values
        return {"target": np.int64(self.index), "values": chosen}


class EmptySetArm(Arm):
    """The empty set. Its mean reward is known up to s / sqrt(n); s counts one more reward, a unit from the mean."""

    def __init__(self, task: HardTask, index: int, cost: float) -> None:
        super().__init__(task, index, cost)
        self._rewards: list[float] = []

    def observe(self, action: Action, reward: float) -> None:
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

    def belief(self, points: Tensor) -> tuple[Tensor, Tensor]:
        mean, std = torch.tensor([[self._mean], [self._std]], dtype=torch.float64).expand(2, len(points))
        return mean, std

    def act(self) -> Action:
        """The action that sets nothing."""
        return self.action(np.empty(0))

    def maximise(self, best: float, rng: np.random.Generator) -> tuple[Action, float]:
        _, mean, std = self.beliefs()
        return self.act(), float(self.log_improvement(mean, std, best)) - math.log(self.cost)

    def beliefs(self) -> tuple[Tensor, Tensor, Tensor]:
        point = torch.empty((1, 0), dtype=torch.float64)
        return point, *self.belief(point)

    @property
    def noise(self) -> float:
        return self._noise


class SetArm(Arm):
    """A set of variables, and the search of the values with the highest expected improvement."""

    _prior: tuple[Tensor, Tensor]  # what :meth:`_predict` is given at the candidates

    def __init__(self, setting: Setting, index: int, seed: int) -> None:
        task, model, self._costs, device = setting
        target = task.targets[index]
        super().__init__(task, index, self._costs.fixed(target))
        self._domains = {name: domain for name, domain in task.manipulable.items() if name in target}
        self._effect = partial(model.effect, target)
        self._observing = model
        self._covariates = [task.nodes.index(name) for name in self._domains]
        self._reward_column = task.nodes.index(task.reward)
        dim = len(self._members)
        engine = SobolEngine(dim, scramble=True, seed=seed)
        self._candidates = engine.draw(CANDIDATES * dim, dtype=torch.float64).to(device)

    @abstractmethod
    def _predict(self, values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of E[Y | do(values)]; ``prior`` is of the causal prior there, if known."""

    def belief(self, points: Tensor) -> tuple[Tensor, Tensor]:
        return self._predict(points.to(self._candidates))

    def beliefs(self) -> tuple[Tensor, Tensor, Tensor]:
        with torch.no_grad():
            return self._candidates, *self._predict(self._candidates, self._prior)

    def maximise(self, best: float, rng: np.random.Generator) -> tuple[Action, float]:
        points, values = self._candidates, self._log_worth(self._candidates, best, self._prior)
        for radius in RADII:
            fittest = points[values.topk(SURVIVORS).indices].repeat_interleave(CHILDREN, 0)
            step = torch.from_numpy(rng.normal(0.0, radius, tuple(fittest.shape))).to(fittest)
            children = (fittest + step).clamp(0.0, 1.0)
            points = torch.cat([points, children])
            values = torch.cat([values, self._log_worth(children, best)])
        winner = values.argmax()
        return self.action(points[winner].cpu().numpy()), float(values[winner]) - math.log(self.cost)

    def log_surcharge(self, values: Tensor) -> Tensor:
        if not any(name in self._costs.per_unit for name in self._domains):
            return super().log_surcharge(values)
        pairs = zip(self._domains.items(), values.unbind(-1), strict=True)
        native = {name: (True, low + (high - low) * column) for (name, (low, high)), column in pairs}
        return (self._costs.of(native) / self.cost).log()

    def _played(self, action: Action) -> Tensor:
        return torch.as_tensor(np.asarray(action["values"], dtype=np.float64)[self._members]).to(self._candidates)

    def _unexplained(self) -> float | None:
        """Standard deviation that rewards have by the observations; None if unknown."""
        rows = self._observing.observations
        return unexplained(rows[:, self._covariates], rows[:, self._reward_column])

    def _log_worth(self, values: Tensor, best: float, prior: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """log(EI / cost), but for the part of the cost that all values have in common."""
        return self._log_improvement(values, best, prior) - self.log_surcharge(values)

    def _log_improvement(self, values: Tensor, best: float, prior: tuple[Tensor, Tensor] | None) -> Tensor:
        with torch.no_grad():
            mean, std = self._predict(values, prior)
        return self.log_improvement(mean, std, best)


class OwnArm(SetArm):
    """A set of variables with a GP of its own."""

    def __init__(self, setting: Setting, index: int, seed: int) -> None:
        super().__init__(setting, index, seed)
        task = setting.task
        known = 0.0 if is_noiseless(task, task.reward) else None
        name = f"{task.reward} | do({', '.join(sorted(task.targets[index]))})"
        self._gp = CausalGP(name, len(self._members), self._effect, setting.device, known)

    def observe(self, action: Action, reward: float) -> None:
        self._gp.observe(self._played(action), reward)

    def adjust(self, mean: float, unit: float) -> None:
        self._gp.unit = unit

    def refresh(self) -> None:
        self._prior = self._effect(self._candidates)
        self._gp.expected_noise = self._unexplained()
        if len(self._gp):
            self._gp.refresh()

    def estimates(self) -> np.ndarray:
        with torch.no_grad():
            return self._gp.fitted().cpu().numpy()

    def expectations(self) -> np.ndarray:
        return self._gp.prior_means().cpu().numpy()

    @property
    def noise(self) -> float:
        return self._gp.noise_of_rewards

    def _predict(self, values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return self._gp.predict(values, prior)


class SharingArm(SetArm):
    """A set of variables that has its GP in common with others."""

    def __init__(self, setting: Setting, index: int, seed: int, gp: SetsGP) -> None:
        super().__init__(setting, index, seed)
        self._common = gp
        self._target = setting.task.targets[index]
        self._places = [setting.task.nodes.index(name) for name in setting.task.manipulable]
        domains = list(setting.task.manipulable.values())
        self._low, self._high = torch.tensor(domains, dtype=torch.float64, device=setting.device).T
        self._values = self._candidates[:0]  # those played

    def observe(self, action: Action, reward: float) -> None:
        values = self._played(action)[None]
        self._values = torch.cat([self._values, values])
        self._common.observe(self.index, *self._beforehand(values), reward)

    def adjust(self, mean: float, unit: float) -> None:
        self._common.unit = unit

    def refresh(self) -> None:
        self._prior = self._beforehand(self._candidates)
        self.expected_noise = self._unexplained()
        if len(self._values):
            self._common.revise(self.index, *self._beforehand(self._values))

    def _beforehand(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs of the common GP at values ``n x d``, and the causal prior's means there."""
        mean, std = self._effect(values)
        seen = (self._observing.observations[:, self._places] - self._low) / (self._high - self._low)
        inputs = values.new_zeros((len(values), 2 * self._count + 2))
        inputs[:, : self._count] = seen.mean(0).clamp(0.0, 1.0) if len(seen) else 0.5
        inputs[:, self._members] = values
        inputs[:, [self._count + place for place in self._members]] = 1.0
        told = seen[:, self._members] if self._observing.informs(self._target) else seen[:0, self._members]
        inputs[:, -2], inputs[:, -1] = std, novelty(values, told)
        return inputs, mean

    def estimates(self) -> np.ndarray:
        with torch.no_grad():
            return self._common.fitted(self.index).cpu().numpy()

    def expectations(self) -> np.ndarray:
        return self._common.prior_means(self.index).cpu().numpy()

    @property
    def noise(self) -> float:
        return self._common.noise_of_rewards

    def _predict(self, values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return self._common.predict(*(prior or self._beforehand(values)))


def log_expected_improvement(mean: Tensor, std: Tensor, best: float) -> Tensor:
    """log E[max(f - best, 0)] for f ~ Normal(mean, std), also where the expectation underflows.

    With ``z = (mean - best) / std`` it is ``log std + log(phi(z) + z Phi(z))`` (Jones, Schonlau & Welch 1998); for
    negative z the second term is written as ``log phi(z) + log(1 - |z| Phi(z) / phi(z))``.

    Args:
        mean: any shape.
        std: same shape, above 0.
        best: what is to be improved upon.
    """
    z = (mean - best) / std
    log_density = -0.5 * (z.square() + math.log(2.0 * math.pi))
    near = z.clamp_min(-1.0)
    direct = (torch.exp(-0.5 * near.square()) / math.sqrt(2.0 * math.pi) + near * torch.special.ndtr(near)).log()
    far = z.clamp(-1e6, -1.0)
    ratio = (-far).log() + torch.special.log_ndtr(far) + 0.5 * (far.square() + math.log(2.0 * math.pi))
    tail = log_density + (-torch.expm1(ratio)).clamp_min(1e-12).log()
    return std.log() + torch.where(z > -1.0, direct, tail)


def log_augmented_ei_factor(std: Tensor, noise: float) -> Tensor:
    """log of the share of its standard deviation that a belief loses by one noisy look at it.

    The share ``1 - noise / sqrt(sd^2 + noise^2)`` is written as a product, which does not cancel for small sd.

    Args:
        std: of beliefs, any shape, above 0.
        noise: standard deviation of the look about what is believed, above 0.

    References:
        Huang, Allen, Notz & Zeng (2006), Global optimization of stochastic black-box systems via sequential kriging
        meta-models, Eq. 12.
    """
    both = torch.hypot(std, torch.full_like(std, noise))
    return 2.0 * std.log() - both.log() - (both + noise).log()


def coverage(observed: np.ndarray, domains: np.ndarray) -> float:
    """The share of a box that the convex hull of observations fills.

    Args:
        observed: points, shape ``(n, d)``; they are clipped to the box.
        domains: low and high of each coordinate, shape ``(d, 2)``.

    Returns:
        a number in [0, 1]; 0 for a hull without volume. For one coordinate the hull is an interval.
    """
    low, high = domains.T
    points = (np.clip(observed, low, high) - low) / (high - low)
    if not len(points):
        return 0.0
    if points.shape[1] == 1:
        return float(np.ptp(points))
    if len(points) <= points.shape[1]:
        return 0.0
    try:
        return min(1.0, float(ConvexHull(points).volume))
    except QhullError:  # the points lie in a plane
        return 0.0
