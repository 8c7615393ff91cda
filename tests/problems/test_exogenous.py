"""Networks with multimodal noise against their formulas, written out again, and their optima by other means."""

import itertools
import math
from collections.abc import Callable

import gymnasium as gym
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from cbo_gym.envs.registry import find_entry
from cbo_gym.modes.oracles import Oracle
from cbo_gym.problems import build_problem
from cbo_gym.problems.base import mixture_noise
from tests.support.problems import monte_carlo_agrees, nodes_follow

Values = dict[str, float]


def problem_of(env_id: str, **changed: object):
    entry = find_entry(env_id)
    return build_problem(entry.problem, **{**entry.kwargs, **changed})


def wave(x: float) -> float:
    return math.sqrt(x) * math.sin(x)


def dropwave_by_hand(a: list[float], u: Values) -> Values:
    """``u`` holds the scaled noise, lambda U."""
    x0 = math.hypot(10.24 * a[0] - 5.12, 10.24 * a[1] - 5.12) + u["X0"]
    return {"X0": x0, "Y": (1 + math.cos(12 * x0)) / (2 + 0.5 * x0**2) + u["Y"]}


def dgm_by_hand(a: list[float], scaled: Values, scale: float) -> Values:
    """``scaled`` holds lambda^(1/4) U."""
    u = {name: value / scale**0.25 for name, value in scaled.items()}
    x = -wave(10 * a[0]) + (math.cos(10 * a[0]) + 1.2) * scale * u["X0"] ** 4
    values = {"X0": x}
    for i, name in enumerate(["X1", "X2", "X3", "X4", "Y"], start=1):
        x = wave(10 * a[i]) * x + 0.1 * (math.cos(10 * a[i]) + x**2 + 1.2) * scale * u[name] ** 4
        values[name] = x
    return values


def nondgm_by_hand(a: list[float], u: Values) -> Values:
    x = -wave(max(10 * a[0] + u["X0"], 0.0))
    values = {"X0": x}
    for i, name in enumerate(["X1", "X2", "X3", "X4", "Y"], start=1):
        x = wave(max(10 * a[i] + u[name], 0.0)) * x
        values[name] = x
    return values


CASES = [
    pytest.param("CBO/Dropwave-GMM-v0", {"noise_scale": 2.0}, dropwave_by_hand, id="Dropwave-GMM"),
    pytest.param("CBO/Dropwave-GMM3-v0", {}, dropwave_by_hand, id="Dropwave-GMM3"),
    pytest.param("CBO/Alpine2-DGM-v0", {}, lambda a, u: dgm_by_hand(a, u, 1.0), id="Alpine2-DGM"),
    pytest.param("CBO/Alpine2-DGM3-v0", {"noise_scale": 0.3}, lambda a, u: dgm_by_hand(a, u, 0.3), id="Alpine2-DGM3"),
    pytest.param("CBO/Alpine2-NonDGM-v0", {"noise_std": 0.2}, nondgm_by_hand, id="Alpine2-NonDGM"),
    pytest.param("CBO/Alpine2-NonDGM3-v0", {}, nondgm_by_hand, id="Alpine2-NonDGM3"),
]


@pytest.mark.parametrize(("env_id", "changed", "by_hand"), CASES)
def test_every_node_equals_its_formula(
    env_id: str, changed: dict[str, float], by_hand: Callable[[list[float], Values], Values]
) -> None:
    problem = problem_of(env_id, **changed)
    actions = np.random.default_rng(1).random((100, problem.scm.action_dim))
    actions[:20] *= 0.03  # near the edge, where a shift can leave the square root's domain
    assert [v.name for v in problem.scm.noisy] == list(problem.scm.nodes)
    assert not problem.noise_known
    nodes_follow(problem, actions, by_hand)


def test_mixtures_are_in_the_papers_notation() -> None:
    """Components are ``(weight, mean, c)``, with variance c sigma^2; draws are multiplied by lambda."""
    noise = mixture_noise([[1, -0.5, 0.05], [3, 0.5, 0.1]], noise_std=0.2, noise_scale=3.0)
    assert noise.weights == pytest.approx((0.25, 0.75))
    assert noise.means == pytest.approx((-1.5, 1.5))
    assert noise.stds == pytest.approx((0.6 * math.sqrt(0.05), 0.6 * math.sqrt(0.1)))


SETTINGS = [
    *[("CBO/Dropwave-GMM-v0", {"noise_scale": lam, "noise_std": s}) for lam in (1.0, 2.0, 3.0) for s in (0.1, 0.3)],
    *[(f"CBO/Alpine2-{k}-v0", {"noise_scale": lam, "noise_std": s})
      for k in ("DGM", "DGM3") for lam in (0.3, 1.0) for s in (0.05, 0.2, 0.4)],
    *[(f"CBO/Alpine2-{k}-v0", {"noise_std": s}) for k in ("NonDGM", "NonDGM3") for s in (0.05, 0.1, 0.2)],
]  # fmt: skip
#: the widest noise of each id; the others are slow tests
WIDEST = dict(SETTINGS)


@pytest.mark.parametrize(
    ("env_id", "changed"),
    [pytest.param(*one, marks=[] if WIDEST[one[0]] == one[1] else pytest.mark.slow) for one in SETTINGS],
    ids=str,
)
def test_the_expectation_is_finite_and_plain_monte_carlo_agrees(env_id: str, changed: dict[str, float]) -> None:
    """At the recorded maximiser, where the tails are heaviest, and at random actions; for all settings of the paper."""
    env = gym.make(env_id, **changed).unwrapped
    actions = [np.array(find_entry(env_id).optimum.action), *np.random.default_rng(0).random((3, env.scm.action_dim))]
    estimate = monte_carlo_agrees(env, actions)
    everywhere = env.dynamics.decode_batch(np.random.default_rng(1).random((20_000, env.scm.action_dim)))
    random = env.scm.sample(20_000, np.random.default_rng(9), everywhere)["Y"]
    assert estimate.value[0] > random.mean() + 20 * random.std() / np.sqrt(20_000)


def density(components: list[list[float]], sigma: float) -> Callable[[float], float]:
    total = sum(weight for weight, _, _ in components)
    return lambda u: sum(w / total * stats.norm.pdf(u, m, math.sqrt(c) * sigma) for w, m, c in components)


def test_nondgm_optimum_by_quadrature() -> None:
    """The factors are independent, so E[Y | a] is minus the product of their means; an odd number is negative."""
    entry = find_entry("CBO/Alpine2-NonDGM3-v0")
    u = np.linspace(-1.5, 1.5, 3001)
    p = density(entry.kwargs["noise"], entry.kwargs["noise_std"])(u)
    x = np.linspace(0.0, 10.0, 2001)
    inside = np.maximum(x[:, None] + u, 0.0)
    means = integrate.trapezoid(np.sqrt(inside) * np.sin(inside) * p, u, axis=1)
    peak, trough = means.max(), means.min()
    best = -max(trough * peak**5, trough**3 * peak**3, trough**5 * peak, key=abs)
    assert entry.optimum.value == pytest.approx(best, rel=1e-5)


def test_dropwave_optimum_is_a_ring_away_from_the_centre() -> None:
    entry = find_entry("CBO/Dropwave-GMM3-v0")
    sigma = entry.kwargs["noise_std"]
    u = np.linspace(-1.5, 1.5, 20_001)
    p = density(entry.kwargs["radius_noise"], sigma)(u)
    total = sum(w for w, _, _ in entry.kwargs["reward_noise"])
    offset = sum(w / total * m for w, m, _ in entry.kwargs["reward_noise"])

    def expected(radius: float) -> float:
        x = radius + u
        return float(integrate.trapezoid((1 + np.cos(12 * x)) / (2 + 0.5 * x**2) * p, u)) + offset

    radii = np.linspace(0.0, 5.12 * math.sqrt(2), 1000)
    coarse = radii[int(np.argmax([expected(r) for r in radii]))]
    found = optimize.minimize_scalar(lambda r: -expected(abs(r)), bounds=(coarse - 0.01, coarse + 0.01))
    assert entry.optimum.value == pytest.approx(-found.fun, abs=1e-5)
    assert math.hypot(*[10.24 * a - 5.12 for a in entry.optimum.action]) == pytest.approx(found.x, abs=0.01)
    assert found.x > 0.1
    assert expected(0.0) < -found.fun - 0.01


def test_dgm_optimum_beats_every_combination_of_peaks_and_troughs() -> None:
    env = gym.make("CBO/Alpine2-DGM-v0").unwrapped
    recorded = find_entry("CBO/Alpine2-DGM-v0").optimum
    corners = [np.array(c) for c in itertools.product([0.4815842, 0.7917053], repeat=6)]
    corners += [np.array([1.0, *rest]) for rest in itertools.product([0.4815842, 0.7917053], repeat=5)]
    values = Oracle(env.dynamics, seed=5).expected_rewards(corners, tolerance=0.5).value
    assert values.max() == pytest.approx(recorded.value, rel=1e-2)
    assert values.max() <= recorded.value
    assert np.abs(corners[int(values.argmax())] - recorded.action).max() < 0.01
