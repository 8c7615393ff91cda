"""How much of a task's initial data agents take."""

import gymnasium as gym
import pytest

from cbo_gym import make_task
from cbo_gym.agents import CBO, GPUCB, Random
from cbo_gym.agents.common.initial import MAX_OBSERVATIONS, few_observations
from tests.support.loop import begin_agent

LARGE = "CBO/SurveyToyGraph-v0"  # 1,000 observations, then an intervention on each of two sets


@pytest.mark.parametrize("agent", [CBO(), GPUCB()])
def test_agents_with_gaussian_processes_thin_observations_keep_interventions_and_others_all(agent) -> None:
    task = make_task(gym.make(LARGE), seed=0)
    few = few_observations(task)
    interventions = [past for past in task.initial_data if task.targets[past.action["target"]]]
    assert few == [*task.initial_data[:MAX_OBSERVATIONS], *interventions]
    for env_id in ("CBO/ToyGraph-v0", "CBO/Dropwave-v0"):
        small = make_task(gym.make(env_id), seed=0)
        assert list(few_observations(small)) == list(small.initial_data)
    assert len(begin_agent(agent, task).history) == len(few) < len(task.initial_data)
    assert len(begin_agent(Random(), task).history) == len(task.initial_data)
