"""The mixed benchmarks: their optima, and the modes and instances that they refuse."""

from itertools import product

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs.oracle import oracle_of
from cbo_gym.envs.registry import load_registry
from cbo_gym.errors import ArgumentError

MIXED = ["CBO/Alpine2-Mixed-v0", "CBO/PSAGraph-Mixed-v0", "CBO/Fermenter-v0"]


@pytest.mark.parametrize("env_id", MIXED)
def test_no_combination_of_levels_is_better_than_the_recorded_optimum(env_id: str) -> None:
    """Enumerate all levels, and draw the continuous coordinates of each at random and next to the optimum."""
    env = gym.make(env_id).unwrapped
    oracle, codec = oracle_of(env), env.dynamics.codec
    best = oracle.optimum
    domains, rng = codec.domains, np.random.default_rng(0)
    optimal = best.action["values"] if isinstance(best.action, dict) else best.action
    few = [np.arange(n) / (n - 1) if n and n <= 12 else None for n in domains.levels]
    near = np.abs(domains.round(optimal + np.array([[0.0], [0.05], [-0.05]])).clip(0.0, 1.0))
    columns = [near[:, i] if levels is None else levels for i, levels in enumerate(few)]
    points = domains.round(np.array(list(product(*columns))))
    points = np.concatenate([points, env.dynamics.domains.from_uniform(rng.random((5_000, len(domains))))])
    # The largest of the target sets can do what the others do, but for luck.
    batch = (
        {codec.key: np.full(len(points), len(codec.sets) - 1), "values": points}
        if isinstance(best.action, dict)
        else points
    )
    reached = oracle.mean_of(env.dynamics.decode_batch(batch), tolerance=np.inf).value
    assert reached.max() <= best.value + 1e-3 * (best.value - best.random_value)
    assert oracle.expected_rewards([best.action]).value[0] == pytest.approx(best.value, abs=1e-3)


@pytest.mark.parametrize("env_id", MIXED)
def test_actions_off_the_levels_are_refused(env_id: str) -> None:
    env = gym.make(env_id).unwrapped
    env.reset(seed=100)
    action = env.action_space.sample()
    env.step(action)
    shifted = np.abs((action["values"] if isinstance(action, dict) else action) - 0.013)
    off = {"target": len(env.dynamics.codec.sets) - 1, "values": shifted} if isinstance(action, dict) else shifted
    assert not env.action_space.contains(off)
    with pytest.raises(gym.error.InvalidAction, match=r"must be one of 0/\d+, "):
        env.step(off)


def test_other_units_and_modes_without_kinds_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"Fermenter has Range\(0.1, 10, scale='log'\).*no instances"):
        gym.make("CBO/Fermenter-v0", instance=1)
    for mode in ("aggregated", "masked"):
        with pytest.raises(ArgumentError, match=r"takes only numbers between bounds|so no masked mode"):
            gym.make("CBO/Alpine2-Mixed-v0", mode=mode)


def test_every_mixed_benchmark_has_the_tag() -> None:
    assert [entry.id for entry in load_registry() if "mixed" in entry.tags] == MIXED
