"""Calls in processes of their own: however a call ends, whoever asked for it learns how, and goes on.

A worker is a fresh interpreter that is spoken to through its standard streams. So a script that starts one needs no
``if __name__ == "__main__"``, a daemon process (those of Dask are) may start one, and it hears at once when its caller
is gone: the stream ends. It leads a process group, which ends as a whole; what a call starts and detaches from this
group and from its parents lives on.

A worker unpickles what its caller sends. It answers in plain data, since a stranger's code may run in it or below it.
The pools of loky and pebble unpickle answers, limit no memory and end no process groups; pebble's workers also import
the caller's ``__main__``, and cannot be started by a daemon.
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

from cbo_gym.channel import FAILED, LONGEST, SAID, DiedError, GarbledError, guard_process, receive, send
from cbo_gym.errors import ArgumentError
from cbo_gym.serialization import from_plain, read_message

Item = TypeVar("Item")
Result = TypeVar("Result")

HAS_GROUPS = os.name == "posix"
MEBIBYTE = 2**20
HELD = 0.25  # of a limit of memory
WATCH_SECONDS = 0.05  # between two looks at a process
PATIENCE = 5.0  # seconds until a process whose streams have ended is killed
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# SIGINT goes to all processes of a terminal, but how a sweep ends is its parent's affair. The process is closed to
# others before it imports anything that takes long, see channel.guard_process.
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
        text: Its message.
        trace: Its traceback.
    """

    def __init__(self, kind: str, text: str, trace: str) -> None:
        super().__init__(trace)
        self.kind, self.text, self.trace = kind, text, trace


@dataclass(frozen=True)
class Limits:
    """Limits to the seconds and the memory of a call.

    Args:
        time_limit: seconds; None for any number.
        memory_limit: resident memory of the process and those that it starts, in MiB; None for any.

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
    """One process at a time, started when it is first needed and again after it died; it ends with its worker.

    Args:
        limits: of each call. None pays for what another left behind: a process that holds more than :data:`HELD` of
            the limit of memory is not used again, and a call that a used one ended for memory has a new one to itself.
        longest: Largest number of bytes of an answer.
        variables: of the environment of the process, besides this one's.
    """

    def __init__(
        self, limits: Limits = NO_LIMITS, *, longest: int = LONGEST, variables: Mapping[str, str] | None = None
    ) -> None:
        self._limits, self._longest, self._variables = limits, longest, variables or {}
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
        """``function(item)``, both importable or picklable in a fresh interpreter.

        Args:
            function: what is called; it returns what :func:`cbo_gym.serialization.to_plain` writes.
            item: its argument.
            keep: whether the process is kept for the next call, with whatever this one changes in it.
            hear: called with what the call says by :func:`cbo_gym.player.say` while it is made; what it raises ends
                the process.
            time_limit: seconds, in place of the worker's own limit.
            pack: pickles function and item; ``pickle.dumps`` is faster where both are importable.

        Raises:
            RaisedError: if it raises an error, after which the process is ended.
            LateError: if it takes too long.
            DiedError: if the process ends first, by itself or for a limit, or gives an answer that is none.
        """
        limits = self._limits if time_limit is None else replace(self._limits, time_limit=time_limit)
        used = self._process is not None
        process = self._running()
        try:
            answer = process.ask(pack((function, item)), limits, self._longest, hear)
        except BaseException:  # of whoever hears, too
            self._end()
            raise
        if answer is None:
            with suppress(subprocess.TimeoutExpired):  # its streams end shortly before it does
                process.popen.wait(timeout=PATIENCE)
            self._end()
            if used and process.for_memory:
                return self.call(function, item, keep=keep, hear=hear, time_limit=time_limit, pack=pack)
            raise process.ended or DiedError(how_it_ended(process.popen.wait()))
        kind, content = answer
        most = self._limits.memory_limit
        if kind == FAILED or not keep or (most is not None and _resident(process.popen.pid) > HELD * most):
            self._end()
        if kind == FAILED:
            raise RaisedError(*map(str, content))
        return content

    def close(self) -> None:
        """End the process, and with it a call that another thread waits for; there will be no other one."""
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
                self._ending.atexit = False  # not in a fork of this process, whose it is not
            return self._process

    def _end(self) -> None:
        with self._lock:
            self._process, ending = None, self._ending
        ending()  # a second time it does nothing


class _Process:
    """A process, and a thread that kills it if a call takes too long or too much.

    Of a process that ends in a call the thread kills what is left, for children of its may hold its streams open.

    Attributes:
        popen: The process.
        ended: Why the thread has killed it, or None.
        for_memory: Whether it used too much.
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
        self, message: bytes, limits: Limits, longest: int, hear: Callable[[Any], object] | None
    ) -> tuple[str, Any] | None:
        """Send a question; return the kind and the content of the answer, or None if the process ends.

        Raises:
            GarbledError: if the answer is none.
        """
        number = secrets.randbits(64)
        with self._lock:
            self._limits, self._begun = limits, time.monotonic()
        try:
            with suppress(OSError):  # it has ended, which the next line finds
                send(self.popen.stdin, number, message)
            while (received := receive(self.popen.stdout, longest)) is not None:
                if received[0] != number:
                    raise GarbledError("its process gave an answer that was not asked for")
                kind, content = _read(received[1])
                if kind != SAID:
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
        most, mebibytes = self._limits.time_limit, self._limits.memory_limit
        if most is not None and seconds > most:
            self.ended = LateError(f"took longer than the time limit of {most:g} s")
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
    """Start a process in a group of its own that makes calls, spoken to through its standard streams.

    Args:
        variables: of its environment, besides this one's.
    """
    path = [entry for entry in sys.path if isinstance(entry, str)]  # as Python itself reads it
    # The pipes to the process are open here.
    guard_process()
    return _Starter.thread.submit(
        subprocess.Popen,
        [sys.executable, "-P", "-c", START.format(path=path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # the parallelism is over calls, so of threads there is one
        env={**dict.fromkeys(THREADS, "1"), **os.environ, **variables},
        process_group=0 if HAS_GROUPS else None,
    ).result()


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that :func:`start_process` made, and what it started; close its streams."""
    kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):  # what was still to be written
            stream.close()  # type: ignore[union-attr]


class _Starter:
    """A thread that lives as long as this process, for Linux tells a child of the death of the *thread* it is from."""

    thread = ThreadPoolExecutor(1)

    @classmethod
    def renew(cls) -> None:
        cls.thread = ThreadPoolExecutor(1)


if HAS_GROUPS:
    os.register_at_fork(after_in_child=_Starter.renew)  # where the thread is not


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


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process, what it started, and what is left of its group, and of theirs, if they have ended themselves."""
    import psutil

    family = _family(process.pid)
    leaders = {process.pid} | {one.pid for one in family if _leads_a_group(one.pid)}
    for one in family:
        with suppress(psutil.Error):
            one.kill()
    for pid in leaders if HAS_GROUPS else ():
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def _leads_a_group(pid: int) -> bool:
    """Whether it does: the group of another one may be anybody's, this process' too."""
    if not HAS_GROUPS:
        return False
    try:
        return os.getpgid(pid) == pid
    except OSError:  # it has just ended
        return False


def how_it_ended(status: int) -> str:
    if status >= 0:
        return f"its process ended with status {status}"
    if -status == signal.SIGKILL:
        return "its process was killed (SIGKILL), perhaps because it ran out of memory"
    known = {number.value: number.name for number in signal.Signals}
    return f"its process was killed by {known.get(-status, f'signal {-status}')}"
