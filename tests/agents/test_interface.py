import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from cbo_gym import Agent, Round, agents
from tests.support.loop import flat, go_on, make, play

ROUNDS = 2
every_agent = pytest.mark.parametrize(
    "build", [agents.Random, agents.GPUCB, agents.EICF, agents.EIFN, agents.MCBO, agents.EXCBO]
)


def test_importing_the_agents_does_not_import_torch() -> None:
    light = "assert 'torch' not in sys.modules"
    code = f"import sys; from cbo_gym import agents; {light}; agents.Random; {light}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="Oracle"):
        agents.Oracle  # noqa: B018


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
    agent = build()
    actions, _ = play(agent, env, replace(task, initial_data=()), 0)
    assert all(task.action_space.contains(action) for action in actions)


@pytest.mark.parametrize(
    ("rewards", "duplicates"),
    [([0.3] * 6, True), ([5.0], False), ([1e6, -1e6, 2e6, 0.0, 1e6, 3e6], False), ([1.0] * 5 + [1e6], True)],
    ids=["constant", "single", "large", "outlier"],
)
@pytest.mark.parametrize(
    "build",
    [agents.GPUCB, agents.EICF, pytest.param(agents.EIFN, marks=pytest.mark.slow), agents.MCBO, agents.EXCBO],
)
def test_awkward_rewards_do_not_end_a_run(build: type[Agent], duplicates: bool, rewards: list[float]) -> None:
    _, task = make("CBO/Dropwave-v0", 0, 10)
    points = np.random.default_rng(0).random((len(rewards), 2))
    if duplicates:
        points[:] = points[0]
    past = [
        Round(point, {"nodes": np.array([1.0, reward])}, reward) for point, reward in zip(points, rewards, strict=True)
    ]
    agent = build()
    agent.reset(replace(task, initial_data=tuple(past)), 0)
    go_on(agent, task, rewards[:1], {"nodes": np.array([1.0, 0.0])})
