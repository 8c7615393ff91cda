"""The cost of playing an agent in another process."""

import pytest

from cbo_gym import evaluate
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.referee.isolated import IsolatedAgent

pytestmark = pytest.mark.benchmark
ROUNDS, ENV = 1500, "CBO/Dropwave-v0"
MOST = 0.3e-3  # seconds a round


@pytest.mark.parametrize("recommend", ["every", "end"])
def test_isolation_costs_little_a_round(recommend):
    costs = []
    for _ in range(4):
        agent = IsolatedAgent(Spec("Random"))
        apart = evaluate(agent, ENV, 100, horizon=ROUNDS, label="Random", recommend=recommend)
        agent.close()
        here = evaluate("Random", ENV, 100, horizon=ROUNDS, recommend=recommend)
        costs.append(apart.seconds_a_round - here.seconds_a_round)
    print(f"\nisolation, recommend={recommend!r}: {1e3 * min(costs):.3f} to {1e3 * max(costs):.3f} ms a round")
    assert min(costs) <= MOST
