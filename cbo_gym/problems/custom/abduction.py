"""Abduction: what contexts that are seen tell about the exogenous noise (Pearl, *Causality*, 2009, sec. 7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.problems.modes.contextual import Columns
from cbo_gym.scm import Floats, StructuralCausalModel

TAIL = 2.0**-40  # of the noise, left out on either side
HALVINGS = 64
TRIED = 32, 129  # values of the other noise, and of the one that a context must rise or fall with
ADVICE = "give noise_given, which draws the noise given the contexts, or see other contexts"


class Abduction:
    """The noise given the contexts, where each context tells one noise that the contexts before it have not told.

    What it tells is found by bisection, so that a context may be any function that rises or falls strictly with the
    noise. Other noise keeps its distribution, since the contexts do not depend on it.

    Args:
        scm: a model without soft parameters.
        contexts: variables of it.

    Raises:
        ArgumentError: if some context depends on several noises that no other context tells, or does not rise or fall
            strictly with its noise.
    """

    def __init__(self, scm: StructuralCausalModel, contexts: Iterable[str]) -> None:
        self._scm = scm
        self._noise = {v.name: v.noise for v in scm.noisy}
        self._lineage = {name: scm.full_diagram.ancestors([name]) for name in contexts}
        self._source = self._match()
        for context, source in self._source.items():
            self._require_monotone(context, source)

    def __call__(self, contexts: Columns, uniforms: Columns) -> Columns:
        """The draws that the contexts' values tell, by variable; see :class:`cbo_gym.problems.base.Contexts`."""
        told: dict[str, np.ndarray] = {}
        for context, source in self._source.items():
            told[source] = self._solve(context, source, contexts[context], told)
        return told

    def _match(self) -> dict[str, str]:
        """Context -> the variable whose noise it tells, in an order in which they can be told."""
        found: dict[str, str] = {}
        pending = list(self._lineage)
        while pending:
            unknown = {name: sorted(self._lineage[name] & set(self._noise) - set(found.values())) for name in pending}
            context = min(pending, key=lambda name: len(unknown[name]))
            if len(unknown[context]) > 1:
                raise ArgumentError(
                    f"the context {context} depends on the noise of {unknown[context]}, which cannot be told apart by "
                    f"the contexts {list(self._lineage)}; {ADVICE}"
                )
            pending.remove(context)
            if unknown[context]:
                (found[context],) = unknown[context]
        return found

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
        noise: dict[str, Floats] = {name: kind.sample(rng, (others, 1)) for name, kind in self._noise.items()}
        low, high = self._ends(source)
        noise[source] = np.linspace(low, high, own)
        values = np.broadcast_to(self._value(context, noise), TRIED)
        steps = np.diff(values, axis=1)
        if not ((steps > 0).all(axis=1) | (steps < 0).all(axis=1)).all():
            raise ArgumentError(
                f"the context {context} does not tell the noise of {source}, since it does not rise or fall strictly "
                f"with it; {ADVICE}"
            )

    @np.errstate(all="ignore")
    def _solve(self, context: str, source: str, wanted: np.ndarray, told: Columns) -> np.ndarray:
        low, high = (np.full(np.shape(wanted), end) for end in self._ends(source))
        rises = self._value(context, {**told, source: high}) > self._value(context, {**told, source: low})
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = (self._value(context, {**told, source: middle}) > wanted) == rises
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return 0.5 * (low + high)
