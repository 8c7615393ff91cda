"""A test of whether the rounds of a study contradict its causal diagram.

A diagram implies that each variable is independent of most others, given its causes. Each of these statements is tested
by a likelihood ratio of two Gaussian processes. Both predict the variable from its causes; the second has the other
variable as one more input. Holm's method corrects the p-values for the number of statements.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import minimize
from scipy.special import ndtri

from cbo_gym.scm import CausalDiagram

# A test of a variable with k causes needs this number of rounds plus k.
MIN_ROUNDS = 8
# Largest number of rounds that are used, evenly spread, because the time of a Gaussian process grows with its cube.
MAX_ROUNDS = 300
# Largest number of statements that are tested, evenly spread; n variables have up to n^2 statements.
MAX_STATEMENTS = 150
# Probability with which a dependence as strong as ``Independence.detectable`` is found.
POWER = 0.8
# Smallest standard deviation by which an input is divided, so that a constant input can be standardised.
MIN_STD = 1e-300
# Variance that is added to the diagonal of covariances, so that they can be inverted if inputs are equal.
JITTER = 1e-8


class Statement(NamedTuple):
    """A conditional independence that a diagram implies: ``first`` is independent of ``second``, given ``given``.

    The ``switches`` are settable variables whose interventions change how ``first`` depends on ``given``. Rounds with
    and without such an intervention are tested separately.
    """

    first: str
    second: str
    given: tuple[str, ...]
    switches: tuple[str, ...]


class DiagramWarning(UserWarning):
    """The rounds of a study contradict its causal diagram."""


@dataclass(frozen=True)
class Independence:
    """The test of a statement of the diagram: ``first`` is independent of ``second``, given ``given``.

    Attributes:
        first: the variable whose mechanism the statement is about.
        second: a variable that does not cause ``first`` by the diagram, or a parameter that does not enter it.
        given: the causes of ``first`` by the diagram, and the parameters that enter it.
        rounds: number of rounds that were used.
        correlation: rank correlation of the errors of both variables, each predicted from the causes.
        p_value: probability of such a dependence if the statement is true, corrected for the number of statements.
        detectable: partial correlation that this number of rounds detects with a probability of 0.8.
    """

    first: str
    second: str
    given: tuple[str, ...]
    rounds: int
    correlation: float
    p_value: float
    detectable: float

    def __str__(self) -> str:
        claim = f"{self.first} does not depend on {self.second}"
        if not self.given:
            return claim
        return f"{claim} once {', '.join(self.given)} {'is' if len(self.given) == 1 else 'are'} known"


@dataclass(frozen=True)
class DiagramCheck:
    """The result of :meth:`cbo_gym.study.Study.check_diagram`.

    Attributes:
        tested: the statements, from the smallest p-value to the largest.
        level: probability of refusing at least one statement of a true diagram.
        arrows: arrows ``(cause, effect)``; the diagram with any one of them has the fewest refused statements.
        untested: number of statements with too few rounds, or beyond :data:`MAX_STATEMENTS`.
    """

    tested: tuple[Independence, ...]
    level: float
    arrows: tuple[tuple[str, str], ...]
    untested: int

    @property
    def refused(self) -> tuple[Independence, ...]:
        """The statements that the rounds contradict."""
        return tuple(statement for statement in self.tested if statement.p_value < self.level)

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        if not self.tested and not self.untested:
            return "the diagram implies nothing that rounds could contradict"
        if not self.tested:
            return (
                f"nothing can be tested yet: a test takes {MIN_ROUNDS} rounds with different values, and one more for "
                "each cause of the variable"
            )
        if not self.refused:
            weakest = max(statement.detectable for statement in self.tested)
            return (
                f"the rounds do not contradict the diagram ({len(self.tested)} statements tested; a dependence weaker "
                f"than a partial correlation of {weakest:.2f} may go unnoticed)"
            )
        worst = self.refused[0]
        arrows = " or ".join(f"{cause} -> {effect}" for cause, effect in self.arrows)
        remedy = f"; an arrow {arrows}, or a latent cause of both, would explain it" if arrows else ""
        return f"the rounds contradict the diagram, by which {worst} (corrected p = {worst.p_value:.2g}){remedy}"

    def to_frame(self) -> pl.DataFrame:
        """Return a table of the tested statements."""
        rows = [
            vars(statement) | {"given": ", ".join(statement.given), "refused": statement in self.refused}
            for statement in self.tested
        ]
        schema: dict[str, Any] = dict.fromkeys(("first", "second", "given"), pl.String) | {"rounds": pl.Int64}
        schema |= dict.fromkeys(("correlation", "p_value", "detectable"), pl.Float64) | {"refused": pl.Boolean}
        return pl.DataFrame(rows, schema=schema)


def check_diagram(
    diagram: CausalDiagram, inputs: Mapping[str, Sequence[str]], rounds: Mapping[str, np.ndarray], level: float = 0.05
) -> DiagramCheck:
    """Test the independences that a diagram implies.

    Args:
        diagram: the diagram.
        inputs: column of a parameter -> the nodes that it enters.
        rounds: column -> its value in each round, shape ``(n,)``. The columns are the nodes, the inputs, and ``do(X)``
            for each variable that may be set, NaN in rounds in which it was not set.
        level: probability of refusing at least one statement of a true diagram.
    """
    data = _Data(rounds)
    tested, untested = _test(diagram, inputs, data, level)
    refused = [test for test in tested if test.p_value < level]
    # Number of refused statements if an arrow is added.
    refused_with: dict[tuple[str, str], int] = {}
    for arrow in dict.fromkeys((test.second, test.first) for test in refused if test.second not in inputs):
        larger = CausalDiagram(diagram.nodes, [*diagram.directed, arrow], diagram.bidirected)
        refused_with[arrow] = sum(test.p_value < level for test in _test(larger, inputs, data, level)[0])
    fewest = min(refused_with.values(), default=0)
    arrows = tuple(arrow for arrow, count in refused_with.items() if count == fewest < len(refused))
    return DiagramCheck(tuple(tested), level, arrows, untested)


def _test(
    diagram: CausalDiagram, inputs: Mapping[str, Sequence[str]], data: _Data, level: float
) -> tuple[list[Independence], int]:
    """Return the tested statements, from the smallest p-value to the largest, and the number of untested ones."""
    implied = list(_statements(diagram, inputs, data.settable))
    results = [data.test(implied[index]) for index in _spread(len(implied), MAX_STATEMENTS)]
    tested = sorted((result for result in results if result is not None), key=lambda result: result.p_value)
    corrected, p_value = [], 0.0
    for index, result in enumerate(tested):
        # Holm's method.
        p_value = max(p_value, min(1.0, (len(tested) - index) * result.p_value))
        detectable = _detectable(result.rounds, len(result.given), level / len(tested))
        corrected.append(replace(result, p_value=p_value, detectable=detectable))
    return corrected, len(implied) - len(tested)


def _spread(count: int, max_count: int) -> np.ndarray:
    """Return at most ``max_count`` indices of a list, evenly spread."""
    return np.linspace(0, count - 1, min(count, max_count)).astype(int)


def _statements(
    diagram: CausalDiagram, inputs: Mapping[str, Sequence[str]], settable: Iterable[str]
) -> Iterator[Statement]:
    """Yield the statements of a diagram.

    Each settable variable has a switch as one more cause, which says whether the variable is set. Parameters are causes
    too; no statement is about two parameters, because these are chosen together.
    """
    switches = {name: f"whether {name} is set" for name in settable}
    entering = [(name, node) for name, nodes in inputs.items() for node in nodes]
    full_diagram = CausalDiagram(
        (*diagram.nodes, *inputs, *switches.values()),
        [*diagram.directed, *entering, *((switch, name) for name, switch in switches.items())],
        [*diagram.bidirected, *combinations(inputs, 2)],
    )
    for node in diagram.nodes:
        causes = [name for name in full_diagram.parents(node) if name not in switches.values()]
        for other in (*diagram.nodes, *inputs):
            if other in diagram.descendants([node]) or other in causes:
                continue
            ancestors = full_diagram.ancestors([node, other]) - {node, other, *switches.values()}
            # If the causes do not separate the two, all ancestors may.
            for given in (causes, [name for name in full_diagram.topological_order if name in ancestors]):
                fixed = {*given, switches.get(node, node)} - {node}
                if full_diagram.m_separated([node], [other], fixed):
                    active = full_diagram.m_connected([node], fixed) - fixed
                    changing = tuple(name for name, switch in switches.items() if switch in active)
                    yield Statement(node, other, tuple(given), changing)
                    break


class _Data:
    """The rounds, and a cache of tests and fits, most of which a diagram with one more arrow shares."""

    def __init__(self, rounds: Mapping[str, np.ndarray]) -> None:
        spread = _spread(len(next(iter(rounds.values()))), MAX_ROUNDS)
        self._columns = {name: values[spread] for name, values in rounds.items()}
        self.settable = [name[3:-1] for name in rounds if name.startswith("do(")]
        self.test, self._fit = cache(self._test), cache(self._fit_to)

    def _test(self, statement: Statement) -> Independence | None:
        """Test a statement, without a correction of its p-value; None with too few rounds or a constant variable."""
        # Imported here, because it is slow to import.
        from scipy.stats import binom, chi2, spearmanr

        first, second, given, switches = statement
        names = (first, second, *given)
        columns = np.array([self._columns[name] for name in names])
        usable = np.isfinite(columns).all(axis=0)
        if first in self.settable:
            # A variable that is set has no causes.
            usable &= np.isnan(self._columns[f"do({first})"])
        # Rounds in which the same switches are on.
        groups: dict[tuple[bool, ...], list[int]] = defaultdict(list)
        for row in np.flatnonzero(usable):
            are_on = tuple(bool(np.isfinite(self._columns[f"do({name})"][row])) for name in switches)
            groups[are_on].append(int(row))
        large = [
            tuple(rows)
            for rows in sorted(groups.values(), key=len, reverse=True)
            if len(rows) >= MIN_ROUNDS + len(given) and all(np.ptp(self._columns[name][rows]) for name in names[:2])
        ]
        if not large:
            return None
        gains = []
        for rows in large:
            smaller = self._fit(first, given, rows)
            larger = self._fit_to(first, (*given, second), rows, smaller)
            # By how much the second variable raises the log-likelihood of the first one.
            gains.append(max(0.0, larger.log_likelihood - smaller.log_likelihood))
        gain = float(np.sum(gains))
        fits = [self._fit(name, given, large[0]) for name in (first, second)]
        correlation = float(spearmanr(*(fit.errors for fit in fits)).statistic)
        # The length scale of an irrelevant input is infinite, at the boundary of the parameters: each gain is half of a
        # chi-squared variable, or 0 with a probability of 1/2 (Self & Liang 1987, case 5).
        counts = np.arange(1, len(large) + 1)
        weights = binom.pmf(counts, len(large), 0.5)
        p_value = float(weights @ chi2.sf(2.0 * gain, counts)) if gain else 1.0
        return Independence(first, second, given, sum(map(len, large)), correlation, p_value, math.nan)

    def _fit_to(self, name: str, given: Sequence[str], rows: tuple[int, ...], smaller: _Fit | None = None) -> _Fit:
        indices = list(rows)
        inputs = np.array([self._columns[cause][indices] for cause in given]).reshape(len(given), len(rows))
        return _Fit(self._columns[name][indices], inputs, smaller)


class _Fit:
    """A Gaussian process of standardised values.

    Args:
        values: the values, shape ``(n,)``.
        inputs: the inputs, shape ``(d, n)``.
        smaller: a fit without the last input, from which the search starts.

    Attributes:
        theta: log hyperparameters of the kernel, in the form of scikit-learn; empty without inputs.
        log_likelihood: logarithm of the maximal marginal likelihood.
        errors: errors of predicting each value from all others, in standard deviations (Rasmussen & Williams 2006, eq.
            5.12).
    """

    def __init__(self, values: np.ndarray, inputs: np.ndarray, smaller: _Fit | None = None) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        values = (values - values.mean()) / values.std()
        count, self.theta = len(values), np.zeros(0)
        self.log_likelihood, self.errors = -0.5 * count * (math.log(2.0 * math.pi) + 1.0), values
        if not len(inputs):
            return
        stds = np.maximum(inputs.std(axis=1, keepdims=True), MIN_STD)
        scaled = ((inputs - inputs.mean(axis=1, keepdims=True)) / stds).T
        kernel = ConstantKernel(1.0, (1e-2, 1e3)) * RBF(np.full(len(inputs), 2.0), (0.2, 1e3))
        kernel += WhiteKernel(0.1, (1e-4, 10.0))
        if smaller is not None and len(smaller.theta):
            kernel.theta = np.insert(smaller.theta, -1, math.log(2.0))
        # The search of scikit-learn is not used, because it warns of length scales at their bounds, and filters of
        # warnings are not thread-safe.
        process = GaussianProcessRegressor(kernel, alpha=JITTER, optimizer=None).fit(scaled, values)

        def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = process.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)
            return -value, -gradient

        result = minimize(loss, kernel.theta, jac=True, method="L-BFGS-B", bounds=kernel.bounds)
        self.log_likelihood, self.theta = -float(result.fun), result.x
        inverse = np.linalg.inv(kernel.clone_with_theta(result.x)(scaled) + JITTER * np.eye(count))
        self.errors = (inverse @ values) / np.sqrt(np.diag(inverse))


def _detectable(rounds: int, causes: int, level: float) -> float:
    """Return the partial correlation that is detected with the probability ``POWER``, by Fisher's transformation."""
    needed = ndtri(POWER) - ndtri(level / 2.0)
    return math.tanh(float(needed) / math.sqrt(max(rounds - causes - 3, 1)))
