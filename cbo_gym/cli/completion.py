"""Completion of values in a shell. To be fast, it imports no agent."""

from __future__ import annotations

from collections.abc import Iterable


def env_ids(incomplete: str) -> list[str]:
    """Return ids of environments that begin as typed."""
    from cbo_gym.envs.registry import entries

    return _beginning(incomplete, (entry.id for entry in entries()))


def tags(incomplete: str) -> list[str]:
    """Return tags of environments that begin as typed."""
    from cbo_gym.envs.registry import entries

    return _beginning(incomplete, sorted({tag for entry in entries() for tag in entry.tags}))


def agent_names(incomplete: str) -> list[str]:
    """Return names of installed agents that begin as typed."""
    from cbo_gym.agent_registry.finding import known_agents

    return _beginning(incomplete, known_agents())


def _beginning(typed: str, known: Iterable[str]) -> list[str]:
    return [name for name in known if name.startswith(typed) and name.isprintable()]
