"""MCBO: model-based causal Bayesian optimisation (Sussex, Makarova & Krause 2023, Algorithms 1 and 2).

A GP models every node from its parents and its own actions. Between its confidence bounds are the plausible functions
``mean + beta * std * eta`` with eta in [-1, 1]. Every round plays the action with the greatest ``E[Y]`` under the most
favourable plausible functions: the maximum over actions and the etas of all nodes, where eta of the reward node is 1.
Without noise eta is one number per node; with noise it is a small neural network of the node's parents and actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from cbo_gym._util.arguments import require_not_negative, whole_number
from cbo_gym.agents.calibration.safe_play import SafePlay, safety_arguments
from cbo_gym.agents.common.limits import MAX_SAMPLES, require_device
from cbo_gym.agents.common.search import maximise, screen
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.networks.base import NetworkAgent
from cbo_gym.agents.networks.eta import EtaNetworks, WithEta
from cbo_gym.agents.networks.exploration import EFFORT, SEARCHED_NODES, Exploration, effort_on
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.pessimism import Pessimism
from cbo_gym.agents.networks.warmup_exploration import WarmupExploration
from cbo_gym.task import Action, Observation

MAX_RESTARTS = 1024
# Default beta without and with constraints.
DEFAULT_BETA, CONSTRAINED_BETA = 0.05, 0.5
# Number of steps of Adam from all starts, and the largest number of noise samples in these steps.
SCOUTING_STEPS, SCOUTING_SAMPLES = 6, 8
# Number of starts from which Adam continues, and its total number of steps from these.
FINALISTS, STEPS = 3, 16
# Learning rates of Adam: for actions in [0, 1], and for the parameters of the neural networks.
ACTION_RATE, NETWORK_RATE = 0.02, 0.1
# Number of noise samples for the choice of the starts.
SCREENING_SAMPLES = 4
# Number of networks drawn to certify actions.
CERTIFYING_FUNCTIONS = 16
# Number of noise samples for the estimates of rewards.
MEAN_SAMPLES = 128


class Adam:
    """Ascent by Adam, without ``torch.optim.Adam``, whose import of torch's compiler takes seconds.

    Args:
        parameters: tensors to change in place; tensors without a gradient do not change.
        rate: learning rate.
    """

    def __init__(self, parameters: Sequence[Tensor], rate: float) -> None:
        self._rate = rate
        self._states = [
            (parameter, torch.zeros_like(parameter), torch.zeros_like(parameter), torch.tensor(0.0))
            for parameter in parameters
        ]

    def step(self) -> None:
        """Make one step, and delete the gradients."""
        moving = [state for state in self._states if state[0].grad is not None]
        if not moving:
            return
        parameters, means, squares, steps = map(list, zip(*moving, strict=True))
        adam(
            parameters, [parameter.grad for parameter in parameters], means, squares, [], steps,
            foreach=True, amsgrad=False, beta1=0.9, beta2=0.999, lr=self._rate, weight_decay=0.0, eps=1e-8,
            maximize=True,
        )  # fmt: skip
        for parameter in parameters:
            parameter.grad = None


class Climb(NamedTuple):
    """Results of ascents from r starts.

    Attributes:
        points: the best search point of each, ``r x search_dim``.
        values: values of the acquisition function there, ``(r,)``.
        last: the last point of each, ``r x search_dim``.
    """

    points: Tensor
    values: Tensor
    last: Tensor


class MCBO(NetworkAgent):
    """Optimism over plausible function networks. Plays soft, hard and adversarial tasks.

    Args:
        beta: distance of the confidence bounds from the mean, in standard deviations; finite, at least 0. None, which
            needs no tuning, is 0.05 with exploration whenever the agent would learn nothing from the chosen action. The
            paper tunes beta over {0.05, 0.5, 5}. Over its nine tasks, 0.05 had the highest rewards during play, and 5
            the best recommended actions (examples/chosen_beta.yaml).
        samples: number of draws of the noise for the expectation in the acquisition function (32 in the paper, 128 for
            Dropwave); 1 to 4,096.
        restarts: number of starts of the joint optimisation of action and networks, 1 to 1,024; only with noise.
        device: torch device.
        safety: largest probability, according to the model, that a round misses a constraint of the task. Only actions
            that the model certifies are played. None to play actions that the model expects to be feasible.
        safe_start: with ``safety``, native values by name of an action that meets the constraints; None if the data
            certify one.

    Attributes:
        network: the GPs of the nodes.
        search_points: the space of the search, one eta for each node, then the action.
        safe_play: the choice among certified actions; None without ``safety``.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    takes_missing = True
    takes_mixed_domains = True
    takes_partial = True
    learns_mechanisms = True
    takes_limits = True
    takes_precision = True

    def __init__(
        self,
        beta: float | None = None,
        samples: int = 32,
        restarts: int = 16,
        device: str = "cpu",
        safety: float | None = None,
        safe_start: Mapping[str, Any] | None = None,
    ) -> None:
        if beta is not None:
            require_not_negative("beta", beta)
        self.device = require_device(device)
        self.beta = beta
        self.samples = whole_number("samples", samples, at_least=1, at_most=MAX_SAMPLES)
        self.restarts = whole_number("restarts", restarts, at_least=1, at_most=MAX_RESTARTS)
        self.safety, self.safe_start = safety_arguments(safety, safe_start)

    def setup(self, seed: int) -> None:
        constraints = self.task.constraints
        explores = self.beta is None and not constraints
        constrained = [constraint.node for constraint in constraints]
        self.network = GPNetwork(self.task, self.device, constrained, self.make_surrogate, signals=explores)
        self._pessimism = Pessimism(self.network, constraints) if constraints else None
        free = [node for node in self.network.nodes if node != self.task.reward]
        self.search_points = WithEta(self.network.features, free)
        self.safe_play = None
        if self.safety is not None:
            self.safe_play = SafePlay(self.task, self.network.features, self.safety, self.safe_start, self.device)
        default = CONSTRAINED_BETA if constraints else DEFAULT_BETA
        self._width = default if self.beta is None else self.beta
        self._explorer = self.network
        # Exploration models children of signals (see GPNetwork) from the signals alone. With further inputs their
        # functions would be unknown wherever nothing was played.
        if explores and self.network.signals:
            self._explorer = GPNetwork(
                self.task, self.device, make=self.make_surrogate, signals=True, signal_inputs=False
            )
        warms_up = explores and self.network.noisy
        self.warmup = WarmupExploration(self._explorer, len(self.initial_rounds()), self.device) if warms_up else None
        explorers = [self.warmup.wide_optimum] if self.warmup else []
        self.exploration = Exploration(self._explorer, seed, self.device, explorers) if explores else None

    def learn(self, action: Action, observation: Observation, partial: bool) -> None:
        super().learn(action, observation, partial)
        if self._explorer is not self.network:
            self._explorer.add(action, observation, partial)

    def estimate(self) -> Tensor:
        return self.network.expected_rewards(self.network.inputs, self.network.draw_noise(MEAN_SAMPLES, seed=0))

    def first(self, seed: int) -> Action:
        return super().first(seed) if self.safe_play is None else self.safe_play.first()

    def choose(self, played: list[Action], best: float, seed: int) -> Action:
        if self.safe_play is not None:
            noise = self.network.draw_noise(SCREENING_SAMPLES, seed)
            return self.safe_play.choose(
                self, lambda inputs: self._optimistic_rewards(inputs, noise), self.search_points, seed
            )
        if not self.network.noisy:
            is_large = len(self.network.nodes) > SEARCHED_NODES
            return maximise(
                lambda inputs: self.acquisition(inputs, {}),
                self.search_points,
                played,
                seed=seed,
                screening=self._acquisition_at_means if is_large else None,
                effort=effort_on(self.network),
                device=self.device,
            )
        return self._maximise_with_networks(played, seed)

    def acquisition(self, inputs: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        """Return values of the acquisition function with one eta per node, ``(b,)``.

        Args:
            inputs: inputs of :class:`WithEta`, ``b x 1 x d``.
            noise: noise from :meth:`GPNetwork.draw_noise`, or empty.
        """
        return self._penalise(self._optimistic_rewards(inputs, noise), self.search_points.split(inputs.squeeze(-2))[1])

    def _optimistic_rewards(self, inputs: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        eta, actions = self.search_points.split(inputs.squeeze(-2))
        return self.network.rewards_within(actions, self._width, eta, noise)

    def _acquisition_at_means(self, inputs: Tensor) -> Tensor:
        """Return the acquisition function at posterior means, which takes a third of the time on large networks."""
        actions = self.search_points.split(inputs.squeeze(-2))[1]
        return self._penalise(self.network.expected_rewards(actions, {}), actions)

    def _penalise(self, rewards: Tensor, inputs: Tensor) -> Tensor:
        """Return optimistic rewards ``(b,)`` of actions ``b x input_dim``, less the penalty for constraints."""
        return rewards if self._pessimism is None else rewards - self._pessimism.penalty(inputs)

    def estimated_violations(self) -> np.ndarray:
        if self._pessimism is None:
            return super().estimated_violations()
        with torch.no_grad():
            return self._pessimism.violations(self.network.inputs).cpu().numpy()

    def constrained_posterior(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        assert self._pessimism is not None
        return self._pessimism.expectations(inputs, CERTIFYING_FUNCTIONS)

    def max_relative_std(self, inputs: Tensor) -> Tensor:
        assert self._pessimism is not None
        return self._pessimism.max_relative_std(inputs)

    def constrained_gps(self) -> list[list[GaussianProcess]]:
        gps = {node: gp for node, gp in self.network.surrogates.items() if isinstance(gp, GaussianProcess)}
        involved = [self.task.diagram.ancestors([constraint.node]) for constraint in self.task.constraints]
        return [[gp for node, gp in gps.items() if node in ancestors] for ancestors in involved]

    def _maximise_with_networks(self, played: list[Action], seed: int) -> Action:
        noise = self.network.draw_noise(self.samples, seed)
        fewer_draws = {node: draws[:SCREENING_SAMPLES] for node, draws in noise.items()}
        starts = screen(
            lambda inputs: self.acquisition(inputs, fewer_draws),
            self.search_points,
            played,
            seed=seed,
            effort=replace(EFFORT, restarts=self.restarts),
            device=self.device,
        )
        best, _ = self.optimise(starts, noise, seed)
        return self.search_points.decode(best)

    def optimise(self, starts: Tensor, noise: Mapping[str, Tensor], seed: int) -> tuple[Tensor, float]:
        """Run Adam on actions and networks from all starts at once, and after some steps only from the best ones.

        Args:
            starts: search points of :class:`WithEta`, ``r x search_dim``.
            noise: noise from :meth:`GPNetwork.draw_noise`.
            seed: seed of the neural networks' random layers.

        Returns:
            The search point with the highest value of the acquisition function on ``noise``, and that value.
        """
        networks = EtaNetworks.random(self.network, self.search_points.split(starts)[0], seed)
        fewer_draws = {node: draws[:SCOUTING_SAMPLES] for node, draws in noise.items()}
        scouted = self._climb(starts, networks, fewer_draws, SCOUTING_STEPS)
        finalists = scouted.values.topk(min(FINALISTS, len(starts))).indices
        ended = self._climb(scouted.last[finalists], networks.select(finalists), noise, STEPS - SCOUTING_STEPS)
        best = int(ended.values.argmax())
        return ended.points[best], float(ended.values[best])

    def _climb(self, starts: Tensor, networks: EtaNetworks, noise: Mapping[str, Tensor], steps: int) -> Climb:
        """Run Adam on actions and neural networks from all starts at once; the networks change in place."""
        points = starts.clone().requires_grad_(True)

        def plausible(node: str, inputs: Tensor, mean: Tensor, std: Tensor) -> Tensor:
            return mean + self._width * std * networks(node, inputs)

        optimisers = Adam([points], ACTION_RATE), Adam(networks.parameters, NETWORK_RATE)
        best, best_values = starts.clone(), torch.full_like(starts[:, 0], -torch.inf)
        for step in range(steps + 1):
            inputs = self.search_points.split(self.search_points.inputs(points))[1]
            values = self._penalise(self.network.rollout(inputs, plausible, noise)[self.task.reward].mean(-1), inputs)
            better = values.detach() > best_values
            best_values = torch.where(better, values.detach(), best_values)
            best = torch.where(better[:, None], points.detach(), best)
            if step < steps:
                values.sum().backward()
                with torch.no_grad():
                    for optimiser in optimisers:
                        optimiser.step()
                    points.clamp_(0.0, 1.0)
        return Climb(best, best_values, points.detach())
