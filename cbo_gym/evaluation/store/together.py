"""Runs of one's own beside those of others: on the same environments, and with word of what differs."""

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
    """Code, libraries and machines of the runs of one place, as far as comparisons depend on them."""

    def __init__(self) -> None:
        self.rounds: dict[str, set[int]] = defaultdict(set)
        self.code: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, run: Run) -> None:
        if run.status == "finished":
            self.rounds[run.env].add(run.horizon)
            for name, stamp in parts_of(run).items():
                self.code[name].add(stamp)


def together(mine: Iterable[Run], others: Iterable[Path | str]) -> Iterator[Run]:
    """The runs that are given, then those of other places on the same environments.

    Warns of places whose numbers of rounds, or whose code of environments, scores and agents, are others.

    Args:
        mine: the runs.
        others: folders that sweeps wrote, or published results.
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
    apart = [env for env in theirs.rounds if not own.rounds[env] & theirs.rounds[env]]
    if apart:
        named = [f"{env} ({_or(theirs.rounds[env])} there, {_or(own.rounds[env])} here)" for env in apart[:FEW_NAMES]]
        more = f" and {len(apart) - FEW_NAMES} more" if len(apart) > FEW_NAMES else ""
        warnings.warn(
            f"runs of {place} have other numbers of rounds, and are listed apart: {', '.join(named)}{more}; play yours "
            "with the horizon that is there",
            stacklevel=4,
        )
    others = [name for name, stamps in theirs.code.items() if name in own.code and stamps != own.code[name]]
    if others:
        named = [
            f"{' '.join(name)} ({_or(theirs.code[name])} there, {_or(own.code[name])} here)"
            for name in others[:FEW_NAMES]
        ]
        more = f" and {len(others) - FEW_NAMES} more" if len(others) > FEW_NAMES else ""
        warnings.warn(
            f"runs of {place} were played with other code: {', '.join(named)}{more}; play the older ones again",
            stacklevel=4,
        )


def _or(values: Iterable[object]) -> str:
    texts = sorted(map(str, values))
    return " or ".join(texts[:3]) + (f" or {len(texts) - 3} others" if len(texts) > 3 else "")
