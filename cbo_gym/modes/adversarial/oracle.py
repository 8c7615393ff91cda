"""Expected rewards against an adversary's moves, and the best fixed action in hindsight."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cbo_gym.modes.adversarial.dynamics import AdversarialDynamics
from cbo_gym.modes.oracles.plain import TIE_DECIMALS, Estimate, Oracle, Scores
from cbo_gym.scm import Intervention
from cbo_gym.scm.system import Draws
from cbo_gym.task import Action, Observation

# Number of decimals to which moves are compared.
MOVE_DECIMALS = 9


class AdversarialOracle(Oracle):
    """E[Y | a, a'] of actions a and an adversary's moves a'.

    The expected reward of an action alone is against one fixed move, the worst one for an agent that plays at random;
    the optimum is the best action against it, and normalises scores. The regret of a run is measured, round by round,
    from the action with the greatest sum of expected rewards over the moves of that run.
    """

    dynamics: AdversarialDynamics
    best_changes: ClassVar[bool] = True

    def _rewards(self, intervention: Intervention, noise: Draws) -> np.ndarray:
        if len(intervention.soft) < self.scm.action_dim:
            game = self.dynamics.game
            intervention = self.dynamics.against(intervention, game.moves[game.worst])
        return super()._rewards(intervention, noise)

    def expected_in_round(self, intervention: Intervention, observation: Observation) -> Estimate:
        """Return the expected reward against the fixed move, which may differ from the adversary's next move."""
        count = self.scm.action_dim - len(self.dynamics.move_domains)
        return self.mean_of(Intervention(intervention.soft[:count]))

    def expected_against(self, actions: np.ndarray, moves: np.ndarray, tolerance: float | None = None) -> Estimate:
        """Return E[Y | a, a'] of every action with every move, shape ``(n, m)``.

        Args:
            actions: elements of the action space, shape ``(n, q)``.
            moves: moves in [0, 1], shape ``(m, k)``.
            tolerance: standard error to reach, as for :meth:`expected_rewards`.
        """
        shape = len(actions), len(moves)
        repeated = self.dynamics.decode_batch(np.repeat(actions, len(moves), axis=0))
        interventions = self.dynamics.against(repeated, np.tile(moves, (len(actions), 1)))
        return Estimate(*(array.reshape(shape) for array in self.mean_of(interventions, tolerance)))

    def score(self, actions: list[Action], recommended: list[Action], observations: list[Observation]) -> Scores:
        """Score the actions played against the moves that they met, and recommendations against all moves of the run.

        The best in a round is the reward of the best fixed action in hindsight, and for recommendations its mean.
        """
        moves_played = np.stack([observation["adversary"] for observation in observations[1:]])
        rounded = np.round(moves_played, MOVE_DECIMALS)
        _, first_rounds, move_of_round = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        moves, move_of_round = moves_played[first_rounds], move_of_round.reshape(-1)
        frequencies = np.bincount(move_of_round) / len(move_of_round)
        hindsight = self.expected_against(self.dynamics.all_actions(), moves).value
        best = hindsight[np.argmax(np.round(hindsight @ frequencies, TIE_DECIMALS))]
        distinct, rows = np.unique(self._stack([*actions, *recommended]), axis=0, return_inverse=True)
        played_rows, recommended_rows = np.split(rows.reshape(-1), [len(actions)])
        table = self.expected_against(distinct, moves)
        expected = Estimate(*(array[played_rows, move_of_round] for array in table))
        mean = Estimate(*((array @ frequencies)[recommended_rows] for array in table))
        return Scores(expected, mean, best[move_of_round], np.full(len(actions), best @ frequencies))
