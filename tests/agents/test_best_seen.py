"""What an agent without a model recommends: the first of the best rewards, each round looked at once."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest

from cbo_gym.agent import Agent
from cbo_gym.task import Mode, Round


class Plain(Agent):
    modes = frozenset(Mode)
    task = SimpleNamespace(objectives=())

    def act(self, observation):
        return 0


class Looked(Round):
    """A round that counts how often its reward is looked at."""

    looks = 0

    @property
    def reward(self):
        Looked.looks += 1
        return self[2]


def rounds(*rewards):
    return [Looked(place, {}, float(reward)) for place, reward in enumerate(rewards)]


def plain(history):
    agent = Plain()
    agent.history = history
    return agent


def by_looking_at_all(agent):
    rewards = np.where(np.zeros(len(agent.history)) <= 0.0, agent.estimated_rewards(), -np.inf)
    return agent.history[int(np.argmax(rewards))].action


@pytest.mark.parametrize("special", [(), (-np.inf,), (np.inf,), (np.nan,), (-0.0, 0.0), (np.nan, np.inf)])
def test_it_is_the_first_of_the_best_however_often_it_is_asked(special):
    rng = np.random.default_rng(0)
    for _ in range(50):
        agent = plain(rounds(rng.integers(3)))
        for _ in range(30):
            if rng.random() < 0.5:
                assert agent.recommend() == by_looking_at_all(agent)
            worth = rng.choice([*special, *range(5)])
            agent.history.append(Looked(len(agent.history), {}, float(worth)))
        assert agent.recommend() == deepcopy(agent).recommend() == by_looking_at_all(agent)


def move_on(agent):
    del agent.history[:2]
    agent.history += rounds(1, 1)


def replace_the_best(agent):
    agent.history[1] = agent.history[1]._replace(reward=-9.0)


def other_list(agent):
    agent.history = rounds(0, 0, 7, 8)


def other_estimates(agent):
    agent.estimated_rewards = lambda: np.arange(4.0)


def begin_anew(agent):
    agent.history.clear()
    agent.history.extend(rounds(2, 4, 3, 9))


@pytest.mark.parametrize(
    "change", [move_on, lambda agent: agent.history.pop(1), replace_the_best, other_list, other_estimates, begin_anew]
)
def test_rounds_that_are_gone_or_changed_are_not_recommended(change):
    agent = plain(rounds(1, 5, 3, 3))
    assert agent.recommend() == 1
    change(agent)
    assert agent.recommend() == by_looking_at_all(agent) != 1


def test_to_be_asked_every_round_costs_the_same_in_a_long_run():
    agent, looks = plain([]), []
    for place in range(1000):
        agent.history.append(Looked(place, {}, float(place % 37)))
        Looked.looks = 0
        agent.recommend()
        looks.append(Looked.looks)
    assert max(looks) <= 3
