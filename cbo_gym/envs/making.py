"""Specs of environments, which are ids with parameters, and environments made from them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import find_highest_version, get_env_id, parse_env_id
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from cbo_gym._util.arguments import whole_number
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs.registry import entries
from cbo_gym.envs.rendering import require_render_mode
from cbo_gym.envs.scalar import CausalBanditEnv
from cbo_gym.errors import ArgumentError, ArgumentTypeError, CBOGymError, did_you_mean, short_repr
from cbo_gym.problems.build import is_yaml_file
from cbo_gym.task import Action, Observation

# Wrappers that gym.make adds.
USUAL_WRAPPERS = (OrderEnforcing, PassiveEnvChecker, TimeLimit)


def env_spec(env: Any, parameters: Mapping[str, Any] | None = None) -> Spec:
    """Return the id of an environment and its parameters.

    Args:
        env: an id, optionally with parameters, ``"CBO/BinaryTree-v0(depth=3)"``, of the newest version if it names
            none; a Spec; or an environment from ``gym.make``, for its id and parameters.
        parameters: further parameters.

    Raises:
        ArgumentError: if the string is not an id with parameters; if the environment is not from ``gym.make``, or has
            wrappers other than :data:`USUAL_WRAPPERS`, because these may change it.
        ArgumentTypeError: if ``env`` is of any other type.
    """
    spec = env if isinstance(env, Spec) else _spec_of(env)
    return spec.with_parameters(parameters or {})


def _spec_of(env: Any) -> Spec:
    if isinstance(env, str):
        return _with_version(Spec.parse(env))
    if not isinstance(env, gym.Env) or not isinstance(env.unwrapped, CausalBanditEnv):
        raise ArgumentTypeError(
            "give the id of an environment, 'CBO/Alpine2-v0', or an environment of cbo_gym, with your own problem "
            f"gym.make('CBO/Custom-v0', problem=problem); given {short_repr(env)}"
        )
    wrapped: Any = env
    while isinstance(wrapped, gym.Wrapper):
        if not isinstance(wrapped, USUAL_WRAPPERS):
            raise ArgumentError(
                f"{type(wrapped).__name__} changes the environment, and agents play it without wrappers; give "
                "env.unwrapped, or its id"
            )
        wrapped = wrapped.env
    spec = wrapped.spec
    if spec is None:
        raise ArgumentError(
            "the environment is not from gym.make; use gym.make, with your own problem as "
            "gym.make('CBO/Custom-v0', problem=problem)"
        )
    registered = gym.spec(spec.id).kwargs
    changed = {name: value for name, value in spec.kwargs.items() if str(registered.get(name, ...)) != str(value)}
    return Spec(spec.id).with_parameters(changed)


def _with_version(spec: Spec) -> Spec:
    """Add the newest version to an id without one, as ``gym.make`` does."""
    # An id that cannot be read is reported when the environment is made.
    with suppress(gym.error.Error):
        namespace, name, version = parse_env_id(spec.name)
        if version is None and (newest := find_highest_version(namespace, name)) is not None:
            return replace(spec, name=get_env_id(namespace, name, newest))
    return spec


def rounds_of(env: Any) -> int | None:
    """Return the number of rounds of an environment; None for an id."""
    return env.spec.max_episode_steps if isinstance(env, gym.Env) and env.spec else None


def make_env(spec: Spec, horizon: int | None = None) -> gym.Env[Observation, Action]:
    """Call ``gym.make`` for a Spec, with another horizon unless it is None; raise ArgumentError if that fails."""
    horizon = None if horizon is None else whole_number("horizon", horizon, at_least=1)
    require_render_mode(spec.keywords.get("render_mode"))
    try:
        return gym.make(spec.name, max_episode_steps=horizon, **spec.keywords)
    except gym.error.UnregisteredEnv as error:
        hint = did_you_mean(spec.name, [entry.id for entry in entries()])
        if is_yaml_file(spec.name):
            hint = f"; a problem in a file is played as \"CBO/Custom-v0(problem='{spec.name}')\""
        raise ArgumentError(
            f"cannot make the environment {spec.short_label}: no such id is registered{hint}; see cbo-gym list"
        ) from error
    except (CBOGymError, gym.error.Error, TypeError, ValueError, ImportError) as error:
        raise ArgumentError(f"cannot make the environment {spec.short_label}: {error}") from error
