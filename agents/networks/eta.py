"""Eta, MCBO's position of a node's function between its confidence bounds: -1 is the lower bound, 1 the upper.

:class:`WithEta` adds one number eta per node to the points of a search. :class:`EtaNetworks` make eta a function of the
node's GP inputs, by small neural networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from cbo_gym.agents.common.features import ActionFeatures
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.task import Action

# Number of hidden units of a neural network.
HIDDEN_UNITS = 16
# Largest absolute output of an initial neural network. It is a tanh, whose gradient vanishes near 1.
MAX_INITIAL_ETA = 0.95


class WithEta(ActionFeatures):
    """Features of actions, preceded by ``(eta + 1) / 2`` of each node in both search points and inputs.

    Args:
        features: features of the actions.
        nodes: the nodes whose eta is searched.
    """

    def __init__(self, features: ActionFeatures, nodes: Sequence[str]) -> None:
        self._features, self.codec = features, features.codec
        self._nodes = tuple(nodes)
        self.search_dim = len(nodes) + features.search_dim
        self.input_dim = len(nodes) + features.input_dim

    def split(self, points: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Split points or inputs, ``b x d``, into eta by node, ``b x 1`` each, and points or inputs of ``features``."""
        count = len(self._nodes)
        eta = 2.0 * points[:, :count] - 1.0
        return dict(zip(self._nodes, eta.unsqueeze(-1).unbind(1), strict=True)), points[:, count:]

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        points = self._features.draw(count, generator)
        return torch.cat([self._draw_eta(len(points), generator), points], -1)

    # Only the base class's draw, which is overridden, calls its abstract method.
    _draw = draw

    def _draw_eta(self, count: int, generator: torch.Generator) -> Tensor:
        """Return ``(eta + 1) / 2`` of ``count`` points, ``count x nodes``.

        In half of the points every eta is -1 or 1, where the optimum usually is; in the others eta is uniform.
        """
        rescaled_eta = torch.rand((count, len(self._nodes)), dtype=torch.float64, generator=generator)
        rescaled_eta[: count // 2] = rescaled_eta[: count // 2].round()
        return rescaled_eta[torch.randperm(count, generator=generator)]

    def perturb(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """Perturb actions as ``features`` does; redraw each eta with probability 1/4."""
        rescaled_eta, actions = points.split([len(self._nodes), self._features.search_dim], -1)
        redraw = torch.rand(rescaled_eta.shape, generator=generator) < 0.25
        rescaled_eta = torch.where(redraw, self._draw_eta(len(points), generator), rescaled_eta)
        return torch.cat([rescaled_eta, self._features.perturb(actions, generator)], -1)

    def encode(self, action: Action) -> Tensor:
        """Return the search point of an action with every node at its upper bound."""
        return self._with_upper_bounds(self._features.encode(action))

    def encode_inside(self, action: Action) -> Tensor:
        return self._with_upper_bounds(self._features.encode_inside(action))

    def _with_upper_bounds(self, point: Tensor) -> Tensor:
        return torch.cat([point.new_ones(len(self._nodes)), point])

    def decode(self, point: Tensor) -> Action:
        return self._features.decode(point[len(self._nodes) :])

    def repair(self, points: Tensor) -> Tensor:
        count = len(self._nodes)
        return torch.cat([points[..., :count], self._features.repair(points[..., count:])], -1)

    def allows(self, action: Action) -> bool:
        return self._features.allows(action)

    def inputs(self, points: Tensor) -> Tensor:
        count = len(self._nodes)
        return torch.cat([points[..., :count], self._features.inputs(points[..., count:])], -1)

    def exact_inputs(self, points: Tensor) -> Tensor:
        count = len(self._nodes)
        return torch.cat([points[..., :count], self._features.exact_inputs(points[..., count:])], -1)

    def membership(self, points: Tensor) -> Tensor:
        return self._features.membership(points[..., len(self._nodes) :])


class EtaNetworks:
    """Two-layer neural networks with ReLU units from a node's GP inputs to its eta in (-1, 1).

    There is one for each node and each of the r starting points of an optimisation.

    Args:
        network: the network of GPs.
        layers: by node, the weights and biases of the hidden layer, then those of the output, each with leading
            dimension r.

    Attributes:
        parameters: all weights and biases, tensors with leading dimension r that require gradients.
    """

    def __init__(self, network: GPNetwork, layers: Mapping[str, Sequence[Tensor]]) -> None:
        self._network = network
        self._layers = {
            node: [tensor.detach().clone().requires_grad_(True) for tensor in tensors]
            for node, tensors in layers.items()
        }
        self.parameters = [tensor for tensors in self._layers.values() for tensor in tensors]

    @classmethod
    def random(cls, network: GPNetwork, eta: Mapping[str, Tensor], seed: int) -> EtaNetworks:
        """Return neural networks with random hidden layers and outputs near a constant.

        Args:
            network: the network of GPs.
            eta: the constants in [-1, 1], ``r x 1`` for each node.
            seed: seed of the weights and biases.
        """
        generator = torch.Generator().manual_seed(seed)
        layers = {}
        for node, constant in eta.items():
            dim, starts = network.surrogates[node].dim, len(constant)
            weights = torch.randn((starts, dim, HIDDEN_UNITS), dtype=torch.float64, generator=generator) / dim**0.5
            biases = 2.0 * torch.rand((starts, 1, HIDDEN_UNITS), dtype=torch.float64, generator=generator) - 1.0
            normal = torch.randn((starts, HIDDEN_UNITS, 1), dtype=torch.float64, generator=generator)
            output_weights = 0.1 / HIDDEN_UNITS**0.5 * normal
            output_bias = constant.clamp(-MAX_INITIAL_ETA, MAX_INITIAL_ETA).atanh().unsqueeze(-1)
            layers[node] = [tensor.to(constant) for tensor in (weights, biases, output_weights, output_bias)]
        return cls(network, layers)

    def select(self, starts: Tensor) -> EtaNetworks:
        """Return copies of the neural networks of the starting points with these indices."""
        return EtaNetworks(
            self._network, {node: [tensor[starts] for tensor in tensors] for node, tensors in self._layers.items()}
        )

    def __call__(self, node: str, points: Tensor) -> Tensor | float:
        """Return eta at GP inputs ``r x s x d``, shape ``r x s``; 1 for a node without a neural network."""
        if node not in self._layers:
            return 1.0
        weights, biases, output_weights, output_bias = self._layers[node]
        centred = 2.0 * self._network.surrogates[node].normalise(points) - 1.0
        return ((centred @ weights + biases).relu() @ output_weights + output_bias).tanh().squeeze(-1)
