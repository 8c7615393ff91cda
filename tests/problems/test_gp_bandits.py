"""GPBandits against a Gaussian process posterior written out again, and a brute-force maximum."""

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs import oracle_of
from cbo_gym.problems.systems.gp_bandits import (
    gp_bandit_1,
    gp_bandit_2,
    gp_bandit_3,
    published_gp_bandit_1,
    published_gp_bandit_2,
    published_gp_bandit_3,
)

FIRST = ([0.05, 0.2, 0.4, 0.65, 0.9], [0.85, 0.1, 0.87, 0.05, 0.98])
CENTRES = [0.05 + 0.1 * i for i in range(9)]
SECOND = ([*CENTRES, *[c + 0.2 / 3 for c in CENTRES], 0.95], [0.1] * 9 + [0.2] * 9 + [0.9])
THIRD = ([*SECOND[0], 0.94, 0.945], [*SECOND[1], 0.1, 0.2])
CASES = [  # the points, the lengthscale, the variance of the noise they are conditioned on with
    pytest.param(gp_bandit_1, *FIRST, 0.05, 0.005**2, id="GPBandit1"),
    pytest.param(gp_bandit_2, *SECOND, 0.05, 0.005**2, id="GPBandit2"),
    pytest.param(gp_bandit_3, *THIRD, 0.01, 0.005**2, id="GPBandit3"),
    pytest.param(published_gp_bandit_1, *FIRST, 0.1, 0.005, id="GPBandit1-Published"),
    pytest.param(published_gp_bandit_2, *SECOND, 0.05, 0.005, id="GPBandit2-Published"),
    pytest.param(published_gp_bandit_3, *THIRD, 0.01, 0.005, id="GPBandit3-Published"),
]
PARAMETERS = ("build", "points", "values", "lengthscale", "noise_variance")


def posterior_mean(x, points, values, lengthscale, noise_variance):
    def kernel(a, b):
        return 0.1 * np.exp(-((a[:, None] - b[None]) ** 2) / (2 * lengthscale**2))

    points, values = np.array(points), np.array(values)
    return kernel(x, points) @ np.linalg.inv(kernel(points, points) + noise_variance * np.eye(len(points))) @ values


@pytest.mark.parametrize(PARAMETERS, CASES)
def test_the_reward_is_the_posterior_mean(build, points, values, lengthscale, noise_variance) -> None:
    problem = build()
    (reward,) = problem.scm.variables
    grid = np.linspace(0.0, 1.0, 101)
    expected = posterior_mean(grid, points, values, lengthscale, noise_variance)
    np.testing.assert_allclose(reward.mechanism(grid, 0.0), expected, atol=1e-9)
    assert problem.kernel == (0.05 if "Published" in problem.name else lengthscale, 0.1)
    assert reward.noise.std == 0.1


@pytest.mark.parametrize(PARAMETERS, CASES)
def test_the_maximum_by_brute_force(build, points, values, lengthscale, noise_variance) -> None:
    problem = build()
    grid = np.linspace(0.0, 1.0, 200_001)
    heights = posterior_mean(grid, points, values, lengthscale, noise_variance)
    best = float(problem.scm.variables[0].mechanism(problem.optimal_action[0], 0.0))
    assert best >= heights.max() - 1e-12
    assert best == pytest.approx(heights.max(), abs=1e-6)
    assert problem.optimal_action[0] == pytest.approx(grid[heights.argmax()], abs=1e-5)
    for suffix in ("", "-S1"):
        assert oracle_of(gym.make(f"CBO/{problem.name}{suffix}-v0")).optimum.value == pytest.approx(best)


def test_the_optima_of_the_published_program() -> None:
    optima = [oracle_of(gym.make(f"CBO/GPBandit{i}-Published-v0")).optimum.value for i in (1, 2, 3)]
    assert optima == pytest.approx([0.933, 0.959, 0.983], abs=5e-4)
