"""The process of a :class:`~cbo_gym._util.processes.worker.Worker`: makes the calls and answers in plain data."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from cbo_gym._util.plain import write_plain
from cbo_gym._util.processes.channel import FAILED, INTERIM, RETURNED, Channel, GarbledError, die_with_parent
from cbo_gym.errors import abridge, message_of


class _CurrentCall:
    """Number of the one call that this process is making, and the channel to the caller."""

    channel: Channel
    number: int


def serve(listening: bool) -> None:
    """Receive and make calls until the caller has ended.

    Args:
        listening: Whether a thread notices during a call that the caller has died.
    """
    die_with_parent()
    _CurrentCall.channel = channel = Channel.to_caller()
    take: Callable[[], tuple[int, bytes] | None] = channel.receive
    if listening:
        waiting: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
        threading.Thread(target=_listen, args=(channel, waiting), daemon=True).start()
        take = waiting.get
    while (received := take()) is not None:
        _CurrentCall.number, call = received
        channel.send(_CurrentCall.number, _answer(call))


def say(value: Any) -> None:
    """In a call to a worker, send plain data to the caller before the answer."""
    _CurrentCall.channel.send(_CurrentCall.number, write_plain((INTERIM, value)))


def _listen(channel: Channel, waiting: SimpleQueue[tuple[int, bytes]]) -> None:
    with suppress(GarbledError):
        while (message := channel.receive()) is not None:
            waiting.put(message)
    # The caller is gone, or another process wrote to the pipe: end the call and all processes that it started.
    if os.name == "posix":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _answer(call: bytes) -> bytes:
    """Return the result or the error of a call, as plain data."""
    try:
        function, item = pickle.loads(call)
        return write_plain((RETURNED, function(item)))
    except BaseException as error:  # also SystemExit: only the caller ends this process
        strings = (type(error).__name__, message_of(error), traceback.format_exc())
        return write_plain((FAILED, list(map(abridge, strings))))
