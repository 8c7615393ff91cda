"""Forecasts of the outcome of a trial: intervals of every modelled variable, and whether constraints will hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from cbo_gym.study.units import Units
from cbo_gym.task import Action

# Numbers of draws of outcomes, for quantiles, and of expected values.
DRAWS = 2000
EXPECTATION_DRAWS = 1000
ENDS = (0.025, 0.975)
# Number of played actions that may become the recommendation in place of a suggestion.
MAX_RIVALS = 16
# Number of variables whose intervals the reason of a suggestion states.
MAX_IN_WORDS = 4


class Forecast(NamedTuple):
    """What the agent's model forecasts for one new trial, its noise included.

    Attributes:
        intervals: variable that is not set -> the ends of its 95 % interval, in the study's units.
        probabilities: constraint -> probability that the outcome of the trial meets it.
    """

    intervals: Mapping[str, tuple[float, float]]
    probabilities: Mapping[str, float]

    @property
    def in_words(self) -> str:
        """The forecast as a part of a sentence; empty without one."""
        # The product of an earlier trial is known, so its interval has no width.
        shown = [f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in self.intervals.items() if low < high]
        if len(shown) > MAX_IN_WORDS:
            shown[MAX_IN_WORDS - 1 :] = [f"{len(shown) - MAX_IN_WORDS + 1} more variables in what-if"]
        intervals = f"; 95 % of outcomes: {', '.join(shown)}" if shown else ""
        return intervals + "".join(f"; {name} with {percent(share)}" for name, share in self.probabilities.items())


NOTHING = Forecast({}, {})


def percent(probability: float) -> str:
    """Return a probability in words: ``93 %``, ``<1 %`` or ``>99 %``."""
    if 0.0 < probability < 1.0 and not 0.01 <= probability <= 0.99:
        return "<1 %" if probability < 0.5 else ">99 %"
    return f"{100.0 * probability:.0f} %"


def forecast(units: Units, agent: Any, actions: Sequence[Action]) -> list[Forecast]:
    """Return forecasts of new trials; empty ones if the agent has no model that gives them."""
    return _from_draws(units, sample(agent, actions, DRAWS), actions)


def _from_draws(units: Units, draws: Mapping[str, np.ndarray] | None, actions: Sequence[Action]) -> list[Forecast]:
    if draws is None:
        return [NOTHING] * len(actions)
    return [_summarize_draws(units, {name: values[:, column] for name, values in draws.items()}, action)
            for column, action in enumerate(actions)]  # fmt: skip


def forecasts_in_words(units: Units, agent: Any, actions: Sequence[Action]) -> list[str]:
    """Return in words the forecast of each suggestion, and its probability of becoming the recommendation."""
    outcomes = sample(agent, actions, DRAWS)
    chances = [
        "" if chance is None else f"; becomes the recommendation with {percent(chance)}"
        for chance in leading_chances(agent, actions, outcomes)
    ]
    pairs = zip(_from_draws(units, outcomes, actions), chances, strict=True)
    return [predicted.in_words + chance for predicted, chance in pairs]


def sample(agent: Any, actions: Sequence[Action], count: int, *, noise: bool = True) -> Mapping[str, np.ndarray] | None:
    """Return :meth:`cbo_gym.agent.Agent.sample_outcomes`; None for an agent without it."""
    sample_outcomes = getattr(agent, "sample_outcomes", None)
    return None if sample_outcomes is None else sample_outcomes(list(actions), count, noise=noise)


def _summarize_draws(units: Units, draws: Mapping[str, np.ndarray], action: Action) -> Forecast:
    done = units.native_values(action) if units.interface.sets_variables else {}
    # Objectives first, then the constrained variables.
    constraints = units.interface.problem.outcomes.constraints
    order = dict.fromkeys([*units.objectives, *(limit.node for limit in constraints), *draws])
    intervals = {}
    for name in order:
        if name in draws and name not in done and name not in units.categories and not np.isnan(draws[name]).any():
            ends = np.quantile(draws[name], ENDS)
            intervals[name] = np.concatenate(units.to_ends(ends[:1], ends[1:])) if units.objectives == (name,) else ends
    probabilities = {}
    for limit in constraints:
        if limit.node in done:
            probabilities[str(limit)] = float(limit.excess(done[limit.node]) <= 0.0)
        elif limit.node in draws and not np.isnan(draws[limit.node]).any():
            probabilities[str(limit)] = float(np.mean(limit.excess(draws[limit.node]) <= 0.0))
    return Forecast({name: (float(low), float(high)) for name, (low, high) in intervals.items()}, probabilities)


def leading_chances(
    agent: Any, actions: Sequence[Action], outcomes: Mapping[str, np.ndarray] | None
) -> list[float | None]:
    """Return for each action the probability that its outcome makes it the recommendation.

    Constraints are ignored: the recommendation is taken to be the action with the highest expected reward among this,
    the present recommendation and the best played ones. An outcome y, standardised to z, moves the difference of the
    expected rewards of two actions by ``z Cov(difference, y) / std(y)`` (Frazier, Powell & Dayanik 2009, The
    knowledge-gradient policy for correlated normal beliefs). None for the present recommendation, with several
    objectives, and for agents without a joint posterior.

    Args:
        agent: the agent.
        actions: the actions.
        outcomes: draws of their outcomes; None for an agent without a joint posterior.
    """
    if outcomes is None or agent.task.objectives:
        return [None] * len(actions)
    if np.isnan(outcomes[agent.task.reward]).any():
        return [None] * len(actions)
    recommended, codec = agent.recommend(), agent.task.codec
    rivals_played = [agent.history[index].action for index in np.argsort(-agent.estimated_rewards())[:MAX_RIVALS]]
    rivals = [recommended, *rivals_played]
    expected = sample(agent, [*rivals, *actions], EXPECTATION_DRAWS, noise=False)
    if expected is None:
        return [None] * len(actions)
    rewards, points = expected[agent.task.reward], [codec.to_point(rival) for rival in rivals]
    is_known = ~np.isnan(rewards[:, : len(rivals)]).any(axis=0)
    chances: list[float | None] = []
    for column, action in enumerate(actions):
        draws_of_action, point = rewards[:, len(rivals) + column], codec.to_point(action)
        is_other = is_known & [not np.allclose(rival, point, atol=1e-6) for rival in points]
        leads = draws_of_action[:, None] - rewards[:, : len(rivals)][:, is_other]
        # Draws of expectations may scatter more than those of outcomes.
        spread = max(float(outcomes[agent.task.reward][:, column].std()), float(draws_of_action.std()), 1e-300)
        steps = (draws_of_action - draws_of_action.mean()) @ leads / (len(draws_of_action) - 1) / spread
        if not is_other[0] or not steps.any():
            chances.append(None)
            continue
        # The action leads a rival if z is above an end, or below it, as the sign of the step says.
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = -leads.mean(axis=0) / steps
        low, high = ends[steps > 0.0].max(initial=-np.inf), ends[steps < 0.0].min(initial=np.inf)
        always_leads = (leads.mean(axis=0)[steps == 0.0] > 0.0).all()
        chances.append(max(0.0, float(ndtr(high) - ndtr(low))) if always_leads else 0.0)
    return chances
