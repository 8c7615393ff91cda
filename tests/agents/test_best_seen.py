"""Agents without a model recommend the first of the best rewards."""

from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest

from cbo_gym.agent import Agent
from cbo_gym.task import Mode, Round


class Plain(Agent):
    modes = frozenset(Mode)
    task = SimpleNamespace(objectives=())

    def __init__(self, *rewards):
        self.history = rounds(*rewards)

    def act(self, observation):
        return 0


class Counted(Round):
    """A round that counts how often its reward is read."""

    reads = 0

    @property
    def reward(self):
        Counted.reads += 1
        return self[2]


def rounds(*rewards):
    return [Round(number, {}, float(reward)) for number, reward in enumerate(rewards)]


def best_of_all(agent):
    return agent.history[int(np.argmax(agent.estimated_rewards()))].action


@pytest.mark.parametrize("special", [(), (-np.inf,), (np.inf,), (np.nan,), (-0.0, 0.0), (np.nan, np.inf)])
def test_the_first_of_the_best_is_recommended_however_often(special):
    rng = np.random.default_rng(0)
    for _ in range(20):
        agent = Plain(rng.integers(3))
        for number in range(1, 30):
            if rng.random() < 0.5:
                assert agent.recommend() == best_of_all(agent)
            agent.history.append(Round(number, {}, float(rng.choice([*special, *range(5)]))))
        assert agent.recommend() == deepcopy(agent).recommend() == best_of_all(agent)


def change(agent, start, stop, *rewards):
    agent.history[start:stop] = rounds(*rewards)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda agent: change(agent, 0, 4, 3, 3, 1, 1), id="move on"),
        pytest.param(lambda agent: agent.history.pop(1), id="remove"),
        pytest.param(lambda agent: change(agent, 1, 2, -9), id="replace"),
        pytest.param(lambda agent: setattr(agent, "history", rounds(0, 0, 7, 8)), id="other list"),
        pytest.param(lambda agent: setattr(agent, "estimated_rewards", lambda: np.arange(4.0)), id="other estimates"),
    ],
)
def test_rounds_that_were_removed_or_changed_are_not_recommended(change):
    agent = Plain(1, 5, 3, 3)
    assert agent.recommend() == 1
    change(agent)
    assert agent.recommend() == best_of_all(agent) != 1


def test_a_recommendation_takes_no_longer_in_a_long_run():
    agent, reads = Plain(), []
    for number in range(1000):
        agent.history.append(Counted(number, {}, float(number % 37)))
        Counted.reads = 0
        agent.recommend()
        reads.append(Counted.reads)
    assert max(reads) <= 3
