"""Processes that are killed while they work on a study: at any time, between writing and answering."""

import itertools
import os

import pytest

from cbo_gym.study import create_study, load_study, studies_in
from tests.support.studies import FERMENTER, fermenter
from tests.support.studies import play as play_some
from tests.support.study_kills import check, killed_at, play

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes")]


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
