"""The four problems of cCBO: their equations, and what their constraints leave."""

import gymnasium as gym
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from cbo_gym import make_task
from cbo_gym.envs import oracle_of
from cbo_gym.scm.scopes import minimal_intervention_sets

IDS = ["CBO/CCBOSynthetic1-v0", "CBO/CCBOSynthetic2-v0", "CBO/CCBOHealth-v0", "CBO/CCBOProtein-v0"]


def normal(z):
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def test_synthetic_1_by_quadrature():
    """The limit of Z keeps X at 0 and above, where Z is Normal(exp(-X), 1); the reward falls with X from there."""

    def expected(middle):
        return quad(lambda z: (np.exp(-z / 20) - np.cos(z)) * normal(z - middle), middle - 9, middle + 9)[0]

    best = oracle_of(gym.make(IDS[0])).optimum
    values = [expected(np.exp(-x)) for x in np.linspace(0.0, 1.0, 50)]  # X itself may be 1 at most
    assert max(values) == values[0] == pytest.approx(best.value, abs=1e-4)
    assert max(np.exp(-z / 20) - np.cos(z) for z in np.linspace(-1, 1, 201)) < best.value


def test_synthetic_2_has_its_limit_at_the_logarithm_of_fifty():
    env = gym.make(IDS[1])
    best = oracle_of(env).optimum
    low, high = env.unwrapped.problem.manipulable["A"]
    assert low + best.action["values"][0] * (high - low) == pytest.approx(-np.log(50), abs=1e-4)


def test_health_is_best_where_the_bmi_is_at_its_limit():
    env = gym.make(IDS[2])
    dynamics, best = env.unwrapped.dynamics, oracle_of(env).optimum
    calories = -400 + 800 * best.action["values"][0]
    noise = dynamics.scm.draw_noise(np.random.default_rng(0), 2**20)
    naturally = dict(zip([v.name for v in dynamics.scm.noisy], noise, strict=True))
    rest = (naturally["BMR"] + 6.8 * naturally["Age"] - 5 * naturally["Height"]) / 13.7
    metres = naturally["Height"] / 100
    by_hand = brentq(lambda c: np.mean((rest + c * 150 / 7716) / metres**2) - 25, -400, 400)
    assert calories == pytest.approx(by_hand, abs=0.5)


def test_protein_by_hand():
    """PKA at its threshold and Mek at its highest; PKC has no effect beside them, and is high enough by itself."""
    best = oracle_of(gym.make(IDS[3])).optimum
    assert best.value == pytest.approx(23.248743 - 0.0817067325 * 500 + 0.0298858143 * 389.5, abs=5e-3)


def test_the_sets_of_protein_move_the_reward_or_a_constrained_node():
    task = make_task(gym.make(IDS[3]), seed=0)
    limited = [one.node for one in task.constraints]
    assert limited == ["PKA", "PKC"]
    found = minimal_intervention_sets(task.diagram, task.reward, task.manipulable, constrained=limited)
    assert set(task.targets) == found
    assert frozenset({"PKC", "PKA", "Mek"}) in found  # PKC only for its own sake
    without = minimal_intervention_sets(task.diagram, task.reward, task.manipulable)
    assert frozenset({"PKC", "PKA", "Mek"}) not in without < found
    assert not any("Akt" in target for target in found)
