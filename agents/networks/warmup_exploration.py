"""Early looks: what a nearly greedy agent plays in some of the first rounds of a noisy network.

Where nodes are noisy it takes long until an action is known, and the agent settles before. So every second one of the
first rounds is another action, and for some time after one in five. In hard mode it is the action on the minimal target
sets not played yet of which the mechanisms have most to learn; else the one that is best within wide bounds of all
functions, for the most favourable eta of every node. Without noise :mod:`cbo_gym.agents.networks.exploration` does
better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.common.search import maximise
from cbo_gym.agents.networks.eta import WithEta, rewards_within
from cbo_gym.agents.surrogates.causal.gp_network import GPNetwork
from cbo_gym.agents.surrogates.causal.novelty import information
from cbo_gym.task import Action, HardTask, Round

EARLY = 20  # rounds, of which every second is spent so,
LATE, SELDOM = 60, 5  # and then, up to the former, one in so many, in hard mode only beside latent causes
WIDTH = 2.0  # of the wide bounds, in standard deviations; all chosen on seeds 100 to 109 of six noisy tasks
SAMPLES = 16  # of the noise, for expectations
SCREENING_SAMPLES = 4


class WarmupExploration:
    """Looks for the actions of the first rounds.

    Args:
        network: the agent's surrogates.
        initial: rounds that are initial data.
        device: torch device.
    """

    def __init__(self, network: GPNetwork, initial: int, device: str = "cpu") -> None:
        self.network = network
        self._initial = initial
        self._goes_on = not isinstance(network.task, HardTask) or network.confounded
        self.device = device

    def due(self, rounds: int) -> bool:
        """Whether the round after so many, initial data apart, is one of these looks."""
        if rounds < EARLY:
            return rounds % 2 == 1
        return self._goes_on and rounds < LATE and rounds % SELDOM == 0

    def instead_of(self, history: Sequence[Round], played: Sequence[Action], seed: int) -> Action | None:
        """The action of the next round after all in ``history``, where that is one of these looks."""
        past = [one.action for one in history[self._initial :]]
        return self.look(past, played, seed) if self.due(len(past)) else None

    def look(self, past: Sequence[Action], played: Sequence[Action], seed: int) -> Action:
        """The action of a round.

        Args:
            past: actions of the rounds so far, initial data apart.
            played: actions played, from the best to the worst; at least one.
            seed: of the search.
        """
        fresh = self._fresh(past)
        return self._most_telling(fresh, played, seed) if fresh else self.wide_optimum(played, 0.0, seed)

    def _fresh(self, past: Sequence[Action]) -> list[frozenset[str]]:
        """Hard mode: the minimal target sets that were not played yet."""
        task = self.network.task
        if not isinstance(task, HardTask):
            return []
        seen = {task.targets[int(action["target"])] for action in past}
        return [target for target in self.network.minimal if target not in seen]

    def _most_telling(self, targets: list[frozenset[str]], played: Sequence[Action], seed: int) -> Action:
        """On one of some target sets, where the nodes that are left to their mechanisms are known least."""
        network, task = self.network, self.network.task
        assert isinstance(task, HardTask)
        near = [action for action in played if task.targets[int(action["target"])] in targets]

        return maximise(
            lambda inputs: information(network, inputs.squeeze(-2)),
            features_of(task, targets),
            near or played[:1],
            seed=seed,
            device=self.device,
        )

    def wide_optimum(self, played: Sequence[Action], best: float, seed: int) -> Action:
        """The best action within wide bounds; a look of :class:`~cbo_gym.agents.networks.exploration.Exploration`."""
        network, noise = self.network, self.network.draw_noise(SAMPLES, seed)
        few = {node: draws[:SCREENING_SAMPLES] for node, draws in noise.items()}
        search = WithEta(network.features, [node for node in network.nodes if node != network.task.reward])

        def bound(noise: Mapping[str, Tensor]) -> Callable[[Tensor], Tensor]:
            return lambda inputs: rewards_within(network, WIDTH, *search.split(inputs.squeeze(-2)), noise)

        return maximise(
            bound(noise),
            search,
            played,
            seed=seed,
            screening=bound(few),
            scouting=bound(few),
            device=self.device,
        )
