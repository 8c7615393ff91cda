"""CBO-MW: multiplicative weights on optimistic rewards of a network (Sussex, Sessa, Makarova & Krause 2024, Alg. 1).

A GP models every node from its parents, its own actions and the coordinates of the adversary's move that enter it.
After a round the weight of each action grows with the greatest reward that it could plausibly have had against the
adversary's move: the maximum over functions ``mean + beta * std * eta`` of the nodes, with eta in [-1, 1], and 1 at the
reward node. This is the paper's causal upper confidence bound (Algorithm 2), with eta on a grid.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from typing import ClassVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from cbo_gym._util.arguments import whole_number
from cbo_gym.actions import BoxCodec, Domains
from cbo_gym.agents.common.limits import MAX_SAMPLES
from cbo_gym.agents.common.multiplicative_weights import MultiplicativeWeights
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.protocols import MakeNodeSurrogate
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.task import Action, AdversarialTask, Mode, Observation, SoftTask

# Values of eta, over which the maximum is taken.
ETAS = (-1.0, 0.0, 1.0)


class CBOMW(MultiplicativeWeights):
    """Multiplicative weights with a GP for every node. Plays adversarial tasks.

    Args:
        beta: distance of the confidence bounds from the mean, in standard deviations; finite, at least 0.
        rate: the learning rate; None for ``sqrt(8 log(n) / T)``.
        samples: number of draws of the noise for the expectation; 1 to 4,096.
        device: torch device.

    Attributes:
        make_surrogate: function that returns the surrogate of a node.
        network: the GPs of the nodes.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    make_surrogate: ClassVar[MakeNodeSurrogate] = GaussianProcess

    def __init__(self, beta: float = 0.5, rate: float | None = None, samples: int = 16, device: str = "cpu") -> None:
        super().__init__(beta, rate, device)
        self.samples = whole_number("samples", samples, at_least=1, at_most=MAX_SAMPLES)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self.network = GPNetwork(as_one_player(self.task), self.device, make=self.make_surrogate)
        free = [node for node in self.network.nodes if node != self.task.reward]
        # All combinations of the nodes' etas.
        columns = np.array(list(product(ETAS, repeat=len(free)))).reshape(-1, len(free)).T
        self._etas = {
            node: torch.from_numpy(column.copy()).to(self.device) for node, column in zip(free, columns, strict=True)
        }

    def learn(self, action: Action, observation: Observation, reward: float) -> None:
        self.network.add(np.concatenate([action, observation["adversary"]]), observation)

    def optimistic_rewards(self, inputs: Tensor) -> Tensor:
        # The best combination is chosen without noise, to save time.
        count = len(ETAS) ** len(self._etas)
        candidates = {node: eta.repeat(len(inputs)) for node, eta in self._etas.items()}
        best = self._rewards(inputs.repeat_interleave(count, 0), candidates, {}).reshape(-1, count).argmax(1)
        chosen = {node: eta[best] for node, eta in self._etas.items()}
        noise = self.network.draw_noise(self.samples, int(self.rng.integers(2**31)))
        return self._rewards(inputs, chosen, noise)

    def _rewards(self, inputs: Tensor, eta: dict[str, Tensor], noise: dict[str, Tensor]) -> Tensor:
        """Return expected rewards ``(b,)`` of inputs ``b x (q + k)``, given each node's eta ``(b,)``."""

        def plausible(node: str, points: Tensor, mean: Tensor, std: Tensor) -> Tensor:
            return mean + self.beta * std * (eta[node].unsqueeze(-1) if node in eta else 1.0)

        return self.network.rollout(inputs, plausible, noise)[self.task.reward].mean(-1)


def as_one_player(task: AdversarialTask) -> SoftTask:
    """Return the soft task in which an action also contains the adversary's move, after the agent's own coordinates."""
    agent_dim = len(task.action_domains)
    coordinates = {
        node: (*task.action_nodes.get(node, ()), *(agent_dim + index for index in task.adversary_nodes.get(node, ())))
        for node in task.nodes
    }
    domains = (*task.action_domains, *task.adversary_domains)
    space = spaces.Box(0.0, 1.0, (len(domains),), dtype=np.float64)
    shared = {field.name: getattr(task, field.name) for field in fields(SoftTask) if field.name != "composition"}
    return SoftTask(
        **shared
        | {
            "mode": Mode.SOFT,
            "action_space": space,
            "codec": BoxCodec(space, Domains(domains)),
            "action_nodes": {node: indices for node, indices in coordinates.items() if indices},
            "action_domains": domains,
            "action_names": (*task.action_names, *task.adversary_names),
            "null_action": (0.0,) * len(domains),
        }
    )
