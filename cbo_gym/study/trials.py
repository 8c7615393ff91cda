"""Trials as the log tells them: what was asked, done and seen, and how each stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cbo_gym.study.log import Event

Status = Literal["pending", "told", "failed"]


@dataclass(frozen=True)
class Entry:
    """One trial.

    Attributes:
        number: from 1.
        flat: the suggested action, as the codec writes it in numbers.
        status: how it stands.
        why: why it was suggested, in words.
        context: what was seen before.
        values: of the variables, None where one was not measured.
        done: what was really done, as ``flat``; None where it is what was suggested.
        reason: of a failure.
        asked, ended: times.
    """

    number: int
    flat: list[float]
    status: Status = "pending"
    why: str = ""
    context: Mapping[str, float] | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    done: list[float] | None = None
    reason: str = ""
    asked: str = ""
    ended: str = ""

    @property
    def action(self) -> list[float]:
        """The action that was done, as far as is known; the suggested one, where nothing else was said."""
        return self.flat if self.done is None else self.done


def lacking_in(values: Mapping[str, float | None]) -> list[str]:
    """The variables that were not measured."""
    return [name for name, value in values.items() if value is None]


class Trials:
    """All trials and data of a study, event by event.

    Attributes:
        entries: the trials by their numbers.
        initial: the data from before the first trial was asked for: rounds with ``action``, ``values``, ``context``.
        missing: trial -> the variables that were not measured in it, for those that lack any.
        number: of the last event.
    """

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.initial: list[Mapping[str, Any]] = []
        self.missing: dict[int, list[str]] = {}
        self.number = 0
        self._running: dict[int, None] = {}  # numbers of pending trials, so that not all are looked through each time

    def copy(self) -> Trials:
        """Return a copy, which can take in other events."""
        copy = Trials()
        copy.entries, copy.initial = dict(self.entries), list(self.initial)
        copy.missing, copy._running = dict(self.missing), dict(self._running)
        copy.number = self.number
        return copy

    def hear(self, events: Iterable[Event]) -> None:
        """Take in events in their order."""
        for event in events:
            getattr(self, f"_{event.kind}")(event)
            self.number = event.number

    @property
    def pending(self) -> list[Entry]:
        """Those whose outcome is not known yet, in the order in which they were asked for."""
        return [self.entries[number] for number in self._running]

    def _data(self, event: Event) -> None:
        if not self.entries:
            self.initial += event.payload["rounds"]

    def _asked(self, event: Event) -> None:
        for told in event.payload["trials"]:
            number = int(told["number"])
            self._running[number] = None
            self.entries[number] = Entry(
                number, told["action"], why=told["why"], context=event.payload["context"], asked=event.time
            )

    def _told(self, event: Event) -> None:
        values = event.payload["values"]
        self._end(event, status="told", values=values, done=event.payload["done"])
        number = int(event.payload["trial"])
        if lacking := lacking_in(values):
            self.missing[number] = lacking
        else:
            self.missing.pop(number, None)

    _corrected = _told

    def _failed(self, event: Event) -> None:
        self._end(event, status="failed", reason=event.payload["reason"])

    def _end(self, event: Event, **changes: Any) -> None:
        number = int(event.payload["trial"])
        self._running.pop(number, None)
        self.entries[number] = replace(self.entries[number], ended=event.time, **changes)
