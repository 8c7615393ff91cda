"""Custom problems in short YAML files of equations."""

from __future__ import annotations

from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, WrapValidator

from cbo_gym._util.validation import StrictModel, field_errors
from cbo_gym._util.yaml import read_yaml
from cbo_gym.actions import Interval
from cbo_gym.actions.domains import validate_domain
from cbo_gym.errors import ArgumentError, short_repr, shorten
from cbo_gym.problems.base import Problem, gaussian_noise
from cbo_gym.problems.custom.custom import OWN_NOISE, custom_problem
from cbo_gym.problems.custom.expression import RESERVED, Equation, spelling
from cbo_gym.scm import Distribution
from cbo_gym.scm import noise as distributions

MAX_VARIABLES = 200


class _VariableEntry(StrictModel):
    equation: str
    noise: float | dict[str, list[Any]] | None = None
    observed: bool = True
    # ``latent: true`` means ``observed: false``.
    latent: bool = False


Domain = Annotated[Interval, WrapValidator(validate_domain)]


class _ProblemFile(StrictModel):
    name: str
    description: str = ""
    reward: str
    variables: Annotated[dict[str, str | _VariableEntry], Field(max_length=MAX_VARIABLES)]
    actions: Annotated[dict[str, Domain], Field(max_length=MAX_VARIABLES)] = {}
    manipulable: dict[str, Domain] = {}
    targets: list[list[str]] | None = None
    contexts: list[str] = []
    scopes: list[dict[str, list[str]]] | None = None
    arms: list[dict[str, float]] = []
    limits: list[str] = []


def load_problem(path: str | Path) -> Problem:
    """Read a problem from a YAML file of equations.

    Example::

        name: Greenhouse
        reward: Yield
        variables:
          Light: {equation: u, noise: {Uniform: [0, 1]}}
          Growth: {equation: "Light * exp(-(heat - 22)**2 / 50) + u", noise: 0.1}
          Yield: Growth * price - 0.1 * price**2
        actions: {heat: [10, 30], price: [0, 8]}
        manipulable: {Growth: [0, 2]}

    Equations may contain numbers, variables, actions, ``u`` for the variable's own noise, arithmetic, comparisons and
    the functions of :mod:`cbo_gym.problems.custom.expression`. ``noise`` is a standard deviation, or the name of a
    distribution of :mod:`cbo_gym.scm.noise` with its arguments in order. A variable with ``latent: true`` or
    ``observed: false`` is not observed. The keys ``targets``, ``contexts``, ``scopes``, ``arms`` and ``limits`` have
    the meaning of the parameters of :func:`~cbo_gym.custom_problem`. Besides ``[low, high]``, domains are
    ``{low: 0.001, high: 1, scale: log}``, ``{low: 0, high: 2, step: 0.1}``, ``{type: integer, low: 1, high: 8}`` and
    ``{categories: [A, B]}``. In equations a category is its index: A is 0 and B is 1.

    Raises:
        ArgumentError: if the file cannot be read or is not a valid problem; the message names the file and the error.
    """
    path = Path(path)
    failure = f"cannot load the problem {shorten(str(path))}"
    try:
        return _build(_ProblemFile.model_validate(read_yaml(path)))
    except ValidationError as error:
        raise ArgumentError(f"{failure}: {field_errors(error, _ProblemFile)}") from error
    except ArgumentError as error:
        raise ArgumentError(f"{failure}: {error}") from error


def _build(parsed: _ProblemFile) -> Problem:
    variables = {
        name: _VariableEntry(equation=entry) if isinstance(entry, str) else entry
        for name, entry in parsed.variables.items()
    }
    for name, entry in variables.items():
        if entry.latent and entry.observed and "observed" in entry.model_fields_set:
            raise ArgumentError(f"{name} is latent and observed; leave out one of them")
    for identifier, name in spelling([*variables, *parsed.actions]).items():
        if not identifier.isidentifier() or iskeyword(identifier) or identifier in RESERVED or identifier == OWN_NOISE:
            raise ArgumentError(f"{name!r} cannot be a name in equations; use letters, digits and _, and none of "
                                f"the reserved names {sorted([*RESERVED, OWN_NOISE])}")  # fmt: skip
    return custom_problem(
        {name: Equation(entry.equation) for name, entry in variables.items()},
        reward=parsed.reward,
        noise={name: _distribution(name, entry.noise) for name, entry in variables.items() if entry.noise is not None},
        actions=parsed.actions,
        manipulable=parsed.manipulable,
        targets=parsed.targets,
        contexts=parsed.contexts,
        scopes=parsed.scopes,
        arms=parsed.arms,
        limits=parsed.limits,
        latent=[name for name, entry in variables.items() if entry.latent or not entry.observed],
        name=parsed.name,
        description=parsed.description,
    )


def _distribution(name: str, value: float | dict[str, list[Any]]) -> Distribution:
    try:
        return _named_distribution(value) if isinstance(value, dict) else gaussian_noise(value)
    except (ArgumentError, TypeError) as error:
        raise ArgumentError(f"noise of {name}: {error}") from error


def _named_distribution(entry: dict[str, list[Any]]) -> Distribution:
    families = {
        family.__name__: family
        for family in vars(distributions).values()
        if isinstance(family, type) and issubclass(family, Distribution) and family is not Distribution
    }
    if len(entry) != 1 or not set(entry) <= set(families):
        raise ArgumentError(
            f"noise must be a standard deviation, or one of {sorted(families)} with a list of its arguments; "
            f"given {short_repr(entry)}"
        )
    ((name, arguments),) = entry.items()
    return families[name](*arguments)
