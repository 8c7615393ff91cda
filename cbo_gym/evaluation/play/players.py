"""Third-party agents in separate processes, as :mod:`cbo_gym.referee.isolated` makes them.

The referee imports the evaluator, so that module is imported by name, when it is needed.
"""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from typing import Any

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import OperationError

# Limits in seconds to import and make an agent that is named, and an agent that a pattern matches.
MAKING_SECONDS = 300
LISTING_SECONDS = 30


class PlayerError(OperationError):
    """An error that an agent raised in its own process; the message begins with its class; its traceback is a note."""


class IsolatedPlayer:
    """Base class of agents in separate processes, which ``close`` ends.

    Attributes:
        modules: Modules in which the agent is defined, as its own process reports them.
        modes: Feedback modes that it declares; empty if it declares none.
    """

    modules: frozenset[str]
    modes: tuple[str, ...]


def isolate(agent: Spec | bytes, seconds: float = MAKING_SECONDS) -> Any:
    """Return a third-party agent as an :class:`IsolatedPlayer`, see ``cbo_gym.referee.isolated.IsolatedAgent``."""
    return import_module("cbo_gym.referee.isolated").IsolatedAgent(agent, seconds)


def describe_isolated(agent: Spec | bytes, seconds: float = MAKING_SECONDS) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the modules and modes of a third-party agent, which is isolated for this and then closed."""
    with closing(isolate(agent, seconds)) as player:
        return player.modules, player.modes
