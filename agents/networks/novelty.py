"""How little a network knows, in units that need no tuning: relative to the priors and to the noise of its GPs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cbo_gym.agents.gp.protocols import NodeSurrogate
from cbo_gym.agents.networks.gp_network import GPNetwork

KNOWN = 0.002  # share of the prior standard deviation; the jitter alone leaves half of it at exact data
KNOWN_NOISE = 0.5  # share of the noise's standard deviation
UNKNOWN = 0.5  # share of the prior standard deviation
PLAUSIBLE = 3.0  # posterior standard deviations above the mean
BEYOND = torch.linspace(0.0, 0.05, 17, dtype=torch.float64)[1:]  # shares of the range of an input in the data


def relative_posterior_std(network: GPNetwork, inputs: Tensor) -> Tensor:
    """Return the greatest relative posterior standard deviation of the nodes that actions do not set, ``(b,)``.

    It is in units of ``KNOWN`` prior standard deviations plus ``KNOWN_NOISE`` of the noise. Below 1 one more
    observation teaches next to nothing. With noise, known or learned, about ``1 / KNOWN_NOISE^2`` repetitions lead
    there.
    """

    def of_node(gp: NodeSurrogate, points: Tensor) -> Tensor:
        _, std = gp.posterior(points)
        return std / (KNOWN * gp.prior_std(points) + KNOWN_NOISE * gp.noise_scale)

    return of_free_nodes(network, inputs, of_node).amax(0)


def information(network: GPNetwork, inputs: Tensor) -> Tensor:
    """Return the information of an observation about the functions of the nodes that are not set, ``(b,)``.

    It is the sum of ``log(1 + std^2 / noise^2)``, twice the gain in nats. The noise counts as at
    least ``KNOWN`` prior standard deviations.
    """

    def of_node(gp: NodeSurrogate, points: Tensor) -> Tensor:
        _, std = gp.posterior(points)
        return (std / (KNOWN * gp.prior_std(points)).maximum(gp.noise_scale)).square().log1p()

    return of_free_nodes(network, inputs, of_node).sum(0)


def of_free_nodes(network: GPNetwork, inputs: Tensor, measure: Callable[[NodeSurrogate, Tensor], Tensor]) -> Tensor:
    """Return a measure of the nodes' GPs at their posterior mean inputs, ``nodes x b``; 0 for nodes that are set."""
    settings = network.settings(inputs)
    measured = {node: torch.zeros_like(inputs[:, 0]) for node in network.nodes}

    def value(node: str, points: Tensor) -> Tensor:
        unknown = measure(network.surrogates[node], points).mean(-1)
        measured[node] = unknown.where(~settings[node][0][:, 0], measured[node]) if node in settings else unknown
        return network.mean(node, points)

    network.propagate(inputs, value)
    return torch.stack([measured[node].expand(len(inputs)) for node in network.nodes])


def reward_inputs(network: GPNetwork, inputs: Tensor) -> Tensor:
    """Return the inputs of the reward's GP under the posterior means of the other nodes, ``b x d``."""
    *others, reward = network.nodes
    return network.node_inputs(reward, network.propagate(inputs, network.mean, others), inputs.split(1, -1))[:, 0]


def distance_to_data(network: GPNetwork, inputs: Tensor, best: float) -> Tensor:
    """Return distances of the reward node's inputs from the nearest data, in units of their ranges, ``(b,)``.

    They are -1 where a search is useless: where the reward's posterior standard deviation is below ``UNKNOWN``
    prior ones, or its mean plus ``PLAUSIBLE`` posterior ones is at most ``best``.
    """
    gp, points = network.surrogates[network.task.reward], reward_inputs(network, inputs)
    mean, std = gp.posterior(points)
    promising = (std > UNKNOWN * gp.prior_std(points)) & (mean + PLAUSIBLE * std > best)
    distances = (
        torch.cdist(gp.normalise(points), gp.normalise(gp.inputs)).amin(-1) if len(gp) else torch.ones_like(mean)
    )
    return distances.where(promising, -torch.ones_like(distances))


def plausible_beyond(network: GPNetwork, column: int, sign: float, inputs: Tensor) -> Tensor:
    """Return the best reward that is plausible a little beyond an action's input of the reward node, a scalar.

    It is the mean plus ``PLAUSIBLE`` standard deviations at its greatest. The input ``column`` is greater than the
    action's if ``sign`` is 1, smaller if it is -1. ``inputs`` are features of one action, ``1 x input_dim``.
    """
    gp, point = network.surrogates[network.task.reward], reward_inputs(network, inputs)[0]
    values = gp.inputs[:, column] if len(gp) else point.new_tensor([0.0, 1.0])
    points = point.repeat(len(BEYOND), 1)
    points[:, column] += sign * (values.max() - values.min()) * BEYOND.to(points)
    mean, std = gp.posterior(points)
    return (mean + PLAUSIBLE * std).max()
