"""A study that an environment feeds suggests what ``evaluate`` plays, bit for bit, also after restarts."""

import numpy as np
import pytest

from cbo_gym import evaluate
from cbo_gym.agent_registry.finding import find_agent, modes_of
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.envs.registration import custom_id
from cbo_gym.evaluation.play.blind import seeds_of
from cbo_gym.task import Mode
from tests.support.families import by_family
from tests.support.studies import SYSTEMS, Robot, hidden

ROUNDS = 5
SEED = 100
#: the first wants another graph, the others several objectives
NOT_HERE = ("ParallelBandit", "CausalParetoSelect", "qNEHVI", "qNEHVI-Sets", "qNEHVI-Network")
PAIRS = [
    (name, mode) for name in zoo() for mode in modes_of(find_agent(name)) if mode in SYSTEMS and name not in NOT_HERE
]


def played(agent, mode, rounds=ROUNDS):
    run = evaluate(agent, custom_id(Mode(mode)), SEED, horizon=rounds, recommend="end", problem=hidden(SYSTEMS[mode]))
    return run.table


@pytest.mark.parametrize(("agent", "mode"), by_family(PAIRS, lambda pair: pair[0]))
def test_a_study_plays_as_evaluate_does(agent, mode, tmp_path):
    table = played(agent, mode)
    robot = Robot(mode, agent, tmp_path / "study.db", ROUNDS, seeds_of(SEED, ""))
    for number in range(ROUNDS):
        trial = robot.ask()
        if number % 2:  # the first suggestions are of one process, then each call has a new one
            robot.restart()
        robot.study.tell(trial, robot.play(trial))
        if number:
            robot.restart()
    values = robot.study.to_frame()
    np.testing.assert_array_equal(values[robot.names[-1]].to_numpy(), table["reward"].to_numpy())
    if "choice" in table.columns and mode != "discrete":
        np.testing.assert_array_equal([flat[0] for flat in robot.actions()], table["choice"].to_numpy())
