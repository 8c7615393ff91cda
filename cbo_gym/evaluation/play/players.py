"""Third-party agents and blind play: calls of the evaluator to functions of :mod:`cbo_gym.referee`.

The referee imports the evaluator, so these functions import the referee by name, when they are called.
"""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from typing import Any

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import OperationError

REFEREE = "cbo_gym.referee"
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
    return import_module(f"{REFEREE}.isolated").IsolatedAgent(agent, seconds)


def describe_isolated(agent: Spec | bytes, seconds: float = MAKING_SECONDS) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the modules and modes of a third-party agent, which is isolated for this and then closed."""
    with closing(isolate(agent, seconds)) as player:
        return player.modules, player.modes


def draw_instance(words: str, env: Spec, seed: int) -> tuple[Spec, str]:
    """Return the instance and the secret of a cell of blind play, as ``cbo_gym.referee.blind.draw_instance``."""
    instance: tuple[Spec, str] = import_module(f"{REFEREE}.blind").draw_instance(words, env, seed)
    return instance
