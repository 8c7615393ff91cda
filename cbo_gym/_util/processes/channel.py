"""Messages between a worker process and its caller over pipes; each message arrives whole or not at all.

Each call has a random number that its answer repeats, so a worker cannot send an answer in advance. All messages begin
with a secret key of the channel, so no other process can make calls or answer them.
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

# What precedes each message: the key, the number of the call, the length of the message.
HEAD = struct.Struct(">16sQQ")
KEY_BYTES = 16
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
MAX_MESSAGE_BYTES = 2**31
# Kinds of messages from a worker: sent during a call, its result, its error.
INTERIM, RETURNED, FAILED = "interim", "returned", "failed"


class DiedError(OperationError):
    """A call did not end normally; the message says why."""


class GarbledError(DiedError):
    """The bytes received are not a message, or answer another call."""


@dataclass(frozen=True)
class Channel:
    """Two pipes to another process, and their key."""

    incoming: IO[bytes]
    outgoing: IO[bytes]
    key: bytes

    @classmethod
    def to_worker(cls, process: Popen[bytes]) -> Channel:
        """Return the caller's end of the channel, and send the key to the worker."""
        assert process.stdin is not None
        assert process.stdout is not None
        key = secrets.token_bytes(KEY_BYTES)
        process.stdin.write(key)
        return cls(process.stdout, process.stdin, key)

    @classmethod
    def to_caller(cls) -> Channel:
        """Return the worker's end of the channel; this process is the worker.

        From now on, this process prints to the error stream, and its standard input is empty.
        """
        calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        return cls(calls, answers, calls.read(KEY_BYTES))

    def send(self, number: int, message: bytes) -> None:
        """Write a call or an answer; raise OSError if the other process no longer reads."""
        self.outgoing.write(HEAD.pack(self.key, number, len(message)) + message)
        self.outgoing.flush()

    def receive(self, max_bytes: int = MAX_MESSAGE_BYTES) -> tuple[int, bytes] | None:
        """Return the number and the content of the next message; None if the stream ends before the message does."""
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
    """On Linux, let the kernel kill this process when its parent dies, even while compiled code holds the GIL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def guard_process() -> None:
    """On Linux, hide memory, environment variables and open files of this process from other processes of its user.

    Debuggers and profilers cannot attach to it either, unless they run as root.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
