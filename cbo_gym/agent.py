"""Agent: the interface that every method implements, and the loop expects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cbo_gym.agent_state import pack, unpack
from cbo_gym.errors import ArgumentError, UnsupportedModeError
from cbo_gym.files import write_bytes
from cbo_gym.fronts import non_dominated
from cbo_gym.task import Action, Info, Mode, Observation, Round, Task

__all__ = ["Agent", "UnsupportedModeError"]


class _BestSeen:
    """Where in a list of rounds that grows the highest reward is; of equals the first.

    Each round is looked at once, so that to ask after every round costs no more the longer a run is.

    Args:
        rounds: at least one.
    """

    def __init__(self, rounds: list[Round]) -> None:
        self._rounds = rounds
        self._count, self.place = 0, 0
        self.look()

    def look(self) -> None:
        """Bring ``place`` up to date with rounds that came since."""
        rounds = self._rounds
        places = [self.place, *range(self._count, len(rounds))]
        self.place = places[int(np.argmax([rounds[place].reward for place in places]))]  # nan comes first
        self._count = len(rounds)
        self._best, self._last = rounds[self.place], rounds[-1]

    def is_of(self, rounds: list[Round]) -> bool:
        """Whether these are the rounds, with none taken away or changed since."""
        return (
            rounds is self._rounds
            and len(rounds) >= self._count
            and rounds[self.place] is self._best
            and rounds[self._count - 1] is self._last
        )


class Agent(ABC):
    """Base class of the agents; any object with its public methods will do as well.

    The loop is ``reset``, then ``act``, ``env.step``, ``update`` for every round; ``recommend`` may be asked at any
    time. A subclass says what it plays in ``modes`` and implements ``act``; most extend ``update``.

    Attributes:
        task: what the agent may know.
        rng: seeded by :meth:`reset`.
        history: every round. It grows at its end; an agent that forgets or changes rounds makes a new list of them.
    """

    modes: ClassVar[frozenset[Mode]]
    #: whether tasks may have several objectives, so that rewards are arrays and recommendations lists of actions
    several_objectives: ClassVar[bool] = False
    #: whether rounds may lack variables, which are not a number then; all others need them all
    takes_missing: bool = False
    #: raised when the agent plays otherwise than before: its runs are then played again
    revision: ClassVar[int] = 1

    task: Task
    rng: np.random.Generator
    history: list[Round]
    __best_seen: _BestSeen | None = None  # two underscores: subclasses, also those of others, have names of their own

    def reset(self, task: Task, seed: int) -> None:
        """Start afresh on ``task``; the task's initial data go through :meth:`update`.

        Args:
            task: what the agent may know.
            seed: of all randomness of the agent, in 0..2**32 - 1.

        Raises:
            UnsupportedModeError: if the agent does not play the task's mode, or needs a causal diagram that the task
                does not tell.
        """
        if task.mode not in self.modes:
            played = ", ".join(sorted(self.modes))
            raise UnsupportedModeError(f"{type(self).__name__} plays {played}; {task.env_id} is {task.mode}")
        if task.objectives and not self.several_objectives:
            raise UnsupportedModeError(
                f"{type(self).__name__} maximises one reward; {task.env_id} has several objectives: "
                f"{', '.join(map(str, task.objectives))}"
            )
        self.task = task
        self.rng = np.random.default_rng(seed)
        self.history = []
        self.setup(seed)
        for past in self.initial_rounds():
            if task.mode == Mode.CONTEXTUAL:
                self.set_context(past.observation["context"])  # of initial data the one that was seen before
            self.update(past.action, past.observation, past.reward, {})

    def setup(self, seed: int) -> None:  # noqa: B027  (most agents need it, the simplest do not)
        """Build what depends on ``self.task``; called by :meth:`reset` before the initial data arrive."""

    def initial_rounds(self) -> Sequence[Round]:
        """The rounds of ``task.initial_data`` that :meth:`reset` hands to :meth:`update`; all by default."""
        return self.task.initial_data

    @abstractmethod
    def act(self, observation: Observation) -> Action:
        """Choose the next action, an element of ``self.task.action_space``."""

    def act_batch(self, observation: Observation, count: int) -> list[Action]:
        """Choose several actions that are played before any of their outcomes is told.

        The first is that of :meth:`act`, the others are those of :meth:`act_given_pending` it.

        Args:
            observation: as of :meth:`act`.
            count: how many, at least 1.
        """
        first = self.act(observation)
        return [first, *(self.act_given_pending(observation, [first], count - 1) if count > 1 else [])]

    def act_given_pending(
        self,
        observation: Observation,
        pending: Sequence[Action],
        count: int = 1,
        contexts: Sequence[np.ndarray] | None = None,
    ) -> list[Action]:
        """Choose actions while others are played whose outcomes are not known yet.

        Each is chosen by a copy of the agent that has been told what this one expects of those before it, see
        :meth:`fantasize`, so that they do not all look in one place.

        Args:
            observation: as of :meth:`act`.
            pending: the others, at least one.
            count: how many to choose, at least 1.
            contexts: in contextual mode, of the others, one each; None where it is that of ``observation``.
        """
        believer = deepcopy(self, {id(self.task): self.task})
        believer.rng = self.rng.spawn(1)[0]  # else the next time it would draw what it did this time
        own: Any = observation.get("context")
        told: list[tuple[Action, Any]] = list(zip(pending, contexts or [own] * len(pending), strict=True))
        chosen: list[Action] = []
        for _ in range(count):
            for action, context in told:
                if context is not None:
                    believer.set_context(context)
                believer.update(action, *believer.fantasize(action), {})
            chosen.append(believer.act(observation))
            told = [(chosen[-1], own)]
        return chosen

    def set_context(self, context: np.ndarray) -> None:  # noqa: B027  (nothing to do where contexts are ignored)
        """In contextual mode, make this the context of the calls that follow.

        It is not needed between :meth:`act` and :meth:`update`. It is for rounds that are told in another order than
        they were chosen, or were not chosen by the agent, and for a recommendation in a context.

        Args:
            context: values of the task's contexts, shape ``(k,)``.
        """

    def fantasize(self, action: Action) -> tuple[Observation, Any]:
        """The observation and the reward that the agent expects under an action.

        These are the observation of the round whose action is nearest, and the reward that it estimates there, except
        for the variables that :meth:`expected_nodes` covers. Before the first round they are zeros.
        """
        if not self.history:
            spaces: Any = self.task.observation_space  # a Dict of boxes
            return {name: np.zeros(spaces[name].shape, spaces[name].dtype) for name in spaces}, 0.0
        codec = self.task.codec
        points = np.array([codec.to_point(past.action) for past in self.history])
        nearest = int(np.argmin(np.square(points - codec.to_point(action)).sum(axis=-1)))
        estimate = self.estimated_rewards()[nearest]
        observation = deepcopy(self.history[nearest].observation)
        if self.task.objectives:
            return observation, estimate
        expected = {self.task.reward: float(estimate)} | dict(self.expected_nodes(action))
        for name, value in expected.items():
            observation["nodes"][self.task.nodes.index(name)] = value
        return observation, expected[self.task.reward]

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        """The values that the agent's model expects under an action, of the nodes that it has a model of."""
        return {}

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        """Mean and standard deviation of E[Y | action] by the agent's model, for any action, played or not.

        In contextual mode it is given the context that was seen last, or that :meth:`set_context` names. Called from
        the first round on.

        Args:
            actions: at least one.

        Returns:
            means and standard deviations, each of shape ``(len(actions),)``; the deviations are those of the
            expectation, without the noise of a round. None for an agent without such a model.
        """
        return None

    def update(self, action: Action, observation: Observation, reward: Any, info: Info) -> None:
        """Learn from a round that was played; the caller may overwrite the arrays afterwards.

        The reward is a float, with several objectives an array.
        """
        kept = np.array(reward, dtype=float) if self.task.objectives else float(reward)
        self.history.append(Round(deepcopy(action), deepcopy(observation), kept))

    def recommend(self) -> Action:
        """The action that the agent would deploy: of those played, the one with the best estimate.

        With several objectives it is a list of actions: those of the played ones whose estimates no other dominates.

        Under constraints only the actions count that miss them least by its estimates: the feasible ones, if there are
            any.

        Raises:
            ArgumentError: if nothing has been played yet.
        """
        if not self.history:
            raise ArgumentError(
                "nothing has been played yet, so there is nothing to recommend; an agent's first action must do without"
            )
        if self.task.objectives:
            best = np.flatnonzero(non_dominated(self.estimated_rewards()))
            return [self.history[place].action for place in best]
        if not _has_estimates(self):
            if self.__best_seen is None or not self.__best_seen.is_of(self.history):
                self.__best_seen = _BestSeen(self.history)
            self.__best_seen.look()
            return self.history[self.__best_seen.place].action
        missed = self.estimated_violations()
        rewards = np.where(missed <= missed.min(), self.estimated_rewards(), -np.inf)
        return self.history[int(np.argmax(rewards))].action

    def estimated_rewards(self) -> np.ndarray:
        """Estimates of E[Y | action] for every round of ``history``, shape ``(len(history),)``.

        With several objectives they are vectors, of shape ``(len(history), objectives)``.

        Without a model these are the rewards seen; agents with a surrogate return its posterior mean.
        """
        return np.array([past.reward for past in self.history])

    def estimated_violations(self) -> np.ndarray:
        """By how much the actions of ``history`` miss the task's constraints, by the agent's estimates.

        Shape ``(len(history),)``; zeros for an agent that heeds no constraints.
        """
        return np.zeros(len(self.history))

    def state(self) -> bytes:
        """Return the whole state of the agent, except what it shares with its task, sealed with the user's key.

        See :mod:`cbo_gym.agent_state`.

        Raises:
            StateError: naming the attribute that cannot be saved, such as a thread or another library's optimiser.
        """
        return pack(self, self.task)

    def restore(self, state: bytes, task: Task, *, trusted: bool = False) -> None:
        """Become the agent of :meth:`state`, with its parameters, and go on as it would have.

        Args:
            state: of an agent of the same class.
            task: the one that it plays.
            trusted: also read a state that is not sealed with your own key, such as one from another machine. A state
                is a pickle: reading one can run any code, so trust its author as you trust code that you install.

        Raises:
            ArgumentError: if it is no such state, or neither sealed nor trusted; the agent is then unchanged.
        """
        unpack(state, task, self, trusted=trusted)

    def save(self, path: Path | str) -> None:
        """Write :meth:`state` to a file, in one step.

        Raises:
            StateError: as :meth:`state`.
            OperationError: if the file cannot be written.
        """
        write_bytes(Path(path), self.state())

    def load(self, path: Path | str, task: Task, *, trusted: bool = False) -> None:
        """:meth:`restore` what :meth:`save` wrote; raises as it does, or OSError if the file cannot be read."""
        self.restore(Path(path).read_bytes(), task, trusted=trusted)


def _has_estimates(agent: Agent) -> bool:
    """Whether an agent thinks anything of the rounds but what was seen."""
    names = ("estimated_rewards", "estimated_violations")
    return any(getattr(getattr(agent, name), "__func__", None) is not getattr(Agent, name) for name in names)
