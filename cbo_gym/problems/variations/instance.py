"""Instances: the same task turned by known symmetries, so that nobody can know where its optimum lies.

As in COCO (Hansen, Auger, Ros, Mersmann, Tusar & Brockhoff 2021), an instance is drawn by its number; instance 0 is the
problem as published. In the others nodes have neutral names, another topological order and other units (scaled,
shifted, reflected, and bent where they are set and nothing that is told becomes false); soft parameters, target sets,
scopes and arms have another order; rewards become s times the reward plus t, s above 0, unless they are known to lie in
[0, 1] or to be drawn from a Gaussian process that is told. Noise, compositions, constraints and costs go with it. The
greatest expected reward is exactly s times that of the problem plus t. Masked systems keep the nodes' units, discrete
mode only reflects, and in dynamic mode variables keep their order in a slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cbo_gym.actions.costs import Costs
from cbo_gym.actions.units import SAME, TransformedComposition, Unit
from cbo_gym.arguments import whole_number
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import ModeData, Problem
from cbo_gym.problems.modes.adversarial import Adversary
from cbo_gym.problems.modes.contextual import Contexts
from cbo_gym.problems.modes.discrete import Arms, arms_of
from cbo_gym.problems.modes.dynamic import Slices
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.problems.outcomes import Outcomes, PlayedSlice
from cbo_gym.problems.variations.masking import with_random_signals
from cbo_gym.scm import Zero
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.noise import Distribution, scaled
from cbo_gym.scm.scopes import Scope
from cbo_gym.scm.separable import SeparableSEM
from cbo_gym.scm.transform import TransformedSystem, renamed
from cbo_gym.task import Constraint, GraphKnowledge, Mode

INSTANCE_KEYWORD = "instance"
MOST = 2**32 - 1
REWARD = "R"
INSTANCE_STREAM = 7  # keeps instances apart from all else that is drawn from small numbers
TURN, NODES, DOMAINS, SETS, ARMS, CONTEXTS = range(6)  # random streams of an instance
SIZES, SHIFTS = (0.5, 2.0), (-2.0, 2.0)  # of scales, and of shifts in units of what is shifted
BENDS = (0.3, 0.6)  # either way; slopes differ by a factor of up to 2.6
WITHIN = (Mode.DISCRETE, Mode.ADVERSARIAL)  # modes whose rewards lie in [0, 1]
SETTING = (Mode.HARD, Mode.CONTEXTUAL, Mode.DYNAMIC)  # modes in which variables are set to any value
Record = Any  # an action as the registry writes it


@dataclass(frozen=True)
class Transform:
    """How an instance differs from its problem.

    Attributes:
        names: name of every variable, and of a soft parameter with a name of its own -> its new one.
        units: old name of a node -> its unit.
        reward: unit of the reward.
        coordinates: for each old soft parameter its new place and its unit.
        masked: whether soft parameters are a super arm.
    """

    names: Mapping[str, str]
    units: Mapping[str, Unit]
    reward: Unit
    coordinates: tuple[tuple[int, Unit], ...]
    masked: bool = False

    @property
    def keeps_measure(self) -> bool:
        """Whether random actions earn what they earned, in the reward's new unit."""
        return not any(unit.bend for unit in (*self.units.values(), *(unit for _, unit in self.coordinates)))

    def unit(self, name: str) -> Unit:
        return self.units.get(name, SAME)

    def point(self, point: Sequence[float]) -> tuple[float, ...]:
        """Soft parameters in [0, 1], each at its new place."""
        turned = [0.0] * len(point)
        for value, (place, unit) in zip(point, self.coordinates, strict=True):
            (low, high), (first, last) = unit.old, unit.new
            share = (unit.to_new(low + (high - low) * value) - first) / (last - first) if unit is not SAME else value
            turned[place] = min(max(float(share), 0.0), 1.0)
        return tuple(turned)

    def assigned(self, values: Mapping[str, float]) -> dict[str, float]:
        """Native values by variable."""
        return {self.names[name]: float(self.unit(name).to_new(value)) for name, value in values.items()}

    def record(self, record: Record, mode: Mode, parameters: Sequence[str]) -> Record:
        """An action as the registry writes it.

        Args:
            record: of the problem itself.
            mode: in which it is played.
            parameters: names of the soft parameters, where they have any of their own.
        """
        if isinstance(record, str):
            return f"as in instance 0, turned: {record}"
        if isinstance(record, Mapping):
            own = dict(zip(parameters, self.coordinates, strict=False)) if mode not in SETTING else {}
            soft = {
                self.names[name]: float(own[name][1].to_new(value)) for name, value in record.items() if name in own
            }
            return soft | self.assigned({name: value for name, value in record.items() if name not in own})
        if mode is Mode.AGGREGATED:
            ends = np.sort([self.point(end) for end in np.reshape(record, (2, -1)).tolist()], axis=0)
            return ends.ravel().tolist()
        return list(self.point(record))


def turned(problem: Problem, mode: Mode, instance: int = 0, truth: Problem | None = None) -> Problem:
    """An instance of a problem.

    Args:
        problem: as it is published; what is told of its graph may be anything.
        mode: in which it is played.
        instance: its number, 0 to 2**32 - 1; 0 is the problem itself.
        truth: the same with its graph known, from which it follows what may be turned; None for ``problem``.

    Raises:
        ArgumentError: for another number.
    """
    number = whole_number(INSTANCE_KEYWORD, instance, at_least=0, at_most=MOST)
    if number == 0:
        return problem
    if mode is Mode.MASKED and problem.data(SuperArms) is None:
        problem = with_random_signals(problem)
        truth = None
    transform = _Draw(truth or problem, mode, _generator(number, TURN)).transform()
    return _Turning(problem, mode, transform, number).problem()


def _generator(instance: int, stream: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(instance, spawn_key=(INSTANCE_STREAM, stream)))


def transform_of(problem: Problem) -> Transform | None:
    """How an instance differs from its problem; None of one that is as published."""
    return getattr(problem.scm, "transform", None)


class TransformedInstance(TransformedSystem):
    """A system that knows how it was turned."""

    transform: Transform

    def __reduce__(self) -> tuple[object, ...]:
        return _with_transform, (super().__reduce__()[1], self.transform)


def _with_transform(arguments: tuple[Any, ...], transform: Transform) -> TransformedInstance:
    system = TransformedInstance(*arguments)
    system.transform = transform
    return system


class _Draw:
    """Draws a transform: what may be turned follows from the mode and from what agents are told."""

    def __init__(self, problem: Problem, mode: Mode, rng: np.random.Generator) -> None:
        self.problem, self.mode, self.rng = problem, mode, rng
        self.priced = problem.outcomes.costs is not None
        self.masked = problem.data(SuperArms) is not None
        self.slices = problem.data(Slices) if mode is Mode.DYNAMIC else None

    def transform(self) -> Transform:
        names = self._names()
        units = self._units()
        coordinates = self._coordinates()
        names |= self._parameter_names(coordinates)
        reward = self._straight((0.0, 1.0)) if self._reward_turns() else SAME
        units |= {name: reward for name in self._of_slices(self._bare()[-1]) if reward is not SAME}
        return Transform(names, units, reward, coordinates, self.masked)

    def _bare(self) -> list[str]:
        """The observed variables, those of a slice once, the reward last."""
        return list(self.slices.names if self.slices else self.problem.scm.nodes)

    def _of_slices(self, name: str) -> list[str]:
        return [name, *(f"{name}_{place}" for place in range(self.slices.count if self.slices else 0))]

    def _names(self) -> dict[str, str]:
        *others, reward = self._bare()
        numbers = self.rng.permutation(len(others)) + 1
        bare = {name: f"V{number}" for name, number in zip(others, numbers, strict=True)} | {reward: REWARD}
        names: dict[str, str] = {}
        for old, new in bare.items():
            own = self._of_slices(old)
            names |= dict(zip(own, [new] if own == [old] else [new, *(new + one[len(old) :] for one in own[1:])],
                              strict=True))  # fmt: skip
        signals = list(arms.exogenous) if (arms := self.problem.data(SuperArms)) else []
        latents = [v.name for v in self.problem.scm.variables if v.name not in names]
        latents += [name for name in signals if name not in (*names, *latents)]
        return names | {name: f"U{place}" for place, name in enumerate(latents, start=1)}

    def _units(self) -> dict[str, Unit]:
        """Of the nodes but the reward."""
        if self.masked:
            return {}
        if self.mode is Mode.DISCRETE:
            return self._reflections()
        units: dict[str, Unit] = {}
        for name in self._bare()[:-1]:
            domain = self._domain(name)
            bend = self._bend() if self._may_bend(name) else 0.0
            straight = self._straight(domain or (0.0, 1.0))
            unit = replace(straight, reflected=bool(self.rng.random() < 0.5), bend=bend)
            units |= dict.fromkeys(self._of_slices(name), unit)
        return units

    def _domain(self, name: str) -> tuple[float, float] | None:
        domains = (self.slices or self.problem).manipulable
        return tuple(domains[name]) if name in domains else None  # type: ignore[return-value]

    def _may_bend(self, name: str) -> bool:
        """A variable that is set, where nothing is told that would become false."""
        told = self.problem.composition is not None or self.priced
        limited = {constraint.node for constraint in self.problem.outcomes.constraints}
        silent = all(isinstance(v.noise, Zero) for v in self.problem.scm.variables if v.name in self._of_slices(name))
        free = self.mode in SETTING and self._domain(name) is not None
        return free and not told and name not in limited and (silent or not self.problem.noise_known)

    def _reflections(self) -> dict[str, Unit]:
        """Of variables that arms set, between the least and the largest value that they are set to."""
        values: dict[str, list[float]] = {}
        for arm in arms_of(self.problem):
            for name, value in arm.items():
                values.setdefault(name, []).append(value)
        spans = {name: (min(own), max(own)) for name, own in values.items() if max(own) > min(own)}
        return {name: Unit(span, span, True) for name, span in spans.items() if self.rng.random() < 0.5}

    def _straight(self, domain: tuple[float, float]) -> Unit:
        low, high = domain
        size = float(np.exp(self.rng.uniform(*np.log(SIZES))))
        span = float(f"{size * (high - low):.4g}")
        first = float(f"{span * self.rng.uniform(*SHIFTS):.4g}")
        return Unit((float(low), float(high)), (first, first + span))

    def _bend(self) -> float:
        return float(self.rng.choice([-1.0, 1.0]) * self.rng.uniform(*BENDS))

    def _reward_turns(self) -> bool:
        return self.mode not in WITHIN and not (self.mode is Mode.AGGREGATED and self.problem.kernel)

    def _coordinates(self) -> tuple[tuple[int, Unit], ...]:
        domains = self.problem.action_domains
        adversary = self.problem.data(Adversary) if self.mode is Mode.ADVERSARIAL else None
        own = len(domains) - (adversary.coordinates if adversary else 0)
        places = [*self.rng.permutation(own).tolist(), *range(own, len(domains))]
        # the adversary's stay as they are: moves that are equally bad would come in another order
        units = [self._soft_unit(domain) if place < own else SAME for place, domain in enumerate(domains)]
        return tuple(zip(places, units, strict=True))

    def _soft_unit(self, domain: Sequence[float]) -> Unit:
        if self.masked:
            return SAME
        straight = self._straight((domain[0], domain[1]))
        bends = not (self.mode is Mode.ADVERSARIAL or self.priced or self.problem.kernel)
        bend = self._bend() if bends else 0.0
        return replace(straight, reflected=bool(self.rng.random() < 0.5), bend=bend)

    def _parameter_names(self, coordinates: Sequence[tuple[int, Unit]]) -> dict[str, str]:
        names = self.problem.domains.names
        form = "P{}" if self.problem.action_names else "a{}"
        start = 1 if self.problem.action_names else 0
        return {name: form.format(place + start) for name, (place, _) in zip(names, coordinates, strict=True)}


class _Turning:
    """Makes the problem that a transform gives, field by field."""

    def __init__(self, problem: Problem, mode: Mode, transform: Transform, instance: int) -> None:
        self.old, self.mode, self.transform, self.instance = problem, mode, transform, instance
        self.names = transform.names

    def problem(self) -> Problem:
        old, transform = self.old, self.transform
        return replace(
            old,
            scm=self._system(old.scm),
            action_domains=self._placed([unit.new if unit is not SAME else domain for (_, unit), domain
                                         in zip(transform.coordinates, old.action_domains, strict=True)]),
            action_names=self._placed([self.names[name] for name in old.action_names]) if old.action_names else (),
            null_action=transform.point(old.null_action),
            manipulable=self._domains(old.manipulable),
            targets=self._shuffled([self._set(target) for target in old.targets], SETS),
            optimal_action=None if old.optimal_action is None else transform.point(old.optimal_action),
            optimal_do=None if old.optimal_do is None else transform.assigned(old.optimal_do),
            composition=None if old.composition is None else self._composition(old.composition),
            noise_known=old.noise_known and self._noise_can_be_told(),
            outcomes=self._outcomes(old.outcomes),
            told=None if old.told is None else self._told(old.told),
            modes=[self._data(data) for data in old.modes if not isinstance(data, Slices) or self.mode is Mode.DYNAMIC],
        )  # fmt: skip

    def _placed(self, items: Sequence[Any]) -> list[Any]:
        places = [place for place, _ in self.transform.coordinates]
        return [items[places.index(place)] for place in range(len(items))]

    def _shuffled(self, items: Sequence[Any], stream: int) -> list[Any]:
        return [items[place] for place in _generator(self.instance, stream).permutation(len(items))]

    def _set(self, names: frozenset[str]) -> frozenset[str]:
        return frozenset(self.names[name] for name in names)

    def _domains(self, domains: Mapping[str, Any]) -> dict[str, Any]:
        pairs = [(self.names[name], self._interval(name, domain)) for name, domain in domains.items()]
        return dict(self._shuffled(pairs, DOMAINS))

    def _interval(self, name: str, domain: Sequence[float]) -> tuple[float, float]:
        unit = self.transform.units.get(name)
        if unit is None:
            return domain[0], domain[1]
        low, high = sorted((float(unit.to_new(domain[0])), float(unit.to_new(domain[1]))))
        return low, high

    def _system(self, system: Any) -> TransformedInstance:
        nodes = self._order(system.nodes, system.diagram)
        coordinates = self.transform.coordinates if self.old.action_domains else ()
        arguments = (system, self.names, self.transform.units, nodes, coordinates, self._told_noise(system))
        return _with_transform(arguments, self.transform)

    def _order(self, nodes: Sequence[str], diagram: CausalDiagram) -> list[str]:
        """Old names in another topological order, the reward last; where nodes go with base arms, in their order."""
        *others, reward = nodes
        if isinstance(self.old.scm, SeparableSEM):
            return [*self._placed(others), reward]
        if self.mode is Mode.DYNAMIC:
            return list(nodes)
        found: list[str] = []
        rng = _generator(self.instance, NODES)
        while len(found) < len(others):
            free = [one for one in others if one not in found and set(diagram.parents(one)) <= set(found)]
            found.append(free[rng.integers(len(free))])
        return [*found, reward]

    def _told_noise(self, system: Any) -> dict[str, Distribution]:
        slopes = {name: unit.slope for name, unit in self.transform.units.items() if not unit.bend}
        told = {v.name: scaled(v.noise, slopes[v.name]) for v in system.variables if v.name in slopes}
        return {name: noise for name, noise in told.items() if noise is not None}

    def _noise_can_be_told(self) -> bool:
        turned_ones = [v for v in self.old.scm.variables if v.observed and v.name in self.transform.units]
        return all(scaled(v.noise, 1.0) is not None for v in turned_ones)

    def _composition(self, known: Callable[..., Any]) -> TransformedComposition:
        nodes = {name: (self.names[name], self.transform.unit(name)) for name in self.old.scm.nodes[:-1]}
        return TransformedComposition(known, nodes, self.transform.reward)

    def _data(self, data: ModeData) -> ModeData:
        """A mode's data of the problem, turned; how to transform data of an outside mode is not known."""
        turners: dict[type, Callable[[Any], ModeData]] = {
            SuperArms: lambda arms: replace(arms, exogenous=self._placed([self.names[one] for one in arms.exogenous])),
            Contexts: self._contexts,
            Arms: lambda arms: Arms(self._shuffled([self.transform.assigned(arm) for arm in arms.interventions], ARMS)),
            Adversary: lambda adversary: replace(adversary, luck=self.names[adversary.luck]),
            Slices: self._slices,
        }
        if type(data) not in turners:
            raise ArgumentError(
                f"{self.old.name} has no instances: it is not known how to transform {type(data).__name__}"
            )
        return turners[type(data)](data)

    def _scope(self, scope: Scope) -> Scope:
        return frozenset((self.names[variable], self._set(given)) for variable, given in scope)

    def _contexts(self, contexts: Contexts) -> Contexts:
        policy = _Policy(self.transform, contexts)
        return replace(
            contexts,
            names=self._shuffled([self.names[name] for name in contexts.names], CONTEXTS),
            scopes=self._shuffled([self._scope(scope) for scope in contexts.scopes], SETS),
            noise_given=policy.noise_given,
            best_response=policy.best_response if contexts.best_response else None,
            policy=None if contexts.policy is None else self.transform.record(contexts.policy, self.mode, ()),
            value=None if contexts.value is None else float(self.transform.reward.to_new(contexts.value)),
        )

    def _outcomes(self, outcomes: Outcomes) -> Outcomes:
        changed: dict[str, Any] = {
            "objective": self.names[outcomes.objective],
            "constraints": tuple(map(self._constraint, outcomes.constraints)),
            "costs": None if outcomes.costs is None else self._costs(outcomes.costs),
        }
        if isinstance(outcomes, PlayedSlice):
            changed["bare"] = self.names[outcomes.bare]
        return replace(outcomes, **changed)

    def _constraint(self, constraint: Constraint) -> Constraint:
        unit = self.transform.unit(constraint.node)
        flipped = {"<=": ">=", ">=": "<="}[constraint.side] if unit.reflected else constraint.side
        threshold = float(unit.to_new(constraint.threshold))
        return Constraint(self.names[constraint.node], flipped, threshold)  # type: ignore[arg-type]

    def _costs(self, costs: Costs) -> Costs:
        units = dict(zip(self.old.domains.names, (unit for _, unit in self.transform.coordinates), strict=True))
        units |= self.transform.units

        def by_name(prices: Mapping[str, float]) -> dict[str, float]:
            return {self.names[name]: price for name, price in prices.items()}

        def unit(name: str) -> Unit:
            return units.get(name, SAME)

        # where variables are set, what nobody refers to is 0, which is another number now
        origins = dict.fromkeys(costs.per_unit, 0.0) if self.mode in (*SETTING, Mode.DISCRETE) else {}
        reference = {**origins, **costs.reference}
        return replace(
            costs,
            variables=by_name(costs.variables),
            sets={self._set(names): price for names, price in costs.sets.items()},
            per_unit=by_name({name: price / abs(unit(name).slope) for name, price in costs.per_unit.items()}),
            reference=by_name({name: float(unit(name).to_new(value)) for name, value in reference.items()}),
            observed=by_name(costs.observed),
        )

    def _told(self, told: GraphKnowledge) -> GraphKnowledge:
        *others, reward = told.nodes
        if told.diagram is not None and not self.transform.masked:
            order = self._order(told.diagram.nodes, told.diagram)
        elif self.transform.masked:
            order = (
                [*self._placed(others), reward] if len(others) == len(self.transform.coordinates) else [*others, reward]
            )
        else:
            order = [*sorted(others, key=self.names.__getitem__), reward]
        nodes = tuple(self.names[name] for name in order)
        diagram = None if told.diagram is None else renamed(told.diagram, self.names, nodes)
        return GraphKnowledge(nodes, diagram, tuple(renamed(one, self.names, nodes) for one in told.candidates))

    def _slices(self, slices: Slices) -> Slices:
        return replace(
            slices,
            names=[self.names[name] for name in slices.names],
            manipulable=self._domains(slices.manipulable),
            targets=self._shuffled([self._set(target) for target in slices.targets], SETS),
            history=self._system(slices.history),
        )


@dataclass(frozen=True)
class _Policy:
    """The noise given contexts, and the best response to them, by new names and in new units."""

    transform: Transform
    known: Contexts

    def _old(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: self.transform.unit(name).to_old(columns[self.transform.names[name]]) for name in self.known.names
        }

    def noise_given(self, contexts: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
        back = {new: old for old, new in self.transform.names.items()}
        assert self.known.noise_given is not None, "a played problem knows its mechanisms"
        found = self.known.noise_given(self._old(contexts), {back[name]: row for name, row in numbers.items()})
        return {self.transform.names[name]: draws for name, draws in found.items()}

    def best_response(self, contexts: Mapping[str, Any]) -> dict[str, Any]:
        assert self.known.best_response is not None
        found = self.known.best_response(self._old(contexts))
        return {self.transform.names[name]: self.transform.unit(name).to_new(value) for name, value in found.items()}
