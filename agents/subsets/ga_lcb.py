"""GA-LCB (Yan & Tajer 2024): learns a linear system's graph by single interventions, then eliminates subsets.

First every node's intervention is played by itself, and none, in turns, ``rounds`` times each. Node j is below node i
if its mean moves by more than half of ``strength`` under the intervention on i. Among those above a node, and those
that move nothing, the Lasso finds its causes. Then subsets are played that are not known well enough, and those
eliminated whose upper bound is below the best one.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym.agent import Agent
from cbo_gym.agents.subsets.base import LinearSEMAgent, listed_space
from cbo_gym.arguments import require_positive, whole_number
from cbo_gym.task import Action, Info, Observation

MOST_SUBSETS = 2**14


class GALCB(LinearSEMAgent):
    """Phased elimination of subsets on a graph that it learns. Plays subset mode, up to 14 parameters.

    Args:
        rounds: how often no intervention, and that on each single node, is played in the first part, at least 1.
        strength: by how much an intervention on a node moves the means of those below it, at least; above 0.
        penalty: of the Lasso, in the units of the node's values, above 0.
        scale: factor of the widths, above 0; the program has 0.1, the theory more than 10.

    Attributes:
        causes: of every node, its causes as they were found; empty before.
        active: the subsets that are left, shape ``(n, q)``.

    Raises:
        ArgumentError: if an argument is out of range; from ``reset``, if there are more subsets than 16,384.
        UnsupportedModeError: from ``reset``, if a node has several parameters.
    """

    causes: dict[str, list[str]]
    active: np.ndarray

    def __init__(self, rounds: int = 500, strength: float = 0.5, penalty: float = 0.1, scale: float = 0.1) -> None:
        self.rounds = whole_number("rounds", rounds, at_least=1)
        self.strength = require_positive("strength", strength)
        self.penalty = require_positive("penalty", penalty)
        self.scale = require_positive("scale", scale)

    def setup(self, seed: int) -> None:
        space = listed_space(self.task, MOST_SUBSETS, "GA-LCB goes through all subsets")
        self.fit_to({name: [] for name in self.task.nodes})
        self.causes, self.active = {}, space.all()
        self._turns = np.concatenate([np.zeros((1, space.arms)), np.eye(space.arms)]).astype(np.int8)
        self._phase = 1

    def act(self, observation: Observation) -> Action:
        played = len(self.history)
        if not self.causes and played < self.rounds * len(self._turns):
            return self._turns[played % len(self._turns)]
        if not self.causes:
            self._learn_graph()
        while len(self.active) > 1:
            upper, widths = self._bounds()
            wide = widths >= self._bound[-1] * 2.0**-self._phase
            if wide.any():
                known = widths.max() < self._bound[-1] / math.sqrt(self.task.horizon)
                return self.active[int(upper.argmax()) if known else self.rng.choice(np.flatnonzero(wide))]
            self.active = self.active[upper >= upper.max() - self._bound[-1] * 2.0 ** (1 - self._phase)]
            self._phase += 1
        return self.active[0]

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        if self.causes and len(self.active) == 1:  # nothing more is to be learned
            Agent.update(self, action, observation, reward, info)
        else:
            super().update(action, observation, reward, info)

    def recommend(self) -> Action:
        return super().recommend() if self.causes else Agent.recommend(self)

    def _learn_graph(self) -> None:
        actions = np.array([past.action for past in self.history])
        nodes = np.array([past.observation["nodes"] for past in self.history])
        means = [nodes[(actions == turn).all(axis=1)].mean(axis=0) for turn in self._turns]
        below = np.zeros((len(self.task.nodes),) * 2, dtype=bool)
        for name, (coordinate,) in self.task.action_nodes.items():
            place = self.task.nodes.index(name)
            below[place] = np.abs(means[1 + coordinate] - means[0]) > 0.5 * self.strength
            below[place, place] = False
        below[-1] = False
        counts = below.sum(axis=1)
        counts[counts == 0] = len(below)  # what moves nothing may be a cause of all
        counts[-1] = 0
        places = np.argsort(-counts, kind="stable").tolist()
        for at, place in enumerate(places):
            above = [] if counts[place] == len(below) else [
                one for one in places[:at] if counts[one] == len(below) or below[one, place]
            ]  # fmt: skip
            kept = self._causes_among(nodes[:, above], nodes[:, place], self.model.places(actions)[:, place] == 0)
            self.causes[self.task.nodes[place]] = [
                self.task.nodes[one] for one, k in zip(above, kept, strict=True) if k
            ]
        self.fit_to(self.causes)
        self._bound = np.ones(len(places))
        for at, own in enumerate(self.model.network.causes):
            self._bound[at] += self._bound[[column - 1 for column in own[1:]]].sum()

    def _causes_among(self, candidates: np.ndarray, values: np.ndarray, usual: np.ndarray) -> np.ndarray:
        """Which candidates, ``(rounds, k)``, the Lasso keeps for a node with these values in its ``usual`` rounds."""
        if not candidates.shape[1]:
            return np.zeros(0, dtype=bool)
        from sklearn.linear_model import Lasso  # late: slow to import, and needed once per run

        own = candidates[usual]
        spread = np.maximum(own.std(axis=0), np.finfo(float).tiny)
        return Lasso(alpha=self.penalty).fit((own - own.mean(axis=0)) / spread, values[usual]).coef_ != 0.0

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        model, places = self.model, self.model.places(self.active)
        means = np.ones((len(places), len(model.names) + 1))
        means[:, 1:] = model.network.means(model.estimates, places)
        widths = np.zeros_like(means)
        for i, own in enumerate(model.network.causes):
            inverses = model.inverses[i, :, : len(own), : len(own)]
            norms = np.sqrt(((means[:, own] @ inverses) * means[:, own]).sum(axis=-1))  # option by option
            doubts = np.sqrt(np.linalg.eigvalsh(inverses)[:, -1]) * np.linalg.norm(
                self._bound[np.array(own[1:], int) - 1]
            )
            added = self.scale * (norms + doubts[:, None])
            widths[:, i + 1] = widths[:, own].sum(axis=1) + added[places[:, i], np.arange(len(places))]
        return means[:, -1] + widths[:, -1], widths[:, -1]
