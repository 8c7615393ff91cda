"""Every registered environment: Gymnasium's contract, seeds, observations, info, truncation."""

import pickle
import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import cbo_gym  # noqa: F401  (registers the environments)
from cbo_gym.envs import CausalBanditEnv
from cbo_gym.envs.registry import find_entry
from tests.support.environments import EVERY_ID, FIRST_OF_MODE, KINDS, ONE_OF_A_KIND, with_slow
from tests.support.loop import reset

#: signals and contexts are random even if all variables are noiseless
NOISY = [
    env_id
    for env_id, entry in ((env_id, find_entry(env_id)) for env_id in ONE_OF_A_KIND)
    if "noiseless" not in entry.tags or entry.mode in ("masked", "contextual")
]
#: rounds depend on the noise and the action alone
BY_NOISE = [env_id for env_id in NOISY if find_entry(env_id).mode not in ("adversarial", "dynamic", "partial")]
ATOMS = ("Bandit-", "TrainDelay")  # whose noise has atoms
CONTINUOUS = [env_id for env_id in BY_NOISE if not any(name in env_id for name in ATOMS)]


def bare(env_id: str, seed: int | None = 0, **kwargs: Any) -> Any:
    """The environment without wrappers, reset, with a seeded action space."""
    return reset(gym.make(env_id, **kwargs).unwrapped, seed, 0)


def play(env: Any, actions: list[Any]) -> np.ndarray:
    return np.array([env.step(action)[0]["nodes"] for action in actions])


def sampled(env: Any, count: int, seed: int) -> list[Any]:
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(count)]


@pytest.mark.parametrize("env_id", EVERY_ID)
def test_the_checkers_of_gymnasium_and_stable_baselines3(env_id: str) -> None:
    from stable_baselines3.common.env_checker import check_env as sb3_check_env

    from cbo_gym.envs.wrappers import FlattenAction

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(gym.make(env_id).unwrapped, skip_render_check=env_id not in FIRST_OF_MODE.values())
    expected = ("infinity. This is probably too", "is out of date")  # the latter where an id has a newer version
    messages = [str(one.message) for one in caught]
    assert [message for message in messages if not any(part in message for part in expected)] == []
    env = gym.make(env_id)
    flat = FlattenAction(env) if isinstance(env.action_space, gym.spaces.Dict) else env
    sb3_check_env(flat, warn=False)  # it would advise float32 and a symmetric box


@pytest.mark.parametrize("env_id", with_slow(CONTINUOUS))
def test_other_seeds_rounds_and_episodes_give_other_noise(env_id: str, block: int) -> None:
    env = bare(env_id, seed=1)
    actions = sampled(env, 1, seed=1) * (block + 4)
    first = play(env, actions)
    env.reset()  # no seed: the stream goes on
    second = play(env, actions)
    env.reset(seed=2)
    rounds = np.concatenate([first, second, play(env, actions)])
    assert len(np.unique(rounds, axis=0)) == 3 * len(actions)  # whole rounds: a reward of 0 may come twice


@pytest.mark.parametrize("env_id", with_slow(BY_NOISE))
def test_the_noise_of_a_round_does_not_depend_on_the_actions_before(env_id: str, block: int) -> None:
    one, two = bare(env_id, seed=5), bare(env_id, seed=5)
    ours, theirs = sampled(one, block + 4, 1), sampled(two, block + 4, 2)
    theirs[::3] = ours[::3]
    left, right = play(one, ours), play(two, theirs)
    np.testing.assert_array_equal(left[::3], right[::3])
    assert (left != right).any()


@pytest.mark.parametrize("env_id", [env_id for env_id in NOISY if "Graph" in env_id])
def test_variables_upstream_of_an_intervention_keep_their_noise(env_id: str) -> None:
    """Common random numbers within a round: what ``do`` cannot reach is the same as if nothing was done."""
    observing, acting = bare(env_id, seed=3), bare(env_id, seed=3)
    scm, targets = observing.scm, list(observing.problem.targets)
    domains = observing.dynamics.domains
    values = domains.round(np.full(len(domains), 0.3))
    natives = dict(zip(domains.names, domains.points_to_native(values), strict=True))
    untouched = play(observing, [{"target": targets.index(frozenset()), "values": values}] * len(targets))
    for round_, target in enumerate(targets):
        nodes = acting.step({"target": round_, "values": values})[0]["nodes"]
        reached = scm.diagram.descendants(target)
        kept = [index for index, name in enumerate(scm.nodes) if name not in reached]
        np.testing.assert_array_equal(nodes[kept], untouched[round_][kept])
        for name in target:
            assert nodes[scm.nodes.index(name)] == pytest.approx(natives[name], rel=1e-12)


@pytest.mark.parametrize("env_id", KINDS)
def test_an_observation_holds_the_observed_variables_in_causal_order_with_the_reward_last(env_id: str) -> None:
    env = bare(env_id)
    total = 0.0
    for round_ in range(1, 6):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        nodes = observation["nodes"]
        assert observation in env.observation_space
        assert nodes.tolist() == [float(env.values[name]) for name in env.dynamics.nodes]
        assert type(reward) is float
        assert reward == nodes[-1]
        assert (terminated, truncated) == (False, False)
        assert info["round"] == env.round == round_
        assert set(info) - {"cost"} == {"round", "intervention"}
        total += reward
    assert env.total_reward == pytest.approx(total)
    observation, info = env.reset()
    assert not observation["nodes"].any()
    assert (info, env.round, env.total_reward, env.values) == ({"round": 0, "intervention": {}}, 0, 0.0, {})
    assert env.scm.nodes[-1] == env.scm.reward
    order = {name: index for index, name in enumerate(env.scm.nodes)}
    assert not env.scm.diagram.is_acyclic or all(order[a] < order[b] for a, b in env.scm.diagram.directed)


@pytest.mark.parametrize("env_id", FIRST_OF_MODE.values())
def test_truncated_at_the_horizon_and_never_terminated(env_id: str) -> None:
    assert gym.make(env_id).spec.max_episode_steps == find_entry(env_id).horizon
    short = reset(gym.make(env_id, max_episode_steps=4))
    ends = [short.step(short.action_space.sample())[2:4] for _ in range(4)]
    assert ends == [(False, False)] * 3 + [(False, True)]


@pytest.mark.parametrize("env_id", ["CBO/Alpine2-Noisy-v0", "CBO/CompleteGraph-v0"])
def test_a_pickled_environment_plays_on_as_if_nothing_had_happened(env_id: str) -> None:
    env = bare(env_id)
    actions = sampled(env, 20, seed=4)
    play(env, actions[:10])
    again = pickle.loads(pickle.dumps(env))
    np.testing.assert_array_equal(play(env, actions[10:]), play(again, actions[10:]))


def test_builder_parameters_pass_through_make() -> None:
    env = gym.make("CBO/BinaryTree-v0", depth=3, noise_std=0.5)
    assert (env.action_space.shape, len(env.unwrapped.scm.noisy)) == ((14,), 15)
    sparse = gym.make("CBO/Alpine2-v0", max_interventions=2, max_episode_steps=7)
    assert (sparse.action_space.max_interventions, sparse.spec.max_episode_steps) == (2, 7)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: gym.make("CBO/Alpine2-v0", depth=3), "no parameter depth; it takes"),
        (lambda: gym.make("CBO/Alpine2-v0", noise_std=-1.0), "noise_std"),
        (lambda: gym.make("CBO/Alpine2-v0", max_interventions=0), "whole number from 1 to 6; given 0"),
        *(
            (lambda problem=problem, mode=mode: CausalBanditEnv(f"cbo_gym.problems.systems.{problem}", mode=mode), said)
            for problem, mode, said in [
                ("hard_graphs:complete_graph", "soft", "CompleteGraph has no soft parameters"),
                ("binary_tree:binary_tree", "hard", "lists no target sets"),
                ("function_networks:dropwave", "adversarial", "Dropwave has no adversary, so no adversarial mode"),
                ("function_networks:dropwave", "partial", "Dropwave has no NodePurchases"),
                ("hard_graphs:toy_graph", "aggregated", "ToyGraph has no soft parameters, so no aggregated mode"),
                ("hard_graphs:toy_graph", "masked", "ToyGraph has no soft parameters, so no masked mode"),
                ("hard_graphs:toy_graph", "contextual", "ToyGraph has no contexts, so it has no contextual mode"),
                ("hard_graphs:toy_graph", "dynamic", "ToyGraph has no slices, so it has no dynamic mode"),
                ("ssem:ssem_periodic", "soft", "SSEMPeriodic is a masked problem, .* 0 or 1; no soft mode"),
            ]
        ),
    ],
)
def test_construction_errors_say_what_is_wrong(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_make_imports_the_package_by_itself_and_a_step_loads_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys, gymnasium as gym; env = gym.make('cbo_gym:CBO/Alpine2-Noisy-v0', render_mode='ansi');"
        "env.reset(seed=0); print(env.step(env.action_space.sample())[0]['nodes'].shape); env.render();"
        "print([name for name in ('torch', 'matplotlib', 'scipy.stats') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(6,)", "[]"]
