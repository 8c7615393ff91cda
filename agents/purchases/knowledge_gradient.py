"""The knowledge gradient of buying nodes, by fantasies and a finite set of designs (Buathong et al. 2024, sec. 4).

The knowledge gradient of an observation is the expected increase of the best posterior mean of the reward over a finite
set of designs, the parameters of full evaluations. A fantasy y of a node's value at the inputs z shifts the node's
posterior mean m at p by cov(p, z) (y - m(z)) / var(z), and lowers its variance by cov(p, z)^2 / var(z). The mean of the
reward is taken over draws of all nodes' functions. A draw of a function is its mean plus one normal number times its
standard deviation at every input; the numbers are the same with and without the fantasy.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from cbo_gym.agents.common.quasi_random import normals
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.purchases.base import PurchaseAgent

# Smallest variance of an observation that is used, as a share of the node's largest variance at the designs.
NEGLIGIBLE = 1e-10
# Number of candidates whose fantasies are evaluated at a time.
CHUNK = 16


def knowledge_gradient(
    agent: PurchaseAgent, node: str, candidates: Tensor, designs: Tensor, fantasies: int, samples: int
) -> Tensor:
    """Return the knowledge gradient of a node at candidate inputs, ``(b,)``, at least 0.

    Args:
        agent: the agent, whose network has the posteriors.
        node: the node.
        candidates: inputs of the node's GP, ``b x d``.
        designs: parameters of full evaluations, ``a x q``.
        fantasies: number of fantasies at each candidate.
        samples: number of draws of the nodes' functions.
    """
    with torch.no_grad():
        passes = _Passes(agent, designs, samples)
        current_best = passes.rewards({}).mean(-1).max()
        return torch.cat([passes.gain(node, inputs, fantasies, current_best) for inputs in candidates.split(CHUNK)])


def full_knowledge_gradient(
    agent: PurchaseAgent, designs: Tensor, candidates: Tensor, fantasies: int, samples: int
) -> Tensor:
    """Return the knowledge gradient of full evaluations, ``(b,)``; arguments as of :func:`knowledge_gradient`.

    The candidates are parameters ``b x q``.
    """
    with torch.no_grad():
        passes = _Passes(agent, designs, samples)
        current_best = passes.rewards({}).mean(-1).max()
        return torch.stack([passes.full_gain(point[None], fantasies, current_best) for point in candidates])


class _Passes:
    """Passes of all designs through the network, with and without fantasies."""

    def __init__(self, agent: PurchaseAgent, designs: Tensor, samples: int) -> None:
        self._agent, self._network = agent, agent.network
        self._columns = designs.split(1, -1)
        self._draws = normals(self._network.nodes, samples, seed=0)
        self._noise = agent.draw_noise(samples)
        # Without fantasies: node -> inputs, means and standard deviations, and node -> values ``a x s``.
        self._posteriors: dict[str, tuple[Tensor, Tensor, Tensor]] = {}
        self._values: dict[str, Tensor] = {}
        self._network.update()
        for node in self._network.nodes:
            self._values[node] = self._value(node, self._inputs(node, self._values))

    def _inputs(self, node: str, values: Mapping[str, Tensor]) -> Tensor:
        return self._network.node_inputs(node, values, self._columns)

    def _value(self, node: str, points: Tensor) -> Tensor:
        if self._agent.is_composition(node):
            return self._agent.node_value(node, points, self._agent.sample_nodes(1))
        mean, std = self._network.surrogates[node].posterior(points)
        if node not in self._posteriors:
            self._posteriors[node] = points, mean, std
        return self._sample(node, mean, std)

    def _sample(self, node: str, mean: Tensor, std: Tensor) -> Tensor:
        value = mean + std * self._draws[node].to(mean)
        return value + self._noise[node] if node in self._noise else value

    def rewards(self, changed: Mapping[str, Tensor]) -> Tensor:
        """Return rewards of the designs, ``... x a x s``, after the values of some nodes ``... x a x s`` changed."""
        values = {**self._values, **changed}
        stale = set(changed)
        for node in self._network.nodes:
            if node not in changed and stale.intersection(self._network.parents[node]):
                values[node] = self._value(node, self._inputs(node, values))
                stale.add(node)
        return values[self._agent.task.reward]

    def gain(self, node: str, inputs: Tensor, fantasies: int, current_best: Tensor) -> Tensor:
        """Return the mean gain of the best posterior mean by a value of a node at inputs ``b x d``, ``(b,)``."""
        surrogate = self._network.surrogates[node]
        assert isinstance(surrogate, GaussianProcess)
        points, mean, std = self._posteriors[node]
        variance = surrogate.posterior(inputs)[1].square() + surrogate.noise_scale.square()
        # Standardised fantasies, symmetric so that their mean is 0.
        quantiles = (torch.arange(fantasies, dtype=torch.float64) + 0.5) / fantasies
        standard_fantasies = torch.special.ndtri(quantiles).to(mean)
        slope, lower = _update(std, surrogate.covariance(points, inputs), variance)
        means = mean + slope[:, None] * standard_fantasies[:, None, None]
        fantasised = self._sample(node, means, lower[:, None].expand_as(means))
        best = self.rewards({node: fantasised}).mean(-1).amax(-1)
        return (best.mean(-1) - current_best).clamp_min(0.0)

    def full_gain(self, point: Tensor, fantasies: int, current_best: Tensor) -> Tensor:
        """Return the mean gain of the best posterior mean by values of all nodes with parameters ``1 x q``."""
        draws = normals(self._network.nodes, fantasies, seed=2)
        # Fantasies of the nodes, ``1 x f``, and values of the designs given these, ``f x a x s``.
        fantasised, values = dict[str, Tensor](), dict[str, Tensor]()
        for node in self._network.nodes:
            inputs = self._network.node_inputs(node, fantasised, point.split(1, -1))
            points = self._inputs(node, values)
            if self._agent.is_composition(node):
                values[node] = self._value(node, points)
                continue
            surrogate, standard_fantasies = self._network.surrogates[node], draws[node].to(inputs)
            assert isinstance(surrogate, GaussianProcess)
            inputs = inputs[0].expand(fantasies, -1)
            mean, std = surrogate.posterior(points)
            expected, expected_std = surrogate.posterior(inputs)
            variance = expected_std.square() + surrogate.noise_scale.square()
            fantasised[node] = (expected + variance.sqrt() * standard_fantasies)[None]
            covariance = surrogate.covariance(points, inputs)
            if points.dim() == 4:
                # Each fantasy has inputs of its own.
                covariance = covariance.diagonal(dim1=0, dim2=-1)
            slope, lower = _update(std, covariance, variance)
            values[node] = self._sample(node, mean + slope * standard_fantasies[:, None, None], lower)
        best = values[self._agent.task.reward].mean(-1).amax(-1)
        return (best.mean() - current_best).clamp_min(0.0)


def _update(std: Tensor, covariance: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the effect of single observations at b inputs on the posterior at other points, ``b x ...``.

    Args:
        std: posterior standard deviations at the points, ``...`` or ``b x ...``.
        covariance: posterior covariances of points and inputs, ``... x b``.
        variance: variances of the observations, ``(b,)``.

    Returns:
        The shifts of the means by one standard deviation of the observation, and the new standard deviations.
    """
    usable = variance > NEGLIGIBLE * std.square().max().clamp_min(1e-300)
    slope = torch.where(usable, covariance / variance.clamp_min(1e-300).sqrt(), 0.0).movedim(-1, 0)
    return slope, (std.square() - slope.square()).clamp_min(0.0).sqrt()
