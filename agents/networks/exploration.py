"""Exploration of network agents: replace an action if the model already knows its outcome.

Optimism within a model's confidence bounds can miss regions without data, such as the outer rings of Dropwave. If the
model is certain of the outcome of the agent's action, an exploring action is played instead, at most ``RATE * sqrt(t)``
times in t rounds. Three explorers take turns to propose one: the optimum of a network drawn from the posterior; an
action that drives a parent of the reward to its least or greatest value; and an action whose predicted inputs of the
reward node are farthest from the data.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from cbo_gym.agents.common.search import Effort, maximise, screen
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.novelty import (
    distance_to_data,
    plausible_beyond,
    relative_posterior_std,
    reward_inputs,
)
from cbo_gym.task import Action

# At most ``RATE * sqrt(t)`` of t rounds explore. Tuned, with the thresholds of novelty.py, on seeds 0 to 4 of Dropwave,
# Ackley, ToyGraph and noisy Dropwave.
RATE = 2.0
# Size of the searches of network agents. A network's acquisition functions take several times as long as those of one
# GP, and larger searches find actions that are hardly better.
EFFORT = Effort(
    raw_samples=512,
    perturbed=64,
    generations=2,
    children=8,
    restarts=8,
    scouting=4,
    max_iterations=20,
    relative_gain=1e-4,
)
# Number of nodes beyond which the size shrinks with the number of nodes, and the smallest number of restarts.
SEARCHED_NODES = 32
MIN_RESTARTS = 4
# Noise samples for the expectation under a drawn network, and for the first screening of actions.
SAMPLES = 16
SCREENING_SAMPLES = 4
# Two actions count as equal if no coordinate differs by more than this.
SAME_ACTION_TOLERANCE = 1e-3
# Standard deviation of the step away from an action whose outcome is known.
NUDGE = 3e-4

#: Function that returns an action, or None if it has none to propose. Its arguments are the played actions, from the
#: best to the worst, the estimated reward of the best one, and a seed.
Explorer = Callable[[list[Action], float, int], Action | None]


def effort_on(network: GPNetwork) -> Effort:
    """Return the size of a search over the actions of a network, which shrinks beyond ``SEARCHED_NODES`` nodes."""
    share = min(1.0, SEARCHED_NODES / len(network.nodes))
    return replace(
        EFFORT,
        raw_samples=round(EFFORT.raw_samples * share),
        perturbed=round(EFFORT.perturbed * share),
        generations=math.ceil(EFFORT.generations * share),
        children=math.ceil(EFFORT.children * share),
        restarts=max(MIN_RESTARTS, round(EFFORT.restarts * share)),
    )


class Exploration:
    """Replacement of actions whose outcome the network already knows.

    Args:
        network: the agent's surrogates.
        seed: seed of the drawn networks and of the steps away from actions with known outcomes.
        device: torch device.
        explorers: further explorers, whose turns come before those of the three of this class.

    Attributes:
        exploring_rounds: number of exploring rounds so far.
    """

    def __init__(self, network: GPNetwork, seed: int, device: str = "cpu", explorers: Sequence[Explorer] = ()) -> None:
        self.network = network
        self.device = device
        self.exploring_rounds = 0
        self._generator = torch.Generator().manual_seed(seed)
        self._explorers = deque([*explorers, self._drawn_optimum, self.next_extreme, self._farthest])
        parents = enumerate(network.parents[network.task.reward])
        indirect = [column for column, parent in parents if parent not in network.settable.names]
        self._extremes = deque((column, sign) for column in indirect for sign in (1.0, -1.0))

    def replacement(self, action: Action, played: list[Action], best: float, seed: int) -> Action:
        """Return the action to play instead of ``action``.

        If the model is uncertain of its outcome, this is ``action`` itself. Otherwise it is an exploring action, unless
        enough rounds have explored or no explorer proposes one. In that case it is ``action`` if the network is noisy,
        and an action close to it if the network is noiseless, so that no action is played twice.

        Args:
            action: action that the agent would play.
            played: actions played, from the best to the worst.
            best: estimated expected reward of the best.
            seed: seed of the searches.
        """
        features = self.network.features
        with torch.no_grad():
            if relative_posterior_std(self.network, features.of_actions([action]).to(self.device)) >= 1.0:
                return action
        if self.exploring_rounds < RATE * len(played) ** 0.5:
            self.exploring_rounds += 1
            for explore in tuple(self._explorers):
                self._explorers.rotate(-1)
                if (exploring := explore(played, best, seed)) is not None:
                    return exploring
        return action if self.network.noisy else self.nudge(action)

    def _farthest(self, played: list[Action], best: float, seed: int) -> Action | None:
        """Return the action whose inputs of the reward are farthest from data; None if none is plausibly better."""

        def distance(inputs: Tensor) -> Tensor:
            return distance_to_data(self.network, inputs.squeeze(-2), best)

        features = self.network.features
        point = screen(distance, features, played, seed=seed, effort=effort_on(self.network), device=self.device)[0]
        with torch.no_grad():
            return features.decode(point) if distance(features.inputs(point)[None, None]) > 0.0 else None

    def next_extreme(self, played: list[Action], best: float, seed: int) -> Action | None:
        """Return the action that drives the next parent of the reward to its least or greatest predicted value.

        An extreme is skipped if it was played, or if no reward above ``best`` is plausible beyond it. The result is
        None if all extremes are skipped.
        """
        features = self.network.features
        played_points = torch.stack([features.encode(action) for action in played]).to(self.device)
        for column, sign in tuple(self._extremes):
            self._extremes.rotate(-1)
            point = self._extreme(column, sign, played, seed)
            with torch.no_grad():
                plausible_reward = plausible_beyond(self.network, column, sign, features.inputs(point)[None])
            if plausible_reward > best and (played_points - point).abs().amax(-1).min() > SAME_ACTION_TOLERANCE:
                return features.decode(point)
        return None

    def _extreme(self, column: int, sign: float, played: list[Action], seed: int) -> Tensor:
        """Return the search point with the greatest prediction of ``sign`` times input ``column`` of the reward."""

        def signed_input(inputs: Tensor) -> Tensor:
            return sign * reward_inputs(self.network, inputs.squeeze(-2))[:, column]

        effort = effort_on(self.network)
        return screen(signed_input, self.network.features, played, seed=seed, effort=effort, device=self.device)[0]

    def _drawn_optimum(self, played: list[Action], best: float, seed: int) -> Action:
        """Return the action with the greatest expected reward under a network drawn from the posterior."""
        rewards = self.network.draw_rewards(self._generator)
        noise = self.network.draw_noise(SAMPLES, seed)
        fewer_draws = {node: draws[:SCREENING_SAMPLES] for node, draws in noise.items()}

        def coarse(inputs: Tensor) -> Tensor:
            return rewards(inputs.squeeze(-2), fewer_draws)

        return maximise(
            lambda inputs: rewards(inputs.squeeze(-2), noise),
            self.network.features,
            played,
            seed=seed,
            screening=coarse,
            scouting=coarse,
            effort=effort_on(self.network),
            device=self.device,
        )

    def nudge(self, action: Action) -> Action:
        """Return an action close to ``action``, whose values are reflected at 0 and 1."""
        features = self.network.features
        point = features.encode(action)
        count = len(point) - features.membership(point).shape[-1]
        step = NUDGE * torch.randn(count, dtype=torch.float64, generator=self._generator)
        values = 1.0 - (1.0 - (point[:count] + step).abs()).abs()
        return features.decode(torch.cat([values, point[count:]]))
