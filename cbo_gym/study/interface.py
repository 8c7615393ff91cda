"""The interface of a study: its action space, observation space and codec, from the description.

Most of the module checks that the fields of the description fit together; each error names the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import Any

from cbo_gym._util.yaml import KeyPath
from cbo_gym.actions import Costs, Domains, Interval, Limits, Range, TypedDomain
from cbo_gym.actions.domains import ON_LEVEL
from cbo_gym.errors import ArgumentError, did_you_mean
from cbo_gym.modes import classes_of, require_several_objectives
from cbo_gym.modes.base.interface import Interface
from cbo_gym.problems.base import MAX_TARGETS, ProblemStatement, gaussian_noise, minimal_targets
from cbo_gym.problems.custom.custom import read_scopes
from cbo_gym.problems.modes.contextual import Contexts
from cbo_gym.problems.modes.discrete import Arms
from cbo_gym.problems.outcomes import COST, Outcomes, check_constraints
from cbo_gym.problems.variations.constraints import read_constraints, require_compatible
from cbo_gym.scm import CausalDiagram, Distribution
from cbo_gym.scm.scopes.intervention_sets import subsets
from cbo_gym.scm.system import Structure
from cbo_gym.study.composition import KnownReward, known_reward
from cbo_gym.study.description import MAX_MAGNITUDE, Description, errors_at
from cbo_gym.task import Constraint, GraphKnowledge

# Columns of a study's table that are not variables.
TABLE_COLUMNS = ("number", "status", "why", "reason", "asked", "ended")


class _StudyStructure(Structure):
    """The names and the diagram of the system that a study describes, without mechanisms."""

    def __init__(self, description: Description, variables: Sequence[str]) -> None:
        diagram = description.diagram or CausalDiagram(variables, [])
        diagram = CausalDiagram(variables, diagram.directed, diagram.bidirected)
        self.reward = variables[-1]
        self.nodes = (*(name for name in diagram.topological_order if name != self.reward), self.reward)
        self.diagram = CausalDiagram(self.nodes, diagram.directed, diagram.bidirected)
        # The nodes that each parameter enters.
        entered = [parameter.node for parameter in description.parameters.values()]
        indices = {name: tuple(index for index, nodes in enumerate(entered) if name in nodes) for name in self.nodes}
        self.action_dim = len(entered)
        self.action_nodes = {name: indices[name] for name in self.nodes if indices[name]}
        self._noise: dict[str, Distribution] = {}
        if description.noise is not None:
            for name in self.nodes:
                self._noise[name] = gaussian_noise(description.noise.get(name, 0.0), f"the noise of {name}")

    def noise_of_nodes(self) -> dict[str, Distribution]:
        return self._noise


def interface_of(description: Description) -> Interface:
    """Return the interface of a study."""
    diagrams = _diagrams(description)
    variables = _variables(description, diagrams)
    with errors_at("noise"):
        structure = _StudyStructure(description, variables)
    constraints = _constraints(description, structure)
    interface_class: type[Interface] = classes_of(description.mode).INTERFACE
    statement = ProblemStatement(
        name=description.name,
        scm=structure,
        description="",
        citation="",
        action_domains=[parameter.bounds for parameter in description.parameters.values()],
        action_names=list(description.parameters),
        null_action=_null_action(description),
        manipulable=description.settable,
        targets=_targets(description, diagrams, variables, constraints),
        limits=description.limits,
        composition=_composition(description, interface_class, variables),
        noise_known=description.noise is not None,
        outcomes=Outcomes(structure.reward, constraints),
        knowledge=None if description.diagram is not None else GraphKnowledge(tuple(variables), None, tuple(diagrams)),
    )
    if description.arms:
        statement = _with_arms(description, statement)
    if description.contexts:
        statement = _with_contexts(description, statement)
    _require_mode_fits(description, interface_class)
    for data in interface_class.study_data(-MAX_MAGNITUDE):
        statement = statement.with_data(data)
    with errors_at("limits" if description.limits else "mode"):
        interface = interface_class(statement, **description.options)
    if description.objectives:
        with errors_at("objectives"):
            require_several_objectives(description.name, interface_class)
    if description.costs is None and description.budget is not None:
        with errors_at("budget"):
            raise ArgumentError(
                "a budget is in the units of costs, and there are none; give costs, such as {name: price}, where a "
                "name that is missing costs 1, or horizon, the number of trials"
            )
    if description.costs is None and not description.objectives:
        return interface
    # The default price is 1, because agents would prefer a variable only because it is free.
    costs = description.costs
    if isinstance(costs, Mapping) and set(costs) <= set(interface.priced_items):
        costs = dict.fromkeys(interface.priced_items, 1.0) | dict(costs)
    with errors_at("costs"):
        outcomes = replace(statement.outcomes, costs=None if costs is None else Costs.read(costs))
    with errors_at("objectives"):
        objectives = description.goals if description.objectives else ()
        statement = replace(statement, outcomes=replace(outcomes, objectives=objectives))
    with errors_at("costs"):
        return interface_class(statement, **description.options)


def _require_mode_fits(description: Description, interface_class: type[Interface]) -> None:
    """Check the fields that depend on the mode alone: diagram, names of parameters, and options."""
    with errors_at("diagram"):
        if interface_class.diagram_reason and description.diagram is None:
            raise ArgumentError(f"{description.mode} mode needs a diagram, because {interface_class.diagram_reason}")
    for name, meaning in interface_class.reserved_names.items():
        if name in description.parameters:
            with errors_at("parameters", name):
                raise ArgumentError(f"{meaning} as {name}; rename the parameter")
    with errors_at("options"):
        if "budget" in description.options:
            raise ArgumentError("the budget of a study is its field budget; leave it out of the options")
        options = interface_class.keywords()
        if unknown := [name for name in description.options if name not in options]:
            raise ArgumentError(
                f"{description.mode} mode has no option {unknown[0]!r}{did_you_mean(unknown[0], options)}; it has "
                f"{', '.join(options) or 'none'}"
            )


def _composition(
    description: Description, interface_class: type[Interface], variables: Sequence[str]
) -> KnownReward | None:
    if description.composition is None:
        return None
    if "composition" not in {field.name for field in fields(interface_class.task_class)}:
        raise ArgumentError(f"a composition belongs to the soft mode; this study is {description.mode}")
    with errors_at("composition"):
        if len(description.goals) > 1:
            raise ArgumentError("a composition needs a single reward; leave out the composition, or the objectives")
        return known_reward(description.composition, variables[-1], variables, description.goals[0].sign)


def without_effects(description: Description) -> Description:
    """Return the description with the effects of the reward, or of the objectives, moved to the ignored names."""
    _check_goals(description)
    diagrams, objectives = _diagrams(description), list(description.objectives)
    goals = f"the objectives {objectives}" if objectives else f"the reward {description.reward}"
    names = [goal.name for goal in description.goals]
    effects_by_diagram = []
    for diagram in diagrams:
        # The cost of a trial may be an objective, but it is not a node.
        goal_nodes = set(names) & set(diagram.nodes)
        effects_by_diagram.append(diagram.descendants(goal_nodes) - diagram.ancestors(goal_nodes) - goal_nodes)
    if not any(effects_by_diagram):
        return description
    effects = effects_by_diagram[0]
    if differing := sorted({name for names in effects_by_diagram for name in names ^ effects}):
        raise ArgumentError(
            f"{differing} are effects of {goals} in one candidate and not in another; leave them out of variables and "
            "candidates, or write candidates in which it has no effects"
        )
    nodes = {node for diagram in diagrams for node in diagram.nodes}
    needed = [(path, name) for path, name in _iter_names(description) if path[0] not in ("noise", "units")]
    for number, constraint in enumerate(description.constraints):
        path: KeyPath = ("constraints", number)
        with errors_at(*path):
            needed += [(path, limit.node) for limit in read_constraints([constraint], nodes)]
    for path, name in needed:
        if name in effects:
            with errors_at(*path):
                raise ArgumentError(
                    f"{path[0]} names {name}, an effect of {goals}; effects cannot change it and are not modelled: "
                    "leave it out there"
                )
    diagrams = [diagram.subgraph(set(diagram.nodes) - effects) for diagram in diagrams]
    changed: dict[str, Any] = {"candidates": diagrams} if description.candidates else {"diagram": diagrams[0]}
    if description.variables:
        changed["variables"] = [name for name in description.variables if name not in effects]
    for field in ("noise", "units"):
        if by_name := getattr(description, field):
            changed[field] = {name: value for name, value in by_name.items() if name not in effects}
    changed["ignored"] = [*description.ignored, *sorted(effects)]
    return description.model_copy(update=changed)


def _check_goals(description: Description) -> None:
    objectives = description.objectives
    example = '{"titre": "maximize", "acid": "minimize"}'
    if not objectives and description.reward is None:
        raise ArgumentError(f"field reward: Field required; or give several objectives, such as {example}")
    with errors_at("objectives"):
        given_fields = [name for name in ("reward", "direction") if name in description.model_fields_set]
        if objectives and description.reward is not None:
            raise ArgumentError(
                f"give a reward, or objectives; both were given: leave out {' and '.join(given_fields)}, and name "
                f"{description.reward} among the objectives"
            )
        if objectives and "direction" in given_fields:
            raise ArgumentError(f"each objective has its own direction, such as {example}; leave out direction")
        if len(objectives) == 1:
            (goal,) = description.goals
            raise ArgumentError(
                f"there is one objective; write it as reward: {goal.name}, direction: {goal.direction}, or add another"
            )


def _diagrams(description: Description) -> list[CausalDiagram]:
    if description.diagram is not None and description.candidates:
        raise ArgumentError("give one diagram, or candidates; both were given")
    return description.candidates if description.diagram is None else [description.diagram]


def _variables(description: Description, diagrams: Sequence[CausalDiagram]) -> list[str]:
    """Return the observed variables. The last one is the reward, or an objective that causes no other objective."""
    names = description.variables or (list(diagrams[0].nodes) if diagrams else [])
    if not names:
        raise ArgumentError("give a diagram, or the names of the variables")
    if len(set(names)) < len(names):
        raise ArgumentError(f"variables must be different; given {names}")
    for diagram in diagrams:
        if set(diagram.nodes) != set(names):
            raise ArgumentError(f"the variables are {sorted(names)}, but a diagram has {sorted(diagram.nodes)}")
    if clash := sorted(set(names) & set(description.ignored)):
        raise ArgumentError(
            f"{clash} are both variables and ignored; mark variables that are not measured as [latent] in the diagram"
        )
    for path, name in _iter_names(description):
        is_parameter = path[0] == "units" and name in description.parameters
        # Scopes and arms are checked with the data of their mode.
        if name not in names and not is_parameter and path[0] not in ("scopes", "arms"):
            with errors_at(*path):
                raise ArgumentError(f"{path[0]} names {[name]}{did_you_mean(name, names)}; the variables are {names}")
    if reserved := [name for name in names if name in TABLE_COLUMNS]:
        raise ArgumentError(
            f"variables cannot be called {reserved}, because a study's table has columns of these names; rename them"
        )
    for goal in description.goals:
        if goal.name in description.settable:
            with errors_at("settable", goal.name):
                noun = "objective" if description.objectives else "reward"
                raise ArgumentError(f"the {noun} {goal.name} is the outcome of a trial; it cannot be set")
    optimised = [goal.name for goal in description.goals if goal.name in names]
    causes = {cause for diagram in diagrams for name in optimised for cause in diagram.ancestors([name]) - {name}}
    reward = [*optimised, *(name for name in optimised if name not in causes)][-1]
    return [*(name for name in names if name != reward), reward]


def _iter_names(description: Description) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path and the name of each variable that a field other than the diagrams mentions."""
    for goal in description.goals:
        # The cost of a trial may be an objective.
        if not description.objectives or goal.name != COST:
            yield (("objectives", goal.name) if description.objectives else ("reward",)), goal.name
    for field in ("settable", "noise", "units"):
        yield from (((field, name), name) for name in getattr(description, field) or ())
    yield from ((("contexts", number), name) for number, name in enumerate(description.contexts))
    for name, parameter in description.parameters.items():
        yield from ((("parameters", name, "node"), node) for node in parameter.node)
    for field in ("targets", "scopes", "arms"):
        for number, members in enumerate(getattr(description, field) or ()):
            yield from (((field, number), name) for name in members)


def _constraints(description: Description, structure: Structure) -> tuple[Constraint, ...]:
    for number, constraint in enumerate(description.constraints):
        with errors_at("constraints", number):
            check_constraints(description.name, read_constraints([constraint], structure.nodes), structure)
    with errors_at("constraints"):
        constraints = read_constraints(description.constraints, structure.nodes)
        require_compatible(constraints)
        return constraints


def _null_action(description: Description) -> list[float]:
    """Return the null values of the parameters, in [0, 1]."""
    null_action = []
    for name, parameter in description.parameters.items():
        domains = Domains({name: parameter.bounds})
        (low, high), (scale,) = parameter.bounds, domains.scales
        with errors_at("parameters", name):
            null = low if parameter.null is None else _null_value(name, domains.intervals[0], parameter.null)
            if not low <= null <= high:
                raise ArgumentError(f"the null value of {name} must lie in [{low:g}, {high:g}]; given {null:g}")
            coordinate = float(scale.to_unit(null))
            if abs(domains.round([coordinate])[0] - coordinate) > ON_LEVEL:
                raise ArgumentError(f"the null value of {name} must be one of its steps; given {null:g}")
            bounds = parameter.bounds
            if isinstance(bounds, Range) and bounds.digits is not None and null not in (near := bounds.round(null)):
                raise ArgumentError(
                    f"the null value of {name} must have at most {bounds.digits} digits; given {null:.12g}: write "
                    f"{near[0]:g}"
                )
        null_action.append(coordinate)
    return null_action


def _null_value(name: str, domain: Interval, null: Any) -> float:
    """Return the null value of a parameter as a number, such as the index of a category."""
    try:
        return domain.number(null) if isinstance(domain, TypedDomain) else float(null)
    except ValueError as error:
        raise ArgumentError(f"the null value of {name} {error}") from error


def _targets(
    description: Description,
    diagrams: Sequence[CausalDiagram],
    variables: Sequence[str],
    constraints: Iterable[Constraint],
) -> list[frozenset[str]]:
    """Return the sets of variables that an action may set.

    By default they are the minimal intervention sets of the diagrams, or all sets, as far as the limits allow them.
    """
    if not description.settable or description.arms:
        return []
    if description.targets is not None:
        return list(map(frozenset, description.targets))
    names, (*others, reward) = list(description.settable), variables
    with errors_at("settable"):
        if diagrams:
            constrained = [goal.name for goal in description.goals if goal.name in others]
            constrained += [constraint.node for constraint in constraints]
            by_diagram = [minimal_targets(diagram, reward, names, constrained) for diagram in diagrams]
            targets = list(dict.fromkeys(chain.from_iterable(by_diagram)))
        elif 2 ** len(names) <= MAX_TARGETS:
            targets = subsets(names)
        else:
            raise ArgumentError(
                f"{len(names)} variables have {2 ** len(names)} sets, more than {MAX_TARGETS}; give the targets that "
                "may be set, or a diagram, which leaves fewer"
            )
    with errors_at("limits"):
        limits = Limits(description.limits, Domains(description.settable))
    return [target for target in targets if limits.can_set(target)]


def _with_arms(description: Description, statement: ProblemStatement) -> ProblemStatement:
    try:
        return statement.with_data(Arms(description.arms))
    except ArgumentError:
        # Name the last invalid arm: the first item of the shortest tail of the list that is refused.
        for number in reversed(range(len(description.arms))):
            with errors_at("arms", number):
                Arms(description.arms[number:]).check(statement)
        raise


def _with_contexts(description: Description, statement: ProblemStatement) -> ProblemStatement:
    with errors_at("contexts" if description.scopes is None else "scopes"):
        diagram = statement.scm.diagram
        default = (
            dict.fromkeys(target, sorted(set(description.contexts) - diagram.descendants(target)))
            for target in minimal_targets(diagram, statement.scm.reward, description.settable)
        )
        return statement.with_data(Contexts(tuple(description.contexts), read_scopes(description.scopes or default)))
