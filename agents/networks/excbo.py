"""EXCBO: causal Bayesian optimisation via exogenous distribution learning (Ren, Wang, Chen & Qian, Algorithm 1).

For every node, an encoder, a GP of the node given its parents and own actions, gives an estimate u^ of the node's
exogenous variable in each round. A Gaussian mixture is fitted to the u^. A decoder, a GP of the node given parents,
actions and u^, models the mechanism (:mod:`cbo_gym.agents.networks.exogenous`). The agent plays the action with the
highest ``E[mean] + beta E[std]`` of the reward's decoder. The models of a node skip the rounds in which it was set.
"""

from __future__ import annotations

from torch import Tensor

from cbo_gym._util.arguments import is_whole_number, require_not_negative, whole_number
from cbo_gym.agents.common.limits import MAX_SAMPLES, require_device
from cbo_gym.agents.common.search import Acquisition, Effort, maximise
from cbo_gym.agents.networks.base import NetworkAgent
from cbo_gym.agents.networks.exogenous import Draws, ExogenousNetwork, MixtureSize
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.task import Action

SCREENING_SAMPLES = 4
EFFORT = Effort(restarts=6)
MAX_COMPONENTS = 20


class EXCBO(NetworkAgent):
    """Upper confidence bound on a network of decoders with learned exogenous variables.

    Plays soft, hard and adversarial tasks.

    Args:
        beta: weight of the expected standard deviation; finite, at least 0.
        components: number of components of each Gaussian mixture, 1 to 20 (2 in the paper, 3 and 4 in its sec. 11.8);
            or ``"bic"``, which chooses from 1 to 4 in every round by the Bayesian information criterion.
        samples: number of quasi-random draws of the exogenous variables, 1 to 4,096.
        device: torch device.

    Attributes:
        network: encoders, mixtures and decoders of the nodes.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    network: ExogenousNetwork

    def __init__(self, beta: float = 2.0, components: MixtureSize = 2, samples: int = 16, device: str = "cpu") -> None:
        self.beta = require_not_negative("beta", beta)
        is_number = is_whole_number(components) and 1 <= int(components) <= MAX_COMPONENTS
        if not is_number and not (isinstance(components, str) and components == "bic"):
            raise ArgumentError(
                f"components must be a whole number from 1 to {MAX_COMPONENTS}, or 'bic'; "
                f"given {short_repr(components)}{did_you_mean(components, ['bic'])}"
            )
        self.device = require_device(device)
        self.components = components
        self.samples = whole_number("samples", samples, at_least=1, at_most=MAX_SAMPLES)

    def setup(self, seed: int) -> None:
        self.network = ExogenousNetwork(self.task, self.components, seed, self.device)

    def choose(self, played: list[Action], best: float, seed: int) -> Action:
        return maximise(
            self.upper_bound(self.network.draw(self.samples, seed)),
            self.network.features,
            played,
            seed=seed,
            screening=self.upper_bound(self.network.draw(SCREENING_SAMPLES, seed)),
            effort=EFFORT,
            device=self.device,
        )

    def upper_bound(self, draws: Draws) -> Acquisition:
        """Return the acquisition function for draws of u^, from features of actions ``b x 1 x d`` to ``(b,)``."""

        def value(inputs: Tensor) -> Tensor:
            mean, std = self.network.reward_mean_and_std(inputs.squeeze(-2), draws)
            return mean + self.beta * std

        return value

    def estimate(self) -> Tensor:
        return self.network.estimates(self.network.inputs, self.network.draw(self.samples, seed=0))
