"""The cost of trials, and what is left of a study's budget."""

from __future__ import annotations

from collections.abc import Iterable
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
        """The budget minus the costs of ended and pending trials, below 0 if exceeded; None without a budget."""
        return None if self.budget is None else self.budget - self.spent - self.committed


def trial_cost(units: Units, entry: Entry, entries: Iterable[Entry]) -> float:
    """Return what a trial costs, without the products of earlier ones among ``entries``; 0 if there are no costs."""
    action = units.from_flat(entry.action)
    return units.cost(action, batches(units, action, entries, before=entry.number)) or 0.0


def spending(units: Units, trials: Iterable[Entry]) -> Spending | None:
    """Return what the trials cost; None if there are no costs."""
    if units.interface.costs is None:
        return None
    costs: dict[bool, list[float]] = {True: [], False: []}
    entries = list(trials)
    for entry in entries:
        if entry.status != "rejected":
            costs[entry.is_running].append(trial_cost(units, entry, entries))
    return Spending(float(add_up(costs[False])), float(add_up(costs[True])), units.description.budget)


def budget_remarks(units: Units, trials: Iterable[Entry], actions: Iterable[Action]) -> list[str]:
    """Return a remark for each new action; empty if the budget covers it and the actions before it."""
    entries = list(trials)
    costs = spending(units, entries)
    if costs is None or (remaining := costs.remaining) is None:
        return [""] * len(list(actions))
    remarks = []
    for action in actions:
        cost = units.cost(action, batches(units, action, entries)) or 0.0
        remarks.append(
            f"; beyond the budget: {max(remaining, 0.0):.4g} of {costs.budget:.4g} is left, and the trial costs "
            f"{cost:.4g}"
            if cost > remaining
            else ""
        )
        remaining -= cost
    return remarks
