"""Instances: the same task turned, with its optimum known; nothing of the published one shows."""

import copy
import pickle
import pickletools

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import Mode, make_task
from cbo_gym.envs import oracle_of
from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import ArgumentError
from cbo_gym.referee.serialization import pack
from cbo_gym.scm import Empirical, GaussianMixture, Normal, Uniform
from cbo_gym.scm.noise import Arcsine, Discrete, TruncatedNormal, multiply
from cbo_gym.testing import check_problem
from tests.support.environments import HAVE_INSTANCES, LAST_OF_MODE, ONE_OF_A_KIND, with_slow

KINDS = with_slow(env_id for env_id in ONE_OF_A_KIND if env_id in HAVE_INSTANCES)
OF_EACH_MODE = LAST_OF_MODE.values()
EXACT, OF_CELLS = 1e-9, 1e-5  # cells are no points


def same_action(one, other, transform, rng):
    """An action of the published task, and the same one turned, as interventions."""
    published, instance = one.dynamics, other.dynamics
    if published.mode is Mode.AGGREGATED:
        corner = rng.uniform(0.01, 0.98, published.scm.action_dim)
        action = np.array([corner, corner + 1e-9])  # a cell that is bent has other points
    else:
        action = published.read(one.action_space.sample())
    record = instance.transform_record(transform, published.codec.to_record(action))
    turned = instance.read(instance.codec.from_record(record))
    both = [published.decode(action), instance.decode(turned)]
    if published.mode is Mode.ADVERSARIAL:
        move = published.moves[1]
        turned_move = np.array(transform.point([*action, *move])[len(action) :])
        return published.against(both[0], move), instance.against(both[1], turned_move)
    return [dynamics.in_round(do, dynamics.start()) for dynamics, do in zip((published, instance), both, strict=True)]


@pytest.mark.parametrize("env_id", KINDS)
def test_an_instance_is_the_same_task_turned(env_id):
    published, instance = (gym.make(env_id, instance=k).unwrapped for k in (0, 7))
    transform, rng = instance.problem.transform, np.random.default_rng(3)
    published.action_space.seed(5)
    noise = published.scm.draw_noise(rng, 64)
    tolerance = OF_CELLS if published.mode is Mode.AGGREGATED else EXACT
    for _ in range(3):
        before, after = same_action(published, instance, transform, rng)
        was = published.dynamics.play(noise, before.expand())
        now = instance.dynamics.play(noise, after.expand())
        for name in published.scm.nodes:
            expected = np.asarray(transform.unit(name).to_new(np.asarray(was[name])))
            size = 1.0 + np.abs(expected).max()
            assert np.abs(expected - now[transform.names[name]]).max() <= tolerance * size
        reward = transform.reward.to_new(np.asarray(published.problem.outcomes.reward(was)))
        assert np.allclose(reward, instance.problem.outcomes.reward(now), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("env_id", OF_EACH_MODE)
def test_the_optimum_of_an_instance_is_known(env_id):
    published, instance = (oracle_of(gym.make(env_id, instance=k)) for k in (0, 7))
    transform = instance.problem.transform
    assert instance.optimum.value == pytest.approx(transform.reward.to_new(published.optimum.value), rel=1e-12)
    gap = instance.optimum.value - instance.optimum.random_value
    assert gap > 0
    if transform.keeps_measure:
        at_random = transform.reward.to_new(published.optimum.random_value)
        assert instance.optimum.random_value == pytest.approx(at_random, rel=1e-12)
    if isinstance(instance.optimum.action, str) or instance.dynamics.mode is Mode.DYNAMIC:
        return
    (earned,) = instance.expected_rewards([instance.optimum.action]).value
    (before,) = published.expected_rewards([published.optimum.action]).value
    assert earned == pytest.approx(transform.reward.to_new(before), abs=0.01 * gap)


@pytest.mark.parametrize("env_id", OF_EACH_MODE)
def test_a_task_holds_nothing_of_the_published_one(env_id):
    env = gym.make(env_id, instance=3)
    published = gym.make(env_id).unwrapped
    parts = [part for _, part, _ in pickletools.genops(pack(make_task(env, 100, horizon=2)))]
    # Both have the first names, and NumPy writes "C" for the order of an array's numbers.
    old = {*published.scm.nodes, *published.problem.action_names} - {"V1", "V2", "R", "a0", "a1", "C"}
    news = {*env.unwrapped.scm.nodes, *env.unwrapped.problem.domains.names}
    assert [name for name in old - news if name in parts] == []


@pytest.mark.parametrize("env_id", OF_EACH_MODE)
def test_an_instance_is_a_problem_like_any_other(env_id):
    entry = find_entry(env_id)
    check_problem(entry.problem, mode=entry.mode, **entry.kwargs, instance=5)
    problem = gym.make(env_id, instance=5).unwrapped.problem
    again = pickle.loads(pickle.dumps(copy.deepcopy(problem)))
    assert again.scm.nodes == problem.scm.nodes
    assert again.transform == problem.transform


def test_instance_0_is_the_system_as_published():
    assert type(gym.make("CBO/Dropwave-v0", instance=0).unwrapped.scm) is type(
        gym.make("CBO/Dropwave-v0").unwrapped.scm
    )
    for wrong in (-1, 2**32, 1.5, "1", None, True):
        with pytest.raises(ArgumentError, match="instance must be"):
            gym.make("CBO/Dropwave-v0", instance=wrong)


def test_instances_differ_and_come_again():
    optima = [oracle_of(gym.make("CBO/Alpine2-v0", instance=k)).optimum.action for k in (1, 1, 2)]
    assert np.array_equal(optima[0], optima[1])
    assert np.abs(optima[0] - optima[2]).max() > 0.1


@pytest.mark.parametrize("told", [{"graph": "hidden"}, {"graph": "wrong"}, {"constraints": ["X0 <= 3"]}])
def test_known_facts_are_transformed_with_the_instance(told):
    env = gym.make("CBO/ToyGraph-v0", instance=4, **told)
    task, dynamics = make_task(env, 100), env.unwrapped.dynamics
    assert set(task.nodes) == {"V1", "V2", "R"}
    assert dynamics.problem.transform == dynamics.truth.problem.transform
    assert list(dynamics.problem.manipulable) == list(dynamics.truth.problem.manipulable)
    if "constraints" in told:
        (limit,) = task.constraints
        unit = dynamics.problem.transform.unit("X0")
        assert limit.threshold == unit.to_new(3.0)
        assert limit.side == (">=" if unit.reflected else "<=")


@pytest.mark.parametrize("reference", [{}, {"X1": 0.5}])
def test_costs_go_with_the_turn(reference):
    costs = {"base": 1.0, "variables": {"X0": 2.0}, "per_unit": {"X1": 3.0}, "reference": reference}
    one, other = (gym.make("CBO/ToyGraph-v0", instance=k, costs=costs).unwrapped.dynamics for k in (0, 4))
    transform = other.problem.transform
    action = {"target": 1, "values": np.array([0.3, 0.8])}
    for target in range(len(one.problem.targets)):
        action["target"] = target
        turned = other.codec.from_record(other.transform_record(transform, one.codec.to_record(action)))
        assert other.cost(other.decode(turned)) == pytest.approx(one.cost(one.decode(action)))


def test_names_that_are_unknown_are_named_as_they_are_published():
    with pytest.raises(ArgumentError, match="nope"):
        gym.make("CBO/ToyGraph-v0", instance=4, costs={"base": 1.0, "variables": {"nope": 2.0}})


def test_a_known_composition_goes_with_the_turn():
    env = gym.make("CBO/Ackley-v0", known_composition=True, instance=6)
    task = make_task(env, 100, horizon=2)
    env.reset(seed=1)
    env.action_space.seed(1)
    observation, reward, *_ = env.step(env.action_space.sample())
    nodes = dict(zip(task.nodes, observation["nodes"], strict=True))
    assert task.composition(nodes) == pytest.approx(reward)


@pytest.mark.parametrize(
    "noise",
    [Normal(1.0, 2.0), Uniform(-1.0, 3.0), GaussianMixture([0.2, 0.8], [-1.0, 2.0], [0.5, 1.0]), Arcsine(1.0, 0.5),
     TruncatedNormal(0.3, 0.5, 0.0, 2.0), Empirical([0.0, 1.0, 5.0]), Discrete([0.0, 2.0], [0.3, 0.7])],
    ids=lambda noise: type(noise).__name__,
)  # fmt: skip
@pytest.mark.parametrize("factor", [-1.7, 0.4])
def test_noise_in_other_units(noise, factor):
    points = (np.arange(10_000) + 0.5) / 10_000
    told = multiply(noise, factor)
    assert (told.mean, told.std) == pytest.approx((factor * noise.mean, abs(factor) * noise.std))
    assert np.allclose(np.sort(told.from_uniform(points)), np.sort(factor * noise.from_uniform(points)), atol=1e-2)
