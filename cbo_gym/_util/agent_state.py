"""The state of an agent as bytes: a pickle of its attributes under the seal of the user who saved it.

Reading a pickle can run any code, so a state that was not sealed with the user's own key is refused unless the caller
says that it is trusted; see :mod:`cbo_gym._util.seal`. Objects that the agent shares with its task are stored as their
position in the task, so a state is read together with the task. Threads, open files and functions without a name
cannot be pickled.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from io import BytesIO
from types import FunctionType
from typing import Any

import numpy as np
from gymnasium.spaces import Space

from cbo_gym._util.seal import VARIABLE, is_ours, key_path, seal
from cbo_gym.errors import ArgumentError, OperationError, message_of, shorten

SCALARS = (bool, int, float, str, type(None))
HEAD = b"cbo-gym agent\n"
# Length of the seal, which follows the head.
DIGITS = 64
# First bytes of states of the former format.
ZIP = b"PK"
# Steps from a task to an object in it: ("attribute", name) or ("item", key).
Steps = list[tuple[str, Any]]


class StateError(OperationError):
    """An agent cannot be saved; the message names the attribute that prevents it."""


def pack(agent: Any, task: Any) -> bytes:
    """Return the attributes of an agent, sealed.

    Args:
        agent: any object with a ``__dict__``.
        task: the agent's task; objects of the task that the agent shares are not stored.

    Raises:
        StateError: if an attribute cannot be pickled, or no key can be stored to seal it with.
    """
    spaces = [(steps, item._np_random) for item, steps in _items_of(task) if isinstance(item, Space)]
    try:
        content = _pickle((type(agent).__qualname__, vars(agent), spaces), agent, task)
    except Exception as error:
        raise StateError(_culprit(agent, task, error)) from error
    sealed = seal(content)
    if sealed is None:
        raise StateError(
            f"the state cannot be sealed, because {key_path()} cannot be written; set {VARIABLE} to a path"
        )
    return HEAD + sealed.encode() + content


def unpack(content: bytes, task: Any, target: Any, *, trusted: bool = False) -> None:
    """Give an agent the attributes that :func:`pack` stored, and remove all others.

    Args:
        content: a state.
        task: the agent's task; its spaces continue their random streams.
        target: an agent of the same class; it is unchanged if the state cannot be read.
        trusted: read a state that is not sealed with this user's key; reading it can run any code.

    Raises:
        ArgumentError: if this is not a state of an agent of this class, or neither sealed nor trusted.
    """
    if content.startswith(ZIP):
        raise ArgumentError(
            "this state was saved by an older cbo-gym, whose format is no longer read; play the agent again and save "
            "it with this version"
        )
    if not content.startswith(HEAD):
        raise ArgumentError("this is not a state of an agent; give the bytes of state(), or a file of save()")
    sealed, content = content[len(HEAD) :][:DIGITS], content[len(HEAD) + DIGITS :]
    if not trusted and not is_ours(content, sealed.decode("latin-1")):
        raise ArgumentError(
            f"this state is not sealed with your key, {key_path()}: it was changed, or saved by another user or on "
            "another machine. Reading a state can run any code; if you trust the user who saved it, pass trusted=True"
        )
    try:
        name, attributes, spaces = _Unpickler(BytesIO(content), target, task).load()
        restored = [(_at(task, steps), generator) for steps, generator in spaces]
    except Exception as error:
        reason = shorten(f"{type(error).__name__}: {message_of(error)}")
        raise ArgumentError(f"this state cannot be read, or is of another task: {reason}") from error
    if name != type(target).__qualname__:
        raise ArgumentError(f"this is a state of {name}; the agent is a {type(target).__qualname__}")
    for space, generator in restored:
        space._np_random = generator
    vars(target).clear()
    vars(target).update(attributes)


def _pickle(value: Any, agent: Any, task: Any) -> bytes:
    file = BytesIO()
    _Pickler(file, agent, task).dump(value)
    return file.getvalue()


def _culprit(agent: Any, task: Any, error: Exception) -> str:
    for name, value in vars(agent).items():
        try:
            _pickle(value, agent, task)
        except Exception as cause:
            return f"{name} cannot be saved: {shorten(message_of(cause))}"
    return f"the agent cannot be saved: {shorten(message_of(error))}"


class _Pickler(pickle.Pickler):
    """Pickler that replaces the agent, and objects of its task, by the steps from the task that lead to them."""

    def __init__(self, file: BytesIO, agent: Any, task: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._steps: dict[int, Steps] = {id(item): steps for item, steps in _items_of(task)}
        self._agent = id(agent)

    def persistent_id(self, value: Any) -> Any:
        return ("agent",) if id(value) == self._agent else self._steps.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        # Before torch 2.5 a generator cannot be pickled.
        if torch is not None and isinstance(value, torch.Generator):
            return _torch_generator, (str(value.device), value.get_state())
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BytesIO, agent: Any, task: Any) -> None:
        super().__init__(file)
        self._agent, self._task = agent, task

    def persistent_load(self, steps: Any) -> Any:
        return self._agent if steps == ("agent",) else _at(self._task, steps)


def _torch_generator(device: str, state: Any) -> Any:
    import torch

    generator = torch.Generator(device)
    generator.set_state(state)
    return generator


def _at(item: Any, steps: Steps) -> Any:
    for access, step in steps:
        item = getattr(item, step) if access == "attribute" else item[step]
    return item


def _items_of(task: Any) -> Iterator[tuple[Any, Steps]]:
    """Yield each object in a task that is mutable or compared by identity, and the steps that lead to it."""
    pending: list[tuple[Any, Steps]] = [] if task is None else [(task, [])]
    visited: set[int] = set()
    while pending:
        item, steps = pending.pop()
        if type(item) in SCALARS or id(item) in visited or isinstance(item, type | FunctionType | np.generic):
            continue
        visited.add(id(item))
        yield item, steps
        if isinstance(item, Mapping) and not isinstance(item, Space):
            pending += [(value, [*steps, ("item", key)]) for key, value in item.items() if type(key) in SCALARS]
        elif isinstance(item, list | tuple):
            pending += [(value, [*steps, ("item", index)]) for index, value in enumerate(item)]
        elif is_dataclass(item) or hasattr(item, "__dict__"):
            attributes = vars(item) if hasattr(item, "__dict__") else {}
            pending += [(value, [*steps, ("attribute", name)]) for name, value in attributes.items()]
