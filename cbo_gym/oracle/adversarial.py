"""Expected rewards against an adversary's moves, and the best fixed action in hindsight."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cbo_gym.feedback.adversarial import AdversarialFeedback
from cbo_gym.oracle.plain import TIE_DECIMALS, Estimate, Oracle, Scores
from cbo_gym.scm import Intervention
from cbo_gym.scm.system import Draws
from cbo_gym.task import Action, Observation

SAME_MOVE = 9  # decimals to which moves are one


class AdversarialOracle(Oracle):
    """E[Y | a, a'] of actions a and an adversary's moves a'.

    What an action is worth by itself is against one move in all rounds, the one that is worst for an agent that plays
    at random; the optimum is the best action against it, and scales scores. A run is judged by the moves that were made
    in it: its regret is counted, round by round, from the action with the greatest sum of expected rewards over them.

    Args:
        feedback: the problem, played in adversarial mode.
        seed: of the quasi-Monte Carlo points.
        recorded: the optimum, where it has been searched for already.
    """

    feedback: AdversarialFeedback
    best_changes: ClassVar[bool] = True

    def _rewards(self, intervention: Intervention, noise: Draws) -> np.ndarray:
        if len(intervention.soft) < self.scm.action_dim:
            game = self.feedback.game
            intervention = self.feedback.against(intervention, game.moves[game.worst])
        return super()._rewards(intervention, noise)

    def expected_in_round(self, intervention: Intervention, seen: Observation) -> Estimate:
        """Against the move by which actions are judged by themselves, whatever the adversary is about to do."""
        own = self.scm.action_dim - len(self.feedback.move_domains)
        return self.mean_of(Intervention(intervention.soft[:own]))

    def expected_against(self, actions: np.ndarray, moves: np.ndarray, tolerance: float | None = None) -> Estimate:
        """E[Y | a, a'] of every action with every move.

        Args:
            actions: shape ``(n, q)``, elements of the action space.
            moves: shape ``(m, k)``, in [0, 1].
            tolerance: standard error to reach, as of :meth:`expected_rewards`.

        Returns:
            arrays of shape ``(n, m)``.
        """
        shape = len(actions), len(moves)
        repeated = self.feedback.decode_batch(np.repeat(actions, len(moves), axis=0))
        both = self.feedback.against(repeated, np.tile(moves, (len(actions), 1)))
        return Estimate(*(part.reshape(shape) for part in self.mean_of(both, tolerance)))

    def score(self, played: list[Action], recommended: list[Action], seen: list[Observation]) -> Scores:
        """Of the actions played against the moves that they met; of recommendations against all moves of the run.

        The best is, in each round, what the best fixed action in hindsight would have earned; for recommendations it is
        the mean of that.
        """
        met = np.stack([one["adversary"] for one in seen[1:]])
        _, firsts, rounds = np.unique(np.round(met, SAME_MOVE), axis=0, return_index=True, return_inverse=True)
        moves, rounds = met[firsts], rounds.reshape(-1)
        shares = np.bincount(rounds) / len(rounds)
        hindsight = self.expected_against(self.feedback.all_actions(), moves).value
        best = hindsight[np.argmax(np.round(hindsight @ shares, TIE_DECIMALS))]
        own, places = np.unique(self._stacked([*played, *recommended]), axis=0, return_inverse=True)
        first, second = np.split(places.reshape(-1), [len(played)])
        table = self.expected_against(own, moves)
        expected = Estimate(*(part[first, rounds] for part in table))
        mean = Estimate(*((part @ shares)[second] for part in table))
        return Scores(expected, mean, best[rounds], np.full(len(rounds), best @ shares))
