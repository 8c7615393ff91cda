"""Priors of structural equations, as expressions of kernels."""

from __future__ import annotations

from cbo_gym.agents.gp.algebra import OnColumns, Product, Scale, Stacked, Sum
from cbo_gym.agents.gp.kernels import Affine, Kernel, SquaredExponential


def two_part_kernel(dim: int, first: int) -> Kernel:
    """Return ``v RBF(x_1 ... x_f) + w RBF(x_f+1 ... x_d)``: a function of the first inputs, plus one of the others."""
    return Sum(
        OnColumns(Scale(SquaredExponential(first)), slice(first)),
        OnColumns(Scale(SquaredExponential(dim - first)), slice(first, dim)),
    )


def additive_kernel(dim: int) -> Kernel:
    """Return ``v RBF(x) + sum_i w_i RBF_i(x_i)``: the orders d and 1 of Duvenaud et al. (2011).

    Structural equations are often sums of functions of one parent each. This kernel learns each of them from all data,
    whatever the values of the other parents. A kernel of all inputs learns only from data that are near in every input.

    References:
        Duvenaud, Nickisch & Rasmussen (2011), Additive Gaussian processes.
    """
    return Sum(Scale(SquaredExponential(dim)), Stacked(Scale(SquaredExponential(1)), dim))


def mechanism_kernel(dim: int, parents: int) -> Kernel:
    """Return the prior of a mechanism: a smooth function of everything, plus one that is affine in the parents.

    ``k = v RBF(parents, actions) + (w_0 + sum_i w_i x_i x_i') RBF'(actions)``. Structural equations are often sums or
    products of a parent and a function of the action. The affine part lets these extrapolate to values of the parent
    that were never observed, which are frequent when a chain is optimised. A stationary kernel returns to the mean
    there, with a variance that is far too small.

    Without actions there is only the smooth part. An affine part would extrapolate a trend of a few noisy values with
    too much confidence, and a search would move to the end of the parent's domain.

    Args:
        dim: number of inputs.
        parents: number of parents, from 1 to ``dim``; they are the first inputs.
    """
    smooth = Scale(SquaredExponential(dim))
    if dim == parents:
        return smooth
    affine = OnColumns(Affine(parents), slice(parents))
    return Sum(smooth, Product(affine, OnColumns(SquaredExponential(dim - parents), slice(parents, dim))))
