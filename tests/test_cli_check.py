"""The command check: contracts of agents and problems."""

import pytest
from typer.testing import CliRunner

from cbo_gym.cli import app

FORGETFUL = """
import numpy as np

from cbo_gym import Agent, Mode


class Forgetful(Agent):
    modes = frozenset({Mode.SOFT})
    plays = 0

    def act(self, observation):
        Forgetful.plays += 1
        return np.full(self.task.codec.dim, (Forgetful.plays % 7) / 7.0)
"""


def check(*words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["check", *words])


def test_an_agent_of_the_package_lacks_nothing():
    done = check("agent", "GP-UCB", "-e", "CBO/Dropwave-v0")
    assert done.exit_code == 0, done.output
    assert {line.split()[0] for line in done.stdout.splitlines()[1:]} == {"ok"}


def test_a_broken_contract_is_named(tmp_path, monkeypatch):
    (tmp_path / "forgetful.py").write_text(FORGETFUL)
    monkeypatch.chdir(tmp_path)
    done = check("agent", "forgetful:Forgetful")
    assert done.exit_code == 1, done.output
    assert "two runs with the same seed differ" in done.stdout


@pytest.mark.parametrize(
    ("words", "status", "printed"),
    [
        (["agent", "CBO", "-e", "CBO/Dropwave-v0"], 1, "plays hard"),
        (["agent", "Nobody"], 2, "Nobody"),
        (["problem", "cbo_gym.problems.systems.function_networks:dropwave", "--mode", "soft"], 0, "ok"),
        (["problem", "missing.yaml"], 2, "missing.yaml"),
    ],
)
def test_what_is_refused(words, status, printed):
    done = check(*words)
    assert done.exit_code == status, done.output
    assert printed in done.output
