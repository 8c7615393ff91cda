"""Processes that are killed while they work on a study: at every call, at any time, between writing and answering."""

import itertools
import os
import pickle
import signal

import numpy as np
import pytest

from cbo_gym.evaluation.play.seeds import seeds_of
from cbo_gym.study import create_study, load_study, studies_in
from cbo_gym.study.log import Log
from tests.support.studies import FERMENTER, PAIRS, SEED, Robot, fermenter, played
from tests.support.studies import play as play_some
from tests.support.study_kills import check, killed_at, play

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes")]

ROUNDS = 15
POINTS = ("before writing", "between writing and answering", "after answering")


def killed(point, call):
    """What a process answered that was killed at a point of a call; None where it had not answered."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        append = Log.append

        def append_or_die(*arguments):
            if point == "before writing":
                os.kill(os.getpid(), signal.SIGKILL)
            append(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        if point != "after answering":
            Log.append = append_or_die
        try:
            os.write(writing, pickle.dumps(call()))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        answer = answers.read()
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    return pickle.loads(answer) if answer else None


@pytest.mark.parametrize(("agent", "mode"), PAIRS)
def test_a_study_killed_at_every_call_plays_as_evaluate_does(agent, mode, tmp_path):
    table = played(agent, mode, ROUNDS)
    path = tmp_path / "study.db"
    robot = Robot(mode, agent, path, ROUNDS, seeds_of(SEED, ""))

    def ask():
        robot.restart()
        return robot.ask().number

    for number in range(1, ROUNDS + 1):
        point = POINTS[number % 3]
        answer = killed(point, ask)
        if point == "before writing":
            assert not load_study(storage=path).pending
            answer = killed("after answering", ask)
        elif point == "between writing and answering":
            assert answer is None
            answer = load_study(storage=path).pending[0].number  # a trial of a killed process is still pending
        assert answer == number
        robot.restart()
        values = robot.play(robot.study.pending[0])

        def tell(number=number, values=values):
            load_study(storage=path).tell(number, values)

        killed(point, tell)
        if point == "before writing":
            killed("after answering", tell)
        assert load_study(storage=path).trials[-1].status == "measured"
    rewards = load_study(storage=path).to_frame()[robot.names[-1]]
    np.testing.assert_array_equal(rewards.to_numpy(), table["reward"].to_numpy())


@pytest.mark.parametrize(("agent", "kills", "pause"), [("Random", 40, 0.3), ("GP-UCB", 10, 4.0)])
def test_no_recorded_outcome_is_lost_and_no_number_is_used_twice(tmp_path, agent, kills, pause):
    path = tmp_path / "f.db"
    fermenter(path, agent=agent)
    _, recorded = check(path, tmp_path, play(path, tmp_path, kills, seed=100, pause=pause))
    # There was work to be disturbed.
    assert recorded > kills / 2


@pytest.mark.filterwarnings("ignore::cbo_gym.study.campaigns.UnusedDataWarning")
@pytest.mark.parametrize("other", [False, True])
def test_a_study_with_an_earlier_campaign_has_all_its_rounds_or_does_not_exist(tmp_path, other):
    old = tmp_path / "old.db"
    play_some(fermenter(old, agent="Random"), 3)
    found = []
    for statement in itertools.count():
        path = tmp_path / f"{statement}.db"
        if other:
            create_study("another", storage=path, agent="Random", **FERMENTER)
        was_killed = killed_at(statement, path, old)
        exists = path.exists() and "fermenter" in studies_in(path)
        study = load_study("fermenter", storage=path) if exists else fermenter(path, agent="Random", prior=old)
        assert [len(event.payload["rounds"]) for event in study.agent_snapshot()[0].events] == [3]
        found.append(exists)
        if not was_killed:
            break
    assert found == sorted(found)
    assert found[-2:] == [True, True], "the commit comes before the last statements"
    assert found.count(False) > 5
