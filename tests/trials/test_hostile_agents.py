"""Agents that do what no agent should, in one sweep with well-behaved ones."""

import json
import uuid
from itertools import chain, cycle, islice, product

import pytest

from cbo_gym import sweep
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.evaluation import load_runs
from tests.trials.helpers import end_of, environment, essences, played_again, python
from tests.trials.hostile import DEEDS, MARKER, NEEDS_A_LIMIT_OF_MEMORY

pytestmark = pytest.mark.slow

ENV, HORIZON = "CBO/Dropwave-v0", 4
GOOD = ("Random", "Random", "tests.support.agents:Centre", "Random", "GP-UCB")
IN_A_METHOD = [
    *product(("_exit 0", "exit 0", "error without text"), ("reset", "update", "recommend")), ("hang", "recommend")
]  # fmt: skip
CALLS = [
    *(f"Does(what={what!r})" for what in DEEDS),
    *(f"Does(what={what!r}, method={method!r})" for what, method in IN_A_METHOD),
]
BAD = [str(Spec.parse(f"tests.trials.hostile:{call}")) for call in CALLS]
HUNGRY = [f"tests.trials.hostile:Does(what={what!r})" for what in NEEDS_A_LIMIT_OF_MEMORY]
# Each hostile run is followed by a well-behaved one on either of the two workers.
SWEEP = """
import json, sys
from pathlib import Path
from cbo_gym.evaluation.play.sweep import Execution, plan, run_jobs
words = json.loads(sys.argv[1])
jobs = [job for agent, seed in words["pairs"] for job in plan([agent], [words["env"]], [seed], Path(words["folder"]),
        words["horizon"])]
run_jobs(jobs, n_jobs=2, execution=Execution(**words["limits"]))
"""


def swept(pairs, folder, work, **limits):
    """Play pairs of agents and seeds in this order in another process; return processes that are left behind."""
    mark = uuid.uuid4().hex
    words = json.dumps({"pairs": pairs, "env": ENV, "folder": str(folder), "horizon": HORIZON, "limits": limits})
    done = python("-c", SWEEP, words, cwd=work, env=environment(mark), errors="replace", check=False, timeout=1200)
    left = end_of(mark)
    assert done.returncode == 0, done.stderr[-3000:]
    return left


@pytest.mark.parametrize(("bad", "limits"), [(BAD, {"time_limit": 20}), (HUNGRY, {"memory_limit": 1000})],
                         ids=["deeds", "memory"])  # fmt: skip
def test_hostile_agents_harm_no_other_run(tmp_path, bad, limits):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / MARKER).touch()
    good = list(zip(islice(cycle(GOOD), len(bad)), range(len(bad)), strict=False))
    pairs = list(chain.from_iterable(([one, 0], two) for one, two in zip(bad, good, strict=True)))
    left = swept(pairs, tmp_path / "disturbed", tmp_path / "work", **limits)

    undisturbed = tmp_path / "undisturbed"
    for agent in {name for name, _ in good}:
        sweep([agent], [ENV], [seed for name, seed in good if name == agent], undisturbed, horizon=HORIZON, n_jobs=2)
    ours, theirs = essences(tmp_path / "disturbed"), essences(undisturbed)
    changed = [name for name, twin in theirs.items() if ours.get(name) != twin]
    runs = [run for run in load_runs(tmp_path / "disturbed") if run.agent in bad]
    wrong = []
    for run in runs:
        try:
            assert run.status == "failed" or played_again(run) is None
            assert len(run.error) < 20_000
        except AssertionError as error:
            wrong.append((run.agent, str(error)[:300]))
    lost = sorted(set(bad) - {run.agent for run in runs})
    assert (lost, wrong, changed) == ([], [], [])
    assert len(left) <= sum("daemon" in name for name in bad), "only what an agent detaches lives on"
