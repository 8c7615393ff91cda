"""Four processes ask and tell on one file and are killed forty times: nothing told is lost, nothing is double."""

import os
import random
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from cbo_gym.study import load_study
from tests.study.test_study import KILLED, fermenter
from tests.trials.helpers import say

KILLS, PROCESSES = 40, 4


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills processes")
def test_nothing_told_is_lost(tmp_path):
    path, draw, said = tmp_path / "f.db", random.Random(0), set()
    fermenter(path, agent="Random")

    def start():
        command = [sys.executable, "-W", "ignore", "-c", KILLED, path]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(process):
        process.send_signal(signal.SIGKILL)
        out, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors  # it did not end by itself
        said.update(int(line) for line in out.split("\n")[:-1])

    running = [start() for _ in range(PROCESSES)]
    time.sleep(3.0)
    for _ in range(KILLS):
        time.sleep(draw.uniform(0.0, 1.5))
        place = draw.randrange(PROCESSES)
        end(running[place])
        running[place] = start()
    for process in running:
        end(process)
    study = load_study(storage=path)
    frame = study.to_frame()
    told = set(frame.filter(pl.col("status") == "told")["number"])
    assert said <= told
    assert frame["number"].to_list() == list(range(1, frame.height + 1))
    say("kills", f"{KILLS}", f"{frame.height} trials", f"{len(told)} told", f"{frame.height - len(told)} pending")
    assert study.ask().number == frame.height + 1
