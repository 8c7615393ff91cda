"""The interface of a study: spaces, codec and task, from names, bounds and the knowledge of the diagram."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import combinations
from typing import Any

from cbo_gym._util.yaml import KeyPath
from cbo_gym.actions import Costs
from cbo_gym.errors import ArgumentError, did_you_mean
from cbo_gym.modes import classes_of
from cbo_gym.modes.base.interface import Interface
from cbo_gym.problems.base import MAX_TARGETS, ProblemStatement, gaussian_noise, minimal_targets
from cbo_gym.problems.custom.custom import read_scopes
from cbo_gym.problems.modes.contextual import Contexts
from cbo_gym.problems.modes.discrete import Arms
from cbo_gym.problems.outcomes import Outcomes, check_constraints
from cbo_gym.problems.variations.constraints import read_constraints, require_compatible
from cbo_gym.scm import CausalDiagram, Distribution
from cbo_gym.scm.system import Structure
from cbo_gym.study.composition import known_reward
from cbo_gym.study.description import Description, at
from cbo_gym.task import Constraint, GraphKnowledge

# Columns of a study's table that are not variables.
TABLE_COLUMNS = ("number", "status", "why", "reason", "asked", "ended")


class _StudyStructure(Structure):
    """The structure of the system that a study describes."""

    def __init__(self, about: Description, variables: Sequence[str]) -> None:
        diagram = about.diagram or CausalDiagram(variables, [])
        diagram = CausalDiagram(variables, diagram.directed, diagram.bidirected)
        causes = [name for name in diagram.topological_order if name != about.reward]
        self.nodes, self.reward = (*causes, about.reward), about.reward
        self.diagram = CausalDiagram(self.nodes, diagram.directed, diagram.bidirected)
        entered = [parameter.node for parameter in about.parameters.values()]
        self.action_dim = len(entered)
        self.action_nodes = {
            name: tuple(index for index, node in enumerate(entered) if node == name)
            for name in self.nodes
            if name in entered
        }
        stds = {} if about.noise is None else {name: about.noise.get(name, 0.0) for name in self.nodes}
        self._noise = {name: gaussian_noise(std, f"the noise of {name}") for name, std in stds.items()}

    def noise_of_nodes(self) -> dict[str, Distribution]:
        return self._noise


def interface_of(about: Description) -> Interface:
    """Return the interface of a study.

    Raises:
        ArgumentError: naming the fields that contradict each other.
    """
    diagrams = _diagrams(about)
    variables = _variables(about, diagrams)
    with at("noise"):
        structure = _StudyStructure(about, variables)
    constraints = _constraints(about, structure)
    interface_class: type[Interface] = classes_of(about.mode).INTERFACE
    composition = None
    if about.composition is not None:
        if "composition" not in {field.name for field in fields(interface_class.task_class)}:
            raise ArgumentError(f"a composition belongs to the soft mode; this study is {about.mode}")
        sign = -1.0 if about.direction == "minimize" else 1.0
        with at("composition"):
            composition = known_reward(about.composition, about.reward, variables, sign)
    targets: list[frozenset[str]] = []
    if about.settable and not about.arms:
        with at("settable" if about.targets is None else "targets"):
            targets = _targets(about, diagrams, [constraint.node for constraint in constraints])
    statement = ProblemStatement(
        name=about.name,
        scm=structure,
        description="",
        citation="",
        action_domains=[parameter.bounds for parameter in about.parameters.values()],
        action_names=list(about.parameters),
        null_action=_null_action(about),
        manipulable=about.settable,
        targets=targets,
        composition=composition,
        noise_known=about.noise is not None,
        outcomes=Outcomes(about.reward, constraints),
        knowledge=None if about.diagram is not None else GraphKnowledge(tuple(variables), None, tuple(diagrams)),
    )
    if about.arms:
        statement = _with_arms(about, statement)
    if about.contexts:
        statement = _with_contexts(about, statement)
    with at("options"):
        if unknown := [name for name in about.options if name not in interface_class.keywords()]:
            known = interface_class.keywords()
            raise ArgumentError(
                f"{about.mode} mode has no option {unknown[0]!r}{did_you_mean(unknown[0], known)}; it has "
                f"{', '.join(known) or 'none'}"
            )
    make: Callable[[ProblemStatement], Interface] = partial(interface_class, **about.options)
    with at("mode"):
        interface = make(statement)
    if about.costs is None:
        return interface
    # A free variable would be set because it is free, so the default price is 1.
    costs, items = about.costs, (*about.settable, *about.parameters)
    if isinstance(costs, Mapping) and set(costs) <= set(items):
        costs = dict.fromkeys(items, 1.0) | dict(costs)
    with at("costs"):
        return make(replace(statement, outcomes=replace(statement.outcomes, costs=Costs.read(costs))))


def without_effects(about: Description) -> Description:
    """Return the description with the effects of the reward moved to the ignored names.

    Raises:
        ArgumentError: if another field names an effect, or the effects differ between candidates.
    """
    diagrams = _diagrams(about)
    effects_by_diagram = [
        diagram.descendants([about.reward]) - {about.reward} if about.reward in diagram.nodes else frozenset[str]()
        for diagram in diagrams
    ]
    if not any(effects_by_diagram):
        return about
    effects = effects_by_diagram[0]
    if differing := sorted({name for names in effects_by_diagram for name in names ^ effects}):
        raise ArgumentError(
            f"{differing} are effects of the reward {about.reward} in one candidate and not in another; leave them out "
            "of variables and candidates, or write candidates in which the reward has no effects"
        )
    nodes = {node for diagram in diagrams for node in diagram.nodes}
    needed = [(path, name) for path, name in _iter_names(about) if path[0] not in ("noise", "units")]
    for number, constraint in enumerate(about.constraints):
        path: KeyPath = ("constraints", number)
        with at(*path):
            needed += [(path, limit.node) for limit in read_constraints([constraint], nodes)]
    for path, name in needed:
        if name in effects:
            with at(*path):
                raise ArgumentError(
                    f"{path[0]} names {name}, an effect of the reward {about.reward}; effects of the reward cannot "
                    "change it and are not modelled: leave it out there"
                )
    kept = [diagram.subgraph(set(diagram.nodes) - effects) for diagram in diagrams]
    changed: dict[str, Any] = {"candidates": kept} if about.candidates else {"diagram": kept[0]}
    for name, values in (("noise", about.noise), ("units", about.units)):
        changed[name] = values and {variable: value for variable, value in values.items() if variable not in effects}
    changed["variables"] = about.variables and [name for name in about.variables if name not in effects]
    return about.model_copy(update={**changed, "ignored": [*about.ignored, *sorted(effects)]})


def _diagrams(about: Description) -> list[CausalDiagram]:
    if about.diagram is not None and about.candidates:
        raise ArgumentError("give one diagram, or candidates; both were given")
    return about.candidates if about.diagram is None else [about.diagram]


def _variables(about: Description, diagrams: Sequence[CausalDiagram]) -> list[str]:
    """Return the observed variables, the reward last."""
    names = about.variables or (list(diagrams[0].nodes) if diagrams else [])
    if not names:
        raise ArgumentError("give a diagram, or the names of the variables")
    if len(set(names)) < len(names):
        raise ArgumentError(f"variables must be different; given {names}")
    for diagram in diagrams:
        if set(diagram.nodes) != set(names):
            raise ArgumentError(f"the variables are {sorted(names)}, but a diagram has {sorted(diagram.nodes)}")
    if clash := sorted(set(names) & set(about.ignored)):
        raise ArgumentError(
            f"{clash} are both variables and ignored; mark variables that are not measured as [latent] in the diagram"
        )
    for path, name in _iter_names(about):
        is_checked = path[0] not in ("scopes", "arms") and not (path[0] == "units" and name in about.parameters)
        if name not in names and is_checked:
            with at(*path):
                raise ArgumentError(f"{path[0]} names {[name]}{did_you_mean(name, names)}; the variables are {names}")
    if taken := [name for name in names if name in TABLE_COLUMNS]:
        raise ArgumentError(
            f"variables cannot be called {taken}, because a study's table has columns of these names; rename them"
        )
    if about.reward in about.settable:
        with at("settable", about.reward):
            raise ArgumentError(f"the reward {about.reward} is the outcome of a trial; it cannot be set")
    return [*(name for name in names if name != about.reward), about.reward]


def _iter_names(about: Description) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path and the name of each variable that a field other than the diagrams mentions."""
    yield ("reward",), about.reward
    for field in ("settable", "noise", "units"):
        yield from (((field, name), name) for name in getattr(about, field) or ())
    yield from ((("contexts", number), name) for number, name in enumerate(about.contexts))
    yield from ((("parameters", name, "node"), parameter.node) for name, parameter in about.parameters.items())
    for field in ("targets", "scopes", "arms"):
        for number, members in enumerate(getattr(about, field) or ()):
            yield from (((field, number), name) for name in members)


def _constraints(about: Description, structure: Structure) -> tuple[Constraint, ...]:
    for number, constraint in enumerate(about.constraints):
        with at("constraints", number):
            check_constraints(about.name, read_constraints([constraint], structure.nodes), structure)
    with at("constraints"):
        constraints = read_constraints(about.constraints, structure.nodes)
        require_compatible(constraints)
        return constraints


def _null_action(about: Description) -> list[float]:
    null_action = []
    for name, parameter in about.parameters.items():
        low, high = parameter.bounds
        null = low if parameter.null is None else parameter.null
        if not low <= null <= high:
            with at("parameters", name):
                raise ArgumentError(f"the null value of {name} must lie in [{low:g}, {high:g}]; given {null:g}")
        null_action.append((null - low) / (high - low))
    return null_action


def _targets(about: Description, diagrams: Sequence[CausalDiagram], constrained: Sequence[str]) -> list[frozenset[str]]:
    """Return the sets of the description, else the minimal ones by the diagrams; without a diagram, all sets."""
    if about.targets is not None:
        return list(map(frozenset, about.targets))
    if diagrams:
        of_diagrams = (minimal_targets(diagram, about.reward, about.settable, constrained) for diagram in diagrams)
        return list(dict.fromkeys(target for targets in of_diagrams for target in targets))
    names = list(about.settable)
    if 2 ** len(names) > MAX_TARGETS:
        raise ArgumentError(
            f"{len(names)} variables have {2 ** len(names)} sets, more than {MAX_TARGETS}; give the targets that may "
            "be set, or a diagram, which leaves fewer"
        )
    return [frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)]


def _with_arms(about: Description, statement: ProblemStatement) -> ProblemStatement:
    try:
        return statement.with_data(Arms(about.arms))
    except ArgumentError:
        # Of two equal arms the error names the first.
        for number in reversed(range(len(about.arms))):
            with at("arms", number):
                Arms(about.arms[number:]).check(statement)
        raise


def _with_contexts(about: Description, statement: ProblemStatement) -> ProblemStatement:
    with at("contexts" if about.scopes is None else "scopes"):
        diagram = statement.scm.diagram
        usual = (
            dict.fromkeys(target, sorted(set(about.contexts) - diagram.descendants(target)))
            for target in minimal_targets(diagram, about.reward, about.settable)
        )
        return statement.with_data(Contexts(tuple(about.contexts), read_scopes(about.scopes or usual)))
