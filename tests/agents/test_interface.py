from dataclasses import replace

import numpy as np
import pytest

import cbo_gym
from cbo_gym import Agent, Round, agents
from tests.support.loop import begun, flat, go_on, make, play

pytestmark = pytest.mark.usefixtures("coarse_search")

ROUNDS = 2
every_agent = pytest.mark.parametrize(
    "build", [agents.Random, agents.GPUCB, agents.EICF, agents.EIFN, agents.MCBO, agents.EXCBO]
)


@pytest.mark.parametrize(("module", "name"), [(agents, "Oracle"), (cbo_gym, "nothing")])
def test_unknown_names_are_attribute_errors(module, name) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(module, name)


@every_agent
def test_history_recommendation_and_estimates_are_of_what_was_played(build: type[Agent]) -> None:
    env, task = make("CBO/Dropwave-Noisy-v0", 0, ROUNDS)
    agent = build()
    play(agent, env, task, 0)
    assert len(agent.history) == len(task.initial_data) + ROUNDS
    played = [flat(past.action) for past in agent.history]
    assert any(np.array_equal(flat(agent.recommend()), action) for action in played)
    estimates = agent.estimated_rewards()
    assert estimates.shape == (len(agent.history),)
    assert np.isfinite(estimates).all()


@every_agent
def test_without_any_data_actions_are_random(build: type[Agent]) -> None:
    env, task = make("CBO/ToyGraph-v0", 0, ROUNDS)
    actions, _ = play(build(), env, replace(task, initial_data=()), 0)
    assert all(task.action_space.contains(action) for action in actions)


@pytest.mark.parametrize(
    ("rewards", "duplicates"),
    [([0.3] * 6, True), ([5.0], False), ([1e6, -1e6, 2e6, 0.0, 1e6, 3e6], False), ([1.0] * 5 + [1e6], True)],
    ids=["constant", "single", "large", "outlier"],
)
@pytest.mark.parametrize(
    ("build", "env_id"),
    [
        *((build, "CBO/Dropwave-v0") for build in (agents.GPUCB, agents.EICF, agents.MCBO, agents.EXCBO)),
        pytest.param(agents.EIFN, "CBO/Dropwave-v0", marks=pytest.mark.slow),
        (agents.CBO, "CBO/ToyGraph-v0"),
    ],
)
def test_awkward_rewards_do_not_end_a_run(build: type[Agent], env_id: str, duplicates: bool, rewards: list[float]):
    env, task = make(env_id, 0, 10)
    env.action_space.seed(0)
    actions = [env.action_space.sample()] * len(rewards) if duplicates else [env.action_space.sample() for _ in rewards]
    seen = {"nodes": np.append(np.full(len(task.nodes) - 1, 0.5), 0.0)}
    past = [
        Round(action, {"nodes": np.append(seen["nodes"][:-1], reward)}, reward)
        for action, reward in zip(actions, rewards, strict=True)
    ]
    go_on(begun(build(), replace(task, initial_data=tuple(past))), task, rewards[:1], seen)
