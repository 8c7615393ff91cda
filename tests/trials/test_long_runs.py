"""A run of a thousand rounds that is killed at round 700 goes on there, bit for bit."""

import os
import signal
import time

import pytest

from cbo_gym import evaluate
from tests.support.runs import rounds_alike
from tests.trials.helpers import python, say

ENV, ROUNDS, KILLED, EVERY = "CBO/Dropwave-v0", 1000, 700, 100
SCRIPT = """
import os, signal, sys
import cbo_gym

def stop(played):
    if played.round == {killed} + 1:
        os.kill(os.getpid(), signal.SIGKILL)

how = {{"horizon": {rounds}, "recommend": "powers", "checkpoint": sys.argv[2], "checkpoint_every": {every}}}
cbo_gym.evaluate(sys.argv[1], {env!r}, 100, **how, callbacks=[stop])
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills a process")
@pytest.mark.parametrize("agent", ["Random", "GP-UCB", "EIFN"])
def test_a_long_run_goes_on_where_it_was_killed(agent, tmp_path):
    path = tmp_path / "kept"
    script = SCRIPT.format(killed=KILLED, rounds=ROUNDS, every=EVERY, env=ENV)
    done = python("-c", script, agent, path, check=False)
    assert done.returncode == -signal.SIGKILL
    size, rounds, begun = path.stat().st_size, [], time.perf_counter()
    how = {"horizon": ROUNDS, "recommend": "powers"}
    run = evaluate(agent, ENV, 100, **how, checkpoint=path, checkpoint_every=EVERY, callbacks=[rounds.append])
    seconds = time.perf_counter() - begun
    assert rounds[0].round == KILLED + 1
    begun = time.perf_counter()
    assert rounds_alike(run, evaluate(agent, ENV, 100, **how))
    whole = time.perf_counter() - begun
    say(
        f"{agent}, {ROUNDS} rounds",
        f"the last 300 {seconds:.1f} s of {whole:.1f} s",
        f"checkpoint {size / 2**20:.1f} MiB",
    )
