"""The record of a look: whether later code was seen to play runs alike."""

from __future__ import annotations

from pydantic import PositiveInt

from cbo_gym.validation import StrictModel

Stamps = dict[str, str]


class Restamp(StrictModel):
    """What a run carries of a look at its group: an agent, an environment, a code.

    A sample of the group was played again with later code. If it came out identical, this code gives the group too, as
    far as a sample can tell; if not, ``why`` says so, and nobody needs to look again.

    Attributes:
        sources: stamps of the later code, as ``Run.sources`` has them.
        libraries: it was played with, as ``Run.libraries`` has them.
        replayed: how many runs of the group were played again.
        runs: how many the group has.
        date: of the look, UTC: ``2026-01-31T12:00:00+00:00``.
        why: where the first run that came out otherwise differs; empty if each came out identical.
    """

    sources: Stamps
    libraries: Stamps
    replayed: PositiveInt
    runs: PositiveInt
    date: str
    why: str = ""
