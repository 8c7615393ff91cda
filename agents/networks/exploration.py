"""Exploration: where a network agent looks when the action that it would play teaches nothing.

An agent that is nearly greedy earns most, but it ends where it first came to rest: optimism within a
model's bounds cannot see what the model has no idea of, say the rings of Dropwave that no action has reached, where
the fitted amplitude is that of the rings around. So once its action is known, an agent spends a round on one of three
other actions in turn, at most ``RATE * sqrt(t)`` times in t rounds, so that the share of these rounds goes to zero:

* one that is best under a network drawn from the posterior (Thompson sampling), which leaves local optima that the
  model can tell from better ones;
* one that drives a parent of the reward node to its least or greatest value, while a value a little beyond might give
  a better reward: a model that is too smooth, as of the tip of a cone, is surest where no data lie on the other side
  (Dropwave's inner ring lies beyond the least radius that such a model can think of);
* one whose predicted inputs of the reward node are farthest from all that were seen, while the reward is unknown
  there and may be higher: the inputs of one node are few even where actions have many coordinates.

Where nodes are noisy it takes long until an action is known, and an agent may have settled by then. There a fourth
look is the action that is best within wide bounds of all nodes' functions, and every second of the first rounds is
spent on it: two nodes that would have to change together are turned at once, and a variable that the agent always
sets is left to its mechanism for once, since target sets that were not played yet come first. (Without noise this
look finds nothing that the others do not, and costs more than it brings.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from cbo_gym.agents.networks.eta import WithEta
from cbo_gym.agents.surrogates.causal.gp_network import GPNetwork
from cbo_gym.agents.toolbox.search import maximise, screen
from cbo_gym.task import Action

RATE = 2.0  # chosen, with what counts as known, on seeds 0 to 4 of Dropwave, Ackley, ToyGraph and noisy Dropwave
SAMPLES = 16  # of the noise, for the expectation under a drawn network
SCREENING_SAMPLES = 4
EARLY = 20  # rounds of which every second is spent on the wide look, where nodes are noisy
WIDTH = 2.0  # of its bounds, in standard deviations
CLOSE = 1e-3  # actions whose coordinates differ by less are the same edge
NUDGE = 3e-4  # standard deviation of what a known action is moved by


class Exploration:
    """Decides on each action that an agent is about to play.

    Args:
        network: the agent's surrogates.
        seed: of the drawn networks and the nudges.
        device: torch device.

    Attributes:
        spent: rounds of exploration so far.
    """

    def __init__(self, network: GPNetwork, seed: int, device: str = "cpu") -> None:
        self.network = network
        self.device = device
        self.spent = 0
        self._generator = torch.Generator().manual_seed(seed)
        looks = [self._drawn_optimum, self._edge, self._widest_gap]
        self._looks = deque([self._wide_optimum, *looks] if network.noisy else looks)
        self._rounds = 0
        self._edges = deque((column, sign) for column in network.driven for sign in (1.0, -1.0))

    def instead_of(self, action: Action, played: list[Action], best: float, seed: int) -> Action:
        """``action``, unless it teaches nothing: then an exploring one if that is due, else one beside it.

        Where nothing is noisy no action is played twice.

        Args:
            action: that the agent would play.
            played: actions played, from the best to the worst.
            best: estimate of the first one's expected reward.
            seed: of the searches.
        """
        self._rounds += 1
        if self.network.noisy and self._rounds <= EARLY and self._rounds % 2 == 0:
            return self._wide_optimum(played, best, seed)
        features = self.network.features
        with torch.no_grad():
            if self.network.ignorance(features.inputs(features.encode(action).to(self.device))[None]) >= 1.0:
                return action
        if self.spent < RATE * len(played) ** 0.5:
            self.spent += 1
            for look in tuple(self._looks):
                self._looks.rotate(-1)
                if (found := look(played, best, seed)) is not None:
                    return found
        return action if self.network.noisy else self._beside(action)

    def _widest_gap(self, played: list[Action], best: float, seed: int) -> Action | None:
        """None if nothing that is unknown and may be better was found."""

        def width(inputs: Tensor) -> Tensor:
            return self.network.gap(inputs.squeeze(-2), best)

        features = self.network.features
        point = screen(width, features, played, seed=seed, device=self.device)[0]
        with torch.no_grad():
            return features.decode(point) if width(features.inputs(point)[None, None]) > 0.0 else None

    def _edge(self, played: list[Action], best: float, seed: int) -> Action | None:
        """None if no parent can be driven to where nothing was played, with something better plausible beyond."""
        features = self.network.features
        tried = torch.stack([features.encode(action) for action in played]).to(self.device)
        for column, sign in tuple(self._edges):
            self._edges.rotate(-1)
            point = self._extreme(column, sign, played, seed)
            with torch.no_grad():
                beyond = self.network.plausible_beyond(column, sign, features.inputs(point)[None])
            if beyond > best and (tried - point).abs().amax(-1).min() > CLOSE:
                return features.decode(point)
        return None

    def _extreme(self, column: int, sign: float, played: list[Action], seed: int) -> Tensor:
        """The search point that drives an input of the reward's GP farthest."""

        def reached(inputs: Tensor) -> Tensor:
            return self.network.driven_to(column, sign, inputs.squeeze(-2))

        return screen(reached, self.network.features, played, seed=seed, device=self.device)[0]

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
            device=self.device,
        )

    def _wide_optimum(self, played: list[Action], best: float, seed: int) -> Action:
        network, noise = self.network, self.network.draw_noise(SAMPLES, seed)
        few = {node: draws[:SCREENING_SAMPLES] for node, draws in noise.items()}
        search = WithEta(network.features, [node for node in network.nodes if node != network.task.reward])

        def bound(inputs: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
            eta, inputs = search.split(inputs.squeeze(-2))

            def plausible(node: str, points: Tensor, mean: Tensor, std: Tensor) -> Tensor:
                return mean + WIDTH * std * eta.get(node, 1.0)

            return network.rollout(inputs, plausible, noise)[network.task.reward].mean(-1)

        coarse = partial(bound, noise=few)
        return maximise(
            partial(bound, noise=noise),
            search,
            played,
            seed=seed,
            screening=coarse,
            scouting=coarse,
            device=self.device,
        )

    def _beside(self, action: Action) -> Action:
        """An action a little away, inside the box also where ``action`` is at its edge."""
        features = self.network.features
        point = features.encode(action)
        values = len(point) - features.membership(point).shape[-1]
        nudge = NUDGE * torch.randn(values, dtype=torch.float64, generator=self._generator)
        moved = 1.0 - (1.0 - (point[:values] + nudge).abs()).abs()
        return features.decode(torch.cat([moved, point[values:]]))
