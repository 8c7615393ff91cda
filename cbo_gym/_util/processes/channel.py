"""Messages between two processes over pipes; each arrives whole or not at all.

A question has a random number that its answer repeats, so a process cannot send answers before it is asked. All
messages begin with a secret key of the channel, so no other process can ask or answer.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import struct
import sys
from dataclasses import dataclass
from subprocess import Popen
from typing import IO

from cbo_gym.errors import OperationError

# In front of each message: the key, the number of the question, the length.
HEAD = struct.Struct(">16sQQ")
KEY_BYTES = 16
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
MAX_MESSAGE_BYTES = 2**31
# Kinds of answers.
INTERIM, RETURNED, FAILED = "interim", "returned", "failed"


class DiedError(OperationError):
    """A call did not end normally; the message says why."""


class GarbledError(DiedError):
    """The bytes received are not a message, or answer another question."""


@dataclass(frozen=True)
class Channel:
    """Two pipes to another process, and their key."""

    incoming: IO[bytes]
    outgoing: IO[bytes]
    key: bytes

    @classmethod
    def to_worker(cls, process: Popen[bytes]) -> Channel:
        """Return the channel to the process of a worker, which reads the key first."""
        assert process.stdin is not None
        assert process.stdout is not None
        key = secrets.token_bytes(KEY_BYTES)
        process.stdin.write(key)
        return cls(process.stdout, process.stdin, key)

    @classmethod
    def to_caller(cls) -> Channel:
        """Return the channel from the process of a worker, which is this process, to its caller.

        From now on, the process prints to the error stream, and its standard input is empty.
        """
        calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        return cls(calls, answers, calls.read(KEY_BYTES))

    def send(self, number: int, message: bytes) -> None:
        """Write a question or an answer.

        Raises:
            OSError: if the other process no longer reads.
        """
        self.outgoing.write(HEAD.pack(self.key, number, len(message)) + message)
        self.outgoing.flush()

    def receive(self, max_bytes: int = MAX_MESSAGE_BYTES) -> tuple[int, bytes] | None:
        """Return the number and the content of the next message; None if the stream ends before the message does.

        Raises:
            GarbledError: if something else is written to the stream, or a message of more than ``max_bytes`` bytes.
        """
        head = self.incoming.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        key, number, length = HEAD.unpack(head)
        if not secrets.compare_digest(key, self.key):
            raise GarbledError("its process wrote something else to the stream of its answers")
        if length > max_bytes:
            raise GarbledError(f"its process gave an answer of {length} bytes; at most {max_bytes} are read")
        message = self.incoming.read(length)
        return (number, message) if len(message) == length else None


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
