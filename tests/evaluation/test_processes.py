import gc
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from cbo_gym._util.processes import worker as workers
from cbo_gym._util.processes.channel import DiedError
from cbo_gym._util.processes.worker import Limits, Worker

START = workers.start_process


@pytest.fixture(autouse=True)
def _real_processes(monkeypatch):
    """Other tests fork them."""
    monkeypatch.setattr(workers, "start_process", START)


def test_calls_are_answered_and_a_death_ends_one_call_only(capfd):
    worker = Worker()
    pid = worker.call(eval, PID)
    assert (worker.call(os.path.basename, "a/b"), pid != os.getpid()) == ("b", True)
    os.kill(pid, signal.SIGINT)  # interrupts are the parent's affair
    assert worker.call(eval, "print('words') or __import__('sys').stdin.read()") == ""
    assert worker.call(eval, PID) == pid
    with pytest.raises(DiedError, match="ended with status 3"):
        worker.call(os._exit, 3)
    assert (other := worker.call(eval, PID)) != pid
    worker.close()
    assert not psutil.pid_exists(other)
    with pytest.raises(DiedError, match="stopped"):
        worker.call(abs, 1)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "words\n")
    worker = Worker()
    pid = worker.call(eval, PID)
    del worker
    gc.collect()
    assert not psutil.pid_exists(pid)


PID = "__import__('os').getpid()"
RESIDENT = "__import__('psutil').Process().memory_info().rss >> 20"
LEAVE = f"(setattr(__import__('builtins'), 'left', b'x' * ({{}} << 20)), {PID})[1]"
TAKE = f"(b'x' * ({{}} << 20), __import__('time').sleep(0.5), {PID})[2]"


@pytest.mark.slow  # by default a sweep plays under limits, in test_sweep.py
def test_nothing_that_a_call_leaves_counts_for_the_next_under_a_memory_limit():
    worker = Worker(Limits(memory_limit=1000))
    first = worker.call(eval, PID)
    room = 1000 - worker.call(eval, RESIDENT)
    assert worker.call(eval, LEAVE.format(50)) == first, "little is left"
    second = worker.call(eval, TAKE.format(room - 25))
    assert second != first, "with what was left it would have been too much"
    assert worker.call(eval, LEAVE.format(400)) != worker.call(eval, PID), "much is left"
    with pytest.raises(DiedError, match=r"used .* MiB of memory; the limit is 1000 MiB"):
        worker.call(eval, TAKE.format(1200))
    worker.close()


PARENT = """
import sys
from cbo_gym._util.processes.worker import Worker
worker = Worker()
print(worker.call(eval, "__import__('os').getpid()"), flush=True)
worker.call(eval, {doing!r})
"""


@pytest.mark.parametrize("doing", ["__import__('time').sleep(600)", "sum(__import__('itertools').repeat(0))"])
def test_workers_end_when_their_parent_is_killed(doing):
    """Also while compiled code lets no other thread of theirs run."""
    if "sum" in doing and sys.platform != "linux":
        pytest.skip("only Linux tells a process of its parent's death")
    command = [sys.executable, "-c", PARENT.format(doing=doing)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        time.sleep(0.2)  # it is at it by now
        parent.kill()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.05)
