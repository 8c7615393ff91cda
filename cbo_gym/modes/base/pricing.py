"""Prices in a mode: a user's costs, converted to prices of the items that the mode's actions set or change.

An item is a variable, a parameter, a base arm or a node to buy. Users may also price all parameters of a node by its
name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from cbo_gym.actions import Costs
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr


class Priceable(NamedTuple):
    """The items of a mode's actions that may have a price.

    Attributes:
        items: name that users may price -> the items that get this price.
        sets: sets of items that actions may change, with the empty set if actions may change nothing.
        origin: item -> native value from which its change is counted; None if users give it.
        units: whether items change by an amount, so that they can have a price per unit.
    """

    items: Mapping[str, tuple[str, ...]]
    sets: Collection[frozenset[str]]
    origin: Mapping[str, float] | None = None
    units: bool = True


def fit_costs(costs: Costs, subject: str, priceable: Priceable, nodes: Sequence[str], visible: Sequence[str]) -> Costs:
    """Return costs with prices by item, and prices of observation for the nodes that agents see.

    Args:
        costs: a user's costs.
        subject: problem and mode, as error messages name them.
        priceable: the items of the mode.
        nodes: all observed nodes.
        visible: nodes that agents see.

    Raises:
        ArgumentError: if a name is unknown, an item is priced twice, an intervention would cost nothing, or the mode
            does not take the given prices per unit or references.
    """
    for argument in ("variables", "per_unit", "reference", "observed"):
        names = nodes if argument == "observed" else priceable.items
        _require_known(f"{subject}: costs, {argument}", getattr(costs, argument), names)
    _require_known(f"{subject}: costs, sets", [name for items in costs.sets for name in items], priceable.items)
    if costs.per_unit and not priceable.units:
        raise ArgumentError(f"{subject}: costs cannot have per_unit, because an action selects an item or not")
    if costs.reference and priceable.origin is not None:
        raise ArgumentError(f"{subject}: costs cannot have reference; change is counted from the null action")
    if unpriced := sorted(set(costs.reference) - set(costs.per_unit)):
        raise ArgumentError(f"{subject}: costs have a reference but no price per_unit of {unpriced}")
    per_unit = _by_item(subject, costs.per_unit, priceable)
    fitted = replace(
        costs,
        variables=_by_item(subject, costs.variables, priceable),
        per_unit=per_unit,
        sets={frozenset(i for name in names for i in priceable.items[name]): p for names, p in costs.sets.items()},
        reference=costs.reference if priceable.origin is None else {name: priceable.origin[name] for name in per_unit},
        observed={name: price for name, price in costs.observed.items() if name in visible},
    )
    if free := next((items for items in priceable.sets if items and not fitted.fixed_cost(items)), None):
        raise ArgumentError(
            f"{subject}: costs leave an intervention on {sorted(free)} without a fixed price; give a price of each of "
            "these, of the set, or a base"
        )
    return fitted


def _require_known(subject: str, names: Collection[str], priceable: Collection[str]) -> None:
    if unknown := [name for name in names if name not in priceable]:
        hint = did_you_mean(unknown[0], priceable)
        raise ArgumentError(
            f"{subject}: {short_repr(unknown)} cannot be priced; choose from {short_repr(list(priceable))}{hint}"
        )


def _by_item(subject: str, prices: Mapping[str, float], priceable: Priceable) -> dict[str, float]:
    by_item: dict[str, float] = {}
    for name, price in prices.items():
        for item in priceable.items[name]:
            if item in by_item:
                raise ArgumentError(f"{subject}: costs price {item!r} twice, once by its node's name")
            by_item[item] = price
    return by_item
