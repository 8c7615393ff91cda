"""Operations that build kernels from kernels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from functools import reduce
from operator import add

import torch
from torch import Tensor

from cbo_gym.agents.gp.hyperparameters import Hyperparameters
from cbo_gym.agents.gp.kernels import Covariance, CrossCovariance, Function, Kernel

# Shape and rate of the gamma prior of variances, whose mode is 1.
VARIANCE_GAMMA = (2.0, 1.0)


class Operation(Kernel):
    """A kernel composed of others, the parts. Its hyper-parameters are its own, then those of each part.

    Args:
        parts: the kernels.
        own: the operation's own hyper-parameters; None if it has none.
        key: what else distinguishes its structure.
    """

    def __init__(self, parts: Sequence[Kernel], own: Hyperparameters | None = None, key: Hashable = None) -> None:
        self._own = Hyperparameters.flat([]) if own is None else own
        self._key = key
        self._set_parts(parts)

    def _set_parts(self, parts: Sequence[Kernel]) -> None:
        self.parts = tuple(parts)
        vectors = [self._own, *(part.hyperparameters for part in parts)]
        self._sizes = [len(vector) for vector in vectors]
        self.hyperparameters = Hyperparameters.join(vectors)
        self.structure = type(self), self._key, *(part.structure for part in parts)

    def set_zeros(self, zeros: Tensor) -> None:
        for part in self.parts:
            part.set_zeros(zeros)
        self._set_parts(self.parts)

    def with_categories(self, categories: Mapping[int, int]) -> Kernel:
        copied = copy(self)
        copied._set_parts([part.with_categories(categories) for part in self.parts])
        return copied

    def split(self, theta: Tensor) -> list[Tensor]:
        """Split ``... x k`` into the operation's own hyper-parameters and those of each part, ``... x k_i`` each."""
        return list(theta.split_with_sizes(self._sizes, -1))


class Sum(Operation):
    """The sum of kernels: the covariance of a sum of independent functions."""

    def __init__(self, *parts: Kernel) -> None:
        super().__init__(parts)

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        functions = [
            part.at(part_theta, data, log_scale)
            for part, part_theta in zip(self.parts, self.split(theta)[1:], strict=True)
        ]

        def covariance(points: Tensor) -> Covariance:
            crosses, variances, to_points, to_theta = zip(*(function(points) for function in functions), strict=True)
            return Covariance(
                reduce(add, crosses),
                reduce(add, variances),
                lambda *gradients: reduce(add, [pullback(*gradients) for pullback in to_points]),
                lambda gradient: torch.cat([pullback(gradient) for pullback in to_theta], -1),
            )

        return covariance

    def draw(self, theta: Tensor, generator: torch.Generator, count: int) -> Function:
        functions = [
            part.draw(part_theta, generator, count)
            for part, part_theta in zip(self.parts, self.split(theta)[1:], strict=True)
        ]
        return lambda points: reduce(add, [function(points) for function in functions])


class Product(Operation):
    """The product of two kernels. Functions can be drawn from it if the first has :meth:`Kernel.features`."""

    def __init__(self, first: Kernel, second: Kernel) -> None:
        super().__init__([first, second])

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        _, *thetas = self.split(theta)
        left_at = self.parts[0].at(thetas[0], data, log_scale)
        right_at = self.parts[1].at(thetas[1], data)

        def covariance(points: Tensor) -> Covariance:
            left, right = left_at(points), right_at(points)

            def to_points(cross: Tensor, variance: Tensor) -> Tensor:
                gradient = left.to_points(cross * right.cross, variance * right.variance)
                return gradient + right.to_points(cross * left.cross, variance * left.variance)

            def to_theta(gradient: Tensor) -> Tensor:
                return torch.cat([left.to_theta(gradient * right.cross), right.to_theta(gradient * left.cross)], -1)

            return Covariance(left.cross * right.cross, left.variance * right.variance, to_points, to_theta)

        return covariance

    def draw(self, theta: Tensor, generator: torch.Generator, count: int) -> Function:
        _, *thetas = self.split(theta)
        features = self.parts[0].features(thetas[0])
        if features is None:
            return super().draw(theta, generator, count)
        # The inner product of the features with as many independent functions drawn from the second kernel.
        size, map_features = features
        drawn = self.parts[1].draw(thetas[1], generator, count * size)
        return lambda points: (drawn(points).unflatten(-1, (count, size)) * map_features(points).unsqueeze(-2)).sum(-1)


class Scale(Operation):
    """A kernel times a variance, whose logarithm is the first hyper-parameter.

    Args:
        kernel: the kernel.
        variance: prior of the variance; None for Gamma(2, 1).
    """

    def __init__(self, kernel: Kernel, variance: Hyperparameters | None = None) -> None:
        super().__init__([kernel], Hyperparameters.gamma(*VARIANCE_GAMMA) if variance is None else variance)

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        log_variance, inner_theta = self.split(theta)
        total = log_variance.squeeze(-1) if log_scale is None else log_variance.squeeze(-1) + log_scale
        function = self.parts[0].at(inner_theta, data, total)

        def covariance(points: Tensor) -> Covariance:
            scaled = function(points)

            def to_theta(gradient: Tensor) -> Tensor:
                by_variance = (gradient * scaled.cross).sum((-2, -1)).unsqueeze(-1)
                return torch.cat([by_variance, scaled.to_theta(gradient)], -1)

            return scaled._replace(to_theta=to_theta)

        return covariance

    def draw(self, theta: Tensor, generator: torch.Generator, count: int) -> Function:
        log_variance, inner_theta = self.split(theta)
        drawn = self.parts[0].draw(inner_theta, generator, count)
        return lambda points: (0.5 * log_variance).exp().unsqueeze(-2) * drawn(points)


class OnColumns(Operation):
    """A kernel of some of the inputs.

    Args:
        kernel: the kernel.
        columns: the inputs that the kernel has, consecutive.
    """

    def __init__(self, kernel: Kernel, columns: slice) -> None:
        super().__init__([kernel], key=(columns.start, columns.stop))
        self.columns = columns

    def set_zeros(self, zeros: Tensor) -> None:
        super().set_zeros(zeros[self.columns])

    def with_categories(self, categories: Mapping[int, int]) -> Kernel:
        first, stop = self.columns.start or 0, self.columns.stop
        return super().with_categories(
            {index - first: count for index, count in categories.items() if first <= index < stop}
        )

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        selected_data = data[..., self.columns]
        function = self.parts[0].at(theta, selected_data, log_scale)

        def covariance(points: Tensor) -> Covariance:
            selected = selected_data if points is data else points[..., self.columns]
            # All samples of a rollout have the same action, so that its covariances are computed once.
            has_samples = selected.dim() == 3 and data.dim() < 3 and selected.shape[1] > 1
            if has_samples and self.parts[0].broadcasts_gradients and (selected == selected[:, :1]).all():
                selected = selected[:, :1]
            inner = function(selected)

            def to_points(cross: Tensor, variance: Tensor) -> Tensor:
                gradient = torch.zeros_like(points)
                gradient[..., self.columns] = inner.to_points(cross, variance)
                return gradient

            return inner._replace(to_points=to_points)

        return covariance

    def draw(self, theta: Tensor, generator: torch.Generator, count: int) -> Function:
        drawn = self.parts[0].draw(theta, generator, count)
        return lambda points: drawn(points[..., self.columns])

    def features(self, theta: Tensor) -> tuple[int, Function] | None:
        if (features := self.parts[0].features(theta)) is None:
            return None
        size, map_features = features
        return size, lambda points: map_features(points[..., self.columns])


class Stacked(Operation):
    """The sum over all inputs of one kernel of one input. Each input has hyper-parameters of its own.

    The copies of the kernel are computed together, along the first dimension of the tensors.

    Args:
        kernel: a kernel of one input.
        dim: number of inputs.
    """

    def __init__(self, kernel: Kernel, dim: int) -> None:
        super().__init__([kernel], key=dim)
        self._dim = dim
        self.hyperparameters = Hyperparameters.join([kernel.hyperparameters] * dim)

    # Categories are not supported.
    with_categories = Kernel.with_categories

    def set_zeros(self, zeros: Tensor) -> None:
        """Do nothing, because all copies start from the same hyper-parameters."""

    def _split_theta(self, theta: Tensor) -> Tensor:
        """Return the hyper-parameters of each copy, ``... x (d k)`` to ``d x ... x k``."""
        return theta.unflatten(-1, (self._dim, -1)).movedim(-2, 0)

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        batch, thetas = data.shape[:-2], self._split_theta(theta)
        # Insert dimensions of size 1 if several sets of data share the hyper-parameters.
        aligned = thetas.reshape(self._dim, *[1] * (len(batch) + 1 - theta.dim()), *thetas.shape[1:])
        function = self.parts[0].at(aligned, _split_inputs(data), log_scale)

        def covariance(points: Tensor) -> Covariance:
            by_input = function(_split_inputs(points.reshape(*batch, -1, self._dim)))

            def repeat(gradient: Tensor, like: Tensor) -> Tensor:
                return gradient.reshape(like.shape[1:]).expand(like.shape)

            def to_points(cross: Tensor, variance: Tensor) -> Tensor:
                slopes = by_input.to_points(repeat(cross, by_input.cross), repeat(variance, by_input.variance))
                return slopes.squeeze(-1).movedim(0, -1).reshape(points.shape)

            return Covariance(
                by_input.cross.sum(0).reshape(*points.shape[:-1], data.shape[-2]),
                by_input.variance.sum(0).reshape(points.shape[:-1]),
                to_points,
                lambda gradient: by_input.to_theta(repeat(gradient, by_input.cross)).movedim(0, -2).flatten(-2),
            )

        return covariance

    def draw(self, theta: Tensor, generator: torch.Generator, count: int) -> Function:
        functions = [self.parts[0].draw(copy_theta, generator, count) for copy_theta in self._split_theta(theta)]
        return lambda points: reduce(add, [function(points[..., [i]]) for i, function in enumerate(functions)])


def _split_inputs(points: Tensor) -> Tensor:
    """Return the d inputs of points one after another, ``... x d`` to ``d x ... x 1``."""
    return points.movedim(-1, 0).unsqueeze(-1)
