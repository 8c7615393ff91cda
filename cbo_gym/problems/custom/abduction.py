"""Abduction: recover the exogenous noise from the observed contexts (Pearl, *Causality*, 2009, sec. 7.1).

In contextual mode a policy is judged by E[Y | x, c], the expected reward given the contexts, for which the noise must
be drawn given the contexts. Named systems have formulas for it; :class:`Abduction` solves custom problems numerically.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.problems.modes.contextual import Columns
from cbo_gym.scm import Floats, StructuralCausalModel

# The noise is searched between its quantiles TAIL and 1 - TAIL.
TAIL = 2.0**-40
# Steps of the bisection.
HALVINGS = 64
# Monotonicity in one variable's noise is checked on a grid of GRID_POINTS values, for DRAWS draws of all other noise.
DRAWS, GRID_POINTS = 32, 129
ADVICE = "give noise_given, which draws the noise given the contexts, or choose other contexts"


class Abduction:
    """Function that recovers the noise of variables from the values of contexts.

    The contexts are put in an order in which each one depends on the noise of at most one more variable than those
    before it. It must be strictly monotone in that noise, and bisection finds the noise that gives the context's value.
    Noise on which no context depends keeps its distribution.

    Args:
        scm: model without soft parameters.
        contexts: names of variables of the model.

    Raises:
        ArgumentError: if there is no such order, or a context is not strictly monotone in the noise that it determines.
    """

    def __init__(self, scm: StructuralCausalModel, contexts: Iterable[str]) -> None:
        self._scm = scm
        self._noise = {v.name: v.noise for v in scm.noisy}
        self._ancestors = {name: scm.full_diagram.ancestors([name]) for name in contexts}
        self._variable_of = self._match_variables()
        for context, variable in self._variable_of.items():
            self._require_monotone(context, variable)

    def __call__(self, contexts: Columns, uniforms: Columns) -> Columns:
        """Return the noise that the contexts determine, by variable.

        ``uniforms`` is not used; see ``noise_given`` of :class:`cbo_gym.problems.Contexts`.
        """
        noise: dict[str, np.ndarray] = {}
        for context, variable in self._variable_of.items():
            noise[variable] = self._solve(context, variable, contexts[context], noise)
        return noise

    def _match_variables(self) -> dict[str, str]:
        """Return context -> the variable whose noise it determines, in an order in which they can be solved."""
        variable_of: dict[str, str] = {}
        pending = list(self._ancestors)
        while pending:
            unsolved = set(self._noise) - set(variable_of.values())
            unknown = {name: sorted(self._ancestors[name] & unsolved) for name in pending}
            context = min(pending, key=lambda name: len(unknown[name]))
            if len(unknown[context]) > 1:
                raise ArgumentError(
                    f"the context {context} depends on the noise of {unknown[context]}, which cannot be identified "
                    f"from the contexts {list(self._ancestors)}; {ADVICE}"
                )
            pending.remove(context)
            if unknown[context]:
                (variable_of[context],) = unknown[context]
        return variable_of

    def _value(self, context: str, noise: Mapping[str, Floats]) -> Floats:
        """Return the value of a context, given the noise of its ancestors."""
        values: dict[str, Floats] = {}
        for v in self._scm.variables:
            if v.name in self._ancestors[context]:
                values[v.name] = v.mechanism(*[values[parent] for parent in v.parents], noise.get(v.name, 0.0))
        return values[context]

    def _range(self, variable: str) -> np.ndarray:
        return self._noise[variable].from_uniform(np.array([TAIL, 1.0 - TAIL]))

    @np.errstate(all="ignore")
    def _require_monotone(self, context: str, variable: str) -> None:
        rng = np.random.default_rng(0)
        noise: dict[str, Floats] = {
            name: distribution.sample(rng, (DRAWS, 1)) for name, distribution in self._noise.items()
        }
        low, high = self._range(variable)
        noise[variable] = np.linspace(low, high, GRID_POINTS)
        values = np.broadcast_to(self._value(context, noise), (DRAWS, GRID_POINTS))
        steps = np.diff(values, axis=1)
        is_monotone = (steps > 0).all(axis=1) | (steps < 0).all(axis=1)
        if not is_monotone.all():
            raise ArgumentError(
                f"the context {context} does not determine the noise of {variable}, because it is not strictly "
                f"monotone in it; {ADVICE}"
            )

    @np.errstate(all="ignore")
    def _solve(self, context: str, variable: str, value: np.ndarray, noise: Columns) -> np.ndarray:
        """Return the variable's noise that gives the context its value, given the noise of the contexts before it."""
        low, high = (np.full(np.shape(value), end) for end in self._range(variable))
        rises = self._value(context, {**noise, variable: high}) > self._value(context, {**noise, variable: low})
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = (self._value(context, {**noise, variable: middle}) > value) == rises
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return 0.5 * (low + high)
