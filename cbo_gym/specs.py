"""Naming agents and environments with their parameters: ``GP-UCB(beta=0.5)``, ``CBO/BinaryTree-v0(depth=3)``."""

from __future__ import annotations

import gymnasium as gym

from cbo_gym.agent_finder import create_agent, find_agent, known_agents, modes_of, require_agent, usable_agents
from cbo_gym.arguments import whole_number
from cbo_gym.envs.rendering import require_render_mode
from cbo_gym.errors import ArgumentError, CBOGymError, did_you_mean
from cbo_gym.labels import Spec, expand, matches
from cbo_gym.registry import entries
from cbo_gym.task import Action, Observation

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


def make_env(spec: Spec, horizon: int | None = None) -> gym.Env[Observation, Action]:
    """``gym.make`` for a Spec, with the registered horizon replaced if one is given.

    Raises:
        ArgumentError: if the id is unknown, a parameter is wrong, or the horizon is no whole number of at least
            1.
    """
    horizon = None if horizon is None else whole_number("horizon", horizon, at_least=1)
    require_render_mode(spec.keywords.get("render_mode"))
    try:
        return gym.make(spec.name, max_episode_steps=horizon, **spec.keywords)
    except CBOGymError as error:
        raise ArgumentError(f"cannot make the environment {spec.shown}: {error}") from error
    except gym.error.UnregisteredEnv as error:
        hint = did_you_mean(spec.name, [entry.id for entry in entries()])
        raise ArgumentError(
            f"cannot make the environment {spec.shown}: no such id is registered{hint}; see cbo-gym list"
        ) from error
    except (gym.error.Error, TypeError, ValueError, ImportError) as error:
        raise ArgumentError(f"cannot make the environment {spec.shown}: {error}") from error
