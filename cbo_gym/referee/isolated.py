"""Third-party agents in separate processes, which never hold the environment, its oracle or the run's seed."""

from __future__ import annotations

from typing import Any

from cbo_gym import errors
from cbo_gym._util.processes.channel import DiedError
from cbo_gym._util.processes.worker import LateError, RaisedError, Worker
from cbo_gym.agent_registry.cards import AgentCard, card_of
from cbo_gym.agent_registry.finding import display_name
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.evaluation.play.players import MAKING_SECONDS, IsolatedPlayer, PlayerError
from cbo_gym.referee.import_guard import VARIABLE
from cbo_gym.referee.player import play
from cbo_gym.referee.serialization import pack
from cbo_gym.task import Action, Info, Observation, Task

# Answers are actions and agents' states, which are far smaller.
MAX_ANSWER_BYTES = 2**26
# Errors that keep their class; others become a PlayerError.
KINDS: dict[str, type[CBOGymError]] = {
    kind.__name__: kind
    for kind in (errors.ArgumentError, errors.ArgumentTypeError, errors.UnsupportedModeError, errors.HiddenGraphError)
}


class IsolatedAgent(IsolatedPlayer):
    """An agent in a separate process, used like any other agent.

    Its answers are checked as the actions of any agent are.

    Args:
        agent: Name or import path with parameters, or a pickle of the agent. Its code is run in the new process.
        seconds: Time limit for importing and making it.

    Raises:
        ArgumentError: if there is no such agent, it does not take the parameters, or takes too long or ends its process
            before it is made.
    """

    def __init__(self, agent: Spec | bytes, seconds: float = MAKING_SECONDS) -> None:
        label = f"make {agent.short_label}" if isinstance(agent, Spec) else "make the agent"
        question = ("make", str(agent)) if isinstance(agent, Spec) else ("take", agent)
        self._worker, description = _begin(label, seconds, *question)
        self.modules = frozenset(map(str, description["modules"]))
        self.modes = tuple(map(str, description["modes"]))

    def reset(self, task: Task, seed: int) -> None:
        self._ask("reset", task, seed)

    def act(self, observation: Observation) -> Action:
        return self._ask("act", observation)

    def act_batch(self, observation: Observation, count: int) -> list[Action]:
        return list(self._ask("act_batch", observation, count))

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        self._ask("update", action, observation, reward, info)

    def state(self) -> bytes:
        return bytes.fromhex(self._ask("state"))

    def restore(self, state: bytes, task: Task) -> None:
        self._ask("restore", state, task)

    def recommend(self) -> Action:
        return self._ask("recommend")

    def close(self) -> None:
        """End its process, and all that it started."""
        self._worker.close()

    def _ask(self, name: str, *arguments: Any) -> Any:
        return _ask(self._worker, None, name, *arguments)


def isolated_card(name: str, seconds: float = MAKING_SECONDS) -> AgentCard:
    """Return the card of a third-party agent, found in a separate process.

    Raises:
        ArgumentError: if there is no such agent, it cannot be imported, or takes too long or ends its process.
    """
    worker, fields = _begin(f"import {display_name(name)}", seconds, "card", name)
    worker.close()
    return card_of(fields)


def _begin(attempt: str, seconds: float, name: str, argument: str | bytes) -> tuple[Worker, Any]:
    """Start a worker and call it; return the worker and its answer, or end its process if the call fails.

    Raises:
        ArgumentError: if the call fails; the message names the attempt and the reason.
    """
    worker = Worker(max_answer_bytes=MAX_ANSWER_BYTES, variables={VARIABLE: "1"}, listening=False)
    try:
        return worker, _ask(worker, seconds, name, argument)
    except BaseException as error:
        worker.close()
        if not isinstance(error, CBOGymError):
            raise
        # An ArgumentError names the agent.
        if isinstance(error, ArgumentError):
            raise ArgumentError(str(error)) from error
        why = f"it took longer than {seconds:g} s" if isinstance(error.__cause__, LateError) else error
        raise ArgumentError(f"cannot {attempt}: {why}") from error


def _ask(worker: Worker, seconds: float | None, name: str, *arguments: Any) -> Any:
    """Call a method of the agent's :class:`~cbo_gym.referee.player.Player`.

    Raises:
        CBOGymError: one of :data:`KINDS` if the agent raises it, else a :class:`PlayerError`.
    """
    try:
        return worker.call(play, (name, arguments), time_limit=seconds, pack=pack)
    except RaisedError as raised:
        error_class = KINDS.get(raised.kind)
        error = error_class(raised.message) if error_class else PlayerError(f"{raised.kind}: {raised.message}")
        error.add_note(raised.trace)
        raise error from raised
    except DiedError as died:
        raise PlayerError(str(died)) from died
