"""Calls in other processes, which report to the caller how each call ends.

A worker is a fresh interpreter that receives calls through its standard streams. So a script that starts one needs no
``if __name__ == "__main__"``, a daemon process (such as Dask's) can start one, and it ends with its caller. It leads a
process group, which is ended as a whole.

A worker unpickles its caller's messages and answers in plain data, because untrusted code may run in it. The pools of
loky and pebble unpickle answers, limit no memory and end no process groups.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import cloudpickle

from cbo_gym.channel import FAILED, INTERIM, MAX_MESSAGE_BYTES, DiedError, GarbledError, guard_process, receive, send
from cbo_gym.errors import ArgumentError
from cbo_gym.serialization import from_plain, read_message

Item = TypeVar("Item")
Result = TypeVar("Result")

HAS_GROUPS = os.name == "posix"
MEBIBYTE = 2**20
# Share of a memory limit; a process that holds more after a call is not used again.
MAX_HELD = 0.25
# Seconds between two checks of a process.
WATCH_SECONDS = 0.05
# Seconds until a process whose streams have ended is killed.
PATIENCE = 5.0
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# SIGINT goes to all processes of a terminal, but only the parent decides how a sweep ends. The process is closed to
# others before it imports anything slow, see channel.guard_process.
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); import ctypes; "
    "sys.platform == 'linux' and ctypes.CDLL(None).prctl(4, 0); sys.path[:] = {path!r}; "
    "from cbo_gym.player import serve; serve()"
)


class LateError(DiedError):
    """A call took longer than its limit."""


class RaisedError(DiedError):
    """A call raised an error; the message is its traceback.

    Args:
        kind: Name of the error's class.
        message: Its message.
        trace: Its traceback.
    """

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(trace)
        self.kind, self.message, self.trace = kind, message, trace


@dataclass(frozen=True)
class Limits:
    """Limits of time and memory of a call.

    Args:
        time_limit: Seconds; None for no limit.
        memory_limit: Resident memory of the process and those that it starts, in MiB; None for no limit.

    Raises:
        ArgumentError: if a limit is not above 0.
    """

    time_limit: float | None = None
    memory_limit: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("time_limit", self.time_limit), ("memory_limit", self.memory_limit)):
            number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if limit is not None and not (number and limit > 0):
                raise ArgumentError(f"{name} must be a number above 0, or None for no limit; given {limit!r}")


NO_LIMITS = Limits()


class Worker:
    """One process at a time, started when it is first needed and again after it died; it ends with this object.

    Args:
        limits: Limits of each call. No call fails because of memory that an earlier one holds: a call that exceeds the
            limit in a used process is repeated in a new one.
        max_answer_bytes: Largest size of an answer.
        variables: Environment variables of the process, in addition to those of this one.
    """

    def __init__(
        self,
        limits: Limits = NO_LIMITS,
        *,
        max_answer_bytes: int = MAX_MESSAGE_BYTES,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._limits, self._max_answer_bytes, self._variables = limits, max_answer_bytes, variables or {}
        self._process: _Process | None = None
        self._ending: Callable[[], object] = lambda: None
        self._lock = threading.Lock()
        self._closed = False

    def call(
        self,
        function: Callable[[Item], Result],
        item: Item,
        *,
        keep: bool = True,
        hear: Callable[[Any], object] | None = None,
        time_limit: float | None = None,
        pack: Callable[[Any], bytes] = cloudpickle.dumps,
    ) -> Result:
        """Return ``function(item)``.

        Args:
            function: Function that returns values that :func:`cbo_gym.serialization.to_plain` can write.
            item: Its argument.
            keep: Whether the process is used for the next call, with all that this one changes in it.
            hear: Called with each message that the call sends by :func:`cbo_gym.player.say`; if it raises, the process
                is ended.
            time_limit: Seconds, instead of the worker's own limit.
            pack: Pickles function and item; ``pickle.dumps`` is faster if both are importable.

        Raises:
            RaisedError: if it raises an error, after which the process is ended.
            LateError: if it takes too long.
            DiedError: if the process ends first, by itself or because of a limit, or its answer is invalid.
        """
        limits = self._limits if time_limit is None else replace(self._limits, time_limit=time_limit)
        used = self._process is not None
        process = self._running()
        try:
            answer = process.ask(pack((function, item)), limits, self._max_answer_bytes, hear)
        # Also an exception of hear.
        except BaseException:
            self._end()
            raise
        if answer is None:
            # The streams of a process end shortly before it does.
            with suppress(subprocess.TimeoutExpired):
                process.popen.wait(timeout=PATIENCE)
            self._end()
            if used and process.for_memory:
                return self.call(function, item, keep=keep, hear=hear, time_limit=time_limit, pack=pack)
            raise process.ended or DiedError(describe_end(process.popen.wait()))
        kind, content = answer
        limit = self._limits.memory_limit
        if kind == FAILED or not keep or (limit is not None and _resident(process.popen.pid) > MAX_HELD * limit):
            self._end()
        if kind == FAILED:
            raise RaisedError(*map(str, content))
        return content

    def close(self) -> None:
        """End the process for good, and with it a call that another thread waits for."""
        with self._lock:
            self._closed = True
        self._end()

    def _running(self) -> _Process:
        with self._lock:
            if self._closed:
                raise DiedError("stopped")
            if self._process is None:
                self._process = _Process(self._variables)
                self._ending = weakref.finalize(self, end_process, self._process.popen)
                # A fork of this process must not end it.
                self._ending.atexit = False
            return self._process

    def _end(self) -> None:
        with self._lock:
            self._process, ending = None, self._ending
        # A second call does nothing.
        ending()


class _Process:
    """A process, and a thread that kills it if a call exceeds its limits.

    If the process ends during a call, the thread kills its children, which may hold its streams open.

    Attributes:
        popen: The process.
        ended: Reason why the thread killed it; None otherwise.
        for_memory: Whether the process used too much memory.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.popen = start_process(variables)
        self.ended: DiedError | None = None
        self.for_memory = False
        self._limits = NO_LIMITS
        self._begun: float | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def ask(
        self, message: bytes, limits: Limits, max_bytes: int, hear: Callable[[Any], object] | None
    ) -> tuple[str, Any] | None:
        """Send a message; return the kind and the content of the answer, or None if the process ends.

        Raises:
            GarbledError: if the answer is invalid.
        """
        number = secrets.randbits(64)
        with self._lock:
            self._limits, self._begun = limits, time.monotonic()
        try:
            # If the process has ended, the next line notices it.
            with suppress(OSError):
                send(self.popen.stdin, number, message)
            while (received := receive(self.popen.stdout, max_bytes)) is not None:
                if received[0] != number:
                    raise GarbledError("its process gave an answer that was not asked for")
                kind, content = _read(received[1])
                if kind != INTERIM:
                    return kind, content
                if hear is not None:
                    hear(content)
        finally:
            with self._lock:
                self._begun = None
        return None

    def _watch(self) -> None:
        while self.popen.poll() is None:
            time.sleep(WATCH_SECONDS)
            with self._lock:
                if self._begun is not None:
                    self._check(time.monotonic() - self._begun)

    def _check(self, seconds: float) -> None:
        time_limit, mebibytes = self._limits.time_limit, self._limits.memory_limit
        if time_limit is not None and seconds > time_limit:
            self.ended = LateError(f"took longer than the time limit of {time_limit:g} s")
        elif mebibytes is not None and (used := _resident(self.popen.pid)) > mebibytes:
            self.for_memory = True
            self.ended = DiedError(f"used {used:.0f} MiB of memory; the limit is {mebibytes:g} MiB")
        if self.ended or self.popen.poll() is not None:
            kill(self.popen)


def _read(answer: bytes) -> tuple[str, Any]:
    try:
        kind, content = from_plain(read_message(answer))
    except (ArgumentError, TypeError, ValueError) as error:
        raise GarbledError(f"its process gave an answer that cannot be read: {error}") from error
    return kind, content


def start_process(variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process in its own group that receives calls through its standard streams.

    Args:
        variables: Environment variables, in addition to those of this process.
    """
    # Python itself ignores other entries.
    path = [entry for entry in sys.path if isinstance(entry, str)]
    # This process holds the pipes.
    guard_process()
    return _Starter.thread.submit(
        subprocess.Popen,
        [sys.executable, "-P", "-c", START.format(path=path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Calls run in parallel, so each has one thread.
        env={**dict.fromkeys(THREADS, "1"), **os.environ, **variables},
        process_group=0 if HAS_GROUPS else None,
    ).result()


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process of :func:`start_process` and all that it started; close its streams."""
    kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout):
        # The rest cannot be written.
        with suppress(OSError):
            stream.close()  # type: ignore[union-attr]


class _Starter:
    """A thread that lives as long as this process, because on Linux a child dies with the *thread* that started it."""

    thread = ThreadPoolExecutor(1)

    @classmethod
    def renew(cls) -> None:
        cls.thread = ThreadPoolExecutor(1)


if HAS_GROUPS:
    # A fork has no such thread.
    os.register_at_fork(after_in_child=_Starter.renew)


def _family(pid: int) -> list[Any]:
    """Return a process and those that it started, if they still run."""
    import psutil

    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _resident(pid: int) -> float:
    """Return the resident memory in MiB of a process and those that it started."""
    import psutil

    total = 0
    for process in _family(pid):
        # The process may just have ended.
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total / MEBIBYTE


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its descendants, with the rest of their process groups."""
    import psutil

    family = _family(process.pid)
    leaders = {process.pid} | {member.pid for member in family if _leads_a_group(member.pid)}
    for member in family:
        with suppress(psutil.Error):
            member.kill()
    for pid in leaders if HAS_GROUPS else ():
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def _leads_a_group(pid: int) -> bool:
    """Return whether the process leads its group, which could otherwise be that of this process."""
    if not HAS_GROUPS:
        return False
    try:
        return os.getpgid(pid) == pid
    # The process has just ended.
    except OSError:
        return False


def describe_end(status: int) -> str:
    """Describe the end of a process by its exit status."""
    if status >= 0:
        return f"its process ended with status {status}"
    if -status == signal.SIGKILL:
        return "its process was killed (SIGKILL), perhaps because it ran out of memory"
    known = {number.value: number.name for number in signal.Signals}
    return f"its process was killed by {known.get(-status, f'signal {-status}')}"
