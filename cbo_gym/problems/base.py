"""Benchmark problems: a structural causal model (SCM), the interventions allowed on it, and its source.

Each function of :mod:`cbo_gym.problems.systems` returns a :class:`Problem`, and so does :func:`cbo_gym.custom_problem`.
An environment plays a problem in one feedback mode; data that only one mode needs are a :class:`ModeData`. The
functions at the end are shared by several systems.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from cbo_gym._util.arguments import is_finite_number, require_not_negative, require_positive
from cbo_gym.actions import Domains, Interval
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.outcomes import Outcomes, check_constraints, check_objectives
from cbo_gym.problems.transform import Transform
from cbo_gym.scm import CausalDiagram, Distribution, Floats, GaussianMixture, Normal, System, Zero
from cbo_gym.scm.scopes import minimal_intervention_sets
from cbo_gym.scm.system import Structure
from cbo_gym.scm.values import Composition
from cbo_gym.task import GraphKnowledge

MAX_NAME = 200  # characters
MAX_TARGETS = 1024
# (weight, mean, c) of each component, see mixture_noise.
MixtureComponents = Sequence[Sequence[float]]


class ModeData(ABC):
    """Base class of a problem's data for one feedback mode. Subclasses are frozen dataclasses."""

    @abstractmethod
    def check(self, problem: Any) -> None:
        """Raise ArgumentError if the data do not fit the problem's system; the problem adds its name to the error."""

    def transform(self, transform: Transform) -> ModeData | None:
        """Return the data of an instance of the problem; None if the transform has no names for their variables.

        Raises:
            ArgumentError: if data of this type cannot be transformed.
        """
        raise ArgumentError(
            f"a problem with {type(self).__name__} has no instances, because these data cannot be transformed; "
            "leave instance at 0"
        )


Data = TypeVar("Data", bound=ModeData)


@dataclass(frozen=True, repr=False)
class ProblemStatement:
    """A :class:`Problem` whose mechanisms may be unknown, because a study learns about a real system.

    The arguments are those of :class:`Problem`, but ``scm`` may be the structure of a system without its mechanisms.
    """

    name: str
    scm: Structure
    description: str
    citation: str
    action_domains: Sequence[Interval] = ()
    action_names: Sequence[str] = ()
    null_action: Sequence[float] = ()
    manipulable: Mapping[str, Interval] = field(default_factory=dict)
    targets: Sequence[frozenset[str]] = ()
    optimal_action: Sequence[float] | None = None
    optimal_do: Mapping[str, Any] | None = None
    noiseless_mean: bool = False
    composition: Composition | None = None
    noise_known: bool = True
    kernel: tuple[float, float] | None = None
    limits: Sequence[str] = ()
    outcomes: Outcomes = field(default=None)  # type: ignore[assignment]  # see __post_init__
    knowledge: GraphKnowledge | None = None
    modes: Sequence[ModeData] = ()

    def __post_init__(self) -> None:
        _require_name(self.name)
        if self.outcomes is None:
            object.__setattr__(self, "outcomes", Outcomes(self.scm.reward))
        if not self.null_action:
            object.__setattr__(self, "null_action", (0.0,) * self.scm.action_dim)
        check_constraints(self.name, self.outcomes.constraints, self.scm)
        try:
            self._check()
        except ArgumentError as error:
            raise ArgumentError(f"{self.name}: {error}") from error

    def __repr__(self) -> str:
        """Return the name, because the labels of environments contain this."""
        return f"{type(self).__name__}({self.name!r})"

    def _check(self) -> None:
        q = self.scm.action_dim
        if len(self.action_domains) != q:
            raise ArgumentError(f"action_domains needs {q} intervals; given {len(self.action_domains)}")
        if self.action_names and len(set(self.action_names)) != q:
            raise ArgumentError(f"action_names needs {q} different names or none; given {list(self.action_names)}")
        # Agents maximise the last node.
        if self.outcomes.objective != self.scm.reward:
            raise ArgumentError(
                f"the objective must be the system's reward {self.scm.reward!r}; "
                f"given {short_repr(self.outcomes.objective)}"
            )
        check_objectives(self.outcomes, self.scm, self.manipulable)
        if len(self.null_action) != q or not all(is_finite_number(a) and 0 <= a <= 1 for a in self.null_action):
            raise ArgumentError(f"null_action needs {q} numbers in [0, 1]")
        for name, domain in [
            *zip(self.action_names or range(q), self.action_domains, strict=True),
            *self.manipulable.items(),
        ]:
            require_interval(f"the domain of {name!r}", domain)
        self.require_settable([*self.manipulable, *frozenset().union(*self.targets)])
        if missing := frozenset().union(*self.targets) - set(self.manipulable):
            raise ArgumentError(f"no domain is given for the targets {sorted(missing)}")
        if self.optimal_do is not None and not self._is_allowed(self.optimal_do):
            raise ArgumentError(
                f"optimal_do must set one of the targets to values in their domains; given {dict(self.optimal_do)}"
            )
        types = [type(data) for data in self.modes]
        if len(set(types)) < len(types):
            raise ArgumentError(f"modes may have one element of each type; given {[type_.__name__ for type_ in types]}")
        for data in self.modes:
            data.check(self)

    def _is_allowed(self, intervention: Mapping[str, Any]) -> bool:
        """Return whether a hard intervention sets one of the targets, to values in their domains."""
        if frozenset(intervention) not in self.targets:
            return False
        domains = Domains(self.manipulable)
        numbers = {name: domains.number(name, value) for name, value in intervention.items()}
        return all(map(is_finite_number, numbers.values())) and all(
            self.manipulable[name][0] <= number <= self.manipulable[name][1] for name, number in numbers.items()
        )

    def data(self, kind: type[Data]) -> Data | None:
        """Return the problem's data of type ``kind``, which belong to a feedback mode; None without such data."""
        return next((data for data in self.modes if isinstance(data, kind)), None)

    def with_data(self, data: ModeData, **changes: Any) -> Self:
        """Return the problem with the data of one mode replaced or added, and with changed fields."""
        other_modes = [other for other in self.modes if type(other) is not type(data)]
        return replace(self, modes=[*other_modes, data], **changes)

    def require_settable(self, names: Iterable[str]) -> None:
        """Raise ArgumentError if a name is not an observed variable other than the reward."""
        settable = set(self.scm.nodes) - {self.scm.reward}
        for name in names:
            if name not in settable:
                raise ArgumentError(f"{name!r} cannot be set; choose from {sorted(settable)}")

    @cached_property
    def domains(self) -> Domains:
        """Native intervals of the soft action coordinates, with ``action_names`` if there are any."""
        if self.action_names:
            return Domains(dict(zip(self.action_names, self.action_domains, strict=True)))
        return Domains(self.action_domains)

    def to_native(self, action: ArrayLike) -> np.ndarray:
        """Map a soft action of shape ``(..., q)`` from [0, 1] to native units."""
        return self.domains.points_to_native(action)


@dataclass(frozen=True, repr=False)
class Problem(ProblemStatement):
    """Benchmark problem: an SCM, the interventions allowed on it, and its source.

    Args:
        name: name, as in the environment ids.
        scm: the system; its reward is maximised.
        description: one or two sentences for users.
        citation: paper and section.
        action_domains: native ``(low, high)`` or :class:`~cbo_gym.actions.TypedDomain` of each soft action coordinate.
        action_names: name of each coordinate; empty for the names ``a0``, ``a1``, ...
        null_action: the soft action, in [0, 1] per coordinate, that counts as "no intervention" if the number of
            interventions is limited; zeros by default.
        manipulable: variable -> native ``(low, high)`` or ``TypedDomain`` of its hard interventions.
        targets: the sets of variables that a hard intervention may set. The empty set, to only observe, is usually one.
        optimal_action: a maximiser of E[Y | a] in [0, 1] per coordinate; None if there is no closed form.
        optimal_do: variable -> native value or label, a hard intervention that maximises E[Y | do] over all targets;
            None if theory gives none.
        noiseless_mean: whether E[Y | a] equals the reward without noise for every soft action. It does if the noise
            has mean zero and enters the reward linearly.
        composition: function from the other observed nodes, name -> value, to the reward (to its mean if it is noisy),
            for methods of composite optimisation; None if agents do not know it. It uses only plain operators, so that
            values may be NumPy arrays or torch tensors.
        noise_known: whether agents know the exogenous distributions.
        kernel: ``(lengthscale, variance)`` of the squared-exponential kernel behind the reward function, over actions
            in [0, 1]; None if agents do not know it.
        limits: limits on the values that an action sets, in soft and hard mode, such as ``"a + b <= 5"`` and
            ``"at most 2 of a, b, c"``, see :mod:`cbo_gym.actions.limits`.
        outcomes: objectives, constraints and costs; None for the system's reward as the objective.
        knowledge: agents' knowledge of the causal graph, see :mod:`cbo_gym.problems.variations.graph_knowledge`; None
            if they know all of it.
        modes: data that only one feedback mode needs, at most one of each type, see :mod:`cbo_gym.problems.modes`.
        transform: transform from the published problem to this instance of it, see
            :mod:`cbo_gym.problems.variations.instance`; None for the published problem.

    Raises:
        ArgumentError: if domains, null action, targets, scopes, arms, slices, constraints and SCM do not fit together.
    """

    scm: System
    transform: Transform | None = None


def _require_name(name: object) -> None:
    """Raise ArgumentError if a name cannot be shown in a terminal, a table or a page."""
    valid = isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable() and not set("<>") & set(name)
    if not valid:
        raise ArgumentError(
            f"the name must be one line of 1 to {MAX_NAME} printable characters, without < and >; "
            f"given {short_repr(name)}"
        )


def require_interval(name: str, value: object) -> None:
    """Raise ArgumentError, with the argument's name, unless a value is ``(low, high)``, finite and low < high."""
    pair = tuple(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else ()
    if not (len(pair) == 2 and all(map(is_finite_number, pair)) and 0 < pair[1] - pair[0] < math.inf):
        raise ArgumentError(f"{name} must be low < high, two finite numbers; given {short_repr(value)}")


def minimal_targets(
    diagram: CausalDiagram, reward: str, manipulable: Iterable[str], constrained: Iterable[str] = ()
) -> list[frozenset[str]]:
    """Return the minimal intervention sets of the manipulable variables, from the empty set to the largest.

    Args:
        diagram: the diagram of the observed variables.
        reward: its reward.
        manipulable: variables that may be set.
        constrained: constrained nodes; variables that affect one of them may be set like those that affect the reward.

    Raises:
        ArgumentError: if there are more than ``MAX_TARGETS``.
    """
    names = list(manipulable)
    targets = minimal_intervention_sets(diagram, reward, names, max_sets=MAX_TARGETS, constrained=constrained)
    return sorted(targets, key=lambda target: (len(target), sorted(map(names.index, target))))


def gaussian_noise(std: float, name: str = "noise_std") -> Distribution:
    """Return normal noise with mean 0, or no noise if ``std`` is 0.

    Raises:
        ArgumentError: if ``std`` is negative or not finite; the message says ``name`` instead of ``std``.
    """
    require_not_negative(name, std)
    return Normal(0.0, std) if std else Zero()


def mixture_noise(components: MixtureComponents, noise_std: float, noise_scale: float = 1.0) -> GaussianMixture:
    """Return Gaussian mixture noise in the notation of Ren et al. (2024), Eq. 6 and 15.

    Args:
        components: ``(weight, mean, c)`` of each component, which is normal with this mean and variance c sigma^2. Only
            the ratios of the weights matter.
        noise_std: sigma.
        noise_scale: lambda, by which the draws are multiplied.

    Raises:
        ArgumentError: if a component is not three finite numbers with weight and c above 0, or if sigma or lambda is
            not above 0.
    """
    for name, value in (("noise_std", noise_std), ("noise_scale", noise_scale)):
        require_positive(name, value)
    rows = components.tolist() if isinstance(components, np.ndarray) else components
    is_list = isinstance(rows, list | tuple)
    if not is_list or not rows or not all(isinstance(row, list | tuple) and len(row) == 3 for row in rows):
        raise ArgumentError(
            f"components must be triples (weight, mean, c), at least one; given {short_repr(components)}"
        )
    if not all(map(is_finite_number, chain(*rows))) or any(weight <= 0 or c <= 0 for weight, _, c in rows):
        raise ArgumentError(f"components need finite numbers, weight and c above 0; given {short_repr(components)}")
    weights, means, variances = np.array(rows, dtype=float).T
    stds = noise_scale * noise_std * np.sqrt(variances)
    return GaussianMixture(weights / weights.sum(), noise_scale * means, stds)


def clip_fraction(x: Any) -> Floats:
    """Clip ``x`` to [0, 1].

    On a single float this arithmetic is several times faster than NumPy's clip, and no rounding error leaves [0, 1].
    It uses that ``x + |x|`` is ``2 max(x, 0)``, twice.
    """
    twice_non_negative = x + abs(x)
    twice_distance_to_1 = 2.0 - twice_non_negative
    return 1.0 - 0.25 * (twice_distance_to_1 + abs(twice_distance_to_1))
