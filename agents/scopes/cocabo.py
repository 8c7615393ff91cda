"""CoCaBO: contextual causal Bayesian optimisation (Arsenyan, Grosnit, Bou-Ammar & Dalalyan), Algorithms 1 and 2.

The possibly optimal mixed policy scopes of the causal diagram are the arms of a bandit; those with equal variables and
contexts are one arm. Each arm i has a GP from its variables x and contexts c to the reward. A round

1. picks the arm with the highest ``U_i + rho_i(n) / sqrt(n)``, where ``U_i`` is the running average of the upper
   confidence bounds at the points at which the arm was evaluated, and n their number;
2. plays in it the x that maximises ``mean + sqrt(beta_i(n)) std`` at the context that was observed;
3. updates that arm alone.

Averages over contexts are compared, and not the acquisition values of this round's context, since a context that is
good for one arm would otherwise look like a good arm.

Departures:

* beta_i and rho_i grow as ``log(m d n / delta)``, the theorem's rate, without its factor d (the larger of the numbers
  of variables and contexts) and its constant: these give bounds that hold for any function and explore for ever.
  rho is relative to the standard deviation of the rewards seen.
* An arm's average is levelled to the contexts of all rounds, by a linear regression of its bounds on its contexts.
  The paper's arms draw their own contexts; here every arm sees those of all rounds, and without levelling a few good
  contexts decide between the arms for hundreds of rounds.
* The bounds in an arm's average are those of the present posterior at the points that it played, not those of the
  time when it played them: the optimism of the first rounds would otherwise hide for hundreds of rounds which arm is
  better.
* Every arm is first played eight times, not once, with random values, as HEBO begins with random points: without
  them a GP whose variables have hardly varied may never learn that they interact with the contexts.
* Kernels are Matern 5/2 with a Gamma(3, 6) prior of the lengthscales, BoTorch's default for many years. With its
  present default, which is made for many dimensions, half of the runs on CoCaFig1 took the reward for linear in X1:
  they played the ends of its domain alone and never saw that the middle is better.
* Hyper-parameters are fitted. The default model is the plain one, which was no worse and takes less time; the one
  after HEBO is in :mod:`cbo_gym.agents.surrogates.warped_gp`. HEBO's own acquisition functions are not used.
* Where the task offers fewer scopes than the diagram has, what none of its useful scopes sets counts as not
  manipulable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cbo_gym.agent import Agent
from cbo_gym.agents.scopes.scope_arm import BACKENDS, Backend, ScopeArm
from cbo_gym.agents.toolbox.arguments import require_not_negative, require_word
from cbo_gym.agents.toolbox.policy_scopes import Members, members
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.scopes import pomps
from cbo_gym.task import Action, ContextualTask, Info, Mode, Observation

CONFIDENCE = 0.1  # delta


class CoCaBO(Agent):
    """A bandit over scopes with contextual GP-UCB inside each. Plays contextual tasks.

    Args:
        beta: factor of beta_i(n), whose square root multiplies the standard deviation; finite, at least 0.
        rho: factor of rho_i(n), the exploration of arms; finite, at least 0.
        backend: the arms' model: ``"plain"`` (Matern 5/2) or ``"warped"`` (inputs and outputs, after HEBO).
        use_contexts: False lets all arms ignore their contexts (the paper's ablation).
        device: torch device.

    Attributes:
        arms: the scopes among which it chooses, each with a model of its own.

    Raises:
        ArgumentError: if an argument is out of range; by :meth:`reset` if the task offers no scope that can be an arm.
    """

    modes = frozenset({Mode.CONTEXTUAL})
    task: ContextualTask

    def __init__(
        self,
        beta: float = 0.1,
        rho: float = 0.4,
        backend: Backend = "plain",
        use_contexts: bool = True,
        device: str = "cpu",
    ) -> None:
        require_not_negative("beta", beta)
        require_not_negative("rho", rho)
        require_word("backend", backend, BACKENDS)
        self.beta = beta
        self.rho = rho
        self.backend: Backend = backend
        self.use_contexts = use_contexts
        self.device = device

    def setup(self, seed: int) -> None:
        self._contexts: list[np.ndarray] = []
        self.arms = [
            ScopeArm(self.task, scope, contexts if self.use_contexts else (), self.backend, self.device)
            for scope, contexts in self.choose_scopes()
        ]

    def choose_scopes(self) -> list[tuple[int, frozenset[str]]]:
        """The arms: indices of the task's scopes, and the contexts that matter there.

        They are the possibly optimal scopes over what the task's scopes set and see, without those scopes of the task
        that are redundant, as "set everything" often is. A possibly optimal scope is played through one of the task's
        that sets the same variables and allows at least its contexts.
        """
        task = self.task
        offered = [members(scope) for scope in task.scopes]
        useful = [one for one in offered if one[0] in {variables for variables, _ in self._possibly_optimal([one])}]
        arms = {
            (index, contexts)
            for variables, contexts in self._possibly_optimal(useful)
            for index, (settable, allowed) in enumerate(offered)
            if settable == variables and contexts <= allowed
        }
        if not arms:
            raise ArgumentError(f"{task.env_id} offers none of the possibly optimal scopes of its diagram")
        return sorted(arms, key=lambda arm: (arm[0], sorted(arm[1])))

    def _possibly_optimal(self, offered: Sequence[Members]) -> set[Members]:
        """Classes of possibly optimal scopes over all that is set and seen in some of the scopes offered."""
        variables = frozenset().union(*[settable for settable, _ in offered])
        contexts = frozenset().union(*[allowed for _, allowed in offered])
        return set(map(members, pomps(self.task.diagram, self.task.reward, variables, contexts)))

    def act(self, observation: Observation) -> Action:
        self._contexts.append(observation["context"].copy())
        self._played = max(self.arms, key=self.index)
        width = self._width(self._played)
        return self._played.act(self._contexts[-1], width, seed=int(self.rng.integers(2**31)))

    def index(self, arm: ScopeArm) -> float:
        """What picks the arm; infinite while it is new."""
        if arm.is_new:
            return math.inf
        spread = float(np.std([past.reward for past in self.history]))
        bonus = self.rho * spread * self._growth(arm) / math.sqrt(len(arm.rounds))
        return arm.average_bound(np.stack(self._contexts), self._width(arm)) + bonus

    def _width(self, arm: ScopeArm) -> float:
        return math.sqrt(self.beta * self._growth(arm))

    def _growth(self, arm: ScopeArm) -> float:
        """log(m d n / delta)."""
        return math.log(len(self.arms) * arm.dim * (1 + len(arm.rounds)) / CONFIDENCE)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        self._played.observe(action, self._contexts[-1], float(reward), len(self.history))
        super().update(action, observation, reward, info)

    def recommend(self) -> Action:
        """What the arm that was played most would repeat in the context that was observed last.

        Raises:
            ArgumentError: if nothing has been played yet.
        """
        if not self.history:
            raise ArgumentError("nothing has been played yet, so there is nothing to recommend")
        most_played = max(self.arms, key=lambda arm: len(arm.rounds))
        return most_played.recommend(self.history[-1].observation["context"])

    def estimated_rewards(self) -> np.ndarray:
        """Estimates of E[Y | x, c] for every round of ``history``, in its own context."""
        estimates = np.empty(len(self.history))
        for arm in self.arms:
            if arm.rounds:
                estimates[arm.rounds] = arm.estimates()
        return estimates
