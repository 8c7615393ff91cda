"""Exploration: actions that a network agent plays instead of one that teaches nothing.

Optimism within a model's bounds finds nothing where the model has no data, such as the rings of Dropwave that no action
has reached. So once its action is known, an agent plays another one, at most ``RATE * sqrt(t)`` times in t rounds: in
turn the optimum of a network drawn from the posterior, an action that drives a parent of the reward to its least or
greatest value, and one whose predicted inputs of the reward node are farthest from the data.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypedDict

import torch
from torch import Tensor

from cbo_gym.agents.common.search import GENERATIONS, RAW_SAMPLES, RESTARTS, maximise, screen
from cbo_gym.agents.surrogates.causal.gp_network import GPNetwork
from cbo_gym.agents.surrogates.causal.novelty import (
    distance_to_data,
    plausible_beyond,
    relative_posterior_std,
    reward_inputs,
)
from cbo_gym.task import Action

RATE = 2.0  # chosen, with the limits of novelty.py, on seeds 0 to 4 of Dropwave, Ackley, ToyGraph and noisy Dropwave
SEARCHED_NODES = 32  # with more nodes searches are smaller, because further points help little
MIN_RESTARTS = 4
SAMPLES = 16  # noise samples for the expectation under a drawn network
SCREENING_SAMPLES = 4
#: actions played, from the best to the worst, the estimate of the best one, and a seed -> an action, or None
Explorer = Callable[[list[Action], float, int], Action | None]
CLOSE = 1e-3  # greatest difference of the coordinates of actions that count as equal
NUDGE = 3e-4  # standard deviation of the step away from a known action


class Effort(TypedDict):
    """The size of a search, as :func:`~cbo_gym.agents.common.search.maximise` takes it."""

    raw_samples: int
    generations: int
    restarts: int


def effort_on(network: GPNetwork) -> Effort:
    """Return the size of searches over the actions of a network."""
    share = min(1.0, SEARCHED_NODES / len(network.nodes))
    return Effort(
        raw_samples=round(RAW_SAMPLES * share),
        generations=math.ceil(GENERATIONS * share),
        restarts=max(MIN_RESTARTS, round(RESTARTS * share)),
    )


class Exploration:
    """Replaces actions that teach nothing.

    Args:
        network: the agent's surrogates.
        seed: seed of the drawn networks and of the steps away from known actions.
        device: torch device.
        also: explorers that have their turns before the three.

    Attributes:
        spent: number of exploring rounds so far.
    """

    def __init__(self, network: GPNetwork, seed: int, device: str = "cpu", also: Sequence[Explorer] = ()) -> None:
        self.network = network
        self.device = device
        self.spent = 0
        self._generator = torch.Generator().manual_seed(seed)
        self._explorers = deque([*also, self._drawn_optimum, self._edge, self._farthest])
        parents = enumerate(network.parents[network.task.reward])
        driven = [column for column, parent in parents if parent not in network.settable.names]
        self._edges = deque((column, sign) for column in driven for sign in (1.0, -1.0))

    def replacement(self, action: Action, played: list[Action], best: float, seed: int) -> Action:
        """Return ``action``, or an exploring action if ``action`` teaches nothing and exploration is due.

        Otherwise ``action``; in a noiseless network an action close to it, so that no action is played twice.

        Args:
            action: the action that the agent would play.
            played: actions played, from the best to the worst.
            best: estimate of the first one's expected reward.
            seed: seed of the searches.
        """
        features = self.network.features
        with torch.no_grad():
            if relative_posterior_std(self.network, features.of_actions([action]).to(self.device)) >= 1.0:
                return action
        if self.spent < RATE * len(played) ** 0.5:
            self.spent += 1
            for explore in tuple(self._explorers):
                self._explorers.rotate(-1)
                if (exploring := explore(played, best, seed)) is not None:
                    return exploring
        return action if self.network.noisy else self._nudge(action)

    def _farthest(self, played: list[Action], best: float, seed: int) -> Action | None:
        """The action that leads farthest from the data; None if nothing unknown may be better."""

        def distance(inputs: Tensor) -> Tensor:
            return distance_to_data(self.network, inputs.squeeze(-2), best)

        features = self.network.features
        point = screen(distance, features, played, seed=seed, **effort_on(self.network), device=self.device)[0]
        with torch.no_grad():
            return features.decode(point) if distance(features.inputs(point)[None, None]) > 0.0 else None

    def _edge(self, played: list[Action], best: float, seed: int) -> Action | None:
        """The next extreme of a parent that is new and beyond which better is plausible; None if there is none."""
        features = self.network.features
        tried = torch.stack([features.encode(action) for action in played]).to(self.device)
        for column, sign in tuple(self._edges):
            self._edges.rotate(-1)
            point = self._extreme(column, sign, played, seed)
            with torch.no_grad():
                beyond = plausible_beyond(self.network, column, sign, features.inputs(point)[None])
            if beyond > best and (tried - point).abs().amax(-1).min() > CLOSE:
                return features.decode(point)
        return None

    def _extreme(self, column: int, sign: float, played: list[Action], seed: int) -> Tensor:
        """The search point that drives an input of the reward's GP farthest."""

        def reached(inputs: Tensor) -> Tensor:
            return sign * reward_inputs(self.network, inputs.squeeze(-2))[:, column]

        effort = effort_on(self.network)
        return screen(reached, self.network.features, played, seed=seed, **effort, device=self.device)[0]

    def _drawn_optimum(self, played: list[Action], best: float, seed: int) -> Action:
        rewards = self.network.draw_rewards(self._generator)
        noise = self.network.draw_noise(SAMPLES, seed)
        few = {node: draws[:SCREENING_SAMPLES] for node, draws in noise.items()}

        def coarse(inputs: Tensor) -> Tensor:
            return rewards(inputs.squeeze(-2), few)

        return maximise(
            lambda inputs: rewards(inputs.squeeze(-2), noise),
            self.network.features,
            played,
            seed=seed,
            screening=coarse,
            scouting=coarse,
            **effort_on(self.network),
            device=self.device,
        )

    def _nudge(self, action: Action) -> Action:
        """An action close to ``action``, reflected into the box."""
        features = self.network.features
        point = features.encode(action)
        values = len(point) - features.membership(point).shape[-1]
        nudge = NUDGE * torch.randn(values, dtype=torch.float64, generator=self._generator)
        moved = 1.0 - (1.0 - (point[:values] + nudge).abs()).abs()
        return features.decode(torch.cat([moved, point[values:]]))
