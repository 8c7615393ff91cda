"""Naming agents and environments with their parameters: ``GP-UCB(beta=0.5)``, ``CBO/BinaryTree-v0(depth=3)``."""

from __future__ import annotations

from cbo_gym.agent_finder import create_agent, find_agent, known_agents, modes_of, require_agent, usable_agents
from cbo_gym.envs.making import make_env
from cbo_gym.labels import Spec, expand, matches

__all__ = [
    "Spec",
    "create_agent",
    "expand",
    "find_agent",
    "known_agents",
    "make_env",
    "matches",
    "modes_of",
    "require_agent",
    "usable_agents",
]
