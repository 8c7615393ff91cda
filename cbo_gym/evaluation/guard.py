"""Ending what a process started, whatever became of it: by a mark in the environment, which children inherit.

Run as a program, this is a guard: it waits for its standard input to end, as it does when the process that started it
does, and ends all that carries the mark then. It imports nothing else of this package, for it is there all the time.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

MARK = "CBO_GYM_WORKER"  # the environment variable
PATIENCE = 5.0  # seconds until what starts others all the time is let go
PAUSE = 0.01  # seconds between two looks


def guarded_mark() -> str:
    """What the marks of this process's workers begin with. The first call starts the guard."""
    with _lock:
        return _start()


@cache
def _start() -> str:
    mark = uuid.uuid4().hex
    guard = subprocess.Popen(
        [sys.executable, "-P", __file__, mark],
        stdin=subprocess.PIPE,  # ends with this process
        stdout=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name != MARK},
        process_group=0,  # what ends the group of this process spares it
    )
    atexit.register(guard.communicate)
    return mark


_lock = threading.Lock()


def end_marked(mark: str) -> None:
    """Kill all processes whose mark begins so, and what they start meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while (found := list(_marked(mark))) and time.monotonic() < deadline:
        for process in found:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(PAUSE)


def _marked(mark: str) -> Iterator[int]:
    import psutil

    for pid in psutil.pids():
        with suppress(psutil.Error, OSError):  # somebody else's, or it has just ended
            if pid != os.getpid() and psutil.Process(pid).environ().get(MARK, "").startswith(mark):
                yield pid


if __name__ == "__main__":
    sys.stdin.read()
    end_marked(sys.argv[1])
