"""The published results: a store of what was played, compact enough to lie in the repository.

A store is a folder with one Parquet file per suite, with one row per run. A published run has the table of a full one,
with these differences: regrets and rewards have 24 binary digits, 7 decimal ones; regrets are what is kept, rather than
expected rewards, since near the optimum they are the smaller numbers. Each round's seconds are the run's mean. Actions,
the nodes' values, contexts and the standard errors of expected rewards are null: ``cbo-gym verify`` plays a run again.
Of the error of a failed run the last line is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.evaluation.runs.counted import identity, newest
from cbo_gym.evaluation.runs.folder import load_runs, run_files, stored_run
from cbo_gym.evaluation.runs.locking import locked
from cbo_gym.evaluation.runs.recorded import with_actions
from cbo_gym.evaluation.runs.results import (
    MAX_FILE_BYTES,
    NO_RESULT,
    Run,
    last_line,
    metadata_of,
)
from cbo_gym.evaluation.store.codec import file_content, read_part
from cbo_gym.files import write_bytes
from cbo_gym.labels import bare_name
from cbo_gym.seed_ranges import PUBLICATION
from cbo_gym.specs import matches
from cbo_gym.suites import Suite, load_all, suites_path

HISTORY = "history"  # folder in a store: runs that were replaced, or on which no verdict stands any more
MAX_BYTES = 40 * 2**20  # of a store
NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")


@dataclass(frozen=True)
class Published:
    """The outcome of :func:`publish`.

    Attributes:
        path: the file.
        added, replaced, unchanged: runs that are new in it, that took the place of others, and that stay.
        left_out: runs of the folder that are of no environment of the suite.
        outdated: runs of the folder in whose place the file has a newer one, or the same.
        bytes: size of the file.
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
    """Put the runs of a folder into a store: those that it lacks, and those that are newer than its own.

    One run is kept of each environment, number of rounds, agent and seed: see
    :func:`cbo_gym.evaluation.runs.counted.newest`. The file is written in one step, or left as it was; of several
    processes that publish to a store one reads, merges and writes at a time. Runs that are replaced, and those on seeds
    that the suite's verdicts do not take any more, go to the file of the same name in the store's folder
    :data:`HISTORY`, which is read by its own path alone: an id that was published stays known.

    Args:
        folder: that a sweep wrote.
        store: folder of the published results; it is made where there is none.
        suite: name of the file. Of a suite of the package (see ``cbo_gym.suites``) only runs on its environments are
            taken, with any keywords. None for the name of the folder.
        submission: whether the runs are to be judged by whoever has another store: they keep their actions, and are
            marked as unverified until then.
        track: wraps the files that are read, to show how far it is.

    Raises:
        ArgumentError: if a run is damaged; if there is none; if the suite's verdicts take seeds for publication alone,
            and one has another; for a name with other signs than lower case letters,
            digits, ``-`` and ``_``; if the file of the store is damaged; if the store would be larger than
            :data:`MAX_BYTES`.
        OperationError: if the store cannot be written, or another process has it for too long.
    """
    store, name = Path(store), suite if suite is not None else Path(folder).resolve().name
    if not NAME.fullmatch(name):
        raise ArgumentError(f"name the suite by lower case letters, digits, - and _; given {name!r}")
    found = [stored_run(path) for path in track(run_files(Path(folder)))]
    known = next((suite for suite in load_all() if suite.name == name), None)
    patterns = known.environments if known else ["*"]
    new = [run for run in found if matches(run.env, patterns)]
    _require_seeds(new, known)
    if not new:
        where = f"; {len(found)} are on environments that the suite {name} has not" if found else ""
        raise ArgumentError(f"there are no runs in {folder} to publish{where}")
    with locked(store):
        kept = [replace(with_actions(run), unverified=True) for run in new] if submission else new
        left_out = len(found) - len(new)
        return _merge(store, name, list(map(_compact, kept)), left_out, overrule=submission, suite=known)


def _require_seeds(runs: Sequence[Run], suite: Suite | None) -> None:
    """Of a suite whose verdicts take seeds for publication alone, no other ones."""
    if suite is not None and (others := [run for run in runs if not suite.takes(run.seed, run.env)]):
        first, last = PUBLICATION.start, PUBLICATION.stop - 1
        raise ArgumentError(
            f"{len(others)} runs have other seeds or instances than {first} to {last}, such as {others[0].agent} on "
            f"{others[0].env}, seed {others[0].seed}; the verdicts of {suite.name} take these alone. Play them, "
            "cbo-gym sweep --suite does, or publish the others under another name: --suite my-trials"
        )


def put(path: Path, runs: Sequence[Run]) -> Published:
    """Put runs into one file of a store, in the place of those that it has of the same; raises as :func:`publish`.

    Where all are unverified they take no place of one that is verified.
    """
    if not NAME.fullmatch(path.stem) or path.suffix != ".parquet":
        raise ArgumentError(f"name the file by lower case letters, digits, - and _, and .parquet; given {path.name!r}")
    with locked(path.parent):
        return _merge(
            path.parent,
            path.stem,
            list(map(_compact, runs)),
            left_out=0,
            overrule=not all(run.unverified for run in runs),
        )


def _merge(
    store: Path, name: str, new: Sequence[Run], left_out: int, *, overrule: bool = False, suite: Suite | None = None
) -> Published:
    """Read a file of the store, put runs into it, and write it again; of the same the newest, or all that are new.

    What is replaced, and what a suite's verdicts no longer take, goes to :data:`HISTORY` first.
    """
    path = store / f"{name}.parquet"
    there = old = read_part(path) if path.exists() else []
    if suite is not None:
        old = [run for run in old if suite.takes(run.seed, run.env)]
    if overrule:
        theirs = set(map(identity, new))
        blind = {_blind_group(run) for run in new if run.secret}
        old = [run for run in old if identity(run) not in theirs and not (run.secret and _blind_group(run) in blind)]
    kept = newest([*new, *old])  # of two that are equally new the last counts
    content = _fitting(path, kept)
    _set_aside(store / HISTORY / path.name, there, {run.id for run in kept})
    write_bytes(path, content)
    before = {id(run) for run in old}
    stay = sum(id(run) in before for run in kept)
    return Published(
        path=path,
        added=len(kept) - len(newest(old)),
        replaced=len(newest(old)) - stay,
        unchanged=stay,
        left_out=left_out,
        outdated=len(new) - (len(kept) - stay),
        bytes=len(content),
    )


def _fitting(path: Path, runs: Sequence[Run]) -> bytes:
    """The content of a file with these runs, with which its store is not too large."""
    content = file_content(path.stem, runs)
    size = len(content) + sum(other.stat().st_size for other in parts(path.parent) if other != path)
    if size > MAX_BYTES:
        raise ArgumentError(
            f"with these runs {path.parent} would take {size / 2**20:.1f} MiB; at most {MAX_BYTES / 2**20:g} may be"
        )
    return content


def _set_aside(path: Path, runs: Iterable[Run], kept: Collection[str]) -> None:
    """Add those runs to a file of the history whose ids are not kept elsewhere; blind and unverified ones have none."""
    past = {run.id: run for run in runs if run.id not in kept and not run.unverified and not run.secret}
    if not past:
        return
    with locked(path.parent):
        past |= {run.id: run for run in (read_part(path) if path.exists() else [])}
        write_bytes(path, _fitting(path, sorted(past.values(), key=lambda run: (identity(run), run.date))))


def _blind_group(run: Run) -> tuple[str, str]:
    """What blind runs are played for together: an agent on an environment, whatever its parameters."""
    return run.agent, bare_name(run.env)


def load_published(store: Path | str | None = None, suite: str | None = None) -> list[Run]:
    """The published runs, finished ones and others, with the tables that leaderboards and figures need.

    ``leaderboard(load_published("survey2026"))`` compares those of a suite.

    Args:
        store: a folder of published results, or one file of it; or, as a text, the name of a file that the package has,
            ``"mcbo2023"``; None for all that it has.
        suite: the file of this name alone.

    Raises:
        ArgumentError: if there is no such folder or file, or one is damaged or no published results.
        OperationError: without a folder, if the package was installed without its results.
    """
    path = own_store() if store is None else _named(store)
    if suite is not None:
        path = path / f"{suite}.parquet"
    if not path.exists():
        there = f"; there are {', '.join(part.stem for part in parts(path.parent))}" if path.parent.is_dir() else ""
        raise ArgumentError(f"there are no published results {path}{there if suite is not None else ''}")
    return [run for part in parts(path) for run in read_part(part)]


def _named(store: Path | str) -> Path:
    """A path, or the file of the package's own that a text names."""
    path = Path(store)
    if isinstance(store, str) and NAME.fullmatch(store) and not path.exists():
        own = own_store()
        if (own / f"{store}.parquet").exists():
            return own / f"{store}.parquet"
        there = ", ".join(part.stem for part in parts(own))
        raise ArgumentError(
            f"there are no published results {store}, neither here nor in the package, which has {there}"
        )
    return path


def own_store() -> Path:
    """``results`` of the package: within it where it is installed, beside it in a checkout.

    Raises:
        OperationError: if it is not there.
    """
    found = suites_path().parent / "results"
    if not found.is_dir():
        raise OperationError(
            f"the published results are missing from this installation ({found}); install cbo-gym anew"
        )
    return found


def runs_in(path: Path | str) -> Iterable[Run]:
    """The runs of a folder that a sweep wrote, or of published results.

    Raises:
        ArgumentError: if there is no such folder or file, or it is no published results.
    """
    return load_published(path) if is_published(Path(path)) else load_runs(Path(path))


def is_published(path: Path) -> bool:
    """Whether a file, or the first Parquet file of a folder, says that it holds published results."""
    first = next(iter(parts(path)), None)
    try:
        if first is None or not first.is_file() or first.stat().st_size > MAX_FILE_BYTES:
            return False
        return "schema" in metadata_of(first)
    except (*NO_RESULT, OSError):
        return False


def parts(store: Path) -> list[Path]:
    """The files of a store; of one file itself."""
    if not store.is_dir():
        return [store]
    return sorted(path for path in store.glob("*.parquet") if not path.name.startswith("."))


def _compact(run: Run) -> Run:
    """The run with the error that is published."""
    return replace(run, error=last_line(run.error) if run.error else "")
