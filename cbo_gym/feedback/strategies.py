"""Strategies: how an adversary picks its move of a round, from the rounds before it and its own luck, one class each.

A move is a point of the unit box of the adversary's coordinates. What a strategy remembers is never changed, and may be
of a batch of experiments; so are the moves that it makes of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cbo_gym.actions import GridBox
from cbo_gym.actions.reading import given_numbers
from cbo_gym.errors import ArgumentError, did_you_mean, shown
from cbo_gym.scm import Floats

JITTER = 0.2  # how often the adaptive adversary moves at random, as in the paper's code
FORGETTING = 0.9  # what a round counts beside the one after it; ours
NO_MOVE = -1  # in place of that of a move at random
TIE_DECIMALS = 9  # to which payoffs are equal, so that the move does not hang on a machine's rounding

Memory = Any
#: past actions of the agent, ``(rounds, q)`` in [0, 1], to the adversary's move, ``(k,)`` in [0, 1]
Mover = Callable[[np.ndarray], Sequence[float] | np.ndarray]


class Game(NamedTuple):
    """Everything that a strategy may know.

    Attributes:
        actions: the agent's.
        moves: the adversary's own on the grid, ``(m, k)`` in [0, 1].
        rewards: the agent's without noise, of each of its actions against each move, ``(n, m)``.
    """

    actions: GridBox
    moves: np.ndarray
    rewards: np.ndarray

    def place(self, action: Sequence[Floats]) -> Any:
        """The place among the agent's actions of one, or of a batch, by its coordinates in [0, 1]."""
        place: Any = 0
        for column in action:  # of one action plain numbers: a step takes a few microseconds
            steps: Any = column * (self.actions.levels - 1) + 0.5
            place = place * self.actions.levels + (int(steps) if type(column) is float else steps.astype(int))
        return place

    @property
    def worst(self) -> int:
        """The place of the move that is worst for an agent that plays at random."""
        return int(_worst(self.rewards.mean(axis=0)))


class Strategy(ABC):
    """How moves are picked.

    Args:
        game: what may be known.
    """

    #: whether the move depends on the action that it meets as well, see :meth:`reply`
    sees_action: ClassVar[bool] = False

    def __init__(self, game: Game) -> None:
        self.game = game

    def start(self) -> Memory:
        """The memory that the first move depends on."""
        return None

    def reply(self, memory: Memory, action: Sequence[Floats]) -> np.ndarray | None:
        """The same as :meth:`move`, where it is known what the agent plays; the action as for :meth:`remember`."""
        return self.move(memory)

    @abstractmethod
    def move(self, memory: Memory) -> np.ndarray | None:
        """The move of the round that comes, ``(k,)`` or ``(n, k)``; None for one at random, by the round's luck.

        Raises:
            ArgumentError: if it is out of range.
        """

    def remember(self, memory: Memory, action: Sequence[Floats], luck: Floats) -> Memory:
        """The memory that the next move depends on.

        Args:
            memory: what the last one depended on.
            action: what was played, in [0, 1]: one number, or one array of a batch, a coordinate.
            luck: of the round that was played.
        """
        return memory


class AtRandom(Strategy):
    """All moves are equally likely in every round."""

    def move(self, memory: Memory) -> None:
        return None


class Fixed(Strategy):
    """One move in all rounds: the one that is worst for an agent that plays at random."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self._move = game.moves[game.worst]

    def move(self, memory: Memory) -> np.ndarray:
        return self._move


class Reply(NamedTuple):
    """The adaptive adversary's memory: the agent's rewards so far against each move, and the next move."""

    rewards: np.ndarray  # (..., m)
    place: np.ndarray  # (...)


class Adaptive(Strategy):
    """The best reply to the agent's play so far, in which older rounds count less; now and then a move at random.

    Before the first round the agent is taken to play at random. The move of a round is settled when the round before it
    ends, so it cannot depend on the action that it meets.
    """

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self._start = Reply(game.rewards.mean(axis=0), np.asarray(game.worst))

    def start(self) -> Reply:
        return self._start

    def move(self, memory: Reply) -> np.ndarray:
        return self.game.moves[memory.place]

    def remember(self, memory: Reply, action: Sequence[Floats], luck: Floats) -> Reply:
        rewards = FORGETTING * memory.rewards + self.game.rewards[self.game.place(action)]
        drawn, reply = place_at(luck / JITTER, len(self.game.moves)), _worst(rewards)
        if type(luck) is float:
            return Reply(rewards, drawn if luck < JITTER else reply)
        return Reply(rewards, np.where(luck < JITTER, drawn, reply))


class Informed(Strategy):
    """The best reply to the very action that it meets; now and then a move at random.

    So does the adversary of the paper's program with agents that choose one action. Of those that draw it from weights
    it knows the weights alone, which is less. Whether the move of a round is at random is settled when the round before
    it ends; in the first it never is.
    """

    sees_action = True

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self._replies = _worst(game.rewards)

    def start(self) -> np.ndarray:
        return np.asarray(NO_MOVE)

    def move(self, memory: np.ndarray) -> None:
        raise AssertionError("it is asked for a reply")

    def reply(self, memory: np.ndarray, action: Sequence[Floats]) -> np.ndarray:
        return self.game.moves[np.where(memory == NO_MOVE, self._replies[self.game.place(action)], memory)]

    def remember(self, memory: np.ndarray, action: Sequence[Floats], luck: Floats) -> np.ndarray:
        return np.where(np.less(luck, JITTER), place_at(luck / JITTER, len(self.game.moves)), NO_MOVE)


class Listed(Strategy):
    """Moves of the user's own, one per round, from the beginning again after the last."""

    def __init__(self, game: Game, moves: Any) -> None:
        super().__init__(game)
        count = game.moves.shape[1]
        found = _in_box(moves)
        if found is None or found.ndim != 2 or found.shape[1] != count or not len(found):
            raise ArgumentError(
                f"the adversary's moves must be a list of one or more, each {count} numbers in [0, 1]; "
                f"given {shown(moves)}"
            )
        self._moves = found

    def start(self) -> int:
        return 0

    def move(self, memory: int) -> np.ndarray:
        return self._moves[memory % len(self._moves)]

    def remember(self, memory: int, action: Sequence[Floats], luck: Floats) -> int:
        return memory + 1


class Asked(Strategy):
    """Moves of a function of the user's own, which is called before every round with the actions played so far."""

    def __init__(self, game: Game, mover: Mover) -> None:
        super().__init__(game)
        self._mover = mover

    def start(self) -> np.ndarray:
        return np.empty((0, self.game.actions.dim))

    def move(self, memory: np.ndarray) -> np.ndarray:
        if memory.ndim == 3:  # a batch of experiments
            return np.stack([self._checked(past) for past in memory])
        return self._checked(memory)

    def _checked(self, past: np.ndarray) -> np.ndarray:
        try:
            given = self._mover(past.copy())
        except Exception as error:  # whatever it raises: it is the user's own
            raise ArgumentError(
                f"the adversary's function failed in round {len(past) + 1}: {type(error).__name__}: {error}"
            ) from error
        found, count = _in_box(given), self.game.moves.shape[1]
        if found is None or found.shape != (count,):
            raise ArgumentError(
                f"the adversary's move in round {len(past) + 1} must be {count} numbers in [0, 1]; given {shown(given)}"
            )
        return found

    def remember(self, memory: np.ndarray, action: Sequence[Floats], luck: Floats) -> np.ndarray:
        actions = np.stack(action, axis=-1)
        past = np.broadcast_to(memory, (*actions.shape[:-1], *memory.shape[-2:]))
        return np.concatenate([past, actions[..., None, :]], axis=-2)


STRATEGIES: dict[str, type[Strategy]] = {"adaptive": Adaptive, "informed": Informed, "random": AtRandom, "fixed": Fixed}


def make_strategy(adversary: Any, game: Game) -> Strategy:
    """The strategy that a keyword stands for: a name, a list of moves, or a function.

    Raises:
        ArgumentError: if it is none of these, or a move lies out of range.
    """
    if isinstance(adversary, str):
        if adversary not in STRATEGIES:
            raise ArgumentError(
                f"adversary must be one of {', '.join(STRATEGIES)}, a list of moves, or a function of the past "
                f"actions; given {shown(adversary)}{did_you_mean(adversary, STRATEGIES)}"
            )
        return STRATEGIES[adversary](game)
    return Asked(game, adversary) if callable(adversary) else Listed(game, adversary)


def place_at(share: Any, count: int) -> Any:
    """The place among ``count`` at a share in [0, 1) of the way; the last one beyond."""
    if type(share) is float:
        return min(int(share * count), count - 1)
    return np.minimum((share * count).astype(int), count - 1)


def _worst(rewards: np.ndarray) -> np.ndarray:
    """The place of the least reward on the last axis, the first one of equals."""
    return rewards.round(TIE_DECIMALS).argmin(axis=-1)


def _in_box(given: Any) -> np.ndarray | None:
    """The numbers as an array if they lie in [0, 1]; else None."""
    try:
        points = given_numbers("moves", given)
    except ArgumentError:
        return None
    return points if ((points >= 0.0) & (points <= 1.0)).all() else None
