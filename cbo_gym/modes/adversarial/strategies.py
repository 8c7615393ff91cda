"""Strategies of an adversary: one class for each rule by which it chooses its move of a round.

A move is a point of the unit box of the adversary's coordinates. A strategy has no state: its memory, an immutable
value, is passed in and returned. In a batch of experiments the memory and the moves are batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cbo_gym.actions import GridBox
from cbo_gym.actions.reading import require_numbers
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.scm import Floats

# Probability that the adaptive adversary moves at random, as in the paper's code.
RANDOM_MOVE_PROBABILITY = 0.2
# Weight of a round relative to the round after it. The paper does not state it.
DISCOUNT = 0.9
# Stands for the index of a random move if none was drawn.
NOT_RANDOM = -1
# Number of decimals in which payoffs are compared, so that a move does not depend on a machine's rounding.
TIE_DECIMALS = 9

Memory = Any
# Function from the agent's past actions, (rounds, q) in [0, 1], to the adversary's move, (k,) in [0, 1].
Mover = Callable[[np.ndarray], Sequence[float] | np.ndarray]


class Game(NamedTuple):
    """The information that a strategy has.

    Attributes:
        actions: the agent's action space.
        moves: the adversary's moves on the grid, ``(m, k)`` in [0, 1].
        rewards: the agent's rewards without noise, of each action against each move, ``(n, m)``.
    """

    actions: GridBox
    moves: np.ndarray
    rewards: np.ndarray

    def index_of(self, action: Sequence[Floats]) -> Any:
        """Return the index of one action, or of each of a batch, by its coordinates in [0, 1]."""
        index: Any = 0
        for column, levels in zip(action, self.actions.levels):  # noqa: B905
            steps: Any = column * (levels - 1) + 0.5  # type: ignore[operator]
            # Floats for one action are faster than arrays.
            index = index * levels + (int(steps) if type(column) is float else steps.astype(int))
        return index

    @property
    def worst(self) -> int:
        """Index of the move that is worst for an agent that plays at random."""
        return int(_worst(self.rewards.mean(axis=0)))


class Strategy(ABC):
    """Rule by which an adversary chooses its moves."""

    #: Whether the move depends on the agent's action in the same round.
    sees_action: ClassVar[bool] = False

    def __init__(self, game: Game) -> None:
        self.game = game

    def start(self) -> Memory:
        """Return the memory on which the first move depends."""
        return None

    @abstractmethod
    def move(self, memory: Memory, action: Sequence[Floats]) -> np.ndarray | None:
        """Return the next move, ``(k,)`` or ``(n, k)``; ``None`` for a random move, drawn when the round is played.

        Args:
            memory: memory of the rounds before.
            action: the agent's action in the round, as for :meth:`remember`; empty unless the strategy sees it.

        Raises:
            ArgumentError: if the move is out of range.
        """

    def remember(self, memory: Memory, action: Sequence[Floats], uniform: Floats) -> Memory:
        """Return the memory on which the next move depends.

        Args:
            memory: the memory on which the last move depended.
            action: the action played, in [0, 1]: one number, or one array of a batch, for each coordinate.
            uniform: the round's uniform number in [0, 1], from which random moves are drawn.
        """
        return memory


class RandomMoves(Strategy):
    """All moves are equally likely in every round."""

    def move(self, memory: Memory, action: Sequence[Floats]) -> None:
        return None


class Reply(NamedTuple):
    """The adaptive adversary's memory: the agent's discounted rewards against each move, and the next move."""

    #: Shape ``(..., m)``
    rewards: np.ndarray
    #: Index of the move, shape ``(...)``
    move: np.ndarray


class Adaptive(Strategy):
    """The best reply to the agent's past actions, with less weight on older rounds; sometimes a move at random.

    Before the first round the agent is assumed to play at random. The move of a round is decided when the round before
    it ends, so it cannot depend on the agent's action in the round.
    """

    def start(self) -> Reply:
        return Reply(self.game.rewards.mean(axis=0), np.asarray(self.game.worst))

    def move(self, memory: Reply, action: Sequence[Floats]) -> np.ndarray:
        return self.game.moves[memory.move]

    def remember(self, memory: Reply, action: Sequence[Floats], uniform: Floats) -> Reply:
        rewards = DISCOUNT * memory.rewards + self.game.rewards[self.game.index_of(action)]
        random_move = index_at(uniform / RANDOM_MOVE_PROBABILITY, len(self.game.moves))
        reply = _worst(rewards)
        if type(uniform) is float:
            return Reply(rewards, random_move if uniform < RANDOM_MOVE_PROBABILITY else reply)
        return Reply(rewards, np.where(uniform < RANDOM_MOVE_PROBABILITY, random_move, reply))


class Informed(Strategy):
    """The best reply to the agent's action in the same round; sometimes a move at random.

    It always sees the action. The adversary of the paper's program sees only the weights of an agent that draws its
    action from weights. Whether a move is random is decided at the end of the round before it; the first move is never
    random.
    """

    sees_action = True

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self._replies = _worst(game.rewards)

    def start(self) -> np.ndarray:
        return np.asarray(NOT_RANDOM)

    def move(self, memory: np.ndarray, action: Sequence[Floats]) -> np.ndarray:
        return self.game.moves[np.where(memory == NOT_RANDOM, self._replies[self.game.index_of(action)], memory)]

    def remember(self, memory: np.ndarray, action: Sequence[Floats], uniform: Floats) -> np.ndarray:
        random_move = index_at(uniform / RANDOM_MOVE_PROBABILITY, len(self.game.moves))
        return np.where(np.less(uniform, RANDOM_MOVE_PROBABILITY), random_move, NOT_RANDOM)


class MoveList(Strategy):
    """A user's list of moves, one per round; after the last move it starts again."""

    def __init__(self, game: Game, moves: Any) -> None:
        super().__init__(game)
        count = game.moves.shape[1]
        points = _in_box(moves)
        if points is None or points.ndim != 2 or points.shape[1] != count or len(points) == 0:
            raise ArgumentError(
                f"the adversary's moves must be a list of one or more, each {count} numbers in [0, 1]; "
                f"given {short_repr(moves)}"
            )
        self._moves = points

    def start(self) -> int:
        return 0

    def move(self, memory: int, action: Sequence[Floats]) -> np.ndarray:
        return self._moves[memory % len(self._moves)]

    def remember(self, memory: int, action: Sequence[Floats], uniform: Floats) -> int:
        return memory + 1


class MoveFunction(Strategy):
    """Moves of a user's function, which is called before every round with the actions played so far."""

    def __init__(self, game: Game, mover: Mover) -> None:
        super().__init__(game)
        self._mover = mover

    def start(self) -> np.ndarray:
        return np.empty((0, self.game.actions.dim))

    def move(self, memory: np.ndarray, action: Sequence[Floats]) -> np.ndarray:
        # A batch of experiments has three axes.
        return np.stack([self._call(actions) for actions in memory]) if memory.ndim == 3 else self._call(memory)

    def _call(self, past_actions: np.ndarray) -> np.ndarray:
        number = len(past_actions) + 1
        try:
            move = self._mover(past_actions.copy())
        except Exception as error:
            # A user's function may raise anything.
            raise ArgumentError(
                f"the adversary's function failed in round {number}: {type(error).__name__}: {error}"
            ) from error
        point, count = _in_box(move), self.game.moves.shape[1]
        if point is None or point.shape != (count,):
            raise ArgumentError(
                f"the adversary's move in round {number} must be {count} numbers in [0, 1]; given {short_repr(move)}"
            )
        return point

    def remember(self, memory: np.ndarray, action: Sequence[Floats], uniform: Floats) -> np.ndarray:
        actions = np.stack(action, axis=-1)
        past_actions = np.broadcast_to(memory, (*actions.shape[:-1], *memory.shape[-2:]))
        return np.concatenate([past_actions, actions[..., None, :]], axis=-2)


STRATEGIES: dict[str, Callable[[Game], Strategy]] = {
    "adaptive": Adaptive,
    "informed": Informed,
    "random": RandomMoves,
    # The worst move for an agent that plays at random, in every round.
    "fixed": lambda game: MoveList(game, [game.moves[game.worst]]),
}


def make_strategy(adversary: Any, game: Game) -> Strategy:
    """Return the strategy that a name, a list of moves or a function stands for; raise ArgumentError for others."""
    if isinstance(adversary, str):
        if adversary not in STRATEGIES:
            raise ArgumentError(
                f"adversary must be one of {', '.join(STRATEGIES)}, a list of moves, or a function of the past "
                f"actions; given {short_repr(adversary)}{did_you_mean(adversary, STRATEGIES)}"
            )
        return STRATEGIES[adversary](game)
    return MoveFunction(game, adversary) if callable(adversary) else MoveList(game, adversary)


def index_at(share: Any, count: int) -> Any:
    """Return the index of ``range(count)`` at a share of its length; the last index for shares of 1 and more."""
    if type(share) is float:
        return min(int(share * count), count - 1)
    return np.minimum((share * count).astype(int), count - 1)


def _worst(rewards: np.ndarray) -> np.ndarray:
    """Return the index of the smallest reward on the last axis, the first of equals."""
    return rewards.round(TIE_DECIMALS).argmin(axis=-1)


def _in_box(moves: Any) -> np.ndarray | None:
    """Return the numbers as an array if they are in [0, 1]; else ``None``."""
    try:
        points = require_numbers("moves", moves)
    except ArgumentError:
        return None
    return points if ((points >= 0.0) & (points <= 1.0)).all() else None
