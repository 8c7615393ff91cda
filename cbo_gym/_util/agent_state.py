"""Store agents as bytes, for ``Agent.save`` and checkpoints: a pickle of the agent's attributes, and a seal.

Reading a pickle can run any code. So a state is sealed with a key of the user who saves it, and a state without the
user's own seal is refused unless the caller trusts it; see :mod:`cbo_gym._util.seal`. Objects that the agent shares
with its task are stored as their position in the task, so a state is read together with the task. Threads, open files
and lambdas cannot be pickled.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Mapping
from io import BytesIO
from types import FunctionType
from typing import Any

import numpy as np
from gymnasium.spaces import Space

from cbo_gym._util.seal import KEY_VARIABLE, is_ours, key_path, seal
from cbo_gym.errors import ArgumentError, OperationError, message_of, shorten

SCALARS = (bool, int, float, str, type(None))
# A state consists of HEAD, a seal of SEAL_DIGITS hexadecimal digits, and the pickle.
HEAD = b"cbo-gym agent\n"
SEAL_DIGITS = 64
# First bytes of states of older versions, which were zip files.
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
    # The spaces themselves belong to the task, but sampling advances their random generators.
    generators = [(steps, item._np_random) for item, steps in _items_of(task) if isinstance(item, Space)]
    try:
        content = _pickle((type(agent).__qualname__, vars(agent), generators), agent, task)
    except Exception as error:
        raise StateError(_describe_failure(agent, task, error)) from error
    own_seal = seal(content)
    if own_seal is None:
        raise StateError(
            f"the state cannot be sealed, because {key_path()} cannot be written; set {KEY_VARIABLE} to a path"
        )
    return HEAD + own_seal.encode() + content


def unpack(content: bytes, task: Any, target: Any, *, trusted: bool = False) -> None:
    """Give an agent the attributes that :func:`pack` stored, and remove all others.

    Args:
        content: the bytes that :func:`pack` returned.
        task: the agent's task; its spaces continue their random streams.
        target: an agent of the same class; it is unchanged if the state cannot be read.
        trusted: read a state that is not sealed with this user's key; reading it can run any code.

    Raises:
        ArgumentError: if this is not a state of an agent of this class, or is neither sealed by this user nor trusted.
    """
    if content.startswith(ZIP):
        raise ArgumentError(
            "this state was saved by an older cbo-gym, whose format is no longer read; play the agent again and save "
            "it with this version"
        )
    if not content.startswith(HEAD):
        raise ArgumentError("this is not a state of an agent; give the bytes of state(), or a file of save()")
    seal_end = len(HEAD) + SEAL_DIGITS
    stored_seal, content = content[len(HEAD) : seal_end].decode("latin-1"), content[seal_end:]
    if not trusted and not is_ours(content, stored_seal):
        raise ArgumentError(
            f"this state is not sealed with your key, {key_path()}: it was changed, or saved by another user or on "
            "another machine. Reading a state can run any code; if you trust the user who saved it, pass trusted=True"
        )
    try:
        name, attributes, generators = _Unpickler(BytesIO(content), target, task).load()
        generators_of_spaces = [(_follow(task, steps), generator) for steps, generator in generators]
    except Exception as error:
        reason = shorten(f"{type(error).__name__}: {message_of(error)}")
        raise ArgumentError(f"this state cannot be read, or is of another task: {reason}") from error
    if name != type(target).__qualname__:
        raise ArgumentError(f"this is a state of {name}; the agent is a {type(target).__qualname__}")
    for space, generator in generators_of_spaces:
        space._np_random = generator
    vars(target).clear()
    vars(target).update(attributes)


def _pickle(value: Any, agent: Any, task: Any) -> bytes:
    file = BytesIO()
    _Pickler(file, agent, task).dump(value)
    return file.getvalue()


def _describe_failure(agent: Any, task: Any, error: Exception) -> str:
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
        return self._agent if steps == ("agent",) else _follow(self._task, steps)


def _torch_generator(device: str, state: Any) -> Any:
    import torch

    generator = torch.Generator(device)
    generator.set_state(state)
    return generator


def _follow(item: Any, steps: Steps) -> Any:
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
        # Another task has its generators at their starts, so their states are saved.
        if isinstance(item, np.random.Generator):
            continue
        visited.add(id(item))
        yield item, steps
        if isinstance(item, Mapping) and not isinstance(item, Space):
            pending += [(value, [*steps, ("item", key)]) for key, value in item.items() if type(key) in SCALARS]
        elif isinstance(item, list | tuple):
            pending += [(value, [*steps, ("item", index)]) for index, value in enumerate(item)]
        elif hasattr(item, "__dict__"):
            pending += [(value, [*steps, ("attribute", name)]) for name, value in vars(item).items()]
