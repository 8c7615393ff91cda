"""The surrogates of EXCBO, which learn each node's exogenous variable: encoder, mixture and decoder.

They are those of Ren, Wang, Chen & Qian, Causal Bayesian optimization via exogenous distribution learning, sec. 4. For
a node ``x = f(z, u)`` with z its parents and own actions, the encoder, a GP, gives the mean and the spread of x given
z. The estimate of the exogenous variable u is ``u^ = (x - mean(z)) / spread(z)``. A Gaussian mixture is fitted to the
u^ of all rounds, and the decoder, a second GP, to ``(z, u^) -> x``. An error e of the encoder's mean turns u into
``u^ = u + e / spread``. Therefore the outputs of the decoder have noise with the covariance of e, and the mixture is
widened by the variance of ``e / spread``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, cycle
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cbo_gym.agents.common.quasi_random import uniforms
from cbo_gym.agents.gp.algebra import OnColumns, Product, Scale, Sum
from cbo_gym.agents.gp.kernels import Constant, Covariance, CrossCovariance, Dot, Kernel, SquaredExponential
from cbo_gym.agents.gp.model import GaussianProcess, Numbers, update_together
from cbo_gym.agents.gp.posterior import Posterior
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.heteroscedastic import HeteroscedasticGP
from cbo_gym.agents.networks.kernels import mechanism_kernel
from cbo_gym.scm.noise import GaussianMixture
from cbo_gym.task import Action, HardTask, SoftTask

# Least standard deviation of a component of the mixture; that of the exogenous variable is about 1.
MIN_STD = 0.01
REFIT_ITERATIONS = 8
# Number of draws of the exogenous variables for the posterior of the expected reward.
POSTERIOR_SAMPLES = 16
# Numbers of components among which the BIC chooses.
CANDIDATES = (1, 2, 3, 4)

MixtureSize = int | str


def fit_mixture(values: np.ndarray, components: MixtureSize, seed: int) -> GaussianMixture:
    """Fit a Gaussian mixture to values ``(n,)``, at least one, by expectation maximisation (scikit-learn).

    ``components`` is the number of components, or ``"bic"`` for the number from 1 to 4 with the least Bayesian
    information criterion. There are never more components than values that differ after rounding to ``MIN_STD``.
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
        name: name of the node, for error messages.
        parents: number of parents; they are the first inputs.
        actions: number of own actions.
        components: number of components of the mixture, see :func:`fit_mixture`.
        seed: seed of the mixture's fits.
        siblings: surrogates of nodes that share a latent cause with this one, and have the same rounds as data. Their
            centres, the means of their encoders, are inputs of this node, before the parents.
        device: torch device.
    """

    def __init__(
        self,
        name: str,
        parents: int,
        actions: int,
        components: MixtureSize,
        seed: int,
        siblings: Sequence[EncoderDecoder] = (),
        device: str = "cpu",
    ) -> None:
        # A root has a constant input.
        dim = len(siblings) + max(1, parents + actions)
        parents += len(siblings)
        kernel = partial(mechanism_kernel, parents=parents) if parents else SquaredExponential
        common: dict[str, Any] = {"rescale": range(parents), "refit_iterations": REFIT_ITERATIONS, "device": device}
        self.encoder = HeteroscedasticGP(name, dim, covariance=kernel, **common)
        self.decoder = DecoderGP(name, dim + 1, covariance=partial(decoder_kernel, mechanism=kernel), **common)
        # Without data the exogenous variable is standard normal and the decoder is its prior.
        self.decoder.learn(self.decoder.inputs, self.decoder.outputs, torch.zeros(0, 0).to(self.decoder.inputs))
        self.distribution = GaussianMixture([1.0], [0.0], [1.0])
        self._siblings = siblings
        self._components = components
        self._seed = seed

    def __len__(self) -> int:
        return len(self.encoder)

    def add(self, inputs: Numbers, outputs: Numbers) -> None:
        """Add observations, as :meth:`GaussianProcess.add`."""
        new_inputs = np.asarray(inputs, dtype=np.float64).reshape(-1, self.encoder.dim - len(self._siblings))
        # The siblings' centres are unknown until the next update.
        unknown = np.zeros((len(new_inputs), len(self._siblings)))
        self.encoder.add(np.column_stack([unknown, new_inputs]), outputs)

    def update(self) -> None:
        """Update encoder, mixture and decoder to the data."""
        if len(self.decoder) == len(self):
            return
        if self._siblings:
            self.encoder.replace(self._with_siblings(), self.encoder.outputs)
        inputs, outputs = self.encoder.inputs, self.encoder.outputs
        spread, error = self.encoder.spread(inputs), self.encoder.mean_error()
        self.exogenous = (outputs - self.encoder.mean(inputs)) / spread
        fitted = fit_mixture(self.exogenous.cpu().numpy(), self._components, self._seed)
        # u^ is the exogenous variable plus an error with this variance.
        error_variance = float((error.diagonal() / spread.square()).mean())
        stds = list(np.sqrt(np.square(fitted.stds) + error_variance))
        self.distribution = GaussianMixture(fitted.weights, fitted.means, stds)
        self.decoder.learn(torch.cat([inputs, self.exogenous[:, None]], -1), outputs, error)

    def _with_siblings(self) -> Tensor:
        """Update the siblings, and return the encoder's inputs with their centres."""
        for sibling in self._siblings:
            sibling.update()
        columns = [sibling.encoder.mean(sibling.encoder.inputs)[:, None] for sibling in self._siblings]
        return torch.cat([*columns, self.encoder.inputs[:, len(columns) :]], -1)

    def decoder_with_draws(self, exogenous: Tensor) -> Posterior:
        """Update, and return :meth:`DecoderGP.with_draws`."""
        self.update()
        return self.decoder.with_draws(exogenous)


class DecoderGP(GaussianProcess):
    """A GP with a :func:`decoder_kernel` that predicts every point with every draw of u^.

    The kernel is a product, so the factor that depends only on the draws is computed once for all points.
    """

    _error: Tensor
    # Draws and posterior from which _combined was computed.
    _source: tuple[Tensor, Posterior] | None = None
    _combined: Posterior

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name not in ("_source", "_combined")}

    def learn(self, inputs: Tensor, outputs: Tensor, error: Tensor) -> None:
        """Replace all observations, as :meth:`replace`.

        ``error`` is the covariance of the outputs' errors in addition to their noise, ``n x n``. Hyper-parameters are
        fitted without it, because the outputs are exact functions of the inputs, which include u^.
        """
        self._error = error
        self.replace(inputs, outputs)

    def _noise_covariance(self, points: Tensor) -> Tensor:
        return super()._noise_covariance(points) + self._error / self._scale**2

    def with_draws(self, exogenous: Tensor) -> Posterior:
        """Return the posterior with s draws of u^, ``(s,)``, as a function of the other inputs.

        Its points are ``b x s x d``, or ``b x 1 x d`` if they are the same with every draw; its values are ``b x s``.
        An ascent uses the same draws many times, so the last result is kept while draws and posterior are the same.
        """
        self.update()
        if self._source is None or self._source[0] is not exogenous or self._source[1] is not self._posterior:
            self._source = exogenous, self._posterior
            self._combined = replace(
                self._posterior,
                cross_covariance=with_draws(self.kernel, self.kernel_theta, self._points, exogenous),
                low=self._low[:-1],
                span=self._span[:-1],
            )
        return self._combined


def decoder_kernel(dim: int, mechanism: Callable[[int], Kernel]) -> Product:
    """Return the prior of a decoder: ``k(z, z') (1 + w u u' + v RBF(u, u'))``, with k the prior of the mechanism.

    Its samples are ``f_a(z) + f_b(z) u`` plus a smooth remainder in u.

    Args:
        dim: number of inputs, of which u is the last.
        mechanism: function that returns the kernel of the other inputs.
    """
    of_u = Sum(Constant(), Scale(Dot()), Scale(SquaredExponential(1)))
    return Product(OnColumns(mechanism(dim - 1), slice(dim - 1)), OnColumns(of_u, slice(dim - 1, dim)))


def with_draws(kernel: Kernel, theta: Tensor, data: Tensor, exogenous: Tensor) -> CrossCovariance:
    """Return the covariances with data ``n x d`` as a function of points without u, combined with s draws of u.

    ``kernel`` is a :func:`decoder_kernel`; points and draws are those of :meth:`DecoderGP.with_draws`.
    """
    assert isinstance(kernel, Product)
    _, *thetas = kernel.split(theta)
    (kernel_of_z,), (kernel_of_u,) = (part.parts for part in kernel.parts if isinstance(part, OnColumns))
    function_of_z = kernel_of_z.at(thetas[0], data[:, :-1])
    of_u = kernel_of_u.at(thetas[1], data[:, -1:])(exogenous[:, None])

    def covariance(points: Tensor) -> Covariance:
        of_z = function_of_z(points)

        def to_points(cross_gradient: Tensor, variance_gradient: Tensor) -> Tensor:
            cross, variance = cross_gradient * of_u.cross, variance_gradient * of_u.variance
            return of_z.to_points(cross.sum_to_size(of_z.cross.shape), variance.sum_to_size(of_z.variance.shape))

        return Covariance(of_z.cross * of_u.cross, of_z.variance * of_u.variance, to_points, of_z.to_theta)

    return covariance


class Draws(NamedTuple):
    """Quasi-random draws for each node, ``(2 s,)``. The second s have the u^ of the first and opposite deviations.

    Attributes:
        exogenous: node with an exogenous variable -> u^, from its mixture.
        deviations: node, except the reward -> its mechanism less the decoder's mean, in standard deviations.
        directions: orthonormal columns, ``s x r``, which times ``sqrt(s)`` are the first halves of the deviations.
    """

    exogenous: dict[str, Tensor]
    deviations: dict[str, Tensor]
    directions: Tensor


class ExogenousNetwork(GPNetwork):
    """Encoder-decoder surrogates of the reward and its ancestors, and batched passes through the graph.

    A node that is known to have no noise and no latent cause has a plain GP instead of an exogenous variable.

    In soft mode the inputs of a node include the centres of its siblings, the earlier nodes of its c-component, because
    the distance of a sibling from its centre depends on their common latent cause. A node that was set has no centre,
    so in hard mode latent causes count as noise of each node.

    Attributes:
        exogenous: node with an exogenous variable -> its surrogate.
        siblings: node with an exogenous variable -> the nodes whose centres are its inputs.

    Args:
        task: the soft or hard task.
        components: number of components of the mixtures, see :func:`fit_mixture`.
        seed: seed of the fits of the mixtures.
        device: torch device.
    """

    def __init__(self, task: SoftTask | HardTask, components: MixtureSize, seed: int, device: str = "cpu") -> None:
        self._components = components
        self._seed = seed
        self.exogenous: dict[str, EncoderDecoder] = {}
        self.siblings: dict[str, tuple[str, ...]] = {}
        super().__init__(task, device)

    def _make_surrogate(self, node: str) -> Any:
        confounded = any(node in pair for pair in self.task.diagram.bidirected)
        if node not in self.noisy and not confounded:
            return super()._make_surrogate(node)
        component = self.task.diagram.c_component(node) if isinstance(self.task, SoftTask) else ()
        self.siblings[node] = tuple(earlier for earlier in self.exogenous if earlier in component)
        surrogate = EncoderDecoder(
            node,
            len(self.parents[node]),
            len(self.actions[node]),
            self._components,
            self._seed,
            [self.exogenous[sibling] for sibling in self.siblings[node]],
            self.device,
        )
        self.exogenous[node] = surrogate
        return surrogate

    def update(self) -> None:
        if not self._stale:
            return
        # A node with siblings needs their centres, so its encoder is fitted on its own.
        update_together(self.exogenous[node].encoder for node, siblings in self.siblings.items() if not siblings)
        for surrogate in self.exogenous.values():
            surrogate.update()
        update_together(surrogate.decoder for surrogate in self.exogenous.values())
        super().update()

    def draw(self, count: int, seed: int) -> Draws:
        """Return ``2 count`` draws, in pairs that have the same u^ and opposite deviations."""
        self.update()
        exogenous = {}
        for node, column in uniforms(self.exogenous, count, seed).items():
            values = self.exogenous[node].distribution.from_uniform(column.numpy())
            exogenous[node] = torch.from_numpy(values).to(self.device).repeat(2)
        upstream = self.nodes[:-1]
        normal = torch.randn(count, count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        directions = torch.linalg.qr(normal).Q[:, : len(upstream)].to(self.device)
        shifts = [count**0.5 * column for column in directions.unbind(-1)]
        deviations = {node: torch.cat([column, -column]) for node, column in zip(upstream, cycle(shifts), strict=False)}
        return Draws(exogenous, deviations, directions)

    def reward_mean_and_std(self, inputs: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of E[reward] under actions ``b x input_dim``, ``(b,)`` each.

        Values are propagated through the decoders' means, shifted by the deviations. The standard deviation of the
        reward's decoder is averaged over u^ (sec. 5.2). Its square is increased by the variance that the deviations of
        the nodes upstream cause in the average over u^. This is the sum of their squared effects along each direction,
        because a decoder has the same error with every u^. If there are more nodes than draws, nodes share directions.
        """
        centres: dict[str, Tensor] = {}

        def decode(node: str, points: Tensor) -> Tensor:
            points = self._with_centres(node, points, centres)
            if node in self._with_dependent_siblings:
                centre, error = self.exogenous[node].encoder.posterior(points)
                centres[node] = centre + error * draws.deviations[node]
            mean, std = self._bounds(node, points, draws)
            return mean + std * draws.deviations[node]

        *others, reward = self.nodes
        values = self.propagate(inputs, decode, others)
        points = self._with_centres(reward, self.node_inputs(reward, values, inputs.split(1, -1)), centres)
        mean, std = self._bounds(reward, points, draws)
        if mean.shape[-1] == 1:
            return mean[:, 0], std[:, 0]
        above, below = mean.chunk(2, -1)
        effects = 0.5 * (above - below) @ draws.directions
        variance = std.mean(-1).square() + effects.square().sum(-1) / len(draws.directions)
        return mean.mean(-1), variance.sqrt()

    def estimates(self, inputs: Tensor, draws: Draws) -> Tensor:
        """Return E[reward] under the decoders' means without deviations: ``b x input_dim`` to ``(b,)``."""
        half = {node: u.chunk(2)[0] for node, u in draws.exogenous.items()}
        centres: dict[str, Tensor] = {}

        def decode(node: str, points: Tensor) -> Tensor:
            if node not in self.exogenous:
                return self.surrogates[node].mean(points)
            points = self._with_centres(node, points, centres)
            if node in self._with_dependent_siblings:
                centres[node] = self.exogenous[node].encoder.mean(points)
            return self.exogenous[node].decoder_with_draws(half[node]).mean(points)

        return self.propagate(inputs, decode)[self.nodes[-1]].mean(-1)

    def reward_posterior(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.reward_mean_and_std(inputs, self.draw(POSTERIOR_SAMPLES, seed=0))

    def expected_nodes(self, action: Action, measured: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return the expected reward under an action, and ``measured``; the other nodes are not predicted."""
        inputs = self.features.of_actions([action]).to(self.inputs)
        with torch.no_grad():
            reward = float(self.estimates(inputs, self.draw(POSTERIOR_SAMPLES, seed=0))[0])
        return {self.task.reward: reward, **(measured or {})}

    def _bounds(self, node: str, points: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of a node's mechanism: inputs ``b x s x d`` to ``b x s``."""
        if node not in self.exogenous:
            return self.surrogates[node].posterior(points)
        return self.exogenous[node].decoder_with_draws(draws.exogenous[node]).mean_and_std(points)

    # Cached, because every pass of a search uses it.
    @cached_property
    def _with_dependent_siblings(self) -> frozenset[str]:
        """Nodes whose centres are inputs of other nodes."""
        return frozenset(chain.from_iterable(self.siblings.values()))

    def _with_centres(self, node: str, points: Tensor, centres: Mapping[str, Tensor]) -> Tensor:
        """Return inputs of a node, ``b x s x d``, preceded by the centres of its siblings."""
        columns = [centres[sibling] for sibling in self.siblings.get(node, ())]
        return torch.stack(torch.broadcast_tensors(*columns, *points.unbind(-1)), -1) if columns else points
