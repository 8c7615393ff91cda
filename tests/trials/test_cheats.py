"""Agents that cheat: in one process they get away with it, in isolation they score as random play does."""

import json

import numpy as np
import pytest

from cbo_gym import Execution, sweep
from cbo_gym.evaluation import load_runs
from tests.trials.cheats import CHEATS, AsksAnotherInterpreter
from tests.trials.helpers import python, say

pytestmark = pytest.mark.slow

ENV, SEEDS, ROUNDS = "CBO/Dropwave-v0", range(100, 105), 50
NAMES = [f"tests.trials.cheats:{kind.__name__}" for kind in CHEATS]
INTERPRETER = f"tests.trials.cheats:{AsksAnotherInterpreter.__name__}"
IN_ONE_PROCESS = """
import json, sys
from cbo_gym import evaluate
runs = [evaluate(sys.argv[1], sys.argv[2], seed, horizon=int(sys.argv[3]), recommend="end") for seed in (100, 101)]
print(json.dumps([run.table["average_regret"][-1] / (run.optimum - run.random_value) for run in runs]))
"""


def regrets(folder):
    """Agent -> mean regret in units of the gap, by seed."""
    found = {}
    for run in load_runs(folder):
        assert run.status == "finished", run.error
        found.setdefault(run.agent, {})[run.seed] = run.table["average_regret"][-1] / (run.optimum - run.random_value)
    return {agent: np.array([own[seed] for seed in SEEDS]) for agent, own in found.items()}


def test_cheats_score_as_random_play_does(tmp_path):
    sweep(["Random", *NAMES, INTERPRETER], [ENV], SEEDS, tmp_path / "plain", horizon=ROUNDS, recommend="end")
    sweep(["Random", *NAMES, INTERPRETER], [ENV], SEEDS, tmp_path / "blind", horizon=ROUNDS, recommend="end",
          execution=Execution(blind="words of the referee"))  # fmt: skip
    plain, blind = regrets(tmp_path / "plain"), regrets(tmp_path / "blind")
    for agent in (*NAMES, INTERPRETER):
        say(agent, f"known {plain[agent].mean():.3f}", f"blind {blind[agent].mean():.3f}")
    say("Random", f"known {plain['Random'].mean():.3f}", f"blind {blind['Random'].mean():.3f}")
    for agent in NAMES:
        np.testing.assert_array_equal(plain[agent], plain["Random"])
        np.testing.assert_array_equal(blind[agent], blind["Random"])
    np.testing.assert_array_equal(blind[INTERPRETER], blind["Random"])
    assert plain[INTERPRETER].max() < 1e-6, "a process can start another one, see the guide's page on protection"


@pytest.mark.parametrize("agent", NAMES)
def test_in_one_process_they_get_away_with_it(agent):
    done = python("-c", IN_ONE_PROCESS, agent, ENV, 20)
    found = json.loads(done.stdout.splitlines()[-1])
    say(agent, f"in one process {np.mean(found):.3f}")
    assert np.mean(found) < 0.5
