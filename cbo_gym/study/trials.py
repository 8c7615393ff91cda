"""The state of a study, which follows from the events of its log: the trials and the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cbo_gym.study.log import DATA_KINDS, Event, Log, NewEvent, Position

Status = Literal["measured", "pending", "partial", "closed", "failed", "rejected"]


@dataclass(frozen=True, repr=False)
class Entry:
    """One trial.

    Attributes:
        number: number of the trial, from 1.
        flat: the suggested or registered action, encoded as numbers by the codec.
        do: the values that were set, or are to be set, by name and in the study's units; in :attr:`.Study.trials` only.
        status: ``"pending"``, ``"partial"`` if a part of the outcome was recorded and the rest will follow,
            ``"measured"`` if the outcome was recorded, ``"closed"`` if it was recorded without the reward,
            ``"failed"`` if there is no result or an invalid one, or ``"rejected"``.
        why: the reason for the suggestion, in words.
        context: the contexts that were observed before.
        values: variable -> value; None if it was not measured, or not yet.
        std: variable -> standard error of its value, where it is stated.
        counts: variable -> number of zeros and ones whose mean is its value, where they were counted.
        done: the action that was really done, encoded as ``flat``; None if it is the suggested one.
        reason: the reason of a failure or a rejection.
        asked, ended: times of the suggestion and of the end, in UTC; ``ended`` is empty for a trial that is not over.
    """

    number: int
    flat: list[float]
    do: Mapping[str, Any] = field(default_factory=dict)
    status: Status = "pending"
    why: str = ""
    context: Mapping[str, float] | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    std: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    done: list[float] | None = None
    reason: str = ""
    asked: str = ""
    ended: str = ""

    def __repr__(self) -> str:
        reason = f", reason={self.reason!r}" if self.reason else ""
        return (
            f"Entry(number={self.number}, status={self.status!r}, do={dict(self.do)!r}, values={dict(self.values)!r}"
            f"{reason})"
        )

    @property
    def action(self) -> list[float]:
        """The action that was done: the suggested one unless another was recorded."""
        return self.flat if self.done is None else self.done

    @property
    def is_running(self) -> bool:
        """Whether an outcome, or the rest of one, will follow."""
        return self.status in ("pending", "partial")

    @property
    def record(self) -> dict[str, Any]:
        """The trial as a record, in the form in which the log stores a past round, and with its ``number``."""
        return {**vars(self), "action": self.action}


def missing_variables(values: Mapping[str, float | None]) -> list[str]:
    """Return the variables that were not measured."""
    return [name for name, value in values.items() if value is None]


def any_measured(values: Mapping[str, float | None]) -> bool:
    """Return whether a variable was measured."""
    return len(missing_variables(values)) < len(values)


def ends_of(events: Iterable[Event]) -> dict[int, int]:
    """Return number of a trial -> number of the event that ended it first, with an outcome or as failed."""
    ends: dict[int, int] = {}
    for event in events:
        if event.kind in ("told", "closed", "failed"):
            ends.setdefault(event.payload["trial"], event.number)
    return ends


class Trials:
    """All trials of a study, and the data that were added before them. It changes as events are applied.

    Attributes:
        entries: the trials by their numbers.
        initial: records of the data that were added before the first trial.
        avoided: the trials that failed or were rejected since the last outcome, by their numbers.
        number: number of the last event that was applied.
    """

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.initial: list[Mapping[str, Any]] = []
        self.avoided: dict[int, Entry] = {}
        self.number = 0
        self._has_precise_data = False

    def copy(self) -> Trials:
        """Return a copy, to which other events can be added."""
        copied = Trials()
        vars(copied).update({name: copy(value) for name, value in vars(self).items()})
        return copied

    @property
    def next_number(self) -> int:
        """Number of the next trial."""
        return max(self.entries, default=0) + 1

    @property
    def pending(self) -> list[Entry]:
        """The pending and partial trials, in the order in which they were asked for."""
        return [entry for entry in self.entries.values() if entry.is_running]

    @property
    def missing(self) -> dict[int, list[str]]:
        """Number of a trial -> the variables that it did not measure, for measured trials without some variable."""
        measured = (entry for entry in self.entries.values() if entry.status == "measured")
        return {entry.number: names for entry in measured if (names := missing_variables(entry.values))}

    @property
    def precise(self) -> bool:
        """Whether the precision of some value is stated."""
        return self._has_precise_data or any(entry.std for entry in self.entries.values())

    def apply(self, events: Iterable[Event]) -> None:
        """Apply events in their order."""
        for event in events:
            payload = event.payload
            if event.kind in DATA_KINDS:
                self.initial += payload["rounds"] if not self.entries else []
                self._has_precise_data |= any("std" in record for record in payload["rounds"])
            elif event.kind in ("asked", "registered"):
                for trial in payload["trials"]:
                    self.entries[int(trial["number"])] = Entry(
                        int(trial["number"]),
                        trial["action"],
                        why=trial["why"],
                        context=payload["context"],
                        asked=event.time,
                    )
            else:
                self._record(event)
            self.number = event.number

    def _record(self, event: Event) -> None:
        """Record an outcome, a part of it, or an end without one; a correction states the new status of the trial."""
        payload = event.payload
        status = payload.get("status", "measured" if event.kind in ("told", "corrected") else event.kind)
        ended = "" if status == "partial" else event.time
        changes = {"status": status, "reason": payload.get("reason", ""), "ended": ended}
        entry = self.entries[int(payload["trial"])]
        # A failed or rejected trial keeps the values that were recorded before.
        if "values" in payload:
            changes |= {name: payload.get(name, {}) for name in ("values", "std", "counts")} | {"done": payload["done"]}
            if entry.context:
                # A context may have been measured again.
                measured = {name: value for name, value in payload["values"].items() if value is not None}
                changes["context"] = {name: measured.get(name, before) for name, before in entry.context.items()}
        self.entries[entry.number] = entry = replace(entry, **changes)
        if status in ("failed", "rejected"):
            self.avoided[entry.number] = entry
        elif status in ("measured", "closed"):
            self.avoided.clear()


@dataclass(frozen=True)
class State:
    """State of a study after an event of its log. It is immutable, so threads can share it.

    Attributes:
        events: all events; event number ``n`` is at index ``n - 1``.
        trials: the trials after these events.
        position: position of the last event.
    """

    events: Sequence[Event]
    trials: Trials
    position: Position

    @property
    def imported(self) -> list[Mapping[str, Any]]:
        """The records of all rounds that were added as data."""
        return [record for event in self.events for record in event.payload.get("rounds", ())]


class History:
    """Reader and writer of a study's events, which keeps the last state.

    Threads may share it without a lock, because each replaces the state as a whole. The arguments are those of a
    :class:`~cbo_gym.study.log.StudyRow`.
    """

    def __init__(self, log: Log, study: int, digest: str) -> None:
        self.log, self.study = log, study
        self._state = State([], Trials(), Position(0, digest))

    def read(self) -> State:
        """Return the current state, after all events that have been written."""
        state = self._state
        return self._apply(state, self.log.events(self.study, state.position))

    def append(self, state: State, new_events: Sequence[NewEvent]) -> State | None:
        """Write events that were derived from a state, and return the new state.

        If other events have been written since, write nothing and return None.
        """
        written = self.log.append(self.study, state.position, new_events)
        return None if written is None else self._apply(state, written)

    def _apply(self, state: State, events: Sequence[Event]) -> State:
        if not events:
            return state
        trials = state.trials.copy()
        trials.apply(events)
        state = State([*state.events, *events], trials, events[-1].position)
        # Another thread may have read more events meanwhile.
        if state.position.number > self._state.position.number:
            self._state = state
        return state
