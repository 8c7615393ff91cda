"""cCBO: constrained causal Bayesian optimisation (Aglietti, Malek, Ktena & Chiappa 2023).

As CBO, with models of the constrained nodes beside that of the reward, on the constrained minimal intervention sets. A
round plays the set and the values with the greatest constrained expected improvement, E[max(f - f*, 0) 1(feasible)], f*
being the best feasible value so far (sec. 3.3).
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

from cbo_gym.agents.common.feasibility import CAUTION, log_feasibility, standardised_slack, violations
from cbo_gym.agents.intervention_sets.cbo import (
    CBO,
    EmptySetArm,
    GivenCosts,
    OwnArm,
    SetArm,
    Setting,
    log_expected_improvement,
)
from cbo_gym.agents.intervention_sets.multi_task import MultiTaskGPs, Priors, SeparateGPs
from cbo_gym.agents.surrogates.causal.causal_prior import Effect, ObservationalModel
from cbo_gym.arguments import require_truth_value
from cbo_gym.scm.scopes import is_minimal
from cbo_gym.sums import add_up
from cbo_gym.task import Action, Constraint, HardTask, Info, Observation

DRAWS = 64  # of the constrained nodes, for the expectation under the multi-task model
CERTAINLY_NOT = -1e6  # log probability of an action that sets a variable beyond its limit, times how far beyond


class CCBO(CBO):
    """Constrained expected improvement on GPs of the reward and the constrained nodes. Plays hard tasks.

    Args:
        multi_task: one GP per target set for all outcomes, with their correlations, in place of one for each.
        causal_prior: take prior means and variances from the observations; False for constant means.
        costs: as for CBO.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range; by :meth:`reset` if ``costs`` name what the task does not have.
        HiddenGraphError: by :meth:`reset` if the task tells no diagram.
    """

    def __init__(
        self,
        multi_task: bool = False,
        causal_prior: bool = True,
        costs: GivenCosts | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(costs=costs, in_common=False, device=device)  # each set has GPs of all outcomes
        self.multi_task = require_truth_value("multi_task", multi_task)
        self.causal_prior = require_truth_value("causal_prior", causal_prior)
        self.learns_from_interventions = not causal_prior  # constant prior means are those of all rounds

    def make_model(self) -> OutcomeEffects:
        return OutcomeEffects(self.task, self.causal_prior, self.device)

    def make_empty_arm(self, index: int) -> EmptySetArm:
        return ConstrainedEmptySetArm(self.task, index, self.cost_of_observing, self._model)  # type: ignore[arg-type]

    def make_arm(self, index: int, seed: int) -> SetArm:
        return ConstrainedSetArm(self.setting, index, seed, self.multi_task)

    def choose_targets(self) -> Collection[frozenset[str]]:
        diagram, reward, limited = self.task.diagram, self.task.reward, [one.node for one in self.task.constraints]
        return [target for target in self.task.targets if is_minimal(diagram, reward, target, limited)]

    @property
    def epsilon(self) -> float:
        return 0.0 if self._count else 1.0

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        arm = self._arms[int(action["target"])]
        if isinstance(arm, ConstrainedSetArm):
            arm.see(action, observation)
        super().update(action, observation, reward, info)

    def incumbent(self) -> float:
        """The best estimate of an action that is feasible in posterior mean; minus infinity where there is none."""
        estimates = self.estimated_rewards()
        return float(np.max(estimates[self._violations(caution=0.0) == 0.0], initial=-math.inf))

    def estimated_violations(self) -> np.ndarray:
        self._refresh()
        return self._violations(CAUTION)

    def _violations(self, caution: float) -> np.ndarray:
        played = np.array([int(past.action["target"]) for past in self.history], dtype=int)
        found = np.empty(len(played))
        for index in np.unique(played):
            arm = self._arms[index]
            assert isinstance(arm, ConstrainedSetArm | ConstrainedEmptySetArm)
            found[played == index] = arm.violations(caution)
        return found

    def _refresh(self) -> None:
        seen = np.array([past.observation["nodes"] for past in self.history])
        spread = seen.std(axis=0)
        units = np.where(spread > 1e-12 * np.abs(seen.mean(axis=0)), spread, 1.0)
        by_name = dict(zip(self.task.nodes, units.tolist(), strict=True))
        for arm in self._arms:
            if isinstance(arm, ConstrainedSetArm):
                arm.adjust_outcomes(by_name)
        super()._refresh()


class OutcomeEffects:
    """Effects of interventions on the reward and on constrained nodes, estimated from observations.

    They are constant means unless ``informed``.
    """

    def __init__(self, task: HardTask, informed: bool, device: str) -> None:
        self._task = task
        self._informed = informed
        nodes = dict.fromkeys([task.reward, *(one.node for one in task.constraints)])
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

    def informs(self, target: frozenset[str]) -> bool:
        return self._informed and self._models[self._task.reward].informs(target)

    def effect(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        return self.effect_on(self._task.reward, target, values)

    def effect_on(self, node: str, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """:meth:`effect` on any of the nodes."""
        if self._informed:
            return self._models[node].effect(target, values)
        mean = self._sums[node] / max(1, self._rounds)
        return torch.full_like(values[:, 0], mean), torch.zeros_like(values[:, 0])

    def natural(self, node: str) -> tuple[float, float]:
        """Mean of a node where nothing affects it, and its standard error; infinite with too few observations."""
        seen = self.observations[:, self._task.nodes.index(node)]
        if len(seen) < 2:
            return float(seen.sum()), math.inf
        return float(seen.mean()), max(float(seen.std()) / math.sqrt(len(seen)), 1e-12)


class Limits:
    """The constraints as they bear on one target set, with its index among the task's targets.

    Attributes:
        on_values: constraints on variables of the set, each with the variable's place among the set's values.
        natural: constraints on nodes that the set does not affect.
        modelled: the others.
    """

    def __init__(self, task: HardTask, index: int) -> None:
        target = task.targets[index]
        affected = task.diagram.mutilate(target).descendants(target)
        members = [name for name in task.manipulable if name in target]
        self.on_values = [(members.index(one.node), one) for one in task.constraints if one.node in target]
        self.natural = [one for one in task.constraints if one.node not in target | affected]
        self.modelled = [one for one in task.constraints if one.node in affected - target]
        self._scales = [task.codec.domains.scales[list(task.manipulable).index(name)] for name in members]

    def beyond(self, values: Tensor) -> Tensor:
        """By how much points ``n x d`` set variables beyond their limits, in all, in native units: ``(n,)``."""
        native = {place: self._scales[place].to_native(values[:, place]) for place, _ in self.on_values}
        missed = [one.excess(native[place]).clamp_min(0.0) for place, one in self.on_values]
        return torch.stack([torch.zeros(len(values)).to(values), *missed]).sum(0)


class ConstrainedEmptySetArm(EmptySetArm):
    """The empty set: whether observing is feasible, the observations tell."""

    def __init__(self, task: HardTask, index: int, cost: float, model: OutcomeEffects) -> None:
        super().__init__(task, index, cost)
        self._model, self._constraints = model, task.constraints

    def violations(self, caution: float) -> np.ndarray:
        return np.full(len(self._rewards), natural_violation(self._constraints, self._model, caution))

    def maximise(self, best: float, rng: np.random.Generator) -> tuple[Action, float]:
        feasible = natural_log_feasibility(self._constraints, self._model)
        if best == -math.inf:
            return self.act(), feasible
        action, improvement = super().maximise(best, rng)
        return action, improvement + feasible


class ConstrainedSetArm(OwnArm):
    """A set of variables: the models of the reward and of the constrained nodes that it affects."""

    _model: OutcomeEffects

    def __init__(self, setting: Setting, index: int, seed: int, multi_task: bool) -> None:
        super().__init__(setting, index, seed)
        task, model, _, device = setting
        assert isinstance(model, OutcomeEffects)  # as make_model gives it
        self._model, self._limits = model, Limits(task, index)
        target = task.targets[index]
        # the reward last, so that it is conditioned on the constrained nodes
        self._outcomes = [*(one.node for one in self._limits.modelled), task.reward]
        self._columns = [task.nodes.index(node) for node in self._outcomes]
        self._effects: list[Effect] = [partial(model.effect_on, node, target) for node in self._outcomes]
        kind: type[MultiTaskGPs | SeparateGPs] = MultiTaskGPs if multi_task else SeparateGPs
        names = [f"{node} | do({', '.join(sorted(target))})" for node in self._outcomes]
        self._joint = kind(names, len(self._members), self._effects, device)
        self._seen = self._candidates[:0]
        count = DRAWS if multi_task else 1
        engine = SobolEngine(max(1, len(self._limits.modelled)), scramble=True, seed=seed)
        self._draws = engine.draw(count, dtype=torch.float64).clamp(1e-6, 1.0 - 1e-6).to(device)

    def see(self, action: Action, observation: Observation) -> None:
        """Learn from a round in which the set was played."""
        values = self._played(action)
        self._seen = torch.cat([self._seen, values[None]])
        self._joint.observe(values, [float(observation["nodes"][column]) for column in self._columns])

    def observe(self, action: Action, reward: float) -> None:
        """Nothing more: :meth:`see` has learned the reward with the other nodes."""

    def adjust_outcomes(self, units: Mapping[str, float]) -> None:
        """Give each outcome the spread of all that was seen of it as its unit."""
        self._joint.adjust([units[node] for node in self._outcomes])

    def refresh(self) -> None:
        self._priors: Priors = [effect(self._candidates) for effect in self._effects]
        self._prior = self._priors[-1]
        self._joint.refresh()

    def estimates(self) -> np.ndarray:
        return self._at_data()[0][:, -1].cpu().numpy()

    def expectations(self) -> np.ndarray:
        return self._effects[-1](self._seen)[0].cpu().numpy()

    def violations(self, caution: float) -> np.ndarray:
        """Estimates for the rounds in which the set was played, see :func:`violations`."""
        mean, root = self._at_data()
        std = root.square().sum(-1).sqrt()
        modelled = violations(self._limits.modelled, mean[:, :-1], std[:, :-1], caution)
        fixed = natural_violation(self._limits.natural, self._model, caution)
        return (modelled + self._limits.beyond(self._seen)).cpu().numpy() + fixed

    def _predict(self, values: Tensor, prior: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        mean, root = self._predict_outcomes(values, prior)
        return mean[:, -1], root[:, -1].square().sum(-1).sqrt()

    def _predict_outcomes(self, values: Tensor, prior: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        return self._joint.predict(values, None if prior is None else self._priors)

    def _at_data(self) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return self._joint.at_data()

    def _log_improvement(self, values: Tensor, best: float, prior: tuple[Tensor, Tensor] | None) -> Tensor:
        with torch.no_grad():
            mean, root = self._predict_outcomes(values, prior)
        found = log_constrained_improvement(mean, root, self._limits.modelled, best, self._draws)
        beyond = self._limits.beyond(values)
        fixed = natural_log_feasibility(self._limits.natural, self._model)
        return found + fixed + CERTAINLY_NOT * beyond


def natural_log_feasibility(constraints: Sequence[Constraint], model: OutcomeEffects) -> float:
    """Log probability that constraints are met on nodes that nothing affects."""
    total = 0.0
    for one in constraints:
        mean, error = torch.tensor(model.natural(one.node), dtype=torch.float64)
        total += float(log_feasibility(one, mean, error))
    return total


def natural_violation(constraints: Sequence[Constraint], model: OutcomeEffects, caution: float) -> float:
    """By how much constraints on nodes that nothing affects are missed, where the observations are trusted less far."""
    beliefs = [model.natural(one.node) for one in constraints]
    excess = [one.excess(mean) + caution * error for one, (mean, error) in zip(constraints, beliefs, strict=True)]
    return float(add_up(max(0.0, one) for one in excess if math.isfinite(one)))


def log_constrained_improvement(
    mean: Tensor, root: Tensor, constraints: Sequence[Constraint], best: float, draws: Tensor
) -> Tensor:
    """log E[max(f - best, 0) 1(constraints are met)] of jointly normal constrained nodes and f, which comes last.

    The nodes are drawn one after the other from their distributions cut off at the thresholds, given those before;
    then f is normal given them all, and its expected improvement known. Where they are independent one draw is exact.

    Args:
        mean: ``n x (k + 1)``.
        root: lower triangular roots of the covariances, ``n x (k + 1) x (k + 1)``.
        constraints: k of them.
        best: what is to be improved upon; minus infinity for the log probability of feasibility alone.
        draws: numbers in (0, 1), ``s x max(k, 1)``.

    Returns:
        shape ``(n,)``.
    """
    log_weight = mean.new_zeros((len(mean), len(draws)))
    normal = mean.new_zeros((len(mean), len(draws), 0))
    for place, (one, numbers) in enumerate(zip(constraints, draws.T, strict=False)):
        given = mean[:, [place]] + (normal @ root[:, place, :place, None]).squeeze(-1)
        inside = standardised_slack(one, given, root[:, [place], place])
        log_weight = log_weight + torch.special.log_ndtr(inside)
        cut = torch.special.ndtri((numbers.log() + torch.special.log_ndtr(inside)).exp().clamp_min(1e-300))
        normal = torch.cat([normal, (cut if one.side == "<=" else -cut)[..., None]], -1)
    if best > -math.inf:
        given = mean[:, [-1]] + (normal @ root[:, -1, :-1, None]).squeeze(-1)
        log_weight = log_weight + log_expected_improvement(given, root[:, [-1], -1], best)
    return log_weight.logsumexp(-1) - math.log(len(draws))
