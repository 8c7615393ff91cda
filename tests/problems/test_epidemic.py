"""Epidemic against its formula, written out again with loops over groups, and its optimum by another search."""

import numpy as np
import pytest

from cbo_gym.envs.registry import find_entry
from cbo_gym.problems import build_problem
from tests.support.problems import nodes_follow

ENTRY = find_entry("CBO/Epidemic-v0")
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
