"""The description of a study: what its user knows of the system, the objective and the agent.

It has variables, bounds and a diagram, but no mechanisms, because there is no simulator. pydantic checks the fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, InstanceOf, PlainSerializer, WrapValidator
from pydantic_core import PydanticKnownError

from cbo_gym._util.arguments import is_whole_number, seed_number
from cbo_gym._util.validation import StrictModel
from cbo_gym.actions import TypedDomain
from cbo_gym.actions.domains import validate_domain
from cbo_gym.errors import CBOGymError
from cbo_gym.modes import classes_of
from cbo_gym.scm import CausalDiagram
from cbo_gym.task import Mode, Objective

MAX_VARIABLES = 200
# Largest magnitude of a value, well below 1e38, where acquisition functions of BoTorch overflow.
MAX_MAGNITUDE = 1e30


def _require_magnitude(number: float) -> float:
    if not abs(number) <= MAX_MAGNITUDE:
        raise ValueError(f"must be a finite number between {-MAX_MAGNITUDE:g} and {MAX_MAGNITUDE:g}")
    return number


def _require_ascending(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = bounds
    if not -math.inf < low < high < math.inf:
        hint = f", as [{high:g}, {low:g}]" if -math.inf < high < low < math.inf else ""
        raise ValueError(f"bounds must be low < high, two finite numbers{hint}")
    return bounds


Number = Annotated[float, Field(strict=True), AfterValidator(_require_magnitude)]
# NumPy's integers are converted to int.
WholeNumber = Annotated[
    int, Field(strict=True), BeforeValidator(lambda value: int(value) if is_whole_number(value) else value)
]
Seed = Annotated[int, BeforeValidator(seed_number)]
Bounds = Annotated[tuple[Number, Number], AfterValidator(_require_ascending)]


def _read_domain(value: Any, validate_pair: Any) -> Any:
    domain = validate_domain(value, validate_pair)
    for end in domain:
        _require_magnitude(end)
    return domain


# The bounds of a settable variable or a parameter: a pair, or a TypedDomain.
Domain = Annotated[
    Bounds,
    WrapValidator(_read_domain),
    PlainSerializer(lambda domain: domain.to_mapping() if isinstance(domain, TypedDomain) else list(domain)),
]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Direction = Literal["maximize", "minimize"]


def _read_strings(value: Any) -> Any:
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


Strings = Annotated[list[str], BeforeValidator(_read_strings)]


def _read_diagram(value: Any) -> Any:
    return CausalDiagram.from_dagitty(value) if isinstance(value, str) else value


# Serialised in DAGitty's language.
Diagram = Annotated[
    InstanceOf[CausalDiagram],
    BeforeValidator(_read_diagram),
    PlainSerializer(CausalDiagram.to_dagitty, return_type=str),
]


def modes() -> dict[str, str]:
    """Return the modes that a study may have: name -> what a trial sets, in words."""
    descriptions = {mode.value: classes_of(mode).INTERFACE.trial_description for mode in Mode}
    return {mode: trial_description for mode, trial_description in descriptions.items() if trial_description}


def _require_mode(mode: str) -> str:
    if mode not in modes():
        raise PydanticKnownError("literal_error", {"expected": " or ".join(map(repr, modes()))})
    return mode


def _require_different(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("must be different names")
    return names


class Parameter(StrictModel):
    """A soft parameter: the nodes whose mechanisms it enters, its bounds, and its value without an intervention.

    ``node``, which may also be written ``nodes``, is one name or a list of names.
    """

    node: Annotated[
        list[Name],
        Field(min_length=1, validation_alias=AliasChoices("node", "nodes")),
        BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
        AfterValidator(_require_different),
        # Older versions of cbo-gym can read only a string.
        PlainSerializer(lambda names: names[0] if len(names) == 1 else names),
    ]
    bounds: Domain
    null: Number | str | None = None


class Description(StrictModel):
    """The description of a study, which does not change after the study is created.

    Attributes:
        name: the name of the study.
        mode: kind of action; ``"hard"``: a set of variables and the values that they are set to; ``"soft"``: values
            of all parameters; ``"contextual"``: as ``"hard"``, chosen after the contexts are observed; ``"discrete"``:
            one of the ``arms``; ``"aggregated"``: an interval of each parameter.
        options: keyword arguments of the mode, as :func:`gymnasium.make` takes them.
        reward: the variable to optimise; None with several objectives.
        direction: ``"maximize"`` or ``"minimize"`` the reward.
        objectives: several variables to optimise instead, each with its direction: ``{"titre": "maximize", "acid":
            "minimize"}``, in hard and soft mode. ``"cost"`` is the cost of a trial, if there are costs.
        variables: the observed variables, in the order in which they are shown; None for those of the diagram.
        diagram: the causal diagram without the ignored names; None if it is not known. A string is read as DAGitty.
        ignored: names whose values are accepted but not used. Effects of the reward are among them, because they do not
            change the reward.
        candidates: possible causal diagrams, one of which should be the true one; usually empty.
        settable: variable -> bounds, in its units; or :class:`~cbo_gym.study.Range` with a step, a logarithmic
            scale or digits, :class:`~cbo_gym.study.Integer` or :class:`~cbo_gym.study.Categorical`.
        parameters: the parameters of the soft and the aggregated mode.
        targets: the sets of variables that may be set; the empty set means to observe only. None for the minimal
            intervention sets.
        contexts: the variables that are observed before a trial.
        scopes: the contexts of each variable that is set, see :func:`cbo_gym.custom_problem`; None for the default.
        arms: the actions of the discrete mode, each a mapping from variables to values, ``{}`` to only observe.
        reward_range: the range of the reward, which the methods of the discrete mode need.
        limits: limits among the values that a trial sets, which hold exactly, in hard and soft mode:
            ``"feed1 + feed2 <= 5"``, ``"t1 <= t2"``, ``"a + b + c == 1"``, ``"at most 3 of a, b, c, d"``, see
            :mod:`cbo_gym.actions.limits`.
        constraints: limits of expected values, such as ``"biomass >= 2"``, see
            :func:`cbo_gym.problems.variations.constraints.read_constraints`.
        costs: name -> price of setting it, 1 for a name that is missing; or as :meth:`cbo_gym.actions.Costs.read`
            takes them.
        budget: what all trials may cost, in the units of ``costs``; None without a budget. Nothing
            enforces it.
        delta: the smallest improvement of the reward that matters, in its units, see :meth:`Study.stopping`; None for
            5 % of the range of the rewards so far.
        composition: the reward as an arithmetic expression in other variables, such as
            ``"0.7 * biomass - 2 * feed ** 2"``, if it is known and the mode is soft.
        noise: variable -> standard deviation of its own noise; None unless all of them are known.
        units: variable or parameter -> its unit.
        agent: the label of the agent.
        horizon: number of trials that are planned; some methods need it.
        seed: the seed of the agent.
    """

    name: Name
    mode: Annotated[str, AfterValidator(_require_mode)] = "hard"
    options: dict[str, Any] = {}
    reward: Name | None = None
    direction: Direction = "maximize"
    objectives: dict[Name, Direction] = {}
    variables: Annotated[list[Name], Field(max_length=MAX_VARIABLES)] | None = None
    diagram: Diagram | None = None
    ignored: list[Name] = []
    candidates: list[Diagram] = []
    settable: dict[Name, Domain] = {}
    parameters: dict[Name, Parameter] = {}
    targets: list[list[str]] | None = None
    contexts: list[str] = []
    scopes: list[dict[str, list[str]]] | None = None
    arms: list[dict[str, Number]] = []
    reward_range: Bounds | None = None
    limits: Strings = []
    constraints: Strings = []
    costs: Any = None
    budget: Annotated[Number, Field(gt=0)] | None = None
    delta: Annotated[Number, Field(gt=0)] | None = None
    composition: str | None = None
    noise: dict[str, Number] | None = None
    units: dict[str, str] = {}
    agent: str
    horizon: Annotated[WholeNumber, Field(ge=1)] = 100
    seed: Seed = 0

    @property
    def goals(self) -> tuple[Objective, ...]:
        """What is optimised: the objectives, or the reward alone."""
        directions = self.objectives or {self.reward or "": self.direction}
        return tuple(Objective(name, direction) for name, direction in directions.items())


@contextmanager
def errors_at(*path: str | int) -> Iterator[None]:
    """Attach the ``path`` of a field to an error that the block raises about it, like ``loc`` in pydantic."""
    try:
        yield
    except CBOGymError as error:
        error.__dict__.setdefault("path", path)
        raise
