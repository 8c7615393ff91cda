"""The rounds of a study whose outcomes are known: imported data, then the trials that were told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cbo_gym.study.study import Study
from cbo_gym.study.trials import Entry
from cbo_gym.task import Action


class Seen(NamedTuple):
    """One round.

    Attributes:
        number: of the trial; None of imported data.
        action: as it was done.
        values: of the variables, None where one was not measured.
        context: what was seen before.
    """

    number: int | None
    action: Action
    values: Mapping[str, float | None]
    context: Mapping[str, float] | None


def seen_rounds(study: Study) -> list[Seen]:
    """All of them, imported data first."""
    told = [entry for entry in study.trials if entry.status == "told"]
    imported = [
        one for event in study._history.read().events if event.kind == "data" for one in event.payload["rounds"]
    ]
    read = study._units.read
    return [
        *(Seen(None, read(one["action"]), one["values"], one["context"]) for one in imported),
        *(Seen(entry.number, action_of(study, entry), entry.values, entry.context) for entry in told),
    ]


def action_of(study: Study, entry: Entry) -> Action:
    """The action of a trial, played or to be played."""
    return study._units.read(entry.action)


def done_in(study: Study, action: Action) -> dict[str, Any]:
    """The effects of an action, by name, in the study's units; values may lie outside of the bounds."""
    return study._units.done(action)


def reward_of(study: Study, one: Seen) -> float:
    """The reward of a round, in the study's units; every round has one."""
    value = one.values[study.about.reward]
    assert value is not None
    return value
