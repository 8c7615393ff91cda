import numpy as np
import pytest
import torch

from cbo_gym.agents.common.search import maximise
from cbo_gym.agents.common.seeding import seeded_copy
from cbo_gym.agents.networks.excbo import EXCBO
from cbo_gym.envs import oracle_of
from tests.support.loop import make, play, start_agent


def test_the_search_beats_a_fine_grid():
    """Noisy Dropwave: every action on a 40 x 40 grid."""
    agent = start_agent(EXCBO(), "CBO/Dropwave-Noisy-v0", 1)
    bound = agent.upper_bound(agent.network.draw(agent.samples, seed=1))
    axis = torch.linspace(0, 1, 40, dtype=torch.float64)
    with torch.no_grad():
        best = float(bound(torch.cartesian_prod(axis, axis)[:, None]).max())
    played = [past.action for past in agent.history]
    action = maximise(bound, agent.network.features, played, seed=1)
    with torch.no_grad():
        found = float(bound(torch.tensor(action)[None, None]))
    assert found >= best - 1e-3 * abs(best)


def test_the_bound_is_the_mean_plus_beta_standard_deviations():
    agent = start_agent(EXCBO(beta=0.7), "CBO/Dropwave-Noisy-v0")
    draws, points = agent.network.draw(8, seed=0), torch.linspace(0.1, 0.9, 6, dtype=torch.float64).reshape(3, 1, 2)
    mean, std = agent.network.reward_mean_and_std(points[:, 0], draws)
    torch.testing.assert_close(agent.upper_bound(draws)(points), mean + 0.7 * std)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["CBO/Dropwave-GMM-v0", "CBO/Chemostat-v1"])
def test_two_standard_deviations_cover_the_truth(env_id):
    """Of 512 random actions after 55 rounds, 5 seeds."""
    covered = np.mean([coverage(env_id, seed) for seed in range(5)])
    print(f"\n{env_id}: {covered:.3f}")
    assert 0.85 <= covered <= 0.99


def coverage(env_id: str, seed: int) -> float:
    env, task = make(env_id, seed, 55)
    agent = EXCBO()
    play(agent, env, task, seed)
    space = seeded_copy(env.action_space, seed + 10_000)
    actions = [space.sample() for _ in range(512)]
    with torch.no_grad():
        inputs = agent.network.features.inputs(torch.tensor(np.stack(actions), dtype=torch.float64))
        mean, std = agent.network.reward_mean_and_std(inputs, agent.network.draw(agent.samples, seed=0))
    error = mean.numpy() - oracle_of(env).expected_rewards(actions).value
    return float((np.abs(error) <= 2.0 * std.numpy()).mean())
