"""A lock of a folder, for one process at a time to read and rewrite its files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from cbo_gym.errors import OperationError

# Hidden, and without the suffix of a run.
LOCK = ".cbo-gym.lock"
# Seconds until a process says that it waits, and until it gives up; merging 100,000 runs takes 100 s.
SAID_AFTER, GIVEN_UP_AFTER = 5.0, 600.0


class WaitingWarning(UserWarning):
    """Another process has locked a folder; the message names the folder, and how long this process waits."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, which is created if missing; the lock is reentrant.

    The operating system releases the lock when the process ends. The lock file is removed before the lock is released;
    a process that waits for a removed file notices it, and waits for the next one.

    Raises:
        OperationError: if another process has locked the folder for more than :data:`GIVEN_UP_AFTER`; if it cannot be
            written to.
    """
    lock = FileLock(folder / LOCK, is_singleton=True)  # one object a path, which counts its holders
    _acquire(lock, folder)
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            with suppress(OSError):  # Windows removes no open file, and need not
                (folder / LOCK).unlink()
        lock.release()


def _acquire(lock: FileLock, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=SAID_AFTER)
        except Timeout:
            said = f"waiting for another process that writes to {folder}, for at most {GIVEN_UP_AFTER:g} seconds"
            warnings.warn(said, WaitingWarning, stacklevel=4)
            lock.acquire(timeout=GIVEN_UP_AFTER - SAID_AFTER)
    except Timeout as error:
        raise OperationError(
            f"another process has been writing to {folder} for {GIVEN_UP_AFTER:g} seconds; see what it does, end it if "
            "it hangs, and try again"
        ) from error
    except OSError as error:
        raise OperationError(
            f"cannot write to {folder}: {error.strerror or error}; give a folder that may be written to"
        ) from error
