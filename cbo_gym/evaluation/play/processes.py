"""Calls in processes of their own: however a call ends, whoever asked for it learns how, and goes on.

A worker is a fresh interpreter that is spoken to through its standard streams. So a script that starts one needs no
``if __name__ == "__main__"``, a daemon process (those of Dask are) may start one, and it hears at once when its caller
is gone: the stream ends. It leads a process group, which ends as a whole; what a call starts and detaches from this
group and from its parents lives on.

A worker unpickles what its caller sends. It answers in plain data, since a stranger's code may run below it.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, BinaryIO, TypeVar

import cloudpickle

from cbo_gym.channel import (
    GarbledError,
    ask,
    die_with_parent,
    guard_process,
    own_streams,
    receive,
    receive_answer,
    send,
)
from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.plain import from_plain, read_message, to_plain, written

Item = TypeVar("Item")
Result = TypeVar("Result")

HAS_GROUPS = os.name == "posix"
MEBIBYTE = 2**20
HELD = 0.25  # of a limit of memory
WATCH_SECONDS = 0.05  # between two looks at a limited call
# Kinds of answers.
SAID, RETURNED, FAILED = "said", "returned", "failed"
PATIENCE = 5.0  # seconds until a process whose streams have ended is killed
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# SIGINT goes to all processes of a terminal, but how a sweep ends is its parent's affair. The process is closed to
# others before it imports anything that takes long, see channel.guard_process.
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); import ctypes; "
    "sys.platform == 'linux' and ctypes.CDLL(None).prctl(4, 0); sys.path[:] = {path!r}; "
    "from {module} import serve; serve()"
)


class DiedError(OperationError):
    """A call did not come to its end; the message says what ended it."""


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
    """

    def __init__(self, limits: Limits = NO_LIMITS) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
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
    ) -> Result:
        """``function(item)``, both importable or picklable in a fresh interpreter.

        Args:
            function: what is called; it returns what :func:`cbo_gym.plain.to_plain` writes.
            item: its argument.
            keep: whether the process is kept for the next call, with whatever this one changes in it.
            hear: called with what the call says by :func:`say` while it is made; what it raises ends the process.

        Raises:
            DiedError: if the process ends first, by itself or for a limit, or gives an answer that is none.
        """
        used = self._process is not None
        process = self._running()
        watch = _Watch(process, self._limits)
        answer = None
        try:
            with suppress(OSError), watch:
                number = ask(process.stdin, cloudpickle.dumps((function, item)))
                while (answer := receive_answer(process.stdout, number)) is not None:
                    kind, content = _read(answer)
                    if kind != SAID:
                        break
                    if hear is not None:
                        hear(content)
        except GarbledError as garbled:
            self._end()
            raise DiedError(str(garbled)) from garbled
        except BaseException:  # of whoever hears
            self._end()
            raise
        if answer is None:
            with suppress(subprocess.TimeoutExpired):  # its streams end shortly before it does
                process.wait(timeout=PATIENCE)
            self._end()
            if used and watch.for_memory:
                return self.call(function, item, keep=keep, hear=hear)
            raise DiedError(watch.reason or how_it_ended(process.wait()))
        most = self._limits.memory_limit
        if kind == FAILED or not keep or (most is not None and _resident(process.pid) > HELD * most):
            self._end()
        if kind == FAILED:
            raise DiedError(content)
        return content

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
                self._process = start_process(__name__)
                self._ending = weakref.finalize(self, end_process, self._process)
                self._ending.atexit = False  # not in a fork of this process, whose it is not
            return self._process

    def _end(self) -> None:
        with self._lock:
            self._process, ending = None, self._ending
        ending()  # a second time it does nothing


def _read(answer: bytes) -> tuple[str, Any]:
    try:
        kind, content = from_plain(read_message(answer))
    except (ArgumentError, TypeError, ValueError) as error:
        raise GarbledError(f"its process gave an answer that cannot be read: {error}") from error
    return kind, content


def say(thing: Any) -> None:
    """In a call that a worker makes: send plain data to the caller before the answer."""
    send(_Saying.stream, _Saying.number, written(to_plain([SAID, thing])))


class _Saying:
    """Where the answers of this process go, if it is a worker's, and the number of the question."""

    stream: BinaryIO
    number: int


def start_process(module: str, **variables: str) -> subprocess.Popen[bytes]:
    """A process in a group of its own that runs ``serve()`` of a module, spoken to through its standard streams.

    Args:
        module: where ``serve`` is.
        variables: of its environment, besides this one's.
    """
    path = [entry for entry in sys.path if isinstance(entry, str)]  # as Python itself reads it
    # The pipes to the process are open here.
    guard_process()
    return _Starter.thread.submit(
        subprocess.Popen,
        [sys.executable, "-P", "-c", START.format(path=path, module=module)],
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


class _Watch:
    """Kills a process that takes too long or too much, and knows why; a context manager round a call.

    Of a process that has ended it kills what is left, for children of its may hold its streams open.
    """

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits) -> None:
        self.reason = ""
        self.for_memory = False
        self._process, self._seconds, self._mebibytes = process, limits.time_limit, limits.memory_limit
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        begun = time.monotonic()
        while not self._done.wait(WATCH_SECONDS):
            if self._seconds is not None and time.monotonic() - begun > self._seconds:
                self.reason = f"took longer than the time limit of {self._seconds:g} s"
            elif self._mebibytes is not None and (used := _resident(self._process.pid)) > self._mebibytes:
                self.for_memory = True
                self.reason = f"used {used:.0f} MiB of memory; the limit is {self._mebibytes:g} MiB"
            if self.reason or self._process.poll() is not None:
                kill(self._process)
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


def serve() -> None:
    """In a worker: make the calls that come on the standard input until it ends, which the caller's death does too."""
    die_with_parent()
    calls, answers = own_streams()
    _Saying.stream = answers
    waiting: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
    threading.Thread(target=_listen, args=(calls, waiting), daemon=True).start()
    while True:
        _Saying.number, call = waiting.get()
        send(answers, _Saying.number, _answer(call))


def _listen(calls: BinaryIO, waiting: SimpleQueue[tuple[int, bytes]]) -> None:
    while (message := receive(calls)) is not None:
        waiting.put(message)
    if HAS_GROUPS:  # nobody waits for the call that is being made, nor for what it started
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _answer(message: bytes) -> bytes:
    """The result, or the traceback of what the call raised, as plain data."""
    try:
        function, item = pickle.loads(message)
        return written(to_plain([RETURNED, function(item)]))
    except BaseException:
        return written([FAILED, traceback.format_exc()])
