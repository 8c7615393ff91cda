"""Warm-up exploration: exploring actions in some of the first rounds on noisy networks.

With noisy nodes many rounds are needed to learn the outcome of an action, and a nearly greedy agent repeats one action
too early. Therefore every second of the first rounds explores, and later every fifth for a while. In hard mode, an
exploring round plays the action that is most informative about the mechanisms, among the minimal target sets that were
not played yet. If there are none, or in soft mode, it plays the best action under wide confidence bounds of all nodes.
Without noise, :mod:`cbo_gym.agents.networks.exploration` does better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from torch import Tensor

from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.common.search import maximise
from cbo_gym.agents.networks.eta import WithEta
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.novelty import information
from cbo_gym.task import Action, HardTask, Round

# These constants were chosen on seeds 100 to 109 of six noisy tasks.
# Number of first rounds, of which every second explores.
FIRST_ROUNDS = 20
# Until this round, one round in each period explores; in hard mode only if there are latent causes.
LAST_ROUND, PERIOD = 60, 5
# Distance of the wide bounds from the mean, in standard deviations.
WIDTH = 2.0
# Numbers of noise samples for expectations, and for the first screening of actions.
SAMPLES, SCREENING_SAMPLES = 16, 4


class WarmupExploration:
    """Choice of the exploring actions of the first rounds.

    Args:
        network: the agent's surrogates.
        initial: number of rounds of initial data, with which the agent's history begins.
        device: torch device.
    """

    def __init__(self, network: GPNetwork, initial: int, device: str = "cpu") -> None:
        self.network = network
        self._initial = initial
        self._goes_on = not isinstance(network.task, HardTask) or network.confounded
        self.device = device

    def due(self, rounds: int) -> bool:
        """Return whether the next round explores, after this number of rounds besides the initial data."""
        if rounds < FIRST_ROUNDS:
            return rounds % 2 == 1
        return self._goes_on and rounds < LAST_ROUND and rounds % PERIOD == 0

    def replacement(self, history: Sequence[Round], played: Sequence[Action], seed: int) -> Action | None:
        """Return the exploring action of the next round, or None if the agent does not explore; see :meth:`explore`."""
        own_actions = [past.action for past in history[self._initial :]]
        return self.explore(own_actions, played, seed) if self.due(len(own_actions)) else None

    def explore(self, own_actions: Sequence[Action], played: Sequence[Action], seed: int) -> Action:
        """Return the action of an exploring round.

        Args:
            own_actions: actions of the rounds so far, without the initial data.
            played: actions played, from the best to the worst; at least one.
            seed: seed of the search.
        """
        network, task = self.network, self.network.task
        if isinstance(task, HardTask):
            played_targets = {task.targets[int(action["target"])] for action in own_actions}
            if new := [target for target in network.minimal if target not in played_targets]:
                # Initial data may have these targets.
                related = [action for action in played if task.targets[int(action["target"])] in new]
                return maximise(
                    lambda inputs: information(network, inputs.squeeze(-2)),
                    features_of(task, new),
                    related or played[:1],
                    seed=seed,
                    device=self.device,
                )
        return self.wide_optimum(played, 0.0, seed)

    def wide_optimum(self, played: Sequence[Action], best: float, seed: int) -> Action:
        """Return the best action under wide bounds, as :data:`~cbo_gym.agents.networks.exploration.Explorer`."""
        network, noise = self.network, self.network.draw_noise(SAMPLES, seed)
        fewer_draws = {node: draws[:SCREENING_SAMPLES] for node, draws in noise.items()}
        search = WithEta(network.features, [node for node in network.nodes if node != network.task.reward])

        def bound(noise: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
            eta, actions = search.split(inputs.squeeze(-2))
            return network.rewards_within(actions, WIDTH, eta, noise)

        coarse = partial(bound, fewer_draws)
        return maximise(
            partial(bound, noise), search, played, seed=seed, screening=coarse, scouting=coarse, device=self.device
        )
