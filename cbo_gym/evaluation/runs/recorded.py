"""Recorded actions of a run: a submission has them, so that its scores can be recomputed instead of trusted."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from cbo_gym.actions.codec import Codec
from cbo_gym.actions.sets import from_flat
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.runs.results import COLUMNS, TIMING_COLUMNS, Run, last_line, recommendation_rounds
from cbo_gym.task import Action, Info, Observation, Task

# Tolerance, relative to the largest value of a column or the optimum, because stores keep single precision and machines
# differ in last digits.
TOLERANCE = 1e-5
# Fields of a run that are recomputed.
FIELDS = ("mode", "choices", "optimum", "optimum_standard_error", "random_value", "initial_expected", "initial_reward")
# The actions themselves, and times, which cannot be recomputed.
NOT_COMPARED = ("action", "recommended", *TIMING_COLUMNS)


@dataclass(eq=False)
class RecordedAgent:
    """An agent that plays and recommends recorded actions.

    Args:
        actions: Numbers of each round's action, and the index of the set that it chooses (None without sets).
        recommended: Numbers of the recommendation after each round; None if there is none.
    """

    actions: Sequence[tuple[Sequence[float], int | None]]
    recommended: Sequence[Sequence[float] | None]

    def reset(self, task: Task, seed: int) -> None:
        self._codec: Codec = task.codec
        self._has_objectives = bool(task.objectives)
        self._round = 0

    def act(self, observation: Observation) -> Action:
        return self._codec.from_numbers(*self.actions[self._round])

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        self._round += 1

    def recommend(self) -> Action:
        numbers = self.recommended[self._round - 1]
        if numbers is None:
            raise ArgumentError(f"no recommendation after round {self._round} is recorded")
        return from_flat(self._codec, numbers) if self._has_objectives else self._codec.from_flat(numbers)


def with_actions(run: Run) -> Run:
    """Return the run with its fields ``actions`` and ``recommendations`` filled from its table, for a submission.

    Both are little-endian doubles in base 64, round after round. Rounds without a recommendation are left out.
    """
    if run.status != "finished":
        return run
    recorded = recorded_actions(run)
    recommended = [numbers for numbers in recorded.recommended if numbers is not None]
    actions = pack_rows([numbers for numbers, _ in recorded.actions])
    return replace(run, actions=actions, recommendations=pack_rows(recommended))


def recorded_actions(run: Run) -> RecordedAgent:
    """Return an agent that plays a finished run's actions again, from its fields or its table."""
    table = run.table
    choices = table["choice"].to_list() if "choice" in table.columns else [None] * table.height
    if run.actions or run.recommendations:
        rounds = sorted(recommendation_rounds(run.recommend, run.horizon, run.batch))
        by_round = dict(zip(rounds, _unpack(run.recommendations, len(rounds)), strict=True))
        actions = _unpack(run.actions, run.horizon)
        recommended = [by_round.get(number) for number in range(1, run.horizon + 1)]
    elif {"action", "recommended"} <= set(table.columns) and table["action"].null_count() == 0:
        actions, recommended = table["action"].to_list(), table["recommended"].to_list()
    else:
        raise ArgumentError("it has no actions; publish it again with cbo-gym publish --submission")
    return RecordedAgent(list(zip(actions, choices, strict=True)), recommended)


def pack_rows(rows: Sequence[Sequence[float]]) -> str:
    """Return rows as base 64, padded with NaN to the length of the longest."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), np.nan, dtype="<f8")
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return base64.b64encode(padded.tobytes()).decode()


def _unpack(encoded: str, count: int) -> list[list[float]]:
    try:
        rows = np.frombuffer(base64.b64decode(encoded, validate=True), dtype="<f8").reshape(count, -1)
        return [row[~np.isnan(row)].tolist() for row in rows]
    except ValueError as error:
        raise ArgumentError(f"its actions cannot be read as those of {count} rounds: {error}") from error


def score_differences(run: Run, rescored: Run) -> list[str]:
    """Return messages about fields and columns of a run that differ from those recomputed from its actions.

    Args:
        run: Run as submitted.
        rescored: Run that plays the same actions, scored here.
    """
    if rescored.status != "finished":
        return [f"its actions cannot be played: {last_line(rescored.error)}"]
    fields = [
        f"{name} is given as {getattr(run, name)!r} and is {getattr(rescored, name)!r}"
        for name in FIELDS
        if not _is_close(getattr(run, name), getattr(rescored, name), rescored.optimum)
    ]
    return [*fields, *_column_differences(run.table, rescored.table, rescored.optimum)]


def _column_differences(submitted: pl.DataFrame, recomputed: pl.DataFrame, optimum: float) -> Iterator[str]:
    names = [name for name in COLUMNS if name not in NOT_COMPARED and COLUMNS[name].base_type() is not pl.List]
    for name in names:
        if (name in submitted.columns) != (name in recomputed.columns):
            yield f"the column {name} is {'missing' if name in recomputed.columns else 'not of this task'}"
            continue
        # Standard errors may be left out.
        is_optional = name.endswith("_error")
        if name in submitted.columns and not (is_optional and submitted[name].null_count() == submitted.height):
            before, now = (table[name].cast(pl.Float64).to_numpy() for table in (submitted, recomputed))
            size = max(np.nanmax(np.abs(now), initial=0.0), abs(optimum))
            largest = distances(before, now).max()
            if largest > TOLERANCE * size:
                yield f"{name} differs from the result of its actions by up to {largest:.3g}"


def distances(first: np.ndarray, second: np.ndarray, unit: float = 1.0) -> np.ndarray:
    """Return the distances of numbers, in multiples of ``unit``: 0 if both are NaN, infinite if one is."""
    distance = np.where(np.isnan(first) & np.isnan(second), 0.0, np.abs(first - second) / unit)
    return np.where(np.isnan(distance), np.inf, distance)


def _is_close(submitted: object, recomputed: object, optimum: float) -> bool:
    if isinstance(submitted, float) and isinstance(recomputed, float):
        if np.isnan(submitted) and np.isnan(recomputed):
            return True
        return abs(submitted - recomputed) <= TOLERANCE * max(abs(recomputed), abs(optimum))
    return submitted == recomputed
