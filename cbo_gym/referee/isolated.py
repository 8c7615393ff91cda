"""Third-party agents in separate processes, so that an agent cannot reach the environment, its oracle or its seed.

The process of an agent runs :mod:`cbo_gym.referee.player`.
"""

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
from cbo_gym.referee.import_guard import ISOLATION_VARIABLE
from cbo_gym.referee.player import play
from cbo_gym.referee.serialization import pack
from cbo_gym.task import Action, Info, Observation, Task

# Largest size of an answer; actions and states of agents are far smaller.
MAX_ANSWER_BYTES = 2**26
# Errors of an agent that keep their class, by its name; all others become a PlayerError.
KEPT_ERRORS: dict[str, type[CBOGymError]] = {
    error.__name__: error
    for error in (errors.ArgumentError, errors.ArgumentTypeError, errors.UnsupportedModeError, errors.HiddenGraphError)
}


class IsolatedAgent(IsolatedPlayer):
    """An agent in a separate process, which is used like any other agent.

    Args:
        agent: Name or import path with parameters, or a pickle of the agent, which only the new process reads.
        seconds: Time limit for importing and making the agent.

    Raises:
        ArgumentError: if there is no such agent, it refuses the parameters, takes too long, or ends its process.
    """

    def __init__(self, agent: Spec | bytes, seconds: float = MAKING_SECONDS) -> None:
        if isinstance(agent, Spec):
            self._worker, description = _begin(f"make {agent.short_label}", seconds, "make", str(agent))
        else:
            self._worker, description = _begin("make the agent", seconds, "unpickle", agent)
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
        """End the agent's process, and all processes that it started."""
        self._worker.close()

    def _ask(self, name: str, *arguments: Any) -> Any:
        return _ask(self._worker, None, name, *arguments)


def isolated_card(name: str, seconds: float = MAKING_SECONDS) -> AgentCard:
    """Return the card of a third-party agent, which is made in a separate process.

    Raises:
        ArgumentError: if there is no such agent, or it cannot be imported, takes too long, or ends its process.
    """
    worker, fields = _begin(f"import {display_name(name)}", seconds, "card", name)
    worker.close()
    return card_of(fields)


def _begin(attempt: str, seconds: float, name: str, argument: str | bytes) -> tuple[Worker, Any]:
    """Start a worker and make a first call; return worker and answer, or raise ArgumentError with the attempt."""
    worker = Worker(max_answer_bytes=MAX_ANSWER_BYTES, variables={ISOLATION_VARIABLE: "1"}, listening=False)
    try:
        return worker, _ask(worker, seconds, name, argument)
    except BaseException as error:
        worker.close()
        if not isinstance(error, CBOGymError):
            raise
        # The message of an ArgumentError already names the agent.
        if isinstance(error, ArgumentError):
            raise ArgumentError(str(error)) from error
        why = f"it took longer than {seconds:g} s" if isinstance(error.__cause__, LateError) else error
        raise ArgumentError(f"cannot {attempt}: {why}") from error


def _ask(worker: Worker, seconds: float | None, name: str, *arguments: Any) -> Any:
    """Call a method of the agent's Player; errors are those of :data:`KEPT_ERRORS`, or a :class:`PlayerError`."""
    try:
        return worker.call(play, (name, arguments), time_limit=seconds, pack=pack)
    except RaisedError as raised:
        error_class = KEPT_ERRORS.get(raised.kind)
        error = error_class(raised.message) if error_class else PlayerError(f"{raised.kind}: {raised.message}")
        error.add_note(raised.trace)
        raise error from raised
    except DiedError as died:
        raise PlayerError(str(died)) from died
