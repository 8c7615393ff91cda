"""The main loop of a worker process, see :mod:`cbo_gym._util.processes.worker`: it makes calls and answers them."""

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
    """The call that this process is making: its number, and the channel to the caller."""

    channel: Channel
    number: int


def serve(listening: bool) -> None:
    """Receive and make calls until the caller has ended.

    Args:
        listening: Whether a thread watches the channel and ends this process when the caller dies during a call.
    """
    die_with_parent()
    _CurrentCall.channel = channel = Channel.to_caller()
    receive: Callable[[], tuple[int, bytes] | None] = channel.receive
    if listening:
        calls: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
        threading.Thread(target=_listen, args=(channel, calls), daemon=True).start()
        receive = calls.get
    while (received := receive()) is not None:
        _CurrentCall.number, call = received
        channel.send(_CurrentCall.number, _answer(call))


def send_to_caller(value: Any) -> None:
    """Send plain data to the caller from inside a call, before its answer."""
    _CurrentCall.channel.send(_CurrentCall.number, write_plain((INTERIM, value)))


def _listen(channel: Channel, calls: SimpleQueue[tuple[int, bytes]]) -> None:
    with suppress(GarbledError):
        while (message := channel.receive()) is not None:
            calls.put(message)
    # The caller is gone, or another process wrote to the pipe: end the call and all processes that it started.
    if os.name == "posix":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _answer(call: bytes) -> bytes:
    """Return the result or the error of a call, as plain data."""
    try:
        function, item = pickle.loads(call)
        return write_plain((RETURNED, function(item)))
    # This includes SystemExit, because only the caller ends this process.
    except BaseException as error:
        strings = (type(error).__name__, message_of(error), traceback.format_exc())
        return write_plain((FAILED, list(map(abridge, strings))))
