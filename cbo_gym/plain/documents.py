"""Tasks and rounds to and from what JSON can hold; a closed list of kinds, each by its arguments."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np
from gymnasium import spaces

from cbo_gym import task as tasks
from cbo_gym.actions import codec as codecs
from cbo_gym.actions.costs import Costs
from cbo_gym.actions.domains import Domains
from cbo_gym.actions.spaces import CellBox, GridBox, SparseBox, SuperArmSpace
from cbo_gym.errors import ArgumentError
from cbo_gym.scm import components, noise
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.scm.expression import Expression

Document = Any  # what JSON can hold
MANY = 64  # numbers: longer arrays are written as bytes
ARRAYS = "fiub"  # kinds of numbers in arrays
_AS_THEY_ARE = frozenset((type(None), bool, int, float, str))
_TASKS = (
    tasks.SoftTask, tasks.HardTask, tasks.ContextualTask, tasks.AggregatedTask, tasks.MaskedTask, tasks.DiscreteTask,
    tasks.AdversarialTask, tasks.DynamicTask, tasks.SubsetTask,
)  # fmt: skip
_DISTRIBUTIONS = (
    noise.Zero, noise.Normal, noise.Uniform, noise.GaussianMixture, noise.Arcsine, noise.TruncatedNormal,
    noise.Empirical, noise.Discrete,
)  # fmt: skip
_COMPONENTS = (components.Linear, components.Polynomial, components.Periodic, components.Tanh, components.Sum)
#: dataclasses, written by their fields
_BY_FIELDS = (
    *_TASKS, *_DISTRIBUTIONS, *_COMPONENTS, noise.DistributionFamily, tasks.ToldGraph, tasks.Constraint,
    tasks.Objective, Costs,
    Expression,
)  # fmt: skip
Arguments = dict[str, Any]


def _of_codec(codec: codecs.Codec) -> Arguments:
    return {"space": codec.space, "domains": codec.domains}


#: others, written by the arguments that they are made of
_BY_ARGUMENTS: dict[type, Callable[[Any], Arguments]] = {
    spaces.Box: lambda space: {"low": space.low, "high": space.high, "dtype": space.dtype.str},
    spaces.Discrete: lambda space: {"n": int(space.n), "start": int(space.start)},
    spaces.Dict: lambda space: {"spaces": dict(space.spaces)},
    SparseBox: lambda space: {"null": space.null, "max_interventions": space.max_interventions},
    GridBox: lambda space: {"dim": space.dim, "levels": space.levels},
    CellBox: lambda space: {"dim": space.dim},
    SuperArmSpace: lambda space: {"arms": space.arms, "size": space.size},
    Domains: lambda own: {
        "intervals": dict(zip(own.names, own.intervals, strict=True)) if own.named else own.intervals
    },
    codecs.BoxCodec: _of_codec,
    codecs.SparseCodec: _of_codec,
    codecs.GridCodec: _of_codec,
    codecs.CellCodec: _of_codec,
    codecs.SuperArmCodec: lambda codec: {**_of_codec(codec), "arms": codec.arms},
    codecs.ChoiceCodec: lambda codec: {
        **_of_codec(codec), "key": codec.key, "sets": codec.sets, "choices": codec.choices
    },
    codecs.PolicyCodec: lambda codec: {
        **_of_codec(codec), "key": codec.key, "sets": codec.sets, "choices": codec.choices
    },
    codecs.ArmCodec: lambda codec: {"space": codec.space, "arms": codec.arms, "choices": codec.choices},
    CausalDiagram: lambda diagram: {
        "nodes": diagram.nodes, "directed": diagram.directed, "bidirected": diagram.bidirected,
        "allow_cycles": diagram.allow_cycles,
    },
}  # fmt: skip
KINDS: dict[str, type] = {kind.__name__: kind for kind in (*_BY_ARGUMENTS,)}
KINDS |= {f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}": kind for kind in _BY_FIELDS}
NAMES = {kind: name for name, kind in KINDS.items()}


def to_plain(value: Any) -> Document:
    """A value as what JSON can hold. What is there twice, as the same object, is so when it is read.

    Raises:
        ArgumentError: if something in it is of a kind that is not told in plain data.
    """
    return _Writer().write(value)


def from_plain(document: Document) -> Any:
    """The value that :func:`to_plain` wrote.

    Raises:
        ArgumentError: if it is none.
    """
    try:
        return _Reader().read(document)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ArgumentError(f"this is not plain data of a task or a round: {type(error).__name__}: {error}") from error


class _Writer:
    """Writes a value; objects with an identity are numbered as they come, and named by their numbers from then on."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # an identity means nothing once its object is gone

    def write(self, value: Any) -> Document:
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind is np.ndarray:
            return _array(value)
        if kind is dict or isinstance(value, dict | MappingProxyType):
            write = self.write
            return {"map": [[write(key), write(part)] for key, part in value.items()]}
        return self._rarer(value)

    def _rarer(self, value: Any) -> Document:
        """Fields that rounds seldom have."""
        if isinstance(value, tasks.Mode):
            return {"mode": value.value}
        if isinstance(value, np.generic | np.ndarray):
            return {"number": self.write(np.asarray(value))} if isinstance(value, np.generic) else _array(value)
        if isinstance(value, tasks.Round):
            return {"round": [self.write(part) for part in value]}
        if isinstance(value, list):
            return [self.write(part) for part in value]
        for kind, name in ((tuple, "tuple"), (frozenset, "set")):
            if isinstance(value, kind):
                return {name: [self.write(part) for part in value]}
        if value in NAMES if isinstance(value, type) else False:
            return {"class": NAMES[value]}
        return self._object(value)

    def _object(self, value: Any) -> Document:
        name = NAMES.get(type(value))
        if name is None:
            raise ArgumentError(
                f"a {type(value).__qualname__} cannot be told to an agent in a process of its own; use what "
                "cbo_gym has, or play the agent with cbo_gym.evaluate"
            )
        if id(value) in self._numbers:
            return {"again": self._numbers[id(value)]}
        own = _BY_ARGUMENTS.get(type(value), _fields)(value)
        written = {key: self.write(part) for key, part in own.items()}
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)
        return {"kind": name, "of": written}


def _fields(value: Any) -> Arguments:
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


class _Reader:
    """Reads what a :class:`_Writer` wrote."""

    def __init__(self) -> None:
        self._made: list[Any] = []

    def read(self, document: Document) -> Any:
        if type(document) is dict:
            for name in document:  # the first
                return READERS.get(name, _refuse)(self, document[name], document)
            return _refuse(self, "", document)
        return [self.read(part) for part in document] if type(document) is list else document

    def _kind(self, name: str, document: Mapping[str, Any]) -> Any:
        kind, own = KINDS[name], {key: self.read(part) for key, part in document["of"].items()}
        if kind is spaces.Box:
            own["dtype"] = np.dtype(own["dtype"]).type
        made = kind(**own)
        self._made.append(made)
        return made

    def _again(self, place: int, _: object) -> Any:
        return self._made[place]

    def _class(self, name: str, _: object) -> Any:
        return KINDS[name]

    def _tuple(self, parts: list[Document], _: object) -> tuple[Any, ...]:
        return tuple([self.read(part) for part in parts])

    def _set(self, parts: list[Document], _: object) -> frozenset[Any]:
        return frozenset([self.read(part) for part in parts])

    def _map(self, pairs: list[list[Document]], _: object) -> dict[Any, Any]:
        read = self.read
        return {read(key): read(part) for key, part in pairs}

    def _round(self, parts: list[Document], _: object) -> tasks.Round:
        return tasks.Round(*[self.read(part) for part in parts])

    def _mode(self, name: str, _: object) -> tasks.Mode:
        return tasks.Mode(name)

    def _number(self, array: Document, _: object) -> Any:
        return self.read(array)[()]

    def _array(self, shape: list[int], document: Mapping[str, Any]) -> np.ndarray:
        kind = np.dtype(document["dtype"])
        if kind.kind not in ARRAYS:
            raise ArgumentError(f"no arrays are told of {kind}")
        if "bytes" in document:
            return np.frombuffer(base64.b64decode(document["bytes"]), dtype=kind).reshape(shape).copy()
        return np.array(document["numbers"], dtype=kind).reshape(shape)


def _refuse(_: object, __: object, document: Mapping[str, Any]) -> Any:
    raise ArgumentError(f"nothing is told by the word {next(iter(document), '')!r}")


READERS: dict[str, Callable[[_Reader, Any, Mapping[str, Any]], Any]] = {
    name: getattr(_Reader, f"_{name}")
    for name in ("kind", "again", "class", "tuple", "set", "map", "round", "mode", "number", "array")
}


def _array(value: np.ndarray) -> Document:
    if value.dtype.kind not in ARRAYS:
        raise ArgumentError(f"an array of {value.dtype} cannot be told; give numbers")
    head = {"array": list(value.shape), "dtype": value.dtype.str}
    if value.size <= MANY:
        return {**head, "numbers": value.ravel().tolist()}
    return {**head, "bytes": base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()}
