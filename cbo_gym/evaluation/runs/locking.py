"""Lock a folder of runs, so that one process at a time rewrites its files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from cbo_gym.errors import OperationError

# A hidden file, whose suffix is not that of a run's file.
LOCK_NAME = ".cbo-gym.lock"
# Seconds of waiting after which a process warns, and after which it gives up; merging 100,000 runs takes 100 s.
WARN_SECONDS, TIMEOUT_SECONDS = 5.0, 600.0


class WaitingWarning(UserWarning):
    """Another process has locked a folder; the message names the folder and the limit of the wait."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, which is created if missing; the lock is reentrant.

    The operating system releases the lock when the process ends. The lock file is removed before the lock is released;
    a process that waits for a removed file notices it, and waits for the next one.
    """
    # A path has one lock object in a process, which counts its holders.
    lock = FileLock(folder / LOCK_NAME, is_singleton=True)
    _acquire(lock, folder)
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            # Windows cannot remove an open file; the file does no harm.
            with suppress(OSError):
                (folder / LOCK_NAME).unlink()
        lock.release()


def _acquire(lock: FileLock, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=WARN_SECONDS)
        except Timeout:
            message = f"waiting for another process that writes to {folder}, for at most {TIMEOUT_SECONDS:g} seconds"
            warnings.warn(message, WaitingWarning, stacklevel=4)
            lock.acquire(timeout=TIMEOUT_SECONDS - WARN_SECONDS)
    except Timeout as error:
        raise OperationError(
            f"another process has been writing to {folder} for {TIMEOUT_SECONDS:g} seconds; see what it does, end it "
            "if it hangs, and try again"
        ) from error
    except OSError as error:
        raise OperationError(
            f"cannot write to {folder}: {error.strerror or error}; give a folder that can be written to"
        ) from error
