"""Agents of other packages: what one of them does wrong is named, and everything else goes on working."""

import shutil
import sys

import pytest

from cbo_gym import evaluate
from cbo_gym.agent_registry.finding import create_agent, known_agents
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.play.grid import plan

MODULE = """
from cbo_gym import Agent, Mode

class Still(Agent):
    modes = frozenset({Mode.SOFT})
    def __init__(self, level: float = 0.5) -> None:
        self.level = level
    def act(self, observation):
        return self.task.action_space.low + self.level
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder on the path with the package hostile-agents in it, installed as pip would."""
    (tmp_path / "hostile.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("raise RuntimeError('this module was never finished')")
    installed = tmp_path / "hostile_agents-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile-agents\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[cbo_gym.agents]\nMCBO = hostile:Still\nStill = hostile:Still\nBroken = broken:Agent\nGone = nowhere:Agent\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("hostile", None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MCBO", "the package hostile-agents also has an agent 'MCBO', hostile:Still.*import path hostile:Still"),
        ("Broken", "the agent 'Broken' of the package hostile-agents.*RuntimeError: this module was never finished"),
        ("Gone", "'Gone' of the package hostile-agents"),
    ],
)
@pytest.mark.usefixtures("outside")
def test_an_agent_that_shadows_or_cannot_be_imported_is_named(name, message):
    with pytest.raises(ArgumentError, match=message):
        create_agent(name)


@pytest.mark.usefixtures("outside")
def test_the_rest_works_and_all_agents_means_those_that_can_be_used(tmp_path):
    assert type(create_agent("hostile:Still")).__module__ == "hostile"
    assert type(create_agent("Still(level=0.2)")).__name__ == "Still"
    assert evaluate("Still", "CBO/Dropwave-v0", 0, horizon=2).table.height == 2
    with pytest.warns(UserWarning, match="left out") as caught:
        jobs = plan("*", "CBO/Dropwave-v0", 1, tmp_path / "runs")
    assert {str(job.agent) for job in jobs} == {*zoo(), "Still"} - {"MCBO"}
    assert ["hostile-agents" in str(warning.message) for warning in caught] == [True] * 3


def test_what_is_installed_meanwhile_is_found(outside):
    before = known_agents()
    shutil.move(outside / "hostile_agents-1.0.dist-info", outside / "elsewhere")
    between = known_agents()
    shutil.move(outside / "elsewhere", outside / "hostile_agents-1.0.dist-info")
    assert "Still" in before
    assert "Still" not in between
    assert known_agents() == before
