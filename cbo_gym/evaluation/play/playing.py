"""Play the rounds of a run, and resume a run from a checkpoint."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np

from cbo_gym._util.agent_state import StateError
from cbo_gym._util.arguments import whole_number
from cbo_gym._util.files import write_bytes
from cbo_gym._util.plain import read_plain, write_plain
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError, message_of
from cbo_gym.evaluation.play.players import PlayerError
from cbo_gym.evaluation.play.seeds import Seeds
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.task import Action, Observation, Task

# Columns in a checkpoint: values that cannot be recomputed, and rewards, which must be the same when recomputed.
STORED_COLUMNS = ("action", "recommended", "reward", *TIMING_COLUMNS)
# Name of a column -> a value per round.
Columns = dict[str, list[Any]]


class AgentError(OperationError):
    """An agent failed in a run; the message names the agent, the environment and the round."""


@dataclass(frozen=True)
class Checkpoint:
    """The file from which an unfinished run resumes.

    Args:
        path: Path of the file.
        every: Number of rounds between writes, at least 1.
        about: Identity of the run and its code; a file with another one is refused.
    """

    path: Path
    every: int
    about: Mapping[str, Any]

    def __post_init__(self) -> None:
        whole_number("checkpoint_every", self.every, at_least=1)

    def write(self, columns: Columns, agent: bytes) -> None:
        """Write the rounds so far, and the agent's state after them."""
        stored = {name: columns[name] for name in (*STORED_COLUMNS, "reset_seconds")}
        state = b64encode(agent).decode()
        write_bytes(self.path, write_plain({"about": self.about, "columns": stored, "agent": state}))

    def read(self) -> tuple[Columns, bytes] | None:
        """Read the columns of the rounds, and the agent's state; return None if there is no file."""
        if not self.path.exists():
            return None
        try:
            stored = read_plain(self.path.read_bytes())
            about, columns, agent = dict(stored["about"]), dict(stored["columns"]), b64decode(stored["agent"])
        except (ArgumentError, KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"{self.path} is not a checkpoint of this version of cbo-gym; remove it, or name another file"
            ) from error
        if differences := [name for name, value in self.about.items() if about.get(name) != value]:
            names = ", ".join(differences)
            raise OperationError(
                f"{self.path} is the checkpoint of a run with another {names}; remove it, or name another file"
            )
        return columns, agent


class Playing:
    """A run that is being played.

    An agent cannot change the environment or the record through shared arrays, because it receives copies, and its
    actions are copied.

    Args:
        agent: The agent.
        where: Name of the run in error messages.
        env: The environment.
        task: The task that the agent receives.
        seeds: Seeds of the run.
        recommend_after: Rounds after which the agent is asked for its recommendation.
        batch: Number of actions that the agent chooses at a time.
        on_round: Called with each round after the agent has learned from it.
    """

    def __init__(
        self,
        agent: Any,
        where: str,
        env: gym.Env[Observation, Action],
        task: Task,
        seeds: Seeds,
        recommend_after: frozenset[int],
        batch: int,
        on_round: Callable[..., None],
    ) -> None:
        self._agent, self._where, self._env, self._task = agent, where, env, task
        self._seeds, self._recommend_after, self._batch, self._on_round = seeds, recommend_after, batch, on_round
        self._dynamics: Dynamics = env.unwrapped.dynamics  # type: ignore[attr-defined]
        names = ("action", "recommended", "nodes", "reward", "cost", *TIMING_COLUMNS, "seen", "reset_seconds")
        self._columns: Columns = {name: [] for name in names}
        # The last recommendation.
        self._recommended: Action | None = None

    def play(self, checkpoint: Checkpoint | None = None) -> Columns:
        """Play the run; return its columns; ``seen`` has the observations before each round and after the last."""
        stored = None if checkpoint is None else checkpoint.read()
        observation, _ = self._env.reset(seed=self._seeds.noise)
        self._columns["seen"].append(observation)
        if stored is None:
            self._reset()
            if checkpoint is not None:
                # This raises an error at once if the agent's state cannot be saved.
                self._state()
        else:
            self._resume(*stored)
        horizon = self._task.horizon
        while (done := len(self._columns["action"])) < horizon:
            last = min(done + self._batch, horizon)
            self._play_batch(done + 1, last)
            if checkpoint is not None and last < horizon and last // checkpoint.every > done // checkpoint.every:
                checkpoint.write(self._columns, self._state())
        if checkpoint is not None:
            checkpoint.path.unlink(missing_ok=True)
        return self._columns

    def _reset(self) -> None:
        # An agent raises a CBOGymError if it does not play the task.
        with blame_agent(f"{self._where}, reset", CBOGymError):
            task = deepcopy(self._task)
            start = perf_counter()
            self._agent.reset(task, seed=self._seeds.agent)
            self._columns["reset_seconds"].append(perf_counter() - start)

    def _state(self) -> bytes:
        if not callable(getattr(self._agent, "state", None)):
            raise StateError(f"{self._where}: the agent has no state() to save; derive it from cbo_gym.Agent")
        with blame_agent(f"{self._where}, state", StateError):
            return bytes(self._agent.state())

    def _resume(self, columns: Columns, agent: bytes) -> None:
        """Play the rounds of a checkpoint again, and restore the agent's state after them."""
        for index, action in enumerate(columns["action"]):
            self._record(action, self._env.step(action), columns["recommended"][index])
            if not np.array_equal(self._columns["reward"][index], columns["reward"][index]):
                raise OperationError(f"{self._where}: round {index + 1} of the checkpoint does not play as it did")
        for name in (*TIMING_COLUMNS, "reset_seconds"):
            self._columns[name] = list(columns[name])
        self._recommended = columns["recommended"][-1] if columns["action"] else None
        with blame_agent(f"{self._where}, restore", CBOGymError):
            self._agent.restore(agent, deepcopy(self._task))

    def _play_batch(self, first: int, last: int) -> None:
        """Play rounds whose actions are chosen together."""
        rounds, count = range(first, last + 1), last - first + 1
        with blame_agent(f"{self._where}, round {first}"):
            shown = deepcopy(self._columns["seen"][-1])
            start = perf_counter()
            answers = [self._agent.act(shown)] if self._batch == 1 else self._agent.act_batch(shown, count)
            act_seconds = (perf_counter() - start) / count
            actions = [self._dynamics.read(answer) for answer in answers]
            if len(actions) != count:
                raise ValueError(f"act_batch gave {len(actions)} actions; asked for {count}")
        steps = [self._env.step(action) for action in actions]
        for number, action, step in zip(rounds, actions, steps, strict=True):
            seconds_of_calls = (act_seconds, *self._teach(number, action, step))
            self._record(action, step, self._recommended)
            for name, seconds in zip(TIMING_COLUMNS, seconds_of_calls, strict=True):
                self._columns[name].append(seconds)
        for number, action, (observation, reward, _, _, info) in zip(rounds, actions, steps, strict=True):
            recommended = self._columns["recommended"][number - 1] if number in self._recommend_after else None
            self._on_round(number, action, observation, reward, info, recommended)

    def _teach(self, number: int, action: Action, step: tuple[Any, ...]) -> tuple[float, float]:
        """Update the agent, and ask for its recommendation if it is due; return the seconds of both."""
        observation, reward, _, _, info = step
        with blame_agent(f"{self._where}, round {number}"):
            copies = deepcopy(action), deepcopy(observation), reward, deepcopy(info)
            start = perf_counter()
            self._agent.update(*copies)
            after_update = perf_counter()
            recommendation = self._agent.recommend() if number in self._recommend_after else None
            after_recommend = perf_counter()
        if number in self._recommend_after:
            with blame_agent(f"{self._where}, recommendation after round {number}"):
                self._recommended = self._dynamics.read_recommendation(recommendation)
        return after_update - start, after_recommend - after_update

    def _record(self, action: Action, step: tuple[Any, ...], recommended: Action | None) -> None:
        observation, reward, _, _, info = step
        nodes = np.asarray(observation["nodes"]).tolist()
        entry = {"action": action, "recommended": recommended, "nodes": nodes, "reward": reward}
        for name, value in (entry | {"cost": info.get("cost"), "seen": observation}).items():
            self._columns[name].append(value)


@contextmanager
def blame_agent(where: str, *let_pass: type[Exception]) -> Iterator[None]:
    """Raise an AgentError in place of any exception of an agent, SystemExit too, except classes in ``let_pass``."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, *let_pass)):
            raise
        message = str(error) if isinstance(error, PlayerError) else f"{type(error).__name__}: {message_of(error)}"
        raise AgentError(f"{where}: {message}") from error
