"""Function calls in other processes, with limits of time and memory, for runs of agents and untrusted code.

A worker is a new Python interpreter that receives calls through its standard streams. So a script that starts one needs
no ``if __name__ == "__main__"``, and a daemon process (such as Dask's) can start one. A worker ends with its caller,
and all processes that it started end with it.

A worker unpickles the calls. Its answers are plain data (:mod:`cbo_gym._util.plain`), because untrusted code may run in
it. The pools of loky and pebble unpickle answers, limit no memory and do not end the processes that a call started.
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
from types import MappingProxyType
from typing import Any, TypeVar

import cloudpickle
import psutil

from cbo_gym._util.plain import read_plain
from cbo_gym._util.processes.channel import (
    FAILED,
    MAX_MESSAGE_BYTES,
    RETURNED,
    Channel,
    DiedError,
    GarbledError,
    guard_process,
)
from cbo_gym.errors import ArgumentError

Item = TypeVar("Item")
Result = TypeVar("Result")

HAS_PROCESS_GROUPS = os.name == "posix"
MEBIBYTE = 2**20
# A process that still holds more than this fraction of its memory limit after a call is not used again.
MAX_HELD_FRACTION = 0.25
# Seconds between two checks of a process.
WATCH_SECONDS = 0.05
# Seconds that a process has to exit after its streams have ended, before it is killed.
EXIT_SECONDS = 5.0
# Environment variables with the number of threads of libraries.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# A worker ignores SIGINT, which a terminal sends to all its processes: only the caller decides how a sweep ends. The
# call of prctl is that of channel.guard_process, which cannot be imported as early.
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); import ctypes; "
    "sys.platform == 'linux' and ctypes.CDLL(None).prctl(4, 0); sys.path[:] = {path!r}; "
    "from cbo_gym._util.processes.serving import serve; serve({listening})"
)


class LateError(DiedError):
    """A call took longer than its limit."""


class RaisedError(DiedError):
    """A call raised an error; ``str`` of this exception is the traceback of that error.

    Args:
        kind: Name of the error's class.
        message: The error's message.
        trace: The error's traceback.
    """

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(trace)
        self.kind, self.message, self.trace = kind, message, trace


@dataclass(frozen=True)
class Limits:
    """Limits of time and memory of a call.

    Args:
        time_limit: Seconds; None for no limit.
        memory_limit: Resident memory of the process and its descendants, in MiB; None for no limit.
    """

    time_limit: float | None = None
    memory_limit: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("time_limit", self.time_limit), ("memory_limit", self.memory_limit)):
            is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if limit is not None and not (is_number and limit > 0):
                raise ArgumentError(f"{name} must be a number above 0, or None for no limit; given {limit!r}")


NO_LIMITS = Limits()


class Worker:
    """Makes calls in one process, which ends when this object is closed or garbage-collected.

    The first call starts the process. If the process has ended, the next call starts another.

    Args:
        limits: Limits of each call. A call that exceeds the memory limit in a process that earlier calls used is
            repeated in a new process, because the earlier calls may hold that memory.
        max_answer_bytes: Largest size of an answer.
        variables: Environment variables of the process, in addition to those of this one.
        listening: Whether a thread of the process watches for the death of the caller. On Linux the kernel kills the
            process in any case; the thread doubles the time of a short call.
    """

    def __init__(
        self,
        limits: Limits = NO_LIMITS,
        *,
        max_answer_bytes: int = MAX_MESSAGE_BYTES,
        variables: Mapping[str, str] = MappingProxyType({}),
        listening: bool = True,
    ) -> None:
        self._limits, self._max_answer_bytes = limits, max_answer_bytes
        self._variables, self._listening = variables, listening
        self._process: _Process | None = None
        self._finalizer: Callable[[], object] = lambda: None
        self._lock = threading.Lock()
        self._closed = False

    def call(
        self,
        function: Callable[[Item], Result],
        item: Item,
        *,
        keep: bool = True,
        on_message: Callable[[Any], object] | None = None,
        time_limit: float | None = None,
        pack: Callable[[Any], bytes] = cloudpickle.dumps,
    ) -> Result:
        """Return ``function(item)``.

        Args:
            function: Function that returns plain data, see :mod:`cbo_gym._util.plain`.
            item: The argument of the function.
            keep: Whether the next call uses the same process, with all changes that this call made in it.
            on_message: Called with each message that the call sends by
                :func:`~cbo_gym._util.processes.serving.send_to_caller`; if it raises, the process is ended.
            time_limit: Seconds, instead of the worker's own limit.
            pack: Pickles function and item.

        Raises:
            RaisedError: if the function raises an error, after which the process is ended.
            LateError: if the call takes longer than its limit.
            DiedError: if the process ends before it answers, by itself or because of a limit, or its answer is invalid.
        """
        limits = self._limits if time_limit is None else replace(self._limits, time_limit=time_limit)
        is_used = self._process is not None
        process = self._get_process()
        try:
            answer = process.ask(pack((function, item)), limits, self._max_answer_bytes, on_message)
        # This includes exceptions of on_message.
        except BaseException:
            self._end()
            raise
        if answer is None:
            # The streams of a process end shortly before it does.
            with suppress(subprocess.TimeoutExpired):
                process.popen.wait(timeout=EXIT_SECONDS)
            self._end()
            if is_used and process.exceeded_memory:
                return self.call(function, item, keep=keep, on_message=on_message, time_limit=time_limit, pack=pack)
            raise process.kill_reason or DiedError(describe_end(process.popen.wait()))
        limit = self._limits.memory_limit
        if not keep or (limit is not None and _resident(process.popen.pid) > MAX_HELD_FRACTION * limit):
            self._end()
        return answer[0]

    def close(self) -> None:
        """End the process for good, and with it a call that another thread waits for."""
        with self._lock:
            self._closed = True
        self._end()

    def _get_process(self) -> _Process:
        with self._lock:
            if self._closed:
                raise DiedError("stopped")
            if self._process is None:
                self._process = _Process(start_process(self._variables, self._listening))
                self._finalizer = weakref.finalize(self, end_process, self._process.popen)
                # A fork of this process must not end the worker when it exits.
                self._finalizer.atexit = False
            return self._process

    def _end(self) -> None:
        with self._lock:
            self._process, finalizer = None, self._finalizer
        # A finalizer that was called does nothing.
        finalizer()


class _Process:
    """A process, and a thread that kills it if a call exceeds its limits.

    If the process ends during a call, the thread also kills its descendants, which may keep its streams open.

    Attributes:
        popen: The process.
        kill_reason: The limit that the process exceeded, as an error to raise; None if it exceeded none.
        exceeded_memory: Whether the process exceeded the memory limit.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.popen, self._channel = popen, Channel.to_worker(popen)
        self.kill_reason: DiedError | None = None
        self.exceeded_memory = False
        self._limits = NO_LIMITS
        self._call_start: float | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def ask(
        self, message: bytes, limits: Limits, max_bytes: int, on_message: Callable[[Any], object] | None
    ) -> tuple[Any] | None:
        """Send a call; return its result in a tuple, or None if the process ends."""
        call_id = secrets.randbits(64)
        with self._lock:
            self._limits, self._call_start = limits, time.monotonic()
        try:
            # If the process has ended, receive returns None.
            with suppress(OSError):
                self._channel.send(call_id, message)
            while (received := self._channel.receive(max_bytes)) is not None:
                if received[0] != call_id:
                    raise GarbledError("its process gave an answer that was not asked for")
                kind, content = _parse_answer(received[1])
                if kind == FAILED:
                    raise content
                if kind == RETURNED:
                    return (content,)
                if on_message is not None:
                    on_message(content)
        finally:
            with self._lock:
                self._call_start = None
        return None

    def _watch(self) -> None:
        while self.popen.poll() is None:
            time.sleep(WATCH_SECONDS)
            with self._lock:
                if self._call_start is not None:
                    self._check(time.monotonic() - self._call_start)

    def _check(self, seconds: float) -> None:
        time_limit, mebibytes = self._limits.time_limit, self._limits.memory_limit
        if time_limit is not None and seconds > time_limit:
            self.kill_reason = LateError(f"took longer than the time limit of {time_limit:g} s")
        elif mebibytes is not None and (held := _resident(self.popen.pid)) > mebibytes:
            self.exceeded_memory = True
            self.kill_reason = DiedError(f"used {held:.0f} MiB of memory; the limit is {mebibytes:g} MiB")
        if self.kill_reason or self.popen.poll() is not None:
            kill(self.popen)


def _parse_answer(answer: bytes) -> tuple[str, Any]:
    """Return the kind and the content of an answer; the content of a failed call is a RaisedError."""
    try:
        kind, content = read_plain(answer)
        return str(kind), RaisedError(*map(str, content)) if str(kind) == FAILED else content
    except (ArgumentError, TypeError, ValueError) as error:
        raise GarbledError(f"its process gave an answer that cannot be read: {error}") from error


def start_process(variables: Mapping[str, str], listening: bool) -> subprocess.Popen[bytes]:
    """Start a process in its own group that receives calls through its standard streams; see :class:`Worker`."""
    # Python ignores entries of other types.
    path = [entry for entry in sys.path if isinstance(entry, str)]
    # Other processes must not open the pipes, which are open files of this process.
    guard_process()
    return _starter.submit(
        subprocess.Popen,
        [sys.executable, "-P", "-c", START.format(path=path, listening=listening)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Workers run in parallel, so each uses one thread.
        env={**dict.fromkeys(THREAD_VARIABLES, "1"), **os.environ, **variables},
        process_group=0 if HAS_PROCESS_GROUPS else None,
    ).result()


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process of :func:`start_process` and its descendants, and close its streams."""
    kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout):
        # Data that is still in the buffer cannot be written.
        with suppress(OSError):
            stream.close()  # type: ignore[union-attr]


# A thread that lives as long as this process, because on Linux a child dies with the *thread* that started it.
_starter = ThreadPoolExecutor(1)


def _renew_starter() -> None:
    global _starter
    _starter = ThreadPoolExecutor(1)


if HAS_PROCESS_GROUPS:
    # A fork does not inherit the thread.
    os.register_at_fork(after_in_child=_renew_starter)


def _family(pid: int) -> list[Any]:
    """Return a process and its descendants, or nothing if the process has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _resident(pid: int) -> float:
    """Return the resident memory in MiB of a process and its descendants."""
    total = 0
    for process in _family(pid):
        # The process may just have ended.
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total / MEBIBYTE


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its descendants, with the rest of the process groups that they lead."""
    family = _family(process.pid)
    groups = {process.pid} if HAS_PROCESS_GROUPS else set()
    for member in family:
        # The member may just have ended. A group that it does not lead may be the caller's, and is not killed.
        with suppress(OSError):
            if HAS_PROCESS_GROUPS and os.getpgid(member.pid) == member.pid:
                groups.add(member.pid)
    for member in family:
        with suppress(psutil.Error):
            member.kill()
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


def describe_end(status: int) -> str:
    """Describe the end of a process by its exit status."""
    if status >= 0:
        return f"its process ended with status {status}"
    if -status == signal.SIGKILL:
        return "its process was killed (SIGKILL), perhaps because it ran out of memory"
    names = {number.value: number.name for number in signal.Signals}
    return f"its process was killed by {names.get(-status, f'signal {-status}')}"
