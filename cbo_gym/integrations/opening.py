"""Checks of the environment that :mod:`cbo_gym.integrations` hands to another library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs import CausalBanditEnv
from cbo_gym.envs.making import env_spec, make_env
from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.modes.base.dynamics import Dynamics


def open_env(env: Any, parameters: Mapping[str, Any]) -> CausalBanditEnv:
    """Make the environment of an id or a Spec with ``parameters`` added, or unwrap an existing environment."""
    if isinstance(env, str | Spec):
        env = make_env(env_spec(env, parameters))
    elif parameters:
        raise ArgumentError(f"parameters need the id of an environment; given {sorted(parameters)} with an environment")
    unwrapped = getattr(env, "unwrapped", env)
    if not isinstance(unwrapped, CausalBanditEnv):
        raise ArgumentTypeError(f"give the id of an environment, or an environment of cbo_gym; given {env!r}")
    return unwrapped


def require_function(dynamics: Dynamics) -> None:
    """Raise ArgumentError unless the expected reward of a round is a function of the action alone."""
    if dynamics.problem.outcomes.objectives:
        raise ArgumentError(
            f"{dynamics.problem.name} has several objectives, and this function gives one number; give an agent to "
            "cbo_gym.evaluate, or step the environment"
        )
    if dynamics.remembers:
        raise ArgumentError(
            f"a round of {dynamics.problem.name} depends on those before it, so that it is not a function of a point; "
            f"give an agent to cbo_gym.evaluate, or take another mode than {dynamics.mode}"
        )
    if dynamics.observes_before:
        raise ArgumentError(
            f"the best action in {dynamics.problem.name} depends on the context, which a function of a point does not "
            f"observe; give an agent to cbo_gym.evaluate, or take another mode than {dynamics.mode}"
        )
