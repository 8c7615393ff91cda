"""Your own runs beside those of other folders: on the same environments, with warnings of what differs."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from cbo_gym.errors import FEW_NAMES
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import parts_of
from cbo_gym.evaluation.store.published import runs_in


class _Seen:
    """Numbers of rounds and code of the runs of one place."""

    def __init__(self) -> None:
        self.rounds: dict[str, set[int]] = defaultdict(set)
        self.code: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, run: Run) -> None:
        if run.status == "finished":
            self.rounds[run.env].add(run.horizon)
            for name, stamp in parts_of(run).items():
                self.code[name].add(stamp)


def together(mine: Iterable[Run], others: Iterable[Path | str]) -> Iterator[Run]:
    """Yield the given runs, then those of other places on the same environments.

    Warns of places that have other numbers of rounds, or other code of environments or agents.

    Args:
        mine: The given runs.
        others: Folders that sweeps wrote, or published results.
    """
    own = _Seen()
    for run in mine:
        own.add(run)
        yield run
    for place in others:
        theirs = _Seen()
        for run in runs_in(place):
            if run.env in own.rounds:
                theirs.add(run)
                yield run
        _warn(own, theirs, place)


def _warn(own: _Seen, theirs: _Seen, place: Path | str) -> None:
    if not theirs.rounds:
        warnings.warn(f"{place} has no finished run on any of the {len(own.rounds)} environments", stacklevel=4)
    rounds = [
        f"{env} ({_or(found)} there, {_or(own.rounds[env])} here)"
        for env, found in theirs.rounds.items()
        if not own.rounds[env] & found
    ]
    code = [
        f"{' '.join(name)} ({_or(found)} there, {_or(own.code[name])} here)"
        for name, found in theirs.code.items()
        if name in own.code and found != own.code[name]
    ]
    for differences, what, advice in (
        (rounds, "have other numbers of rounds, and are listed apart", "play yours with the horizon that is there"),
        (code, "were played with other code", "play the older ones again"),
    ):
        if differences:
            more = f" and {len(differences) - FEW_NAMES} more" if len(differences) > FEW_NAMES else ""
            listed = ", ".join(differences[:FEW_NAMES])
            warnings.warn(f"runs of {place} {what}: {listed}{more}; {advice}", stacklevel=4)


def _or(values: Iterable[object]) -> str:
    texts = sorted(map(str, values))
    return " or ".join(texts[:3]) + (f" or {len(texts) - 3} others" if len(texts) > 3 else "")
