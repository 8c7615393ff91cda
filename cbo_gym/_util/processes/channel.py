"""Messages between two processes over pipes; each arrives whole or not at all.

A question has a random number that its answer repeats, so a process cannot send answers before it is asked.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from typing import Any, BinaryIO

from cbo_gym.errors import OperationError

# in front of each message: the magic bytes, the number of the question, the length
HEAD = struct.Struct(">8sQQ")
MAGIC = b"cbo-gym\0"
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
MAX_MESSAGE_BYTES = 2**31
# Kinds of answers.
INTERIM, RETURNED, FAILED = "interim", "returned", "failed"


class DiedError(OperationError):
    """A call did not end normally; the message says why."""


class GarbledError(DiedError):
    """The bytes received are not a message, or answer another question."""


def send(stream: BinaryIO | Any, number: int, message: bytes) -> None:
    """Write a question or an answer.

    Raises:
        OSError: if the other process no longer reads.
    """
    stream.write(HEAD.pack(MAGIC, number, len(message)) + message)
    stream.flush()


def receive(stream: BinaryIO | Any, max_bytes: int = MAX_MESSAGE_BYTES) -> tuple[int, bytes] | None:
    """Return the number and the content of the next message; None if the stream ends before the message does.

    Raises:
        GarbledError: if something else is written to the stream, or a message of more than ``max_bytes`` bytes.
    """
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    magic, number, length = HEAD.unpack(head)
    if magic != MAGIC:
        raise GarbledError("its process wrote something else to the stream of its answers")
    if length > max_bytes:
        raise GarbledError(f"its process gave an answer of {length} bytes; at most {max_bytes} are read")
    message: bytes = stream.read(length)
    return (number, message) if len(message) == length else None


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the streams of calls and of answers of a worker's process.

    From now on, the process prints to the error stream, and its standard input is empty.
    """
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return calls, answers


def die_with_parent() -> None:
    """On Linux, let the kernel end this process with its parent, even while compiled code holds Python's lock."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def guard_process() -> None:
    """On Linux, close this process to others of its user: its memory, environment variables and open files.

    Debuggers and profilers cannot attach to it either; root can.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
