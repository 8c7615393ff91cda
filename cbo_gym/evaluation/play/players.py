"""Third-party agents and blind play: what the evaluator asks of :mod:`cbo_gym.referee`, which it does not import.

The referee stands above the evaluator and is found by name, in every process that plays.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import OperationError

REFEREE = "cbo_gym.referee"
# Seconds to import and make an agent: one that is named, and one that a pattern matches.
MAKING_SECONDS = 300
LISTING_SECONDS = 30


class PlayerError(OperationError):
    """An error that an agent raised in its own process; the message begins with its class; its traceback is a note."""


class IsolatedPlayer:
    """Base class of agents in processes of their own, which also have the methods of an agent.

    Attributes:
        modules: Modules in which the agent is defined, as its own process reports them.
        modes: Feedback modes that it declares; empty if it declares none.
    """

    modules: frozenset[str]
    modes: tuple[str, ...]

    def close(self) -> None:
        """End the agent's process, and all that it started."""
        raise NotImplementedError


def isolate(agent: Spec | bytes, seconds: float = MAKING_SECONDS) -> IsolatedPlayer:
    """Make a third-party agent in a process of its own; arguments and errors as ``referee.isolated.IsolatedAgent``."""
    player: IsolatedPlayer = _of_referee("isolated", "IsolatedAgent")(agent, seconds)
    return player


def describe_isolated(agent: Spec | bytes, seconds: float = MAKING_SECONDS) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the modules and modes of a third-party agent; otherwise as :func:`isolate`."""
    player = isolate(agent, seconds)
    player.close()
    return player.modules, player.modes


def draw_instance(words: str, env: Spec, seed: int) -> tuple[Spec, str]:
    """Return the instance and the secret of a cell of blind play; arguments and errors as ``referee.blind``."""
    instance: tuple[Spec, str] = _of_referee("blind", "draw_instance")(words, env, seed)
    return instance


def _of_referee(module: str, name: str) -> Any:
    return getattr(import_module(f"{REFEREE}.{module}"), name)
