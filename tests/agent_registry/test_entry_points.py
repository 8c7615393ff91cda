"""Agents of other packages: what one of them does wrong is named, and everything else goes on working."""

import os
import subprocess
import sys

import pytest

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
def outside(tmp_path):
    """A folder on the path with the package hostile-agents in it, installed as pip would."""
    (tmp_path / "hostile.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("raise RuntimeError('this module was never finished')")
    installed = tmp_path / "hostile_agents-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile-agents\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[cbo_gym.agents]\nMCBO = hostile:Still\nStill = hostile:Still\nBroken = broken:Agent\nGone = nowhere:Agent\n"
    )
    return tmp_path


def run(folder, code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=folder)


def test_an_agent_that_shadows_or_cannot_be_imported_is_named_and_the_rest_works(outside):
    code = """
from cbo_gym import evaluate
from cbo_gym.errors import CBOGymError
from cbo_gym.agent_registry.finding import create_agent
for name in ("MCBO", "Broken", "Gone"):
    try:
        create_agent(name)
    except CBOGymError as error:
        print(error)
print(type(create_agent("hostile:Still")).__module__, type(create_agent("Still(level=0.2)")).__name__)
print(evaluate("Still", "CBO/Dropwave-v0", 0, horizon=2).table.height)
"""
    done = run(outside, code)
    assert done.returncode == 0, done.stderr
    shadow, broken, gone, other, rounds = done.stdout.strip().splitlines()
    assert "the package hostile-agents also has an agent 'MCBO', hostile:Still" in shadow
    assert "import path hostile:Still" in shadow
    assert "the agent 'Broken' of the package hostile-agents" in broken
    assert "RuntimeError: this module was never finished" in broken
    assert "'Gone' of the package hostile-agents" in gone
    assert (other, rounds) == ("hostile Still", "2")


def test_all_agents_means_those_that_can_be_used(outside):
    code = """
import warnings
from cbo_gym.agent_registry.finding import usable_agents
from cbo_gym.agent_registry.labels import expand
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    names = expand(["*"], usable_agents, "cbo-gym agents")
print(*names)
print(*[str(one.message) for one in caught if "left out" in str(one.message)], sep="\\n")
"""
    done = run(outside, code)
    assert done.returncode == 0, done.stderr
    names, *warned = done.stdout.strip().splitlines()
    assert {"Random", "GP-UCB", "Still"} <= set(names.split())
    assert not {"MCBO", "Broken", "Gone"} & set(names.split())
    assert len(warned) == 3
    assert all("hostile-agents" in line for line in warned)


def test_what_is_installed_meanwhile_is_found(outside):
    code = """
import shutil
from cbo_gym.agent_registry.finding import known_agents
before = known_agents()
shutil.move("hostile_agents-1.0.dist-info", "elsewhere")
between = known_agents()
shutil.move("elsewhere", "hostile_agents-1.0.dist-info")
print("Still" in before, "Still" in between, known_agents() == before)
"""
    done = run(outside, code)
    assert done.stdout.split() == ["True", "False", "True"], done.stderr
