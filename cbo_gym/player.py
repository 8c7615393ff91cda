"""The process of somebody else's agent: it is told tasks, observations and rewards, and answers with actions.

Nothing else comes here: no environment, no oracle, no seed of a run's noise. Messages are plain data in both
directions; see :mod:`cbo_gym.plain`.
"""

from __future__ import annotations

import traceback
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import cloudpickle

from cbo_gym.agent_cards import agent_card
from cbo_gym.agent_finder import agent_of, create_agent, find_agent, modes_of
from cbo_gym.channel import die_with_parent, own_streams, receive, send
from cbo_gym.errors import text_of
from cbo_gym.labels import Spec
from cbo_gym.plain import action_to_plain, from_plain, read_message, task_of, written

Message = dict[str, Any]
LONGEST_TEXT = 10_000  # characters of an error


class Player:
    """An agent, asked by messages; each method is one kind of message, its arguments what the message says."""

    def __init__(self) -> None:
        self._agent: Any = None
        self._space: Any = None

    def card(self, name: str) -> Message:
        """An agent's card."""
        return asdict(agent_card(name))

    def make(self, label: str) -> Message:
        """Make the agent; say what it plays, and in which modules it is defined."""
        spec = Spec.parse(label)
        self._agent = create_agent(spec)
        factory = find_agent(spec.name)
        return self._description({getattr(factory, "__module__", "builtins")}, modes_of(factory))

    def take(self, packed: str) -> Message:
        """The same of an agent that comes by value: what cloudpickle made of it, in Base64."""
        self._agent = agent_of(cloudpickle.loads(b64decode(packed)))
        return self._description(set(), modes_of(self._agent))

    def _description(self, modules: set[str], modes: Sequence[str]) -> Message:
        modules |= {kind.__module__ for kind in type(self._agent).__mro__}
        return {"modules": sorted(map(str, modules)), "modes": list(modes)}

    def reset(self, task: Message, seed: int) -> None:
        told = task_of(task)
        self._space, self._several = told.action_space, bool(told.objectives)
        self._agent.reset(told, seed=seed)

    def act(self, observation: Message) -> Any:
        return action_to_plain(self._space, self._agent.act(from_plain(observation)))

    def act_batch(self, observation: Message, count: int) -> list[Any]:
        actions = self._agent.act_batch(from_plain(observation), count)
        return [action_to_plain(self._space, action) for action in actions]

    def update(self, action: Any, observation: Message, reward: Any, info: Message) -> None:
        self._agent.update(from_plain(action), from_plain(observation), from_plain(reward), from_plain(info))

    def state(self) -> str:
        return b64encode(self._agent.state()).decode()

    def restore(self, state: str, task: Message) -> None:
        told = task_of(task)
        self._agent.restore(b64decode(state), told)
        self._space, self._several = told.action_space, bool(told.objectives)

    def recommend(self) -> Any:
        recommended = self._agent.recommend()
        if not self._several:
            return action_to_plain(self._space, recommended)
        return [action_to_plain(self._space, action) for action in recommended]


def serve() -> None:
    """Answer the messages on the standard input until it ends."""
    die_with_parent()
    calls, answers = own_streams()
    player = Player()
    methods: Mapping[str, Callable[..., Any]] = {
        name: getattr(player, name)
        for name in ("card", "make", "take", "act_batch", "state", "restore", "reset", "act", "update", "recommend")
    }
    while (received := receive(calls)) is not None:
        number, message = received
        name, arguments = read_message(message)
        send(answers, number, written(_answer(methods[name], arguments)))


def _answer(method: Callable[..., Any], arguments: Message) -> Message:
    try:
        return {"value": method(**arguments)}
    except BaseException as error:  # whatever the agent raises; to end this process is the caller's affair
        kind, text, trace = type(error).__name__, text_of(error), traceback.format_exc()
        return {"error": {"kind": kind, "text": _short(text), "trace": _short(trace)}}


def _short(text: str) -> str:
    clean = text.encode("utf-8", "backslashreplace").decode()
    return clean if len(clean) <= LONGEST_TEXT else f"{clean[: LONGEST_TEXT // 2]}\n...\n{clean[-LONGEST_TEXT // 2 :]}"
