"""Processes that are killed while they work on one study, at any time and between writing and answering."""

import os

import pytest

from tests.study.kills import check, play
from tests.study.test_study import fermenter

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="kills processes")]


@pytest.mark.parametrize(("agent", "kills", "pause"), [("Random", 40, 0.3), ("GP-UCB", 10, 4.0)])
def test_nothing_that_was_told_is_lost_and_no_number_is_given_twice(tmp_path, agent, kills, pause):
    path = tmp_path / "f.db"
    fermenter(path, agent=agent)
    said = play(path, tmp_path, kills, seed=100, pause=pause)
    trials, told = check(path, tmp_path, said)
    answered = sum(kind == "told" for kind, _, _ in said)
    print(f"\n{agent}: {kills} kills, {trials} trials, {told} told, of which {told - answered} were not answered")
    assert told > kills / 2  # there was work to be disturbed
