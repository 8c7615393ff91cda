"""Abduction: the exogenous noise given the contexts (Pearl, *Causality*, 2009, sec. 7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.problems.modes.contextual import Columns
from cbo_gym.scm import Floats, StructuralCausalModel

TAIL = 2.0**-40  # probability of the noise left out on either side
HALVINGS = 64
TRIED = 32, 129  # values of the other noise, and of the one that a context must rise or fall with
ADVICE = "give noise_given, which draws the noise given the contexts, or see other contexts"


class Abduction:
    """The noise given the contexts, if each context determines one noise that earlier contexts do not determine.

    It is computed by bisection, so that a context may be any function strictly monotone in the noise. Other noise keeps
    its distribution, because the contexts do not depend on it.

    Args:
        scm: a model without soft parameters.
        contexts: variables of it.

    Raises:
        ArgumentError: if a context depends on several noises that no other context determines, or is not strictly
            monotone in its noise.
    """

    def __init__(self, scm: StructuralCausalModel, contexts: Iterable[str]) -> None:
        self._scm = scm
        self._noise = {v.name: v.noise for v in scm.noisy}
        self._lineage = {name: scm.full_diagram.ancestors([name]) for name in contexts}
        self._source = self._match()
        for context, source in self._source.items():
            self._require_monotone(context, source)

    def __call__(self, contexts: Columns, uniforms: Columns) -> Columns:
        """The noise determined by the contexts, by variable; see :class:`cbo_gym.problems.Contexts`."""
        noise: dict[str, np.ndarray] = {}
        for context, source in self._source.items():
            noise[source] = self._solve(context, source, contexts[context], noise)
        return noise

    def _match(self) -> dict[str, str]:
        """Context -> the variable whose noise it determines, in an order in which they can be solved."""
        source: dict[str, str] = {}
        pending = list(self._lineage)
        while pending:
            unknown = {name: sorted(self._lineage[name] & set(self._noise) - set(source.values())) for name in pending}
            context = min(pending, key=lambda name: len(unknown[name]))
            if len(unknown[context]) > 1:
                raise ArgumentError(
                    f"the context {context} depends on the noise of {unknown[context]}, which cannot be identified "
                    f"from the contexts {list(self._lineage)}; {ADVICE}"
                )
            pending.remove(context)
            if unknown[context]:
                (source[context],) = unknown[context]
        return source

    def _value(self, context: str, noise: Mapping[str, Floats]) -> Floats:
        values: dict[str, Floats] = {}
        for v in self._scm.variables:
            if v.name in self._lineage[context]:
                values[v.name] = v.mechanism(*[values[parent] for parent in v.parents], noise.get(v.name, 0.0))
        return values[context]

    def _ends(self, source: str) -> np.ndarray:
        return self._noise[source].from_uniform(np.array([TAIL, 1.0 - TAIL]))

    @np.errstate(all="ignore")
    def _require_monotone(self, context: str, source: str) -> None:
        others, own = TRIED
        rng = np.random.default_rng(0)
        noise: dict[str, Floats] = {
            name: distribution.sample(rng, (others, 1)) for name, distribution in self._noise.items()
        }
        low, high = self._ends(source)
        noise[source] = np.linspace(low, high, own)
        values = np.broadcast_to(self._value(context, noise), TRIED)
        steps = np.diff(values, axis=1)
        if not ((steps > 0).all(axis=1) | (steps < 0).all(axis=1)).all():
            raise ArgumentError(
                f"the context {context} does not determine the noise of {source}, because it does not rise or fall "
                f"strictly with it; {ADVICE}"
            )

    @np.errstate(all="ignore")
    def _solve(self, context: str, source: str, wanted: np.ndarray, noise: Columns) -> np.ndarray:
        low, high = (np.full(np.shape(wanted), end) for end in self._ends(source))
        rises = self._value(context, {**noise, source: high}) > self._value(context, {**noise, source: low})
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = (self._value(context, {**noise, source: middle}) > wanted) == rises
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return 0.5 * (low + high)
