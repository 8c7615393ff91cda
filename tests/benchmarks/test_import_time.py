"""``import cbo_gym`` and ``cbo-gym list`` in a fresh interpreter."""

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

pytestmark = pytest.mark.benchmark
COMMANDS = {
    "import cbo_gym": [sys.executable, "-c", "import cbo_gym"],
    "cbo-gym list": [str(Path(sys.executable).with_name("cbo-gym")), "list"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_start_up(benchmark, name):
    benchmark.pedantic(subprocess.run, (COMMANDS[name],), {"check": True, "capture_output": True}, rounds=7)
    seconds = benchmark.stats.stats.median
    print(f"\n{name}: {seconds:.2f} s (median of 7)")
    assert seconds <= 0.7


def times(module):
    """Wall time and CPU time of one import."""
    start, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_importing_takes_at_most_twice_as_long_as_importing_gymnasium():
    rounds = [(times("gymnasium"), times("cbo_gym")) for _ in range(9)]
    for clock in (0, 1):
        theirs, ours = (median(pair[which][clock] for pair in rounds) for which in (0, 1))
        print(f"\n{('wall', 'CPU')[clock]} time: {ours:.2f} s, gymnasium {theirs:.2f} s")
        assert ours <= 2.0 * theirs
