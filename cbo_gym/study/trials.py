"""A study according to its log: what was asked, done and seen of each trial, as one thread after another reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cbo_gym.study.log import Event, Log, Position

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
        # Numbers of pending trials, so that not all trials are looked through each time.
        self._running: dict[int, None] = {}

    def copy(self) -> Trials:
        """Return a copy, which can take in other events."""
        copy = Trials()
        vars(copy).update({name: value if name == "number" else value.copy() for name, value in vars(self).items()})
        return copy

    @property
    def pending(self) -> list[Entry]:
        """Those whose outcome is not known yet, in the order in which they were asked for."""
        return [self.entries[number] for number in self._running]

    def hear(self, events: Iterable[Event]) -> None:
        """Take in events in their order."""
        for event in events:
            payload = event.payload
            if event.kind == "data":
                self.initial += payload["rounds"] if not self.entries else []
            elif event.kind == "asked":
                for told in payload["trials"]:
                    number, context = int(told["number"]), payload["context"]
                    self._running[number] = None
                    self.entries[number] = Entry(
                        number, told["action"], why=told["why"], context=context, asked=event.time
                    )
            elif event.kind == "failed":
                self._end(event, status="failed", reason=payload["reason"])
            else:
                self._end(event, status="told", values=payload["values"], done=payload["done"])
            self.number = event.number

    def _end(self, event: Event, **changes: Any) -> None:
        number = int(event.payload["trial"])
        self._running.pop(number, None)
        self.missing.pop(number, None)
        self.entries[number] = ended = replace(self.entries[number], ended=event.time, **changes)
        if lacking := lacking_in(ended.values):
            self.missing[number] = lacking


@dataclass(frozen=True)
class State:
    """A study after an event of its log. It never changes, so threads can share it.

    Attributes:
        events: all events; number ``n`` has the index ``n - 1``.
        trials: the trials after them.
        position: of the last one.
    """

    events: Sequence[Event]
    trials: Trials
    position: Position


class History:
    """Reads each event of a study once, and appends events. It needs no lock: threads replace the state as a whole.

    Args:
        log: of the database.
        study: its number there.
        digest: of its description.
    """

    def __init__(self, log: Log, study: int, digest: str) -> None:
        self.log, self.study = log, study
        self._state = State([], Trials(), Position(0, digest))

    def read(self) -> State:
        """The study as it stands, with all events that have been written.

        Raises:
            OperationError: if the log cannot be read, or is not the one that was read before.
        """
        state = self._state
        return self._after(state, self.log.events(self.study, state.position))

    def append(self, state: State, entries: Sequence[tuple[str, Mapping[str, Any]]]) -> State | None:
        """Write events that follow from a state; None, and nothing is written, if other events came first.

        Raises:
            ArgumentError: if they are too long, or hold a string that cannot be stored.
            OperationError: if they cannot be written, or the log is not the one that was read.
        """
        written = self.log.append(self.study, state.position, entries)
        return None if written is None else self._after(state, written)

    def _after(self, state: State, new: Sequence[Event]) -> State:
        if not new:
            return state
        trials = state.trials.copy()
        trials.hear(new)
        state = State([*state.events, *new], trials, new[-1].position)
        # Another thread may have read more meanwhile.
        if state.position.number > self._state.position.number:
            self._state = state
        return state
