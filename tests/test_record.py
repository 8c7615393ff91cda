"""Nothing that was played before is played differently now: see ``tests/record.py``."""

import numpy as np
import pytest

from tests import record

QUICK = ("Random", "GPOO", "StoOO", "AVE-StoOO", "SEM-UCB", "METS", "SGB", "IGP-UCB")


def test_every_environment_and_agent_is_recorded():
    kept = record.load()
    names = {entry.id for entry in record.entries()}
    assert set(kept["environments"]) == set(kept["oracles"]) == names
    from cbo_gym.specs import known_agents

    assert {key.partition(" on ")[0] for key in kept["agents"]} == set(known_agents())


def test_environments_behave_as_recorded():
    found = record.on_one_thread(record.environments)
    assert record.differences(found, "environments") == []


def require_comparable(part):
    if not record.is_comparable(part):
        pytest.skip("recorded on another platform, where last digits differ")


@pytest.mark.parametrize("agent", QUICK)
def test_quick_agents_play_as_recorded(agent):
    require_comparable("agents")
    found = record.on_one_thread(record.runs, agent)
    assert found
    assert record.differences(found, "agents") == []


@pytest.mark.slow
@pytest.mark.parametrize("part", ["oracles", "agents"])
def test_all_of_it_is_as_recorded(part):
    require_comparable(part)
    found = record.on_one_thread(record.PARTS[part])
    assert record.differences(found, part) == []


def test_a_change_of_the_last_digit_is_a_difference():
    reward = 0.1
    assert record.digest({"reward": [reward]}) != record.digest({"reward": [np.nextafter(reward, 1.0)]})
    kept = record.load()["environments"]
    changed = {name: {**values, "rounds": "other", "total_reward": values["total_reward"] + 1.0}
               for name, values in kept.items()}  # fmt: skip
    assert len(record.differences(changed, "environments")) >= len(kept)
