"""Epidemic against its formula, written out again with loops over groups, and its optimum by another search."""

import numpy as np
import pytest
from scipy import optimize
from scipy.stats import qmc

from cbo_gym.envs.registry import find_entry
from cbo_gym.problems import Problem, build_problem
from cbo_gym.scm import Intervention
from tests.support.problems import nodes_follow

ENTRY = find_entry("CBO/Epidemic-v0")
CALIBRATION = find_entry("CBO/Epidemic-v1")
REFERENCE = [[[0.30, 0.05], [0.10, 0.70]], [[0.60, 0.05], [0.10, 0.80]], [[0.20, 0.05], [0.10, 0.20]]]


def simulate(beta: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Percentages of shape ``(3, 2)`` under rates ``beta[t, i, j]`` and noise ``(3, 2)``, in percent."""
    share, rows = np.array([0.01, 0.01]), []
    for t in range(3):
        percent = np.zeros(2)
        for i in range(2):
            infections = sum(beta[t, i, j] * share[j] for j in range(2))
            percent[i] = 100 * (share[i] * (1 - 0.5) + (1 - share[i]) * infections) + noise[t, i]
        rows.append(percent)
        share = np.clip(percent / 100, 0.0, 1.0)
    return np.array(rows)


def epidemic(**changed: object):
    return build_problem(ENTRY.problem, **{**ENTRY.kwargs, **changed})


@pytest.mark.parametrize("noise_std", [0.1, 30.0])
def test_every_node_equals_its_formula(noise_std: float) -> None:
    """With large noise too, so that shares leave [0, 1] on both sides."""
    target = simulate(np.array(REFERENCE), np.zeros((3, 2)))

    def by_hand(action: list[float], u: dict[str, float]) -> dict[str, float]:
        noise = np.array([[u[f"I{i}_{t}"] for i in (1, 2)] for t in (1, 2, 3)])
        percent = simulate(np.reshape(action, (3, 2, 2)), noise)
        nodes = {f"I{i}_{t}": percent[t - 1, i - 1] for i in (1, 2) for t in (1, 2, 3)}
        return {**nodes, "Y": -np.mean((percent - target) ** 2)}

    values = nodes_follow(epidemic(noise_std=noise_std), np.random.default_rng(1).random((100, 12)), by_hand, 1e-10)
    percent = np.array([column for name, column in values.items() if name != "Y"])
    assert ((percent < 0).any(axis=0) & (percent > 100).any(axis=0)).any() or noise_std < 1


def sobol_noise(problem: Problem, count: int) -> tuple[np.ndarray, ...]:
    numbers = qmc.Sobol(6, rng=np.random.default_rng(8)).random(count).T
    return problem.scm.noise_from_uniform(np.clip(numbers, 1e-12, 1 - 1e-12))


def test_the_recorded_optimum_survives_a_local_search_from_several_starts() -> None:
    """By a gradient search on noise of its own; the landscape is smooth."""
    problem = epidemic()
    noise = sobol_noise(problem, 2**11)

    def loss(action: np.ndarray) -> float:
        return -float(problem.scm.propagate(noise, Intervention.parameters(action))["Y"].mean())

    best = ENTRY.optimum
    starts = [np.array(best.action), np.random.default_rng(0).random(12)]
    found = [optimize.minimize(loss, start, bounds=[(0, 1)] * 12).fun for start in starts]
    here = loss(np.array(best.action))
    assert min(found) > here - 0.002 * (best.value - best.random_value)
    assert found[-1] == pytest.approx(min(found), abs=0.01)
    assert here < loss(np.ravel(REFERENCE)) - 0.05  # noise that propagates moves the optimum off the reference
    assert -here == pytest.approx(best.value, abs=0.01)


def identified(action: np.ndarray) -> np.ndarray:
    """What rewards tell of the rates: in the first period, with 1 % in both groups, only what each group suffers."""
    first, *later = np.reshape(action, (3, 4))
    return np.concatenate([first.reshape(2, 2).sum(axis=1), *later])


@pytest.fixture(scope="module")
def calibrations() -> tuple[np.ndarray, list[np.ndarray]]:
    """Losses at the true rates and at the minima found from two random starts; and these minima."""
    problem = build_problem(CALIBRATION.problem, **CALIBRATION.kwargs)
    noise = sobol_noise(problem, 2**13)

    def loss(action: np.ndarray) -> float:
        return -float(problem.scm.propagate(noise, Intervention.parameters(action))["Y"].mean())

    starts = np.random.default_rng(2).random((2, 12))
    options = {"maxfun": 5000, "ftol": 1e-13, "gtol": 1e-9}
    found = [optimize.minimize(loss, start, bounds=[(0, 1)] * 12, options=options) for start in starts]
    true = loss(np.ravel(CALIBRATION.kwargs["reference"]))
    return np.array([true, *(one.fun for one in found)]), [one.x for one in found]


@pytest.mark.slow
def test_version_1_is_a_calibration(calibrations: tuple[np.ndarray, list[np.ndarray]]) -> None:
    """The true rates lack less than the oracle resolves and than 10,000 rounds show, and what is best is near them."""
    (true, *losses), found = calibrations
    best = CALIBRATION.optimum
    assert min(losses) == pytest.approx(-best.value, abs=1e-5)
    lacking = true - min(losses)
    assert 0 <= lacking < 0.0005 * (best.value - best.random_value)
    problem = build_problem(CALIBRATION.problem, **CALIBRATION.kwargs)
    rates = Intervention.parameters(np.ravel(CALIBRATION.kwargs["reference"]))
    rewards = problem.scm.sample(10_000, np.random.default_rng(0), rates)["Y"]
    assert lacking < 2 * rewards.std() / 100
    rates = identified(np.ravel(CALIBRATION.kwargs["reference"]))
    for action in (best.action, *found):
        np.testing.assert_allclose(identified(action), rates, atol=0.035)
