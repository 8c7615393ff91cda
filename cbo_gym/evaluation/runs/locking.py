"""One process at a time where a folder's files are read, decided upon and written again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from cbo_gym.errors import OperationError

LOCK = ".cbo-gym.lock"  # a leading dot and no ending of a run: whoever lists runs passes it by
SAID_AFTER = 5.0  # seconds
GIVEN_UP_AFTER = 600.0  # seconds: merging 100,000 runs takes some 100, and several processes may wait in line


class WaitingWarning(UserWarning):
    """Another process has a folder; the message names it, and how long it is waited for."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a folder, which is made where there is none, to oneself; whoever has it already may ask for it again.

    The operating system holds the lock, so that it ends with the process that has it, however that ends. Its file is
    removed before the lock is given up: whoever waits for a file that is gone sees so, and waits for the next one.

    Raises:
        OperationError: if another process has the folder for more than :data:`GIVEN_UP_AFTER`; if it cannot be
            written to.
    """
    lock = FileLock(folder / LOCK, is_singleton=True)  # one object a path, which counts how often it is asked for
    _acquire(lock, folder)
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            with suppress(OSError):  # Windows removes no file that is open, and has no need to
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
