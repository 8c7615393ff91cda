"""The surrogate of EXCBO: what a node's exogenous variable was in each round, and how it is distributed.

Encoder-decoder surrogate of Ren, Wang, Chen & Qian, Causal Bayesian optimization via exogenous distribution learning,
sec. 4. For a node ``x = f(z, u)`` with z its parents and own actions, a GP gives the mean and the spread of x given z,
and ``u^ = (x - mean(z)) / spread(z)`` stands for u. A Gaussian mixture is fitted to the u^ of all rounds, and a second
GP, the decoder, to ``(z, u^) -> x``. Where ``f(z, u) = f_a(z) + f_b(z) f_c(u)``, u^ is f_c(u) standardised, up to sign.

The spread is that of x about its mean, which the noise of the first GP has to describe (its level varies with z),
and not how uncertain the mean is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.agents.surrogates.fitting import Composed, Covariances, Hyperparameters, Pullback, covariances
from cbo_gym.agents.surrogates.gp import GaussianProcess, Numbers
from cbo_gym.agents.surrogates.gp_network import GPNetwork, MechanismKernel
from cbo_gym.agents.surrogates.heteroscedastic import HeteroscedasticGP
from cbo_gym.agents.surrogates.kernels import LogVariances, SquaredExponential, VarianceKernel
from cbo_gym.agents.surrogates.prediction import Against, Conditional, Prior, against
from cbo_gym.scm.noise import GaussianMixture
from cbo_gym.task import HardTask, SoftTask

MIN_STD = 0.01  # of a mixture's component, in units of the exogenous variable's own standard deviation
REFIT_ITERATIONS = 8
CANDIDATES = (1, 2, 3, 4)  # numbers of components among which the BIC chooses

MixtureSize = int | str


def fit_mixture(values: np.ndarray, components: MixtureSize, seed: int) -> GaussianMixture:
    """Fit a Gaussian mixture by expectation maximisation (scikit-learn).

    Args:
        values: shape ``(n,)``, at least one.
        components: their number, or ``"bic"`` for the one in 1 to 4 with the least Bayesian information criterion.
            There are never more than values that differ visibly.
        seed: of the start.
    """
    from sklearn.mixture import GaussianMixture as Mixture

    distinct = len(np.unique(np.round(values / MIN_STD)))
    if distinct < 2:
        return GaussianMixture([1.0], [values.mean()], [MIN_STD])
    candidates = CANDIDATES if components == "bic" else (int(components),)
    column = values[:, None]
    fitted = [
        Mixture(count, reg_covar=MIN_STD**2, random_state=seed).fit(column)
        for count in dict.fromkeys(min(count, distinct) for count in candidates)
    ]
    best = min(fitted, key=lambda mixture: mixture.bic(column))
    weights = best.weights_ / best.weights_.sum()
    return GaussianMixture(weights, best.means_[:, 0], np.sqrt(best.covariances_[:, 0, 0]))


class EncoderDecoder:
    """The surrogate of one node.

    Args:
        name: of the node, for error messages.
        parents: number of parents; they are the first inputs.
        actions: number of own actions.
        components: of the mixture, see :func:`fit_mixture`.
        seed: of the mixture's fits.
        device: torch device.
    """

    def __init__(
        self, name: str, parents: int, actions: int, components: MixtureSize, seed: int, device: str = "cpu"
    ) -> None:
        dim = max(1, parents + actions)  # a root has a constant input
        kernel = partial(MechanismKernel, parents=parents) if parents else SquaredExponential
        common: dict[str, Any] = {"rescale": range(parents), "refit_iterations": REFIT_ITERATIONS, "device": device}
        self.encoder = HeteroscedasticGP(name, dim, covariance=kernel, **common)
        self.decoder = Decoder(name, dim + 1, covariance=partial(DecoderKernel, mechanism=kernel), **common)
        self._components = components
        self._seed = seed

    def __len__(self) -> int:
        return len(self.encoder)

    def add(self, inputs: Numbers, outputs: Numbers) -> None:
        """Add observations, as :meth:`GaussianProcess.add`."""
        self.encoder.add(inputs, outputs)

    def update(self) -> None:
        """Bring encoder, mixture and decoder up to date with the data."""
        if len(self.decoder) == len(self):
            return
        inputs, outputs = self.encoder.inputs, self.encoder.outputs
        self.exogenous = (outputs - self.encoder.mean(inputs)) / self.encoder.spread(inputs)
        self.distribution = fit_mixture(self.exogenous.cpu().numpy(), self._components, self._seed)
        self.decoder.replace(torch.cat([inputs, self.exogenous[:, None]], -1), outputs)

    def decode(self, points: Tensor, exogenous: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the decoder, as :meth:`Decoder.combined`."""
        self.update()
        return self.decoder.combined(points, exogenous)

    def decode_mean(self, points: Tensor, exogenous: Tensor) -> Tensor:
        """Mean of the decoder, as :meth:`Decoder.combined_mean`."""
        self.update()
        return self.decoder.combined_mean(points, exogenous)


class Decoder(GaussianProcess):
    """A GP with a :class:`DecoderKernel`, for points and draws of u^ that are combined.

    The kernel is a product, so what depends on the draws alone is computed once for all points.
    """

    _of: tuple[Tensor, Conditional] | None = None  # draws and model that _combined belongs to
    _combined: Conditional

    def combined_mean(self, points: Tensor, exogenous: Tensor) -> Tensor:
        """The first part of :meth:`combined` alone."""
        self.update()
        return self._with_draws(exogenous).mean(self._mechanism_points(points))

    def combined(self, points: Tensor, exogenous: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, differentiable in the points.

        Args:
            points: parents and own actions, ``b x s x d``, or ``b x 1 x d`` for the same with every draw.
            exogenous: draws of u^, shape ``(s,)``.

        Returns:
            two tensors ``b x s``.
        """
        self.update()
        return self._with_draws(exogenous).mean_and_std(self._mechanism_points(points))

    def _mechanism_points(self, points: Tensor) -> Tensor:
        return (points - self._low[:-1]) / self._span[:-1]

    def _with_draws(self, exogenous: Tensor) -> Conditional:
        """The model of points, ``b x s x d``, each with the draws.

        An ascent asks for the same draws many times, so the last answer is kept while draws and model are the same.
        """
        if self._of is None or self._of[0] is not exogenous or self._of[1] is not self._given:
            self._of = exogenous, self._given
            self._combined = replace(self._given, against=self.kernel.against_with(self._points, exogenous))
        return self._combined


class DecoderKernel(VarianceKernel):
    """Prior of a decoder: ``k(z, z') (1 + w u u' + v RBF(u, u'))``, with k the prior of the mechanism.

    Its samples are ``f_a(z) + f_b(z) u`` plus a smooth remainder in u: decomposable mechanisms first, others too.

    Args:
        dim: number of inputs, u the last.
        mechanism: makes the kernel of the others.
    """

    def __init__(self, dim: int, mechanism: Callable[[int], Kernel]) -> None:
        super().__init__(terms=2)
        self.mechanism = mechanism(dim - 1)
        self.smooth = SquaredExponential(1)

    def along(self, u: Tensor, other: Tensor, diag: bool = False) -> Tensor:
        """The factor of u alone: ``n x 1`` and ``m x 1`` to ``n x m``, or to ``(n,)`` for the diagonal."""
        linear = (u * other).squeeze(-1) if diag else u @ other.transpose(-1, -2)
        return 1.0 + self.variances[0] * linear + self.variances[1] * self.smooth.forward(u, other, diag=diag)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        mechanism = self.mechanism.forward(x1[..., :-1], x2[..., :-1], diag=diag)
        return mechanism * self.along(x1[..., -1:], x2[..., -1:], diag=diag)

    def against_with(self, data: Tensor, exogenous: Tensor) -> Against:
        """Its prior beside ``data`` of points without u, ``b x s x (d - 1)`` or ``b x 1 x (d - 1)``, with s draws."""
        mechanism, u = against(self.mechanism, data[:, :-1]), exogenous[:, None]
        along, alone = self.along(u, data[:, -1:]), self.along(u, u, diag=True)

        def prior(points: Tensor) -> Prior:
            inner = mechanism(points)

            def pullback(cross_gradient: Tensor, variance_gradient: Tensor) -> Tensor:
                cross, variance = cross_gradient * along, variance_gradient * alone
                return inner.pullback(cross.sum_to_size(inner.cross.shape), variance.sum_to_size(inner.variance.shape))

            return Prior(inner.cross * along, inner.variance * alone, pullback)

        return prior

    def closed_form(self, points: np.ndarray) -> Decoders:
        """Its covariances of points ``n x d``."""
        mechanism, smooth = covariances(self.mechanism, points[:, :-1]), self.smooth.closed_form(points[:, -1:])
        return Decoders(LogVariances(self), mechanism, smooth, points[:, -1])


class Decoders(Composed):
    """Covariances of points under a :class:`DecoderKernel`.

    Args:
        variances: w and v.
        mechanism: the covariances under k.
        smooth: those under RBF.
        exogenous: u of the points, ``(n,)``.
    """

    def __init__(
        self, variances: Hyperparameters, mechanism: Covariances, smooth: Covariances, exogenous: np.ndarray
    ) -> None:
        super().__init__(variances, mechanism, smooth)
        self._mechanism, self._smooth = mechanism, smooth
        self._products = np.outer(exogenous, exogenous)

    def matrix(self, values: np.ndarray) -> tuple[np.ndarray, Pullback]:
        variances, mechanism_values, smooth_values = self.split(values)
        linear_variance, smooth_variance = variances = np.exp(variances)
        mechanism, pull_mechanism = self._mechanism.matrix(mechanism_values)
        smooth, pull_smooth = self._smooth.matrix(smooth_values)
        along = 1.0 + linear_variance * self._products + smooth_variance * smooth

        def pullback(gradient: np.ndarray) -> np.ndarray:
            inner = gradient * mechanism
            terms = np.array([np.vdot(inner, self._products), np.vdot(inner, smooth)])
            return np.concatenate(
                [terms * variances, pull_mechanism(gradient * along), pull_smooth(smooth_variance * inner)]
            )

        return mechanism * along, pullback


class Draws(NamedTuple):
    """Quasi-random draws, ``2 s`` a node; the second half repeats the u^ of the first and has its deviations negated.

    Attributes:
        exogenous: node -> u^, from its mixture; of the nodes that have an exogenous variable.
        deviations: node -> standard deviations by which the mechanism is off the decoder's mean; not of the reward.
    """

    exogenous: dict[str, Tensor]
    deviations: dict[str, Tensor]


class ExogenousNetwork(GPNetwork):
    """Encoder-decoder surrogates of the reward and its ancestors, and batched passes through the graph.

    A node that the task tells to have no noise and no latent cause has no exogenous variable, and a plain GP.

    Attributes:
        exogenous: node -> surrogate, of the nodes that have an exogenous variable.

    Args:
        task: soft or hard.
        components: of the mixtures, see :func:`fit_mixture`.
        seed: of their fits.
        device: torch device.
    """

    def __init__(self, task: SoftTask | HardTask, components: MixtureSize, seed: int, device: str = "cpu") -> None:
        self._components = components
        self._seed = seed
        self.exogenous: dict[str, EncoderDecoder] = {}
        super().__init__(task, device)

    def _surrogate(self, node: str) -> Any:
        confounded = any(node in pair for pair in self.task.diagram.bidirected)
        if node not in self.noisy and not confounded:
            return super()._surrogate(node)
        parents, actions = len(self.parents[node]), len(self.actions[node])
        surrogate = EncoderDecoder(node, parents, actions, self._components, self._seed, self.device)
        self.exogenous[node] = surrogate
        return surrogate

    def draw(self, count: int, seed: int) -> Draws:
        """``count`` pairs of quasi-random draws.

        Args:
            count: pairs of draws, which share u^ and whose deviations are opposite.
            seed: of the quasi-random points.
        """
        dim = len(self.exogenous) + len(self.nodes) - 1
        uniforms = SobolEngine(max(1, dim), scramble=True, seed=seed).draw(count, dtype=torch.float64)
        columns = iter(uniforms.clamp(1e-9, 1.0 - 1e-9).unbind(-1))
        exogenous = {node: self._from_mixture(node, next(columns)).repeat(2) for node in self.exogenous}
        normal = {node: torch.special.ndtri(next(columns)).to(self.device) for node in self.nodes[:-1]}
        return Draws(exogenous, {node: torch.cat([column, -column]) for node, column in normal.items()})

    def _from_mixture(self, node: str, uniforms: Tensor) -> Tensor:
        surrogate = self.exogenous[node]
        if len(surrogate):
            surrogate.update()
            uniforms = torch.from_numpy(surrogate.distribution.from_uniform(uniforms.numpy()))
        return uniforms.to(self.device)

    def reward_belief(self, inputs: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """What is known of E[reward] under actions: its mean, and its standard deviation.

        The means of the decoders lead from the roots to the reward, moved by the deviations. The variance is that of
        the reward's decoder plus that which the deviations upstream cause, both averaged over u^.

        Args:
            inputs: features of actions, ``b x input_dim``.
            draws: of u^ and of the deviations.

        Returns:
            two tensors of shape ``(b,)``, differentiable.
        """

        def decode(node: str, points: Tensor) -> Tensor:
            mean, std = self._bounds(node, points, draws)
            return mean + std * draws.deviations[node]

        *others, reward = self.nodes
        values = self._pass(inputs, others, decode)
        mean, std = self._bounds(reward, self._points(reward, values, inputs), draws)
        if mean.shape[-1] == 1:
            return mean[:, 0], std[:, 0]
        above, below = mean.chunk(2, -1)
        variance = std.square().mean(-1) + (0.5 * (above - below)).square().mean(-1)
        return mean.mean(-1), variance.sqrt()

    def estimates(self, inputs: Tensor, draws: Draws) -> Tensor:
        """The mean of E[reward] under actions, ``b x input_dim`` to ``(b,)``, without deviations: for many actions."""

        def decode(node: str, points: Tensor) -> Tensor:
            surrogate = self.surrogates[node]
            if not len(surrogate):
                return torch.zeros_like(points[..., 0])
            if node not in self.exogenous:
                return surrogate.mean(points)
            return self.exogenous[node].decode_mean(points, draws.exogenous[node].chunk(2)[0])

        return self._pass(inputs, self.nodes, decode)[self.nodes[-1]].mean(-1)

    def _bounds(self, node: str, points: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of a node's mechanism, its inputs ``b x s x d`` to ``b x s``."""
        surrogate = self.surrogates[node]
        if not len(surrogate):  # set in every round so far: the standard prior is all there is
            return torch.zeros_like(points[..., 0]), torch.ones_like(points[..., 0])
        if node not in self.exogenous:
            return surrogate.posterior(points)
        return self.exogenous[node].decode(points, draws.exogenous[node])
