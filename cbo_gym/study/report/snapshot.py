"""A study at one moment, for its report: the known rounds, and a copy of the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.study.campaigns import shows_reward
from cbo_gym.study.expectation import Band, RecommendedSet, forecasts
from cbo_gym.study.study import Study
from cbo_gym.study.units import format_value
from cbo_gym.task import Action


class KnownRound(NamedTuple):
    """A round whose outcome is known.

    Attributes:
        number: Number of the trial; None for imported data.
        action: The action as it was done.
        values: Variable -> value; None if it was not measured.
        objectives: Objective -> value, in the study's units.
    """

    number: int | None
    action: Action
    values: Mapping[str, float | None]
    objectives: Mapping[str, float]

    @property
    def reward(self) -> float:
        """The value of the only objective."""
        (reward,) = self.objectives.values()
        return reward


class Snapshot:
    """A study and a copy of its agent, in contextual mode in the context of the last trial.

    Args:
        study: The study.

    Attributes:
        description: Description of the study.
        units: Conversion of actions and values.
        rounds: Rounds that show the reward of an action: imported data, then trials.
        others: Measured values of all other rounds, except those of campaigns with other mechanisms.
        imported: Number of rounds of imported data.
        agent: Copy of the agent; None if there are no beliefs to show.
        no_beliefs: Reason why there are no beliefs.
        context: Context of the last trial; None in the other modes.
    """

    def __init__(self, study: Study) -> None:
        self.study, self.description, self.units = study, study.description, study.units
        contexts = [entry.context for entry in study.trials if entry.context]
        self.context = contexts[-1] if contexts else None
        state, self.agent, self.no_beliefs = study.agent_snapshot(self.context)
        known = ("measured", "partial", "closed")
        trials = [entry.record for entry in state.trials.entries.values() if entry.status in known]
        self.imported = len(state.imported)
        self.rounds, self.others = list[KnownRound](), list[Mapping[str, Any]]()
        for record in (*state.imported, *trials):
            action, values = self.units.from_flat(record["action"]), record["values"]
            if shows_reward(self.units, record):
                objectives = self.units.objective_values(action, values)
                self.rounds.append(KnownRound(record.get("number"), action, values, objectives))
            elif not record.get("differs"):
                self.others.append(values)

    def rewards(self, actions: Sequence[Action]) -> Band | None:
        """Return the rewards that the agent expects; None if it cannot predict those of these actions."""
        return self.forecasts(actions).get(self.units.objectives[0])

    def forecasts(self, actions: Sequence[Action]) -> dict[str, Band]:
        """Return objective -> the values that the agent expects; empty if it cannot predict those of these actions."""
        return forecasts(self.units, self.agent, actions)

    @cached_property
    def front(self) -> list[int]:
        """Indices of the rounds that no other dominates; with one objective, of the best one."""
        return self.units.front([(known.action, known.values) for known in self.rounds])

    @cached_property
    def recommended_set(self) -> RecommendedSet | None:
        """The recommendation for several objectives; None if no outcome is known."""
        try:
            recommended: RecommendedSet = self.study.recommendation()
        except ArgumentError:
            return None
        return recommended

    def next(self) -> Action | None:
        """Return the next suggestion; None if it depends on a context, or nothing is known yet."""
        if self.agent is None or self.study.interface.observes_before:
            return None
        last = deepcopy(self.agent.history[-1].observation)
        return self.units.require_valid(deepcopy(self.agent).act(last))

    def best(self, band: Band) -> int:
        """Return the index of the best mean."""
        return int(np.argmax(self.description.goals[0].sign * band.mean))

    def measurements(self, name: str) -> list[Any]:
        """Return the measured values of a variable, numbers or labels, in the order of the rounds."""
        values = [*(known.values for known in self.rounds), *self.others]
        return [value for row in values if (value := row.get(name)) is not None]

    # Words ---------------------------------------------------------------------------------------------------

    def with_unit(self, name: str) -> str:
        """Return a variable with its unit: ``feed [g/h]``."""
        return f"{name} [{self.description.units[name]}]" if name in self.description.units else name

    def choice_name(self, index: int) -> str:
        """Return the name of a set or scope: ``{feed, ph}``."""
        codec = self.study.interface.codec
        return codec.choices[index] if getattr(codec, "sets", ("",))[index] else "nothing set, only observe"

    def words(self, done: Mapping[str, Any]) -> str:
        """Return an action in words: ``ph = 6.8, feed = 2.1 g/h``."""
        parts = [
            f"{name} = {number(value)} {self.description.units.get(name, '')}".rstrip() for name, value in done.items()
        ]
        return ", ".join(parts) or "nothing set"

    def action_words(self, action: Action) -> str:
        return self.words(self.units.native_values(action))


def number(value: Any) -> str:
    """Return a number, or an interval, with four digits; an empty string for None."""
    return format_value(value, 4)


def interval(band: Band, index: int = 0) -> tuple[str, str]:
    """Return a mean, and its interval as ``low to high``."""
    low, mean, high = (number(float(values[index])) for values in (band.low, band.mean, band.high))
    return mean, f"{low} to {high}"
