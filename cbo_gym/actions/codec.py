"""Codecs: between an action and its other forms, one class a kind of action.

The forms: a point of a unit box, which optimisers and reinforcement learning libraries search; the record of an
action in envs_registry.yaml; the numbers of a column in a table of results; and words for people. The environments'
wrappers, the outside agents, the evaluator and the command line read all of them here, so that a point or a record
means the same action to each. Agents find theirs in ``task.codec``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from cbo_gym.actions.domains import Domains
from cbo_gym.actions.spaces import CellBox, GridBox, Space, SparseBox, SuperArmSpace
from cbo_gym.errors import ArgumentError, did_you_mean

NARROWEST = 2.0**-40  # width given to a cell whose corners coincide
UNSET = 0.5  # value written where an action's value has no effect

Action = Any  # an element of an action space
Actions = Any  # a batch: an element of a batched action space
Record = list[float] | dict[str, float] | str  # an action as envs_registry.yaml writes it


class Codec(ABC):
    """The forms of one action space's actions.

    Attributes:
        space: the action space.
        domains: native units of the coordinates.
        dim: number of coordinates of a point in [0, 1]^dim.
        choices: names of the sets of variables that an action chooses from; empty where there are none.
    """

    choices: tuple[str, ...] = ()
    dim: int

    def __init__(self, space: Space, domains: Domains) -> None:
        self.space = space
        self.domains = domains

    @abstractmethod
    def to_action(self, points: np.ndarray) -> Action:
        """The actions of points: shape ``(dim,)`` to one action, ``(n, dim)`` to a batch of ``n``."""

    @abstractmethod
    def to_point(self, action: Action) -> np.ndarray:
        """A point of one action, shape ``(dim,)``; :meth:`to_action` leads back."""

    @abstractmethod
    def to_record(self, action: Action) -> Record:
        """The action as envs_registry.yaml writes it."""

    @abstractmethod
    def from_record(self, record: Record) -> Action:
        """The action that :meth:`to_record` wrote."""

    @abstractmethod
    def to_text(self, record: Record) -> str:
        """A record in words, native units included."""

    def to_numbers(self, action: Action) -> list[float]:
        """The numbers of an action, for tables; of one with a choice its values, and :meth:`chosen` is apart."""
        return np.asarray(action, dtype=float).ravel().tolist()

    def to_flat(self, action: Action) -> list[float]:
        """All that makes the action, as one list of numbers: of one with a choice the choice, then the values."""
        return self.to_numbers(action)

    def from_flat(self, numbers: Sequence[float]) -> Action:
        """The action that :meth:`to_flat` wrote; whether it may be played is not looked at.

        Raises:
            ArgumentError: if there are more or fewer numbers, or others than the action space is of.
        """
        shape, kind = self.space.shape, self.space.dtype
        found = np.asarray(numbers, dtype=np.float64)
        if shape is None or found.size != np.prod(shape, dtype=int) or not np.array_equal(found, found.astype(kind)):
            raise ArgumentError(f"an action of {self.space} cannot be made of {len(numbers)} numbers like these")
        return found.astype(kind).reshape(shape)

    def from_numbers(self, numbers: Sequence[float], chosen: int | None) -> Action:
        """The action of what :meth:`to_numbers` and :meth:`chosen` gave; raises as :meth:`from_flat` does."""
        return self.from_flat(numbers)

    def chosen(self, action: Action) -> int:
        """The place in ``choices`` of the set that the action chooses."""
        raise ArgumentError(f"actions of {self.space} choose no set of variables")


class BoxCodec(Codec):
    """Points of the unit box: soft actions. Those with names of their own are recorded by name, in native units."""

    def __init__(self, space: spaces.Box, domains: Domains) -> None:
        super().__init__(space, domains)
        self.dim = space.shape[0]

    def to_action(self, points: np.ndarray) -> Action:
        return points

    def to_point(self, action: Action) -> np.ndarray:
        return np.asarray(action, dtype=np.float64)

    def to_record(self, action: Action) -> Record:
        if self.domains.named:
            native = self.domains.points_to_native(action).tolist()
            return dict(zip(self.domains.names, native, strict=True))
        return [float(value) for value in action]

    def from_record(self, record: Record) -> Action:
        if isinstance(record, dict):
            native = _by_name(self.domains, record)
            record = np.clip(native, 0.0, 1.0).tolist()  # from native units, a digit may go over
        return np.array(record, dtype=np.float64)

    def to_text(self, record: Record) -> str:
        point = self.from_record(record)
        native = zip(self.domains.names, self.domains.points_to_native(point), strict=True)
        return f"{_assigned(native)}, which is the action {_listed(point)}"


class SparseCodec(BoxCodec):
    """Soft actions under a limit: of a point the coordinates farthest from null are kept, as many as allowed."""

    space: SparseBox

    def to_action(self, points: np.ndarray) -> Action:
        return self.space.keep_largest(points)


class GridCodec(BoxCodec):
    """Points of a grid in the unit box: of any point the nearest one is taken."""

    space: GridBox

    def to_action(self, points: np.ndarray) -> Action:
        return self.space.nearest(points)


class SuperArmCodec(Codec):
    """Super arms: a point scores the base arms, of which the highest above one half are selected, up to the limit.

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

    def to_point(self, action: Action) -> np.ndarray:
        return np.asarray(action, dtype=np.float64)

    def to_record(self, action: Action) -> Record:
        return [float(value) for value in action]

    def from_record(self, record: Record) -> Action:
        return np.array(record, dtype=np.int8)

    def to_text(self, record: Record) -> str:
        selected = [name for name, bit in zip(self.arms, self.from_record(record), strict=True) if bit]
        return f"the super arm {{{', '.join(selected)}}}, which is the action {_listed(self.from_record(record))}"


class CellCodec(Codec):
    """Cells: a point is two corners; coordinate by coordinate the smaller number goes to the lower corner.

    The record is a list: the lower corner, then the upper one, in [0, 1].
    """

    space: CellBox

    def __init__(self, space: CellBox, domains: Domains) -> None:
        super().__init__(space, domains)
        self.dim = 2 * space.dim

    def to_action(self, points: np.ndarray) -> Action:
        lower, upper = np.sort(points.reshape(*points.shape[:-1], 2, -1), axis=-2).swapaxes(0, -2)
        lower = np.minimum(lower, 1.0 - NARROWEST)
        return np.stack([lower, np.maximum(upper, lower + NARROWEST)], axis=-2)

    def to_point(self, action: Action) -> np.ndarray:
        return np.ravel(action).astype(np.float64)

    def to_record(self, action: Action) -> Record:
        return [float(value) for value in np.ravel(action)]

    def from_record(self, record: Record) -> Action:
        return np.array(record, dtype=np.float64).reshape(2, -1)

    def to_text(self, record: Record) -> str:
        corners = self.domains.points_to_native(self.from_record(record))
        sides = zip(self.domains.names, *corners.tolist(), strict=True)
        cell = ", ".join(f"{name} in [{low:.5g}, {high:.5g}]" for name, low, high in sides)
        return f"{cell}, which is the cell {_listed(self.to_point(record))}"


class ChoiceCodec(Codec):
    """Choices of a set of variables and the values that they are set to; recorded by name, in native units.

    A point holds one score for each set, the highest of which is chosen, and then the values.

    Args:
        key: the action's key for the set: ``"target"`` or ``"scope"``.
        sets: of variables, in the order of their indices.
        choices: their names.
    """

    space: spaces.Dict

    def __init__(
        self, space: spaces.Dict, domains: Domains, key: str, sets: Sequence[frozenset[str]], choices: Sequence[str]
    ) -> None:
        super().__init__(space, domains)
        self.key = key
        self.sets = tuple(sets)
        self.choices = tuple(choices)
        self.dim = len(self.sets) + len(domains)

    def to_action(self, points: np.ndarray) -> Action:
        chosen = points[..., : len(self.sets)].argmax(axis=-1)
        return {self.key: chosen, "values": points[..., len(self.sets) :]}

    def to_point(self, action: Action) -> np.ndarray:
        scores = np.zeros(len(self.sets))
        scores[int(action[self.key])] = 1.0
        return np.concatenate([scores, np.asarray(action["values"], dtype=np.float64)])

    def to_record(self, action: Action) -> Record:
        members = self.sets[int(action[self.key])]
        point = np.asarray(action["values"], dtype=np.float64).tolist()
        native = zip(self.domains.names, self.domains.to_native(point), strict=True)
        return {name: float(value) for name, value in native if name in members}

    def from_record(self, record: Any) -> Action:
        values = np.full(len(self.domains), UNSET)
        for name, native in record.items():
            place = _place(self.domains, name)
            values[place] = self.domains.scales[place].to_unit(native)
        return {self.key: self.sets.index(frozenset(record)), "values": values.clip(0.0, 1.0)}

    def to_text(self, record: Record) -> str:
        assert isinstance(record, dict)
        return f"do({_assigned(record.items())})"

    def to_numbers(self, action: Action) -> list[float]:
        return np.asarray(action["values"], dtype=float).tolist()

    def to_flat(self, action: Action) -> list[float]:
        return [float(self.chosen(action)), *self.to_numbers(action)]

    def from_flat(self, numbers: Sequence[float]) -> Action:
        if len(numbers) != 1 + len(self.domains) or not float(numbers[0]).is_integer():
            raise ArgumentError(f"an action of {self.space} cannot be made of {len(numbers)} numbers like these")
        return {self.key: int(numbers[0]), "values": np.array(numbers[1:], dtype=np.float64)}

    def from_numbers(self, numbers: Sequence[float], chosen: int | None) -> Action:
        return self.from_flat([-1 if chosen is None else chosen, *numbers])

    def chosen(self, action: Action) -> int:
        return int(action[self.key])


class ArmCodec(Codec):
    """One of a list of interventions by its place; a point is a share of the list. Recorded by name, in native units.

    Args:
        arms: the interventions, variable -> native value.
        choices: a name for each of the different sets of variables that they set, in the order of first appearance.
    """

    space: spaces.Discrete
    dim = 1

    def __init__(self, space: spaces.Discrete, arms: Sequence[Mapping[str, float]], choices: Sequence[str]) -> None:
        super().__init__(space, Domains({}))
        self.arms = tuple(arms)
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

    def from_record(self, record: Any) -> Action:
        if record not in self.arms:
            raise ArgumentError(f"none of the {len(self.arms)} arms is {record!r}")
        return self.arms.index(record)

    def from_flat(self, numbers: Sequence[float]) -> Action:
        return int(super().from_flat(numbers))

    def to_text(self, record: Record) -> str:
        assert isinstance(record, dict)
        return f"do({_assigned(record.items())})"

    def chosen(self, action: Action) -> int:
        return self._chosen[int(action)]


class PolicyCodec(ChoiceCodec):
    """Choices that follow a context. The best is a policy rather than one action, and is recorded in words."""

    def to_record(self, action: Action) -> Record:
        return action if isinstance(action, str) else super().to_record(action)

    def from_record(self, record: Any) -> Action:
        return record if isinstance(record, str) else super().from_record(record)

    def to_text(self, record: Record) -> str:
        return record if isinstance(record, str) else super().to_text(record)


def _assigned(pairs: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} = {value:.5g}" for name, value in pairs)


def _listed(numbers: ArrayLike) -> str:
    return "[" + ", ".join(f"{value:.5g}" for value in np.asarray(numbers, dtype=float)) + "]"


def _place(domains: Domains, name: str) -> int:
    if name not in domains.names:
        raise ArgumentError(f"{name!r} is none of {list(domains.names)}{did_you_mean(name, domains.names)}")
    return domains.names.index(name)


def _by_name(domains: Domains, record: dict[str, float]) -> list[float]:
    """The point of native values by name, every coordinate given."""
    if set(record) != set(domains.names):
        raise ArgumentError(f"give one value for each of {list(domains.names)}; given {list(record)}")
    return [float(domains.scales[place].to_unit(record[name])) for place, name in enumerate(domains.names)]
