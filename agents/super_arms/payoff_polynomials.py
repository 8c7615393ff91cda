"""Taylor polynomials of the payoffs of all super arms, and their optimistic values.

The payoff of super arm x with signals b is r_x(b) = h((I - F)^-1 (x * b)). Its polynomial of degree q about a centre a
has a term for every multi-index alpha with |alpha| <= q over the selected base arms. Base arms are independent, so the
expected payoff is the sum of D^alpha r_x(a) / alpha! times products of moments about a, and is linear in the
derivatives (Bauschmann & Maghsudi 2026, sec. III-B). As in the paper (appendix G1), the derivatives are divided
differences, here over the nodes of the five-point Gauss-Hermite rule, in standard deviations of the signals. ``reach``
scales the distances of the nodes from the centre; towards 0 the differences become the derivatives at the centre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np
from scipy import sparse

MAX_DEGREE = 4
# Grid points in standard deviations from the centre, in the order of the divided differences.
NODES = (0.0, 1.35562618, -1.35562618, 2.85697001, -2.85697001)
# Grid points for expansions about zero, in root mean squares of the signals, most of which are positive.
NODES_ABOUT_ZERO = (0.0, 1.0, 2.0, 0.5, 1.5)
# Number of points whose payoffs are computed at a time.
CHUNK = 100_000

Payoff = Callable[[np.ndarray], np.ndarray]


def monomials(variables: int, degree: int) -> np.ndarray:
    """Return all products of up to ``degree`` variables, with repetition, lowest degree first.

    Returns:
        indices of each product's variables in ascending order, padded with ``variables``, shape ``(terms, degree)``.
    """
    rows = [
        factors + (variables,) * (degree - d)
        for d in range(degree + 1)
        for factors in combinations_with_replacement(range(variables), d)
    ]
    return np.array(rows, dtype=np.int64).reshape(len(rows), degree)


def exponents_of(products: np.ndarray, variables: int) -> np.ndarray:
    """Return the exponents alpha of :func:`monomials`, shape ``(terms, variables)``."""
    return (products[:, :, None] == np.arange(variables)).sum(axis=1)


@dataclass(frozen=True)
class _Group:
    """The super arms of one size."""

    # Rows of the super arms, (A,), their base arms, (A, size), and the columns of their terms, (A, terms).
    rows: np.ndarray
    members: np.ndarray
    columns: np.ndarray
    # Offsets of the grid points from the centre, in multiples of the spread, (terms, size).
    offsets: np.ndarray
    # Values at the grid points -> coefficients of monomials in those units, (terms, terms).
    differences: np.ndarray


class PayoffPolynomials:
    """The polynomials of all super arms about the means of the selected signals, one row per super arm.

    Args:
        super_arms: 0 or 1, shape ``(A, N)``.
        degree: q, 0 to :data:`MAX_DEGREE`.
        reach: factor of the distances of the grid from the centre, above 0.

    Attributes:
        exponents: exponents of the columns, shape ``(terms, N)``.
    """

    about_means: ClassVar[bool] = True
    nodes: ClassVar[tuple[float, ...]] = NODES

    def __init__(self, super_arms: np.ndarray, degree: int, reach: float) -> None:
        self.degree = degree
        count = super_arms.shape[1]
        products = monomials(count, degree)
        self.exponents = exponents_of(products, count)
        self._factors = _factors(self.exponents, degree)
        # The variables of a monomial are the digits of its key, a number in base N + 1.
        place_values = (count + 1) ** np.arange(degree, dtype=np.int64)
        order = np.argsort(products @ place_values)
        keys = (products @ place_values)[order]
        nodes = reach * np.array(self.nodes[: degree + 1])
        sizes = super_arms.sum(axis=1)
        self._groups: list[_Group] = []
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            members = np.nonzero(super_arms[rows])[1].reshape(len(rows), size)
            local = monomials(int(size), degree)
            padded = np.hstack([members, np.full((len(rows), 1), count)])
            columns = order[np.searchsorted(keys, padded[:, local] @ place_values)]
            alpha = exponents_of(local, int(size))
            offsets = nodes[alpha]
            powers = (offsets[:, None, :] ** alpha).prod(axis=-1)
            self._groups.append(_Group(rows, members, columns, offsets, np.linalg.inv(powers)))
        lengths = np.zeros(len(super_arms), dtype=np.int64)
        for group in self._groups:
            lengths[group.rows] = group.columns.shape[1]
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        self._indices = np.empty(self._starts[-1], dtype=np.int32)
        for group in self._groups:
            self._indices[self._entries(group)] = group.columns

    def _entries(self, group: _Group) -> np.ndarray:
        return self._starts[group.rows][:, None] + np.arange(group.columns.shape[1])

    def fit(self, payoff: Payoff, centre: np.ndarray, spread: np.ndarray) -> Expansion:
        """Return the polynomials of the payoffs under one model.

        Args:
            payoff: from z of shape ``(..., N)`` to the payoff of shape ``(...)``.
            centre: a, shape ``(N,)``.
            spread: root mean square of the signals' distances from the centre, above 0, shape ``(N,)``.
        """
        data = np.empty(len(self._indices))
        for group in self._groups:
            data[self._entries(group)] = self._differences(group, payoff, centre, spread)
        return self._expansion(data)

    def _differences(self, group: _Group, payoff: Payoff, centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """Return D^alpha r_x(a) / alpha! of the super arms of one size, shape ``(A, terms of that size)``."""
        values = np.empty((len(group.rows), len(group.offsets)))
        step = max(1, CHUNK // len(group.offsets))
        for start in range(0, len(group.rows), step):
            members = group.members[start : start + step]
            points = np.zeros((len(members), len(group.offsets), len(centre)))
            moved = centre[members][:, None, :] + group.offsets * spread[members][:, None, :]
            np.put_along_axis(points, np.broadcast_to(members[:, None, :], moved.shape), moved, axis=2)
            values[start : start + step] = payoff(points)
        units = (spread**self.exponents).prod(axis=1)
        return values @ group.differences.T / units[group.columns]

    def _expansion(self, data: np.ndarray) -> Expansion:
        shape = (len(self._starts) - 1, len(self.exponents))
        return Expansion(self, sparse.csr_array((data, self._indices, self._starts), shape=shape))

    def products(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the greatest product of moments of every term, ``(terms,)`` each.

        Args:
            lower: lower ends of the moments' intervals by order, shape ``(q + 1, N)``; 1 for order 0.
            upper: upper ends, of the same shape.
        """
        members, orders = self._factors
        low_of, high_of = _with_padding(lower), _with_padding(upper)
        low = high = np.ones(len(self.exponents))
        for member, order in zip(members.T, orders.T, strict=True):
            ends = [end * factor[order, member] for end in (low, high) for factor in (low_of, high_of)]
            low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
        return low, high

    def values(self, deviations: np.ndarray) -> np.ndarray:
        """Return values of the terms, ``(samples, terms)``, given signals minus their centre, ``(samples, N)``."""
        members, orders = self._factors
        padded = _with_padding(deviations)
        products = np.ones((len(deviations), len(members)))
        for member, order in zip(members.T, orders.T, strict=True):
            products *= padded[:, member] ** order
        return products

    def slopes(self, moments: np.ndarray) -> np.ndarray:
        """Return derivatives of the terms' products of moments by the moments of order 1 to q, ``(terms, N * q)``."""
        members, orders = self._factors
        factors = _with_padding(moments)[orders, members]
        derivatives = np.zeros((len(members), moments.shape[1], self.degree))
        for k in range(members.shape[1]):
            terms = np.flatnonzero(orders[:, k])
            others = np.delete(factors[terms], k, axis=1).prod(axis=1)
            derivatives[terms, members[terms, k], orders[terms, k] - 1] = others
        return derivatives.reshape(len(members), -1)


class PolynomialsAboutZero(PayoffPolynomials):
    """Polynomials about zero, where derivatives do not depend on the super arm (Bauschmann & Maghsudi 2026, III-B).

    The derivatives are computed for the super arms of up to q base arms and shared by the others. This is thousands of
    times faster, and ignores interactions of more than q signals.
    """

    about_means = False
    nodes = NODES_ABOUT_ZERO

    def fit(self, payoff: Payoff, centre: np.ndarray, spread: np.ndarray) -> Expansion:
        """Fit as the base class does; ``centre`` must be zero."""
        shared = np.zeros(len(self.exponents))
        for group in self._groups:
            if group.members.shape[1] <= self.degree:
                shared[group.columns] = self._differences(group, payoff, centre, spread)
        return self._expansion(shared[self._indices])


def _factors(exponents: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the variables of each term, padded with N, and their orders, padded with 0; ``(terms, degree)`` each."""
    count = exponents.shape[1]
    order = np.argsort(exponents == 0, axis=1, kind="stable")[:, :degree]
    orders = np.take_along_axis(exponents, order, axis=1)
    if (missing := degree - orders.shape[1]) > 0:
        order, orders = np.pad(order, ((0, 0), (0, missing))), np.pad(orders, ((0, 0), (0, missing)))
    return np.where(orders > 0, order, count), orders


def _with_padding(rows: np.ndarray) -> np.ndarray:
    """Append a column of ones, which is the padding of :func:`_factors`, to rows of shape ``(m, N)``."""
    return np.hstack([rows, np.ones((len(rows), 1))])


@dataclass(frozen=True, eq=False)
class Expansion:
    """Polynomials of the payoffs of all super arms.

    Attributes:
        polynomials: the terms.
        coefficients: D^alpha r_x(a) / alpha!, one row per super arm, one column per term.
        remainder: correction that is added to the expected payoffs, a number or one for each super arm.
    """

    polynomials: PayoffPolynomials
    coefficients: sparse.csr_array
    remainder: np.ndarray | float = 0.0

    @cached_property
    def _absolute_coefficients(self) -> sparse.csr_array:
        matrix = self.coefficients
        return sparse.csr_array((np.abs(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)

    def expected_payoffs(self, moments: np.ndarray) -> np.ndarray:
        """Return expected payoffs, shape ``(A,)``, for moments by order of shape ``(q + 1, N)`` or more orders."""
        product, _ = self.polynomials.products(moments, moments)
        return self.coefficients @ product + self.remainder

    def mean_over(self, deviations: np.ndarray) -> np.ndarray:
        """Return the mean of each polynomial, ``(A,)``, over signals minus their centre, ``(samples, N)``."""
        return self.coefficients @ self.polynomials.values(deviations).mean(axis=0) + self.remainder

    def variances(self, moments: np.ndarray, covariances: np.ndarray) -> np.ndarray:
        """Return the variance of each expected payoff due to one signal of each base arm, ``(A, N)`` (delta method).

        Args:
            moments: moments by order, shape ``(q + 1, N)`` or more orders.
            covariances: covariances of the signals' powers 1 to q, shape ``(q, q, N)``, or more powers.
        """
        degree = self.polynomials.degree
        slopes = self.coefficients @ self.polynomials.slopes(moments)
        slopes, covariances = slopes.reshape(len(slopes), -1, degree), covariances[:degree, :degree]
        return np.maximum(np.einsum("xip,pqi,xiq->xi", slopes, covariances, slopes, optimize=True), 0.0)

    def optimistic(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Return upper bounds of the expected payoffs, ``(A,)``, for moments in intervals as in :meth:`products`."""
        low, high = self.polynomials.products(lower, upper)
        half_widths = self._absolute_coefficients @ (0.5 * (high - low))
        return self.coefficients @ (0.5 * (low + high)) + half_widths + self.remainder
