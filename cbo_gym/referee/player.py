"""The worker's side of a call: a process that makes calls, and the calls by which a third-party agent plays in it.

An isolated agent receives tasks, observations and rewards. Its process never holds an environment, an oracle or the
seed of a run's noise. Answers are plain data; see :mod:`cbo_gym.referee.serialization`.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from queue import SimpleQueue
from typing import Any, BinaryIO

import cloudpickle

from cbo_gym.agent_registry.cards import agent_card
from cbo_gym.agent_registry.finding import agent_of, create_agent, find_agent, modes_of
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import message_of
from cbo_gym.referee.channel import FAILED, INTERIM, RETURNED, die_with_parent, own_streams, receive, send
from cbo_gym.referee.import_guard import is_isolated
from cbo_gym.referee.serialization import action_to_plain, task_of, to_plain, write_message

# Characters of an error.
MAX_ERROR_LENGTH = 10_000
Message = dict[str, Any]


def serve() -> None:
    """Make the calls from the standard input until it ends, as it does when the caller dies."""
    die_with_parent()
    calls, answers = own_streams()
    _Channel.stream = answers
    if is_isolated():  # rounds are short, and a listening thread would take as long
        take: Callable[[], tuple[int, bytes] | None] = partial(receive, calls)
    else:
        waiting: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        threading.Thread(target=_listen, args=(calls, waiting), daemon=True).start()
        take = waiting.get
    while (received := take()) is not None:
        _Channel.number, call = received
        send(answers, _Channel.number, _answer(call))


class _Channel:
    """The stream of this process's answers, and the number of the current question."""

    stream: BinaryIO
    number: int


def say(value: Any) -> None:
    """In a call to a worker, send plain data to the caller before the answer."""
    send(_Channel.stream, _Channel.number, write_message(to_plain([INTERIM, value])))


def _listen(calls: BinaryIO, waiting: SimpleQueue[tuple[int, bytes] | None]) -> None:
    while (message := receive(calls)) is not None:
        waiting.put(message)
    if os.name == "posix":  # the caller is gone: end the call, and all that it started
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _answer(message: bytes) -> bytes:
    """The result or the error of a call, as plain data."""
    try:
        function, item = pickle.loads(message)
        return write_message(to_plain([RETURNED, function(item)]))
    except BaseException as error:  # also SystemExit: only the caller ends this process
        strings = (type(error).__name__, message_of(error), traceback.format_exc())
        return write_message([FAILED, [_short(string) for string in strings]])


def _short(string: str) -> str:
    clean = string.encode("utf-8", "backslashreplace").decode()
    half = MAX_ERROR_LENGTH // 2
    return clean if len(clean) <= MAX_ERROR_LENGTH else f"{clean[:half]}\n...\n{clean[-half:]}"


class Player:
    """An agent; each method answers a type of question."""

    def __init__(self) -> None:
        self._agent: Any = None
        self._space: Any = None
        self._several = False

    def card(self, name: str) -> Message:
        """Return an agent's card."""
        return asdict(agent_card(name))

    def make(self, label: str) -> Message:
        """Make the agent; return its modes, and the modules in which it is defined."""
        spec = Spec.parse(label)
        self._agent = create_agent(spec)
        factory = find_agent(spec.name)
        return self._description({getattr(factory, "__module__", "builtins")}, modes_of(factory))

    def take(self, packed: bytes) -> Message:
        """Unpickle the agent; otherwise as :meth:`make`."""
        self._agent = agent_of(cloudpickle.loads(packed))
        return self._description(set(), modes_of(self._agent))

    def _description(self, modules: set[str], modes: Sequence[str]) -> Message:
        modules |= {base.__module__ for base in type(self._agent).__mro__}
        return {"modules": sorted(map(str, modules)), "modes": list(modes)}

    def reset(self, task: Message, seed: int) -> None:
        self._agent.reset(self._read(task), seed=seed)

    def _read(self, document: Message) -> Any:
        task = task_of(document)
        self._space, self._several = task.action_space, bool(task.objectives)
        return task

    def act(self, observation: Any) -> Any:
        return action_to_plain(self._space, self._agent.act(observation))

    def act_batch(self, observation: Any, count: int) -> list[Any]:
        return [action_to_plain(self._space, action) for action in self._agent.act_batch(observation, count)]

    def update(self, *played: Any) -> None:
        self._agent.update(*played)

    def state(self) -> str:
        return b64encode(self._agent.state()).decode()

    def restore(self, state: bytes, task: Message) -> None:
        self._agent.restore(state, self._read(task))

    def recommend(self) -> Any:
        recommended = self._agent.recommend()
        if not self._several:
            return action_to_plain(self._space, recommended)
        return [action_to_plain(self._space, action) for action in recommended]


_player = Player()


def play(question: tuple[str, tuple[Any, ...]]) -> Any:
    """Call a method of this process's :class:`Player`."""
    name, arguments = question
    return getattr(_player, name)(*arguments)
