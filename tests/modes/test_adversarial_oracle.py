"""Regret against the best fixed action in hindsight, by brute force from the rounds themselves."""

from itertools import product

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs import oracle_of
from cbo_gym.evaluation import evaluate
from cbo_gym.modes import make_dynamics, oracle_for
from cbo_gym.modes.adversarial.oracle import AdversarialOracle
from cbo_gym.problems import Adversary, Problem
from cbo_gym.scm import Normal, StructuralCausalModel, Uniform, Variable, own_noise
from tests.support.loop import reset

ROUNDS = 20
LEVELS = np.linspace(0.0, 1.0, 4)


def rewards_against(env_id: str, action: np.ndarray, moves: list[list[float]]) -> np.ndarray:
    """What one action earns in all rounds, played against these moves."""
    env = reset(gym.make(env_id, adversary=moves, max_episode_steps=None))
    return np.array([env.step(action)[1] for _ in moves])


@pytest.mark.parametrize("env_id", ["CBO/Dropwave-Penny-v0", "CBO/Alpine2-Penny-v0"])
@pytest.mark.parametrize("adversary", ["adaptive", "random"])
def test_regret_is_counted_from_the_best_fixed_action_against_the_moves_made(env_id: str, adversary: str) -> None:
    run = evaluate("Random", env_id, seed=3, horizon=ROUNDS, adversary=adversary)
    played = np.array(run.table["action"].to_list())
    env = reset(gym.make(env_id, adversary=adversary), 3)
    moves = [env.step(action)[0]["adversary"].tolist() for action in played]
    every = [rewards_against(env_id, np.array(a), moves) for a in product(LEVELS, repeat=played.shape[1])]
    best = max(every, key=np.sum)
    regret = np.cumsum(best - run.table["reward"].to_numpy())
    np.testing.assert_allclose(run.table["cumulative_regret"], regret, atol=1e-9)
    np.testing.assert_allclose(run.table["average_regret"], regret / np.arange(1, ROUNDS + 1), atol=1e-9)
    np.testing.assert_allclose(run.table["expected_reward"], run.table["reward"], atol=1e-9)
    assert (run.table["simple_regret"].to_numpy() >= -1e-12).all()


def test_against_the_fixed_adversary_hindsight_is_the_recorded_optimum() -> None:
    run = evaluate("Random", "CBO/Ackley-Perturb-v0", seed=0, horizon=ROUNDS, adversary="fixed")
    expected = run.table["expected_reward"].to_numpy()
    np.testing.assert_allclose(run.table["cumulative_regret"], np.cumsum(run.optimum - expected), atol=1e-9)
    np.testing.assert_allclose(run.table["instant_regret"], run.optimum - expected, atol=1e-9)


def test_the_recorded_optimum_is_the_best_of_all_actions_against_one_move() -> None:
    env_id = "CBO/Dropwave-Penny-v0"
    oracle = oracle_of(gym.make(env_id))
    assert isinstance(oracle, AdversarialOracle)
    found = np.array(
        [rewards_against(env_id, np.array(a), LEVELS[:, None].tolist()) for a in product(LEVELS, repeat=2)]
    )
    worst = found.mean(axis=0).round(9).argmin()
    assert oracle.optimum.value == pytest.approx(found[:, worst].max(), abs=1e-9)
    assert oracle.optimum.random_value == pytest.approx(found[:, worst].mean(), abs=1e-9)
    np.testing.assert_allclose(oracle.expected_against(oracle.dynamics.all_actions(), LEVELS[:, None]).value, found)


def test_noise_is_averaged_out() -> None:
    """Y = x z + U^2 with U standard normal: E[Y | x, z] = x z + 1."""
    variables = [
        Variable("randomness", own_noise, noise=Uniform(0.0, 1.0), observed=False),
        Variable("Y", lambda x, z, u: x * z + u * u, (), (0, 1), noise=Normal(0.0, 1.0)),
    ]
    scm = StructuralCausalModel(variables, "Y")
    problem = Problem("Product", scm, "", "", action_domains=[(0.0, 1.0), (-1.0, 1.0)], modes=[Adversary(1)])
    oracle = oracle_for(make_dynamics(problem, "adversarial"))
    found = oracle.expected_against(LEVELS[:, None], LEVELS[:, None])
    np.testing.assert_allclose(found.value, 1.0 + np.outer(LEVELS, 2.0 * LEVELS - 1.0), atol=0.01)
    assert (found.standard_error > 0).all()
    assert oracle.optimum.value == pytest.approx(1.0, abs=0.01)  # against z = -1 the best is to play 0
    assert oracle.optimum.random_value == pytest.approx(0.5, abs=0.03)
