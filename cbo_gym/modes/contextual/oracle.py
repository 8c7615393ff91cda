"""Expected rewards in a context, and the best policy over all scopes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from cbo_gym.modes.contextual.dynamics import ContextualDynamics
from cbo_gym.modes.oracles.plain import CHUNK, REPLICATES, Estimate, Optimum, Oracle, Scores
from cbo_gym.scm import Intervention
from cbo_gym.scm.system import Draws
from cbo_gym.task import Action, Observation

# For the value of the optimum: contexts per replicate, and noise draws per context and replicate.
CONTEXTS_PER_REPLICATE = 2**6
DRAWS_PER_CONTEXT = 2**6
# Antithetic pairs of noise draws in a search. The mean over a pair is exact if zero-mean noise enters linearly.
SEARCH_PAIRS = 8
# Differential evolution: size of the population, divided by the number of coordinates plus 1; maximum of generations.
POPULATION_PER_COORDINATE = 16
MAX_GENERATIONS = 300


class ContextualOracle(Oracle):
    """Oracle that estimates E[Y | x, c] by quasi-Monte Carlo, and finds its maximum by theory or by search.

    Inherited methods such as :meth:`expected_rewards` average over contexts.
    """

    dynamics: ContextualDynamics
    # Few points suffice, because little noise is left once the context is given.
    fewest_points: ClassVar[int] = 2**4

    def expected_given(self, actions: list[Action], contexts: np.ndarray, tolerance: float | None = None) -> Estimate:
        """Return E[Y | x, c] of each action in its context, shape ``(n,)``.

        Args:
            actions: n elements of the action space.
            contexts: shape ``(n, k)``.
            tolerance: standard error to reach; None for 0.2 % of the gap between the optimum and a random action.
        """
        if not actions:
            return Estimate(np.zeros(0), np.zeros(0))
        return self.mean_given(self.dynamics.decode_batch(self._stack(actions)), contexts, tolerance)

    def expected_in_round(self, intervention: Intervention, observation: Observation) -> Estimate:
        return self.mean_given(intervention, observation["context"])

    def score(self, actions: list[Action], recommended: list[Action], observations: list[Observation]) -> Scores:
        """Score each action against the best one in its context, so that chance in the contexts has no effect."""
        contexts = np.stack([observation["context"] for observation in observations])
        best = self.best_given(contexts).value
        expected = self.expected_given(actions, contexts[:-1])
        return Scores(expected, self.expected_given(recommended, contexts[1:]), best[:-1], best[1:])

    def mean_given(self, intervention: Intervention, contexts: np.ndarray, tolerance: float | None = None) -> Estimate:
        """Return E[Y | x, c] for interventions ``()`` or ``(n,)`` in contexts of shape ``(k,)`` or ``(n, k)``."""

        def estimate_with(points: int) -> Estimate:
            replicates = self._replicates_given(intervention, np.atleast_2d(contexts), points)
            error = replicates.std(axis=-1, ddof=1) / np.sqrt(REPLICATES)
            shape = np.shape(contexts)[:-1]
            return Estimate(replicates.mean(axis=-1).reshape(shape), error.reshape(shape))

        return self._refine(estimate_with, tolerance)

    def best_given(self, contexts: np.ndarray, tolerance: float | None = None) -> Estimate:
        """Return the maximum of E[Y | x, c] over the values of all scopes, for contexts of shape ``(n, k)``."""
        if not len(contexts):
            return Estimate(np.zeros(0), np.zeros(0))
        return self.mean_given(self.best_response(contexts), contexts, tolerance)

    def find_optimum(self) -> Optimum:
        """Return the best policy over all scopes, which gives the best response to every context.

        If its value is not known, it is estimated over quasi-random contexts, each with independent noise.
        """
        contexts = self.dynamics.contexts
        random = self._random_value()
        if contexts.value is not None and self._has_known_response:
            return Optimum(contexts.value, contexts.policy_description, 0.0, *random)
        rows = self.dynamics.natural_contexts(self._noise(CONTEXTS_PER_REPLICATE))
        # Use other noise than the search.
        estimator = ContextualOracle(self.dynamics, seed=self._seed + 1)
        replicates = estimator._replicates_given(self.best_response(rows), rows, DRAWS_PER_CONTEXT)
        # Pair the contexts of each replicate with its own noise alone, so that replicates are independent.
        values = np.einsum("rcr->rc", replicates.reshape(REPLICATES, CONTEXTS_PER_REPLICATE, REPLICATES)).mean(axis=1)
        error = values.std(ddof=1) / np.sqrt(REPLICATES)
        sets = [", ".join(sorted(chosen)) for chosen in self.dynamics.variable_sets() if chosen]
        searched_policy = f"the best values of {' or '.join(sets)} in each context, by search"
        policy = contexts.policy_description if self._has_known_response else searched_policy
        return Optimum(float(values.mean()), policy, float(error), *random)

    def _replicates_given(self, intervention: Intervention, contexts: np.ndarray, points: int) -> np.ndarray:
        """Return means of the reward over each replicate's noise given the contexts, shape ``(n, REPLICATES)``."""
        batch = intervention.broadcast((len(contexts),))
        uniforms = self.uniforms(points)
        size = max(1, CHUNK // uniforms.shape[1])
        means = []
        for start in range(0, len(contexts), size):
            rows = slice(start, start + size)
            rewards = self._rewards(batch.rows(rows).expand(), self._noise_given(contexts[rows], uniforms))
            rewards = np.broadcast_to(rewards, (len(rewards), uniforms.shape[1]))
            means.append(rewards.reshape(-1, REPLICATES, points).mean(axis=2))
        return np.concatenate(means)

    def _noise_given(self, contexts: np.ndarray, uniforms: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return noise given contexts ``(n, k)``: ``(n, 1)`` if they determine it, else ``(n, m)`` or ``(m,)``."""
        columns = dict(zip(self.dynamics.contexts.names, contexts.T[..., None], strict=True))
        numbers = {v.name: row for v, row in zip(self.scm.noisy, uniforms, strict=True)}
        noise_given = self.dynamics.contexts.noise_given
        assert noise_given is not None, "a problem that is played has mechanisms"
        determined = noise_given(columns, numbers)
        return tuple(
            determined[v.name] if v.name in determined else v.noise.from_uniform(numbers[v.name])
            for v in self.scm.noisy
        )

    @property
    def _has_known_response(self) -> bool:
        """Whether theory gives the best response, and the environment has its scope."""
        respond = self.dynamics.contexts.best_response
        if respond is None:
            return False
        context = dict.fromkeys(self.dynamics.contexts.names, np.zeros(1))
        return frozenset(respond(context)) in self.dynamics.variable_sets()

    def best_response(self, contexts: np.ndarray) -> Intervention:
        """Return a batch of ``n`` interventions, each the best in its context."""
        respond = self.dynamics.contexts.best_response
        if respond is None or not self._has_known_response:
            return self._search_responses(contexts)
        chosen = respond(dict(zip(self.dynamics.contexts.names, contexts.T, strict=True)))
        domains = self.problem.manipulable
        return Intervention.do({name: np.clip(value, *domains[name]) for name, value in chosen.items()})

    def _search_responses(self, contexts: np.ndarray) -> Intervention:
        """Return the best intervention in each context, found by a search over the values of every scope."""
        uniforms = self.uniforms(1)[:, :SEARCH_PAIRS]
        noise = self._noise_given(contexts, np.concatenate([uniforms, 1.0 - uniforms], axis=1))
        actions, values = [], []
        for scope, chosen in enumerate(self.dynamics.variable_sets()):
            # Variables that are set do not depend on their noise, so one draw of it suffices.
            columns = zip(self.scm.noisy, noise, strict=True)
            sufficient_noise = tuple(column[..., :1] if v.name in chosen else column for v, column in columns)
            means = partial(self._means, scope, sufficient_noise)
            points = maximise_each(means, len(contexts), len(chosen), np.random.default_rng([self._seed, scope]))
            actions.append(self.dynamics.actions_at(scope, points))
            values.append(means(points[None])[0])
        best, rows = np.argmax(values, axis=0), np.arange(len(contexts))
        return self.dynamics.decode_batch(
            {key: np.stack([action[key] for action in actions])[best, rows] for key in actions[0]}
        )

    def _means(self, scope: int, noise: Draws, points: np.ndarray) -> np.ndarray:
        """Return means over a search's noise for values ``(p, n, dim)`` of a scope's variables, shape ``(p, n)``."""
        trials, count, dim = points.shape
        actions = self.dynamics.actions_at(scope, points.reshape(trials * count, dim))
        batch: Any = self.dynamics.decode_batch(actions).broadcast((trials * count,))
        hard = {
            name: (mask.reshape(trials, count, 1), values.reshape(trials, count, 1))
            for name, (mask, values) in batch.hard.items()
        }
        rewards: Any = self.problem.outcomes.reward(self.dynamics.play(noise, Intervention((), hard)))
        return np.broadcast_to(rewards.mean(axis=-1), (trials, count))


def maximise_each(
    function: Callable[[np.ndarray], np.ndarray], count: int, dim: int, rng: np.random.Generator
) -> np.ndarray:
    """Maximise ``count`` functions over the unit box at once by differential evolution, shape ``(count, dim)``.

    Half of the mutants start from the best member, half from a random one (Storn & Price 1997: best/1 and rand/1,
    binomial crossover). ``function`` maps points ``(p, count, dim)`` to values ``(p, count)``; ``dim`` may be 0.
    """
    if dim == 0:
        return np.zeros((count, 0))
    size = POPULATION_PER_COORDINATE * (dim + 1)
    population = rng.random((size, count, dim))
    values = function(population)
    columns = np.arange(count)
    for _ in range(MAX_GENERATIONS):
        base, first, second = (population[order] for order in rng.permuted(np.tile(np.arange(size), (3, 1)), axis=1))
        base[: size // 2] = population[values.argmax(axis=0), columns]
        mutants = base + rng.uniform(0.5, 1.0, (size, 1, 1)) * (first - second)
        inherited = rng.random(mutants.shape) > 0.8
        inherited[np.arange(size), :, rng.integers(dim, size=size)] = False
        trial = np.where(inherited, population, mutants)
        outside = (trial < 0.0) | (trial > 1.0)
        trial = np.where(outside, rng.random(trial.shape), trial)
        trial_values = function(trial)
        better = trial_values >= values
        population, values = np.where(better[..., None], trial, population), np.where(better, trial_values, values)
        if (np.ptp(values, axis=0) <= 1e-9 * np.abs(values).max(axis=0) + 1e-12).all():
            break
    return population[values.argmax(axis=0), columns]
