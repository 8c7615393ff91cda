"""Nothing that was played before is played differently now: see ``tests/record.py``."""

import json

import numpy as np
import pytest

from cbo_gym.agent_registry.finding import known_agents
from cbo_gym.agents import Random
from tests import record
from tests.support.environments import FIRST_OF_MODE

QUICK = ("Random", "GPOO", "SGB")
RANDOM = "Random on CBO/Dropwave-Noisy-v0"


def test_every_environment_and_agent_is_recorded_as_of_its_revision():
    kept = record.load()
    assert set(kept["environments"]) == set(kept["oracles"]) == set(record.names("environments"))
    assert {key.partition(" on ")[0] for key in kept["agents"]} == set(known_agents())
    missing = [name for part in record.PARTS for name in kept[part] if not record.is_recorded(name, part)]
    assert missing == [], "python -m tests.record --new"


def test_an_environment_of_each_mode_behaves_as_recorded():
    assert record.differences(record.found_of("environments", FIRST_OF_MODE.values()), "environments") == []


@pytest.mark.parametrize("agent", QUICK)
def test_quick_agents_play_as_recorded(agent):
    found = record.found_of("agents", [agent])
    assert found
    assert record.differences(found, "agents") == []


@pytest.mark.slow
@pytest.mark.parametrize("part", record.PARTS)
def test_all_of_it_is_as_recorded(part):
    assert record.differences(record.found_of(part), part) == []


def test_a_change_of_the_last_digit_is_a_difference():
    reward = 0.1
    assert record.digest({"reward": [reward]}) != record.digest({"reward": [np.nextafter(reward, 1.0)]})


def test_a_change_of_behaviour_names_the_revision_to_raise(monkeypatch):
    kept = record.load()["agents"][RANDOM]
    assert "table" in kept["elsewhere"]  # it depends on no processor
    values = {"table": kept["table"], "total_reward": kept["total_reward"]}
    assert record.differences({RANDOM: values}, "agents") == []
    (said,) = record.differences({RANDOM: values | {"table": "other"}}, "agents")
    assert said == f"{RANDOM}: table; if that is meant, raise the revision of Random (now 1) or {RANDOM[10:]} (now 1)"
    monkeypatch.setattr(Random, "revision", 2)
    (said,) = record.differences({RANDOM: values}, "agents")
    assert said == f"{RANDOM} is not recorded of today's revisions: python -m tests.record --new"


def test_elsewhere_totals_are_compared_within_rounding(monkeypatch):
    monkeypatch.setattr(record, "fingerprint", lambda: {"machine": "an abacus"})
    kept = next(values for values in record.load()["agents"].values() if values["elsewhere"] == ["total_reward"])
    name = next(name for name, values in record.load()["agents"].items() if values is kept)
    total = kept["total_reward"]
    assert record.differences({name: {"table": "other", "total_reward": total * (1 + 1e-9)}}, "agents") == []
    (said,) = record.differences({name: {"table": "other", "total_reward": total + 1.0}}, "agents")
    assert said.startswith(f"{name}: total_reward; if that is meant")


def test_new_records_are_added_and_the_others_stay(tmp_path, monkeypatch, capsys):
    kept = json.loads(record.FILE.read_text())
    del kept["agents"][RANDOM]
    before = json.dumps(kept)
    monkeypatch.setattr(record, "FILE", tmp_path / "record.json")
    record.FILE.write_text(before)
    record.load.cache_clear()
    monkeypatch.setattr("sys.argv", ["record", "Random", "--new", "--part", "agents"])
    record.main()
    assert capsys.readouterr().out == "1 records written\n"
    after = json.loads(record.FILE.read_text())
    added = after["agents"].pop(RANDOM)
    assert after["agents"] == kept["agents"]
    assert added["revisions"] == {"Random": 1, "CBO/Dropwave-Noisy-v0": 1}
    record.load.cache_clear()
