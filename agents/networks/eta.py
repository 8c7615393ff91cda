"""Eta, the position between a node's confidence bounds: a constant in each search point, or networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from cbo_gym.agents.common.features import ActionFeatures
from cbo_gym.agents.surrogates.causal.gp_network import GPNetwork
from cbo_gym.task import Action

WIDTH = 16  # width of the networks' hidden layers
STEEPEST_START = 0.95  # largest starting eta, because the slope is 0 at eta = 1


class WithEta(ActionFeatures):
    """Search points that begin with one eta per node, as (eta + 1) / 2, followed by those of ``features``.

    Args:
        features: features of the actions.
        nodes: the nodes whose eta is searched.
    """

    def __init__(self, features: ActionFeatures, nodes: Sequence[str]) -> None:
        self._features = features
        self._nodes = tuple(nodes)
        self.search_dim = len(nodes) + features.search_dim
        self.input_dim = len(nodes) + features.input_dim

    def split(self, points: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Return eta by node, ``b x 1`` each, and the rest, of inputs or search points of shape ``b x d``."""
        count = len(self._nodes)
        eta = 2.0 * points[:, :count] - 1.0
        return dict(zip(self._nodes, eta.split(1, -1), strict=True)), points[:, count:]

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        points = self._features.draw(count, generator)
        return torch.cat([self._draw_eta(len(points), generator), points], -1)

    def _draw_eta(self, count: int, generator: torch.Generator) -> Tensor:
        """Return eta: half of the points at the bounds, where the optimum usually is, half anywhere between."""
        eta = torch.rand((count, len(self._nodes)), dtype=torch.float64, generator=generator)
        eta[: count // 2] = eta[: count // 2].round()
        return eta[torch.randperm(count, generator=generator)]

    def perturb(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """Perturb as ``features`` does; each eta is redrawn in one of four cases."""
        eta = points[:, : len(self._nodes)]
        redraw = torch.rand(eta.shape, generator=generator) < 0.25
        eta = torch.where(redraw, self._draw_eta(len(points), generator), eta)
        return torch.cat([eta, self._features.perturb(points[:, len(self._nodes) :], generator)], -1)

    def encode(self, action: Action) -> Tensor:
        point = self._features.encode(action)
        return torch.cat([point.new_ones(len(self._nodes)), point])

    def decode(self, point: Tensor) -> Action:
        return self._features.decode(point[len(self._nodes) :])

    def inputs(self, points: Tensor) -> Tensor:
        count = len(self._nodes)
        return torch.cat([points[..., :count], self._features.inputs(points[..., count:])], -1)

    def membership(self, points: Tensor) -> Tensor:
        return self._features.membership(points[..., len(self._nodes) :])


def rewards_within(
    network: GPNetwork, width: float, eta: Mapping[str, Tensor], inputs: Tensor, noise: Mapping[str, Tensor]
) -> Tensor:
    """Return expected rewards ``(b,)`` where each node is at its eta between bounds, the reward at the upper one.

    Args:
        network: the network.
        width: width of the bounds, in standard deviations.
        eta: eta of the nodes, from :meth:`WithEta.split`.
        inputs: features of actions, ``b x input_dim``.
        noise: noise from :meth:`GPNetwork.draw_noise`, or empty.
    """

    def plausible(node: str, points: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        return mean + width * std * eta.get(node, 1.0)

    return network.rollout(inputs, plausible, noise)[network.task.reward].mean(-1)


class EtaNetworks:
    """For each of r starts and each node a two-layer ReLU network from the node's GP inputs to eta in (-1, 1).

    Args:
        network: the network of the nodes.
        layers: node -> hidden weights, kinks, slopes and level, each with leading dimension r.

    Attributes:
        parameters: all weights, tensors with leading dimension r that require gradients.
    """

    def __init__(self, network: GPNetwork, layers: Mapping[str, Sequence[Tensor]]) -> None:
        self._network = network
        self._layers = {
            node: [layer.detach().clone().requires_grad_(True) for layer in own] for node, own in layers.items()
        }
        self.parameters = [layer for own in self._layers.values() for layer in own]

    @classmethod
    def random(cls, network: GPNetwork, eta: Mapping[str, Tensor], seed: int) -> EtaNetworks:
        """Return networks with random hidden layers, from ``seed``.

        ``eta`` gives each node its constant output at the start, ``r x 1``, in [-1, 1].
        """
        generator = torch.Generator().manual_seed(seed)
        layers = {}
        for node, constant in eta.items():
            dim, starts = network.surrogates[node].dim, len(constant)
            hidden = torch.randn((starts, dim, WIDTH), dtype=torch.float64, generator=generator) / dim**0.5
            kinks = 2.0 * torch.rand((starts, 1, WIDTH), dtype=torch.float64, generator=generator) - 1.0
            slopes = 0.1 / WIDTH**0.5 * torch.randn((starts, WIDTH, 1), dtype=torch.float64, generator=generator)
            level = constant.clamp(-STEEPEST_START, STEEPEST_START).atanh().unsqueeze(-1)
            layers[node] = [layer.to(constant) for layer in (hidden, kinks, slopes, level)]
        return cls(network, layers)

    def select(self, starts: Tensor) -> EtaNetworks:
        """Return copies of the networks of the starts with some indices."""
        return EtaNetworks(
            self._network, {node: [layer[starts] for layer in own] for node, own in self._layers.items()}
        )

    def __call__(self, node: str, points: Tensor) -> Tensor | float:
        """Eta at GP inputs ``r x s x d``, shape ``r x s``; 1 for a node without a network."""
        if node not in self._layers:
            return 1.0
        hidden, kinks, slopes, level = self._layers[node]
        centred = 2.0 * self._network.surrogates[node].rescaled(points) - 1.0
        return ((centred @ hidden + kinks).relu() @ slopes + level).tanh().squeeze(-1)
