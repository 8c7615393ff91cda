"""Messages between two processes over pipes: each one whole, or none."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from typing import Any, BinaryIO

from cbo_gym.errors import OperationError

HEAD = struct.Struct(">8sQ")  # in front of each message: that it is one, and its length
MAGIC = b"cbo-gym\0"
PR_SET_PDEATHSIG = 1
LONGEST = 2**31  # bytes of a message


class GarbledError(OperationError):
    """The bytes that came are no message."""


def send(stream: BinaryIO | Any, message: bytes) -> None:
    """Write a message.

    Raises:
        OSError: if nobody reads any more.
    """
    stream.write(HEAD.pack(MAGIC, len(message)) + message)
    stream.flush()


def receive(stream: BinaryIO | Any, longest: int = LONGEST) -> bytes | None:
    """The next message; None where the stream ends before it does.

    Raises:
        GarbledError: if something else is written to the stream, or a message of more than ``longest`` bytes.
    """
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    magic, length = HEAD.unpack(head)
    if magic != MAGIC:
        raise GarbledError("its process wrote something else to where its answer goes")
    if length > longest:
        raise GarbledError(f"its process gave an answer of {length} bytes; at most {longest} are taken")
    message: bytes = stream.read(length)
    return message if len(message) == length else None


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
