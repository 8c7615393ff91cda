"""GP-MW: multiplicative weights on optimistic rewards of one GP (Sessa, Bogunovic, Kamgarpour & Krause 2019).

One GP maps the agent's action and the adversary's move to the reward. After every round, the weight of each action
grows with the GP's upper confidence bound ``mean + beta * std`` against the observed move. The causal diagram and the
other nodes are ignored.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cbo_gym.agents.common.multiplicative_weights import MultiplicativeWeights
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.protocols import MakeSurrogate
from cbo_gym.task import Action, Observation


class GPMW(MultiplicativeWeights):
    """Multiplicative weights with one GP from action and move to the reward. Plays adversarial tasks.

    Attributes:
        make_surrogate: factory of the surrogate.
        surrogate: the GP from the action and the adversary's move to the reward.
    """

    make_surrogate: ClassVar[MakeSurrogate] = GaussianProcess

    def setup(self, seed: int) -> None:
        super().setup(seed)
        dim = len(self.task.action_domains) + len(self.task.adversary_domains)
        self.surrogate = self.make_surrogate(self.task.reward, dim, noise_std=None, device=self.device)

    def learn(self, action: Action, observation: Observation, reward: float) -> None:
        inputs = np.concatenate([action, observation["adversary"]])
        self.surrogate.add(torch.from_numpy(inputs), reward)

    def optimistic_rewards(self, inputs: Tensor) -> Tensor:
        return self.surrogate.bound(inputs, self.beta)
