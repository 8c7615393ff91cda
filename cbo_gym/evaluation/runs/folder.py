"""The folder of a sweep: check that it can be written to, and read its runs without damaged files."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.evaluation.runs.locking import lock_folder
from cbo_gym.evaluation.runs.results import NewerError, Run, load_run, name_of

# Subfolder to which damaged files are moved.
DAMAGED = "damaged"
# Content of a file by which writing is tested; its size is the free space that a sweep needs to begin.
PROBE = bytes(2**20)


class DamagedRunWarning(UserWarning):
    """A file of a run is damaged; the message names the file and the remedy."""


def require_writable(folder: Path) -> None:
    """Create a folder for runs; raise OperationError if it cannot be written to, or the disk is full."""
    probe = folder / f".probe-{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            probe.write_bytes(PROBE)
        finally:
            probe.unlink(missing_ok=True)
    except FileExistsError as error:
        raise OperationError(f"{error.filename} is a file; give a folder for the runs") from error
    except NotADirectoryError as error:
        raise OperationError(f"{folder} leads through a file; give a folder for the runs") from error
    except OSError as error:
        raise OperationError(f"cannot write runs to {folder}: {error.strerror}") from error


def run_files(folder: Path) -> list[Path]:
    """Return the files of the runs in a folder, sorted by name; raise ArgumentError if the folder is missing."""
    if not folder.is_dir():
        raise ArgumentError(f"there is no folder {folder}; a sweep makes one")
    # Temporary files of runs begin with a dot.
    return sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))


def load_runs(folder: Path) -> Iterator[Run]:
    """Yield all runs in a folder, in the order of their files; each damaged file causes a DamagedRunWarning.

    Raises:
        ArgumentError: if the folder is missing.
    """
    yield from intact_runs(run_files(Path(folder)))


def intact_runs(paths: Iterable[Path]) -> Iterator[Run]:
    """Yield the runs of some files, in their order; each damaged file causes a DamagedRunWarning."""
    for path in paths:
        try:
            yield stored_run(path)
        except ArgumentError as error:
            warnings.warn(f"left out: {error}", DamagedRunWarning, stacklevel=2)


def stored_run(path: Path) -> Run:
    """Read a run of a folder; raise ArgumentError if the file is damaged, or its name is not that of the run in it."""
    run = load_run(path)
    if path.name != name_of(run):
        name = f"{run.agent} on {run.env}, seed {run.seed}"
        raise ArgumentError(f"{path} is not what its name says: it holds {name}, which belongs in {name_of(run)}")
    return run


def resumed_run(path: Path) -> Run | None:
    """Return the run of a file, or None if there is none; a damaged file is moved aside with a DamagedRunWarning.

    Raises:
        NewerError: if the file is of a newer version of cbo-gym, and is not moved.
    """
    if not path.exists():
        return None
    with suppress(ArgumentError):
        return stored_run(path)
    # Another sweep may have moved the file aside, and written an intact one under its name.
    with lock_folder(path.parent):
        if not path.exists():
            return None
        try:
            return stored_run(path)
        except NewerError:
            raise
        except ArgumentError as damage:
            aside = _move_aside(path)
            warnings.warn(f"{damage}; moved to {aside}, and played again", DamagedRunWarning, stacklevel=2)
            return None


def _move_aside(path: Path) -> Path:
    aside = path.parent / DAMAGED / path.name
    try:
        aside.parent.mkdir(exist_ok=True)
        # An earlier damaged file may have this name.
        if os.path.lexists(aside):
            aside = aside.with_stem(f"{path.stem}-{uuid.uuid4().hex[:8]}")
        path.rename(aside)
    except OSError as error:
        raise OperationError(f"cannot move the damaged {path} to {aside.parent}: {error.strerror}") from error
    return aside
