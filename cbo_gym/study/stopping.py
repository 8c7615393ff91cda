"""When to stop: the probability that a better action exists, and the gain and the cost of the next trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbo_gym._util.arguments import require_positive
from cbo_gym.actions.codec import ArmCodec
from cbo_gym.study.budget import Spending
from cbo_gym.study.digits import round_digits
from cbo_gym.study.forecast import percent, sample
from cbo_gym.study.units import Units
from cbo_gym.task import Action

# Smallest improvement that matters by default, as a share of the range of the rewards so far.
DELTA_SHARE = 0.05
# Candidates are random actions, and actions around the best of these and of the played ones, at distances from RADII.
RANDOM_ACTIONS, BEST_ACTIONS, ACTIONS_AROUND_EACH = 512, 16, 16
RADII = (0.02, 0.05, 0.15)
# Numbers of candidates that are compared with the recommendation: those with the highest upper confidence bounds, and
# random ones.
HIGHEST_CANDIDATES, RANDOM_CANDIDATES = 64, 96
# Number of joint draws of their expected rewards.
DRAWS = 500
# Distance of an upper confidence bound from the mean, in standard deviations.
WIDTH = 2.0
# Number of draws of a candidate, and the smallest share of them that must meet the constraints.
FEASIBILITY_DRAWS, MIN_FEASIBLE_SHARE = 32, 0.05


@dataclass(frozen=True, repr=False)
class Stopping:
    """What speaks for and against another trial, by the agent's model. It changes no suggestion.

    Attributes:
        delta: the smallest improvement of the reward that matters, in its units.
        probability: probability that an action is better than the recommendation by at least ``delta`` in expectation,
            and meets the constraints; None if the agent has no model that gives it.
        gain: expected improvement of the next trial over the recommendation, in the reward's units. The next trial is
            the best pending one; without pending trials, the action with the largest gain.
        do: action of the next trial, by name.
        cost: cost of the next trial; None without costs.
        spending: the costs of all trials; None without costs.
        reason: why there is no probability; otherwise empty.
        unit: unit of the reward.
    """

    delta: float | None
    probability: float | None = None
    gain: float | None = None
    do: Mapping[str, Any] | None = None
    cost: float | None = None
    spending: Spending | None = None
    reason: str = ""
    unit: str = ""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is known, as pairs of a name and a value in words."""
        facts = []
        if self.probability is not None:
            facts += [
                (f"Probability of an action better by {self._amount(self.delta)}", percent(self.probability)),
                ("Expected gain of the next trial", self._amount(self.gain)),
            ]
        if self.cost is not None:
            facts.append(("Cost of the next trial", f"{self.cost:.4g}"))
        if self.spending is not None:
            spent, committed, budget = self.spending
            pending = f", and {committed:.4g} for pending trials" if committed else ""
            limit = "" if budget is None else f" of {budget:.4g}"
            facts.append(("Spent", f"{spent:.4g}{limit}{pending}"))
            if (remaining := self.spending.remaining) is not None:
                facts.append(("Remaining", f"{remaining:.4g}" if remaining >= 0.0 else f"exceeded by {-remaining:.4g}"))
        return facts

    def _amount(self, value: float | None) -> str:
        return f"{value:.3g} {self.unit}".strip()

    def __repr__(self) -> str:
        facts = [f"{name[:1].lower()}{name[1:]}: {value}" for name, value in self.facts]
        return f"Stopping({'; '.join([*facts, self.reason] if self.reason else facts)})"


def find_stopping(
    units: Units,
    agent: Any,
    recommended: Action,
    pending: Sequence[Action],
    costs: Spending | None,
    delta: float | None,
    no_posterior: Callable[[], str],
) -> Stopping:
    """Return what speaks for and against another trial.

    The expected rewards of many actions are drawn jointly from the posterior. The probability is the share of draws in
    which an action is better than the recommendation by ``delta`` (Wilson 2024, Stopping Bayesian optimization with
    probabilistic regret bounds).

    The agent is a copy, and ``no_posterior`` returns the reason if it has no joint posterior of expected rewards. For
    ``delta`` see :meth:`Study.stopping`.
    """
    unit = units.description.units.get(units.objectives[0], "")
    delta = units.description.delta if delta is None else require_positive("delta", delta)
    # The agent's rewards are in [0, 1] if there is a range.
    low, high = units.reward_range or (0.0, 1.0)
    scale = high - low
    rewards = [played.reward for played in agent.history if played.reward != units.interface.unfinished]
    if delta is None and (spread := scale * float(np.ptp(rewards or [0.0]))) > 0.0:
        delta = DELTA_SHARE * spread
    if delta is None:
        return Stopping(None, spending=costs, reason="all rewards are equal so far; give delta", unit=unit)
    actions = _candidates(units, agent, [recommended, *pending])
    draws = None if actions is None else sample(agent, actions, DRAWS, noise=False)
    if actions is None or draws is None:
        return Stopping(delta, spending=costs, reason=no_posterior(), unit=unit)
    rewards_drawn = draws[units.objectives[0]]
    # The first column is the recommendation, the next ones are the pending trials.
    gains = np.where(_feasible(units, draws), rewards_drawn - rewards_drawn[:, :1], -np.inf)
    expected_gains = np.clip(gains, 0.0, None).mean(axis=0)
    columns = range(1, 1 + len(pending)) if pending else range(len(actions))
    best = max(columns, key=lambda column: expected_gains[column])
    return Stopping(
        delta=float(delta),
        probability=float(np.mean(gains.max(axis=1) >= delta / scale)),
        gain=float(expected_gains[best]) * scale,
        do=units.native_values(actions[best]),
        cost=units.cost(actions[best]),
        spending=costs,
        unit=unit,
    )


def _feasible(units: Units, draws: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return whether draws meet the constraints, in the shape of the draws; unknown values count as met."""
    feasible = np.ones_like(draws[units.objectives[0]], dtype=bool)
    for limit in units.interface.problem.outcomes.constraints:
        if limit.node in draws:
            feasible &= ~(limit.excess(draws[limit.node]) > 0.0)
    return feasible


def _candidates(units: Units, agent: Any, first: Sequence[Action]) -> list[Action] | None:
    """Return the actions ``first`` and candidates within the limits; None if the agent cannot predict their rewards.

    The candidates are from random actions, played actions, and actions around the best of both: those with the highest
    upper confidence bounds, and some that are chosen at random.
    """
    codec = units.codec
    if isinstance(codec, ArmCodec):
        return [*first, *range(len(codec.arms))]
    # The first coordinates of a point are the choice of a set, the last ones are the values.
    rng, dim = np.random.default_rng(0), len(codec.domains)
    points = rng.random((RANDOM_ACTIONS, codec.to_point(first[0]).size))
    points[:, -dim:] = codec.domains.from_uniform(points[:, -dim:])
    first = [codec.to_recommendation(action) for action in first]
    past_actions = [codec.to_recommendation(units.nearest(played.action)) for played in agent.history]
    actions = [*first, *_legal(units, points), *past_actions]
    bounds = _upper_bounds(units, agent, actions)
    if bounds is None:
        return None
    centres = [codec.to_point(actions[index]) for index in np.argsort(-bounds)[:BEST_ACTIONS]]
    points = np.repeat(centres, ACTIONS_AROUND_EACH, axis=0)
    radii = rng.choice(RADII, (len(points), 1))
    # A step changes each coordinate with a probability of 0.7.
    points[:, -dim:] += radii * rng.standard_normal((len(points), dim)) * (rng.random((len(points), dim)) < 0.7)
    around = _legal(units, points.clip(0.0, 1.0))
    bounds_around = _upper_bounds(units, agent, around)
    assert bounds_around is not None
    actions, bounds = actions + around, np.concatenate([bounds, bounds_around])
    indices = [*np.argsort(-bounds)[:HIGHEST_CANDIDATES], *rng.choice(len(actions), RANDOM_CANDIDATES)]
    return [*first, *(actions[index] for index in indices)]


def _legal(units: Units, points: np.ndarray) -> list[Action]:
    """Return the actions within the limits that are nearest to points ``n x dim``."""
    codec = units.codec
    return [round_digits(codec, codec.to_recommendation(codec.to_action(point))) for point in points]


def _upper_bounds(units: Units, agent: Any, actions: Sequence[Action]) -> np.ndarray | None:
    """Return upper confidence bounds of expected rewards, minus infinity for actions that hardly meet the constraints.

    None if the agent cannot predict the rewards.
    """
    posterior = agent.reward_posterior(actions) if hasattr(agent, "reward_posterior") else None
    if posterior is None:
        return None
    bounds = posterior[0] + WIDTH * posterior[1]
    if units.interface.problem.outcomes.constraints:
        # Joint draws of fewer actions take less memory.
        count = 1 + len(actions) // (HIGHEST_CANDIDATES + RANDOM_CANDIDATES)
        for indices in np.array_split(np.arange(len(actions)), count):
            draws = sample(agent, [actions[index] for index in indices.tolist()], FEASIBILITY_DRAWS, noise=False)
            if draws is not None:
                feasible_shares = _feasible(units, draws).mean(axis=0)
                bounds[indices[feasible_shares < MIN_FEASIBLE_SHARE]] = -np.inf
    return bounds
