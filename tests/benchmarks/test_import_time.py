"""``import cbo_gym`` and ``cbo-gym list`` in a fresh interpreter."""

import subprocess
import sys
from pathlib import Path

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
