"""Problems of your own: a diagram with Python mechanisms, or a short YAML file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from cbo_gym.actions import Interval
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import Problem, gaussian_noise, minimal_targets
from cbo_gym.problems.expression import RESERVED, compile_equation
from cbo_gym.scm import CausalDiagram, Distribution, Floats, StructuralCausalModel, Variable, Zero
from cbo_gym.scm import noise as distributions
from cbo_gym.validation import StrictModel, field_errors

OWN_NOISE = "u"  # the argument of a mechanism that stands for the variable's own exogenous noise

NoiseOf = Mapping[str, Distribution | float]  # variable -> distribution, or the std of a normal one


def custom_problem(
    mechanisms: Mapping[str, Callable[..., Floats]],
    *,
    reward: str,
    noise: NoiseOf | None = None,
    diagram: CausalDiagram | None = None,
    actions: Mapping[str, Interval] | None = None,
    manipulable: Mapping[str, Interval] | None = None,
    targets: Iterable[Iterable[str]] | None = None,
    latent: Iterable[str] = (),
    name: str = "Custom",
    description: str = "",
) -> Problem:
    """A Problem from one function a variable, whose argument names say what it depends on.

    An argument is the name of another variable, the name of a soft parameter, or ``u``: the variable's own noise.
    Mechanisms must be built from arithmetic and NumPy ufuncs, so that they take numbers and arrays alike::

        custom_problem(
            {
                "Growth": lambda heat, u: np.exp(-((heat - 22) ** 2) / 50) + u,
                "Yield": lambda Growth, price: Growth * price - 0.1 * price**2,
            },
            reward="Yield",
            noise={"Growth": 0.1},
            actions={"heat": (10.0, 30.0), "price": (0.0, 8.0)},
        )

    Args:
        mechanisms: variable -> function; latent variables too.
        reward: the variable to maximise; nothing may depend on it.
        noise: variable -> distribution of its ``u``, or the standard deviation of a zero-mean normal one.
        diagram: the causal diagram over the observed variables that the mechanisms are meant to have, as a check;
            None to take theirs.
        actions: soft parameter -> native ``(low, high)``, in the order of the action's coordinates.
        manipulable: variable -> native ``(low, high)`` of its hard interventions.
        targets: the sets that a hard intervention may set, the empty set included; None for the minimal
            intervention sets of the manipulable variables.
        latent: variables that are not observed.
        name: of the problem.
        description: for users.

    Raises:
        ArgumentError: naming what is unknown, unused, missing, or contradicts the diagram; for a cycle; for a reward
            that is not observed or has children.
    """
    actions, manipulable, noise = dict(actions or {}), dict(manipulable or {}), dict(noise or {})
    hidden = set(latent)
    _require_known("noise", noise, mechanisms)
    _require_known("latent", hidden, mechanisms)
    if clash := sorted(set(mechanisms) & set(actions)):
        raise ArgumentError(f"{clash} are both variables and soft parameters; rename one of them")
    variables = [
        _variable(variable, function, list(mechanisms), list(actions), noise.get(variable), variable not in hidden)
        for variable, function in mechanisms.items()
    ]
    used = {index for variable in variables for index in variable.actions}
    if unused := [action for index, action in enumerate(actions) if index not in used]:
        raise ArgumentError(f"no mechanism takes the soft parameters {unused}; use or remove them")
    scm = StructuralCausalModel(variables, reward)
    if diagram is not None:
        _require_equal(diagram, scm.diagram)
    return Problem(
        name=name,
        scm=scm,
        description=description,
        citation="your own",
        action_domains=list(actions.values()),
        action_names=list(actions),
        manipulable=manipulable,
        targets=minimal_targets(scm, manipulable) if targets is None else [frozenset(target) for target in targets],
    )


def _variable(
    name: str,
    function: Callable[..., Floats],
    known: list[str],
    actions: list[str],
    noise: Distribution | float | None,
    observed: bool,
) -> Variable:
    arguments = list(inspect.signature(function).parameters)
    if unknown := [a for a in arguments if a not in (*known, *actions, OWN_NOISE)]:
        raise ArgumentError(
            f"the mechanism of {name} takes {unknown}, which are neither variables {known}, "
            f"soft parameters {actions}, nor {OWN_NOISE!r} for its noise"
        )
    if (OWN_NOISE in arguments) != (noise is not None):
        has, lacks = ("takes u", "noise") if noise is None else ("does not take u", "use of it")
        raise ArgumentError(f"the mechanism of {name} {has}, but there is no {lacks}; give both or neither")
    parents = [a for a in arguments if a in known]
    own = [a for a in arguments if a in actions]
    return Variable(
        name,
        _in_order(function, arguments, [*parents, *own, OWN_NOISE]),
        parents=tuple(parents),
        actions=tuple(actions.index(a) for a in own),
        noise=Zero() if noise is None else noise if isinstance(noise, Distribution) else gaussian_noise(noise),
        observed=observed,
    )


def _in_order(function: Callable[..., Floats], arguments: list[str], given: list[str]) -> Callable[..., Floats]:
    """The function, called with the values of ``given`` in that order."""
    if arguments == given:
        return function
    places = [given.index(argument) for argument in arguments]
    return lambda *values: function(*[values[place] for place in places])


def _require_known(what: str, names: Iterable[str], mechanisms: Mapping[str, object]) -> None:
    if unknown := sorted(set(names) - set(mechanisms)):
        raise ArgumentError(f"{what} names {unknown}; the variables are {list(mechanisms)}")


def _require_equal(wanted: CausalDiagram, found: CausalDiagram) -> None:
    problems = []
    if set(wanted.nodes) != set(found.nodes):
        problems.append(f"variables {sorted(set(wanted.nodes) ^ set(found.nodes))} are in one of them only")
    for kind, declared, real in (
        ("edges", {f"{a} -> {b}" for a, b in wanted.directed}, {f"{a} -> {b}" for a, b in found.directed}),
        (
            "confounded pairs",
            {" <-> ".join(sorted(pair)) for pair in wanted.bidirected},
            {" <-> ".join(sorted(pair)) for pair in found.bidirected},
        ),
    ):
        if declared != real:
            problems.append(f"{kind} only in the diagram {sorted(declared - real)}, only in the mechanisms "
                            f"{sorted(real - declared)}")  # fmt: skip
    if problems:
        raise ArgumentError("the diagram and the mechanisms disagree: " + "; ".join(problems))


class _VariableEntry(StrictModel):
    equation: str
    noise: float | dict[str, list[Any]] | None = None
    observed: bool = True


class _ProblemFile(StrictModel):
    name: str
    description: str = ""
    reward: str
    variables: dict[str, str | _VariableEntry]
    actions: dict[str, Interval] = {}
    manipulable: dict[str, Interval] = {}
    targets: list[list[str]] | None = None


def load_problem(path: str | Path) -> Problem:
    """A Problem from a YAML file of equations::

        name: Greenhouse
        reward: Yield
        variables:
          Light: {equation: u, noise: {Uniform: [0, 1]}}
          Growth: {equation: "Light * exp(-(heat - 22)**2 / 50) + u", noise: 0.1}
          Yield: Growth * price - 0.1 * price**2
        actions: {heat: [10, 30], price: [0, 8]}
        manipulable: {Growth: [0, 2]}

    Equations know arithmetic, comparisons and the functions of :mod:`cbo_gym.problems.expression`. ``noise`` is a
    standard deviation or the name of a distribution of :mod:`cbo_gym.scm.noise` with its arguments in order.

    Raises:
        ArgumentError: naming the file and what is wrong in it.
    """
    path = Path(path)
    try:
        parsed = _ProblemFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        variables = {
            name: _VariableEntry(equation=entry) if isinstance(entry, str) else entry
            for name, entry in parsed.variables.items()
        }
        for name in [*variables, *parsed.actions]:
            if not name.isidentifier() or name in RESERVED or name == OWN_NOISE:
                raise ArgumentError(f"{name!r} cannot be a name in equations; use letters, digits and _, and none of "
                                 f"{sorted([*RESERVED, OWN_NOISE])}")  # fmt: skip
        return custom_problem(
            {name: compile_equation(entry.equation) for name, entry in variables.items()},
            reward=parsed.reward,
            noise={name: _distribution(entry.noise) for name, entry in variables.items() if entry.noise is not None},
            actions=parsed.actions,
            manipulable=parsed.manipulable,
            targets=parsed.targets,
            latent=[name for name, entry in variables.items() if not entry.observed],
            name=parsed.name,
            description=parsed.description,
        )
    except ValidationError as error:
        raise ArgumentError(f"cannot load the problem {path}: {field_errors(error, _ProblemFile)}") from error
    except (OSError, yaml.YAMLError, ValueError) as error:
        raise ArgumentError(f"cannot load the problem {path}: {error}") from error


def _distribution(written: float | dict[str, list[Any]]) -> Distribution:
    if not isinstance(written, dict):
        return gaussian_noise(written)
    known = {
        kind.__name__: kind
        for kind in vars(distributions).values()
        if isinstance(kind, type) and issubclass(kind, Distribution) and kind is not Distribution
    }
    if len(written) != 1 or not set(written) <= set(known):
        raise ArgumentError(f"noise is a standard deviation or one of {sorted(known)} with arguments; given {written}")
    ((kind, arguments),) = written.items()
    try:
        return known[kind](*arguments)
    except TypeError as error:
        raise ArgumentError(f"noise {kind}: {error}") from error
