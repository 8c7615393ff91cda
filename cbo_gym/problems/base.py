"""Problem: a structural causal model with everything that turns it into a benchmark."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from cbo_gym.scm import Distribution, Normal, StructuralCausalModel, Zero
from cbo_gym.scm.scopes import Scope, scope_diagram

Interval = tuple[float, float]
Columns = Mapping[str, np.ndarray]  # variable -> array


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
class Problem:
    """A named benchmark: the SCM, what may be done to it, and where it comes from.

    Args:
        name: as in the environment ids.
        scm: the system; its reward is maximised.
        description: one or two sentences for users.
        citation: paper and section.
        action_domains: native ``(low, high)`` of each soft action coordinate.
        null_action: the soft action, in [0, 1] per coordinate, that counts as "no intervention" under a
            cardinality limit; the lower corner by default.
        manipulable: variable -> native ``(low, high)`` of its hard interventions.
        targets: the sets that a hard intervention may set, the empty set included.
        optimal_action: a maximiser of E[Y | a] in [0, 1] per coordinate, where one is known in closed form.
        noiseless_mean: True if, for every soft action, E[Y | a] is the reward without noise (zero-mean noise
            that enters the reward linearly).
        composition: the reward as a *known* function of the other observed nodes (name -> value; plain operators
            only, so that it takes NumPy arrays and torch tensors), for methods of composite optimisation; else None.
        noise_known: whether agents are told the exogenous distributions.
        kernel: ``(lengthscale, variance)`` of the squared-exponential kernel behind the reward function, over actions
            in [0, 1], where agents are told it; else None.
        contexts: what the contextual mode needs; None where there is none.

    Raises:
        ValueError: if domains, null action, targets, scopes and SCM do not fit together.
    """

    name: str
    scm: StructuralCausalModel
    description: str
    citation: str
    action_domains: Sequence[Interval] = ()
    null_action: Sequence[float] = ()
    manipulable: Mapping[str, Interval] = field(default_factory=dict)
    targets: Sequence[frozenset[str]] = ()
    optimal_action: Sequence[float] | None = None
    noiseless_mean: bool = False
    composition: Callable[[Mapping[str, Any]], Any] | None = None
    noise_known: bool = True
    kernel: tuple[float, float] | None = None
    contexts: Contexts | None = None

    def __post_init__(self) -> None:
        q = self.scm.action_dim
        if len(self.action_domains) != q:
            raise ValueError(f"{self.name}: action_domains needs {q} intervals; given {len(self.action_domains)}")
        if not self.null_action:
            object.__setattr__(self, "null_action", (0.0,) * q)
        if len(self.null_action) != q or not all(0 <= a <= 1 for a in self.null_action):
            raise ValueError(f"{self.name}: null_action needs {q} numbers in [0, 1]")
        for what, (low, high) in [*enumerate(self.action_domains), *self.manipulable.items()]:
            if not (np.isfinite([low, high]).all() and low < high):
                raise ValueError(f"{self.name}: the domain of {what!r} must be low < high; given {low, high}")
        settable = set(self.scm.nodes) - {self.scm.reward}
        for name in [*self.manipulable, *frozenset().union(*self.targets)]:
            if name not in settable:
                raise ValueError(f"{self.name}: {name!r} cannot be set; choose from {sorted(settable)}")
        if missing := frozenset().union(*self.targets) - set(self.manipulable):
            raise ValueError(f"{self.name}: no domain is given for the targets {sorted(missing)}")
        if self.contexts:
            self._check_contexts(self.contexts)

    def _check_contexts(self, contexts: Contexts) -> None:
        free = [name for name in self.scm.nodes[:-1] if name not in self.manipulable]
        if unknown := [name for name in contexts.names if name not in free]:
            raise ValueError(f"{self.name}: {unknown} cannot be contexts; choose from {free}")
        if not contexts.scopes:
            raise ValueError(f"{self.name}: give at least one scope")
        for scope in contexts.scopes:
            self._check_scope(scope, contexts.names)

    def _check_scope(self, scope: Scope, contexts: Sequence[str]) -> None:
        for variable, given in scope:
            if variable not in self.manipulable:
                raise ValueError(f"{self.name}: a scope cannot set {variable!r}; choose from {list(self.manipulable)}")
            if unknown := sorted(given.difference(contexts)):
                raise ValueError(
                    f"{self.name}: {unknown} cannot be contexts of {variable}; choose from {list(contexts)}"
                )
        scope_diagram(self.scm.diagram, scope)  # raises for a cycle

    def to_native(self, action: Any) -> np.ndarray:
        """Map a soft action of shape ``(..., q)`` from [0, 1] to native units."""
        low, high = np.asarray(self.action_domains, dtype=float).reshape(-1, 2).T
        return low + (high - low) * np.asarray(action, dtype=float)


def gaussian_noise(std: float) -> Distribution:
    """Zero-mean normal noise; none at all for ``std == 0``.

    Raises:
        ValueError: if ``std`` is negative or not finite.
    """
    if not (np.isfinite(std) and std >= 0):
        raise ValueError(f"noise_std must be a finite number of at least 0; given {std!r}")
    return Normal(0.0, std) if std else Zero()


def build_problem(builder: str | Problem, **parameters: Any) -> Problem:
    """A problem from its builder's import path, ``"package.module:function"``; a Problem is returned as it is.

    Raises:
        ValueError: if the path leads nowhere, or a parameter is not one of the builder's.
    """
    if isinstance(builder, Problem):
        if parameters:
            raise ValueError(f"a ready Problem takes no parameters; given {sorted(parameters)}")
        return builder
    module_name, _, attribute = builder.partition(":")
    try:
        function = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"no problem builder at {builder!r}; give 'package.module:function' ({error})") from error
    allowed = inspect.signature(function).parameters
    if unknown := sorted(set(parameters) - set(allowed)):
        raise ValueError(f"{builder} takes the parameters {sorted(allowed)}; given also {unknown}")
    return function(**parameters)
