"""Combine a user's runs with other runs on the same environments, such as published results, to compare them.

Warnings say if the other runs have other numbers of rounds or other code.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from cbo_gym.errors import FEW_NAMES
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.runs.revisions import parts_of
from cbo_gym.evaluation.store.published import hides_package_store, package_store, runs_in


class _Summary:
    """Numbers of rounds of each environment, and code of the runs, in one folder or file."""

    def __init__(self) -> None:
        self.rounds: dict[str, set[int]] = defaultdict(set)
        self.code: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, run: Run) -> None:
        if run.status == "finished":
            self.rounds[run.env].add(run.horizon)
            for name, stamp in parts_of(run).items():
                self.code[name].add(stamp)


# What holds runs: a folder or published results, one run, or several.
Source = Path | str | Run | Iterable[Run]


def runs_of(source: Source, beside: Path | str | Iterable[Path | str] = ()) -> Iterable[Run]:
    """Return the runs of ``source``, then those of ``beside`` on the same environments.

    Args:
        source: Folder that a sweep wrote, published results (a path, or a name of the package's), a run, or runs.
        beside: Other folders or published results. Of their runs on the environments of ``source``, those with the
            same numbers of rounds are taken; if there are none, those with other numbers, with a warning. Runs of other
            code are taken with a warning too.
    """
    if isinstance(source, str | Path):
        source = runs_in(source)
    runs = [source] if isinstance(source, Run) else source
    others = [beside] if isinstance(beside, str | Path) else list(beside)
    return _combine_runs(runs, others) if others else runs


def _combine_runs(runs: Iterable[Run], others: Iterable[Path | str]) -> Iterator[Run]:
    own_summary = _Summary()
    for run in runs:
        own_summary.add(run)
        yield run
    for path in others:
        if hides_package_store(path):
            warnings.warn(
                f"{path} is a folder here; {package_store()} has the published results of the package", stacklevel=3
            )
        summary = _Summary()
        # The reasons why agents do not play these environments are of no use here.
        candidates = [run for run in runs_in(path) if run.env in own_summary.rounds and run.status != "skipped"]
        for run in candidates:
            summary.add(run)
        for run in candidates:
            shared_rounds = own_summary.rounds[run.env] & summary.rounds[run.env]
            if not shared_rounds or run.horizon in shared_rounds:
                yield run
        _warn_of_differences(own_summary, summary, path)


def _warn_of_differences(summary: _Summary, other_summary: _Summary, path: Path | str) -> None:
    if not other_summary.rounds:
        warnings.warn(f"{path} has no finished run on any of the {len(summary.rounds)} environments", stacklevel=4)
    rounds = [
        f"{env} ({_join(values)} there, {_join(summary.rounds[env])} here)"
        for env, values in other_summary.rounds.items()
        if not summary.rounds[env] & values
    ]
    code = [
        f"{' '.join(name)} ({_join(values)} there, {_join(summary.code[name])} here)"
        for name, values in other_summary.code.items()
        if name in summary.code and values != summary.code[name]
    ]
    for differences, fault, advice in (
        (rounds, "have other numbers of rounds, and are listed apart", "play yours with the horizon that is there"),
        (code, "were played with other code", "play the older ones again"),
    ):
        if differences:
            more = f" and {len(differences) - FEW_NAMES} more" if len(differences) > FEW_NAMES else ""
            listed = ", ".join(differences[:FEW_NAMES])
            warnings.warn(f"runs of {path} {fault}: {listed}{more}; {advice}", stacklevel=4)


def _join(values: Iterable[object]) -> str:
    strings = sorted(map(str, values))
    return " or ".join(strings[:3]) + (f" or {len(strings) - 3} others" if len(strings) > 3 else "")
