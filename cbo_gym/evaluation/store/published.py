"""Publish runs in a store, a folder with one Parquet file per suite, and load them from it.

A store is small enough for the repository, because a published run has less in its table. Regrets and rewards are in
single precision, and expected rewards are computed from the regrets. The seconds of each round are the run's mean.
Actions, the nodes' values, contexts and the standard errors of expected rewards are null (``cbo-gym verify`` plays a
run again). Of the error of a failed run, only the last line is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cbo_gym._util.files import expand_home, write_bytes
from cbo_gym.agent_registry.labels import bare_name, matches
from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.evaluation.runs.counted import identity, newest
from cbo_gym.evaluation.runs.folder import load_runs, run_files, stored_run
from cbo_gym.evaluation.runs.locking import lock_folder
from cbo_gym.evaluation.runs.recorded import with_actions
from cbo_gym.evaluation.runs.results import INVALID_FILE_ERRORS, MAX_FILE_BYTES, Run, last_line, metadata_of
from cbo_gym.evaluation.seed_ranges import PUBLICATION
from cbo_gym.evaluation.store.codec import file_content, read_store_file
from cbo_gym.evaluation.suites import Suite, load_all, suites_path

# Subfolder of a store for runs that were replaced.
HISTORY = "history"
# Largest size of a store.
MAX_BYTES = 40 * 2**20
# Names of files, without suffix.
NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")


@dataclass(frozen=True)
class Published:
    """Outcome of :func:`publish`.

    Attributes:
        path: Path of the store's file.
        added: Number of runs that replace no other run.
        replaced: Number of runs that replace another run.
        unchanged: Number of runs that stay in the file.
        left_out: Number of runs in the folder on environments that are not in the suite.
        outdated: Number of runs in the folder that the file has already, or has a newer run instead of.
        bytes: Size of the file.
    """

    path: Path
    added: int
    replaced: int
    unchanged: int
    left_out: int
    outdated: int
    bytes: int


def publish(
    folder: Path | str,
    store: Path | str,
    suite: str | None = None,
    *,
    submission: bool = False,
    track: Callable[[Sequence[Path]], Iterable[Path]] = lambda paths: paths,
) -> Published:
    """Put the runs of a folder into a store.

    Of several runs with the same environment, number of rounds, size of batches, agent and seed, a store has only the
    newest, see :func:`cbo_gym.evaluation.runs.counted.newest`. The file is written in one step, or left unchanged;
    processes that publish to the same store wait for each other. Runs that are replaced, and those with seeds that the
    suite no longer takes, move to a file in the store's folder :data:`HISTORY`, so that their ids can still be found.

    Args:
        folder: Folder that a sweep wrote.
        store: Folder of the published results; it is created if missing.
        suite: Name of the file; None for the name of the folder. If it is a suite of the package (see
            ``cbo_gym.evaluation.suites``), only runs on its environments are taken, with any parameters.
        submission: Whether the runs are for a referee: they keep their actions, and are marked as unverified.
        track: Wraps the files that are read, to show progress.

    Raises:
        ArgumentError: if there are no runs, or a run is damaged or has a seed that the suite's verdicts do not take; if
            the name has characters other than lower case letters, digits, ``-`` and ``_``; or if the store's file is
            damaged, or the store would be larger than :data:`MAX_BYTES`.
        OperationError: if the store cannot be written, or another process has locked it for too long.
    """
    store, name = Path(store), suite if suite is not None else Path(folder).resolve().name
    if not NAME.fullmatch(name):
        raise ArgumentError(f"name the suite by lower case letters, digits, - and _; given {name!r}")
    runs = [stored_run(path) for path in track(run_files(Path(folder)))]
    package_suite = next((suite for suite in load_all() if suite.name == name), None)
    patterns = package_suite.environments if package_suite else ["*"]
    new = [run for run in runs if matches(run.env, patterns)]
    _require_seeds(new, package_suite)
    if not new:
        where = f"; {len(runs)} are on environments that are not of the suite {name}" if runs else ""
        raise ArgumentError(f"there are no runs in {folder} to publish{where}")
    with lock_folder(store):
        left_out = len(runs) - len(new)
        if submission:
            new = [replace(with_actions(run), unverified=True) for run in new]
        return _merge(store, name, new, left_out, overrule=submission, suite=package_suite)


def _require_seeds(runs: Sequence[Run], suite: Suite | None) -> None:
    """Check that the suite's verdicts take the seeds of all runs."""
    if suite is not None and (others := [run for run in runs if not suite.counts(run.seed, run.env)]):
        first, last = PUBLICATION.start, PUBLICATION.stop - 1
        raise ArgumentError(
            f"{len(others)} runs have other seeds or instances than {first} to {last}, such as {others[0].agent} on "
            f"{others[0].env}, seed {others[0].seed}; the verdicts of {suite.name} take these alone. Play them, "
            "cbo-gym sweep --suite does, or publish the others under another name: --suite my-trials"
        )


def put(path: Path, runs: Sequence[Run]) -> Published:
    """Put runs into a file of a store, where they replace runs with the same identity; errors as in :func:`publish`.

    If all of them are unverified, they replace no verified run.
    """
    if not NAME.fullmatch(path.stem) or path.suffix != ".parquet":
        raise ArgumentError(f"name the file by lower case letters, digits, - and _, and .parquet; given {path.name!r}")
    with lock_folder(path.parent):
        return _merge(path.parent, path.stem, runs, overrule=not all(run.unverified for run in runs))


def _merge(
    store: Path, name: str, runs: Sequence[Run], left_out: int = 0, *, overrule: bool, suite: Suite | None = None
) -> Published:
    """Merge runs into a file; of runs with the same identity the newest stays, or with ``overrule`` the new one.

    Runs that are replaced, or that the suite's verdicts no longer take, move to :data:`HISTORY` first.
    """
    new = [replace(run, error=last_line(run.error) if run.error else "") for run in runs]
    path = store / f"{name}.parquet"
    stored = read_store_file(path) if path.exists() else []
    old = [run for run in stored if suite is None or suite.counts(run.seed, run.env)]
    if overrule:
        new_identities = set(map(identity, new))
        new_groups = {_blind_group(run) for run in new if run.secret}
        old = [run for run in old if identity(run) not in new_identities]
        old = [run for run in old if not (run.secret and _blind_group(run) in new_groups)]
    # If two runs are equally new, the last one stays, which is the old one.
    merged = newest([*new, *old])
    content = _encode(path, merged)
    _set_aside(store / HISTORY / path.name, stored, {run.id for run in merged})
    write_bytes(path, content)
    old_objects = {id(run) for run in old}
    unchanged = sum(id(run) in old_objects for run in merged)
    return Published(
        path=path,
        added=len(merged) - len(newest(old)),
        replaced=len(newest(old)) - unchanged,
        unchanged=unchanged,
        left_out=left_out,
        outdated=len(new) - (len(merged) - unchanged),
        bytes=len(content),
    )


def _encode(path: Path, runs: Sequence[Run]) -> bytes:
    """Return the content of a file with these runs, after a check of the size of its store."""
    content = file_content(path.stem, runs)
    size = len(content) + sum(other.stat().st_size for other in store_files(path.parent) if other != path)
    if size > MAX_BYTES:
        raise ArgumentError(
            f"with these runs {path.parent} would take {size / 2**20:.1f} MiB; at most {MAX_BYTES / 2**20:g} may be"
        )
    return content


def _set_aside(path: Path, runs: Iterable[Run], kept: Collection[str]) -> None:
    """Add runs whose ids are not among ``kept`` to a file of the history, except blind and unverified runs."""
    replaced = {run.id: run for run in runs if run.id not in kept and not run.unverified and not run.secret}
    if not replaced:
        return
    with lock_folder(path.parent):
        replaced |= {run.id: run for run in (read_store_file(path) if path.exists() else [])}
        write_bytes(path, _encode(path, sorted(replaced.values(), key=lambda run: (identity(run), run.date))))


def _blind_group(run: Run) -> tuple[str, str]:
    """Return agent and environment of a blind run; the blind runs of such a pair are replaced together."""
    return run.agent, bare_name(run.env)


def load_published(store: Path | str | None = None, suite: str | None = None) -> list[Run]:
    """Return published runs of any status; ``leaderboard(load_published("survey2026"))`` compares those of a suite.

    Args:
        store: Folder of published results, or a file in it; or the name of a file of the package, ``"mcbo2023"``; None
            for all files of the package.
        suite: Read only the file of this name.

    Raises:
        ArgumentError: if there is no such folder or file, or one is damaged or not of published results.
        OperationError: without a folder, if the package was installed without its results.
    """
    path = package_store() if store is None else resolve(store)
    if suite is not None:
        path = path / f"{suite}.parquet"
    if not path.exists():
        raise ArgumentError(f"there are no published results {path}{_describe_files(path, suite)}")
    return [run for file in store_files(path) for run in read_store_file(file)]


def _describe_files(path: Path, suite: str | None) -> str:
    """Return the names of existing files for the message that a file is missing; empty if there are none to name."""
    folder = path.parent if suite else _own_folder()
    if not folder.is_dir() or not (suite or NAME.fullmatch(str(path))):
        return ""
    names = ", ".join(file.stem for file in store_files(folder))
    return f"; there are {names}" if suite else f", neither here nor in the package, which has {names}"


def resolve(store: Path | str) -> Path:
    """Return the path if it exists, else the path of the package's published results with that name, if there are any.

    ``mcbo2023`` names a file of the package, ``results`` names the folder of all files.
    """
    path, packaged = expand_home(store), _own_folder()
    if path.exists() or not NAME.fullmatch(str(store)):
        return path
    named = packaged if packaged.name == str(store) else packaged / f"{store}.parquet"
    return named if named.exists() else path


def hides_package_store(store: Path | str) -> bool:
    """Return whether a file or folder here has the name of the folder of the package's published results."""
    path, packaged = expand_home(store), _own_folder()
    return str(store) == packaged.name and path.exists() and packaged.exists() and not path.samefile(packaged)


def package_store() -> Path:
    """Return the folder of published results inside or next to the package; raise OperationError if it is missing."""
    if not (folder := _own_folder()).is_dir():
        raise OperationError(f"the published results are missing from this installation ({folder}); reinstall cbo-gym")
    return folder


def _own_folder() -> Path:
    return suites_path().parent / "results"


def runs_in(path: Path | str) -> Iterable[Run]:
    """Return the runs of a folder that a sweep wrote, or of published results; see :func:`resolve` for their names."""
    path = resolve(path)
    return load_published(path) if is_published(path) else load_runs(path)


def is_published(path: Path) -> bool:
    """Return whether a file, or the first Parquet file of a folder, is one of published results by its metadata."""
    first = next(iter(store_files(path)), None)
    try:
        if first is None or not first.is_file() or first.stat().st_size > MAX_FILE_BYTES:
            return False
        return "schema" in metadata_of(first)
    except (*INVALID_FILE_ERRORS, OSError):
        return False


def store_files(store: Path) -> list[Path]:
    """Return the files of a store, or the file itself."""
    if not store.is_dir():
        return [store]
    return sorted(path for path in store.glob("*.parquet") if not path.name.startswith("."))
