"""Whether today's code still gives what is published: a sample of each group of runs is played again.

A group is what one agent played on one environment with one code. Where every replay comes out identical, the store is
told that today's code gives the group too (:class:`cbo_gym.evaluation.runs.restamp.Restamp`); where one does not, it is
told that, and the group is named, to be played anew. Nothing is said of the runs that were not in the sample but this.
On another processor, or its kernels, runs may differ with any code, so that nothing follows from a difference there.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np

from cbo_gym.evaluation.runs.code_now import Today, code_of
from cbo_gym.evaluation.runs.machine import processor_of
from cbo_gym.evaluation.runs.restamp import Restamp
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.published import parts, read_part
from cbo_gym.evaluation.store.restamping import write_restamps
from cbo_gym.evaluation.verify.replay import Replay, replays

ONE_IN = 10  # runs of a group is played again, and at least one
BATCH_SECONDS = 120.0  # of agents' time, as stored, that an interruption costs at most, beside the longest group
#: what chooses the kernels of a kind of processor, OpenBLAS's and torch's, where the processor has them
KERNELS = {
    "Haswell": "OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=avx2",
    "SkylakeX": "OPENBLAS_CORETYPE=SkylakeX ATEN_CPU_CAPABILITY=avx512",
}
Outcome = Literal["restamped", "differs", "skipped"]


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one agent on one environment with one code.

    Attributes:
        path: of the file that they are in.
        runs: all of them.
        sample: those that are played again; none where it is known to differ.
        known: where an earlier look saw that today's code plays otherwise; empty if none did.
    """

    path: Path
    runs: tuple[Run, ...]
    sample: tuple[Run, ...]
    known: str = ""

    @property
    def seconds(self) -> float:
        """What playing the sample again takes an agent, by what is stored."""
        return sum(seconds_of(run) for run in self.sample)


@dataclass(frozen=True)
class Look:
    """What became of a group.

    Attributes:
        group: of runs.
        outcome: ``"restamped"`` if every replay came out identical; ``"differs"`` if one did not; ``"skipped"`` if
            one cannot be played here, or only on other kernels, and did not.
        why: of the first replay that was not identical, with its seed; empty if all were.
    """

    group: Group
    outcome: Outcome
    why: str


def outdated(store: Path, seed: int = 0) -> list[Group]:
    """The groups of a store whose code, or whose libraries, are not today's, with a sample of each.

    Args:
        store: a folder of published results, or one file of it.
        seed: of the choice.

    Raises:
        ArgumentError: if there is none, or one is damaged.
    """
    held = {path: read_part(path) for path in parts(store)}
    today = Today(run for runs in held.values() for run in runs)
    return [
        Group(path, tuple(runs), () if known else tuple(_sample(runs, seed)), known)
        for path, part in held.items()
        for runs in _groups(run for run in part if not today.gives(run))
        for known in [today.differs(runs[0])]
    ]


def restamp(
    groups: Sequence[Group],
    *,
    allow: Collection[str] = (),
    n_jobs: int = -1,
    on_run: Callable[[Run], None] | None = None,
) -> Iterator[Look]:
    """Play the samples of some groups again, and write whether they come out identical with today's code.

    The files are written every few minutes, each time as a whole, so that an interrupted look is taken up by the next:
    what was restamped is not :func:`outdated` any more, and what is known to differ is not played.

    Args:
        groups: what :func:`outdated` found.
        allow: import paths of agents that may be played though they are not installed.
        n_jobs: processes at a time; -1 for one a core.
        on_run: called after each run that was played.
    """
    for batch in _batches(groups):
        played = replays([run for group in batch for run in group.sample], allow=allow, n_jobs=n_jobs, on_run=on_run)
        found = [(group, [next(played) for _ in group.sample]) for group in batch]
        looks = [_look(group, replayed) for group, replayed in found]
        for path in dict.fromkeys(group.path for group in batch):
            new = {
                run.id: _restamp(look, replayed[0].again)
                for (group, replayed), look in zip(found, looks, strict=True)
                if group.path == path and look.outcome != "skipped" and replayed and replayed[0].again
                for run in group.runs
            }
            if new:
                write_restamps(path, new)
        yield from looks


def seconds_of(run: Run) -> float:
    """What a run took its agent; 0 of one that did not finish."""
    return run.seconds_a_round * run.horizon if run.status == "finished" else 0.0


def _groups(runs: Iterable[Run]) -> list[list[Run]]:
    found: dict[object, list[Run]] = {}
    for run in runs:
        code = tuple(sorted(code_of(run).items()))
        found.setdefault((run.agent, run.env, run.horizon, run.batch, run.recommend, code), []).append(run)
    return list(found.values())


def _sample(runs: Sequence[Run], seed: int) -> list[Run]:
    """One in ten of a group, at least one, at random; which depends on nothing but the group and the seed."""
    key = zlib.crc32(" ".join(run.id for run in runs).encode())
    chosen = np.random.default_rng([seed, key]).permutation(len(runs))[: math.ceil(len(runs) / ONE_IN)]
    return [runs[place] for place in sorted(chosen)]


def _batches(groups: Sequence[Group]) -> Iterator[list[Group]]:
    batch: list[Group] = []
    for group in groups:
        batch.append(group)
        if sum(one.seconds for one in batch) > BATCH_SECONDS:
            yield batch
            batch = []
    if batch:
        yield batch


def _look(group: Group, replayed: Sequence[Replay]) -> Look:
    if group.known:
        return Look(group, "differs", group.known)
    for one in replayed:
        again_as_before = one.verdict == "agrees" and one.run.status != "finished"  # it failed, or was skipped, again
        if one.verdict != "identical" and not again_as_before:
            told = _on_other_kernels(one)
            outcome: Outcome = "skipped" if told or one.verdict == "skipped" else "differs"
            return Look(group, outcome, f"seed {one.run.seed}: {one.why}{told}")
    return Look(group, "restamped", "")


def _on_other_kernels(one: Replay) -> str:
    """That a run was played with the kernels of another processor, and how to have them; empty if it was not.

    Where those of NumPy's linear algebra are the same, torch's library still has others for another make of processor.
    """
    if one.again is None:
        return ""
    if one.again.libraries.get("blas") != (blas := one.run.libraries.get("blas", "")):
        kernel = "".join(blas.split()[2:])
        how = f"; {KERNELS[kernel]} chooses them" if kernel in KERNELS else ""
        return f", on the kernels of another processor: it was played with {kernel or 'some that nobody recorded'}{how}"
    if processor_of(one.again.machine) != (processor := processor_of(one.run.machine)):
        return f", on another processor: it was played on {processor or 'one that nobody recorded'}"
    return ""


def _restamp(look: Look, again: Run) -> Restamp:
    return Restamp(
        sources=again.sources,
        libraries=again.libraries,
        replayed=len(look.group.sample),
        runs=len(look.group.runs),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        why=look.why,
    )
