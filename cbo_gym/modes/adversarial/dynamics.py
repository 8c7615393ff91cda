"""Adversarial mode: rounds against an adversary, who sets some parameters of the mechanisms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym.modes.adversarial.interface import AdversarialInterface
from cbo_gym.modes.adversarial.strategies import Game, Mover, index_at, make_strategy
from cbo_gym.modes.base.dynamics import Dynamics, Memory
from cbo_gym.problems import Problem
from cbo_gym.problems.modes.adversarial import Adversary
from cbo_gym.problems.variations.instance import InstanceRules
from cbo_gym.scm import Floats, Intervention
from cbo_gym.scm.system import Draws, Values


class GameInstanceRules(InstanceRules):
    """Random transforms in adversarial mode: the adversary's coordinates do not change, so ties keep their order."""

    keeps_reward = True
    bends_parameters = False

    @property
    def kept_coordinates(self) -> int:
        adversary = self.problem.data(Adversary)
        return adversary.coordinates if adversary else 0


class AdversarialDynamics(AdversarialInterface, Dynamics):
    """Soft interventions of two players: the agent's, and those of an adversary, whose moves it sees after the round.

    ## Action space
    ``GridBox(0, 1, (q,), levels)``: the agent's parameters of the mechanisms, mapped to native units by the problem;
    each is one of ``levels`` equally spaced numbers, 0 and 1 included.

    ## Observation space
    ``Dict(nodes=Box(n), adversary=Box(k))``: the observed variables in topological order, the reward last, and the
    adversary's move in the round that was played, in [0, 1] like an action; zeros at reset.

    ## Reward
    The value of the reward variable in this round. Regret is measured from the best fixed action in hindsight: the one
    with the greatest sum of E[Y | action, move] over the adversary's moves. The recorded optimum and the expected
    reward of an action alone are against the move of ``adversary="fixed"``. In the initial data moves are random.

    ## Arguments
    ``adversary``: ``"adaptive"`` is the best reply to the agent's past actions (each has 0.9 of the next one's weight),
    or, with a probability of 0.2, a random move; ``"informed"`` is the same for the action of the round, which no other
    adversary knows; ``"random"``: all moves are equally likely; ``"fixed"``: the worst move for an agent that plays at
    random; a list of moves in [0, 1], one per round, which is repeated; or a function of the past actions, an array
    ``(rounds, q)``, that returns the move.

    ## References
    Sussex, Sessa, Makarova & Krause (2024), Adversarial causal Bayesian optimization, sec. 2 and 5.
    """

    instance_rules = GameInstanceRules

    def __init__(self, problem: Problem, *, adversary: str | Sequence[Sequence[float]] | Mover = "adaptive") -> None:
        super().__init__(problem)
        data = problem.data(Adversary)
        assert data is not None
        self._randomness = data.randomness
        self._randomness_index = [variable.name for variable in problem.scm.noisy].index(self._randomness)
        self._native_moves = self.move_domains.points_to_native(self.moves)
        self.game = Game(self._action_grid, self.moves, self._rewards_without_noise())
        self.strategy = make_strategy(adversary, self.game)

    def _rewards_without_noise(self) -> np.ndarray:
        """Return the reward without noise of every action against every move, ``(n, m)``."""
        native = self.domains.points_to_native(self.all_actions())
        soft = [*native.T[..., None], *self._native_moves.T]
        no_noise = tuple(np.zeros(1) for _ in self.scm.noisy)
        rewards = self.problem.outcomes.reward(self.scm.propagate(no_noise, Intervention(soft)))
        return np.broadcast_to(rewards, (len(native), len(self.moves)))

    def start(self) -> Memory:
        return self.strategy.start()

    def in_round(self, intervention: Intervention, memory: Memory) -> Intervention:
        """Add the adversary's move, unless it is random and drawn when the round is played."""
        strategy = self.strategy
        move = strategy.move(memory, self._points(intervention) if strategy.sees_action else ())
        return intervention if move is None else self.against(intervention, move)

    def against(self, intervention: Intervention, moves: np.ndarray) -> Intervention:
        """Return the agent's intervention together with a move ``(k,)``, or moves ``(n, k)``, of the adversary."""
        native = self.move_domains.to_native(moves.tolist() if moves.ndim == 1 else moves.T)
        return Intervention([*intervention.soft, *native])

    def remember(self, memory: Memory, intervention: Intervention, values: Values) -> Memory:
        return self.strategy.remember(memory, self._points(intervention), values[self._randomness])

    def _points(self, intervention: Intervention) -> list[Floats]:
        """Return the agent's coordinates in [0, 1]; those of the adversary, which may follow, are left out."""
        return [scale.to_unit(value) for scale, value in zip(self.domains.scales, intervention.soft)]  # noqa: B905

    def play(self, noise: Draws, intervention: Intervention) -> Values:
        """Return the outcome of rounds, with the adversary's native coordinates; a missing move is drawn."""
        soft = intervention.soft
        if len(soft) == self._agent_dim:
            random_moves = self._native_moves[index_at(noise[self._randomness_index], len(self.moves))]
            columns = random_moves.tolist() if random_moves.ndim == 1 else np.moveaxis(random_moves, -1, 0)
            soft = [*soft, *columns]
        values = self.scm.propagate(noise, Intervention(soft))
        values.update(zip(self.move_domains.names, soft[self._agent_dim :], strict=True))
        return values
