"""CoCaBO: contextual causal Bayesian optimisation (Arsenyan, Grosnit, Bou-Ammar & Dalalyan), Algorithms 1 and 2.

A *scope* is a set of variables, each with the contexts on which its value may depend. The possibly optimal mixed policy
scopes of the causal diagram are the arms of a bandit; scopes with equal variables and contexts are one arm. Each arm i
has a GP from its variables x and contexts c to the reward. A round picks the arm with the highest
``U_i + rho_i(n) / sqrt(n_i)``, where U_i is an average over contexts (see :mod:`cbo_gym.agents.scopes.arm_index`), and
plays the x of the arm that maximises ``mean + sqrt(beta_i(n)) std`` in the observed context.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from cbo_gym._util.arguments import require_not_negative, require_truth_value, require_word
from cbo_gym.agent import Agent
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.common.policy_scopes import Members, members
from cbo_gym.agents.scopes.arm_index import ArmIndex, HighestBounds, RunningAverages
from cbo_gym.agents.scopes.scope_arm import BACKENDS, Backend, ScopeArm
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.scopes import pomps
from cbo_gym.task import Action, ContextualTask, Info, Mode, Observation

# Probability delta with which the bounds may fail.
CONFIDENCE = 0.1
# Default of the argument beta.
BETA = 0.05

Index = Literal["posterior", "published"]
INDICES: dict[str, Callable[[], ArmIndex]] = {"posterior": HighestBounds, "published": RunningAverages}


class CoCaBO(Agent):
    """A bandit over scopes with contextual GP-UCB inside each. Plays contextual tasks.

    Args:
        beta: factor of beta_i(n), whose square root multiplies the standard deviation; finite, at least 0.
        rho: factor of rho_i(n), the exploration bonus of an arm; finite, at least 0.
        index: the value U_i of an arm: ``"posterior"`` for the highest bounds of its present model, ``"published"`` for
            Algorithm 2: running averages, after one play of each arm.
        backend: kind of the arms' GPs: ``"plain"`` (squared exponential), ``"warped"`` (inputs and outputs, after
            HEBO), or ``"botorch"`` (the default of BoTorch).
        use_contexts: whether arms use their contexts; False for the paper's ablation.
        device: torch device.

    Attributes:
        arms: the scopes among which the agent chooses, each with its own model.

    Raises:
        ArgumentError: if an argument is out of range; by :meth:`reset` if the task offers no scope that can be an arm.
    """

    modes = frozenset({Mode.CONTEXTUAL})
    task: ContextualTask

    def __init__(
        self,
        beta: float = BETA,
        rho: float = 0.1,
        index: Index = "posterior",
        backend: Backend = "plain",
        use_contexts: bool = True,
        device: str = "cpu",
    ) -> None:
        self.beta = require_not_negative("beta", beta)
        self.rho = require_not_negative("rho", rho)
        self.index: Index = require_word("index", index, INDICES)
        self.backend: Backend = require_word("backend", backend, BACKENDS)
        self.use_contexts = require_truth_value("use_contexts", use_contexts)
        self.device = require_device(device)

    def setup(self, seed: int) -> None:
        # Contexts of past rounds, and of the present one.
        self._contexts: list[np.ndarray] = []
        self._context = np.zeros(len(self.task.contexts))
        self._played: ScopeArm | None = None
        self._arm_values = INDICES[self.index]()
        self.arms = []
        for scope, relevant_contexts in self.choose_scopes():
            contexts = relevant_contexts if self.use_contexts else frozenset()
            self._warn_of_changes(members(self.task.scopes[scope])[0], contexts)
            arm_seed = int(self.rng.integers(2**31))
            self.arms.append(ScopeArm(self.task, scope, contexts, self.backend, arm_seed, self.device))

    def _warn_of_changes(self, variables: frozenset[str], contexts: frozenset[str]) -> None:
        """Warn if the diagram is known and setting the variables changes contexts on which their values depend."""
        if self.task.graph.diagram is None:
            return
        changed = sorted(contexts & self.task.diagram.mutilate(variables).descendants(variables))
        if changed:
            warnings.warn(
                f"{self.task.env_id}: setting {sorted(variables)} changes {changed}, which the values set depend on; "
                "the agent sees their values before the round, not those after the action. Offer a scope without them "
                "to avoid this",
                stacklevel=2,
            )

    def choose_scopes(self) -> list[tuple[int, frozenset[str]]]:
        """Return the arms: indices of the task's scopes, and their relevant contexts.

        The arms are the possibly optimal scopes over the variables and contexts of the task's scopes, without redundant
        scopes. A possibly optimal scope is played through a scope of the task that sets the same variables and allows
        at least its contexts.
        """
        task = self.task
        offered = [members(scope) for scope in task.scopes]
        useful = [scope for scope in offered if any(scope[0] == best for best, _ in self._possibly_optimal([scope]))]
        if not any(variables for variables, _ in useful):
            set_variables = [sorted(variables) for variables, _ in offered if variables]
            alternatives = sorted(
                f"{sorted(variables)} by {sorted(contexts)}"
                for variables, contexts in self._possibly_optimal(offered)
                if variables
            )
            raise ArgumentError(
                f"{task.env_id} offers no scope that is worth playing: those that set something, {set_variables}, are "
                f"redundant on its diagram; scopes that are not: {alternatives}"
            )
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
        """Return variables and contexts of the possibly optimal scopes over the variables and contexts offered."""
        variables = frozenset().union(*[settable for settable, _ in offered])
        contexts = frozenset().union(*[allowed for _, allowed in offered])
        return set(map(members, pomps(self.task.diagram, self.task.reward, variables, contexts)))

    def act(self, observation: Observation) -> Action:
        self.set_context(observation["context"])
        seed = int(self.rng.integers(2**31))
        self._played = self._pick()
        if len(self._played.rounds) < self._arm_values.filling:
            return self._played.first_action()
        return self._played.act(self._context, self._arm_values.within * self._width(self._played), seed)

    def set_context(self, context: np.ndarray) -> None:
        self._context = context.copy()

    def _pick(self) -> ScopeArm:
        first_plays = self._arm_values.first_plays(len(self.arms), self.task.horizon)
        rarest = min(self.arms, key=lambda arm: len(arm.rounds))
        if len(rarest.rounds) < first_plays or len(self.arms) == 1:
            return rarest
        contexts = np.stack([*self._contexts, self._context])
        return max(self.arms, key=lambda arm: self.score(arm, contexts))

    def score(self, arm: ScopeArm, contexts: np.ndarray) -> float:
        """Return the index of a played arm, ``U_i + rho_i(n) / sqrt(n_i)``, given the contexts of all rounds."""
        bonus = self.rho * float(arm.gp.noise_scale) * self._growth(arm) / math.sqrt(len(arm.rounds))
        return self._arm_values.value(arm, contexts, self._width(arm)) + bonus

    def _width(self, arm: ScopeArm) -> float:
        return math.sqrt(self.beta * self._growth(arm))

    def _growth(self, arm: ScopeArm) -> float:
        """Return ``beta_i(n) / beta``, which is also ``rho_i(n) / rho`` in standard deviations of the noise."""
        plays = self._arm_values.plays(arm, 1 + len(self.history))
        return math.log(len(self.arms) * arm.dim * plays / CONFIDENCE)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        if (arm := self._arm_of(action)) is not None:
            self._arm_values.record(arm, action, self._context, self._width(arm))
            arm.observe(action, self._context, float(reward), len(self.history))
        self._contexts.append(self._context)
        self.set_context(observation["context"])
        super().update(action, observation, reward, info)

    def _arm_of(self, action: Action) -> ScopeArm | None:
        """Return the arm of an action, which the agent need not have chosen; ``None`` if no arm has its scope."""
        arms = [arm for arm in self.arms if arm.scope == int(action["scope"])]
        if self._played in arms:
            return self._played
        return arms[0] if arms else None

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        arm = self._arm_of(action)
        return {} if arm is None or not arm.rounds else {self.task.reward: arm.bound_of(action, self._context, 0.0)}

    def recommend(self) -> Action:
        """Return the best action of the arm with the most plays, in the last context.

        If no arm has been played yet, return the best action of the other rounds.
        """
        most_played = max(self.arms, key=lambda arm: len(arm.rounds))
        return most_played.recommend(self._context) if most_played.rounds else super().recommend()

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the posterior of each scope's most-played arm; ``None`` for a scope without plays."""
        by_scope = {arm.scope: arm for arm in sorted(self.arms, key=lambda arm: len(arm.rounds)) if arm.rounds}
        scopes = np.array([int(action["scope"]) for action in actions])
        if not set(scopes.tolist()) <= by_scope.keys():
            return None
        values = np.stack([action["values"] for action in actions])
        posterior = np.empty((2, len(actions)))
        for scope in np.unique(scopes):
            posterior[:, scopes == scope] = by_scope[int(scope)].posterior(values[scopes == scope], self._context)
        return posterior[0], posterior[1]

    def estimated_rewards(self) -> np.ndarray:
        """Return estimates of E[Y | x, c] for every round, in its context; rewards for rounds without an arm."""
        estimates = super().estimated_rewards()
        for arm in self.arms:
            if arm.rounds:
                estimates[arm.rounds] = arm.estimates()
        return estimates
