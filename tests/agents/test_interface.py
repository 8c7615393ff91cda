from dataclasses import replace

import numpy as np
import pytest

import cbo_gym
from cbo_gym import Agent, Round, agents
from tests.support.loop import begin_agent, go_on, make, play, reset

pytestmark = pytest.mark.usefixtures("coarse_search")


@pytest.mark.parametrize(("module", "name"), [(agents, "Oracle"), (cbo_gym, "nothing")])
def test_unknown_names_are_attribute_errors(module, name) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(module, name)


@pytest.mark.parametrize("build", [agents.Random, agents.GPUCB, agents.EICF, agents.EIFN, agents.MCBO, agents.EXCBO])
def test_without_any_data_it_plays(build: type[Agent]) -> None:
    env, task = make("CBO/ToyGraph-v0", 0, 2)
    actions, _ = play(build(), env, replace(task, initial_data=()), 0)
    assert all(task.action_space.contains(action) for action in actions)


@pytest.mark.parametrize("rewards", [[0.3] * 6, [5.0], [1.0] * 5 + [1e6]], ids=["constant", "single", "outlier"])
@pytest.mark.parametrize(
    ("build", "env_id"),
    [
        *((build, "CBO/Dropwave-v0") for build in (agents.GPUCB, agents.EICF, agents.MCBO, agents.EXCBO)),
        (agents.CBO, "CBO/ToyGraph-v0"),
    ],
)
def test_awkward_rewards_of_one_action_do_not_end_a_run(build: type[Agent], env_id: str, rewards: list[float]) -> None:
    env, task = make(env_id, 0, 10)
    action, seen = reset(env, 0, 0).action_space.sample(), {"nodes": np.append(np.full(len(task.nodes) - 1, 0.5), 0.0)}
    past = [Round(action, {"nodes": np.append(seen["nodes"][:-1], reward)}, reward) for reward in rewards]
    go_on(begin_agent(build(), replace(task, initial_data=tuple(past))), task, rewards[:1], seen)
