"""Agents that misbehave, for the trial of the evaluator: deeds, by name, that :class:`Does` does during a run.

Do not call any of them in a process that you need.
"""

import atexit
import ctypes
import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from tests.support.agents import Centre

MARKER = "files of this folder may be deleted"
BAD_ROUND = 2
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


class NoText(Exception):  # noqa: N818
    def __str__(self):
        raise ZeroDivisionError("no text")


class ExitsWhenPrinted(Exception):  # noqa: N818
    def __str__(self):
        sys.exit(0)


class CannotTravel(Exception):  # noqa: N818
    def __init__(self):
        super().__init__(threading.Lock(), lambda: 0)


def fail(error):
    raise error


def recurse():
    recurse()


def hang(*_):
    while True:
        pass


def hold_the_interpreter():
    sum(itertools.repeat(0))  # in C: no other thread of Python runs again


def fork(count=1, then=lambda: time.sleep(600)):
    for _ in range(count):
        if os.fork() == 0:
            then()
            os._exit(0)


def leave_a_daemon():
    """Start a grandchild in another session, whose parent ends at once."""

    def detach():
        os.setsid()
        subprocess.Popen(SLEEP, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    fork(then=detach)


def write_everywhere():
    for number in range(3, 64):
        try:
            os.write(number, b"\xff" * 4096)
        except OSError:
            continue


def delete_files():
    if Path(MARKER).exists():
        for path in Path().iterdir():
            path.unlink()


def replace_functions():
    """Replace functions that other modules look up when they call them."""
    np.random.default_rng = lambda *_: np.random.Generator(np.random.PCG64(0))
    np.cumsum = np.minimum.accumulate
    time.monotonic = lambda: 0.0


DEEDS = {
    # ends
    "exit 0": lambda: sys.exit(0),
    "_exit 0": lambda: os._exit(0),
    "abort": os.abort,
    "segfault": lambda: ctypes.string_at(0),
    "kill -9": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "kill its group": lambda: os.killpg(0, signal.SIGKILL),
    # errors
    "KeyboardInterrupt": lambda: fail(KeyboardInterrupt()),
    "BaseException": lambda: fail(BaseException()),
    "error without text": lambda: fail(NoText()),
    "error whose text exits": lambda: fail(ExitsWhenPrinted()),
    "error that cannot be pickled": lambda: fail(CannotTravel()),
    "error of megabytes": lambda: fail(ValueError("x" * 5_000_000)),
    "error in no encoding": lambda: fail(ValueError("\udc80\0\x1b[31m[red]")),
    "recursion": recurse,
    # time
    "hang": hang,
    "hold the interpreter": hold_the_interpreter,
    "read": lambda: sys.stdin.read(),
    # files
    "close all files": lambda: os.closerange(0, 256),
    "write everywhere": write_everywhere,
    "print": lambda: print("x" * 5_000_000),
    "no streams": lambda: [setattr(sys, name, None) for name in ("stdin", "stdout", "stderr")],
    "delete files": delete_files,
    "no more files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)),
    # processes and threads
    "children": lambda: [subprocess.Popen(SLEEP) for _ in range(2)],
    "forks, and die": lambda: (fork(4), os._exit(0)),
    "daemon": leave_a_daemon,
    "thread that is waited for": lambda: threading.Thread(target=hang, daemon=False).start(),
    "atexit": lambda: atexit.register(hang),
    "signals": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    # state of the process
    "numpy errors": lambda: np.seterr(all="raise"),
    "seeds": lambda: (np.random.seed(0), random.seed(0)),  # noqa: NPY002
    "path": sys.path.clear,
    "all modules": lambda: sys.modules.clear(),
    "folder": lambda: os.chdir("/"),
    "environment": lambda: (os.environ.clear(), os.environ.update(OMP_NUM_THREADS="7")),
    "file mode": lambda: os.umask(0o777),
    "clock": lambda: setattr(time, "perf_counter", lambda: -1.0),
    "functions": replace_functions,
    "print is gone": lambda: delattr(__import__("builtins"), "print"),
}  # fmt: skip
NEEDS_A_LIMIT_OF_MEMORY = {
    "memory": lambda: [np.ones(2**20) for _ in itertools.count()],
    "memory of children": lambda: (fork(3, lambda: (np.ones(2**26), time.sleep(600))), hang()),
    "recursion without a limit": lambda: (sys.setrecursionlimit(2**31 - 1), recurse()),
}


class Does(Centre):
    """Plays on after its deed, if it can."""

    def __init__(self, what, method="act"):
        self.what, self.method = what, method

    def _reach(self, method, number):
        if (method, number) == (self.method, BAD_ROUND):
            (DEEDS | NEEDS_A_LIMIT_OF_MEMORY)[self.what]()

    @property
    def _round(self):
        return 1 + len(self.history) - len(self.task.initial_data)

    def setup(self, seed):
        self._reach("reset", BAD_ROUND)

    def act(self, observation):
        self._reach("act", self._round)
        return super().act(observation)

    def update(self, action, observation, reward, info):
        self._reach("update", self._round)
        super().update(action, observation, reward, info)

    def recommend(self):
        self._reach("recommend", self._round - 1)
        return super().recommend()
