"""The cost of trials, and what is left of a study's budget."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from cbo_gym._util.summation import add_up
from cbo_gym.study.batches import batches
from cbo_gym.study.trials import Entry
from cbo_gym.study.units import Units
from cbo_gym.task import Action


class Spending(NamedTuple):
    """The costs of a study's trials, in the units of its costs.

    Attributes:
        spent: cost of the trials that ended, failed ones included; rejected ones and imported data cost nothing.
        committed: cost of the pending and partial trials.
        budget: the budget; None without one.
    """

    spent: float
    committed: float
    budget: float | None

    @property
    def remaining(self) -> float | None:
        """The budget minus the costs of all trials, below 0 if it is exceeded; None without a budget."""
        return None if self.budget is None else self.budget - self.spent - self.committed


def trial_cost(units: Units, entry: Entry, entries: Iterable[Entry]) -> float:
    """Return what a trial costs beyond the products that it takes from earlier ``entries``; 0 without costs."""
    action = units.from_flat(entry.action)
    return units.cost(action, batches(units, action, entries, before=entry.number)) or 0.0


def spending(units: Units, trials: Iterable[Entry]) -> Spending | None:
    """Return what the trials cost; None if there are no costs."""
    if units.interface.costs is None:
        return None
    entries, ended, running = list(trials), list[float](), list[float]()
    for entry in entries:
        if entry.status != "rejected":
            (running if entry.is_running else ended).append(trial_cost(units, entry, entries))
    return Spending(float(add_up(ended)), float(add_up(running)), units.description.budget)


def budget_remarks(units: Units, trials: Iterable[Entry], actions: Iterable[Action]) -> list[str]:
    """Return a remark for each new action; empty if the budget covers it and the actions before it."""
    entries, remarks = list(trials), []
    costs = spending(units, entries)
    remaining = inf if costs is None or costs.remaining is None else costs.remaining
    for action in actions:
        cost, remark = units.cost(action, batches(units, action, entries)) or 0.0, ""
        if costs is not None and cost > remaining:
            left = f"{max(remaining, 0.0):.4g} of {costs.budget:.4g} is left"
            remark = f"; beyond the budget: {left}, and the trial costs {cost:.4g}"
        remarks.append(remark)
        remaining -= cost
    return remarks
