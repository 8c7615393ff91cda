"""ParentPosterior: a posterior over the unknown parents of the reward, and the effects that follow, for CBO-U."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.summation import add_up
from cbo_gym.actions import Domains
from cbo_gym.agents.intervention_sets.evidence import Explanation, explain, explain_linearly, linear_log_evidence
from cbo_gym.task import Action, HardTask, Observation

# Indices of the possible causes, ascending.
Parents = tuple[int, ...]
# Search in a round: number of the best sets whose neighbours a step evaluates, largest number of steps, and of sets
# that are kept for the next search.
STARTS, MAX_STEPS, MAX_SETS = 2, 12, 32
# Posterior probability below which a set is left out.
NEGLIGIBLE = 0.01
# Largest number of observations over which a nonlinear effect is averaged.
AVERAGED = 8
# With fewer rounds, the reward is taken to have no parents.
MIN_ROUNDS = 3


class ParentPosterior:
    """p(Pa(Y) | data), the posterior over sets of parents of the reward Y.

    The evidence of a set is that of a linear function of its variables, in closed form, or of a Gaussian process. All
    rounds are used, because the mechanism of the reward is the same under all interventions. The prior is uniform over
    sizes and over the sets of a size (Scott & Berger 2010). There are too many sets to enumerate, so a local search
    adds, removes and exchanges single variables of the likeliest sets until no neighbour is better.

    Args:
        task: hard task; its diagram is not used.
        nonlinear: whether to use Gaussian processes instead of linear functions.
        most_parents: the largest size of a set.
        device: torch device of the effects.

    References:
        Durand, Annadani, Bauer & Parbhoo (2025), Causal Bayesian optimization with unknown graphs, sec. 4: the
        posterior, and E[Y | do(x)] as a mixture over the sets.
    """

    def __init__(self, task: HardTask, nonlinear: bool, most_parents: int, device: str = "cpu") -> None:
        self._task = task
        self._nonlinear = nonlinear
        self._most_parents = most_parents
        self._names = [name for name in task.nodes if name != task.reward]
        self._rows: list[np.ndarray] = []
        self._rewards: list[float] = []
        # For each round, whether nothing was set.
        self._is_observation: list[bool] = []
        self._device = device
        # The best sets of the last search, the best first.
        self._best_sets: list[Parents] = [()]
        self._weights: dict[Parents, float] | None = None
        self._explained: dict[Parents, Explanation] = {}
        # Values of the possible causes in all rounds.
        self._causes = np.empty((0, len(self._names)))

    @property
    def observations(self) -> Tensor:
        rows = np.array(self._rows).reshape(-1, len(self._task.nodes))
        return torch.as_tensor(rows[np.array(self._is_observation, dtype=bool)], device=self._device)

    def add(self, action: Action, observation: Observation, reward: float) -> None:
        self._rows.append(np.array(observation["nodes"], dtype=np.float64))
        self._rewards.append(reward)
        self._is_observation.append(not self._task.targets[int(action["target"])])
        self._weights = None

    @property
    def weights(self) -> dict[frozenset[str], float]:
        """Set of parents -> its probability, without negligible sets."""
        posterior = self._posterior().items()
        return {frozenset(self._names[index] for index in parents): weight for parents, weight in posterior}

    def parents(self) -> frozenset[str]:
        """Return the variables in any set that is not negligible."""
        return frozenset().union(*self.weights)

    def effect(self, target: frozenset[str], values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the standard deviation of E[Y | do(x)] in the mixture over the sets of parents.

        The estimate given a set of parents is their function, averaged over the observed values of the parents that are
        not set, as if no parent affected another.
        """
        domains = Domains({name: span for name, span in self._task.manipulable.items() if name in target})
        points = domains.points_to_native(values.cpu().numpy())
        columns = [self._names.index(name) for name in domains.names]
        first_moment, second_moment = np.zeros(len(points)), np.zeros(len(points))
        for parents, weight in self._posterior().items():
            mean, variance = self._conditional_effect(parents, columns, points)
            first_moment += weight * mean
            second_moment += weight * (variance + np.square(mean))
        std = np.sqrt(np.maximum(second_moment - np.square(first_moment), 0.0))
        return torch.as_tensor(first_moment).to(values), torch.as_tensor(std).to(values)

    def _conditional_effect(
        self, parents: Parents, columns: list[int], points: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and variances of E[Y | do(x)] at n points, ``(n,)`` each, given the parents."""
        rewards = np.array(self._rewards)
        if len(rewards) < MIN_ROUNDS:
            return np.full(len(points), rewards.mean() if len(rewards) else 0.0), np.zeros(len(points))
        observed = self._causes[self._is_observation] if any(self._is_observation) else self._causes
        # The mean of a linear function is its value at the mean.
        rows = observed[:AVERAGED] if self._nonlinear else observed.mean(axis=0, keepdims=True)
        inputs = np.broadcast_to(rows, (len(points), *rows.shape)).copy()
        inputs[:, :, columns] = points[:, None]
        inputs = inputs[..., list(parents)]
        explanation = self._explanation(parents)
        _, variance, _ = explanation.predict(inputs.mean(axis=1))
        return explanation.mean(inputs).mean(axis=1), variance

    def _explanation(self, parents: Parents) -> Explanation:
        if parents not in self._explained:
            method = explain if self._nonlinear else explain_linearly
            self._explained[parents] = method(self._causes[:, list(parents)], np.array(self._rewards))
        return self._explained[parents]

    def _posterior(self) -> dict[Parents, float]:
        if self._weights is None:
            self._explained = {}
            columns = [column for column, name in enumerate(self._task.nodes) if name != self._task.reward]
            self._causes = np.array(self._rows).reshape(-1, len(self._task.nodes))[:, columns]
            self._weights = self._search() if len(self._rewards) >= MIN_ROUNDS else {(): 1.0}
        return self._weights

    def _search(self) -> dict[Parents, float]:
        evaluate = self._gp_evidence if self._nonlinear else self._linear_evidence
        scores = evaluate(self._best_sets)
        tried: set[Parents] = set()
        for _ in range(MAX_STEPS):
            best_first = sorted(scores, key=scores.__getitem__, reverse=True)
            starts = [parents for parents in best_first[:STARTS] if parents not in tried]
            if not starts:
                break
            tried.update(starts)
            neighbours = {parents for start in starts for parents in self._neighbours(start)}
            scores |= evaluate([parents for parents in neighbours if parents not in scores])
        self._best_sets = sorted(scores, key=scores.__getitem__, reverse=True)[:MAX_SETS]
        highest = scores[self._best_sets[0]]
        weights = {parents: float(np.exp(scores[parents] - highest)) for parents in self._best_sets}
        min_weight = NEGLIGIBLE * add_up(weights.values())
        likely = {parents: weight for parents, weight in weights.items() if weight >= min_weight}
        total = add_up(likely.values())
        return {parents: weight / total for parents, weight in likely.items()}

    def _neighbours(self, parents: Parents) -> Iterable[Parents]:
        others = [index for index in range(len(self._names)) if index not in parents]
        smaller = [tuple(index for index in parents if index != removed) for removed in parents]
        yield from smaller
        may_grow = len(parents) < self._most_parents
        for start in [*smaller, parents] if may_grow else smaller:
            for added in others:
                yield tuple(sorted((*start, added)))

    def _prior(self, size: int) -> float:
        """Return the log prior of one set of this size."""
        count = len(self._names)
        log_ways = add_up(np.log((count - i) / (i + 1)) for i in range(size))
        return -float(log_ways) - float(np.log(min(self._most_parents, count) + 1))

    def _gp_evidence(self, sets: Collection[Parents]) -> dict[Parents, float]:
        scores: dict[Parents, float] = {}
        effect = np.array(self._rewards)
        for parents in sets:
            self._explained[parents] = explanation = explain(self._causes[:, list(parents)], effect)
            scores[parents] = explanation.log_evidence + self._prior(len(parents))
        return scores

    def _linear_evidence(self, sets: Collection[Parents]) -> dict[Parents, float]:
        inputs = (self._causes - self._causes.mean(axis=0)) / np.maximum(self._causes.std(axis=0), 1e-12)
        effect = np.array(self._rewards)
        effect -= effect.mean()
        moments = inputs.T @ inputs, inputs.T @ effect, float(effect @ effect), len(effect)
        scores: dict[Parents, float] = {}
        for size in {len(parents) for parents in sets}:
            same_size = [parents for parents in sets if len(parents) == size]
            values = linear_log_evidence(*moments, same_size) + self._prior(size)
            scores |= dict(zip(same_size, values.tolist(), strict=True))
        return scores
