"""Aggregated mode: the action is a cell of the parameter box, the feedback a mean over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.error import InvalidAction

from cbo_gym._util.arguments import require_truth_value
from cbo_gym.actions import CellBox, CellCodec
from cbo_gym.actions.cells import INTEGRAL_POINTS, representative_points, require_arity, require_points, unit_points
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.domains import Interval
from cbo_gym.actions.reading import as_numbers
from cbo_gym.modes.base.interface import Description, Entry, Region
from cbo_gym.modes.base.parametric import MISSING, ParametricInterface, number_format, widest_number
from cbo_gym.problems.base import ProblemStatement
from cbo_gym.problems.transform import Record, Transform
from cbo_gym.scm import Floats, Intervention
from cbo_gym.scm.system import Values
from cbo_gym.task import Action, AggregatedTask, Mode, Observation

# Half the width of a cell that stands for a point.
POINT_LIKE = 2.0**-50


class CellIntervention(Intervention):
    """An intervention at the representative points of cells, which are the first axis of its columns.

    Attributes:
        intervals: the cell in native units, ``(lower, upper)`` of each coordinate; an array ``(n, d, 2)`` for a batch.
    """

    intervals: list[Interval] | np.ndarray

    def at(self, index: int) -> CellIntervention:
        return _on_cells(super().at(index).soft, np.asarray(self.intervals)[index])


class AggregatedInterface(ParametricInterface):
    """Actions that are cells of the parameter box."""

    mode = Mode.AGGREGATED
    trial_description = "an interval of each parameter"
    task_class = AggregatedTask
    # The representative points.
    averaged_axes = 1

    def __init__(self, problem: ProblemStatement, *, points: int = 10, arity: int = 2, integral: bool = False) -> None:
        require_truth_value("integral", integral)
        self.representative_points = require_points(points)
        self.arity = require_arity(arity)
        self.integral = integral
        self._points = INTEGRAL_POINTS if integral else self.representative_points
        super().__init__(problem)
        self._scales = self.domains.scales
        self._unit_columns = tuple(np.ascontiguousarray(unit_points(self._points, self.scm.action_dim).T))

    def make_codec(self) -> CellCodec:
        domains = self.require_parameters()
        return CellCodec(CellBox(len(domains)), domains)

    def after(self, nodes: np.ndarray, values: Values) -> Observation:
        return {"nodes": nodes, "aggregate": nodes.copy()}

    def decode(self, action: Action) -> CellIntervention:
        cell = as_numbers(action)
        if cell.shape != (2, self.scm.action_dim):
            raise InvalidAction(
                f"a cell must have shape (2, {self.scm.action_dim}), its lower and its upper corner; "
                f"given shape {cell.shape}"
            )
        # Floats and contiguous columns are faster than arrays that broadcast for few numbers.
        intervals, columns = [], []
        for index, (lower, upper) in enumerate(zip(*cell.tolist(), strict=True)):
            if not 0.0 <= lower < upper <= 1.0:
                raise InvalidAction(_describe_error(index, lower, upper))
            low, span = self._scales[index]
            native_lower, native_upper = low + span * lower, low + span * upper
            intervals.append((native_lower, native_upper))
            columns.append(native_lower + (native_upper - native_lower) * self._unit_columns[index])
        return _on_cells(columns, intervals)

    def decode_batch(self, actions: Actions) -> CellIntervention:
        cells = as_numbers(actions)
        if cells.ndim != 3 or cells.shape[1:] != (2, self.scm.action_dim):
            raise InvalidAction(f"the cells must have shape (n, 2, {self.scm.action_dim}); given {cells.shape}")
        lower, upper = cells[:, 0], cells[:, 1]
        valid = (lower >= 0.0) & (lower < upper) & (upper <= 1.0)
        if not valid.all():
            row, index = np.argwhere(~valid)[0].tolist()
            error = _describe_error(index, float(lower[row, index]), float(upper[row, index]))
            raise InvalidAction(f"actions[{row}]: {error}")
        native = self.domains.points_to_native(cells)
        return _on_cells(tuple(representative_points(native, self._points).T), native.swapaxes(1, 2))

    def describe(self, intervention: Intervention) -> Description:
        """Return the interval of each parameter, ``(lower, upper)`` in native units."""
        assert isinstance(intervention, CellIntervention)
        return self.named_values(intervention.intervals)

    def describe_batch(self, intervention: Intervention) -> Description:
        assert isinstance(intervention, CellIntervention)
        intervals = np.asarray(intervention.intervals)
        info: Description = {}
        for name, indices in self.coordinates.items():
            info[name] = intervals[:, indices[0]] if len(indices) == 1 else intervals[:, indices]
            info[f"_{name}"] = np.ones(len(intervals), dtype=bool)
        return info

    def priced_values(self, intervention: Intervention) -> Sequence[Floats]:
        """Return the centre of the cell."""
        assert isinstance(intervention, CellIntervention)
        intervals = np.asarray(intervention.intervals)
        return intervals.mean(axis=-1).T.tolist() if intervals.ndim == 2 else list(intervals.mean(axis=-1).T)

    def entry(self, index: int, intervention: Intervention | None, values: Mapping[str, Floats]) -> Entry:
        """Return the cell's interval of the parameter in native units."""
        name, domain = self.domains.names[index], self.domains.intervals[index]
        widest = f"{name} in [{widest_number(*domain)}, {widest_number(*domain)}]"
        if intervention is None:
            return Entry(f"{name} in {MISSING}", widest)
        assert isinstance(intervention, CellIntervention)
        low, high = map(number_format(*domain), intervention.intervals[index])
        return Entry(f"{name} in [{low}, {high}]", widest)

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return the whole box for observational rounds, and random cells for the others."""
        count = 2 * self.scm.action_dim + 1 if random is None else random
        full_cells = np.tile(np.array([[0.0], [1.0]]), (observational, 1, self.scm.action_dim))
        return np.concatenate([full_cells, np.sort(rng.random((count, 2, self.scm.action_dim)), axis=1)])

    def regions(self) -> list[Region]:
        return [Region(self.scm.action_dim, point_like)]

    def transform_record(self, transform: Transform, record: Record) -> Record:
        return np.sort([transform.point(end) for end in np.reshape(record, (2, -1)).tolist()], axis=0).ravel().tolist()

    def task_fields(self) -> dict[str, Any]:
        return {
            **super().task_fields(),
            "arity": self.arity,
            "representative_points": self.representative_points,
            "integral": self.integral,
            "kernel": self.problem.kernel,
        }


def _on_cells(columns: Sequence[Floats], intervals: list[Interval] | np.ndarray) -> CellIntervention:
    """Return an intervention with columns ``(S,)`` for one cell or ``(S, n)`` for a batch, in native units."""
    intervention = CellIntervention(columns)
    intervention.intervals = intervals
    return intervention


def _describe_error(index: int, lower: float, upper: float) -> str:
    interval = f"coordinate {index} of the cell goes from {lower} to {upper}"
    if lower == upper:
        return f"{interval}: the cell is empty; its upper corner must lie above its lower one"
    if lower > upper:
        return f"{interval}: the cell is inverted; give the lower corner first"
    return f"{interval}, outside the box; it must lie in [0, 1]"


def point_like(points: np.ndarray) -> np.ndarray:
    """Return tiny cells around points: ``(..., d)`` to ``(..., 2, d)``."""
    return np.stack([points - POINT_LIKE, points + POINT_LIKE], axis=-2).clip(0.0, 1.0)
