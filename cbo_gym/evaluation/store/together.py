"""Your own runs with those of other folders on the same environments, with warnings of differences."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from cbo_gym.errors import FEW_NAMES
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import parts_of
from cbo_gym.evaluation.store.published import runs_in


class _Summary:
    """Numbers of rounds and code of the runs of one folder or file."""

    def __init__(self) -> None:
        self.rounds: dict[str, set[int]] = defaultdict(set)
        self.code: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, run: Run) -> None:
        if run.status == "finished":
            self.rounds[run.env].add(run.horizon)
            for name, stamp in parts_of(run).items():
                self.code[name].add(stamp)


def combine_runs(mine: Iterable[Run], others: Iterable[Path | str]) -> Iterator[Run]:
    """Yield the given runs, then those of other folders or files on the same environments.

    Warns of those that have other numbers of rounds, or other code of environments or agents.

    Args:
        mine: The given runs.
        others: Folders that sweeps wrote, or published results.
    """
    own = _Summary()
    for run in mine:
        own.add(run)
        yield run
    for path in others:
        summary = _Summary()
        for run in runs_in(path):
            if run.env in own.rounds:
                summary.add(run)
                yield run
        _warn(own, summary, path)


def _warn(own: _Summary, theirs: _Summary, path: Path | str) -> None:
    if not theirs.rounds:
        warnings.warn(f"{path} has no finished run on any of the {len(own.rounds)} environments", stacklevel=4)
    rounds = [
        f"{env} ({_join(values)} there, {_join(own.rounds[env])} here)"
        for env, values in theirs.rounds.items()
        if not own.rounds[env] & values
    ]
    code = [
        f"{' '.join(name)} ({_join(values)} there, {_join(own.code[name])} here)"
        for name, values in theirs.code.items()
        if name in own.code and values != own.code[name]
    ]
    for differences, what, advice in (
        (rounds, "have other numbers of rounds, and are listed apart", "play yours with the horizon that is there"),
        (code, "were played with other code", "play the older ones again"),
    ):
        if differences:
            more = f" and {len(differences) - FEW_NAMES} more" if len(differences) > FEW_NAMES else ""
            listed = ", ".join(differences[:FEW_NAMES])
            warnings.warn(f"runs of {path} {what}: {listed}{more}; {advice}", stacklevel=4)


def _join(values: Iterable[object]) -> str:
    strings = sorted(map(str, values))
    return " or ".join(strings[:3]) + (f" or {len(strings) - 3} others" if len(strings) > 3 else "")
