"""The plain loop, and actions as arrays, for the tests of the agents."""

from typing import Any

import gymnasium as gym
import numpy as np

import cbo_gym
from cbo_gym import Agent, Task
from cbo_gym.task import Action, Observation

AGENT_SEED = 12345  # not the environment's: equal seeds would give equal random streams


def make(env_id: str, seed: int, rounds: int, **kwargs: Any) -> tuple[gym.Env[Any, Any], Task]:
    env = gym.make(env_id, **kwargs)
    return env, cbo_gym.make_task(env, seed=seed, horizon=rounds)


def reset(env: Any, seed: int = 0, action_seed: int | None = None) -> Any:
    """Return the environment at the start of an episode; ``action_seed`` seeds its action space."""
    env.reset(seed=seed)
    if action_seed is not None:
        env.action_space.seed(action_seed)
    return env


def begin_agent(agent: Any, task: Task, seed: int = 0) -> Any:
    """Return the agent after its reset on a task, with the initial data."""
    agent.reset(task, seed)
    return agent


def start_agent(agent: Any, env_id: str, seed: int = 0, **kwargs: Any) -> Any:
    """Return the agent at the start of a run on an environment."""
    return begin_agent(agent, make(env_id, seed, 5, **kwargs)[1], AGENT_SEED + seed)


def play(agent: Agent, env: gym.Env[Any, Any], task: Task, seed: int) -> tuple[list[Action], np.ndarray]:
    """Return the actions and rewards of a run over the task's horizon."""
    agent.reset(task, seed=AGENT_SEED + seed)
    observation, _ = env.reset(seed=seed)
    actions, rewards = [], []
    for _ in range(task.horizon):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.update(action, observation, reward, info)
        actions.append(action)
        rewards.append(float(reward))
    return actions, np.array(rewards)


def flat(action: Action) -> np.ndarray:
    """Return an action as a vector."""
    if isinstance(action, dict):
        return np.concatenate([np.atleast_1d(action[key]) for key in sorted(action)])
    return np.asarray(action)


def go_on(agent: Agent, task: Task, rewards: list[float], observation: Observation) -> None:
    """Play rounds with these rewards and always this observation; require valid actions and finite estimates."""
    for reward in rewards:
        action = agent.act(observation)
        assert task.action_space.contains(action)
        nodes = np.append(observation["nodes"][:-1], reward)
        agent.update(action, observation | {"nodes": nodes}, reward, {})
    assert np.isfinite(agent.estimated_rewards()).all()
    assert task.action_space.contains(agent.recommend())
