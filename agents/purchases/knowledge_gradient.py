"""The knowledge gradient of buying nodes, by fantasies and a finite set of designs (Buathong et al. 2024, sec. 4).

The value of information is the expected gain of the best posterior mean of the reward over a set of designs A. A
fantasy of a node's value at the inputs z shifts its posterior mean at p by cov(p, z) (y - m(z)) / var(z), and lowers
its variance by cov(p, z)^2 / var(z); the other nodes keep theirs. The mean of the reward is taken over draws of all
nodes' functions. A draw of a function is its mean plus one normal number times its standard deviation at every input;
the numbers are the same with and without the fantasy.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from cbo_gym.agents.common.quasi_random import normals
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.purchases.base import PurchaseAgent

# Smallest variance of the value of a node at its candidates, as a share of its variance without data.
NEGLIGIBLE = 1e-10
# Candidates whose fantasies are evaluated at a time.
CHUNK = 16


def knowledge_gradient(
    agent: PurchaseAgent, designs: Tensor, candidates: Mapping[str, Tensor], fantasies: int, samples: int
) -> dict[str, Tensor]:
    """Return the value of information of nodes at candidate inputs.

    Args:
        agent: the agent, whose network has the posteriors.
        designs: parameters of full evaluations, ``a x q``.
        candidates: node -> inputs of its GP, ``b x d``.
        fantasies: number of fantasies of each.
        samples: number of draws of the nodes' functions.

    Returns:
        node -> gains, ``(b,)``, at least 0.
    """
    with torch.no_grad():
        passes = _Passes(agent, designs, samples)
        current = passes.rewards({}).mean(-1).max()
        return {
            node: torch.cat([passes.gain(node, own, fantasies, current) for own in inputs.split(CHUNK)])
            for node, inputs in candidates.items()
        }


def full_knowledge_gradient(
    agent: PurchaseAgent, designs: Tensor, candidates: Tensor, fantasies: int, samples: int
) -> Tensor:
    """Return the value of information of full evaluations, ``(b,)``, at least 0.

    Args:
        agent: the agent, whose network has the posteriors.
        designs: parameters of full evaluations, ``a x q``.
        candidates: parameters of the full evaluations to value, ``b x q``.
        fantasies: number of fantasies of each.
        samples: number of draws of the nodes' functions.
    """
    with torch.no_grad():
        passes = _Passes(agent, designs, samples)
        current = passes.rewards({}).mean(-1).max()
        return torch.stack([passes.full_gain(point[None], fantasies, current) for point in candidates])


class _Passes:
    """Passes of all designs through the network."""

    def __init__(self, agent: PurchaseAgent, designs: Tensor, samples: int) -> None:
        self._agent, self._network = agent, agent.network
        self._columns = designs.split(1, -1)
        self._draws = normals(self._network.nodes, samples, seed=0)
        self._noise = {node: self._network.noise_of(node, u) for node, u in agent.uniforms_of_noise(samples).items()}
        # Node -> inputs, means and standard deviations, ``a x s``, and values, without fantasies.
        self._now: dict[str, tuple[Tensor, Tensor, Tensor]] = {}
        self._values: dict[str, Tensor] = {}
        self._network.update()
        for node in self._network.nodes:
            self._values[node] = self._value(node, self._inputs(node, self._values))

    def _inputs(self, node: str, values: Mapping[str, Tensor]) -> Tensor:
        return self._network.node_inputs(node, values, self._columns)

    def _is_known(self, node: str) -> bool:
        return node == self._agent.task.reward and self._agent.task.composition is not None

    def _value(self, node: str, points: Tensor) -> Tensor:
        if self._is_known(node):
            return self._agent.node_value(node, points, self._agent.sample_nodes(1))
        mean, std = self._network.surrogates[node].posterior(points)
        if node not in self._now:
            self._now[node] = points, mean, std
        return self._shift(node, mean, std)

    def _shift(self, node: str, mean: Tensor, std: Tensor) -> Tensor:
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

    def gain(self, node: str, inputs: Tensor, fantasies: int, current: Tensor) -> Tensor:
        """Return the mean gain of the best posterior mean by a value of a node at inputs ``b x d``, ``(b,)``."""
        surrogate = self._network.surrogates[node]
        assert isinstance(surrogate, GaussianProcess)
        points, mean, std = self._now[node]
        spread = surrogate.posterior(inputs)[1].square() + surrogate.noise_scale.square()
        # Standardised fantasies, symmetric so that their mean is 0.
        quantiles = (torch.arange(fantasies, dtype=torch.float64) + 0.5) / fantasies
        standard_fantasies = torch.special.ndtri(quantiles).to(mean)
        slope, lower = _update(std, surrogate.covariance(points, inputs), spread)
        means = mean + slope[:, None] * standard_fantasies[:, None, None]
        fantasised = self._shift(node, means, lower[:, None].expand_as(means))
        best = self.rewards({node: fantasised}).mean(-1).amax(-1)
        return (best.mean(-1) - current).clamp_min(0.0)

    def full_gain(self, point: Tensor, fantasies: int, current: Tensor) -> Tensor:
        """Return the mean gain of the best posterior mean by values of all nodes with parameters ``1 x q``."""
        draws = normals(self._network.nodes, fantasies, seed=2)
        # Fantasies of the nodes, ``1 x f``, and values of the designs given these, ``f x a x s``.
        fantasised, values = dict[str, Tensor](), dict[str, Tensor]()
        for node in self._network.nodes:
            inputs = self._network.node_inputs(node, fantasised, point.split(1, -1))
            points = self._inputs(node, values)
            if self._is_known(node):
                values[node] = self._value(node, points)
                continue
            surrogate, own = self._network.surrogates[node], draws[node].to(inputs)
            assert isinstance(surrogate, GaussianProcess)
            inputs = inputs[0].expand(fantasies, -1)
            mean, std = surrogate.posterior(points)
            expected, spread = surrogate.posterior(inputs)
            spread = spread.square() + surrogate.noise_scale.square()
            fantasised[node] = (expected + spread.sqrt() * own)[None]
            covariance = surrogate.covariance(points, inputs)
            if points.dim() == 4:
                # Each fantasy has inputs of its own.
                covariance = covariance.diagonal(dim1=0, dim2=-1)
            slope, lower = _update(std, covariance, spread)
            values[node] = self._shift(node, mean + slope * own[:, None, None], lower)
        best = values[self._agent.task.reward].mean(-1).amax(-1)
        return (best.mean() - current).clamp_min(0.0)


def _update(std: Tensor, covariance: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the effect of observations at b inputs on posteriors at points ``...``, each ``b x ...``.

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
