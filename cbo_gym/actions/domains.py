"""Domains of action coordinates: types of values, and conversion between [0, 1] and native units.

A coordinate is a number in [0, 1], which agents see; its native value is in the system's own units, which users see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cbo_gym._util.arguments import is_finite_number, whole_number
from cbo_gym.actions.spaces import GridBox
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.scm.values import Interval, Number

# Largest distance, in steps, at which a number counts as a level.
ON_LEVEL = 1e-9
# Numbers on a logarithmic scale are clipped at this share of the lower end.
LEAST_SHARE = 1e-6
MAX_LEVELS = 1_000_000
MAX_CATEGORIES = 100
MAX_DIGITS = 10
# Rounding error of numbers on a linear scale, as a share of the largest one.
RESOLUTION = 1e-15
# Coordinate of a variable that an action does not set.
UNSET = 0.5


class Scale(NamedTuple):
    """Native interval of one coordinate: its lower end and its length."""

    low: float
    span: float

    def to_native(self, value: Number) -> Number:
        """Return the native value of a coordinate in [0, 1]."""
        low, span = self
        return low + span * value

    def to_unit(self, native: Number) -> Number:
        """Return the coordinate of a native value; outside [0, 1] if the value is outside the interval."""
        return (native - self.low) / self.span


class TypedDomain(tuple[float, float]):
    """The native interval ``(low, high)`` of a coordinate, with the type of its values: scale, levels or categories.

    Attributes:
        levels: number of allowed values, whose coordinates are equally spaced in [0, 1]; None if all are allowed.
        categories: labels of the values 0, 1, ...; empty for numbers.
    """

    levels: int | None = None
    categories: tuple[str, ...] = ()

    @property
    def low(self) -> float:
        """Lower end."""
        return self[0]

    @property
    def high(self) -> float:
        """Upper end."""
        return self[1]

    def to_native(self, value: Number) -> Number:
        """Return the native value of a coordinate in [0, 1]: a number or an array, NumPy's or torch's."""
        assert self.levels is not None
        steps = self.levels - 1
        return self.low + (self.high - self.low) / steps * _snap(steps * value)

    def to_unit(self, native: Number) -> Number:
        """Return the coordinate of a native value, which need not be on a level or in the interval."""
        assert self.levels is not None
        steps = self.levels - 1
        return _snap((native - self.low) * steps / (self.high - self.low)) / steps

    def number(self, value: Any) -> float:
        """Return the native number of a value that a user gives, which may be outside the interval.

        Raises:
            ArgumentError: if it is not a value of the domain; the message continues "the value of X".
        """
        if not is_finite_number(value):
            raise ArgumentError(f"must be a finite number; given {short_repr(value)}")
        return float(value)

    def label(self, number: float) -> Any:
        """Return a native number as users write it."""
        return float(number)

    def in_words(self) -> str:
        """Return the allowed values in words, such as ``1 to 8, whole numbers``."""
        return f"{self.low:g} to {self.high:g}"

    def to_mapping(self) -> dict[str, Any]:
        """Return the form in files, which :func:`read_domain` takes."""
        return {"low": self.low, "high": self.high}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and tuple.__eq__(self, other) and vars(self) == vars(other)

    # ``tuple`` defines ``__ne__`` itself.
    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), *self, *vars(self).values()))

    def __reduce__(self) -> tuple[object, ...]:
        return read_domain, (self.to_mapping(),)


class Range(TypedDomain):
    """Numbers from ``low`` to ``high``.

    Attributes:
        low: lower end.
        high: upper end.
        step: distance of the values that can be set, ``low``, ``low + step``, ...; None for all numbers.
        scale: ``"linear"``, or ``"log"`` for numbers that vary by factors, such as doses.
        digits: number of significant digits to which a study rounds its suggestions and recommendations; other
            numbers remain allowed. None for all digits.

    Raises:
        ArgumentError: if ``low`` is not below ``high`` or not above 0 on a logarithmic scale, the step does not divide
            the interval, a logarithmic scale or digits have a step, or an end has more digits.
    """

    step: float | None
    scale: Literal["linear", "log"]
    digits: int | None

    def __new__(
        cls,
        low: float,
        high: float,
        *,
        step: float | None = None,
        scale: Literal["linear", "log"] = "linear",
        digits: int | None = None,
    ) -> Range:
        low, high = _ends("Range", low, high)
        levels = None
        if scale not in ("linear", "log"):
            raise ArgumentError(f"the scale of a Range is 'linear' or 'log'; given {short_repr(scale)}")
        if scale == "log" and low <= 0.0:
            raise ArgumentError(f"a Range with scale='log' needs low above 0; given {low:g}")
        if scale == "log" and step is not None:
            raise ArgumentError("a Range with scale='log' has no step; leave one of them out")
        if step is not None:
            if not (is_finite_number(step) and step > 0.0):
                raise ArgumentError(f"the step of a Range must be a finite number above 0; given {short_repr(step)}")
            step, steps = float(step), (high - low) / step
            if steps > MAX_LEVELS:
                raise ArgumentError(f"a Range has at most {MAX_LEVELS:,} steps; given {steps:.3g}, from step={step:g}")
            if round(steps) < 1 or abs(steps - round(steps)) > 1e-6 * steps:
                below, above = low + step * max(1, int(steps)), low + step * max(1, int(steps) + 1)
                raise ArgumentError(
                    f"the step of a Range must divide high - low; given Range({low:g}, {high:g}, step={step:g}): end "
                    f"it at {below:g} or {above:g}"
                )
            levels = round(steps) + 1
        self = tuple.__new__(cls, (low, high))
        self.step, self.scale, self.levels, self.digits = step, scale, levels, None
        if digits is not None:
            if step is not None:
                raise ArgumentError("a Range has a step or digits; leave one of them out")
            self.digits = whole_number("digits", digits, at_least=1, at_most=MAX_DIGITS)
            for end in self:
                if end not in (rounded := self.round(end)):
                    raise ArgumentError(
                        f"the ends of a Range with digits={digits} must have at most {digits} significant digits; "
                        f"given {end:.12g}: end it at {' or '.join(f'{number:g}' for number in sorted(rounded))}"
                    )
        return self

    @property
    def is_linear(self) -> bool:
        """Whether the range allows all numbers, on a linear scale."""
        return self.step is None and self.scale == "linear"

    @property
    def is_plain(self) -> bool:
        """Whether the range says no more than a pair ``(low, high)``."""
        return self.is_linear and self.digits is None

    def round(self, number: float) -> list[float]:
        """Return the one or two numbers with :attr:`digits` digits next to a number, the nearest first."""
        assert self.digits is not None
        # Twelve digits hide rounding errors, as of 0.1 + 0.2; adding 0.0 turns -0.0 into 0.0.
        decimal = f"{number:.12g}"
        either_side = {
            float(Context(prec=self.digits, rounding=rounding).create_decimal(decimal)) + 0.0
            for rounding in (ROUND_FLOOR, ROUND_CEILING)
        }
        return sorted(either_side, key=lambda rounded: (abs(rounded - number), rounded))

    def to_native(self, value: Number) -> Number:
        if self.levels is not None:
            return super().to_native(value)
        if self.is_linear:
            return Scale(self.low, self.high - self.low).to_native(value)
        return self.low * (self.high / self.low) ** value

    def to_unit(self, native: Number) -> Number:
        if self.levels is not None:
            return super().to_unit(native)
        if self.is_linear:
            return Scale(self.low, self.high - self.low).to_unit(native)
        ratio = native / self.low
        # torch's tensors are not arrays of NumPy.
        is_tensor = hasattr(ratio, "clamp_min")
        log = ratio.clamp_min(LEAST_SHARE).log() if is_tensor else np.log(np.maximum(ratio, LEAST_SHARE))
        return log / math.log(self.high / self.low)

    def number(self, value: Any) -> float:
        number = super().number(value)
        if self.scale == "log" and number < self.low * LEAST_SHARE:
            raise ArgumentError(
                f"must be at least {self.low * LEAST_SHARE:g}, because its scale is logarithmic; given {number:g}"
            )
        return number

    def in_words(self) -> str:
        words = super().in_words()
        if self.step is not None:
            words += f" in steps of {self.step:g}"
        if self.scale == "log":
            words += ", on a log scale"
        if self.digits is not None:
            words += ", 1 digit" if self.digits == 1 else f", {self.digits} digits"
        return words

    def label(self, number: float) -> float:
        if self.digits is not None and self.is_linear:
            nearest = self.round(number)[0]
            if abs(nearest - number) <= RESOLUTION * max(map(abs, self)):
                return nearest
        # Hide rounding errors, as of 0.1 + 0.2.
        return float(f"{number:.12g}")

    @property
    def _options(self) -> dict[str, Any]:
        options = {"step": self.step, "scale": self.scale, "digits": self.digits}
        return {name: value for name, value in options.items() if value not in (None, "linear")}

    def to_mapping(self) -> dict[str, Any]:
        return super().to_mapping() | self._options

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={value!r}" if isinstance(value, str) else f", {name}={value:g}"
            for name, value in self._options.items()
        )
        return f"Range({self.low:g}, {self.high:g}{options})"


class Integer(TypedDomain):
    """Whole numbers from ``low`` to ``high``, both included.

    Raises:
        ArgumentError: unless these are whole numbers, ``low`` below ``high``.
    """

    def __new__(cls, low: int, high: int) -> Integer:
        ends = _ends("Integer", low, high)
        if not all(end.is_integer() for end in ends):
            raise ArgumentError(f"the ends of an Integer must be whole numbers; given {low!r} and {high!r}")
        if ends[1] - ends[0] > MAX_LEVELS:
            raise ArgumentError(f"an Integer has at most {MAX_LEVELS:,} steps; use Range({low}, {high})")
        self = tuple.__new__(cls, ends)
        self.levels = int(ends[1] - ends[0]) + 1
        return self

    def number(self, value: Any) -> float:
        number = super().number(value)
        if not number.is_integer():
            raise ArgumentError(f"must be a whole number; given {number:g}")
        return number

    def in_words(self) -> str:
        return f"{super().in_words()}, whole numbers"

    def label(self, number: float) -> int | float:
        return round(number) if abs(number - round(number)) < ON_LEVEL else float(number)

    def to_mapping(self) -> dict[str, Any]:
        return {"type": "integer", "low": int(self.low), "high": int(self.high)}

    def __repr__(self) -> str:
        return f"Integer({self.low:.0f}, {self.high:.0f})"


class Categorical(TypedDomain):
    """One of several categories without an order, such as media; the number of a category is its index.

    Attributes:
        categories: their names, at least two.

    Raises:
        ArgumentError: unless these are different strings that are not blank.
    """

    def __new__(cls, categories: Iterable[str]) -> Categorical:
        is_list = isinstance(categories, Iterable) and not isinstance(categories, str)
        names = list(categories) if is_list else []
        if not 2 <= len(names) <= MAX_CATEGORIES:
            raise ArgumentError(
                f"a Categorical needs a list of 2 to {MAX_CATEGORIES} categories; given {short_repr(categories)}"
            )
        if wrong := [name for name in names if not isinstance(name, str) or not name or name.strip() != name]:
            raise ArgumentError(
                "categories must be strings without white space at their ends; given "
                f"{short_repr(wrong[0])}: write {str(wrong[0]).strip()!r}"
            )
        if len(set(names)) < len(names):
            raise ArgumentError(f"categories must be different; given {short_repr(names)}")
        self = tuple.__new__(cls, (0.0, len(names) - 1.0))
        self.categories, self.levels = tuple(names), len(names)
        return self

    def number(self, value: Any) -> float:
        # Spreadsheets and forms turn a label such as "250" into a number.
        value = f"{value:.12g}" if is_finite_number(value) else value
        if value not in self.categories:
            raise ArgumentError(
                f"must be one of {', '.join(map(repr, self.categories))}; given {short_repr(value)}"
                f"{did_you_mean(value, self.categories) if isinstance(value, str) else ''}"
            )
        return float(self.categories.index(value))

    def in_words(self) -> str:
        return ", ".join(self.categories)

    def label(self, number: float) -> str:
        return self.categories[round(number)]

    def to_mapping(self) -> dict[str, Any]:
        return {"categories": list(self.categories)}

    def __repr__(self) -> str:
        return f"Categorical({list(self.categories)})"


def read_domain(value: Any) -> Any:
    """Return a :class:`TypedDomain` from its form in files; return any other value unchanged.

    The forms are ``{low: 0.001, high: 1, scale: log, digits: 2}``, ``{low: 5.5, high: 7.5, step: 0.1}``,
    ``{type: integer, low: 1, high: 8}``, ``{categories: [A, B]}`` and ``[A, B]``.

    Raises:
        ArgumentError: if the value is a list or a mapping, but none of these forms.
    """
    if isinstance(value, list | tuple) and value and all(isinstance(name, str) for name in value):
        return Categorical(value)
    if isinstance(value, list | tuple) and len(value) > 2:
        raise ArgumentError(
            f"a list has two bounds, or categories as strings; given {short_repr(value)}; write even steps as "
            "Range(0, 5, step=1), in a file {low: 0, high: 5, step: 1}, and other levels as categories"
        )
    if not isinstance(value, Mapping):
        return value
    fields = dict(value)
    word = fields.pop("type", "categorical" if "categories" in fields else "range")
    if not isinstance(word, str) or word not in FORMS:
        raise ArgumentError(f"the type must be one of {', '.join(FORMS)}; given {short_repr(word)}")
    domain_class, keys = FORMS[word]
    if unknown := [name for name in fields if name not in keys]:
        raise ArgumentError(
            f"a domain of type {word} has the keys {', '.join(keys)}; given also {short_repr(unknown[0])}"
            f"{did_you_mean(unknown[0], keys)}"
        )
    if missing := [name for name in keys if name not in (*fields, *OPTIONAL)]:
        raise ArgumentError(f"a domain of type {word} needs {' and '.join(missing)}")
    return domain_class(**fields)


def validate_domain(value: Any, validate_pair: Callable[[Any], Any]) -> Any:
    """Return the domain of :func:`read_domain`, or a pair validated by ``validate_pair``; used by pydantic."""
    domain = read_domain(value)
    return domain if isinstance(domain, TypedDomain) else validate_pair(domain)


def _ends(name: str, low: object, high: object) -> tuple[float, float]:
    if not (is_finite_number(low) and is_finite_number(high) and low < high):  # type: ignore[operator]
        raise ArgumentError(f"{name} needs low < high, two finite numbers; given {short_repr(low)}, {short_repr(high)}")
    return float(low), float(high)  # type: ignore[arg-type]


def _snap(steps: Number) -> Number:
    """Round those numbers of steps that are almost whole, in arithmetic that suits floats, arrays and tensors."""
    nearest = (steps + 0.5) - (steps + 0.5) % 1.0
    off = steps - nearest
    return nearest + off * (abs(off) > ON_LEVEL)


# Keywords of a Range.
OPTIONAL = ("step", "scale", "digits")
# Type in files -> class, and its arguments.
FORMS: dict[str, tuple[Callable[..., TypedDomain], tuple[str, ...]]] = {
    "range": (Range, ("low", "high", *OPTIONAL)),
    "integer": (Integer, ("low", "high")),
    "categorical": (Categorical, ("categories",)),
}


@dataclass(frozen=True)
class SelectedScale:
    """Mechanism of a masked parameter: its native value, or the native value of ``null`` if it is not selected.

    The first argument is the masked signal, which is 0 if the parameter is not selected; the third, the noise, is
    ignored.
    """

    low: float
    span: float
    null: float

    def __call__(self, signal: Number, selected: Number, _: Number) -> Number:
        return self.low + self.span * (signal + (1.0 - selected) * self.null)


class Domains:
    """Native domains of action coordinates, which are in [0, 1].

    Args:
        intervals: name -> native ``(low, high)`` or :class:`TypedDomain`, in the order of the coordinates; or a
            sequence of these. The coordinates are then named ``a0``, ``a1``, ...

    Attributes:
        names: names of the coordinates.
        named: whether the caller gave the names.
        intervals: native ``(low, high)`` of each coordinate, some of which may be a :class:`TypedDomain`.
        scales: conversion of each coordinate.
        levels: number of equally spaced values in [0, 1] that each coordinate may have; None if it may have all.
        is_plain: whether all coordinates are numbers of a linear scale, perhaps with digits.
    """

    def __init__(self, intervals: Mapping[str, Interval] | Sequence[Interval]) -> None:
        self.named = isinstance(intervals, Mapping)
        if not isinstance(intervals, Mapping):
            intervals = {f"a{index}": interval for index, interval in enumerate(intervals)}
        self.names: tuple[str, ...] = tuple(intervals)
        self.intervals: tuple[Interval, ...] = tuple(map(_reduce, intervals.values()))
        self.scales = tuple(map(_scale, self.intervals))
        self.levels = tuple(domain.levels if isinstance(domain, TypedDomain) else None for domain in self.intervals)
        self.is_plain = all(isinstance(scale, Scale) for scale in self.scales)
        low, high = np.asarray(self.intervals, dtype=float).reshape(-1, 2).T
        self._low, self._span = low, high - low

    def __len__(self) -> int:
        return len(self.intervals)

    def to_native(self, columns: Iterable[Number]) -> list[Number]:
        """Return native values, given one number or array for each coordinate.

        Floats are not converted to arrays, because this is called in every step.
        """
        # Callers have checked the number of columns.
        if not self.is_plain:
            return [scale.to_native(column) for scale, column in zip(self.scales, columns)]  # noqa: B905
        return [low + span * column for (low, span), column in zip(self.scales, columns)]  # noqa: B905

    def points_to_native(self, points: ArrayLike) -> np.ndarray:
        """Return native values of points of shape ``(..., q)``."""
        points = np.asarray(points, dtype=float)
        if not self.is_plain:
            return np.stack(self.to_native(np.moveaxis(points, -1, 0)), -1)
        return self._low + self._span * points

    @cached_property
    def grid(self) -> GridBox | None:
        """The levels of the coordinates as a space; None if none has levels."""
        return GridBox(len(self), self.levels) if any(self.levels) else None

    def round(self, points: ArrayLike) -> np.ndarray:
        """Return the nearest allowed values of points of shape ``(..., q)``, which are in [0, 1]."""
        values = np.asarray(points, dtype=float)
        return values if self.grid is None else self.grid.nearest(values)

    def from_uniform(self, points: np.ndarray) -> np.ndarray:
        """Return allowed values, all levels equally likely, from uniform points of the unit box."""
        return points if self.grid is None else self.grid.from_uniform(points)

    @cached_property
    def unset(self) -> np.ndarray:
        """Coordinates of variables that an action does not set, shape ``(q,)``."""
        return self.round(np.full(len(self), UNSET))

    @cached_property
    def typed(self) -> dict[str, TypedDomain]:
        """Name -> domain, of the coordinates whose domain is more than a pair of numbers."""
        pairs = zip(self.names, self.intervals, strict=True)
        return {name: domain for name, domain in pairs if isinstance(domain, TypedDomain)}

    @cached_property
    def category_counts(self) -> dict[int, int]:
        """Coordinate that is a category -> the number of categories."""
        counts = {index: len(self.categories(index)) for index in range(len(self))}
        return {index: count for index, count in counts.items() if count}

    def categories(self, index: int) -> tuple[str, ...]:
        """Return the categories of a coordinate; empty for numbers."""
        domain = self.intervals[index]
        return domain.categories if isinstance(domain, TypedDomain) else ()

    def labels(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return native values by name as users write them, with the labels of categories."""
        typed = self.typed
        return {name: typed[name].label(value) if name in typed else value for name, value in values.items()}

    def number(self, name: str, value: Any) -> Any:
        """Return the native number of a value that a user gives to a coordinate.

        Raises:
            ArgumentError: "the value of X must be ...", for a wrong value of a typed domain; other numbers are not
                checked.
        """
        domain = self.intervals[self.names.index(name)]
        if not isinstance(domain, TypedDomain):
            return value
        try:
            return domain.number(value)
        except ArgumentError as error:
            raise ArgumentError(f"the value of {name} {error}") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domains) and (self.names, self.intervals) == (other.names, other.intervals)

    def __hash__(self) -> int:
        return hash((self.names, self.intervals))

    def __repr__(self) -> str:
        return f"Domains({dict(zip(self.names, self.intervals, strict=True)) if self.named else self.intervals})"


def _scale(domain: Interval) -> Scale | TypedDomain:
    is_linear = isinstance(domain, Range) and domain.is_linear
    if isinstance(domain, TypedDomain) and not is_linear:
        return domain
    low, high = domain
    return Scale(low, high - low)


def _reduce(domain: Interval) -> Interval:
    """Return a domain, or the pair if it is a :class:`Range` that says no more than a pair."""
    is_plain = isinstance(domain, Range) and domain.is_plain
    if isinstance(domain, TypedDomain) and not is_plain:
        return domain
    low, high = domain
    return low, high
