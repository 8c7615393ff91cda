"""The process of a :class:`~cbo_gym._util.processes.worker.Worker`: makes the calls and answers in plain data."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, BinaryIO

from cbo_gym._util.plain import write_plain
from cbo_gym._util.processes.channel import FAILED, INTERIM, RETURNED, die_with_parent, own_streams, receive, send
from cbo_gym.errors import message_of

# Characters of an error.
MAX_ERROR_LENGTH = 10_000


class _Question:
    """The stream of this process's answers, and the number of the current question."""

    answers: BinaryIO
    number: int


def serve(listening: bool) -> None:
    """Make the calls from the standard input until it ends, as it does when the caller dies.

    Args:
        listening: Whether a thread notices during a call that the caller has died.
    """
    die_with_parent()
    calls, _Question.answers = own_streams()
    take: Callable[[], tuple[int, bytes] | None] = partial(receive, calls)
    if listening:
        waiting: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
        threading.Thread(target=_listen, args=(calls, waiting), daemon=True).start()
        take = waiting.get
    while (received := take()) is not None:
        _Question.number, call = received
        send(_Question.answers, _Question.number, _answer(call))


def say(value: Any) -> None:
    """In a call to a worker, send plain data to the caller before the answer."""
    send(_Question.answers, _Question.number, write_plain((INTERIM, value)))


def _listen(calls: BinaryIO, waiting: SimpleQueue[tuple[int, bytes]]) -> None:
    while (message := receive(calls)) is not None:
        waiting.put(message)
    if os.name == "posix":  # the caller is gone: end the call, and all that it started
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _answer(call: bytes) -> bytes:
    """Return the result or the error of a call, as plain data."""
    try:
        function, item = pickle.loads(call)
        return write_plain((RETURNED, function(item)))
    except BaseException as error:  # also SystemExit: only the caller ends this process
        strings = (type(error).__name__, message_of(error), traceback.format_exc())
        return write_plain((FAILED, [_short(string) for string in strings]))


def _short(string: str) -> str:
    clean = string.encode("utf-8", "backslashreplace").decode()
    half = MAX_ERROR_LENGTH // 2
    return clean if len(clean) <= MAX_ERROR_LENGTH else f"{clean[:half]}\n...\n{clean[-half:]}"
