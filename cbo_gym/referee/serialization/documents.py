"""Tasks and rounds as JSON: a closed list of classes, each written by its arguments."""

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

# Values of JSON.
Document = Any
# Longer arrays are written as bytes.
MANY = 64
# Kinds of numbers in arrays.
ARRAYS = "fiub"
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
# Dataclasses, written by their fields.
_BY_FIELDS = (
    *_TASKS, *_DISTRIBUTIONS, *_COMPONENTS, noise.DistributionFamily, tasks.GraphKnowledge, tasks.Constraint,
    tasks.Objective, Costs,
    Expression,
)  # fmt: skip
Arguments = dict[str, Any]


def _of_codec(codec: codecs.Codec) -> Arguments:
    return {"space": codec.space, "domains": codec.domains}


def _of_choices(codec: codecs.ChoiceCodec | codecs.PolicyCodec) -> Arguments:
    return {**_of_codec(codec), "key": codec.key, "sets": codec.sets, "choices": codec.choices}


# Other classes, written by their arguments.
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
    codecs.ChoiceCodec: _of_choices,
    codecs.PolicyCodec: _of_choices,
    codecs.ArmCodec: lambda codec: {"space": codec.space, "arms": codec.arms, "choices": codec.choices},
    CausalDiagram: lambda diagram: {
        "nodes": diagram.nodes, "directed": diagram.directed, "bidirected": diagram.bidirected,
        "allow_cycles": diagram.allow_cycles,
    },
}  # fmt: skip
KINDS: dict[str, type] = {kind.__name__: kind for kind in _BY_ARGUMENTS}
KINDS |= {f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}": kind for kind in _BY_FIELDS}
NAMES = {kind: name for name, kind in KINDS.items()}


def to_plain(value: Any) -> Document:
    """Return a value as plain data; an object that occurs twice is one object again when it is read.

    Raises:
        ArgumentError: if the value contains an object of a class that has no form in plain data.
    """
    return _Writer().write(value)


def from_plain(document: Document) -> Any:
    """Read a value that :func:`to_plain` wrote.

    Raises:
        ArgumentError: if the document is malformed.
    """
    try:
        return _Reader().read(document)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ArgumentError(f"this is not plain data of a task or a round: {type(error).__name__}: {error}") from error


class _Writer:
    """Writes a value; an object that occurs again is written as its number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        # Keeps objects alive, because the identity of a deleted one is reused.
        self._kept: list[Any] = []

    def write(self, value: Any) -> Document:
        if type(value) in _AS_THEY_ARE:
            return value
        write = self.write
        match value:
            case np.ndarray():
                return _array(value)
            case dict() | MappingProxyType():
                return {"map": [[write(key), write(item)] for key, item in value.items()]}
            case tasks.Mode():
                return {"mode": value.value}
            case np.generic():
                return {"number": _array(np.asarray(value))}
            case tasks.Round():
                return {"round": [write(item) for item in value]}
            case list():
                return [write(item) for item in value]
            case tuple():
                return {"tuple": [write(item) for item in value]}
            case frozenset():
                return {"set": [write(item) for item in value]}
            case type() if value in NAMES:
                return {"class": NAMES[value]}
        return self._object(value)

    def _object(self, value: Any) -> Document:
        name = NAMES.get(type(value))
        if name is None:
            raise ArgumentError(
                f"a {type(value).__qualname__} cannot be sent to an agent in a process of its own; use the "
                "classes of cbo_gym, or play the agent with cbo_gym.evaluate"
            )
        if id(value) in self._numbers:
            return {"again": self._numbers[id(value)]}
        arguments = _BY_ARGUMENTS.get(type(value), _fields)(value)
        written_arguments = {key: self.write(argument) for key, argument in arguments.items()}
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)
        return {"kind": name, "of": written_arguments}


def _fields(value: Any) -> Arguments:
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


class _Reader:
    """Reads what a :class:`_Writer` wrote."""

    def __init__(self) -> None:
        self._objects: list[Any] = []

    def read(self, document: Document) -> Any:
        if type(document) is list:
            return [self.read(item) for item in document]
        if type(document) is not dict:
            return document
        # The first key names the kind.
        kind: str = next(iter(document), "")
        content: Any = document.get(kind)
        match kind:
            case "map":
                return {self.read(key): self.read(item) for key, item in content}
            case "array":
                return _array_of(content, document)
            case "number":
                return self.read(content)[()]
            case "tuple":
                return tuple([self.read(item) for item in content])
            case "set":
                return frozenset([self.read(item) for item in content])
            case "round":
                return tasks.Round(*[self.read(item) for item in content])
            case "mode":
                return tasks.Mode(content)
            case "class":
                return KINDS[content]
            case "again":
                return self._objects[content]
            case "kind":
                own = {key: self.read(item) for key, item in document["of"].items()}
                if content == "Box":
                    own["dtype"] = np.dtype(own["dtype"]).type
                self._objects.append(KINDS[content](**own))
                return self._objects[-1]
        raise ArgumentError(f"unknown kind {kind!r}")


def _array(value: np.ndarray) -> Document:
    if value.dtype.kind not in ARRAYS:
        raise ArgumentError(f"an array of {value.dtype} cannot be sent; give numbers")
    head = {"array": list(value.shape), "dtype": value.dtype.str}
    if value.size <= MANY:
        return {**head, "numbers": value.ravel().tolist()}
    return {**head, "bytes": base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()}


def _array_of(shape: list[int], document: Mapping[str, Any]) -> np.ndarray:
    kind = np.dtype(document["dtype"])
    if kind.kind not in ARRAYS:
        raise ArgumentError(f"arrays of {kind} are not allowed")
    if "bytes" in document:
        return np.frombuffer(base64.b64decode(document["bytes"]), dtype=kind).reshape(shape).copy()
    return np.array(document["numbers"], dtype=kind).reshape(shape)
