"""Batches: intermediate products of earlier trials, which a trial uses with their measured values."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import numpy as np

from cbo_gym.study.trials import Entry
from cbo_gym.study.units import Units
from cbo_gym.task import SAME_INPUT, Action


def batches(units: Units, action: Action, entries: Iterable[Entry], before: float = inf) -> dict[str, int]:
    """Return the batches that an action can use: product -> number of the last trial that made it from the same inputs.

    Args:
        units: the units of the study.
        action: the action.
        entries: the trials of the study.
        before: number of the trial that plays the action; only earlier trials count.
    """
    products = list(units.interface.products(action).items())[:-1]
    if not products:
        return {}
    inputs, used = np.array(units.codec.to_numbers(action)), dict[str, int]()
    for entry in entries:
        if entry.number < before:
            same = np.abs(units.codec.to_numbers(units.from_flat(entry.action)) - inputs) <= SAME_INPUT
            made = [name for name, columns in products if entry.values.get(name) is not None and same[columns].all()]
            used |= dict.fromkeys(made, entry.number)
    return used


def instructions(units: Units, action: Action, entries: Iterable[Entry]) -> str:
    """Return which products a new trial measures and which batches it uses, in words; empty without products."""
    used, products = batches(units, action, entries), units.interface.products(action)
    if not products:
        return ""
    measured = [name for name in products if name not in used]
    notes = [f"{name} of trial {number}" for name, number in used.items()]
    return f"measure {', then '.join(measured)}" + (f", with the {' and the '.join(notes)}" if notes else "") + "; "
