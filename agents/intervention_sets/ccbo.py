"""cCBO: constrained causal Bayesian optimisation (Aglietti, Malek, Ktena & Chiappa 2023).

CBO on the constrained minimal intervention sets, in which every variable affects the reward or a constrained node given
the others, with models of the reward and of the constrained nodes. A round plays the set and the values with the
greatest constrained expected improvement, E[max(f - f*, 0) 1(feasible)], where f* is the best feasible value so far
(sec. 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym._util.arguments import require_truth_value
from cbo_gym._util.summation import add_up
from cbo_gym.agents.calibration.data_noise import standard_error
from cbo_gym.agents.common.feasibility import CAUTION, log_feasibility, standardised_slack, violations
from cbo_gym.agents.intervention_sets.acquisition import log_expected_improvement
from cbo_gym.agents.intervention_sets.causal_prior import Effect, GPQuery, ObservationalModel
from cbo_gym.agents.intervention_sets.cbo import CBO, GivenCosts
from cbo_gym.agents.intervention_sets.multi_task import MultiTaskGPs, Priors, SeparateGPs
from cbo_gym.agents.intervention_sets.set_models import EmptySetModel, SetModel, SharedConfig
from cbo_gym.scm.scopes import minimal_among
from cbo_gym.task import Action, Constraint, HardTask, Info, Observation

# Number of samples of the constrained nodes for the expectation under the multi-task model.
DRAWS = 64
# Log acquisition value of an infeasible action, per unit by which it exceeds the limits of the variables that it sets.
LOG_INFEASIBLE = -1e6


class CCBO(CBO):
    """Constrained expected improvement on GPs of the reward and the constrained nodes. Plays hard tasks.

    Args:
        multi_task: whether the reward and the constrained nodes of a target set share one GP, which learns their
            correlations; False for one GP each.
        causal_prior: whether prior means and variances come from the observations; False for constant means.
        costs: costs of the target sets, as for CBO.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range; by :meth:`reset` if ``costs`` name a variable that the task does
            not have.
        HiddenGraphError: by :meth:`reset` if the diagram is hidden.
    """

    takes_partial = True
    effects: OutcomeEffects

    def __init__(
        self,
        multi_task: bool = False,
        causal_prior: bool = True,
        costs: GivenCosts | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(costs=costs, in_common=False, device=device)
        self.multi_task = require_truth_value("multi_task", multi_task)
        self.causal_prior = require_truth_value("causal_prior", causal_prior)
        # Constant prior means are means over all rounds, so every round changes them.
        self.learns_from_interventions = not causal_prior

    def make_effects(self) -> OutcomeEffects:
        return OutcomeEffects(self.task, self.causal_prior, self.device)

    def make_empty_set_model(self, index: int, cost: float) -> EmptySetModel:
        return ConstrainedEmptySetModel(self.task, index, cost, self.effects)

    def make_set_model(self, config: SharedConfig, index: int, seed: int) -> SetModel:
        return ConstrainedSetModel(config, index, seed, self.effects, self.multi_task)

    def choose_targets(self) -> Collection[frozenset[str]]:
        constrained = [constraint.node for constraint in self.task.constraints]
        return minimal_among(self.task.diagram, self.task.reward, self.task.targets, constrained)

    @property
    def epsilon(self) -> float:
        """1 before the first observation, then 0, because the empty set is then chosen by its improvement."""
        return 0.0 if self._observation_count else 1.0

    def update_partial(self, action: Action, observation: Observation, info: Info) -> None:
        """Learn the constrained nodes that an intervention affects; causal priors need complete observations."""
        model = self._models[int(action["target"])]
        if isinstance(model, ConstrainedSetModel):
            model.learn(action, observation, partial=True)

    def incumbent(self) -> float:
        """Return the best estimate among played actions with feasible posterior means; minus infinity without any."""
        estimates = self.estimated_rewards()
        violations = self.at_rounds(lambda model: model.violations(caution=0.0))
        return float(np.max(estimates[violations == 0.0], initial=-math.inf))

    def estimated_violations(self) -> np.ndarray:
        self._refresh()
        return self.at_rounds(lambda model: model.violations(CAUTION))

    def _refresh(self) -> None:
        nodes = np.array([past.observation["nodes"] for past in self.history])
        spread = nodes.std(axis=0)
        units = np.where(spread > 1e-12 * np.abs(nodes.mean(axis=0)), spread, 1.0)
        unit_of = dict(zip(self.task.nodes, units.tolist(), strict=True))
        for model in self._models:
            if isinstance(model, ConstrainedSetModel):
                model.adjust_outcomes(unit_of)
        super()._refresh()


class OutcomeEffects:
    """Effects of interventions on the reward and on the constrained nodes.

    Args:
        task: the task.
        from_observations: whether effects are estimated from observations; if False, each is the mean of the node over
            all rounds, with standard deviation 0.
        device: torch device.
    """

    def __init__(self, task: HardTask, from_observations: bool, device: str) -> None:
        self._task = task
        self._from_observations = from_observations
        nodes = dict.fromkeys([task.reward, *(constraint.node for constraint in task.constraints)])
        self._models = {node: ObservationalModel(replace(task, reward=node), device) for node in nodes}
        self._sums = dict.fromkeys(nodes, 0.0)
        self._rounds = 0

    @property
    def observations(self) -> Tensor:
        return self._models[self._task.reward].observations

    def add(self, action: Action, observation: Observation, reward: float) -> None:
        self._rounds += 1
        for node, model in self._models.items():
            value = float(observation["nodes"][self._task.nodes.index(node)])
            self._sums[node] += value
            model.add(action, observation, value)

    def effect(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        return self.effect_on(self._task.reward, target, values)

    def effect_on(self, node: str, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """Return :meth:`effect` for ``node`` instead of the reward."""
        if self._from_observations:
            return self._models[node].effect(target, values)
        mean = self._sums[node] / max(1, self._rounds)
        return torch.full_like(values[:, 0], mean), torch.zeros_like(values[:, 0])

    def observational_mean(self, node: str) -> tuple[float, float]:
        """Return the mean of a node without intervention, and its standard error.

        With fewer than two observations the error is infinite; without any, the mean is 0.
        """
        observed = self.observations[:, self._task.nodes.index(node)]
        if len(observed) < 2:
            return float(observed.sum()), math.inf
        return float(observed.mean()), max(float(observed.std()) / math.sqrt(len(observed)), 1e-12)


class ConstrainedEmptySetModel(EmptySetModel):
    """Model of the empty set, whose feasibility is estimated from the observations."""

    def __init__(self, task: HardTask, index: int, cost: float, effects: OutcomeEffects) -> None:
        super().__init__(task, index, cost)
        self._effects, self._constraints = effects, task.constraints

    def violations(self, caution: float) -> np.ndarray:
        return np.full(len(self._rewards), natural_violation(self._constraints, self._effects, caution))

    def maximise(self, best: float, rng: np.random.Generator, augmented: bool = False) -> tuple[Action, float]:
        feasible = natural_log_feasibility(self._constraints, self._effects)
        if best == -math.inf:
            return self.act(), feasible
        action, improvement = super().maximise(best, rng, augmented)
        return action, improvement + feasible


class ConstrainedSetModel(SetModel):
    """Model of a set of variables: GPs of the reward and of the constrained nodes that the set affects."""

    _effects: OutcomeEffects

    def __init__(self, config: SharedConfig, index: int, seed: int, effects: OutcomeEffects, multi_task: bool) -> None:
        super().__init__(config, index, seed)
        task, device, target = config.task, config.device, self._target
        affected = task.diagram.mutilate(target).descendants(target) - target
        # Constraints on set variables, on other nodes that the set affects, and on nodes that it does not affect.
        self._on_set_variables = [constraint for constraint in task.constraints if constraint.node in target]
        self._modelled = [constraint for constraint in task.constraints if constraint.node in affected]
        self._unaffected = [constraint for constraint in task.constraints if constraint.node not in target | affected]
        # The reward is last, so that it is conditioned on the constrained nodes.
        self._outcomes = [*(constraint.node for constraint in self._modelled), task.reward]
        self._columns = [task.nodes.index(node) for node in self._outcomes]
        self._priors_of: list[Effect] = [partial(effects.effect_on, node, target) for node in self._outcomes]
        model: type[MultiTaskGPs | SeparateGPs] = MultiTaskGPs if multi_task else SeparateGPs
        names = [f"{node} | do({', '.join(sorted(target))})" for node in self._outcomes]
        self._joint = model(names, len(self._members), self._priors_of, device, self._categories)
        count = DRAWS if multi_task else 1
        engine = SobolEngine(max(1, len(self._modelled)), scramble=True, seed=seed)
        self._draws = engine.draw(count, dtype=torch.float64).clamp(1e-6, 1.0 - 1e-6).to(device)

    def observe(self, action: Action, observation: Observation, reward: float) -> None:
        self.learn(action, observation, partial=False)

    def learn(self, action: Action, observation: Observation, partial: bool) -> None:
        """Learn from a round in which the set was played; a ``partial`` round has no reward."""
        outcomes = [float(observation["nodes"][column]) for column in self._columns]
        errors = [standard_error(observation, column) for column in self._columns]
        self._joint.observe(self._values_of(action), outcomes, errors, partial)

    def adjust(self, mean: float, unit: float) -> None:
        """Do nothing: :meth:`adjust_outcomes` adjusts the reward with the other nodes."""

    def adjust_outcomes(self, units: Mapping[str, float]) -> None:
        """Set the scale of each outcome, the standard deviation of its values in all rounds."""
        self._joint.adjust([units[node] for node in self._outcomes])

    def refresh(self) -> None:
        self._priors: Priors = [effect(self._candidates) for effect in self._priors_of]
        self._prior = self._priors[-1]
        self._joint.refresh()

    def estimates(self) -> np.ndarray:
        return self._at_data()[0][:, -1].cpu().numpy()

    def prior_means(self) -> np.ndarray:
        return self._priors_of[-1](self._joint.complete_values)[0].cpu().numpy()

    def violations(self, caution: float) -> np.ndarray:
        """Return the estimated total violation in each round in which the set was played; see :func:`violations`."""
        mean, root = self._at_data()
        std = root.square().sum(-1).sqrt()
        modelled = violations(self._modelled, mean[:, :-1], std[:, :-1], caution)
        fixed = natural_violation(self._unaffected, self._effects, caution)
        return (modelled + self._excess(self._joint.complete_values)).cpu().numpy() + fixed

    def _excess(self, values: Tensor) -> Tensor:
        """Return the total excess of values ``n x d`` over the limits of their variables, in native units, ``(n,)``."""
        columns = dict(zip(self._scales, values.unbind(-1), strict=True))
        excesses = [
            constraint.excess(self._scales[constraint.node].to_native(columns[constraint.node])).clamp_min(0.0)
            for constraint in self._on_set_variables
        ]
        return torch.stack([torch.zeros(len(values)).to(values), *excesses]).sum(0)

    def _predict(self, values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        mean, root = self._predict_outcomes(values, prior)
        return mean[:, -1], root[:, -1].square().sum(-1).sqrt()

    def _predict_outcomes(self, values: Tensor, prior: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        # A prior is given only at the candidates, where the priors of all outcomes are cached.
        return self._joint.predict(values, None if prior is None else self._priors)

    def gp_queries(self, values: Tensor) -> dict[str, GPQuery]:
        if not isinstance(self._joint, SeparateGPs):
            return {}
        return dict(zip(self._outcomes, self._joint.queries(values.to(self._candidates)), strict=True))

    def _at_data(self) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return self._joint.predict(self._joint.complete_values)

    def _log_gain(self, values: Tensor, best: float, augmented: bool, prior: tuple[Tensor, Tensor] | None) -> Tensor:
        mean, root = self._predict_outcomes(values, prior)
        gain = log_constrained_improvement(mean, root, self._modelled, best, self._draws)
        natural = natural_log_feasibility(self._unaffected, self._effects)
        return gain + natural + LOG_INFEASIBLE * self._excess(values)


def natural_log_feasibility(constraints: Sequence[Constraint], effects: OutcomeEffects) -> float:
    """Return the log probability that the nodes meet the constraints without intervention."""
    total = 0.0
    for constraint in constraints:
        mean, error = torch.tensor(effects.observational_mean(constraint.node), dtype=torch.float64)
        total += float(log_feasibility(constraint, mean, error))
    return total


def natural_violation(constraints: Sequence[Constraint], effects: OutcomeEffects, caution: float) -> float:
    """Return the total violation of constraints on nodes without intervention, at ``caution`` standard errors.

    Nodes with fewer than two observations are left out, because their standard error is infinite.
    """
    excesses = []
    for constraint in constraints:
        mean, error = effects.observational_mean(constraint.node)
        excesses.append(constraint.excess(mean) + caution * error)
    return float(add_up(max(0.0, excess) for excess in excesses if math.isfinite(excess)))


def log_constrained_improvement(
    mean: Tensor, root: Tensor, constraints: Sequence[Constraint], best: float, draws: Tensor
) -> Tensor:
    """Return log E[max(f - best, 0) 1(constraints are met)] for k constrained nodes and f that are jointly normal.

    Each node is sampled from its conditional distribution given the nodes before it, truncated at its threshold. Given
    all nodes, f is normal, so its expected improvement has a closed form. If nodes and f are independent, one sample
    gives the exact value.

    Args:
        mean: means of the k nodes and, last, of f, ``n x (k + 1)``.
        root: lower triangular Cholesky factors of the covariances, ``n x (k + 1) x (k + 1)``.
        constraints: the k constraints.
        best: value to improve upon; minus infinity for the log probability of feasibility alone.
        draws: uniform numbers in (0, 1) for s samples, ``s x max(k, 1)``.

    Returns:
        tensor of shape ``(n,)``.
    """
    log_weight = mean.new_zeros((len(mean), len(draws)))
    standard_normals = mean.new_zeros((len(mean), len(draws), 0))
    for k, (constraint, uniforms) in enumerate(zip(constraints, draws.T, strict=False)):
        conditional_mean = mean[:, [k]] + (standard_normals @ root[:, k, :k, None]).squeeze(-1)
        slack = standardised_slack(constraint, conditional_mean, root[:, [k], k])
        log_weight = log_weight + torch.special.log_ndtr(slack)
        truncated = torch.special.ndtri((uniforms.log() + torch.special.log_ndtr(slack)).exp().clamp_min(1e-300))
        sample = truncated if constraint.side == "<=" else -truncated
        standard_normals = torch.cat([standard_normals, sample[..., None]], -1)
    if best > -math.inf:
        conditional_mean = mean[:, [-1]] + (standard_normals @ root[:, -1, :-1, None]).squeeze(-1)
        log_weight = log_weight + log_expected_improvement(conditional_mean, root[:, [-1], -1], best)
    return log_weight.logsumexp(-1) - math.log(len(draws))
