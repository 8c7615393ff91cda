"""The start of the package and of its command line, and a round of an agent in another process."""

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from cbo_gym import evaluate
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.referee.isolated import IsolatedAgent

pytestmark = pytest.mark.benchmark
LIST = [str(Path(sys.executable).with_name("cbo-gym")), "list"]


@pytest.mark.parametrize("command", [[sys.executable, "-c", "import cbo_gym"], LIST], ids=["import", "list"])
def test_start_up(benchmark, command):
    benchmark.pedantic(subprocess.run, (command,), {"check": True, "capture_output": True}, rounds=7)
    assert benchmark.stats.stats.median <= 0.7


def times(module):
    """Return the wall time and the processor time of one import."""
    start, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_importing_takes_at_most_twice_as_long_as_importing_gymnasium():
    rounds = [(times("gymnasium"), times("cbo_gym")) for _ in range(9)]
    for clock, name in enumerate(("wall", "CPU")):
        theirs, ours = (median(pair[which][clock] for pair in rounds) for which in (0, 1))
        print(f"\n{name} time: {ours:.2f} s, gymnasium {theirs:.2f} s")
        assert ours <= 2.0 * theirs


@pytest.mark.parametrize("recommend", ["every", "end"])
def test_isolation_costs_at_most_a_third_of_a_millisecond_a_round(recommend):
    how, costs = {"horizon": 1500, "label": "Random", "recommend": recommend}, []
    for _ in range(4):
        agent = IsolatedAgent(Spec("Random"))
        apart = evaluate(agent, "CBO/Dropwave-v0", 100, **how)
        agent.close()
        costs.append(apart.seconds_a_round - evaluate("Random", "CBO/Dropwave-v0", 100, **how).seconds_a_round)
    print(f"\nisolation, recommend={recommend!r}: {1e3 * min(costs):.3f} to {1e3 * max(costs):.3f} ms a round")
    assert min(costs) <= 0.3e-3
