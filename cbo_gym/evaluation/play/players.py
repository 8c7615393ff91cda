"""Interface of third-party agents in separate processes, which :mod:`cbo_gym.referee.isolated` implements.

The referee imports the evaluator, so the evaluator imports the referee's module only when it is needed.
"""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from typing import Any

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import OperationError

# Seconds to import and make an agent that is named.
MAKING_SECONDS = 300
# Seconds to import and make an agent that a pattern matches.
LISTING_SECONDS = 30


class PlayerError(OperationError):
    """An error that an agent raised in its own process; the message begins with the class of that error."""


class IsolatedPlayer:
    """Base class of agents in separate processes, which ``close`` ends.

    Attributes:
        modules: Modules in which the agent is defined, as its own process reports them.
        modes: Feedback modes that the agent declares; empty if it declares none.
    """

    modules: frozenset[str]
    modes: tuple[str, ...]


def isolate(agent: Spec | bytes, seconds: float = MAKING_SECONDS) -> Any:
    """Return a third-party agent as an :class:`IsolatedPlayer`, see ``cbo_gym.referee.isolated.IsolatedAgent``."""
    return import_module("cbo_gym.referee.isolated").IsolatedAgent(agent, seconds)


def describe_isolated(agent: Spec | bytes, seconds: float = MAKING_SECONDS) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the modules and modes of a third-party agent, which is made in a separate process and then closed."""
    with closing(isolate(agent, seconds)) as player:
        return player.modules, player.modes
