"""Calls in processes of their own: however a call ends, whoever asked for it learns how, and goes on.

A worker is a fresh interpreter that is spoken to through its standard streams. So it needs no guard in the script that
started it, may be started from a daemon process (those of Dask are), and hears at once when its caller is gone: the
stream ends.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO, TypeVar

from cbo_gym.errors import ArgumentError, OperationError

Item = TypeVar("Item")
Result = TypeVar("Result")

MEBIBYTE = 2**20
WATCH_SECONDS = 0.05  # between two looks at a limited call
PATIENCE = 5.0  # seconds until a process whose streams have ended is killed
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
LENGTH = struct.Struct(">Q")  # in front of each message
# SIGINT goes to all processes of a terminal, but how a sweep ends is its parent's affair.
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = {path!r}; "
    "from cbo_gym.evaluation.processes import serve; serve()"
)


class DiedError(OperationError):
    """A call did not come to its end; the message says what ended it."""


class Worker:
    """One process at a time, started when it is first needed and again after it died.

    Args:
        time_limit: seconds that a call may take; None for any.
        memory_limit: resident memory, in MiB, of the process and those that it starts; None for any. Under a limit
            every call has a process of its own, so that none pays for what another left behind.

    Raises:
        ArgumentError: if a limit is not above 0.
    """

    def __init__(self, time_limit: float | None = None, memory_limit: float | None = None) -> None:
        for name, limit in (("time_limit", time_limit), ("memory_limit", memory_limit)):
            if limit is not None and not limit > 0:
                raise ArgumentError(f"{name} must be above 0, or None for no limit; given {limit!r}")
        self._time_limit = time_limit
        self._memory_limit = memory_limit
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def call(self, function: Callable[[Item], Result], item: Item) -> Result:
        """``function(item)``, both importable or picklable in a fresh interpreter.

        Raises:
            DiedError: if the process ends first, by itself or for a limit.
        """
        process = self._running()
        watch = _Watch(process, self._time_limit, self._memory_limit)
        answer = None
        with suppress(OSError), watch:
            _send(process.stdin, pickle.dumps((function, item)))
            answer = _receive(process.stdout)
        if answer is None:
            with suppress(subprocess.TimeoutExpired):  # its streams end shortly before it does
                process.wait(timeout=PATIENCE)
            self._end()
            raise DiedError(watch.reason or _how_it_ended(process.wait()))
        if self._memory_limit is not None:
            self._end()
        return pickle.loads(answer)

    def close(self) -> None:
        """End the process, and with it a call that another thread waits for; there will be no other one."""
        with self._lock:
            self._closed = True
        self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise DiedError("stopped")
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", START.format(path=sys.path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**dict.fromkeys(THREADS, "1"), **os.environ},  # the parallelism is over calls
                )
            return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            _kill(process)
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):  # what was still to be written
                    stream.close()  # type: ignore[union-attr]


class _Watch:
    """Kills a process that takes too long or too much, and knows why; a context manager round a call."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float | None, mebibytes: float | None) -> None:
        self.reason = ""
        self._process, self._seconds, self._mebibytes = process, seconds, mebibytes
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        if self._seconds is not None or self._mebibytes is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _look(self) -> None:
        start = time.monotonic()
        while not self._done.wait(WATCH_SECONDS):
            if self._seconds is not None and time.monotonic() - start > self._seconds:
                self.reason = f"took longer than the time limit of {self._seconds:g} s"
            elif self._mebibytes is not None and (used := _resident(self._process.pid)) > self._mebibytes:
                self.reason = f"used {used:.0f} MiB of memory; the limit is {self._mebibytes:g} MiB"
            if self.reason:
                _kill(self._process)
                return


def _family(pid: int) -> list[Any]:
    """A process and those that it started, as far as they live."""
    import psutil

    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _resident(pid: int) -> float:
    """Resident memory in MiB."""
    import psutil

    total = 0
    for process in _family(pid):
        with suppress(psutil.Error):  # it has just ended
            total += process.memory_info().rss
    return total / MEBIBYTE


def _kill(process: subprocess.Popen[bytes]) -> None:
    import psutil

    for one in _family(process.pid):
        with suppress(psutil.Error):
            one.kill()
    with suppress(OSError):
        process.kill()


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"its process ended with status {status}"
    if -status == signal.SIGKILL:
        return "its process was killed (SIGKILL), perhaps for want of memory"
    return f"its process was killed by {signal.Signals(-status).name}"


def _send(stream: BinaryIO | Any, message: bytes) -> None:
    stream.write(LENGTH.pack(len(message)) + message)
    stream.flush()


def _receive(stream: BinaryIO | Any) -> bytes | None:
    """The next message; None where the stream ends before it does."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    message: bytes = stream.read(length)
    return message if len(message) == length else None


def serve() -> None:
    """In a worker: make the calls that come on the standard input until it ends, which the caller's death does too.

    What a call prints goes to the error stream, and it finds nothing to read.
    """
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    waiting: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(calls, waiting), daemon=True).start()
    while True:
        function, item = pickle.loads(waiting.get())
        _send(answers, pickle.dumps(function(item)))


def _listen(calls: BinaryIO, waiting: SimpleQueue[bytes]) -> None:
    while (message := _receive(calls)) is not None:
        waiting.put(message)
    os._exit(1)  # nobody waits for the call that is being made
