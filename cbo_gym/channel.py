"""Messages between two processes over pipes: each one whole, or none.

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
LONGEST = 2**31  # bytes of a message
# Kinds of answers.
SAID, RETURNED, FAILED = "said", "returned", "failed"


class DiedError(OperationError):
    """A call did not come to its end; the message says what ended it."""


class GarbledError(DiedError):
    """The bytes that came are no message, or answer another question."""


def send(stream: BinaryIO | Any, number: int, message: bytes) -> None:
    """Write a question or the answer to one.

    Raises:
        OSError: if the other process does not read any more.
    """
    stream.write(HEAD.pack(MAGIC, number, len(message)) + message)
    stream.flush()


def receive(stream: BinaryIO | Any, longest: int = LONGEST) -> tuple[int, bytes] | None:
    """Return the number and the content of the next message; None if the stream ends before the message does.

    Raises:
        GarbledError: if something else is written to the stream, or a message of more than ``longest`` bytes.
    """
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    magic, number, length = HEAD.unpack(head)
    if magic != MAGIC:
        raise GarbledError("its process wrote something else to where its answer goes")
    if length > longest:
        raise GarbledError(f"its process gave an answer of {length} bytes; at most {longest} are taken")
    message: bytes = stream.read(length)
    return (number, message) if len(message) == length else None


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """In a process that is spoken to: where messages come from, and where they go.

    What the process prints from now on goes to the error stream, and it finds nothing to read.
    """
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return calls, answers


def die_with_parent() -> None:
    """On Linux the kernel sees to it, also while compiled code lets no other thread of Python run."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def guard_process() -> None:
    """On Linux, close this process to others of its user: its memory, its environment, the files that it has open.

    Debuggers and profilers cannot attach to it either. Root can.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
