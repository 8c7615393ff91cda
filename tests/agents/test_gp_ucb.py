import numpy as np
import pytest
import torch

from cbo_gym import agents
from tests.agents.helpers import AGENT_SEED, make


@pytest.mark.parametrize("beta", [0.0, 0.5, 5.0])
def test_the_bound_is_maximised(beta: float) -> None:
    _, task = make("CBO/Rosenbrock-v0", 0, 10)
    agent = agents.GPUCB(beta=beta)
    agent.reset(task, seed=AGENT_SEED)
    action = torch.as_tensor(agent.act({}))
    others = torch.rand(5000, 1, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        bound = agent.upper_bound(action.reshape(1, 1, 5))
        assert bound >= agent.upper_bound(others).max()


def test_estimates_are_posterior_means() -> None:
    _, task = make("CBO/Alpine2-v0", 0, 10)
    agent = agents.GPUCB()
    agent.reset(task, seed=AGENT_SEED)
    rewards = [past.reward for past in task.initial_data]
    np.testing.assert_allclose(agent.estimated_rewards(), rewards, atol=1e-3)
    np.testing.assert_array_equal(agent.recommend(), task.initial_data[int(np.argmax(rewards))].action)
