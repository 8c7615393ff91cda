"""EXCBO: causal Bayesian optimisation via exogenous distribution learning (Ren, Wang, Chen & Qian, Algorithm 1).

Every round, for every node: a GP of the node given its parents and own actions tells what the exogenous variable must
have been in each round, u^; a Gaussian mixture is fitted to the u^; and a decoder, a GP of the node given parents,
actions and u^, stands for the mechanism (:mod:`cbo_gym.agents.networks.exogenous`). The action with the highest
``E[mean] + beta E[std]`` of the reward's decoder is played, where u^ of every node is drawn from its mixture and the
means of the decoders lead from the roots to the reward. The draws of u^ are fixed within a round.

Hard interventions, which the paper leaves out, come at no cost: a node that is set takes its value and learns nothing
from that round, and every target set is searched.

Departures:

* The spread of a node given its parents is the *noise* of the first GP, and its level varies with the inputs. The
  paper's formula asks for that; the posterior variance of BoTorch's ``SingleTaskGP`` is not it.
* The paper's acquisition function has the decoders' standard deviations alone, although its regret bound (Lemma 14.2)
  has the encoders' too. A decoder that is sure of u^ is soon sure of everything, and the search stops. Here the
  posterior covariance of each encoder's mean is noise in the data of its decoder, and widens its mixture.
* sigma in sec. 5.2 is that of the reward's decoder alone. Here what is unknown upstream counts too: ``mean + sd *
  deviation`` is propagated, in pairs of opposite deviations, and what they do to the average over u^ is a part of the
  standard deviation. The two parts are added as variances.
* One deviation moves a decoder for all inputs of a draw, as if its errors were perfectly correlated among them; errors
  of the spread, and of the parameters of kernels, noise and mixtures, are left out.
* E[mean] is over the deviations as well as over u^.
* Kernels extrapolate in the parents and in u^ (``MechanismKernel``, ``DecoderKernel``) where the paper has
  ``SingleTaskGP``'s, with which the search on Alpine2 stalls.
* The paper does not print beta; here it is constant.
* Nodes that the task tells to have no noise have no u^. What else it tells of the noise is not used.
* The paper assumes that there are no latent causes. In soft mode, a node that shares one with an earlier node has that
  node's mean given its own inputs as a further input; in hard mode latent causes count as noise.
* Hyper-parameters are refitted on a schedule that thins out (``RefitSchedule``); u^, mixtures and decoders are computed
  anew in every round.
"""

from __future__ import annotations

from torch import Tensor

from cbo_gym.agents.networks.base import NetworkAgent
from cbo_gym.agents.networks.exogenous import Draws, ExogenousNetwork, MixtureSize
from cbo_gym.agents.toolbox.limits import MOST_SAMPLES, require_device
from cbo_gym.agents.toolbox.search import Acquisition, maximise
from cbo_gym.arguments import is_whole_number, require_not_negative, whole_number
from cbo_gym.errors import ArgumentError, did_you_mean, shown
from cbo_gym.task import Action

SCREENING_SAMPLES = 4
RESTARTS = 6
MOST_COMPONENTS = 20


class EXCBO(NetworkAgent):
    """Upper confidence bound on a network of decoders with learned exogenous variables.

    Plays soft, hard and adversarial tasks.

    Args:
        beta: weight of the expected standard deviation; finite, at least 0.
        components: of each Gaussian mixture, 1 to 20 (2 in the paper, 3 and 4 in its sec. 11.8), or ``"bic"`` to choose
            from 1 to 4 by the Bayesian information criterion, anew in each round.
        samples: quasi-random draws of the exogenous variables, 1 to 4,096.
        device: torch device.

    Attributes:
        network: encoders, mixtures and decoders of the nodes.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    network: ExogenousNetwork

    def __init__(self, beta: float = 2.0, components: MixtureSize = 2, samples: int = 16, device: str = "cpu") -> None:
        require_not_negative("beta", beta)
        is_number = is_whole_number(components) and 1 <= int(components) <= MOST_COMPONENTS
        if not is_number and not (isinstance(components, str) and components == "bic"):
            raise ArgumentError(
                f"components must be a whole number from 1 to {MOST_COMPONENTS}, or 'bic'; "
                f"given {shown(components)}{did_you_mean(components, ['bic'])}"
            )
        require_device(device)
        self.beta = beta
        self.components = components
        self.samples = whole_number("samples", samples, at_least=1, at_most=MOST_SAMPLES)
        self.device = device

    def setup(self, seed: int) -> None:
        self.network = ExogenousNetwork(self.task, self.components, seed, self.device)

    def choose(self, played: list[Action], best: float, seed: int) -> Action:
        return maximise(
            self.upper_bound(self.network.draw(self.samples, seed)),
            self.network.features,
            played,
            seed=seed,
            screening=self.upper_bound(self.network.draw(SCREENING_SAMPLES, seed)),
            restarts=RESTARTS,
            device=self.device,
        )

    def upper_bound(self, draws: Draws) -> Acquisition:
        """The acquisition function for some draws of u^: GP inputs ``b x 1 x d`` to values ``b``."""

        def value(inputs: Tensor) -> Tensor:
            mean, std = self.network.reward_belief(inputs.squeeze(-2), draws)
            return mean + self.beta * std

        return value

    def estimate(self) -> Tensor:
        return self.network.estimates(self.network.inputs, self.network.draw(self.samples, seed=0))
