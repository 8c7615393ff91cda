"""Instances: the same task under a random symmetry, so that its optimum is not known beforehand.

An instance is drawn by its number, as in COCO (Hansen et al. 2021); instance 0 is the published problem. In the others
nodes have neutral names, another topological order and other units: scaled, shifted, reflected, and bent where they are
set and nothing known becomes false. Soft parameters, targets, scopes and arms have another order. The reward, and with
it the optimum, is scaled and shifted, unless it is in [0, 1] or comes from a known Gaussian process.
Noise, compositions, constraints and costs are transformed too. Masked mode keeps units, discrete mode only reflects,
and dynamic mode keeps the order of variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cbo_gym._util.arguments import whole_number
from cbo_gym.actions.costs import Costs
from cbo_gym.problems.base import Problem
from cbo_gym.problems.modes.adversarial import Adversary
from cbo_gym.problems.modes.discrete import arms_of
from cbo_gym.problems.modes.dynamic import Slices
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.problems.outcomes import Outcomes, PlayedSlice
from cbo_gym.problems.transform import NODES, SETS, SETTING, TRANSFORM, Transform, instance_generator
from cbo_gym.problems.variations.masking import with_random_signals
from cbo_gym.scm import Zero
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.noise import multiply
from cbo_gym.scm.separable import SeparableSEM
from cbo_gym.scm.transform import rename_diagram
from cbo_gym.scm.units import SAME, Unit
from cbo_gym.task import Constraint, GraphKnowledge, Mode

INSTANCE_KEYWORD = "instance"
MAX_INSTANCE = 2**32 - 1
REWARD = "R"
# Ranges of scales, and of shifts in units of the shifted range.
SIZES, SHIFTS = (0.5, 2.0), (-2.0, 2.0)
# Range of bends in either direction; slopes differ by a factor of up to 2.6.
BENDS = (0.3, 0.6)
# Modes whose rewards are in [0, 1].
UNIT_REWARDS = (Mode.DISCRETE, Mode.ADVERSARIAL)


def transform_problem(problem: Problem, mode: Mode, instance: int = 0, truth: Problem | None = None) -> Problem:
    """Return an instance of a problem.

    Args:
        problem: The published problem, with any knowledge of its graph.
        mode: Mode in which it is played.
        instance: Number of the instance, 0 to 2**32 - 1; 0 is the problem itself.
        truth: The same with its graph known, from which the transform is drawn; None for ``problem``.

    Raises:
        ArgumentError: for another number, or data of a mode that cannot be transformed.
    """
    number = whole_number(INSTANCE_KEYWORD, instance, at_least=0, at_most=MAX_INSTANCE)
    if number == 0:
        return problem
    if mode is Mode.MASKED and problem.data(SuperArms) is None:
        problem = with_random_signals(problem)
        truth = None
    transform = _Draw(truth or problem, mode, number).transform()
    return _apply(transform, problem, mode)


class _Draw:
    """A random transform; the mode and the agents' knowledge decide which properties may change."""

    def __init__(self, problem: Problem, mode: Mode, instance: int) -> None:
        self.problem, self.mode, self.instance = problem, mode, instance
        self.rng = instance_generator(instance, TRANSFORM)
        self.priced = problem.outcomes.costs is not None
        self.super_arms = problem.data(SuperArms)
        self.slices = problem.data(Slices) if mode is Mode.DYNAMIC else None
        # The observed variables, those of a slice once, the reward last.
        self.names = list(self.slices.names if self.slices else problem.scm.nodes)

    def transform(self) -> Transform:
        names = self._names()
        units = self._units()
        coordinates = self._coordinates()
        names |= self._parameter_names(coordinates)
        known_gp = self.mode is Mode.AGGREGATED and self.problem.kernel
        reward = SAME if self.mode in UNIT_REWARDS or known_gp else self._straight((0.0, 1.0))
        if reward is not SAME:
            units |= dict.fromkeys(self._of_slices(self.names[-1]), reward)
        return Transform(self.instance, names, units, reward, coordinates)

    def _of_slices(self, name: str) -> list[str]:
        return [name, *(f"{name}_{index}" for index in range(self.slices.count if self.slices else 0))]

    def _names(self) -> dict[str, str]:
        *others, reward = self.names
        numbers = self.rng.permutation(len(others)) + 1
        names: dict[str, str] = {}
        for old, new in zip([*others, reward], [*(f"V{number}" for number in numbers), REWARD], strict=True):
            names |= {name: new + name[len(old) :] for name in self._of_slices(old)}
        signals = self.super_arms.exogenous if self.super_arms else ()
        latents = [name for name in dict.fromkeys([*(v.name for v in self.problem.scm.variables), *signals])
                   if name not in names]  # fmt: skip
        return names | {name: f"U{number}" for number, name in enumerate(latents, start=1)}

    def _units(self) -> dict[str, Unit]:
        """Return units of the nodes but the reward."""
        if self.super_arms:
            return {}
        if self.mode is Mode.DISCRETE:
            return self._reflections()
        domains = (self.slices or self.problem).manipulable
        units: dict[str, Unit] = {}
        for name in self.names[:-1]:
            bend = self._bend() if name in domains and self._may_bend(name) else 0.0
            straight = self._straight(domains.get(name, (0.0, 1.0)))
            unit = replace(straight, reflected=bool(self.rng.random() < 0.5), bend=bend)
            units |= dict.fromkeys(self._of_slices(name), unit)
        return units

    def _may_bend(self, name: str) -> bool:
        """Return whether the agents' knowledge stays true if a variable that is set is bent."""
        if self.mode not in SETTING or self.problem.composition is not None or self.priced:
            return False
        if name in {constraint.node for constraint in self.problem.outcomes.constraints}:
            return False
        variables = self._of_slices(name)
        noiseless = all(isinstance(v.noise, Zero) for v in self.problem.scm.variables if v.name in variables)
        return noiseless or not self.problem.noise_known

    def _reflections(self) -> dict[str, Unit]:
        """Return units of the variables that arms set, reflected within their smallest and largest values."""
        values: dict[str, list[float]] = {}
        for arm in arms_of(self.problem):
            for name, value in arm.items():
                values.setdefault(name, []).append(value)
        spans = {
            name: (min(settings), max(settings)) for name, settings in values.items() if max(settings) > min(settings)
        }
        return {name: Unit(span, span, True) for name, span in spans.items() if self.rng.random() < 0.5}

    def _straight(self, domain: Sequence[float]) -> Unit:
        low, high = domain
        size = float(np.exp(self.rng.uniform(*np.log(SIZES))))
        span = float(f"{size * (high - low):.4g}")
        first = float(f"{span * self.rng.uniform(*SHIFTS):.4g}")
        return Unit((float(low), float(high)), (first, first + span))

    def _bend(self) -> float:
        return float(self.rng.choice([-1.0, 1.0]) * self.rng.uniform(*BENDS))

    def _coordinates(self) -> tuple[tuple[int, Unit], ...]:
        domains = self.problem.action_domains
        adversary = self.problem.data(Adversary) if self.mode is Mode.ADVERSARIAL else None
        # The adversary's coordinates stay, else equally bad moves would come in another order.
        agent_dim = len(domains) - (adversary.coordinates if adversary else 0)
        indices = [*self.rng.permutation(agent_dim).tolist(), *range(agent_dim, len(domains))]
        units = [SAME if self.super_arms else self._soft_unit(domain) for domain in domains[:agent_dim]]
        return tuple(zip(indices, [*units, *[SAME] * (len(domains) - agent_dim)], strict=True))

    def _soft_unit(self, domain: Sequence[float]) -> Unit:
        straight = self._straight(domain)
        bends = not (self.mode is Mode.ADVERSARIAL or self.priced or self.problem.kernel)
        bend = self._bend() if bends else 0.0
        return replace(straight, reflected=bool(self.rng.random() < 0.5), bend=bend)

    def _parameter_names(self, coordinates: Sequence[tuple[int, Unit]]) -> dict[str, str]:
        letter, first = ("P", 1) if self.problem.action_names else ("a", 0)
        names = self.problem.domains.names
        return {name: f"{letter}{index + first}" for name, (index, _) in zip(names, coordinates, strict=True)}


def _apply(transform: Transform, old: Problem, mode: Mode) -> Problem:
    """Return the transformed problem, field by field."""
    names = transform.names
    units = zip(old.action_domains, transform.coordinates, strict=True)
    nodes = _order(transform, old, mode, old.scm.nodes, old.scm.diagram)
    changed = [v for v in old.scm.variables if v.observed and v.name in transform.units]
    return replace(
        old,
        transform=transform,
        scm=transform.system(old.scm, nodes),
        action_domains=transform.reorder([domain if unit is SAME else unit.new for domain, (_, unit) in units]),
        action_names=transform.reorder([names[name] for name in old.action_names]),
        null_action=transform.point(old.null_action),
        manipulable=transform.domains(old.manipulable),
        targets=transform.shuffle([transform.rename(target) for target in old.targets], SETS),
        optimal_action=None if old.optimal_action is None else transform.point(old.optimal_action),
        optimal_do=None if old.optimal_do is None else transform.values(old.optimal_do),
        composition=None if old.composition is None else transform.composition(old.composition, old.scm.nodes[:-1]),
        noise_known=old.noise_known and all(multiply(v.noise, 1.0) is not None for v in changed),
        outcomes=_outcomes(transform, old, mode),
        knowledge=None if old.knowledge is None else _knowledge(transform, old, mode, old.knowledge),
        modes=[data.transform(transform) for data in old.modes if not isinstance(data, Slices) or mode is Mode.DYNAMIC],
    )


def _order(
    transform: Transform, old: Problem, mode: Mode, nodes: Sequence[str], diagram: CausalDiagram
) -> Sequence[str]:
    """Old names in another topological order, the reward last; nodes of base arms go with these."""
    *others, reward = nodes
    if isinstance(old.scm, SeparableSEM):
        return [*transform.reorder(others), reward]
    if mode is Mode.DYNAMIC:
        return nodes
    order: list[str] = []
    rng = instance_generator(transform.instance, NODES)
    while len(order) < len(others):
        free = [name for name in others if name not in order and set(diagram.parents(name)) <= set(order)]
        order.append(free[rng.integers(len(free))])
    return [*order, reward]


def _knowledge(transform: Transform, old: Problem, mode: Mode, knowledge: GraphKnowledge) -> GraphKnowledge:
    *others, reward = knowledge.nodes
    if old.data(SuperArms):
        goes_with_arms = len(others) == len(transform.coordinates)
        order: Sequence[str] = [*(transform.reorder(others) if goes_with_arms else others), reward]
    elif knowledge.diagram is not None:
        order = _order(transform, old, mode, knowledge.diagram.nodes, knowledge.diagram)
    else:
        order = [*sorted(others, key=transform.names.__getitem__), reward]
    nodes = tuple(transform.names[name] for name in order)
    diagram = None if knowledge.diagram is None else rename_diagram(knowledge.diagram, transform.names, nodes)
    candidates = tuple(rename_diagram(candidate, transform.names, nodes) for candidate in knowledge.candidates)
    return GraphKnowledge(nodes, diagram, candidates)


def _outcomes(transform: Transform, old: Problem, mode: Mode) -> Outcomes:
    outcomes = old.outcomes
    changed: dict[str, Any] = {
        "objective": transform.names[outcomes.objective],
        "constraints": tuple(_constraint(transform, constraint) for constraint in outcomes.constraints),
        "costs": None if outcomes.costs is None else _costs(transform, old, mode, outcomes.costs),
    }
    if isinstance(outcomes, PlayedSlice):
        changed["bare"] = transform.names[outcomes.bare]
    return replace(outcomes, **changed)


def _constraint(transform: Transform, constraint: Constraint) -> Constraint:
    unit = transform.unit(constraint.node)
    side = {"<=": ">=", ">=": "<="}[constraint.side] if unit.reflected else constraint.side
    return Constraint(transform.names[constraint.node], side, float(unit.to_new(constraint.threshold)))  # type: ignore[arg-type]


def _costs(transform: Transform, old: Problem, mode: Mode, costs: Costs) -> Costs:
    soft = dict(zip(old.domains.names, (unit for _, unit in transform.coordinates), strict=True))
    units = {**soft, **transform.units}
    # A variable that is set is priced from 0 if it has no reference, which is another number now.
    origins = dict.fromkeys(costs.per_unit, 0.0) if mode in (*SETTING, Mode.DISCRETE) else {}
    reference = {name: float(units.get(name, SAME).to_new(x)) for name, x in {**origins, **costs.reference}.items()}
    per_unit = {name: price / abs(units.get(name, SAME).slope) for name, price in costs.per_unit.items()}

    def by_name(prices: Mapping[str, float]) -> dict[str, float]:
        return {transform.names[name]: price for name, price in prices.items()}

    return replace(
        costs,
        variables=by_name(costs.variables),
        sets={transform.rename(names): price for names, price in costs.sets.items()},
        per_unit=by_name(per_unit),
        reference=by_name(reference),
        observed=by_name(costs.observed),
    )
