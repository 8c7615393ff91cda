"""The native vector environments against Gymnasium's SyncVectorEnv and against single environments."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cbo_gym  # noqa: F401  (registers the environments)
from cbo_gym.envs.registry import entries
from cbo_gym.envs.wrappers import OracleInfo, VectorOracleInfo
from cbo_gym.errors import ArgumentError
from tests.support.environments import KINDS
from tests.support.loop import reset

ONE_OF_EACH_MODE = ["CBO/Alpine2-Noisy-v0", "CBO/CompleteGraph-v0", "CBO/CoCaFig1-v0", "CBO/SSEMPeriodic-v0"]
#: The environments that come within rounding of the single one, and by how many units in the last place (of 1, for
#: smaller numbers). Of arrays NumPy takes powers itself, of single floats the C library does, now and then one unit
#: apart. A cyclic system is iterated until all rounds of a batch have settled to 1e-12.
ULPS = {
    **dict.fromkeys((entry.id for entry in entries() if entry.id.startswith("CBO/Alpine2")), 20),
    **dict.fromkeys(("CBO/Alpine2-Hard-v0", "CBO/Alpine2-Noisy-Hard-v0", "CBO/Alpine2-Aggregated-v0"), 0),
    "CBO/CCBOHealth-v0": 20,
    "CBO/Chemostat-v0": 50,
    "CBO/Chemostat-v1": 50,
    "CBO/Fermenter-v0": 20,
    "CBO/PooledTesting-v0": 2000,
    "CBO/PSAGraph-Mixed-v0": 20,
    "CBO/TrainDelay-v0": 5000,
}


def native(env_id: str, num_envs: int = 3, **kwargs: Any) -> Any:
    return gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point", **kwargs)


def row_of(batch: Any, index: int) -> Any:
    """The action of one sub-environment."""
    return {key: part[index] for key, part in batch.items()} if isinstance(batch, dict) else batch[index]


def equal_numbers(ours: Any, theirs: Any, where: str, ulps: int = 0) -> None:
    """Equal bits, or as many units in the last place apart as allowed, of numbers below 1 those of 1."""
    if ulps:
        apart = np.abs(np.asarray(ours, dtype=float) - theirs) / np.spacing(np.maximum(1.0, np.abs(theirs)))
        assert np.max(apart, initial=0.0) <= ulps, where
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=where)


def same(ours: Any, theirs: Any, where: str, ulps: int = 0) -> None:
    """Equal nested dictionaries of arrays; a tuple a sub-environment is the same as a row of an array."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), where
        for key in theirs:
            same(ours[key], theirs[key], f"{where}.{key}", ulps)
        return
    if theirs.dtype == object:
        theirs = np.array([np.zeros(ours.shape[1]) if row is None else row for row in theirs], dtype=float)
    assert ours.dtype.kind == theirs.dtype.kind, where
    assert ours.shape == theirs.shape, where
    equal_numbers(ours, theirs, where, ulps)


@pytest.mark.parametrize("env_id", KINDS)
def test_equals_gymnasiums_own_vectorisation_step_by_step(env_id: str, block: int) -> None:
    horizon = block + 2
    ours = native(env_id, max_episode_steps=horizon)
    theirs = gym.make_vec(env_id, num_envs=3, vectorization_mode="sync", max_episode_steps=horizon)
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert ours.single_action_space == theirs.single_action_space
    assert ours.action_space == theirs.action_space
    assert ours.observation_space == theirs.observation_space
    for ours_part, theirs_part in zip(ours.reset(seed=7), theirs.reset(seed=7), strict=True):
        same(ours_part, theirs_part, "reset")
    ours.action_space.seed(0)
    resets = 0
    for round_ in range(2 * horizon + 4):
        actions = ours.action_space.sample()
        left, right = ours.step(actions), theirs.step(actions)
        for ours_part, theirs_part in zip(left, right, strict=True):
            same(ours_part, theirs_part, f"round {round_}", ULPS.get(env_id, 0))
        resets += left[-1]["round"][0] == 0
        assert left[0] in ours.observation_space
    assert resets == 2


@pytest.mark.parametrize("env_id", ONE_OF_EACH_MODE)
def test_a_list_of_seeds_with_gaps(env_id: str) -> None:
    """None keeps that sub-environment's stream going, as in SyncVectorEnv."""
    ours, theirs = native(env_id), gym.make_vec(env_id, num_envs=3, vectorization_mode="sync")
    ours.action_space.seed(0)
    for seed in (4, [8, None, 15], None):
        for ours_part, theirs_part in zip(ours.reset(seed=seed), theirs.reset(seed=seed), strict=True):
            same(ours_part, theirs_part, f"reset({seed})")
        for _ in range(5):
            actions = ours.action_space.sample()
            same(ours.step(actions)[0], theirs.step(actions)[0], f"after reset({seed})")


@pytest.mark.parametrize(("seeds", "number"), [([1, 2], 2), ((1, 2), 2), (np.arange(4), 4), ([], 0), (np.array(3), 1)])
def test_wrong_number_of_seeds(seeds: Any, number: int) -> None:
    with pytest.raises(ArgumentError, match=f"one seed for each of 3 environments; given {number}"):
        native("CBO/Alpine2-v0").reset(seed=seeds)


NO_SEEDS = [True, np.True_, 1.0, np.float64(1.0), "3", b"3", -1, np.int64(-1), 1j, np.timedelta64(1, "s"), {}, object()]


@pytest.mark.parametrize("seed", NO_SEEDS)
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    one, envs = gym.make("CBO/Alpine2-v0"), native("CBO/Alpine2-v0")
    for method in (one.reset, one.unwrapped.reset, envs.reset):
        with pytest.raises(ArgumentError, match=r"seed must be a whole number from 0 to .*; given"):
            method(seed=seed)
    with pytest.raises(ArgumentError, match="seed must be"):
        envs.reset(seed=[0, seed, 1])


@pytest.mark.parametrize("given", [0, 2.5, "3", True, None])
def test_sizes_are_whole_numbers(given: Any) -> None:
    with pytest.raises(ArgumentError, match=r"num_envs must be .*at least 1; given"):
        native("CBO/Alpine2-v0", num_envs=given)
    if given is not None:
        with pytest.raises(ArgumentError, match=r"max_episode_steps must be .*at least 1; given"):
            native("CBO/Alpine2-v0", max_episode_steps=given)


def test_no_more_environments_than_the_memory_is_to_hold() -> None:
    with pytest.raises(ArgumentError, match="num_envs must be a whole number from 1 to 43690; given 43691"):
        native("CBO/Alpine2-Noisy-v0", num_envs=43_691)


def test_a_partial_reset_and_a_step_without_reset_are_refused() -> None:
    envs = native("CBO/Alpine2-v0")
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros((3, 6)))
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.array([True, False, False])})


@pytest.mark.parametrize("env_id", ONE_OF_EACH_MODE)
def test_without_seeds_the_sub_environments_differ(env_id: str) -> None:
    envs = native(env_id)
    envs.reset()
    one = envs.single_action_space.sample()
    batch = {k: np.stack([v] * 3) for k, v in one.items()} if isinstance(one, dict) else np.stack([one] * 3)
    assert len(np.unique(envs.step(batch)[1])) == 3


def test_results_are_not_overwritten_by_later_steps() -> None:
    envs = reset(native("CBO/Alpine2-Noisy-v0"), 0, 0)
    kept = [envs.step(envs.action_space.sample())[0]["nodes"] for _ in range(3)]
    assert len({nodes.tobytes() for nodes in kept}) == 3


@pytest.mark.parametrize(
    ("env_id", "render_mode"), [*((one, "ansi") for one in ONE_OF_EACH_MODE), ("CBO/CoCaFig1-v0", "rgb_array")]
)
def test_render_gives_the_frames_of_the_single_environments(env_id: str, render_mode: str) -> None:
    envs = reset(native(env_id, num_envs=2, render_mode=render_mode), 3, 0)
    batches = [envs.action_space.sample() for _ in range(3)]
    for actions in batches:
        envs.step(actions)
    frames = envs.render()
    assert isinstance(frames, tuple)
    assert len(frames) == 2
    assert not np.array_equal(frames[0], frames[1])
    for i, frame in enumerate(frames):
        one = gym.make(env_id, render_mode=render_mode).unwrapped
        one.reset(seed=3 + i)
        for actions in batches:
            one.step(row_of(actions, i))
        assert np.array_equal(frame, one.render())


@pytest.mark.parametrize("env_id", ONE_OF_EACH_MODE)
def test_the_oracle_tells_what_it_tells_the_single_environments(env_id: str) -> None:
    envs = reset(VectorOracleInfo(native(env_id, num_envs=3)), 3, 0)
    actions = envs.action_space.sample()
    info = envs.step(actions)[4]
    for i in range(3):
        one = OracleInfo(gym.make(env_id))
        one.reset(seed=3 + i)
        alone = one.step(row_of(actions, i))[4]
        for key in ("expected_reward", "instant_regret"):
            assert info[key][i] == pytest.approx(alone[key], abs=0.02)
            assert info[f"_{key}"].all()
