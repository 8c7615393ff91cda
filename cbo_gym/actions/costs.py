"""Costs of rounds: the prices of what an action sets or changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from cbo_gym._util.arguments import is_finite_number
from cbo_gym._util.summation import add_up
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr

# Item -> price.
Prices = Mapping[str, float]
# Item -> mask of the rounds in which it is set or changed, and its native value in each round.
Changed = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Costs:
    """The prices of a problem.

    A round in which an action sets or changes some items costs

    base + observed nodes + (price of the set of items, or else of each item) + sum of per_unit |value - reference|.

    Items are the variables that an action sets, or its soft parameters or base arms. Items without a price are free.

    Args:
        base: price of every round.
        variables: item -> price of setting or changing it.
        sets: set of items -> price of setting or changing exactly these, instead of the sum of their own prices.
        per_unit: item -> price of a native unit between its value and its reference.
        reference: item -> native reference value; 0 by default.
        observed: node -> price of observing it. All are observed in every round, so this adds a constant.

    Raises:
        ArgumentError: if a price is not a finite number above 0, a reference is not finite, a set is empty, or there
            are no prices.
    """

    base: float = 0.0
    variables: Prices = field(default_factory=dict)
    sets: Mapping[frozenset[str], float] = field(default_factory=dict)
    per_unit: Prices = field(default_factory=dict)
    reference: Prices = field(default_factory=dict)
    observed: Prices = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets", {_members(key): price for key, price in _mapping("sets", self.sets).items()})
        if not (is_finite_number(self.base) and self.base >= 0.0):
            raise ArgumentError(f"costs: base must be a finite number of at least 0; given {short_repr(self.base)}")
        for argument in ("variables", "sets", "per_unit", "observed"):
            for name, price in _mapping(argument, getattr(self, argument)).items():
                if not (is_finite_number(price) and price > 0.0):
                    raise ArgumentError(
                        f"costs: the price of {_format_item(name)} in {argument} must be a finite number above 0; "
                        f"given {short_repr(price)}"
                    )
        for name, value in _mapping("reference", self.reference).items():
            if not is_finite_number(value):
                raise ArgumentError(
                    f"costs: the reference of {short_repr(name)} must be a finite number; given {short_repr(value)}"
                )
        if not (self.base or self.variables or self.sets or self.per_unit or self.observed):
            raise ArgumentError("costs must have at least one price; give None for no costs")

    @classmethod
    def read(cls, source: Any) -> Costs:
        """Read costs: item -> price, or the arguments of the class by name, or Costs.

        Raises:
            ArgumentError: if ``source`` has another form, an argument is unknown, or as the class.
        """
        if isinstance(source, cls):
            return source
        arguments = [argument.name for argument in fields(cls)]
        if not isinstance(source, Mapping):
            raise ArgumentError(
                f"costs map names to prices, or are some of {arguments} by name; given {short_repr(source)}"
            )
        if not set(source) & set(arguments):
            return cls(variables=dict(source))
        if unknown := [name for name in source if name not in arguments]:
            raise ArgumentError(
                f"costs by argument take only {arguments}; given also {short_repr(unknown)}"
                f"{did_you_mean(unknown[0], arguments)}"
            )
        return cls(**source)

    @cached_property
    def constant(self) -> float:
        """Cost of a round in which nothing is set or changed."""
        return float(self.base + add_up(self.observed.values()))

    def fixed_cost(self, items: Collection[str]) -> float:
        """Return the cost of setting or changing these items, without prices per unit."""
        price_of_set = self.sets.get(frozenset(items)) if items else None
        return self.constant + float(self._sum_of_prices(items) if price_of_set is None else price_of_set)

    def of(self, changed: Changed) -> Any:
        """Return the cost of rounds: an array or tensor of their shape, or a number if it is the same in all.

        Args:
            changed: item -> ``(mask, value)``: whether the item is set or changed in each round (True for all rounds),
                and its native value; each is a number, or an array or a tensor of the shape of the rounds.
        """
        total: Any = self.constant
        for name, (mask, value) in changed.items():
            price, unit, reference = self._terms.get(name, (0.0, 0.0, 0.0))
            price_of_change = price + unit * abs(value - reference) if unit else price
            total = total + mask * price_of_change
        for items, price in self.sets.items():
            if items <= changed.keys():
                total = total + _exactly(items, changed) * (price - self._sum_of_prices(items))
        return total

    def _sum_of_prices(self, items: Collection[str]) -> Any:
        # Sorted, because the order of a set differs between processes.
        return add_up(self.variables.get(name, 0.0) for name in sorted(items))

    def describe(self) -> list[str]:
        """Return each price as a string: ``X0 1``, ``{X0, X1} 3``, ``0.5 a unit of X0 from 2``."""
        lines = [f"a round {self.base:g}"] if self.base else []
        lines += [f"{name} {price:g}" for name, price in self.variables.items()]
        lines += [f"{_format_item(items)} {price:g}" for items, price in self.sets.items()]
        for name, price in self.per_unit.items():
            origin = f" from {self.reference[name]:g}" if name in self.reference else ""
            lines.append(f"{price:g} a unit of {name}{origin}")
        return lines + [f"seeing {name} {price:g}" for name, price in self.observed.items()]

    @cached_property
    def _terms(self) -> dict[str, tuple[float, float, float]]:
        """Item -> its price, its price per unit and its reference."""
        names = {**self.variables, **self.per_unit}
        return {n: (self.variables.get(n, 0.0), self.per_unit.get(n, 0.0), self.reference.get(n, 0.0)) for n in names}


def _exactly(items: frozenset[str], changed: Changed) -> Any:
    """Return the mask of the rounds in which exactly these items are changed."""
    is_equal: Any = True
    for name, (mask, _) in changed.items():
        # Exclusive or negates booleans, arrays and tensors alike.
        is_equal = is_equal & (mask if name in items else mask ^ True)
    return is_equal


def _members(key: Any) -> frozenset[str]:
    """Return a set of items from names with commas between them, or from a collection of names."""
    names = key.split(",") if isinstance(key, str) else key
    if not (isinstance(names, Collection) and all(isinstance(name, str) for name in names)):
        raise ArgumentError(
            f"costs: a set is names with commas, 'X1, X2', or a tuple of names; given {short_repr(key)}"
        )
    members = frozenset(name.strip() for name in names)
    if not members or "" in members:
        raise ArgumentError(
            f"costs: a set must have a member (setting nothing costs the base); given {short_repr(key)}"
        )
    return members


def _mapping(argument: str, value: Any) -> Mapping[Any, float]:
    if not isinstance(value, Mapping):
        raise ArgumentError(f"costs: {argument} must map names to numbers; given {short_repr(value)}")
    return value


def _format_item(name: Any) -> str:
    return "{" + ", ".join(sorted(name)) + "}" if isinstance(name, frozenset) else short_repr(name)
