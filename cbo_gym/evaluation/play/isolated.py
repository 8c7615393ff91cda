"""Third-party agents in processes of their own, which never hold the environment, its oracle or the run's seed."""

from __future__ import annotations

import pickle
from base64 import b64decode
from typing import Any

from cbo_gym import errors
from cbo_gym.agent_cards import AgentCard, card_of
from cbo_gym.agent_finder import called
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.evaluation.play.processes import DiedError, LateError, RaisedError, Worker
from cbo_gym.import_guard import VARIABLE
from cbo_gym.labels import Spec
from cbo_gym.player import play
from cbo_gym.serialization import task_to_plain
from cbo_gym.task import Action, Info, Observation, Task

LONGEST_ANSWER = 2**26  # bytes: an action of any environment takes far less
MAKING_SECONDS = 300  # in which an agent that is asked for must be imported and made
LISTING_SECONDS = 30  # the same of one that a pattern names among others
#: errors that mean something to whoever plays an agent; of others the name is told
KINDS: dict[str, type[CBOGymError]] = {
    kind.__name__: kind
    for kind in (errors.ArgumentError, errors.ArgumentTypeError, errors.UnsupportedModeError, errors.HiddenGraphError)
}


class PlayerError(OperationError):
    """An error that an agent raised in its own process; the text begins with its kind, the trace is a note."""


class IsolatedAgent:
    """An agent that is played by messages: to whoever plays it, one like any other.

    What it hands over is numbers, lists and dicts, which feedback reads as it reads any action.

    Args:
        given: its name, or import path, and its parameters; or what cloudpickle made of it. The code is run in the
            process that is started here.
        seconds: in which it must be imported and made.

    Attributes:
        modules: in which the agent is defined, as its own process says.
        modes: the feedback modes that it plays, by its own word; empty if it says nothing.

    Raises:
        ArgumentError: if there is no such agent, it does not take the parameters, or takes too long or ends its process
            before it is made.
    """

    def __init__(self, given: Spec | bytes, seconds: float = MAKING_SECONDS) -> None:
        self._worker = _worker()
        if isinstance(given, Spec):
            made = _begin(self._worker, f"make {given.shown}", seconds, "make", str(given))
        else:
            made = _begin(self._worker, "make the agent", seconds, "take", given)
        self.modules = frozenset(map(str, made["modules"]))
        self.modes = tuple(map(str, made["modes"]))

    def reset(self, task: Task, seed: int) -> None:
        self._ask("reset", task_to_plain(task), seed)

    def act(self, observation: Observation) -> Action:
        return self._ask("act", observation)

    def act_batch(self, observation: Observation, count: int) -> list[Action]:
        return list(self._ask("act_batch", observation, count))

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        self._ask("update", action, observation, reward, info)

    def state(self) -> bytes:
        return b64decode(self._ask("state"), validate=True)

    def restore(self, state: bytes, task: Task) -> None:
        self._ask("restore", state, task_to_plain(task))

    def recommend(self) -> Action:
        return self._ask("recommend")

    def close(self) -> None:
        """End its process, and whatever that has started."""
        self._worker.close()

    def _ask(self, name: str, *arguments: Any) -> Any:
        return _ask(self._worker, None, name, *arguments)


def described(given: Spec | bytes, seconds: float = MAKING_SECONDS) -> tuple[frozenset[str], tuple[str, ...]]:
    """The modules and the modes of an agent, from a process of its own; raises as :class:`IsolatedAgent` does."""
    agent = IsolatedAgent(given, seconds)
    agent.close()
    return agent.modules, agent.modes


def isolated_card(name: str, seconds: float = MAKING_SECONDS) -> AgentCard:
    """The card of a third-party agent, from a process of its own, which may take so many seconds to import it.

    Raises:
        ArgumentError: if there is no such agent, it cannot be imported, or takes too long or ends its process.
    """
    worker = _worker()
    told = _begin(worker, f"import {called(name)}", seconds, "card", name)
    worker.close()
    return card_of(told)


def _worker() -> Worker:
    return Worker(longest=LONGEST_ANSWER, variables={VARIABLE: "1"})


def _begin(worker: Worker, what: str, seconds: float, name: str, argument: Any) -> Any:
    """The first answer, in so many seconds; without one the process is ended.

    Raises:
        ArgumentError: naming ``what`` cannot be done, and why.
    """
    try:
        return _ask(worker, seconds, name, argument)
    except BaseException as error:
        worker.close()
        if not isinstance(error, CBOGymError):
            raise
        if isinstance(error, ArgumentError):  # which names the agent
            raise ArgumentError(str(error)) from error
        why = f"it took longer than {seconds:g} s" if isinstance(error.__cause__, LateError) else error
        raise ArgumentError(f"cannot {what}: {why}") from error


def _ask(worker: Worker, seconds: float | None, name: str, *arguments: Any) -> Any:
    """Call a method of the agent's :class:`~cbo_gym.player.Player`.

    Raises:
        CBOGymError: one of :data:`KINDS` if the agent raises it, else a :class:`PlayerError`.
    """
    try:
        return worker.call(play, (name, arguments), time_limit=seconds, pack=pickle.dumps)
    except RaisedError as raised:
        known = KINDS.get(raised.kind)
        error = known(raised.text) if known else PlayerError(f"{raised.kind}: {raised.text}")
        error.add_note(raised.trace)
        raise error from raised
    except DiedError as died:
        raise PlayerError(str(died)) from died
