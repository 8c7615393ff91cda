"""The state of an agent as one file of arrays and JSON: nothing in it runs when it is read.

Numbers, texts and containers are JSON, arrays and tensors NumPy's. Other objects are the name of their class and their
attributes; a class is one of those that agents are made of (:data:`PACKAGES`) or of the packages that the agent itself
is from, and is made without a call of anything but ``__new__``. A function that an agent holds is its name, and whoever
writes a file chooses among the functions of these packages what the agent calls later: load what you have saved.

What the agent shares with its task is known by its place there, so that a state is of no use without the task. Threads,
open files, and functions without a name cannot be kept.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cached_property, partial
from importlib import import_module
from io import BytesIO
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType
from typing import Any
from zipfile import BadZipFile

import numpy as np
from gymnasium.spaces import Space

from cbo_gym.errors import ArgumentError, OperationError, shortened

PACKAGES = ("cbo_gym", "torch", "gpytorch", "linear_operator", "botorch", "numpy", "scipy", "sklearn", "collections",
            "functools", "operator", "math", "gymnasium", "networkx")  # fmt: skip
PYTHONS = ("bool", "int", "float", "str", "list", "tuple", "dict", "set", "frozenset", "object", "NoneType")
SCALARS = (bool, int, float, str, type(None))
SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset", deque: "deque"}
MAPPINGS: dict[type, str] = {dict: "dict", OrderedDict: "ordered"}
STATE = "state"  # the name of the JSON among the arrays
DEEPEST = 900  # attributes of attributes


class StateError(OperationError):
    """An agent cannot be kept; the message names the attribute in whose way it stands."""


def pack(thing: Any, task: Any = None, *, whole: bool = False) -> bytes:
    """The content of a file.

    Args:
        thing: what is kept.
        task: what it shares parts with, which are not kept.
        whole: whether it is an object of which the attributes alone are kept, to be given to another one.

    Raises:
        StateError: if something in it cannot be.
    """
    writer = _Writer(task)
    root = writer.write_attributes(thing) if whole else writer.write(thing, "")
    arrays = {f"a{place}": array for place, array in enumerate(writer.arrays)}
    state = json.dumps({"root": root, "things": writer.things, "drawn": writer.drawn}).encode()
    content = BytesIO()
    np.savez_compressed(content, **{STATE: np.frombuffer(state, dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def unpack(content: bytes, task: Any = None, packages: Iterable[str] = (), into: Any = None) -> Any:
    """The value that :func:`pack` was given.

    Args:
        content: of a file.
        task: what it shared parts with; its spaces draw on from where they were.
        packages: whose classes may be in it, besides :data:`PACKAGES`.
        into: the object that is given the attributes, in place of all that it has.

    Raises:
        ArgumentError: if that is not the content of such a file, or names a class of another package.
    """
    try:
        with np.load(BytesIO(content), allow_pickle=False) as arrays:
            state = json.loads(bytes(arrays[STATE]))
            return _Reader(state, arrays, task, {*PACKAGES, *packages}).read_all(into)
    except ArgumentError:
        raise
    except (BadZipFile, OSError, EOFError, RecursionError, *FAULTS) as error:
        raise ArgumentError(f"this is not a state of an agent on this task: {shortened(str(error))}") from error


FAULTS = (KeyError, IndexError, TypeError, ValueError, AttributeError, ImportError)


class _Writer:
    def __init__(self, task: Any) -> None:
        self.arrays: list[np.ndarray] = []
        self.things: list[Any] = []
        self._places: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no two things have one id
        self._shared = {id(part): path for part, path in _parts(task)}
        self.drawn = [
            [path, _generator_state(part._np_random)]
            for part, path in _parts(task)
            if isinstance(part, Space) and part._np_random is not None
        ]

    def write_attributes(self, thing: Any) -> Any:
        """The place of the attributes of an object, whose class need have no name."""
        self._alive.append(thing)
        self._places[id(thing)] = 0
        self.things.append(None)
        self.things[0] = ["whole", {name: self.write(value, name) for name, value in vars(thing).items()}]
        return {"at": 0}

    def write(self, thing: Any, where: str) -> Any:
        """Its JSON: a scalar as it is, else the place among the things where it stands."""
        if type(thing) in SCALARS:
            return thing
        if id(thing) in self._shared:
            return {"task": self._shared[id(thing)]}
        if id(thing) not in self._places:
            if where.count(".") > DEEPEST:
                raise StateError(f"{shortened(where)} lies too deep to be kept")
            self._alive.append(thing)
            place = self._places[id(thing)] = len(self.things)
            self.things.append(None)
            self.things[place] = self._described(thing, where)
        return {"at": self._places[id(thing)]}

    def _described(self, thing: Any, where: str) -> Any:
        for kind, describe in self._KINDS.items():
            if isinstance(thing, kind):
                return describe(self, thing, where)
        if torch := sys.modules.get("torch"):
            if isinstance(thing, torch.Tensor):
                return self._tensor(thing, where)
            if isinstance(thing, torch.Generator):
                return ["torch generator", str(thing.device), self._array(thing.get_state().numpy())]
            if isinstance(thing, torch.dtype | torch.device):
                kind = "dtype" if isinstance(thing, torch.dtype) else "device"
                return [kind, str(thing).removeprefix("torch.")]
        return self._object(thing, where)

    def _array(self, array: np.ndarray) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _numbers(self, thing: Any, where: str) -> Any:
        array = np.asarray(thing)
        if array.dtype.hasobject:
            raise StateError(f"{where} is an array of objects, which cannot be kept")
        return ["array" if isinstance(thing, np.ndarray) else "number", self._array(array)]

    def _tensor(self, thing: Any, where: str) -> Any:
        if thing.grad_fn is not None:
            thing = thing.detach()
        parameter = type(thing).__name__ == "Parameter"
        return ["tensor", self._array(thing.detach().cpu().numpy()), thing.requires_grad, parameter, str(thing.device)]

    def _generator(self, thing: np.random.Generator, where: str) -> Any:
        return ["generator", _generator_state(thing)]

    def _sequence(self, thing: Any, where: str) -> Any:
        values = [self.write(value, f"{where}[{place}]") for place, value in enumerate(thing)]
        if type(thing) in SEQUENCES:
            return [SEQUENCES[type(thing)], values]
        if isinstance(thing, tuple):  # a named one, or torch.Size
            return ["named", self._name(type(thing), where), values]
        return self._object(thing, where)

    def _mapping(self, thing: Any, where: str) -> Any:
        pairs = [[self.write(k, f"{where} key"), self.write(v, f"{where}[{k!r}]")] for k, v in thing.items()]
        if isinstance(thing, defaultdict):
            return ["default", pairs, self.write(thing.default_factory, f"{where}.default_factory")]
        if type(thing) in MAPPINGS:
            return [MAPPINGS[type(thing)], pairs]
        return self._object(thing, where)

    def _named(self, thing: Any, where: str) -> Any:
        return ["name", self._name(thing, where)]

    def _name(self, thing: Any, where: str) -> str:
        module, name = getattr(thing, "__module__", None) or "builtins", getattr(thing, "__qualname__", "")
        path = f"{module}:{name}"
        try:
            found = _found(path)
        except (*FAULTS, ModuleNotFoundError):
            found = None
        if found is not thing:
            raise StateError(f"{where or 'it'} is a function or a class without a name, {shortened(path)}")
        return path

    def _object(self, thing: Any, where: str) -> Any:
        named = self._name(type(thing), where)
        if _keeps_itself(type(thing)):
            return ["kept", named, self.write(thing.__getstate__(), where)]
        held = getattr(thing, "__dict__", None)
        slots = sorted(name for name in _slots(type(thing)) if hasattr(thing, name))
        if held is None and not slots:
            raise StateError(f"{where} is of {named}, which cannot be kept")
        attributes = _own_of(thing, held or {}) | {name: getattr(thing, name) for name in slots}
        return ["object", named, {name: self.write(value, f"{where}.{name}") for name, value in attributes.items()}]

    _KINDS: Mapping[Any, Callable[..., Any]] = {
        np.ndarray: _numbers,
        np.generic: _numbers,
        np.random.Generator: _generator,
        bytes: lambda self, thing, where: ["bytes", thing.hex()],
        np.dtype: lambda self, thing, where: ["numpy dtype", thing.str],
        Enum: lambda self, thing, where: ["enum", self._name(type(thing), where), thing.name],
        (list, tuple, set, frozenset, deque): _sequence,
        dict: _mapping,
        MappingProxyType: lambda self, thing, where: ["proxy", self.write(dict(thing), where)],
        range: lambda self, thing, where: ["range", [thing.start, thing.stop, thing.step]],
        slice: lambda self, thing, where: ["slice", [thing.start, thing.stop, thing.step]],
        partial: lambda self, thing, where: [
            "partial",
            self.write(thing.func, f"{where}.func"),
            self.write(thing.args, f"{where}.args"),
            self.write(thing.keywords, f"{where}.keywords"),
        ],
        MethodType: lambda self, thing, where: ["method", self.write(thing.__self__, where), thing.__name__],
        (type, FunctionType, BuiltinFunctionType): _named,
    }


class _Reader:
    def __init__(self, state: Mapping[str, Any], arrays: Any, task: Any, packages: set[str]) -> None:
        self._state, self._arrays, self._task, self._packages = state, arrays, task, packages
        self._made: dict[int, Any] = {}

    def read_all(self, into: Any) -> Any:
        for path, drawn in self._state["drawn"]:
            self._in_task(path)._np_random = _generator(drawn)
        self._into = into
        return self.read(self._state["root"])

    def _whole(self, place: int, attributes: Mapping[str, Any]) -> None:
        """All attributes are read before the object loses those that it has."""
        self._made[place] = self._into
        read = {name: self.read(value) for name, value in attributes.items()}
        vars(self._into).clear()
        vars(self._into).update(read)

    def read(self, written: Any) -> Any:
        if not isinstance(written, dict):
            return written
        if "task" in written:
            return self._in_task(written["task"])
        place = int(written["at"])
        if place not in self._made:
            kind, *rest = self._state["things"][place]
            getattr(self, f"_{kind.replace(' ', '_')}")(place, *rest)
        return self._made[place]

    def _in_task(self, path: Sequence[Any]) -> Any:
        found = self._task
        for kind, step in path:
            found = getattr(found, step) if kind == "attribute" else found[step]
        return found

    def _class(self, path: str) -> Any:
        module, _, name = path.partition(":")
        if module.partition(".")[0] not in self._packages and not (module == "builtins" and name in PYTHONS):
            raise ArgumentError(f"the state names {path}, of a package that the agent is not from")
        return _found(path)

    def _array(self, place: int, number: int) -> None:
        self._made[place] = np.array(self._arrays[f"a{number}"])

    def _number(self, place: int, number: int) -> None:
        self._made[place] = self._arrays[f"a{number}"][()]

    def _tensor(self, place: int, number: int, wants_gradient: bool, parameter: bool, device: str) -> None:
        import torch

        tensor = torch.from_numpy(np.array(self._arrays[f"a{number}"])).to(device)
        self._made[place] = (
            torch.nn.Parameter(tensor, wants_gradient) if parameter else tensor.requires_grad_(wants_gradient)
        )

    def _torch_generator(self, place: int, device: str, number: int) -> None:
        import torch

        self._made[place] = torch.Generator(device)
        self._made[place].set_state(torch.from_numpy(np.array(self._arrays[f"a{number}"])))

    def _dtype(self, place: int, name: str) -> None:
        import torch

        self._made[place] = getattr(torch, name)
        if not isinstance(self._made[place], torch.dtype):
            raise ArgumentError(f"the state names torch.{name}, which is not a dtype")

    def _device(self, place: int, name: str) -> None:
        import torch

        self._made[place] = torch.device(name)

    def _generator(self, place: int, state: Any) -> None:
        self._made[place] = _generator(state)

    def _list(self, place: int, values: list[Any]) -> None:
        own: list[Any] = []
        self._made[place] = own
        own += map(self.read, values)

    def _deque(self, place: int, values: list[Any]) -> None:
        self._made[place] = deque(map(self.read, values))

    def _tuple(self, place: int, values: list[Any]) -> None:
        self._made[place] = tuple(map(self.read, values))

    def _set(self, place: int, values: list[Any]) -> None:
        self._made[place] = set(map(self.read, values))

    def _frozenset(self, place: int, values: list[Any]) -> None:
        self._made[place] = frozenset(map(self.read, values))

    def _named(self, place: int, path: str, values: list[Any]) -> None:
        kind = self._class(path)
        if not (isinstance(kind, type) and issubclass(kind, tuple)):
            raise ArgumentError(f"the state names {path}, which is not a tuple")
        read = list(map(self.read, values))
        self._made[place] = kind(read) if kind.__module__ == "torch" else tuple.__new__(kind, read)  # torch.Size

    def _dict(self, place: int, pairs: list[list[Any]]) -> None:
        own: dict[Any, Any] = {}
        self._made[place] = own
        own.update((self.read(key), self.read(value)) for key, value in pairs)

    def _ordered(self, place: int, pairs: list[list[Any]]) -> None:
        own: OrderedDict[Any, Any] = OrderedDict()
        self._made[place] = own
        own.update((self.read(key), self.read(value)) for key, value in pairs)

    def _default(self, place: int, pairs: list[list[Any]], factory: Any) -> None:
        own: defaultdict[Any, Any] = defaultdict(self.read(factory))
        self._made[place] = own
        own.update((self.read(key), self.read(value)) for key, value in pairs)

    def _proxy(self, place: int, held: Any) -> None:
        self._made[place] = MappingProxyType(self.read(held))

    def _range(self, place: int, ends: list[int]) -> None:
        self._made[place] = range(*ends)

    def _slice(self, place: int, ends: list[Any]) -> None:
        self._made[place] = slice(*ends)

    def _enum(self, place: int, path: str, name: str) -> None:
        kind = self._class(path)
        if not (isinstance(kind, type) and issubclass(kind, Enum)):
            raise ArgumentError(f"the state names {path}, which is not an enumeration")
        self._made[place] = kind[name]

    def _name(self, place: int, path: str) -> None:
        self._made[place] = self._class(path)

    def _partial(self, place: int, function: Any, arguments: Any, keywords: Any) -> None:
        self._made[place] = partial(self.read(function), *self.read(arguments), **self.read(keywords))

    def _method(self, place: int, owner: Any, name: str) -> None:
        self._made[place] = getattr(self.read(owner), name)

    def _kept(self, place: int, path: str, state: Any) -> None:
        kind = self._class(path)
        if not (isinstance(kind, type) and _keeps_itself(kind)):
            raise ArgumentError(f"the state names {path}, which keeps nothing by itself")
        own: Any = object.__new__(kind)
        self._made[place] = own
        own.__setstate__(self.read(state))

    def _bytes(self, place: int, text: str) -> None:
        self._made[place] = bytes.fromhex(text)

    def _numpy_dtype(self, place: int, text: str) -> None:
        self._made[place] = np.dtype(text)

    def _object(self, place: int, path: str, attributes: Mapping[str, Any]) -> None:
        kind = self._class(path)
        if not isinstance(kind, type):
            raise ArgumentError(f"the state names {path}, which is not a class")
        own: Any = object.__new__(kind)
        self._made[place] = own
        slots = _slots(kind)
        for name, value in attributes.items():
            if name in slots:
                object.__setattr__(own, name, self.read(value))
            else:
                own.__dict__[name] = self.read(value)


def _keeps_itself(kind: type) -> bool:
    """Whether a class of this package says what of it is kept: parts that follow from others need not be."""
    return kind.__module__.startswith("cbo_gym.") and "__setstate__" in dir(kind)


def _own_of(thing: Any, held: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an object; of a graph of NetworkX without its views, which hold it by weak references."""
    if not type(thing).__module__.startswith("networkx."):
        return dict(held)
    kind = type(thing)
    views = {name for name in held if isinstance(inspect.getattr_static(kind, name, None), cached_property)}
    return {name: value for name, value in held.items() if name not in views}


def _slots(kind: type) -> set[str]:
    """The attributes of a class's objects that have places of their own."""
    found: set[str] = set()
    for one in kind.__mro__:
        own = vars(one).get("__slots__", ())
        found |= {own} if isinstance(own, str) else set(own)
    return found - {"__dict__", "__weakref__"}


def _found(path: str) -> Any:
    module, _, name = path.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _generator_state(generator: np.random.Generator) -> dict[str, Any]:
    bits = generator.bit_generator
    seeds: Any = bits.seed_seq
    entropy = (
        seeds.entropy if not isinstance(seeds.entropy, np.ndarray | list | tuple) else list(map(int, seeds.entropy))
    )
    return {
        "kind": type(bits).__name__,
        "state": json.loads(json.dumps(bits.state, default=lambda array: array.tolist())),
        "entropy": entropy,
        "spawn_key": list(seeds.spawn_key),
        "spawned": seeds.n_children_spawned,
    }


def _generator(told: Mapping[str, Any]) -> np.random.Generator:
    seeds = np.random.SeedSequence(told["entropy"], spawn_key=told["spawn_key"], n_children_spawned=told["spawned"])
    if told["kind"] not in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
        raise ArgumentError(f"the state names a generator {told['kind']!r}")
    bits = getattr(np.random, told["kind"])(seeds)
    bits.state = told["state"]
    return np.random.Generator(bits)


def _parts(task: Any) -> Iterator[tuple[Any, list[list[Any]]]]:
    """The parts of a task that can be changed, or compared by identity, each with the steps that lead to it."""
    pending: list[tuple[Any, list[list[Any]]]] = [] if task is None else [(task, [])]
    seen: set[int] = set()
    while pending:
        thing, path = pending.pop()
        if type(thing) in SCALARS or id(thing) in seen or isinstance(thing, type | FunctionType | np.generic):
            continue
        seen.add(id(thing))
        yield thing, path
        if isinstance(thing, Mapping) and not isinstance(thing, Space):
            pending += [(value, [*path, ["item", key]]) for key, value in thing.items() if type(key) in SCALARS]
        elif isinstance(thing, list | tuple):
            pending += [(value, [*path, ["item", place]]) for place, value in enumerate(thing)]
        elif is_dataclass(thing) or hasattr(thing, "__dict__"):
            held = vars(thing) if hasattr(thing, "__dict__") else {}
            pending += [(value, [*path, ["attribute", name]]) for name, value in held.items()]
