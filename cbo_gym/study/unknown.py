"""From a description to what an agent is told: the feedback of a system whose mechanisms nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations
from typing import Any, NoReturn

from cbo_gym.errors import ArgumentError, OperationError, did_you_mean
from cbo_gym.feedback import Feedback, make_feedback
from cbo_gym.problems.base import MOST_TARGETS, Problem, gaussian_noise, minimal_targets
from cbo_gym.problems.modes.contextual import Contexts
from cbo_gym.problems.modes.discrete import Arms
from cbo_gym.problems.outcomes import Outcomes, check_constraints
from cbo_gym.problems.own.custom import read_scopes
from cbo_gym.problems.variations.constraints import read_constraints
from cbo_gym.scm import CausalDiagram, Normal, StructuralCausalModel, Variable
from cbo_gym.study.composition import KnownReward, known_reward
from cbo_gym.study.description import Description
from cbo_gym.study.mistakes import at
from cbo_gym.task import ToldGraph
from cbo_gym.yaml_files import Place

TABLE = ("number", "status", "why", "reason", "asked", "ended")  # columns of a study's table
UNKNOWN = Normal(0.0, 1.0)  # stands where noise is, for none of it is told


def feedback_of(about: Description) -> Feedback:
    """The feedback of a study: its spaces, codec and task; it cannot be played.

    Raises:
        ArgumentError: naming what does not fit together.
    """
    diagrams = _diagrams(about)
    variables = _variables(about, diagrams)
    given = _in_order(diagrams[0], variables) if about.diagram is not None else None
    scm = StructuralCausalModel(list(_unknown(about, given, variables)), about.reward)
    constraints = read_constraints(about.constraints, [one.name for one in scm.variables])
    check_constraints(about.name, constraints, scm)
    problem = Problem(
        name=about.name,
        scm=scm,
        description="",
        citation="your own",
        action_domains=[one.bounds for one in about.parameters.values()],
        action_names=list(about.parameters),
        null_action=_null_action(about),
        manipulable=about.settable,
        targets=(
            _targets(about, scm, diagrams, variables, [one.node for one in constraints])
            if about.settable and about.mode != "discrete"
            else ()
        ),
        composition=_composition(about, variables),
        noise_known=about.noise is not None,
        outcomes=Outcomes(about.reward, constraints),
        told=None if given is not None else ToldGraph(tuple(variables), None, tuple(diagrams)),
        modes=list(_mode_data(about, scm)),
    )
    asked = {} if about.costs is None else {"costs": _costs(about)}
    return make_feedback(problem, about.mode, **asked)


def without_effects(about: Description) -> Description:
    """The description with the effects of the reward among the names that are ignored, and nowhere else.

    Raises:
        ArgumentError: if a field needs one of them, or they differ between candidates.
    """
    diagrams = _diagrams(about)
    found = [
        diagram.descendants([about.reward]) - {about.reward} if about.reward in diagram.nodes else frozenset[str]()
        for diagram in diagrams
    ]
    if not any(found):
        return about
    effects = found[0]
    if differing := sorted({name for names in found for name in names ^ effects}):
        raise ArgumentError(
            f"{differing} are effects of the reward {about.reward} in one candidate and not in another; leave them out "
            "of variables and candidates, or write candidates in which the reward has no effects"
        )
    texts = [diagram.subgraph(set(diagram.nodes) - effects).to_dagitty() for diagram in diagrams]
    for place, name in _needed(about):
        if name in effects:
            with at(*place):
                raise ArgumentError(
                    f"{place[0]} names {name}, an effect of the reward {about.reward}; what comes after the reward "
                    "cannot change it, and is not modelled: leave it out there"
                )
    changed: dict[str, Any] = {"candidates": texts} if about.candidates else {"diagram": texts[0]}
    for name, kept in (("noise", about.noise), ("units", about.units)):
        changed[name] = kept and {variable: value for variable, value in kept.items() if variable not in effects}
    changed["variables"] = about.variables and [name for name in about.variables if name not in effects]
    return about.model_copy(update={**changed, "ignored": [*about.ignored, *sorted(effects)]})


def _needed(about: Description) -> Iterator[tuple[Place, str]]:
    """The names on which fields rest, each behind the place where it stands."""
    yield from ((place, name) for place, name in _mentioned(about) if place[0] not in ("noise", "units"))
    for field in ("scopes", "arms"):
        for number, names in enumerate(getattr(about, field) or ()):
            yield from (((field, number), name) for name in names)
    nodes = {node for diagram in _diagrams(about) for node in diagram.nodes}
    for number, constraint in enumerate(about.constraints):
        with at("constraints", number):
            yield from ((("constraints", number), one.node) for one in read_constraints([constraint], nodes))


def _diagrams(about: Description) -> list[CausalDiagram]:
    if about.diagram is not None and about.candidates:
        raise ArgumentError("give one diagram, or candidates; both were given")
    texts = [about.diagram] if about.diagram is not None else about.candidates
    return [CausalDiagram.from_dagitty(text) for text in texts]


def _variables(about: Description, diagrams: Sequence[CausalDiagram]) -> list[str]:
    """The observed variables, the reward last."""
    names = about.variables or (list(diagrams[0].nodes) if diagrams else [])
    if not names:
        raise ArgumentError("give a diagram, or the names of the variables")
    if len(set(names)) < len(names):
        raise ArgumentError(f"variables must be different; given {names}")
    for diagram in diagrams:
        if set(diagram.nodes) != set(names):
            raise ArgumentError(f"variables are {sorted(names)}, and those of a diagram {sorted(diagram.nodes)}")
    if clash := sorted(set(names) & set(about.ignored)):
        raise ArgumentError(f"{clash} are variables and ignored; a diagram marks what is not measured by [latent]")
    for place, name in _mentioned(about):
        if name not in names and not (place[0] == "units" and name in about.parameters):
            with at(*place):
                raise ArgumentError(f"{place[0]} names {[name]}{did_you_mean(name, names)}; the variables are {names}")
    if taken := [name for name in names if name in TABLE]:
        raise ArgumentError(
            f"variables cannot be called {taken}, as columns of a study's table are; call them otherwise"
        )
    if about.reward in about.settable:
        with at("settable", about.reward):
            raise ArgumentError(f"the reward {about.reward} is what comes of a trial; it cannot be set")
    return [*(name for name in names if name != about.reward), about.reward]


def _mentioned(about: Description) -> Iterator[tuple[Place, str]]:
    """Each name of a variable outside of the diagram, behind the place where it stands."""
    yield ("reward",), about.reward
    for field in ("settable", "noise", "units"):
        yield from (((field, name), name) for name in getattr(about, field) or ())
    yield from ((("contexts", number), name) for number, name in enumerate(about.contexts))
    yield from ((("parameters", name, "node"), one.node) for name, one in about.parameters.items())
    for number, target in enumerate(about.targets or ()):
        yield from ((("targets", number), name) for name in target)


def _in_order(diagram: CausalDiagram, variables: Sequence[str]) -> CausalDiagram:
    return CausalDiagram(variables, diagram.directed, [(min(pair), max(pair)) for pair in diagram.bidirected])


def _unknown(about: Description, diagram: CausalDiagram | None, variables: Sequence[str]) -> Iterator[Variable]:
    """Variables whose mechanisms say that nobody knows them; a bidirected edge is a latent cause."""
    pairs = [tuple(sorted(pair)) for pair in diagram.bidirected] if diagram else []
    latent = {pair: f"latent cause of {' and '.join(pair)}" for pair in sorted(pairs)}
    for pair in latent:
        yield Variable(latent[pair], partial(_nobody_knows, " and ".join(pair)), noise=UNKNOWN, observed=False)
    places = list(about.parameters)
    for name in variables:
        hidden = tuple(cause for pair, cause in latent.items() if name in pair)
        own = tuple(place for place, one in enumerate(places) if about.parameters[one].node == name)
        noise = UNKNOWN if about.noise is None else gaussian_noise(about.noise.get(name, 0.0), f"the noise of {name}")
        parents = (*(diagram.parents(name) if diagram else ()), *hidden)
        yield Variable(name, partial(_nobody_knows, name), parents=parents, actions=own, noise=noise)


def _nobody_knows(name: str, *_: object) -> NoReturn:
    raise OperationError(f"nobody knows the mechanism of {name}; a study is told what came of a trial")


def _composition(about: Description, variables: Sequence[str]) -> KnownReward | None:
    if about.composition is None:
        return None
    if about.mode != "soft":
        raise ArgumentError(f"a composition belongs to the soft mode; this study is {about.mode}")
    return known_reward(about.composition, about.reward, variables, -1.0 if about.direction == "minimize" else 1.0)


def _costs(about: Description) -> Any:
    """Prices by name, 1 where none is named: what costs nothing would be set for that alone."""
    items = (*about.settable, *about.parameters)
    if not isinstance(about.costs, Mapping) or not set(about.costs) <= set(items):
        return about.costs
    return dict.fromkeys(items, 1.0) | dict(about.costs)


def _null_action(about: Description) -> list[float]:
    found = []
    for name, one in about.parameters.items():
        low, high = one.bounds
        null = low if one.null is None else one.null
        if not low <= null <= high:
            raise ArgumentError(f"the null value of {name} must lie in [{low:g}, {high:g}]; given {null:g}")
        found.append((null - low) / (high - low) if high > low else 0.0)
    return found


def _targets(
    about: Description,
    scm: StructuralCausalModel,
    diagrams: Sequence[CausalDiagram],
    variables: Sequence[str],
    limited: Sequence[str],
) -> list[frozenset[str]]:
    """Those that are given, else the minimal ones of what is told; where that is names alone, all sets."""
    if about.targets is not None:
        return list(map(frozenset, about.targets))
    if about.diagram is not None:
        return minimal_targets(scm, about.settable, limited)
    if diagrams:
        systems = [
            StructuralCausalModel(list(_unknown(about, _in_order(one, variables), variables)), about.reward)
            for one in diagrams
        ]
        return list(
            dict.fromkeys(chain.from_iterable(minimal_targets(one, about.settable, limited) for one in systems))
        )
    return _all_sets(list(about.settable))


def _all_sets(names: Sequence[str]) -> list[frozenset[str]]:
    if 2 ** len(names) > MOST_TARGETS:
        raise ArgumentError(
            f"{len(names)} variables have {2 ** len(names)} sets, more than {MOST_TARGETS}; give the targets that may "
            "be set, or a diagram, which leaves few"
        )
    sizes: Iterable[int] = range(len(names) + 1)
    return [frozenset(chosen) for size in sizes for chosen in combinations(names, size)]


def _mode_data(about: Description, scm: StructuralCausalModel) -> Iterator[Any]:
    if about.arms:
        yield Arms(about.arms)
    if about.contexts:
        sets = minimal_targets(scm, about.settable)
        free = [(target, sorted(set(about.contexts) - scm.diagram.descendants(target))) for target in sets]
        usual = [dict.fromkeys(target, followed) for target, followed in free]
        yield Contexts(tuple(about.contexts), read_scopes(about.scopes or usual), _no_noise)


def _no_noise(*_: object) -> NoReturn:
    raise OperationError("nobody knows the noise of a study")
