"""Prices in a mode: a problem's costs, in the names of what the mode's actions set or change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from cbo_gym.actions import Costs
from cbo_gym.errors import ArgumentError, did_you_mean, shown


class Priceable(NamedTuple):
    """The items of a mode's actions that may have a price.

    Attributes:
        items: what prices may name -> the items that it stands for.
        sets: of items that actions may change, enough to tell whether any is free.
        origin: item -> native value from which its change is counted; None where users state it.
        units: whether change has units.
    """

    items: Mapping[str, tuple[str, ...]]
    sets: Collection[frozenset[str]]
    origin: Mapping[str, float] | None = None
    units: bool = True


def fitted(costs: Costs, where: str, priceable: Priceable, nodes: Sequence[str], seen: Sequence[str]) -> Costs:
    """The costs with each price under its item's name, of observing the prices of nodes that are seen.

    Args:
        costs: as the user gives them.
        where: problem and mode, for errors.
        priceable: of the mode.
        nodes: that may be observed.
        seen: those that agents are told of.

    Raises:
        ArgumentError: if a name is unknown, an item is priced twice, an intervention would cost nothing, or the mode
            has no units of change or no reference to state.
    """
    for part in ("variables", "per_unit", "reference", "observed"):
        _require_known(
            f"{where}: costs, {part}", getattr(costs, part), nodes if part == "observed" else priceable.items
        )
    _require_known(f"{where}: costs, sets", [name for items in costs.sets for name in items], priceable.items)
    if costs.per_unit and not priceable.units:
        raise ArgumentError(f"{where}: costs cannot have per_unit, since an action only lets through or not")
    if costs.reference and priceable.origin is not None:
        raise ArgumentError(f"{where}: costs cannot have reference; change is counted from the null action")
    if strangers := sorted(set(costs.reference) - set(costs.per_unit)):
        raise ArgumentError(f"{where}: costs have a reference but no price per_unit of {strangers}")
    own = replace(
        costs,
        variables=_by_item(where, costs.variables, priceable),
        per_unit=(per_unit := _by_item(where, costs.per_unit, priceable)),
        sets={frozenset(i for name in names for i in priceable.items[name]): p for names, p in costs.sets.items()},
        reference=costs.reference if priceable.origin is None else {name: priceable.origin[name] for name in per_unit},
        observed={name: price for name, price in costs.observed.items() if name in seen},
    )
    if free := next((items for items in priceable.sets if items and not own.fixed(items)), None):
        raise ArgumentError(
            f"{where}: costs leave an intervention on {sorted(free)} without a fixed price; give one of each of these, "
            f"of the set, or a base"
        )
    return own


def _require_known(what: str, given: Collection[str], known: Collection[str]) -> None:
    if strangers := [name for name in given if name not in known]:
        hint = did_you_mean(strangers[0], known)
        raise ArgumentError(f"{what}: {shown(strangers)} cannot be priced; choose from {shown(list(known))}{hint}")


def _by_item(where: str, prices: Mapping[str, float], priceable: Priceable) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, price in prices.items():
        for item in priceable.items[name]:
            if item in found:
                raise ArgumentError(f"{where}: costs price {item!r} twice, once by its node's name")
            found[item] = price
    return found
