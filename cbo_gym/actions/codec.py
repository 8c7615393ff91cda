"""Codecs: conversions between an action and its other forms, one class for each kind of action.

The forms are: a point of a unit box, which optimisers and reinforcement learning libraries search; values in native
units; the record in envs_registry.yaml; numbers, in tables of results; and a readable string. Wrappers, agents, the
evaluator and the command line all use ``task.codec``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from cbo_gym.actions.domains import Domains
from cbo_gym.actions.limits import Limits
from cbo_gym.actions.spaces import ON_GRID, CellBox, GridBox, Space, SparseBox, SuperArmSpace
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr

# Width of a cell whose corners coincide.
NARROWEST = 2.0**-40

# An element of an action space.
Action = Any
# A batch: an element of a batched action space.
Actions = Any
# An action in the form of envs_registry.yaml.
Record = list[float] | dict[str, Any] | str


class Codec(ABC):
    """Conversions of the actions of one space.

    Attributes:
        space: the action space.
        domains: native units of the coordinates.
        grid: the levels of the coordinates; None if they may have any values in [0, 1].
        limits: the limits of actions; None without limits. They are those of the space, unless :meth:`steer` has fixed
            values.
        dim: number of coordinates of a point in [0, 1]^dim.
        choices: names of the sets of variables from which an action chooses; empty without such a choice.
        choice_name: name of the choice among the native values of an action; empty if the names of the values show it.
    """

    choice_name: ClassVar[str] = ""
    choices: tuple[str, ...] = ()
    dim: int
    #: Index of coordinate ``{}`` in an action.
    coordinate: ClassVar[str] = "[{}]"
    #: Whether an action gives an interval of each parameter.
    intervals: ClassVar[bool] = False
    #: Whether the actions of each choice have separate expected rewards, as those of target sets have.
    separate_choices: ClassVar[bool] = False

    def __init__(self, space: Space, domains: Domains) -> None:
        self.space = space
        self.domains = domains
        values = space["values"] if isinstance(space, spaces.Dict) else space
        self.grid: GridBox | None = getattr(values, "grid", None)
        self.limits: Limits | None = getattr(space, "limits", None)

    @abstractmethod
    def to_action(self, points: np.ndarray) -> Action:
        """Return the action of a point ``(dim,)``, or a batch of ``n`` actions for points ``(n, dim)``."""

    def to_point(self, action: Action) -> np.ndarray:
        """Return a point ``(dim,)`` of one action; :meth:`to_action` is the inverse."""
        return np.ravel(action).astype(np.float64)

    def to_record(self, action: Action) -> Record:
        """Return the action as envs_registry.yaml writes it: a list, or by name in native units with labels."""
        return [float(value) for value in np.ravel(action)]

    @abstractmethod
    def from_record(self, record: Record) -> Action:
        """Return the action of a record."""

    def to_string(self, record: Record) -> str:
        """Return a readable string of a record, with native units."""
        assert isinstance(record, dict)
        return f"do({_format_assignments(record.items())})"

    def to_native(self, action: Action) -> dict[str, Any]:
        """Return what the action sets: name -> native value, label of a category, or ``(low, high)`` of an interval."""
        values = self.domains.points_to_native(action).tolist()
        return self.domains.labels(dict(zip(self.domains.names, values, strict=True)))

    def from_native(self, values: Mapping[str, Any], null: Sequence[float], suggested: Action | None = None) -> Action:
        """Return the action that sets these values; it may be outside the action space.

        Args:
            values: name -> native number, the label of a category, or ``(low, high)`` of an interval.
            null: coordinates in [0, 1], one per name, for the parameters that ``values`` leaves out.
            suggested: the action that was suggested, if any.

        Raises:
            ArgumentError: if no action sets these names, or a value is not in the domain of its coordinate.
        """
        point = np.array(null, dtype=np.float64)
        for index, name in enumerate(self.domains.names):
            if name in values:
                point[index] = self._to_unit(name, values[name])
        return point

    def _to_unit(self, name: str, native: Any) -> Any:
        return self.domains.scales[self.domains.names.index(name)].to_unit(self.domains.number(name, native))

    def steer(self, fixed: Mapping[str, Any], required: Collection[str] = ()) -> Limits:
        """Return the limits with some values fixed; the caller may assign them to :attr:`limits`.

        Args:
            fixed: name -> native value, or the label of a category.
            required: names that actions must set as well.

        Raises:
            ArgumentError: if no action, or none within the limits, has these values.
        """
        raise ArgumentError("values can be fixed in soft, hard and contextual mode alone")

    def _fixed_coordinates(self, fixed: Mapping[str, Any], required: Collection[str]) -> dict[str, float]:
        """Return name -> coordinate of the fixed values; raise ArgumentError for a wrong name or value."""
        names = self.domains.names
        for name in (*fixed, *required):
            if name not in names:
                raise ArgumentError(f"{name!r} cannot be set{did_you_mean(name, names)}; what is set: {list(names)}")
        coordinates = {}
        for name, value in fixed.items():
            coordinate, index = float(self._to_unit(name, value)), names.index(name)
            nearest = float(self.domains.round(np.full(len(names), coordinate)).clip(0.0, 1.0)[index])
            if abs(coordinate - nearest) > ON_GRID:
                (low, high), levels = self.domains.intervals[index], self.domains.levels[index]
                at_levels = f" at one of its {levels} levels" if levels else ""
                raise ArgumentError(f"{name} must be from {low:g} to {high:g}{at_levels}; given {short_repr(value)}")
            coordinates[name] = nearest
        return coordinates

    def draw(self, rng: np.random.Generator) -> Action:
        """Return a random action within :attr:`limits`, which are not None."""
        raise NotImplementedError(f"actions of {self.space} have no limits")

    @property
    def options(self) -> tuple[str, Sequence[str]]:
        """The kind of option that an action chooses, in the plural, and the options' names; none without a choice."""
        return "sets of variables", self.choices

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Name -> labels, of the native values that are labels: the choice, if it has a name, and categories."""
        choice = {self.choice_name: self.choices} if self.choice_name else {}
        return choice | {name: domain.categories for name, domain in self.domains.typed.items() if domain.categories}

    def to_recommendation(self, action: Action) -> Action:
        """Return the action that is recommended to repeat an action's values; in most modes, the action itself."""
        return action

    def to_numbers(self, action: Action) -> list[float]:
        """Return the numbers of an action for tables, without its choice, see :meth:`choice_index`."""
        return np.asarray(action, dtype=float).ravel().tolist()

    def to_flat(self, action: Action) -> list[float]:
        """Return the whole action as one list of numbers: the choice, if any, and the values."""
        return self.to_numbers(action)

    def from_flat(self, numbers: Sequence[float]) -> Action:
        """Return the action of :meth:`to_flat`, perhaps outside the space; raise ArgumentError if it is no action."""
        shape = self.space.shape
        values = np.asarray(numbers, dtype=np.float64)
        converted = values.astype(self.space.dtype)
        if shape is None or values.size != np.prod(shape, dtype=int) or not np.array_equal(values, converted):
            raise ArgumentError(f"an action of {self.space} cannot be read from {len(numbers)} numbers like these")
        return converted.reshape(shape)

    def from_numbers(self, numbers: Sequence[float], chosen: int | None) -> Action:
        """Return the action of :meth:`to_numbers` and :meth:`choice_index`; raise as :meth:`from_flat` does."""
        return self.from_flat(numbers)

    def choice_index(self, action: Action) -> int:
        """Return the index in ``choices`` of the set that the action chooses."""
        raise ArgumentError(f"actions of {self.space} do not choose a set of variables")


class BoxCodec(Codec):
    """Soft actions: points of the unit box. Named coordinates are recorded by name, in native units."""

    def __init__(self, space: spaces.Box, domains: Domains) -> None:
        super().__init__(space, domains)
        self.dim = space.shape[0]

    def to_action(self, points: np.ndarray) -> Action:
        return points if self.limits is None else self.limits.nearest(points)

    def steer(self, fixed: Mapping[str, Any], required: Collection[str] = ()) -> Limits:
        # Without limits no value is null.
        limits = self.limits or Limits((), self.domains, [0.0] * self.dim)
        return limits.steer(self._fixed_coordinates(fixed, required), required)

    def draw(self, rng: np.random.Generator) -> Action:
        assert self.limits is not None
        return self.limits.draw(1, rng)[0]

    def to_record(self, action: Action) -> Record:
        return self.to_native(action) if self.domains.named else super().to_record(action)

    def from_record(self, record: Record) -> Action:
        if isinstance(record, dict):
            names = self.domains.names
            if set(record) != set(names):
                raise ArgumentError(f"give one value for each of {list(names)}; given {list(record)}")
            # Rounding may leave [0, 1].
            record = np.clip([self._to_unit(name, record[name]) for name in names], 0.0, 1.0).tolist()
        point = np.array(record, dtype=np.float64)
        # Rounding may leave the limits as well.
        return point if self.limits is None else self.to_action(point)

    def to_string(self, record: Record) -> str:
        point = self.from_record(record)
        return f"{_format_assignments(self.to_native(point).items())}, which is the action {_format_numbers(point)}"


class SparseCodec(BoxCodec):
    """Soft actions that change at most a number of parameters; a point keeps the coordinates farthest from null."""

    space: SparseBox

    def to_action(self, points: np.ndarray) -> Action:
        return self.space.keep_largest(points)

    def steer(self, fixed: Mapping[str, Any], required: Collection[str] = ()) -> Limits:
        raise ArgumentError(
            "values cannot be fixed if max_interventions limits the number of changed parameters; write this limit "
            f"as 'at most {self.space.max_interventions} of {', '.join(self.domains.names)}' among limits"
        )


class GridCodec(BoxCodec):
    """Points of the unit box with levels in some coordinates; a point is rounded to the nearest levels."""

    space: GridBox

    def to_action(self, points: np.ndarray) -> Action:
        return self.space.nearest(points) if self.limits is None else self.limits.nearest(points)


class SuperArmCodec(Codec):
    """Super arms: a point scores the base arms; the highest scores above one half are selected, up to the limit.

    Args:
        arms: names of the base arms.
    """

    space: SuperArmSpace

    def __init__(self, space: SuperArmSpace, domains: Domains, arms: Sequence[str]) -> None:
        super().__init__(space, domains)
        self.dim = space.arms
        self.arms = tuple(arms)

    def to_action(self, points: np.ndarray) -> Action:
        return self.space.keep_largest(points)

    def from_record(self, record: Record) -> Action:
        return np.array(record, dtype=np.int8)

    def to_string(self, record: Record) -> str:
        action = self.from_record(record)
        selected = [name for name, bit in zip(self.arms, action, strict=True) if bit]
        return f"the super arm {{{', '.join(selected)}}}, which is the action {_format_numbers(action)}"


class CellCodec(Codec):
    """Cells: a point is two corners; in each coordinate the smaller number belongs to the lower corner.

    The record is a list: the lower corner, then the upper one, in [0, 1].
    """

    space: CellBox
    coordinate = "[:, {}]"
    intervals = True

    def __init__(self, space: CellBox, domains: Domains) -> None:
        super().__init__(space, domains)
        self.dim = 2 * space.dim

    def to_action(self, points: np.ndarray) -> Action:
        lower, upper = np.sort(points.reshape(*points.shape[:-1], 2, -1), axis=-2).swapaxes(0, -2)
        lower = np.minimum(lower, 1.0 - NARROWEST)
        return np.stack([lower, np.maximum(upper, lower + NARROWEST)], axis=-2)

    def from_record(self, record: Record) -> Action:
        return np.array(record, dtype=np.float64).reshape(2, -1)

    def to_native(self, action: Action) -> dict[str, Any]:
        corners = self.domains.points_to_native(action)
        return dict(zip(self.domains.names, corners.T.tolist(), strict=True))

    def from_native(self, values: Mapping[str, Any], null: Sequence[float], suggested: Action | None = None) -> Action:
        if missing := [name for name in self.domains.names if name not in values]:
            raise ArgumentError(f"give an interval for each parameter; {missing} are missing")
        return np.array([[self._to_unit(name, end) for end in values[name]] for name in self.domains.names]).T

    def to_string(self, record: Record) -> str:
        corners = self.domains.points_to_native(self.from_record(record))
        sides = zip(self.domains.names, *corners.tolist(), strict=True)
        cell = ", ".join(f"{name} in [{low:.5g}, {high:.5g}]" for name, low, high in sides)
        return f"{cell}, which is the cell {_format_numbers(self.to_point(record))}"


class ChoiceCodec(Codec):
    """A choice of a set of variables and their values; recorded by name, in native units.

    A point is a score for each set, then the values; the set with the highest score is chosen.

    Args:
        key: the action's key for the set: ``"target"`` or ``"scope"``.
        sets: the sets of variables.
        choices: names of the sets.
    """

    space: spaces.Dict
    coordinate = "values[{}]"
    separate_choices = True

    def __init__(
        self, space: spaces.Dict, domains: Domains, key: str, sets: Sequence[frozenset[str]], choices: Sequence[str]
    ) -> None:
        super().__init__(space, domains)
        self.key = key
        self.sets = tuple(sets)
        self.choices = tuple(choices)
        self.dim = len(self.sets) + len(domains)
        self._memberships = np.array([[name in chosen for name in domains.names] for chosen in self.sets])

    def to_action(self, points: np.ndarray) -> Action:
        scores, values = points[..., : len(self.sets)], self.domains.round(points[..., len(self.sets) :])
        if self.limits is None:
            return {self.key: scores.argmax(axis=-1), "values": values}
        chosen = np.where(self._allowed(self.limits), scores, -1.0).argmax(axis=-1)
        return {self.key: chosen, "values": self.limits.repair(values, self._memberships[chosen])}

    def _allowed(self, limits: Limits) -> np.ndarray:
        """Return which sets can be chosen within limits, a boolean for each."""
        return np.array([limits.can_set(chosen) for chosen in self.sets])

    def steer(self, fixed: Mapping[str, Any], required: Collection[str] = ()) -> Limits:
        limits = self.limits or Limits((), self.domains)
        steered = limits.steer(self._fixed_coordinates(fixed, required), required)
        if not self._allowed(steered).any():
            raise ArgumentError(
                f"none of the {self.key}s sets {', '.join((*fixed, *required))} within the limits; the {self.key}s are "
                f"{', '.join(self.choices)}"
            )
        return steered

    def draw(self, rng: np.random.Generator) -> Action:
        assert self.limits is not None
        chosen = int(rng.choice(np.flatnonzero(self._allowed(self.limits))))
        return {self.key: np.int64(chosen), "values": self.limits.sample(self._memberships[chosen], 1, rng)[0]}

    def to_point(self, action: Action) -> np.ndarray:
        scores = np.zeros(len(self.sets))
        scores[int(action[self.key])] = 1.0
        return np.concatenate([scores, np.asarray(action["values"], dtype=np.float64)])

    def to_record(self, action: Action) -> Record:
        # A past round in which nothing was set has the index -1 if no set is empty.
        index = int(action[self.key])
        members = self.sets[index] if index >= 0 else frozenset[str]()
        point = np.asarray(action["values"], dtype=np.float64).tolist()
        values = zip(self.domains.names, self.domains.to_native(point), strict=True)
        return self.domains.labels({name: float(value) for name, value in values if name in members})

    def to_native(self, action: Action) -> dict[str, Any]:
        return ChoiceCodec.to_record(self, action)  # type: ignore[return-value]

    def from_native(self, values: Mapping[str, Any], null: Sequence[float], suggested: Action | None = None) -> Action:
        chosen = frozenset(values)
        if chosen not in self.sets:
            raise ArgumentError(
                f"{sorted(values)} is not one of the study's sets: {', '.join(self.choices)}; list it among the "
                "targets when you create the study"
            )
        index = self.sets.index(chosen)
        # If several scopes set the same variables, the round followed the suggested scope.
        if suggested is not None and self.sets[int(suggested[self.key])] == chosen:
            index = int(suggested[self.key])
        return {self.key: np.int64(index), "values": self._point_of(values)}

    def _point_of(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the coordinates of native values by name; those of other variables are not set."""
        point = self.domains.unset.copy()
        for name, native in values.items():
            point[self.domains.names.index(name)] = self._to_unit(name, native)
        return point

    @property
    def options(self) -> tuple[str, Sequence[str]]:
        return f"{self.key}s", self.choices

    def from_record(self, record: Any) -> Action:
        names = self.domains.names
        if unknown := [name for name in record if name not in names]:
            raise ArgumentError(f"{unknown[0]!r} is not one of {list(names)}{did_you_mean(unknown[0], names)}")
        index, values = self.sets.index(frozenset(record)), self._point_of(record).clip(0.0, 1.0)
        if self.limits is not None:
            # Rounding may leave the limits.
            values = self.limits.repair(values, self._memberships[index])
        return {self.key: index, "values": values}

    def to_numbers(self, action: Action) -> list[float]:
        return np.asarray(action["values"], dtype=float).tolist()

    def to_flat(self, action: Action) -> list[float]:
        return [float(self.choice_index(action)), *self.to_numbers(action)]

    def from_flat(self, numbers: Sequence[float]) -> Action:
        if len(numbers) != 1 + len(self.domains) or not float(numbers[0]).is_integer():
            raise ArgumentError(f"an action of {self.space} cannot be read from {len(numbers)} numbers like these")
        return {self.key: int(numbers[0]), "values": np.array(numbers[1:], dtype=np.float64)}

    def from_numbers(self, numbers: Sequence[float], chosen: int | None) -> Action:
        return self.from_flat([-1 if chosen is None else chosen, *numbers])

    def choice_index(self, action: Action) -> int:
        return int(action[self.key])


class PurchaseCodec(ChoiceCodec):
    """A choice of a node to measure, and its inputs; the record has the node under the key, and native inputs by name.

    Native values have the node under ``choice_name``. Without this entry the node is the last choice.
    """

    choice_name = "measure"
    separate_choices = False

    def to_record(self, action: Action) -> Record:
        return {self.key: self.choices[self.choice_index(action)], **super().to_native(action)}

    def to_native(self, action: Action) -> dict[str, Any]:
        return {self.choice_name: self.choices[self.choice_index(action)], **super().to_native(action)}

    def from_native(self, values: Mapping[str, Any], null: Sequence[float], suggested: Action | None = None) -> Action:
        inputs = dict(values)
        index = self._index_of(inputs.pop(self.choice_name, self.choices[-1]), self.choice_name)
        if suggested is None and (unused := [name for name in inputs if name not in self.sets[index]]):
            raise ArgumentError(
                f"{unused[0]} does not enter {self.choices[index]}; its inputs are {sorted(self.sets[index])}"
            )
        point = self.domains.unset.copy()
        for position, name in enumerate(self.domains.names):
            if name in self.sets[index]:
                point[position] = self._to_unit(name, inputs[name]) if name in inputs else null[position]
        return {self.key: np.int64(index), "values": point}

    def steer(self, fixed: Mapping[str, Any], required: Collection[str] = ()) -> Limits:
        return Codec.steer(self, fixed, required)

    def to_recommendation(self, action: Action) -> Action:
        return {**action, self.key: np.int64(len(self.choices) - 1)}

    def _index_of(self, chosen: Any, name: str) -> int:
        if chosen not in self.choices:
            raise ArgumentError(
                f"{name} must be one of {list(self.choices)}; given {short_repr(chosen)}"
                f"{did_you_mean(chosen, self.choices)}"
            )
        return self.choices.index(chosen)

    def from_record(self, record: Any) -> Action:
        index = self._index_of(record.get(self.key), self.key)
        inputs = {name: value for name, value in record.items() if name != self.key}
        if set(inputs) != self.sets[index]:
            raise ArgumentError(f"give one value for each of {sorted(self.sets[index])}; given {list(inputs)}")
        return {self.key: index, "values": self._point_of(inputs).clip(0.0, 1.0)}

    def to_string(self, record: Record) -> str:
        assert isinstance(record, dict)
        inputs = {name: value for name, value in record.items() if name != self.key}
        return f"{record[self.key]} at {_format_assignments(inputs.items())}"


class ArmCodec(Codec):
    """One of a list of interventions, by its index; recorded in native units. A point is a share of the list's length.

    Args:
        arms: the interventions, variable -> native value.
        choices: a name for each distinct set of variables that they set, in the order of first appearance.
    """

    space: spaces.Discrete
    dim = 1

    def __init__(self, space: spaces.Discrete, arms: Sequence[Mapping[str, float]], choices: Sequence[str]) -> None:
        super().__init__(space, Domains({}))
        self.arms = tuple(map(dict, arms))
        self.choices = tuple(choices)
        sets = list(dict.fromkeys(frozenset(arm) for arm in arms))
        self._chosen = [sets.index(frozenset(arm)) for arm in arms]

    def to_action(self, points: np.ndarray) -> Action:
        count = len(self.arms)
        return np.minimum(np.int64(count * points[..., 0]), count - 1)

    def to_point(self, action: Action) -> np.ndarray:
        return np.array([(int(action) + 0.5) / len(self.arms)])

    def to_record(self, action: Action) -> Record:
        return {name: float(value) for name, value in self.arms[int(action)].items()}

    def to_native(self, action: Action) -> dict[str, Any]:
        return self.to_record(action)  # type: ignore[return-value]

    def from_native(self, values: Mapping[str, Any], null: Sequence[float], suggested: Action | None = None) -> Action:
        return self.from_record(values)

    @property
    def options(self) -> tuple[str, Sequence[str]]:
        return "actions", [self.to_string(arm) for arm in self.arms]

    def from_record(self, record: Any) -> Action:
        if record not in self.arms:
            raise ArgumentError(f"{short_repr(record)} is not one of the {len(self.arms)} arms")
        return self.arms.index(record)

    def from_flat(self, numbers: Sequence[float]) -> Action:
        return int(super().from_flat(numbers))

    def choice_index(self, action: Action) -> int:
        return self._chosen[int(action)]


class PolicyCodec(ChoiceCodec):
    """Choices that follow a context. The best policy is recorded in words, because it is not a single action."""

    def to_record(self, action: Action) -> Record:
        return action if isinstance(action, str) else super().to_record(action)

    def from_record(self, record: Any) -> Action:
        return record if isinstance(record, str) else super().from_record(record)

    def to_string(self, record: Record) -> str:
        return record if isinstance(record, str) else super().to_string(record)


def _format_assignments(assignments: Iterable[tuple[str, Any]]) -> str:
    strings = ((name, value if isinstance(value, str) else f"{value:.5g}") for name, value in assignments)
    return ", ".join(f"{name} = {string}" for name, string in strings)


def _format_numbers(numbers: ArrayLike) -> str:
    return "[" + ", ".join(f"{value:.5g}" for value in np.asarray(numbers, dtype=float)) + "]"
