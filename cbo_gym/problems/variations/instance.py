"""Instances: a problem under a random transform of names, orders and units, so that no agent can know its optimum.

An instance is drawn by its number, as in COCO (Hansen et al. 2021); instance 0 is the published problem. In any other
instance

* nodes have neutral names, another topological order and other units: scaled, shifted and perhaps reflected. The units
  of variables that can be set are also nonlinear ("bent") if the agents' knowledge of the noise, the composition, the
  costs and the constraints stays true under it;
* soft parameters, targets, scopes and arms have another order;
* the reward, and with it the optimum, is scaled and shifted, unless it is in [0, 1] or comes from a known Gaussian
  process;
* noise, compositions, constraints and costs are transformed accordingly.

Masked mode keeps units, discrete mode only reflects them, and dynamic mode keeps the order of variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from cbo_gym._util.arguments import whole_number
from cbo_gym.actions import Domains, Interval
from cbo_gym.actions.costs import Costs
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import Problem
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.problems.outcomes import Outcomes, PlayedSlice
from cbo_gym.problems.transform import NODES, SETS, TRANSFORM, Transform, instance_generator
from cbo_gym.scm import Zero
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.noise import multiply
from cbo_gym.scm.separable import SeparableSEM
from cbo_gym.scm.transform import rename_diagram
from cbo_gym.scm.units import IDENTITY, Unit
from cbo_gym.task import Constraint, GraphKnowledge

INSTANCE_KEYWORD = "instance"
MAX_INSTANCE = 2**32 - 1
# Name of the reward in an instance.
REWARD = "R"
# Ranges of the factors of units, and of shifts as multiples of the scaled domain.
SCALES, SHIFTS = (0.5, 2.0), (-2.0, 2.0)
# Range of the absolute value of ``Unit.bend``; the slopes of a bent unit differ by a factor of up to 2.6.
BENDS = (0.3, 0.6)


def transform_problem(
    problem: Problem, rules_class: type[InstanceRules], instance: int = 0, truth: Problem | None = None
) -> Problem:
    """Return an instance of a problem.

    Args:
        problem: the published problem, with any knowledge of its graph.
        rules_class: the rules of the mode in which it is played.
        instance: number of the instance, 0 to 2**32 - 1; 0 is the problem itself.
        truth: the same problem with its graph known, from which the transform is drawn; None for ``problem``.

    Raises:
        ArgumentError: for another number, or data of a mode that cannot be transformed.
    """
    number = whole_number(INSTANCE_KEYWORD, instance, at_least=0, at_most=MAX_INSTANCE)
    if number == 0:
        return problem
    if problem.limits:
        raise ArgumentError(
            f"{problem.name} has limits, which are in its own units and names, so that it has no instances; leave "
            "instance at 0"
        )
    rules = rules_class(rules_class.prepare(truth or problem), number)
    return rules.apply(rules.draw(), rules_class.prepare(problem))


class InstanceRules:
    """Rules by which a random transform of a problem is drawn. A subclass has the rules of a feedback mode."""

    #: Whether the reward keeps its unit.
    keeps_reward: bool = False
    #: Whether units of soft parameters may be bent.
    bends_parameters: ClassVar[bool] = True
    #: Whether the observed variables keep their order.
    keeps_order: ClassVar[bool] = False
    #: Whether an action without a reference value costs its price per unit times its distance from 0.
    prices_from_zero: ClassVar[bool] = False

    def __init__(self, problem: Problem, instance: int) -> None:
        self.problem, self.instance = problem, instance
        self.rng = instance_generator(instance, TRANSFORM)
        self.priced = problem.outcomes.costs is not None
        self.super_arms = problem.data(SuperArms)

    @staticmethod
    def prepare(problem: Problem) -> Problem:
        """Return the problem with the mode's default data, if it has none."""
        return problem

    @property
    def names(self) -> Sequence[str]:
        """The observed variables, the reward last."""
        return self.problem.scm.nodes

    @property
    def manipulable(self) -> Mapping[str, Interval]:
        """Native intervals of the variables that may be set."""
        return self.problem.manipulable

    @property
    def kept_coordinates(self) -> int:
        """Number of soft parameters at the end of the list that keep their positions and units."""
        return 0

    def copies(self, name: str) -> list[str]:
        """Return the variables of the system that a name stands for: in dynamic mode, one for each slice."""
        return [name]

    def draw(self) -> Transform:
        """Draw a transform.

        Raises:
            ArgumentError: for a problem with typed domains, which cannot be transformed.
        """
        if typed := Domains(self.manipulable).typed | self.problem.domains.typed:
            raise ArgumentError(
                f"{self.problem.name} has {', '.join(map(repr, typed.values()))}, which have no other units, so it has "
                "no instances; leave instance at 0"
            )
        # The order of the draws fixes the instances.
        names = self._draw_names()
        units = self.units()
        coordinates = self._draw_coordinates()
        names |= self._parameter_names(coordinates)
        reward = IDENTITY if self.keeps_reward else self._draw_linear_unit((0.0, 1.0))
        if reward is not IDENTITY:
            units |= dict.fromkeys(self.copies(self.names[-1]), reward)
        return Transform(self.instance, names, units, reward, coordinates)

    def _draw_names(self) -> dict[str, str]:
        """Draw the new name of each variable, latent ones included."""
        *others, reward = self.names
        numbers = self.rng.permutation(len(others)) + 1
        names: dict[str, str] = {}
        for old, new in zip([*others, reward], [*(f"V{number}" for number in numbers), REWARD], strict=True):
            # The copies of X in slices are X_0, X_1, ...
            names |= {name: new + name[len(old) :] for name in self.copies(old)}
        signals = self.super_arms.exogenous if self.super_arms else ()
        latents = [name for name in dict.fromkeys([*(v.name for v in self.problem.scm.variables), *signals])
                   if name not in names]  # fmt: skip
        return names | {name: f"U{number}" for number, name in enumerate(latents, start=1)}

    def units(self) -> dict[str, Unit]:
        """Draw the units of all nodes except the reward."""
        if self.super_arms:
            return {}
        units: dict[str, Unit] = {}
        for name in self.names[:-1]:
            bend = self._draw_bend() if name in self.manipulable and self.may_bend(name) else 0.0
            linear = self._draw_linear_unit(self.manipulable.get(name, (0.0, 1.0)))
            unit = replace(linear, reflected=bool(self.rng.random() < 0.5), bend=bend)
            units |= dict.fromkeys(self.copies(name), unit)
        return units

    def may_bend(self, name: str) -> bool:
        """Return whether the agents' knowledge stays true if the unit of a manipulable variable is bent."""
        return False

    def _draw_linear_unit(self, domain: Sequence[float]) -> Unit:
        """Draw a scaled and shifted unit, rounded to four digits."""
        low, high = domain
        size = float(np.exp(self.rng.uniform(*np.log(SCALES))))
        span = float(f"{size * (high - low):.4g}")
        first = float(f"{span * self.rng.uniform(*SHIFTS):.4g}")
        return Unit((float(low), float(high)), (first, first + span))

    def _draw_bend(self) -> float:
        return float(self.rng.choice([-1.0, 1.0]) * self.rng.uniform(*BENDS))

    def _draw_coordinates(self) -> tuple[tuple[int, Unit], ...]:
        """Draw the new index and the unit of each soft parameter."""
        domains = self.problem.action_domains
        changed = len(domains) - self.kept_coordinates
        indices = [*self.rng.permutation(changed).tolist(), *range(changed, len(domains))]
        units = [IDENTITY if self.super_arms else self._draw_parameter_unit(domain) for domain in domains[:changed]]
        return tuple(zip(indices, [*units, *[IDENTITY] * self.kept_coordinates], strict=True))

    def _draw_parameter_unit(self, domain: Sequence[float]) -> Unit:
        linear = self._draw_linear_unit(domain)
        bends = self.bends_parameters and not (self.priced or self.problem.kernel)
        bend = self._draw_bend() if bends else 0.0
        return replace(linear, reflected=bool(self.rng.random() < 0.5), bend=bend)

    def _parameter_names(self, coordinates: Sequence[tuple[int, Unit]]) -> dict[str, str]:
        letter, first = ("P", 1) if self.problem.action_names else ("a", 0)
        names = self.problem.domains.names
        return {name: f"{letter}{index + first}" for name, (index, _) in zip(names, coordinates, strict=True)}

    def apply(self, transform: Transform, old: Problem) -> Problem:
        """Return the problem ``old`` with all fields transformed."""
        names = transform.names
        units = zip(old.action_domains, transform.coordinates, strict=True)
        nodes = self._draw_order(transform, old.scm.nodes, old.scm.diagram)
        changed = [v for v in old.scm.variables if v.observed and v.name in transform.units]
        return replace(
            old,
            transform=transform,
            scm=transform.system(old.scm, nodes),
            action_domains=transform.reorder([domain if unit is IDENTITY else unit.new for domain, (_, unit) in units]),
            action_names=transform.reorder([names[name] for name in old.action_names]),
            null_action=transform.point(old.null_action),
            manipulable=transform.domains(old.manipulable),
            targets=transform.shuffle([transform.rename(target) for target in old.targets], SETS),
            optimal_action=None if old.optimal_action is None else transform.point(old.optimal_action),
            optimal_do=None if old.optimal_do is None else transform.values(old.optimal_do),
            composition=None if old.composition is None else transform.composition(old.composition, old.scm.nodes[:-1]),
            noise_known=old.noise_known and all(multiply(v.noise, 1.0) is not None for v in changed),
            outcomes=self._transform_outcomes(transform, old),
            knowledge=None if old.knowledge is None else self._transform_knowledge(transform, old.knowledge),
            modes=[new for data in old.modes if (new := data.transform(transform)) is not None],
        )

    def _draw_order(self, transform: Transform, nodes: Sequence[str], diagram: CausalDiagram) -> Sequence[str]:
        """Return old names in another topological order, the reward last; nodes of base arms have the arms' order."""
        *others, reward = nodes
        if isinstance(self.problem.scm, SeparableSEM):
            return [*transform.reorder(others), reward]
        if self.keeps_order:
            return nodes
        order: list[str] = []
        rng = instance_generator(transform.instance, NODES)
        while len(order) < len(others):
            free = [name for name in others if name not in order and set(diagram.parents(name)) <= set(order)]
            order.append(free[rng.integers(len(free))])
        return [*order, reward]

    def _transform_knowledge(self, transform: Transform, knowledge: GraphKnowledge) -> GraphKnowledge:
        *others, reward = knowledge.nodes
        if self.super_arms:
            follows_arms = len(others) == len(transform.coordinates)
            order: Sequence[str] = [*(transform.reorder(others) if follows_arms else others), reward]
        elif knowledge.diagram is not None:
            order = self._draw_order(transform, knowledge.diagram.nodes, knowledge.diagram)
        else:
            order = [*sorted(others, key=transform.names.__getitem__), reward]
        nodes = tuple(transform.names[name] for name in order)
        diagram = None if knowledge.diagram is None else rename_diagram(knowledge.diagram, transform.names, nodes)
        candidates = tuple(rename_diagram(candidate, transform.names, nodes) for candidate in knowledge.candidates)
        return GraphKnowledge(nodes, diagram, candidates)

    def _transform_outcomes(self, transform: Transform, old: Problem) -> Outcomes:
        outcomes = old.outcomes
        changed: dict[str, Any] = {
            "objective": transform.names[outcomes.objective],
            "constraints": tuple(_transform_constraint(transform, constraint) for constraint in outcomes.constraints),
            "costs": None if outcomes.costs is None else self._transform_costs(transform, old, outcomes.costs),
        }
        if isinstance(outcomes, PlayedSlice):
            changed["bare"] = transform.names[outcomes.bare]
        return replace(outcomes, **changed)

    def _transform_costs(self, transform: Transform, old: Problem, costs: Costs) -> Costs:
        soft = dict(zip(old.domains.names, (unit for _, unit in transform.coordinates), strict=True))
        units = {**soft, **transform.units}
        # A price per unit without a reference is for the distance from 0, which is another number in the new unit.
        zeros = dict.fromkeys(costs.per_unit, 0.0) if self.prices_from_zero else {}
        references = {**zeros, **costs.reference}
        reference = {name: float(units.get(name, IDENTITY).to_new(x)) for name, x in references.items()}
        per_unit = {name: price / abs(units.get(name, IDENTITY).slope) for name, price in costs.per_unit.items()}

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


class SettingInstanceRules(InstanceRules):
    """Rules of modes that set variables to any value in their domains."""

    prices_from_zero = True

    def may_bend(self, name: str) -> bool:
        constrained = {constraint.node for constraint in self.problem.outcomes.constraints}
        if self.problem.composition is not None or self.priced or name in constrained:
            return False
        copies = self.copies(name)
        is_noiseless = all(isinstance(v.noise, Zero) for v in self.problem.scm.variables if v.name in copies)
        return is_noiseless or not self.problem.noise_known


def _transform_constraint(transform: Transform, constraint: Constraint) -> Constraint:
    unit = transform.unit(constraint.node)
    side = {"<=": ">=", ">=": "<="}[constraint.side] if unit.reflected else constraint.side
    return Constraint(transform.names[constraint.node], side, float(unit.to_new(constraint.threshold)))  # type: ignore[arg-type]
