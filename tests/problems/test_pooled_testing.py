"""PooledTesting against its formulas, written out again with plain conditionals, and its optimum on a grid."""

import math

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs.registry import find_entry
from cbo_gym.modes.oracles import Oracle
from cbo_gym.problems import build_problem
from cbo_gym.scm import Intervention
from tests.support.problems import monte_carlo_agrees, nodes_follow

ENTRY = find_entry("CBO/PooledTesting-v0")


def problem_with(**changed: object):
    return build_problem(ENTRY.problem, **{**ENTRY.kwargs, **changed})


def week_by_hand(infectious: float, recovered: float, n: float) -> tuple[float, float]:
    """Loss and new infections of a week, both as shares of the population."""
    i = min(max(infectious, 0.0), 1.0)
    r = min(max(recovered, 0.0), 1.0)
    s = max(1.0 - i - r, 0.0)
    se = 0.95 * math.exp(-(n - 1) / 150)
    q = 0.05 + (se - 0.05) * (1 - (1 - i) ** (n - 1))
    ci, ch = 1 - (1 - se) ** 2, 1 - (1 - q) ** 2
    fi, fs, fr = i * (1 - ci), s * (1 - ch), r * (1 - ch)
    growth = math.exp(3.23 * fs / (fs + fi + fr))
    new = min(fi * (growth - 1), s)
    return 0.05 * 2 / n + 0.05 * (i * ci + s * ch + r * ch) + new, new


def simulate(sizes: list[float], u: dict[str, float]) -> dict[str, float]:
    """All nodes, in percent."""
    values = {"I1": 1.0 + u.get("I1", 0.0), "R1": u.get("R1", 0.0)}
    for t, n in enumerate(sizes, start=1):
        i, r = values[f"I{t}"], values[f"R{t}"]
        loss, new = week_by_hand(i / 100, r / 100, n)
        values[f"L{t}"] = 100 * loss + u.get(f"L{t}", 0.0)
        if t < 3:
            values[f"I{t + 1}"] = 100 * new + u.get(f"I{t + 1}", 0.0)
            kept = min(max(r, 0.0), 100.0) + min(max(i, 0.0), 100.0)
            values[f"R{t + 1}"] = kept + u.get(f"R{t + 1}", 0.0)
    values["Y"] = -(values["L1"] + values["L2"] + values["L3"])
    return values


@pytest.mark.parametrize("noise_std", [0.2, 100.0])
def test_every_node_equals_its_formula(noise_std: float) -> None:
    """With absurd noise too, so that shares leave [0, 1] on both sides."""
    problem = problem_with(noise_std=noise_std)
    actions = np.random.default_rng(1).random((100, 3)) ** 3
    values = nodes_follow(problem, actions, lambda action, u: simulate([1 + 199 * a for a in action], u), rel=1e-9)
    outside = np.concatenate([values["I2"], values["R2"]])
    assert (outside.min() < 0 and outside.max() > 100) or noise_std < 1
    for action, *noise in zip(actions, *problem.scm.draw_noise(np.random.default_rng(0), 100), strict=True):
        single = problem.scm.propagate(tuple(map(float, noise)), Intervention.parameters(problem.to_native(action)))
        assert isinstance(single["Y"], float)  # never complex, whatever the noise


def test_the_optimum_is_inside_and_plain_monte_carlo_agrees_with_the_oracle() -> None:
    env = gym.make(ENTRY.id).unwrapped
    best = np.array(ENTRY.optimum.action)
    assert ((best > 0.01) & (best < 0.5)).all()
    lower, upper = np.maximum(best - 0.02, 0.0), best + 0.1
    actions = [best, *np.random.default_rng(0).random((3, 3)), *np.where(np.eye(3), lower, best)]
    actions += list(np.where(np.eye(3), upper, best))
    estimate = Oracle(env.dynamics).expected_rewards(actions, tolerance=1e-3)
    assert (estimate.value[0] > estimate.value[1:] + 5 * estimate.standard_error[1:]).all()
    monte_carlo_agrees(env, actions[:4])
