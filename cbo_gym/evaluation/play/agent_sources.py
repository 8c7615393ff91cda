"""Agents that are passed to a sweep as objects: classes, instances and functions, of any notebook or script.

An agent that other processes can import is known by its import path. Any other is sent by value with cloudpickle to the
process in which it plays; one that cannot be pickled plays in this process.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import sys
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

import cloudpickle

from cbo_gym.agent_registry.finding import agent_of, known_agents, modes_of
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.errors import ArgumentError, CBOGymError, short_repr
from cbo_gym.evaluation.play.players import describe_isolated
from cbo_gym.evaluation.runs.interactive_code import HASH_DIGITS, INTERACTIVE
from cbo_gym.evaluation.runs.revisions import import_spec, modules_of, stamps_of


@dataclass(frozen=True)
class SentAgent:
    """An agent that no other process can import.

    Attributes:
        payload: Pickle of the agent, or of the class or function that makes it; empty if it plays in this process.
        stamps: Names and stamps of its code and state.
        here: The agent, class or function, if it plays in this process.
    """

    payload: bytes
    stamps: tuple[tuple[str, str], ...]
    here: Any = field(default=None, compare=False)

    def agent(self) -> Any:
        """Return an agent that plays in this process: a copy of an instance, if it can be copied."""
        agent = agent_of(self.here)
        if agent is not self.here:
            return agent
        try:
            return deepcopy(self.here)
        # Something in the agent cannot be copied; its reset() clears its state.
        except Exception:
            return self.here


class Player(NamedTuple):
    """The facts about an agent that a sweep needs.

    Attributes:
        modules: Modules in which it is defined.
        modes: Feedback modes that it declares; empty if it declares none.
        isolated: Whether it is a third-party agent, which plays in a separate process.
        sent: The agent itself, if other processes cannot import it.
    """

    modules: frozenset[str] = frozenset()
    modes: tuple[str, ...] = ()
    isolated: bool = False
    sent: SentAgent | None = None


def labelled_agents(agents: Any) -> list[tuple[str | None, Any]]:
    """Return the agents that are passed to a sweep, each with its label, or ``None`` for its own name."""
    if isinstance(agents, Mapping):
        return [(str(label), agent) for label, agent in agents.items()]
    if isinstance(agents, str | Spec | type) or not isinstance(agents, Iterable):
        agents = [agents]
    return [(None, agent) for agent in agents]


def import_path(source: Any) -> str | None:
    """Return the name by which other processes find a class or a function; ``None`` for anything else."""
    module, name = getattr(source, "__module__", None), getattr(source, "__qualname__", None)
    if not module or not name or module == "__main__":
        return None
    if (spec := import_spec(module)) is None or not spec.has_location:
        return None
    value: Any = sys.modules.get(module)
    for attribute in name.split("."):
        value = getattr(value, attribute, None)
    path = f"{module}:{name}"
    return next((short for short, long in zoo().items() if long == path), path) if value is source else None


def sent_agent(source: Any, label: str | None, taken_labels: Iterable[str]) -> tuple[Spec, Player]:
    """Describe and pickle an agent that no other process can import.

    Args:
        source: The agent, or the class or function that makes it.
        label: Its name in the results; None for the name of its class, or of the function.
        taken_labels: Labels of other agents.

    Raises:
        ArgumentError: if it cannot be made, or another agent has the name.
    """
    is_maker = isinstance(source, type) or not hasattr(source, "act")
    agent = agent_of(source)
    name = label or str(getattr(source, "__name__", "") if is_maker else type(source).__name__)
    if not name.isidentifier() and label is None:
        # The function is a lambda.
        name = type(agent).__name__
    if name in taken_labels or name in known_agents():
        raise ArgumentError(
            f"another agent has the name {name!r}; give this one a label of its own: sweep({{'my label': agent}}, ...)"
        )
    spec = Spec.parse(name)
    modules = modules_of(agent, None)
    stamps = stamps_of(modules)
    try:
        payload = bytes(cloudpickle.dumps(source))
    # The agent holds a file, a lock or the like.
    except Exception as error:
        payload = _warn_it_plays_here(name, error)
    digest = hashlib.sha256(f"{sorted(stamps.items())}{_state_of(source, payload, stamps)}".encode()).hexdigest()
    stamps[name] = f"{INTERACTIVE}+{digest[:HASH_DIGITS]}"
    if payload:
        try:
            describe_isolated(payload)
        except CBOGymError as error:
            payload = _warn_it_plays_here(name, error)
    sent = SentAgent(payload, tuple(stamps.items()), None if payload else source)
    return spec, Player(modules, modes_of(agent), isolated=bool(payload), sent=sent)


def _warn_it_plays_here(name: str, error: Exception) -> bytes:
    warnings.warn(
        f"{name} plays in this process, one run after the other, without limits, because it cannot be sent to another: "
        f"{short_repr(str(error))}",
        stacklevel=3,
    )
    return b""


def _state_of(source: Any, payload: bytes, stamps: Mapping[str, str]) -> str:
    """Return the state by which agents of the same source code differ; the pickle's hash if the code is unknown."""
    if any(stamp.rpartition("+")[2] == INTERACTIVE for stamp in stamps.values()):
        return hashlib.sha256(payload).hexdigest()
    return " ".join(map(_hash_of, _parts_of(source, stamps, set())))


def _parts_of(source: Any, modules: Container[str], visited: set[int]) -> Iterator[object]:
    """Yield names and values of a class with its methods, of an instance, or of a function with its variables."""
    if id(source) in visited:
        return
    visited.add(id(source))
    values: dict[Any, Any] = {}
    if isinstance(source, partial):
        values = {"func": source.func, **dict(enumerate(source.args)), **source.keywords}
    elif isinstance(source, FunctionType):
        yield source.__qualname__, source.__code__.co_firstlineno
        values = {**dict(enumerate(source.__defaults__ or ())), **(source.__kwdefaults__ or {})}
        # A variable may have no value yet.
        with suppress(ValueError):
            variables = inspect.getclosurevars(source)
            values |= {name: value for name, value in variables.globals.items() if isinstance(value, int | float | str)}
            values |= variables.nonlocals
    else:
        cls = source if isinstance(source, type) else type(source)
        yield cls.__module__, cls.__qualname__
        for base in (base for base in cls.__mro__ if base.__module__.partition(".")[0] in modules):
            for name, value in vars(base).items():
                value = inspect.unwrap(getattr(value, "__func__", value))
                if isinstance(value, FunctionType) or not name.startswith(("__", "_abc_")):
                    values[f"{base.__qualname__}.{name}"] = value
        values |= {} if cls is source else vars(source)
    for name, value in values.items():
        yield name
        if isinstance(value, type | FunctionType | partial):
            yield from _parts_of(value, modules, visited)
        else:
            # The order of a frozen set differs between processes.
            yield set(value) if isinstance(value, frozenset) else value


def _hash_of(value: object) -> str:
    # Imported here, because it is needed only here.
    import joblib

    try:
        return str(joblib.hash(value))
    # The value cannot be hashed.
    except (pickle.PicklingError, TypeError, AttributeError):
        return ""
