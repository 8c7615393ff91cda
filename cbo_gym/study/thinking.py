"""The lock under which agents are used."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from threading import RLock

_lock = RLock()


def one_at_a_time() -> AbstractContextManager[bool]:
    """The lock of all agents of the process.

    The libraries of agents keep settings for the whole process, and what one agent suggests must not depend on what
    another does meanwhile.
    """
    return _lock


def _renew() -> None:
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    # a thread of the parent may hold the lock, and does not exist in the child
    os.register_at_fork(after_in_child=_renew)
