"""Agents that are handed to a sweep as they are: classes, instances and functions that make one, of any cell or script.

What another process can import is known by its import path, as if that had been given. The rest is sent by value, as
cloudpickle packs it, to the process in which it plays; what cannot be sent plays in this one.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import sys
import warnings
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import FunctionType
from typing import Any

import cloudpickle
import joblib

from cbo_gym.agent_finder import agent_of, known_agents, modes_of
from cbo_gym.agents.zoo import zoo
from cbo_gym.errors import ArgumentError, CBOGymError, shown
from cbo_gym.evaluation.play.isolated import described
from cbo_gym.evaluation.runs.revisions import modules_of, stamps_of
from cbo_gym.evaluation.runs.typed_code import DIGITS, WORD
from cbo_gym.labels import Spec


@dataclass(frozen=True)
class Handed:
    """An agent that no other process can import.

    Attributes:
        payload: what makes it, as cloudpickle packs it; empty for one that plays in this process.
        stamps: name and stamp of its code and state.
        modules: in which it is defined.
        modes: the feedback modes that it plays, by its own word.
        here: what makes it; None for one that is sent.
    """

    payload: bytes
    stamps: tuple[tuple[str, str], ...]
    modules: frozenset[str]
    modes: tuple[str, ...]
    here: Any = field(default=None, compare=False)

    def agent(self) -> Any:
        """One that plays in this process: of an instance a copy, as far as it can be copied."""
        agent = agent_of(self.here)
        if agent is not self.here:
            return agent
        try:
            return deepcopy(self.here)
        except Exception:  # it holds what has no copy; its reset() starts afresh
            return self.here


def in_a_list(agents: Any) -> list[tuple[str | None, Any]]:
    """The agents that a sweep was given, as pairs of a label, or None for its own, and the agent."""
    if isinstance(agents, Mapping):
        return [(str(label), agent) for label, agent in agents.items()]
    if isinstance(agents, str | Spec | type) or not isinstance(agents, Iterable):
        agents = [agents]
    return [(None, agent) for agent in agents]


def import_path(given: Any) -> str | None:
    """By what another process finds a class or a function; None for an instance, and for what lies in no module."""
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    if not module or not name or module == "__main__" or not _is_found(module):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    path = f"{module}:{name}"
    return next((short for short, long in zoo().items() if long == path), path) if found is given else None


def _is_found(module: str) -> bool:
    try:
        spec = find_spec(module)
    except (ValueError, ImportError):  # made in memory
        return False
    return spec is not None and spec.has_location


def handed_over(given: Any, label: str | None, taken: Iterable[str]) -> tuple[Spec, Handed]:
    """Everything that a sweep has to know of an agent that no other process can import.

    Args:
        given: it.
        label: what the results call it; None for the name of its class, or of the function that makes it.
        taken: labels that others have.

    Raises:
        ArgumentError: if it cannot be made, or another agent is called the same.
    """
    maker = isinstance(given, type) or not hasattr(given, "act")
    agent = agent_of(given)
    name = label or str(getattr(given, "__name__", "") if maker else type(given).__name__)
    if not name.isidentifier() and label is None:
        name = type(agent).__name__  # of a lambda
    if name in taken or name in known_agents():
        raise ArgumentError(
            f"another agent is called {name!r}; give this one a label of its own: sweep({{'my label': agent}}, ...)"
        )
    spec = Spec.parse(name)
    modules = modules_of(agent, None)
    stamps = stamps_of(modules)
    payload = _packed(given, name)
    digest = hashlib.sha256(f"{sorted(stamps.items())}{_state_of(given, payload, stamps)}".encode()).hexdigest()
    stamps[name] = f"{WORD}+{digest[:DIGITS]}"
    modes = modes_of(agent)
    if payload:
        try:
            described(payload)
        except CBOGymError as error:
            payload = _plays_here(name, error)
    return spec, Handed(payload, tuple(stamps.items()), modules, modes, None if payload else given)


def _packed(given: Any, name: str) -> bytes:
    try:
        return bytes(cloudpickle.dumps(given))
    except Exception as error:  # it holds a file, a lock, anything
        return _plays_here(name, error)


def _plays_here(name: str, error: Exception) -> bytes:
    """Say so; of what is sent nothing."""
    warnings.warn(
        f"{name} plays in this process, one run after the other, without limits, since it cannot be sent to another: "
        f"{shown(str(error))}",
        stacklevel=2,
    )
    return b""


def _state_of(given: Any, payload: bytes, stamps: Mapping[str, str]) -> str:
    """The state that tells it from others of its class: an instance's attributes; all, of code without kept text."""
    if all(stamp.rpartition("+")[2] != WORD for stamp in stamps.values()):
        try:
            return str(joblib.hash(_beside_text(given)))
        except (pickle.PicklingError, TypeError, AttributeError):  # it holds what cannot be stored
            return ""
    return hashlib.sha256(payload).hexdigest()


def _beside_text(given: Any) -> object:
    """The state of an agent, or of what makes one, beside the text of its module."""
    if isinstance(given, type):
        return None
    if isinstance(given, FunctionType):
        return given.__code__.co_firstlineno, inspect.getclosurevars(given).nonlocals, given.__defaults__
    return vars(given)
