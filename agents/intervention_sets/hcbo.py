"""HCBO: high-dimensional causal Bayesian optimisation (Wu et al. 2024, ECAI), after the authors' public program.

The method first sets each variable alone. The weight of a variable follows from the best of these rewards. The
*coverage* of a target set is the weight that reaches the reward, if set variables have their own weight and every other
variable has the mean weight of its parents. Of the target sets of each size, the one with the greatest coverage is
kept. Then each round plays the set with the greatest mean reward plus alpha times its upper confidence bound, at the
point of that bound.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.arguments import whole_number
from cbo_gym._util.summation import add_up
from cbo_gym.agents.intervention_sets.cbo import CBO
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.task import Action, Observation

# Square of the factor of the standard deviation in the upper confidence bound.
BETA = 0.1
# Number of rounds between two choices of alpha.
ALPHA_EVERY = 50
# Weight of the worst variable, in units of the range of all weights.
MIN_WEIGHT = 0.01
# Added to denominators and weights, so that they are positive.
TINY = 1e-7


class HCBO(CBO):
    """One target set for each size, chosen by coverage. Plays hard tasks.

    Args:
        weighing: number of rounds with each variable set alone before the sets are chosen, initial ones included; 1 to
            10,000.
        starts: number of rounds with each chosen set before the sets compete, initial ones included; 1 to 10,000.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    takes_limits = False
    takes_mixed_domains = False
    learns_from_interventions = True

    def __init__(self, weighing: int = 4, starts: int = 2, device: str = "cpu") -> None:
        super().__init__(in_common=False, device=device)
        self.weighing = whole_number("weighing", weighing, at_least=1, at_most=10_000)
        self.starts = whole_number("starts", starts, at_least=1, at_most=10_000)

    def setup(self, seed: int) -> None:
        # Raises HiddenGraphError here rather than after some rounds.
        self._diagram = self.task.diagram
        self._alpha: float | None = None
        # Number of rounds in which the sets have competed.
        self._competitions = 0
        self._has_chosen_sets = False
        super().setup(seed)

    def make_effects(self) -> FlatEffects:
        return FlatEffects(len(self.task.nodes))

    def choose_targets(self) -> Collection[frozenset[str]]:
        return [target for target in self.task.targets if len(target) == 1]

    @property
    def epsilon(self) -> float:
        return 0.0

    def act(self, observation: Observation) -> Action:
        rewards: list[list[float]] = [[] for _ in self.task.targets]
        for past in self.history:
            rewards[int(past.action["target"])].append(past.reward)
        if not self._has_chosen_sets:
            if (index := self._target_to_try(rewards, self.weighing)) is not None:
                return self._greatest_bound(index)[1] if rewards[index] else self._at_random(index)
            self._has_chosen_sets = True
            self.explore(self._best_covering())
        if (index := self._target_to_try(rewards, self.starts)) is not None:
            return self._at_random(index)
        return self._compete(rewards)

    def _target_to_try(self, rewards: list[list[float]], enough: int) -> int | None:
        """Return the index of the explored target with the fewest plays; ``None`` if all have enough."""
        rarest = min(self._explored, key=lambda model: len(rewards[model.index]), default=None)
        return rarest.index if rarest is not None and len(rewards[rarest.index]) < enough else None

    def _at_random(self, index: int) -> Action:
        return self._models[index].action(self.rng.random(len(self.task.targets[index])))

    def _greatest_bound(self, index: int) -> tuple[float, Action]:
        """Return the greatest upper confidence bound of a target's expected reward, and the action that has it."""
        self._refresh()
        points, mean, std = self._models[index].candidates()
        bound = mean + math.sqrt(BETA) * std
        best = int(bound.argmax())
        return float(bound[best]), self._models[index].action(points[best].cpu().numpy())

    def _best_covering(self) -> list[frozenset[str]]:
        """Return, for each size, the target with the greatest coverage."""
        self._refresh()
        best = {next(iter(self.task.targets[model.index])): float(model.estimates().max()) for model in self._explored}
        weights = relative_weights(best)
        reward, targets = self.task.reward, self.task.targets
        covered = {target: coverage_of(self._diagram, reward, target, weights) for target in targets}
        sizes = sorted({len(target) for target in targets if target})
        by_size = [[target for target in covered if len(target) == size] for size in sizes]
        return [max(targets_of_size, key=covered.__getitem__) for targets_of_size in by_size]

    def _compete(self, rewards: list[list[float]]) -> Action:
        """Return the action of the set with the greatest mean reward plus alpha times its standardised bound."""
        means, bounds, actions = [], [], []
        for model in self._explored:
            rewards_of_set = np.array(rewards[model.index])
            bound, action = self._greatest_bound(model.index)
            means.append(float(rewards_of_set.mean()))
            bounds.append((bound - means[-1]) / (float(rewards_of_set.std()) + TINY))
            actions.append(action)
        positive_bounds = np.array(bounds) - min(0.0, *bounds) + TINY
        if self._alpha is None or self._competitions % ALPHA_EVERY == 0:
            self._alpha = float(np.mean((max(means) - min(means)) / positive_bounds))
        self._competitions += 1
        return actions[int(np.argmax(np.array(means) + self._alpha * positive_bounds))]


class FlatEffects:
    """Effect model that predicts the mean of all rewards for every intervention."""

    def __init__(self, width: int) -> None:
        self.observations = torch.empty((0, width), dtype=torch.float64)
        self._rewards: list[float] = []

    def add(self, action: Action, observation: Observation, reward: float) -> None:
        self._rewards.append(reward)

    def effect(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean of the rewards, with standard deviation 0, for each of the values."""
        mean = float(np.mean(self._rewards)) if self._rewards else 0.0
        return torch.full_like(values[:, 0], mean), torch.zeros_like(values[:, 0])


def relative_weights(best: Mapping[str, float]) -> dict[str, float]:
    """Return the weight of each variable, given the best reward of setting it alone; the weights sum to 1."""
    if not best:
        return {}
    low, high = min(best.values()), max(best.values())
    above_worst = {name: value - low + MIN_WEIGHT * (high - low) + TINY for name, value in best.items()}
    total = add_up(above_worst.values())
    return {name: value / total for name, value in above_worst.items()}


def coverage_of(diagram: CausalDiagram, reward: str, target: frozenset[str], weights: Mapping[str, float]) -> float:
    """Return the weight that reaches the reward: set variables have theirs, roots 0, others their parents' mean."""
    scores: dict[str, float] = {}
    for name in diagram.topological_order:
        parents = diagram.parents(name)
        passed_on = add_up(scores[parent] for parent in parents) / max(1, len(parents))
        scores[name] = weights.get(name, 0.0) if name in target else passed_on
    return scores[reward]
