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
        number: number of the trial; None for imported data.
        action: the action that was done.
        values: variable -> value; None if it was not measured.
        objectives: objective -> value, in the study's units.
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
    """A study and a copy of its agent at one moment. In contextual mode they are in the context of the last trial.

    Attributes:
        study: the study.
        description: the description of the study.
        units: the conversion of actions and values.
        rounds: rounds that show the reward of an action: imported data, then trials.
        others: measured values of all other rounds, except those of campaigns with other mechanisms.
        imported: number of rounds of imported data.
        agent: copy of the agent; None if there are no predictions to show.
        no_predictions: reason why there are no predictions.
        context: context of the last trial; None in the other modes.
    """

    def __init__(self, study: Study) -> None:
        self.study, self.description, self.units = study, study.description, study.units
        contexts = [entry.context for entry in study.trials if entry.context]
        self.context = contexts[-1] if contexts else None
        state, self.agent, self.no_predictions = study.agent_snapshot(self.context)
        with_values = ("measured", "partial", "closed")
        trials = [entry.record for entry in state.trials.entries.values() if entry.status in with_values]
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
        """Indices of the rounds on the Pareto front; with one objective, of the best round."""
        return self.units.front([(played.action, played.values) for played in self.rounds])

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
        rounds = [*(played.values for played in self.rounds), *self.others]
        return [values[name] for values in rounds if values.get(name) is not None]

    def with_unit(self, name: str) -> str:
        """Return a variable with its unit: ``feed [g/h]``."""
        return f"{name} [{self.description.units[name]}]" if name in self.description.units else name

    def choice_name(self, index: int) -> str:
        """Return the name of a set or scope, such as ``{feed, ph}``."""
        codec: Any = self.study.interface.codec
        return codec.choices[index] if codec.sets[index] else "nothing set, only observe"

    def words(self, done: Mapping[str, Any]) -> str:
        """Return values in words: ``ph = 6.8, feed = 2.1 g/h``."""
        units = self.description.units
        assignments = [f"{name} = {number(value)} {units.get(name, '')}".rstrip() for name, value in done.items()]
        return ", ".join(assignments) or "nothing set"

    def action_words(self, action: Action) -> str:
        return self.words(self.units.native_values(action))


def number(value: Any) -> str:
    """Return a number, or an interval, with four digits; an empty string for None."""
    return format_value(value, 4)


def interval(band: Band, index: int = 0) -> tuple[str, str]:
    """Return the mean of an action, and its interval as ``low to high``."""
    low, mean, high = (number(float(values[index])) for values in (band.low, band.mean, band.high))
    return mean, f"{low} to {high}"
