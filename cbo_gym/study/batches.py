"""Batches of partial mode, in which a trial can use what an earlier trial has made instead of making it again.

A product is an intermediate variable that an action makes and measures, such as biomass. A batch is the product of one
trial; a later trial with the same inputs can use it, and has its measured value.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import numpy as np

from cbo_gym.study.trials import Entry
from cbo_gym.study.units import Units
from cbo_gym.task import SAME_INPUT, Action


def batches(units: Units, action: Action, entries: Iterable[Entry], before: float = inf) -> dict[str, int]:
    """Return the batches that an action can use: product -> number of the last trial that made it from the same inputs.

    If the action is that of a trial, ``before`` is the number of the trial, so that only earlier trials count.
    """
    products = list(units.interface.products(action).items())[:-1]
    if not products:
        return {}
    inputs, used = np.array(units.codec.to_numbers(action)), dict[str, int]()
    for entry in entries:
        # close() keeps the products of a trial, fail() does not.
        if entry.number < before and entry.status != "failed":
            is_same = np.abs(units.codec.to_numbers(units.from_flat(entry.action)) - inputs) <= SAME_INPUT
            for product, columns in products:
                if entry.values.get(product) is not None and is_same[columns].all():
                    used[product] = entry.number
    return used


def instructions(units: Units, action: Action, entries: Iterable[Entry]) -> str:
    """Return which products a new trial measures and which batches it uses, in words; empty without products."""
    used, products = batches(units, action, entries), units.interface.products(action)
    if not products:
        return ""
    measure = f"measure {', then '.join(name for name in products if name not in used)}"
    notes = [f"{name} of trial {number}" for name, number in used.items()]
    return f"{measure}, with the {' and the '.join(notes)}; " if notes else f"{measure}; "
