"""Comparisons of a problem with another computation, shared by the tests of several systems."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from cbo_gym.modes.oracles import Estimate, Oracle
from cbo_gym.problems import Problem
from cbo_gym.scm import Intervention

ByHand = Callable[[list[float], dict[str, float]], Mapping[str, float]]


def nodes_follow(problem: Problem, actions: np.ndarray, by_hand: ByHand, rel: float = 1e-11) -> dict[str, np.ndarray]:
    """Compare the nodes of a round at each action, in [0, 1], with ``by_hand(action, exogenous values)``.

    Returns:
        the values of the rounds.
    """
    noise = problem.scm.draw_noise(np.random.default_rng(0), len(actions))
    values = problem.scm.propagate(noise, Intervention.parameters(problem.to_native(actions)))
    for i, action in enumerate(actions.tolist()):
        draw = {v.name: float(column[i]) for v, column in zip(problem.scm.noisy, noise, strict=True)}
        for name, expected in by_hand(action, draw).items():
            assert values[name][i] == pytest.approx(expected, rel=rel, abs=rel), (name, action)
    return values


def monte_carlo_agrees(env: Any, actions: list[np.ndarray]) -> Estimate:
    """Compare the oracle's expected rewards with means of 40,000 rounds each."""
    estimate = Oracle(env.dynamics).expected_rewards(actions, tolerance=1e-3)
    for i, action in enumerate(actions):
        rewards = env.scm.sample(40_000, np.random.default_rng(i), env.dynamics.decode(action))["Y"]
        error = np.hypot(rewards.std() / np.sqrt(rewards.size), estimate.standard_error[i])
        assert np.isfinite(estimate.value[i])
        assert abs(rewards.mean() - estimate.value[i]) < 4.5 * error
    return estimate
