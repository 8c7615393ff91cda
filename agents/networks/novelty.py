"""Measures of what a network of GPs does not know yet, for exploration.

They are relative to the prior standard deviations and the noise of the GPs, so that one threshold suits all tasks.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cbo_gym.agents.gp.protocols import NodeSurrogate
from cbo_gym.agents.networks.gp_network import GPNetwork

# A function is known if its posterior standard deviation is below the sum of these shares of the standard deviations of
# the prior and of the noise. The jitter alone causes half of it at exact data.
KNOWN, KNOWN_NOISE = 0.002, 0.5
# A function is unknown if its posterior standard deviation is above this share of that of the prior.
UNKNOWN = 0.5
# Values up to this number of posterior standard deviations above the mean are plausible.
PLAUSIBLE = 3.0
# Distances beyond an input at which rewards are predicted, as shares of the range of the input in the data.
BEYOND = torch.linspace(0.0, 0.05, 17, dtype=torch.float64)[1:]


def relative_posterior_std(network: GPNetwork, inputs: Tensor) -> Tensor:
    """Return the greatest relative posterior standard deviation of the nodes that actions do not set, ``(b,)``.

    The unit is ``KNOWN`` prior standard deviations plus ``KNOWN_NOISE`` standard deviations of the noise. Below 1, one
    more observation would improve the model very little. With noise, about ``1 / KNOWN_NOISE^2`` repetitions of an
    action reach that.
    """

    def of_node(gp: NodeSurrogate, points: Tensor) -> Tensor:
        _, std = gp.posterior(points)
        return std / (KNOWN * gp.prior_std(points) + KNOWN_NOISE * gp.noise_scale)

    return of_free_nodes(network, inputs, of_node).amax(0)


def information(network: GPNetwork, inputs: Tensor) -> Tensor:
    """Return twice the information in nats of an observation about the functions of nodes that are not set, ``(b,)``.

    It is the sum of ``log(1 + std^2 / noise^2)``, with a noise of at least ``KNOWN`` prior standard deviations.
    """

    def of_node(gp: NodeSurrogate, points: Tensor) -> Tensor:
        _, std = gp.posterior(points)
        return (std / (KNOWN * gp.prior_std(points)).maximum(gp.noise_scale)).square().log1p()

    return of_free_nodes(network, inputs, of_node).sum(0)


def of_free_nodes(network: GPNetwork, inputs: Tensor, measure: Callable[[NodeSurrogate, Tensor], Tensor]) -> Tensor:
    """Return a measure of each node's GP at the posterior means of its inputs, ``nodes x b``; 0 if the node is set."""
    settings = network.settings(inputs)
    measured = {node: torch.zeros_like(inputs[:, 0]) for node in network.nodes}

    def value(node: str, points: Tensor) -> Tensor:
        result = measure(network.surrogates[node], points).mean(-1)
        measured[node] = result.where(~settings[node][0][:, 0], measured[node]) if node in settings else result
        return network.mean(node, points)

    network.propagate(inputs, value)
    return torch.stack([measured[node].expand(len(inputs)) for node in network.nodes])


def reward_inputs(network: GPNetwork, inputs: Tensor) -> Tensor:
    """Return the inputs of the reward's GP under the posterior means of the other nodes, ``b x d``."""
    *others, reward = network.nodes
    return network.node_inputs(reward, network.propagate(inputs, network.mean, others), inputs.split(1, -1))[:, 0]


def distance_to_data(network: GPNetwork, inputs: Tensor, best: float) -> Tensor:
    """Return distances of the reward node's inputs from the nearest data, in units of their ranges, ``(b,)``.

    The distance counts as -1 if exploration would be useless, because the reward is not ``UNKNOWN``, or no reward above
    ``best`` is ``PLAUSIBLE``.
    """
    gp, points = network.surrogates[network.task.reward], reward_inputs(network, inputs)
    mean, std = gp.posterior(points)
    is_promising = (std > UNKNOWN * gp.prior_std(points)) & (mean + PLAUSIBLE * std > best)
    ones = torch.ones_like(mean)
    distances = torch.cdist(gp.normalise(points), gp.normalise(gp.inputs)).amin(-1) if len(gp) else ones
    return distances.where(is_promising, -ones)


def plausible_beyond(network: GPNetwork, column: int, sign: float, inputs: Tensor) -> Tensor:
    """Return the greatest plausible reward if an input of the reward node exceeds that of an action a little, a scalar.

    Args:
        network: the network of GPs.
        column: index of the input.
        sign: 1 for greater values of the input, -1 for smaller ones.
        inputs: features of the action, ``1 x input_dim``.
    """
    gp, point = network.surrogates[network.task.reward], reward_inputs(network, inputs)[0]
    values = gp.inputs[:, column] if len(gp) else point.new_tensor([0.0, 1.0])
    points = point.repeat(len(BEYOND), 1)
    points[:, column] += sign * (values.max() - values.min()) * BEYOND.to(points)
    mean, std = gp.posterior(points)
    return (mean + PLAUSIBLE * std).max()
