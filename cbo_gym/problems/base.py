"""Problem: a structural causal model with everything that turns it into a benchmark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cbo_gym.actions import Domains, Interval
from cbo_gym.arguments import is_finite_number, require_not_negative, require_positive, whole_number
from cbo_gym.errors import ArgumentError, shown
from cbo_gym.problems.outcomes import Outcomes, check_constraints
from cbo_gym.scm import (
    Component,
    Distribution,
    DistributionFamily,
    Floats,
    GaussianMixture,
    Normal,
    System,
    Uniform,
    Zero,
)
from cbo_gym.scm.scopes import Scope, minimal_intervention_sets, scope_diagram
from cbo_gym.scm.values import Composition
from cbo_gym.task import ToldGraph

Columns = Mapping[str, np.ndarray]  # variable -> array
LONGEST_NAME = 200  # characters
MOST_TARGETS = 1024
MOST_SCOPES = 1024
MOST_ARMS = 2**14
MOST_COMPONENTS = 1000  # of a mixture
MOST_PAIRS = 2**20  # of an action and a move of an adversarial problem
MixtureComponents = Sequence[Sequence[float]]  # (weight, mean, c) of each


@dataclass(frozen=True)
class SuperArms:
    """What makes a system a masked one: base arms with random signals, of which a super arm lets some through.

    The soft parameters of the system are the super arm, 0 or 1 for each base arm.

    Args:
        size: the largest number s of base arms in a super arm.
        exogenous: the variables that hold the signals let through, in the order of the arms.
        signal_range: an interval that holds every signal.
        signal_family: the family from which the signals' distributions were drawn, where agents are told it.
        components: one function of each family that the equations are made of, where agents are told them; up to
            factors, which they are not told.
    """

    size: int
    exogenous: Sequence[str]
    signal_range: Interval = (0.0, 1.0)
    signal_family: DistributionFamily | None = None
    components: Sequence[Component] = ()


@dataclass(frozen=True)
class Contexts:
    """What the contextual mode adds to a problem: what is seen before acting, and what that tells about the noise.

    Args:
        names: the context variables: observed, never set, not the reward. What is seen of them are their natural
            values, those of the un-intervened system.
        scopes: the scopes that may be played.
        noise_given: called with the contexts' values and with independent U(0, 1) numbers for every noisy variable,
            arrays by name that broadcast together; returns draws of the exogenous variables given the contexts, by
            name, for those whose distribution the contexts change.
        best_response: the contexts' values to the native values of an intervention that maximises E[Y | x, c] over
            the values of all scopes (the variables set are the same in every context), where theory gives one.
        policy: that intervention in words.
        value: E[Y] under it, where it is known exactly.
    """

    names: Sequence[str]
    scopes: Sequence[Scope]
    noise_given: Callable[[Columns, Columns], Columns]
    best_response: Callable[[Columns], Columns] | None = None
    policy: str | None = None
    value: float | None = None


@dataclass(frozen=True)
class Adversary:
    """What the adversarial mode adds to a problem: a second player, who has soft parameters of its own.

    Both players' coordinates take one of ``levels`` equally spaced values. The reward of the problem lies in [0, 1], as
    the bounds of multiplicative weights ask.

    Args:
        coordinates: how many soft parameters of the system are the adversary's: the last ones.
        levels: values that each coordinate of either player may take.
        luck: name of a latent U(0, 1) variable without effects: the adversary's own randomness.
    """

    coordinates: int
    levels: int = 4
    luck: str = "luck"


@dataclass(frozen=True)
class Slices:
    """What the dynamic mode adds to a problem: its system is one of slices, in each of which the same variables come.

    In slice t the variable ``X`` is the system's ``X_t``, t from 0; the system's reward is that of the last slice.

    Args:
        count: the number T of slices.
        names: the variables of a slice in topological order, the reward last.
        manipulable: variable of a slice -> native ``(low, high)`` of its hard interventions.
        targets: the sets that an intervention may set in a slice, the empty set included.
        history: the system from which observational time series come, over the same variables.
        measured: in how many slices, the first ones, these were measured.
    """

    count: int
    names: Sequence[str]
    manipulable: Mapping[str, Interval]
    targets: Sequence[frozenset[str]]
    history: System
    measured: int


@dataclass(frozen=True)
class Problem:
    """A named benchmark: the SCM, what may be done to it, and where it comes from.

    Args:
        name: as in the environment ids.
        scm: the system; its reward is maximised.
        description: one or two sentences for users.
        citation: paper and section.
        action_domains: native ``(low, high)`` of each soft action coordinate.
        action_names: the coordinates' own names, one each, or none: they are then known by the nodes that they feed.
        null_action: the soft action, in [0, 1] per coordinate, that counts as "no intervention" under a
            cardinality limit; the lower corner by default.
        manipulable: variable -> native ``(low, high)`` of its hard interventions.
        targets: the sets that a hard intervention may set, the empty set included.
        optimal_action: a maximiser of E[Y | a] in [0, 1] per coordinate, where one is known in closed form.
        optimal_do: the native values, by variable, of a hard intervention that maximises E[Y | do] over all targets,
            where theory gives one.
        noiseless_mean: True if, for every soft action, E[Y | a] is the reward without noise (zero-mean noise
            that enters the reward linearly).
        composition: the reward as a *known* function of the other observed nodes (name -> value; plain operators
            only, so that it takes NumPy arrays and torch tensors), for methods of composite optimisation; else None.
        noise_known: whether agents are told the exogenous distributions.
        kernel: ``(lengthscale, variance)`` of the squared-exponential kernel behind the reward function, over actions
            in [0, 1], where agents are told it; else None.
        super_arms: for a masked system; its soft parameters then have the domains (0, 1).
        contexts: what the contextual mode needs; None where there is none.
        arms: the interventions of the discrete mode, variable -> native value; ``{}`` is to only observe. The reward
            of a problem with arms lies in [0, 1], as bandit algorithms ask.
        adversary: who plays against the agent in adversarial mode; None where nobody does.
        outcomes: what counts of a round; None for the system's reward as the objective.
        told: what agents are told of the causal graph, see :mod:`cbo_gym.problems.variations.graph_knowledge`; None
            for all of it.
        slices: what the dynamic mode needs; None where there are none.

    Raises:
        ArgumentError: if domains, null action, targets, scopes, arms, slices, constraints and SCM do not fit together.
    """

    name: str
    scm: System
    description: str
    citation: str
    action_domains: Sequence[Interval] = ()
    action_names: Sequence[str] = ()
    null_action: Sequence[float] = ()
    manipulable: Mapping[str, Interval] = field(default_factory=dict)
    targets: Sequence[frozenset[str]] = ()
    optimal_action: Sequence[float] | None = None
    optimal_do: Mapping[str, float] | None = None
    noiseless_mean: bool = False
    composition: Composition | None = None
    noise_known: bool = True
    kernel: tuple[float, float] | None = None
    super_arms: SuperArms | None = None
    contexts: Contexts | None = None
    arms: Sequence[Mapping[str, float]] = ()
    adversary: Adversary | None = None
    outcomes: Outcomes = field(default=None)  # type: ignore[assignment]  # see __post_init__
    told: ToldGraph | None = None
    slices: Slices | None = None

    def __post_init__(self) -> None:
        _require_name(self.name)
        q = self.scm.action_dim
        if len(self.action_domains) != q:
            raise ArgumentError(f"{self.name}: action_domains needs {q} intervals; given {len(self.action_domains)}")
        if self.action_names and len(set(self.action_names)) != q:
            raise ArgumentError(
                f"{self.name}: action_names needs {q} different names or none; given {list(self.action_names)}"
            )
        if self.outcomes is None:
            object.__setattr__(self, "outcomes", Outcomes(self.scm.reward))
        if self.outcomes.objective != self.scm.reward:  # agents are told that the last node is the one to maximise
            raise ArgumentError(
                f"{self.name}: the objective must be the system's reward {self.scm.reward!r}; "
                f"given {shown(self.outcomes.objective)}"
            )
        check_constraints(self.name, self.outcomes.constraints, self.scm)
        if not self.null_action:
            object.__setattr__(self, "null_action", (0.0,) * q)
        if len(self.null_action) != q or not all(is_finite_number(a) and 0 <= a <= 1 for a in self.null_action):
            raise ArgumentError(f"{self.name}: null_action needs {q} numbers in [0, 1]")
        for what, domain in [
            *zip(self.action_names or range(q), self.action_domains, strict=True),
            *self.manipulable.items(),
        ]:
            require_interval(f"{self.name}: the domain of {what!r}", domain)
        settable = set(self.scm.nodes) - {self.scm.reward}
        for name in [*self.manipulable, *frozenset().union(*self.targets, *self.arms)]:
            if name not in settable:
                raise ArgumentError(f"{self.name}: {name!r} cannot be set; choose from {sorted(settable)}")
        arms = self.super_arms
        if arms is not None and not (len(arms.exogenous) == q and arms.size in range(1, q + 1)):
            raise ArgumentError(
                f"{self.name}: a super arm must hold at least 1 and at most all of the {q} base arms, each with a "
                f"signal; given the size {shown(arms.size)} and {len(arms.exogenous)} signals"
            )
        if missing := frozenset().union(*self.targets) - set(self.manipulable):
            raise ArgumentError(f"{self.name}: no domain is given for the targets {sorted(missing)}")
        if self.optimal_do is not None:
            self._check_optimal_do(self.optimal_do)
        self._check_arms()
        if self.contexts:
            self._check_contexts(self.contexts)
        if self.adversary:
            self._check_adversary(self.adversary)
        if self.slices:
            self._check_slices(self.slices)

    def _check_adversary(self, adversary: Adversary) -> None:
        coordinates = whole_number(f"{self.name}: the adversary's coordinates", adversary.coordinates, at_least=1)
        levels = whole_number(f"{self.name}: the adversary's levels", adversary.levels, at_least=2)
        own = self.scm.action_dim - coordinates
        if own < 1:
            raise ArgumentError(
                f"{self.name}: of {self.scm.action_dim} soft parameters the adversary may have all but one; "
                f"given {coordinates}"
            )
        if (pairs := levels**self.scm.action_dim) > MOST_PAIRS:
            raise ArgumentError(
                f"{self.name}: {levels} levels make {pairs} pairs of an action and a move; at most {MOST_PAIRS} can be "
                "gone through"
            )
        kept = {v.name: v.noise for v in self.scm.noisy if not v.observed}
        if kept.get(adversary.luck) != Uniform(0.0, 1.0) or adversary.luck in self.scm.noise_of_reward:
            raise ArgumentError(
                f"{self.name}: {adversary.luck!r} must be a latent variable without effects whose noise is "
                "Uniform(0, 1), the adversary's luck"
            )
        if shared := {v.name for v in self.scm.variables}.intersection(self.domains.names[own:]):
            raise ArgumentError(f"{self.name}: {sorted(shared)} name variables and coordinates of the adversary")

    def _check_arms(self) -> None:
        if len(self.arms) > MOST_ARMS:
            raise ArgumentError(f"{self.name}: at most {MOST_ARMS} arms can be played; given {len(self.arms)}")
        for place, arm in enumerate(self.arms):
            if not all(map(is_finite_number, arm.values())):
                raise ArgumentError(f"{self.name}: arm {place} must set variables to finite numbers; given {dict(arm)}")
        if len({frozenset(arm.items()) for arm in self.arms}) < len(self.arms):
            raise ArgumentError(f"{self.name}: the arms must be different interventions; two of {len(self.arms)} agree")

    def _check_optimal_do(self, best: Mapping[str, float]) -> None:
        if frozenset(best) not in self.targets or not all(
            _within(value, self.manipulable[name]) for name, value in best.items()
        ):
            raise ArgumentError(
                f"{self.name}: optimal_do must set one of the targets to values in their domains; given {dict(best)}"
            )

    def _check_contexts(self, contexts: Contexts) -> None:
        if self.scm.action_dim:
            raise ArgumentError(
                f"{self.name}: a problem with contexts takes no soft parameters; make them variables that may be set"
            )
        free = [name for name in self.scm.nodes[:-1] if name not in self.manipulable]
        if unknown := [name for name in contexts.names if name not in free]:
            raise ArgumentError(f"{self.name}: {unknown} cannot be contexts; choose from {free}")
        if not 1 <= len(contexts.scopes) <= MOST_SCOPES:
            raise ArgumentError(
                f"{self.name}: give at least one scope, and at most {MOST_SCOPES}; given {len(contexts.scopes)}"
            )
        for scope in contexts.scopes:
            self._check_scope(scope, contexts.names)

    def _check_slices(self, slices: Slices) -> None:
        reward = slices.names[-1]
        needed = [f"{name}_{place}" for place in range(slices.count) for name in slices.names]
        if set(needed) != set(self.scm.nodes) or self.scm.reward != f"{reward}_{slices.count - 1}":
            raise ArgumentError(
                f"{self.name}: {slices.count} slices of {list(slices.names)} need the variables {needed}, the last of "
                f"them the reward; the system has {list(self.scm.nodes)}"
            )
        if set(slices.history.nodes) != set(needed) or not 0 <= slices.measured <= slices.count:
            raise ArgumentError(
                f"{self.name}: the system behind the time series must have the variables {needed}, measured in 0 to "
                f"{slices.count} slices; given {list(slices.history.nodes)}, measured in {slices.measured}"
            )
        for name, domain in slices.manipulable.items():
            if name not in slices.names[:-1]:
                raise ArgumentError(f"{self.name}: {name!r} cannot be set; choose from {list(slices.names[:-1])}")
            require_interval(f"{self.name}: the domain of {name!r}", domain)
        if missing := frozenset().union(*slices.targets) - set(slices.manipulable):
            raise ArgumentError(f"{self.name}: no domain is given for the targets {sorted(missing)}")
        if frozenset() not in slices.targets:
            raise ArgumentError(f"{self.name}: the empty set must be among the targets of a slice")

    def _check_scope(self, scope: Scope, contexts: Sequence[str]) -> None:
        for variable, given in sorted(scope, key=itemgetter(0)):  # errors do not hang on the hash seed
            if variable not in self.manipulable:
                raise ArgumentError(
                    f"{self.name}: a scope cannot set {variable!r}; choose from {list(self.manipulable)}"
                )
            if unknown := sorted(given.difference(contexts)):
                raise ArgumentError(
                    f"{self.name}: {unknown} cannot be contexts of {variable}; choose from {list(contexts)}"
                )
        scope_diagram(self.scm.diagram, scope)  # raises for a cycle

    @cached_property
    def domains(self) -> Domains:
        """Native units of the soft action coordinates, with their own names where they have any."""
        if self.action_names:
            return Domains(dict(zip(self.action_names, self.action_domains, strict=True)))
        return Domains(self.action_domains)

    def to_native(self, action: ArrayLike) -> np.ndarray:
        """Map a soft action of shape ``(..., q)`` from [0, 1] to native units."""
        return self.domains.points_to_native(action)


def _require_name(name: object) -> None:
    """Refuse what cannot stand in a line of a terminal, a table or a page."""
    fits = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable() and not set("<>") & set(name)
    if not fits:
        raise ArgumentError(
            f"a problem's name must be one line of 1 to {LONGEST_NAME} characters that can be shown, without < and >; "
            f"given {shown(name)}"
        )


def _within(value: Any, interval: Interval) -> bool:
    return is_finite_number(value) and interval[0] <= value <= interval[1]


def require_interval(what: str, given: object) -> None:
    """Refuse what is not ``(low, high)``, finite numbers with low < high.

    Raises:
        ArgumentError: naming ``what`` it should be.
    """
    pair = tuple(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else ()
    if not (len(pair) == 2 and all(map(is_finite_number, pair)) and 0 < pair[1] - pair[0] < math.inf):
        raise ArgumentError(f"{what} must be low < high, two finite numbers; given {shown(given)}")


def minimal_targets(scm: System, manipulable: Iterable[str], limited: Iterable[str] = ()) -> list[frozenset[str]]:
    """The minimal intervention sets of the manipulable variables, smaller ones first, the empty one included.

    Args:
        scm: the system.
        manipulable: what may be set.
        limited: nodes under constraints, which are reasons to set a variable as the reward is.

    Raises:
        ArgumentError: if there are more than ``MOST_TARGETS``.
    """
    names = list(manipulable)
    found = minimal_intervention_sets(scm.diagram, scm.reward, names, most=MOST_TARGETS, limited=limited)
    return sorted(found, key=lambda target: (len(target), sorted(map(names.index, target))))


def gaussian_noise(std: float, name: str = "noise_std") -> Distribution:
    """Zero-mean normal noise; none at all for ``std == 0``.

    Raises:
        ArgumentError: if ``std`` is negative or not finite; ``name`` is what the user knows it by.
    """
    require_not_negative(name, std)
    return Normal(0.0, std) if std else Zero()


def mixture_noise(components: MixtureComponents, noise_std: float, noise_scale: float = 1.0) -> GaussianMixture:
    """Noise with several modes, as Ren et al. (2024) write it, Eq. 6 and 15.

    Args:
        components: ``(weight, mean, c)`` of each, at most 1,000: a normal with that mean and the variance c sigma^2.
            Only the ratios of the weights matter.
        noise_std: sigma.
        noise_scale: lambda, which multiplies the draws.

    Raises:
        ArgumentError: if a component is not three finite numbers, weight and c above 0, or sigma or lambda not above 0.
    """
    for name, value in (("noise_std", noise_std), ("noise_scale", noise_scale)):
        require_positive(name, value)
    rows = components.tolist() if isinstance(components, np.ndarray) else components
    if not (isinstance(rows, list | tuple) and 1 <= len(rows) <= MOST_COMPONENTS and all(map(_is_triple, rows))):
        raise ArgumentError(
            f"components must be triples (weight, mean, c), at least one and at most {MOST_COMPONENTS}; "
            f"given {shown(components)}"
        )
    if not all(map(is_finite_number, chain(*rows))) or any(weight <= 0 or c <= 0 for weight, _, c in rows):
        raise ArgumentError(f"components need finite numbers, weight and c above 0; given {shown(components)}")
    weights, means, variances = np.array(rows, dtype=float).T
    stds = noise_scale * noise_std * np.sqrt(variances)
    return GaussianMixture(weights / weights.sum(), noise_scale * means, stds)


def _is_triple(given: object) -> bool:
    return isinstance(given, list | tuple) and len(given) == 3


def non_negative(x: Any) -> Floats:
    """max(x, 0) in plain arithmetic: several times faster on a single float than a NumPy function."""
    return 0.5 * (x + abs(x))


def clip_fraction(x: Any) -> Floats:
    """``x`` clipped to [0, 1]; arithmetic for the same reason. Never a rounding error outside."""
    twice_low = x + abs(x)
    twice_rest = 2.0 - twice_low
    return 1.0 - 0.25 * (twice_rest + abs(twice_rest))
