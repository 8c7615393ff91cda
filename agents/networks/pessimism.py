"""Constraints in function-network methods: optimism about the reward, pessimism about constrained nodes.

Networks drawn from the posterior of all functions give the mean and the standard deviation of E[node | action]. An
action is safe if the mean meets every constraint by some standard deviations. Otherwise the acquisition function is
reduced by a penalty that exceeds any gain in reward.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cbo_gym.agents.common.feasibility import CAUTION, violations
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.novelty import of_free_nodes
from cbo_gym.task import Constraint

# Number of networks drawn, and of noise samples in each.
DRAWN_NETWORKS, NOISE_SAMPLES = 8, 8
# Number of standard deviations by which the mean of a constrained node must be inside its limit.
SAFETY_STDS = 2.0
# Penalty, in standard deviations of the observed reward, for a violation by one standard deviation of the node.
PENALTY_WEIGHT = 10.0


class Pessimism:
    """Penalties and estimated violations of actions that may miss constraints.

    Args:
        network: a network with the constrained nodes.
        constraints: the constraints, at least one.
    """

    def __init__(self, network: GPNetwork, constraints: Sequence[Constraint]) -> None:
        self._network, self._constraints = network, constraints
        involved = network.task.diagram.ancestors([constraint.node for constraint in constraints])
        self._involved = [index for index, node in enumerate(network.nodes) if node in involved]

    def penalty(self, inputs: Tensor) -> Tensor:
        """Return the penalties of actions ``b x input_dim``, ``(b,)``; differentiable, 0 for safe actions."""
        mean, std = self.expectations(inputs)
        excesses = []
        for index, constraint in enumerate(self._constraints):
            excess = (constraint.excess(mean[:, index]) + SAFETY_STDS * std[:, index]).clamp_min(0.0)
            excesses.append(excess / self._spread(constraint.node))
        return PENALTY_WEIGHT * self._spread(self._network.task.reward) * torch.stack(excesses).sum(0)

    def violations(self, inputs: Tensor) -> Tensor:
        """Return the estimated violations of actions, with less caution: ``b x input_dim`` to ``(b,)``."""
        return violations(self._constraints, *self.expectations(inputs), CAUTION)

    def max_relative_std(self, inputs: Tensor) -> Tensor:
        """Return the greatest ratio of the posterior to the prior standard deviation, ``(b,)``.

        The ratios are those of the constrained nodes and their ancestors, except nodes that the action sets.
        """
        shares = of_free_nodes(self._network, inputs, lambda gp, points: gp.posterior(points)[1] / gp.prior_std(points))
        return shares[self._involved].amax(0)

    def expectations(self, inputs: Tensor, functions: int = DRAWN_NETWORKS) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of E[node | action] over networks, ``b x constraints`` each."""
        noise = self._network.draw_noise(NOISE_SAMPLES, seed=0)
        nodes = [constraint.node for constraint in self._constraints]
        return self._network.expectations(inputs, nodes, noise, functions, NOISE_SAMPLES)

    def _spread(self, node: str) -> Tensor:
        """Return the standard deviation of a node's data; 1 if it is 0."""
        outputs = self._network.surrogates[node].outputs
        spread = outputs.std(correction=0) if len(outputs) else outputs.new_tensor(0.0)
        return spread if spread > 0.0 else torch.ones_like(spread)
