"""Agents that are passed to a sweep as objects: classes, instances, and functions that make an agent.

If other processes can import the class or function, a sweep passes them its import path. Otherwise, as for an agent
from a notebook, the object is pickled by value with cloudpickle. An agent that cannot be pickled plays in this process.
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
        stamps: Names and stamps of its code and state, see :mod:`cbo_gym.evaluation.runs.revisions`.
        source: The agent, class or function, if it plays in this process; else None.
    """

    payload: bytes
    stamps: tuple[tuple[str, str], ...]
    source: Any = field(default=None, compare=False)

    def agent(self) -> Any:
        """Return an agent that plays in this process: a copy of an instance, if it can be copied."""
        agent = agent_of(self.source)
        if agent is not self.source:
            return agent
        try:
            return deepcopy(agent)
        # Something in the agent cannot be copied; its reset() clears its state.
        except Exception:
            return agent


class AgentFacts(NamedTuple):
    """The facts about an agent that a sweep needs.

    Attributes:
        modules: Modules in which the agent is defined.
        modes: Feedback modes that it declares; empty if it declares none.
        isolated: Whether it plays in a separate process, as third-party agents do.
        sent: The agent itself, if other processes cannot import it; else None.
    """

    modules: frozenset[str] = frozenset()
    modes: tuple[str, ...] = ()
    isolated: bool = False
    sent: SentAgent | None = None


def labelled_agents(agents: Any) -> list[tuple[str | None, Any]]:
    """Return the agents that are passed to a sweep, each with its label, or None if it has no label."""
    if isinstance(agents, Mapping):
        return [(str(label), agent) for label, agent in agents.items()]
    if isinstance(agents, str | Spec | type) or not isinstance(agents, Iterable):
        agents = [agents]
    return [(None, agent) for agent in agents]


def import_path(source: Any) -> str | None:
    """Return the zoo's name or the import path of a class or function; None if other processes cannot import it."""
    module, name = getattr(source, "__module__", None), getattr(source, "__qualname__", None)
    if not module or not name or module == "__main__":
        return None
    if (spec := import_spec(module)) is None or not spec.has_location:
        return None
    value: Any = sys.modules.get(module)
    for attribute in name.split("."):
        value = getattr(value, attribute, None)
    if value is not source:
        return None
    path = f"{module}:{name}"
    return next((zoo_name for zoo_name, zoo_path in zoo().items() if zoo_path == path), path)


def pickle_agent(source: Any, label: str | None, taken_labels: Iterable[str]) -> tuple[Spec, AgentFacts]:
    """Return the label and the facts of an agent that no other process can import, with its pickle.

    Args:
        source: The agent, or the class or function that makes it.
        label: Name of the agent in the results; None for the name of its class, or of the function.
        taken_labels: Labels of other agents.
    """
    agent = agent_of(source)
    if isinstance(source, type) or not hasattr(source, "act"):
        name = label or str(getattr(source, "__name__", ""))
    else:
        name = label or type(source).__name__
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
    # The agent holds an open file or a lock, for example.
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
    return spec, AgentFacts(modules, modes_of(agent), isolated=bool(payload), sent=sent)


def _warn_it_plays_here(name: str, error: Exception) -> bytes:
    warnings.warn(
        f"{name} plays in this process, one run after the other, without limits, because it cannot be sent to another: "
        f"{short_repr(str(error))}",
        stacklevel=3,
    )
    return b""


def _state_of(source: Any, payload: bytes, stamps: Mapping[str, str]) -> str:
    """Return what distinguishes agents of the same source code: hashes of their values, or of the pickle."""
    # The source of some code is unknown.
    if any(stamp.rpartition("+")[2] == INTERACTIVE for stamp in stamps.values()):
        return hashlib.sha256(payload).hexdigest()
    return " ".join(map(_hash_of, _parts_of(source, stamps, set())))


def _parts_of(source: Any, modules: Container[str], visited: set[int]) -> Iterator[object]:
    """Yield names and values in a class with its methods, an instance, or a function with its variables."""
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
        own_bases = [base for base in cls.__mro__ if base.__module__.partition(".")[0] in modules]
        for base in own_bases:
            for name, value in vars(base).items():
                value = inspect.unwrap(getattr(value, "__func__", value))
                if isinstance(value, FunctionType) or not name.startswith(("__", "_abc_")):
                    values[f"{base.__qualname__}.{name}"] = value
        if cls is not source:
            values |= vars(source)
    for name, value in values.items():
        yield name
        if isinstance(value, type | FunctionType | partial):
            yield from _parts_of(value, modules, visited)
        else:
            # The order of a frozen set differs between processes.
            yield set(value) if isinstance(value, frozenset) else value


def parameters_of(agent: Any) -> dict[str, str]:
    """Return hashes of the parameters that an agent keeps in attributes of the same names."""
    names = inspect.signature(type(agent)).parameters
    return {name: _hash_of(getattr(agent, name)) for name in names if hasattr(agent, name)}


def _hash_of(value: object) -> str:
    # Imported here, because it is needed only here.
    import joblib

    try:
        return str(joblib.hash(value))
    # The value cannot be hashed.
    except (pickle.PicklingError, TypeError, AttributeError):
        return ""
