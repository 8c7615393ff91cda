"""CBO: causal Bayesian optimisation (Aglietti, Lu, Paleyes & Gonzalez 2020), EICBO in Sussex et al. (2023), sec. 5.

A GP maps the values that are set to the reward. Its prior comes from observations, the rounds in which nothing was set:
the prior mean is an estimate of E[Y | do(x)] from them (see :mod:`cbo_gym.agents.intervention_sets.causal_prior`), and
the error of the estimate is added to the prior variance. With probability epsilon a round observes (plays the empty
set), which improves the prior of all sets. Otherwise it plays the set and the values with the greatest expected
improvement per unit of cost.

Epsilon depends on the coverage C = Vol(hull of the observations) / Vol(domain) over the variables that are set, and on
the number N of observations. In the paper's Eq. 6 it is C x N / N_max; the authors' program divides C by N / N_max.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from scipy.spatial import ConvexHull, QhullError

from cbo_gym._util.arguments import require_positive, require_truth_value, require_word, whole_number
from cbo_gym.actions import Costs, Domains, Interval
from cbo_gym.agent import Agent, LeaveOneOut
from cbo_gym.agents.calibration.data_noise import is_noiseless
from cbo_gym.agents.calibration.forecast import draw_joint, predict_left_out
from cbo_gym.agents.common.initial import few_observations, first_action
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.intervention_sets.causal_prior import EffectModel, GPQuery, ObservationalModel, RewardGP
from cbo_gym.agents.intervention_sets.set_models import (
    EmptySetModel,
    InterventionSetModel,
    SeparateSetModel,
    SetModel,
    SharedConfig,
    SharedSetModel,
)
from cbo_gym.agents.intervention_sets.sets_gp import SetsGP
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr, shorten
from cbo_gym.scm.scopes import minimal_intervention_sets, pomis
from cbo_gym.task import Action, HardTask, Info, Mode, Observation, Round

# Number of early rounds; every second of them uses augmented expected improvement.
EARLY = 20
# Largest epsilon if the coverage is divided by N / N_max.
MAX_EPSILON = 0.5
Scaling = Literal["divide", "multiply"]
#: Coverage and N / N_max -> epsilon.
SCALINGS: dict[str, Callable[[float, float], float]] = {
    "divide": lambda covered, progress: min(MAX_EPSILON, covered / progress),
    "multiply": lambda covered, progress: covered * progress,
}
#: Variable, or set of variables -> cost.
GivenCosts = Mapping[str | tuple[str, ...] | frozenset[str], float]
# Costs of all sets, if the task has none.
EQUAL_COSTS = Costs(base=1.0)
Collections = list | tuple | set | frozenset
# Values of the argument ``targets`` -> function that returns the sets.
NAMED_TARGETS = {"MIS": minimal_intervention_sets, "POMIS": pomis}


def _read_costs(costs: Any) -> dict[frozenset[str], float]:
    """Return the cost of each set of variables; a key that is a name stands for the set of that variable."""
    if not (isinstance(costs, Mapping) and all(map(_is_name_or_set, costs))):
        raise ArgumentError(
            "costs map variables, or sets of them as tuples or frozensets of names, to numbers, such as "
            f"{{'X': 1.0, ('X', 'Z'): 3.0}}; given {short_repr(costs)}"
        )
    by_set = {frozenset([key] if isinstance(key, str) else key): cost for key, cost in costs.items()}
    return {
        key: float(require_positive(f"the cost of {shorten(', '.join(sorted(key)))}", cost))
        for key, cost in by_set.items()
    }


def _is_name_or_set(key: Any) -> bool:
    return isinstance(key, str) or (isinstance(key, tuple | frozenset) and bool(key) and _are_names(key))


def _read_targets(targets: Any) -> Collection[frozenset[str]] | str | None:
    if targets is None or (isinstance(targets, str) and targets in NAMED_TARGETS):
        return targets
    if not (isinstance(targets, Collections) and all(map(_are_names, targets))):
        raise ArgumentError(
            f"targets are {' or '.join(map(repr, NAMED_TARGETS))} or sets of names; "
            f"given {short_repr(targets)}{did_you_mean(targets, NAMED_TARGETS)}"
        )
    return tuple(frozenset(target) for target in targets)


def _are_names(names: Any) -> bool:
    return isinstance(names, str | Collections) and all(isinstance(name, str) for name in names)


class CBO(Agent):
    """Expected improvement on a GP of all target sets, with priors learned by observing. Plays hard tasks.

    Args:
        targets: the sets to intervene on: "MIS" for the task's minimal intervention sets, "POMIS" for its possibly
            optimal ones (as in CaBO), or a list of sets; None for all target sets of the task.
        costs: variable -> cost of setting it, or set of variables (a tuple or frozenset of names) -> cost of setting
            just these, finite and above 0; 1 for a variable without an entry, and the sum for a set without one. None
            for the task's costs, or equal costs of all sets if it has none.
        max_observations: N_max, the largest number of observations, initial ones included; 1 to 10,000.
        scaling: "divide" or "multiply" the coverage by N / N_max.
        in_common: whether all sets share one GP, and some early rounds use augmented expected improvement; False for
            one GP for each set and plain expected improvement, the paper's method.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range; by :meth:`reset` if ``targets`` or ``costs`` name variables that
            the task does not have.
    """

    modes = frozenset({Mode.HARD})
    takes_precision = True
    takes_mixed_domains = True
    takes_limits = True
    task: HardTask
    # Whether interventions change the causal priors of all sets.
    learns_from_interventions = False

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
        if unknown := sorted(frozenset().union(*(self.costs or ())) - set(task.manipulable)):
            raise ArgumentError(
                f"costs name {unknown}; {task.env_id} lets {list(task.manipulable)} be set"
                f"{did_you_mean(unknown[0], task.manipulable)}"
            )
        self._initial = len(self.initial_rounds())
        self.effects = self.make_effects()
        self.learns_mechanisms = isinstance(self.effects, ObservationalModel)
        if self.in_common:
            noise_std = 0.0 if is_noiseless(task, task.reward) else None
            categories = task.codec.domains.category_counts
            self._gp = SetsGP(task.reward, len(task.manipulable), self.device, noise_std, categories)
        costs, cost_of_observing = self._make_costs()
        config = SharedConfig(task, self.effects, costs, self.device)
        self._models: list[InterventionSetModel] = [
            self.make_set_model(config, index, int(self.rng.integers(2**31)))
            if target
            else self.make_empty_set_model(index, cost_of_observing)
            for index, target in enumerate(task.targets)
        ]
        # None if the task has no empty target set.
        self._empty_model = next((model for model in self._models if isinstance(model, EmptySetModel)), None)
        self.explore(self.choose_targets())

    def _make_costs(self) -> tuple[Costs, float]:
        """Return the costs of the sets, and the cost by which an improvement from observing is divided."""
        if self.costs is not None:
            single = {name: self.costs.get(frozenset([name]), 1.0) for name in self.task.manipulable}
            return Costs(variables=single, sets={key: cost for key, cost in self.costs.items() if len(key) > 1}), 1.0
        costs = self.task.costs or EQUAL_COSTS
        set_costs = (costs.fixed_cost(target) for target in self.task.targets if target)
        return costs, costs.constant or min(set_costs, default=1.0)

    def make_effects(self) -> EffectModel:
        """Make the model of the effects of interventions that gives the causal prior."""
        return ObservationalModel(self.task, self.device)

    def make_empty_set_model(self, index: int, cost: float) -> EmptySetModel:
        """Make the model of the empty set, given its index among the task's targets."""
        return EmptySetModel(self.task, index, cost)

    def make_set_model(self, config: SharedConfig, index: int, seed: int) -> SetModel:
        """Make the model of a nonempty target set, given its index and the seed of its search."""
        if self.in_common:
            return SharedSetModel(config, index, seed, self._gp)
        return SeparateSetModel(config, index, seed)

    def explore(self, targets: Collection[frozenset[str]]) -> None:
        """Restrict the search for improvement to these target sets.

        If the task has none of these sets and no empty set, all its sets are searched.
        """
        self._explored = [
            model for model, target in zip(self._models, self.task.targets, strict=True) if target in targets
        ]
        if self._empty_model is None and not self._explored:
            self._explored, targets = self._models, self.task.targets
        names = frozenset().union(*targets)
        self._domains = {name: domain for name, domain in self.task.manipulable.items() if name in names}
        self._stale = True

    def choose_targets(self) -> Collection[frozenset[str]]:
        """Return the target sets whose improvement is to be maximised."""
        task, targets = self.task, self.targets
        if targets is None:
            return task.targets
        if isinstance(targets, str):
            return NAMED_TARGETS[targets](task.diagram, task.reward, task.manipulable)
        if unknown := [sorted(target) for target in targets if target not in task.targets]:
            allowed = [sorted(target) for target in task.targets]
            raise ArgumentError(f"targets must be among those of {task.env_id}, {allowed}; given {unknown}")
        return targets

    def initial_rounds(self) -> Sequence[Round]:
        return few_observations(self.task)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        model = self._models[int(action["target"])]
        is_initial = len(self.history) < self._initial
        super().update(action, observation, reward, info)
        model.observe(action, observation, float(reward))
        self._stale |= self.learns_from_interventions
        # Of the observations that the agent made, only the first max_observations change the causal prior.
        if model is not self._empty_model or is_initial or self._needs_observations:
            self.effects.add(action, observation, float(reward))
            # Without observations the prior is flat, the mean of all rewards.
            self._stale |= model is self._empty_model or not self._observation_count

    def update_partial(self, action: Action, observation: Observation, info: Info) -> None:
        """Let the causal priors learn from a round of an earlier campaign, or one that only observed."""
        assert isinstance(self.effects, ObservationalModel)
        if "differs" in observation:
            self.effects.learn_mechanisms(action, observation)
        else:
            self.effects.add(action, observation, float(observation["nodes"][-1]))
        self._stale = True

    def act(self, observation: Observation) -> Action:
        can_observe = self._empty_model is not None and self._within_limits([self._empty_model])
        observes = can_observe and (not self._explored or self.rng.random() < self.epsilon)
        if observes or not self.history:
            return self.begin()
        rounds = len(self.history) - self._initial
        augmented = self.in_common and rounds < EARLY and rounds % 2 == 0
        return self.improve(self._within_limits(self._explored) or self._within_limits(self._models), augmented)

    def improve(self, models: Sequence[InterventionSetModel], augmented: bool = False) -> Action:
        """Return the action of these models' sets with the greatest expected improvement per unit of cost."""
        best = self.incumbent()
        proposals = [model.maximise(best, self.rng, augmented) for model in models]
        return max(proposals, key=lambda proposal: proposal[1])[0]

    def _within_limits(self, models: Sequence[InterventionSetModel]) -> Sequence[InterventionSetModel]:
        """Return the models of the sets that the limits of actions allow."""
        limits, targets = self.task.codec.limits, self.task.targets
        return [model for model in models if limits is None or limits.can_set(targets[model.index])]

    def begin(self) -> Action:
        """Return the action that sets nothing; a random one if the empty set cannot be played."""
        if self._empty_model is not None and self._within_limits([self._empty_model]):
            return self._empty_model.act()
        return first_action(self.task, int(self.rng.integers(2**31)))

    def incumbent(self) -> float:
        """Return the expected reward that is to be improved upon."""
        return float(self.estimated_rewards().max())

    @property
    def explored(self) -> frozenset[frozenset[str]]:
        """The target sets of the task whose improvement is maximised."""
        return frozenset(self.task.targets[model.index] for model in self._explored)

    @property
    def _observation_count(self) -> int:
        return len(self.effects.observations)

    @property
    def _needs_observations(self) -> bool:
        return self._observation_count < self.max_observations

    @property
    def epsilon(self) -> float:
        """The probability of observing in this round."""
        if not self._needs_observations:
            return 0.0
        if not self._domains or self._observation_count <= len(self._domains):
            return 1.0
        observed = self.effects.observations[:, [self.task.nodes.index(name) for name in self._domains]]
        covered = coverage(observed.cpu().numpy(), list(self._domains.values()))
        return SCALINGS[self.scaling](covered, self._observation_count / self.max_observations)

    def estimated_rewards(self) -> np.ndarray:
        """Return posterior means of E[Y | action], shape ``(len(history),)``.

        Actions on sets that are not explored are estimated from observations alone. Such a set may have a few initial
        rewards, and the one with the luckiest noise would otherwise seem the best.
        """
        self._refresh()
        return self.at_rounds(lambda model: model.estimates() if model in self._explored else model.prior_means())

    def at_rounds(self, estimates_of: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Return a number for each round of ``history``; the function returns those of a model's set, in order."""
        targets = np.array([int(past.action["target"]) for past in self.history], dtype=int)
        numbers = np.empty(len(targets))
        for index in np.unique(targets):
            numbers[targets == index] = estimates_of(self._models[index])
        return numbers

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray]:
        self._refresh()
        posterior = np.empty((2, len(actions)))
        with torch.no_grad():
            for model, columns, values in self._by_model(actions):
                posterior[:, columns] = torch.stack(model.posterior(values)).cpu().numpy()
        return posterior[0], posterior[1]

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> Mapping[str, np.ndarray] | None:
        self._refresh()
        rng = np.random.default_rng(seed)
        draws = {self.task.reward: np.full((count, len(actions)), np.nan)}
        # Sets that share a GP are drawn together.
        shared: dict[tuple[str, int], list[tuple[np.ndarray, GPQuery]]] = defaultdict(list)
        with torch.no_grad():
            for model, columns, values in self._by_model(actions):
                if isinstance(model, EmptySetModel):
                    draws[self.task.reward][:, columns] = model.draw(count, len(columns), rng, noise)
                    continue
                if not (queries := model.gp_queries(values)):
                    return None
                for node, query in queries.items():
                    shared[node, id(query.gp)].append((columns, query))
            for (node, _), columns_and_queries in shared.items():
                columns_of_sets, queries_of_sets = zip(*columns_and_queries, strict=True)
                inputs = torch.cat([query.inputs for query in queries_of_sets])
                means = torch.cat([query.means for query in queries_of_sets])
                samples = means + draw_joint(queries_of_sets[0].gp, inputs, count, rng, noise)
                node_draws = draws.setdefault(node, np.full((count, len(actions)), np.nan))
                node_draws[:, np.concatenate(columns_of_sets)] = samples.cpu().numpy()
        return draws

    def leave_one_out(self) -> Mapping[str, LeaveOneOut]:
        """Return predictions of the rewards of interventions; rounds that only observed are left out."""
        self._refresh()
        gps: dict[str, dict[int, RewardGP]] = defaultdict(dict)
        with torch.no_grad():
            for model, _, values in self._by_model([past.action for past in self.history]):
                queries = {} if isinstance(model, EmptySetModel) else model.gp_queries(values)
                for node, query in queries.items():
                    gps[node][id(query.gp)] = query.gp
            return {
                node: LeaveOneOut.join([predict_left_out(gp, gp.rewards) for gp in by_id.values()])
                for node, by_id in gps.items()
            }

    def _by_model(self, actions: Sequence[Action]) -> Iterator[tuple[Any, np.ndarray, torch.Tensor]]:
        """Yield, for each target set of the actions, its model, the indices of its actions, and their values."""
        targets = np.array([int(action["target"]) for action in actions])
        values = np.stack([action["values"] for action in actions])
        for index in np.unique(targets):
            indices, model = np.flatnonzero(targets == index), self._models[index]
            yield model, indices, model.members_of(values[indices])

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        natives = self.task.codec.domains.to_native(action["values"].tolist())
        target = self.task.targets[int(action["target"])]
        values = zip(self.task.manipulable, map(float, natives), strict=True)
        set_values = {name: value for name, value in values if name in target}
        return set_values | {self.task.reward: float(self.reward_posterior([action])[0][0])}

    def _refresh(self) -> None:
        rewards = [past.reward for past in self.history] or [0.0]
        spread, mean = float(np.std(rewards)), float(np.mean(rewards))
        # The spread of constant rewards is a rounding error.
        unit = spread if spread > 1e-12 * abs(mean) else 1.0
        for model in self._models:
            model.adjust(mean, unit)
            if self._stale and model in self._explored:
                model.refresh()
        if self._stale and self.in_common:
            noises = [noise for model in self._explored if (noise := model.unexplained_noise()) is not None]
            self._gp.expected_noise = float(np.median(noises)) if noises else None
        self._stale = False


def coverage(observed: np.ndarray, domains: Sequence[Interval]) -> float:
    """Return the share of a box that the convex hull of observations fills.

    Args:
        observed: points, shape ``(n, d)``; they are clipped to the box.
        domains: low and high of each of the d coordinates.

    Returns:
        a number in [0, 1]; 0 for a hull without volume. For one coordinate the hull is an interval.
    """
    box = Domains(domains)
    columns = zip(box.scales, box.intervals, observed.T, strict=True)
    points = np.array([scale.to_unit(np.clip(column, *ends)) for scale, ends, column in columns]).T
    # A hull has no volume along categories: there the share that was observed counts.
    observed_shares = [len(np.unique(points[:, index])) / count for index, count in box.category_counts.items()]
    numbers = [index for index in range(len(box)) if index not in box.category_counts]
    return float(np.prod(observed_shares)) * (_hull_volume(points[:, numbers]) if numbers else 1.0)


def _hull_volume(points: np.ndarray) -> float:
    if not len(points):
        return 0.0
    if points.shape[1] == 1:
        return float(np.ptp(points))
    if len(points) <= points.shape[1]:
        return 0.0
    try:
        return min(1.0, float(ConvexHull(points).volume))
    except QhullError:
        # The points lie in a plane.
        return 0.0
