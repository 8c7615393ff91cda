"""The contracts of agents and problems as executable checks: ``check_agent`` and ``check_problem``.

Each raises :class:`ContractError` with the broken rule and how to correct it. The package's own tests run them over
every agent and every registered environment.
"""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from gymnasium.vector.utils import batch_space, iterate

from cbo_gym.actions import Space
from cbo_gym.actions.codec import Actions
from cbo_gym.agent_registry.finding import agent_of, require_agent
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs import CausalBanditEnv, CausalBanditVectorEnv
from cbo_gym.envs.making import make_env
from cbo_gym.envs.tasks import make_task
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.modes import make_dynamics, oracle_for
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.base.interface import Description
from cbo_gym.modes.oracles import SeveralObjectivesOracle
from cbo_gym.problems import Problem, build_problem
from cbo_gym.task import Action, Mode, Observation, Task

# Difference of a run's seed from the seed of its agent, and from that of another run.
OTHER_SEED = 101
# Numbers of random actions with which rounds are compared, and expected rewards.
SAMPLES = 32
RANDOM_ACTIONS = 256
ELEMENTWISE = "; build mechanisms from arithmetic and NumPy ufuncs, which take numbers and arrays alike"


class ContractError(CBOGymError, AssertionError):
    """An agent or a problem does not keep its contract."""


# Agents -----------------------------------------------------------------------------------------------------


def check_agent(agent: Any, env: str, *, seed: int = 0, rounds: int = 4) -> None:
    """Check that an agent keeps its contract on an environment.

    * Actions and recommendations are in the action space (with several objectives a recommendation is a list of
      actions), and the agent gives a recommendation after every round; before the first round ``recommend`` may raise
      ValueError instead.
    * The same seed gives the same run, bit for bit, also for an agent that has played another run before.
    * The agent changes none of its arguments: the task, observations, actions, ``info``.
    * Its arguments may be overwritten afterwards, by loops that reuse arrays: the agent copies what it keeps.
    * The global random states of Python, NumPy and torch are left as they were.

    Args:
        agent: a name, an import path ``"package.module:Class"``, a class or another callable that makes the agent, or
            an instance that has not played yet.
        env: environment id, optionally with parameters, of a mode that the agent plays.
        seed: seed of the runs.
        rounds: length of the runs, at least 2. Five runs are played.

    Raises:
        ContractError: naming the broken rule.
        UnsupportedModeError: if the agent does not play the environment's mode.
        ArgumentError: for an unknown agent or environment.
    """
    if rounds < 2:
        raise ArgumentError(f"rounds must be at least 2, so that something can be learned; given {rounds}")

    def make() -> Any:
        is_named = isinstance(agent, str | Spec | type) or not hasattr(agent, "act")
        return agent_of(agent) if is_named else deepcopy(require_agent(agent))

    run = _play(make(), env, seed, rounds)
    same_agent = make()
    # Only checked in the second run, because libraries that are imported on use may draw from the global state.
    with _require_same_global_random_state():
        same_run = _play(same_agent, env, seed, rounds)
    _require_equal(run, same_run, "two runs with the same seed differ")
    _play(same_agent, env, seed + OTHER_SEED, 2)
    later_run = _play(same_agent, env, seed, rounds)
    _require_equal(run, later_run, "a run after another one differs: reset() must start afresh")
    overwritten = _play(make(), env, seed, rounds, overwrite=True)
    _require_equal(run, overwritten, "arrays that were overwritten after update() changed the run: copy what is kept")


def _play(agent: Any, env_label: str, seed: int, rounds: int, overwrite: bool = False) -> list[Action]:
    """Play a run; return its actions and recommendations."""
    env: Any = make_env(Spec.parse(env_label), rounds)
    task = make_task(env, seed)
    actions = []
    observation, _ = env.reset(seed=seed)
    with _require_unchanged("the task", task, f"{_name(agent)}.reset"), _naming(f"{_name(agent)}.reset"):
        agent.reset(task, seed=seed + OTHER_SEED)
    _recommend(agent, env, task, may_refuse=not task.initial_data)
    for number in range(1, rounds + 1):
        acting, learning = (f"{_name(agent)}.{method} in round {number}" for method in ("act", "update"))
        with _require_unchanged("the observation", observation, acting), _naming(acting):
            action = agent.act(observation)
        try:
            env.unwrapped.dynamics.decode(action)
        except InvalidAction as error:
            raise ContractError(f"{acting} gave an action that is not in {env.action_space}: {error}") from error
        played = deepcopy(action)
        next_observation, reward, _, _, info = env.step(played)
        if overwrite:
            _overwrite(observation)
        observation = next_observation
        arguments = {"the action": played, "the observation": observation, "info": info}
        with _require_unchanged("its arguments", arguments, learning), _naming(learning):
            agent.update(played, observation, deepcopy(reward), info)
        actions += [deepcopy(played), deepcopy(_recommend(agent, env, task))]
        if overwrite:
            _overwrite(played)
            observation = deepcopy(observation)
            _overwrite(arguments["the observation"])
    env.close()
    return actions


@contextmanager
def _naming(subject: str) -> Iterator[None]:
    """Name the method that raised; errors of this package, such as an unsupported mode, pass."""
    try:
        yield
    except CBOGymError:
        raise
    except Exception as error:
        raise ContractError(f"{subject} raised {type(error).__name__}: {error}") from error


@contextmanager
def _naming_mechanisms(subject: str) -> Iterator[None]:
    """Name the mechanism that raised, and say how mechanisms are written."""
    try:
        yield
    except OperationError as error:
        raise ContractError(f"{subject}: {error}{ELEMENTWISE}") from error


def _name(agent: object) -> str:
    return type(agent).__name__


def _recommend(agent: Any, env: Any, task: Task, may_refuse: bool = False) -> Any:
    space = env.action_space
    try:
        with _naming(f"{_name(agent)}.recommend"):
            recommended = agent.recommend()
    except CBOGymError as error:
        if may_refuse and isinstance(error.__cause__ or error, ValueError):
            return None
        raise ContractError(f"{_name(agent)}.recommend() raised {error!r}, although something was played") from error
    if task.objectives:
        try:
            env.unwrapped.dynamics.read_recommendation(recommended)
        except InvalidAction as error:
            raise ContractError(f"{_name(agent)}.recommend() gave actions that are not in {space}: {error}") from error
    elif not _contains(space, recommended):
        raise ContractError(f"{_name(agent)}.recommend() gave {recommended!r}, which is not in {space}")
    return recommended


def _contains(space: Space, action: Action) -> bool:
    """Return whether an action is in the space, whole numbers of any kind included."""
    if isinstance(space, spaces.Dict) and isinstance(action, dict):
        action = {key: np.int64(value) if np.ndim(value) == 0 else value for key, value in action.items()}
    return bool(space.contains(action))


def _overwrite(arguments: Action | Observation) -> None:
    for value in arguments.values() if isinstance(arguments, dict) else [arguments]:
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = value.dtype.type(-77)


def _require_equal(first_run: list[Action], second_run: list[Action], subject: str) -> None:
    for index, (first, second) in enumerate(zip(first_run, second_run, strict=True)):
        if _freeze(first) != _freeze(second):
            choice = f"the {'recommendation' if index % 2 else 'action'} of round {index // 2 + 1}"
            raise ContractError(f"{subject}: {choice} is {first!r} in the first and {second!r} in the second")


@contextmanager
def _require_unchanged(subject: str, value: object, method: str) -> Iterator[None]:
    before = _freeze(value)
    yield
    if _freeze(value) != before:
        raise ContractError(f"{method} changed {subject}; work on a copy")


def _freeze(value: object) -> object:
    """Return a comparable value with the content of arrays, containers, spaces and dataclasses."""
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tobytes()
    if isinstance(value, spaces.Space):
        # The pickle includes the state of the random stream.
        return pickle.dumps(value)
    if isinstance(value, Mapping):
        return tuple((key, _freeze(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_freeze, value))
    if isinstance(value, Task) or (is_dataclass(value) and not isinstance(value, type)):
        return tuple(_freeze(getattr(value, field.name)) for field in fields(value))
    return repr(value) if isinstance(value, int | float | str | np.number | frozenset) else id(value)


@contextmanager
def _require_same_global_random_state() -> Iterator[None]:
    # Change the states first: otherwise an agent that seeds them as in the previous run would pass.
    random.random()
    np.random.random()  # noqa: NPY002
    if torch := sys.modules.get("torch"):
        torch.rand(1)
    before = _global_random_states()
    yield
    after = _global_random_states()
    if changed := [name for name in before if before[name] != after[name]]:
        raise ContractError(
            f"the agent drew from the global random state of {', '.join(changed)}; draw from self.rng, or from a "
            "generator seeded by it. A library that takes no generator gets a seed, as in "
            "random_state=int(self.rng.integers(2**31)); one that takes neither, such as BoTorch's optimize_acqf, must "
            "be called in 'with torch.random.fork_rng():' after torch.manual_seed(...), or between "
            "state = numpy.random.get_state() with numpy.random.seed(...), and numpy.random.set_state(state)"
        )


def _global_random_states() -> dict[str, object]:
    states: dict[str, object] = {"random": random.getstate(), "numpy.random": _freeze(np.random.get_state())}  # noqa: NPY002
    if torch := sys.modules.get("torch"):
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


# Problems ---------------------------------------------------------------------------------------------------


def check_problem(problem: str | Problem, *, mode: Mode | str | None = None, seed: int = 0, **parameters: Any) -> None:
    """Check that a problem can be played, in one mode or in all modes that it supports.

    * Mechanisms give finite values, the same on numbers as on arrays; the same noise gives the same round.
    * An action is decoded to the same intervention alone and in a batch, and is restored from its point and record.
    * Observations are in their space; the vectorised environment plays the same rounds as the scalar ones.
    * The reward depends on the action. No random action is better than ``optimal_action`` or
      ``optimal_do``, if the problem has them.
    * A known composition gives the reward, if the reward has no noise of its own.

    Args:
        problem: the Problem, the import path of its builder, or a YAML file's path.
        mode: None for every mode that the problem fits.
        seed: seed of the noise and the random actions.
        parameters: keyword arguments of the builder, and of the mode if it is not None.

    Raises:
        ContractError: naming the broken rule.
        ArgumentError: if the problem cannot be built, or does not fit ``mode``, or fits no mode.
    """
    for dynamics in _playable(problem, mode, parameters):
        subject = f"{dynamics.problem.name} in {dynamics.mode} mode"
        _check_rounds(subject, dynamics, seed)
        _check_codec(subject, dynamics, seed)
        _check_environments(subject, problem, dynamics, parameters, seed)
        _check_rewards(subject, dynamics, seed)


def _playable(problem: str | Problem, mode: Mode | str | None, parameters: dict[str, Any]) -> list[Dynamics]:
    if mode is not None:
        return [make_dynamics(problem, mode, **parameters)]
    built = build_problem(problem, **parameters)
    playable, refusals = [], []
    for candidate_mode in Mode:
        try:
            dynamics = make_dynamics(built, candidate_mode)
        except ArgumentError as error:
            refusals.append(str(error))
            continue
        if (regions := dynamics.regions()) and not any(region.dim for region in regions):
            refusals.append(f"nothing can be set in {candidate_mode} mode")
        else:
            playable.append(dynamics)
    if not playable:
        raise ArgumentError(f"{built.name} fits no mode: {'; '.join(refusals)}")
    return playable


def _some_actions(dynamics: Dynamics, count: int, seed: int) -> Actions:
    space = batch_space(dynamics.action_space, count)
    space.seed(seed)
    return space.sample()


def _split(dynamics: Dynamics, actions: Actions, count: int) -> list[Action]:
    return [deepcopy(action) for action in iterate(batch_space(dynamics.action_space, count), actions)]


def _check_rounds(subject: str, dynamics: Dynamics, seed: int) -> None:
    actions = _some_actions(dynamics, SAMPLES, seed)
    noise = dynamics.scm.draw_noise(np.random.default_rng(seed), SAMPLES)
    batch = dynamics.decode_batch(actions)
    with _naming_mechanisms(f"{subject}, on arrays"):
        batched = dynamics.play(noise, batch)
        repeated = dynamics.play(noise, dynamics.decode_batch(actions))
    for row, action in enumerate(_split(dynamics, actions, SAMPLES)):
        with _naming_mechanisms(f"{subject}, on single numbers"):
            single = dynamics.play(tuple(float(column[row]) for column in noise), dynamics.decode(action))
        for name, value in single.items():
            column = np.broadcast_to(batched[name], SAMPLES)
            if not isinstance(value, float | int | np.number | np.ndarray):
                raise ContractError(f"{subject}: {name} is {value!r}; it must be a number")
            if not np.isfinite(value):
                raise ContractError(f"{subject}: {name} is {value} under the action {action!r}; it must be finite")
            if not np.isclose(value, column[row], rtol=1e-9, atol=1e-9):
                raise ContractError(
                    f"{subject}: {name} is {value} for single numbers and {column[row]} in an array{ELEMENTWISE}"
                )
            if np.broadcast_to(repeated[name], SAMPLES)[row] != column[row]:
                raise ContractError(f"{subject}: {name} differs between two rounds with the same noise and action")


def _check_codec(subject: str, dynamics: Dynamics, seed: int) -> None:
    codec = dynamics.codec
    for point in np.random.default_rng(seed).random((SAMPLES, codec.dim)):
        if not _contains(dynamics.action_space, codec.to_action(point)):
            raise ContractError(f"{subject}: the codec makes {codec.to_action(point)!r} of a point, not an action")
    for action in _split(dynamics, _some_actions(dynamics, SAMPLES, seed), SAMPLES):
        if _frozen_numbers(codec.to_action(codec.to_point(action))) != _frozen_numbers(action):
            raise ContractError(f"{subject}: the point of {action!r} leads to another action")
        restored = dynamics.decode(codec.from_record(codec.to_record(action)))
        if not _close(dynamics.describe(restored), dynamics.describe(dynamics.decode(action))):
            raise ContractError(f"{subject}: the record of {action!r} leads to another intervention")
        codec.to_string(codec.to_record(action))
        codec.to_numbers(action)


def _frozen_numbers(action: Action) -> list[object]:
    values = action.values() if isinstance(action, dict) else [action]
    return [np.asarray(value, dtype=np.float64).tolist() for value in values]


def _close(first: Description, second: Description) -> bool:
    return set(first) == set(second) and all(
        np.allclose(first[name], second[name], rtol=1e-9, atol=1e-12) for name in first
    )


def _check_environments(
    subject: str, problem: str | Problem, dynamics: Dynamics, parameters: dict[str, Any], seed: int
) -> None:
    scalars = [CausalBanditEnv(problem, mode=dynamics.mode, **parameters) for _ in range(2)]
    vector = CausalBanditVectorEnv(2, problem, mode=dynamics.mode, **parameters)
    observations, _ = vector.reset(seed=seed)
    first_observations = [env.reset(seed=seed + index)[0] for index, env in enumerate(scalars)]
    _require_same_observations(subject, first_observations, observations)
    for number in range(3):
        actions = _some_actions(dynamics, 2, seed + number)
        steps = [env.step(action) for env, action in zip(scalars, _split(dynamics, actions, 2), strict=True)]
        observations, rewards, *_ = vector.step(actions)
        scalar_observations, scalar_rewards = [step[0] for step in steps], [step[1] for step in steps]
        for observation in scalar_observations:
            if not dynamics.observation_space.contains(observation):
                raise ContractError(f"{subject}: the observation {observation} is outside {dynamics.observation_space}")
        _require_same_observations(subject, scalar_observations, observations)
        if not np.allclose(scalar_rewards, rewards, rtol=1e-9, atol=1e-9):
            raise ContractError(f"{subject}: scalar environments earn {scalar_rewards}, vectorised {rewards}")


def _require_same_observations(subject: str, singles: list[Observation], batched: Observation) -> None:
    for index, single in enumerate(singles):
        if not _close(single, {key: value[index] for key, value in batched.items()}):
            raise ContractError(f"{subject}: experiment {index} of the vectorised environment has another observation")


def _check_rewards(subject: str, dynamics: Dynamics, seed: int) -> None:
    oracle = oracle_for(dynamics)
    actions = _split(dynamics, _some_actions(dynamics, RANDOM_ACTIONS, seed), RANDOM_ACTIONS)
    if isinstance(oracle, SeveralObjectivesOracle):
        widths = np.ptp(oracle.expected_vectors(actions, tolerance=np.inf).value, axis=0)
        for objective, width in zip(dynamics.problem.outcomes.objectives, widths, strict=True):
            if width <= 0.0:
                raise ContractError(
                    f"{subject}: under {RANDOM_ACTIONS} random actions {objective} has one expected value"
                )
        return
    expected = oracle.expected_rewards(actions, tolerance=np.inf)
    if np.ptp(expected.value) <= 0.0:
        raise ContractError(
            f"{subject}: {RANDOM_ACTIONS} random actions all have the expected reward {expected.value[0]}"
        )
    best = dynamics.known_maximiser()
    if best is not None:
        reached = oracle.expected_rewards([best], tolerance=np.inf)
        above = expected.value - reached.value - 6.0 * (expected.standard_error + reached.standard_error)
        if above.max() > 1e-9 * np.ptp(expected.value):
            better = actions[int(above.argmax())]
            claimed = "optimal_do" if dynamics.sets_variables else "optimal_action"
            raise ContractError(
                f"{subject}: {claimed} has the expected reward {reached.value[0]}, and {better!r} "
                f"{expected.value[above.argmax()]}"
            )
    _check_composition(subject, dynamics, seed)


def _check_composition(subject: str, dynamics: Dynamics, seed: int) -> None:
    composition, scm = dynamics.problem.composition, dynamics.scm
    if composition is None or scm.reward in {variable.name for variable in scm.noisy}:
        return
    noise = scm.draw_noise(np.random.default_rng(seed), SAMPLES)
    values = scm.propagate(noise, dynamics.decode_batch(_some_actions(dynamics, SAMPLES, seed)))
    nodes = {name: np.asarray(values[name]) for name in scm.nodes[:-1]}
    if not np.allclose(composition(nodes), values[scm.reward], rtol=1e-9, atol=1e-9):
        raise ContractError(f"{subject}: the composition does not give the reward")
