"""CBO-MW and GP-MW: weights by hand, the optimism of a network."""

import math
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

from cbo_gym import make_task
from cbo_gym.agents.black_box.gp_mw import GPMW
from cbo_gym.agents.networks.cbo_mw import CBOMW, as_one_player
from cbo_gym.task import Round
from tests.support.loop import begin_agent

PENNY = "CBO/Dropwave-Penny-v0"
BOTH = pytest.mark.parametrize("kind", [CBOMW, GPMW])


def played(agent, env_id: str = PENNY, rounds: int = 8, seed: int = 0, **keywords):
    """The agent after some rounds, the moves that it met, and the actions that it played."""
    env = gym.make(env_id, max_episode_steps=rounds, **keywords)
    agent.reset(make_task(env, seed), seed)
    observation, _ = env.reset(seed=seed)
    rounds_seen = []
    for _ in range(rounds):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.update(action, observation, reward, info)
        rounds_seen.append((action, observation["adversary"]))
    return agent, rounds_seen


class Known(GPMW):
    """Knows every reward, without a surrogate: 0.25, 0.5, ... above and below what counts."""

    def learn(self, action, observation, reward):
        pass

    def optimistic_rewards(self, inputs):
        return 4.0 * inputs[:, 0] - 1.0


def test_weights_are_those_of_hedge_and_actions_are_drawn_by_them() -> None:
    """The clipped rewards of the first coordinate's levels are 0, 1/3, 1 and 1, the same in each round."""
    for rounds, rate in ((3, None), (2, 0.5)):
        agent, _ = played(Known() if rate is None else Known(rate=rate), rounds=rounds)
        eta = rate or math.sqrt(8.0 * math.log(16) / 3)
        by_hand = np.repeat([math.exp(-rounds * eta * (1.0 - reward)) for reward in (0.0, 1.0 / 3.0, 1.0, 1.0)], 4)
        np.testing.assert_allclose(agent.weights, by_hand / by_hand.sum(), rtol=1e-12)
    np.testing.assert_allclose(agent.recommend(), [2 / 3, 0.0])
    drawn = [agent.act({})[0] for _ in range(4000)]
    levels, counts = np.unique(drawn, return_counts=True)
    shares = agent.weights.reshape(4, 4).sum(axis=1)
    assert len(levels) == 4
    assert (np.abs(counts / 4000 - shares) < 5 * np.sqrt(shares * (1 - shares) / 4000)).all()


@BOTH
def test_optimism_never_falls_below_the_mean(kind) -> None:
    agent, _ = played(kind(beta=1.0))
    inputs = agent.with_move(np.array([1.0 / 3.0]))
    with torch.no_grad():
        bounds = {}
        for beta in (0.0, 0.5, 2.0):
            agent.beta = beta
            bounds[beta] = agent.optimistic_rewards(inputs).numpy()
    assert (bounds[0.5] >= bounds[0.0] - 1e-3).all()  # the network's bound is a mean over a few draws of its noise
    assert (bounds[2.0] >= bounds[0.5] - 1e-3).all()
    assert (bounds[2.0] > bounds[0.0] + 1e-3).any()


def test_the_network_takes_the_move_where_it_enters() -> None:
    task = as_one_player(make_task(gym.make("CBO/Rosenbrock-Perturb-v0"), 0))
    assert task.action_nodes == {"X0": (0, 1, 4), "X1": (1, 2, 4, 5), "Y": (2, 3, 5)}
    assert task.codec.dim == 6
    agent, rounds = played(CBOMW(), "CBO/Rosenbrock-Perturb-v0", rounds=3)
    last = agent.network.inputs[-1].numpy()
    np.testing.assert_array_equal(last, np.concatenate(rounds[-1]))


def test_the_network_learns_the_game() -> None:
    """After 30 random rounds its means are close to the rewards of all pairs of Dropwave-Penny."""
    env = gym.make(PENNY, max_episode_steps=30, adversary="random")
    task = make_task(env, 1)
    env.reset(seed=1)
    env.action_space.seed(1)
    actions = [env.action_space.sample() for _ in range(30)]
    rounds = tuple(Round(action, *env.step(action)[:2]) for action in actions)
    agent = begin_agent(CBOMW(beta=0.0), replace(task, initial_data=rounds))
    np.testing.assert_allclose(agent.weights, 1 / 16, err_msg="initial data train the model alone")
    truth = env.unwrapped.dynamics.game.rewards
    with torch.no_grad():
        thought = [agent.optimistic_rewards(agent.with_move(move)).numpy() for move in env.unwrapped.dynamics.moves]
    assert np.abs(np.array(thought).T - truth).mean() < 0.05
