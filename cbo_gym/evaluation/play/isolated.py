"""Somebody else's agent in a process of its own, which never holds the environment, its oracle or the run's seed."""

from __future__ import annotations

import threading
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cbo_gym import errors
from cbo_gym.agent_cards import AgentCard, card_of
from cbo_gym.agent_finder import called
from cbo_gym.channel import GarbledError, ask, receive_answer
from cbo_gym.closed import VARIABLE
from cbo_gym.errors import CBOGymError, OperationError
from cbo_gym.evaluation.play.processes import end_process, how_it_ended, kill, start_process
from cbo_gym.labels import Spec
from cbo_gym.plain import read_message, task_to_plain, to_plain, written
from cbo_gym.task import Action, Info, Observation, Task

LONGEST_ANSWER = 2**26  # bytes: an action of any environment takes far less
MAKING_SECONDS = 300  # in which an agent that is asked for must be imported and made
LISTING_SECONDS = 30  # the same of one that a pattern names among others


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
        self._conversation = _Conversation()
        if isinstance(given, Spec):
            made = self._conversation.begin(f"make {given.shown}", seconds, "make", label=str(given))
        else:
            packed = b64encode(given).decode()
            made = self._conversation.begin("make the agent", seconds, "take", packed=packed)
        self.modules = frozenset(map(str, made["modules"]))
        self.modes = tuple(map(str, made["modes"]))

    def reset(self, task: Task, seed: int) -> None:
        self._ask("reset", task=task_to_plain(task), seed=seed)

    def act(self, observation: Observation) -> Action:
        return self._ask("act", observation=to_plain(observation))

    def act_batch(self, observation: Observation, count: int) -> list[Action]:
        return list(self._ask("act_batch", observation=to_plain(observation), count=count))

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        self._ask(
            "update",
            action=to_plain(action),
            observation=to_plain(observation),
            reward=to_plain(reward),
            info=to_plain(info),
        )

    def state(self) -> bytes:
        return b64decode(self._ask("state"), validate=True)

    def restore(self, state: bytes, task: Task) -> None:
        self._ask("restore", state=b64encode(state).decode(), task=task_to_plain(task))

    def recommend(self) -> Action:
        return self._ask("recommend")

    def close(self) -> None:
        """End its process, and whatever that has started."""
        self._conversation.end()

    def _ask(self, name: str, **arguments: Any) -> Any:
        return self._conversation.ask(name, **arguments)


class _Conversation:
    """A process that imports somebody else's agent, asked by messages."""

    def __init__(self) -> None:
        self._process = start_process("cbo_gym.player", **{VARIABLE: "1"})

    def begin(self, what: str, seconds: float, message: str, /, **arguments: Any) -> Any:
        """The first answer, in so many seconds; without one the process is ended.

        Raises:
            ArgumentError: naming ``what`` cannot be done, and why.
        """
        late = threading.Event()

        def stop() -> None:
            late.set()
            kill(self._process)  # with what it started, which may hold its streams open

        impatient = threading.Timer(seconds, stop)
        impatient.daemon = True
        impatient.start()
        try:
            return self.ask(message, **arguments)
        except BaseException as error:
            self.end()
            if not isinstance(error, CBOGymError):
                raise
            if isinstance(error, errors.ArgumentError):  # which names the agent
                raise errors.ArgumentError(str(error)) from error
            why = f"it took longer than {seconds:g} s" if late.is_set() else error
            raise errors.ArgumentError(f"cannot {what}: {why}") from error
        finally:
            impatient.cancel()

    def end(self) -> None:
        end_process(self._process)

    def ask(self, message: str, /, **arguments: Any) -> Any:
        answer = None
        with suppress(BrokenPipeError):  # it has ended
            number = ask(self._process.stdin, written([message, arguments]))
            answer = receive_answer(self._process.stdout, number, LONGEST_ANSWER)
        if answer is None:
            raise PlayerError(how_it_ended(self._process.wait()))
        told = _read(answer)
        if "error" in told:
            raise _error_of(told["error"])
        return told.get("value")


def described(given: Spec | bytes, seconds: float = MAKING_SECONDS) -> tuple[frozenset[str], tuple[str, ...]]:
    """The modules and the modes of an agent, from a process of its own; raises as :class:`IsolatedAgent` does."""
    agent = IsolatedAgent(given, seconds)
    agent.close()
    return agent.modules, agent.modes


def isolated_card(name: str, seconds: float = MAKING_SECONDS) -> AgentCard:
    """The card of somebody else's agent, from a process of its own, which may take so many seconds to import it.

    Raises:
        ArgumentError: if there is no such agent, it cannot be imported, or takes too long or ends its process.
    """
    conversation = _Conversation()
    told = conversation.begin(f"import {called(name)}", seconds, "card", name=name)
    conversation.end()
    return card_of(told)


def _read(answer: bytes) -> Mapping[str, Any]:
    try:
        told = read_message(answer)
    except errors.ArgumentError as error:
        raise GarbledError(f"its process gave an answer that is none: {error}") from error
    if not isinstance(told, dict):
        raise GarbledError(f"its process gave a {type(told).__name__} for an answer")
    return told


def _error_of(told: object) -> Exception:
    """The error that the agent raised: errors of this package as such, for they mean something to whoever plays it."""
    said = told if isinstance(told, dict) else {}
    kind, text, trace = (str(said.get(name, "")) for name in ("kind", "text", "trace"))
    known = KINDS.get(kind)
    error = known(text) if known else PlayerError(f"{kind}: {text}" if kind else text)
    error.add_note(trace)
    return error


#: errors that mean something to whoever plays an agent; of others the name is told
KINDS: dict[str, type[CBOGymError]] = {
    one.__name__: one
    for one in (errors.ArgumentError, errors.ArgumentTypeError, errors.UnsupportedModeError, errors.HiddenGraphError)
}
