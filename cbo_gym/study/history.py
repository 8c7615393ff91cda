"""The events of one study, each read from the database once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cbo_gym.study.log import Event, Log


class History:
    """The state of a study according to its log.

    Args:
        log: of the database.
        study: its number there.

    Attributes:
        events: those that have been read, event ``n`` at place ``n - 1``.
    """

    def __init__(self, log: Log, study: int) -> None:
        self.log, self.study = log, study
        self.events: list[Event] = []

    def read(self) -> list[Event]:
        """All events, with those that were written since the last time."""
        self.events += self.log.events(self.study, after=len(self.events))
        return self.events

    def append(self, entries: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
        """Write events behind those that have been read; False, and nothing is written, where others were faster.

        Raises:
            ArgumentError: if they are too long.
            OperationError: if they cannot be written.
        """
        return self.log.append(self.study, len(self.events), entries)
