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


class Trials:
    """All trials and data of a study, event by event."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.data: list[Mapping[str, Any]] = []  # rounds that nobody asked for
        self.number = 0  # of the last event

    def hear(self, events: Iterable[Event]) -> None:
        """Take in events in their order."""
        for event in events:
            getattr(self, f"_{event.kind}")(event)
            self.number = event.number

    @property
    def pending(self) -> list[Entry]:
        """Those whose outcome is not known yet, in the order in which they were asked for."""
        return [entry for entry in self.entries.values() if entry.status == "pending"]

    def _data(self, event: Event) -> None:
        self.data += event.payload["rounds"]

    def _asked(self, event: Event) -> None:
        for told in event.payload["trials"]:
            number = int(told["number"])
            self.entries[number] = Entry(
                number, told["action"], why=told["why"], context=event.payload["context"], asked=event.time
            )

    def _told(self, event: Event) -> None:
        self._end(event, status="told", values=event.payload["values"], done=event.payload["done"])

    def _corrected(self, event: Event) -> None:
        self._end(event, status="told", values=event.payload["values"], done=event.payload["done"])

    def _failed(self, event: Event) -> None:
        self._end(event, status="failed", reason=event.payload["reason"])

    def _end(self, event: Event, **changes: Any) -> None:
        number = int(event.payload["trial"])
        self.entries[number] = replace(self.entries[number], ended=event.time, **changes)
