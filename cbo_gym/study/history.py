"""A study according to its log, as one thread after another reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cbo_gym.study.log import Event, Log, Position
from cbo_gym.study.trials import Trials


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
