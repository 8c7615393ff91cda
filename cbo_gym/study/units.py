"""Conversion between a user of a study and its agent.

A user states actions and measurements by name, in the units of the study. The agent has actions of the action space,
observations, and rewards that it maximises. The log stores actions as lists of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from gymnasium.error import InvalidAction
from numpy.typing import ArrayLike

from cbo_gym._util.arguments import is_finite_number, named_values, number_in, scalar_of
from cbo_gym._util.fronts import non_dominated
from cbo_gym.actions import Categorical, Domains
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.modes.base.interface import Interface
from cbo_gym.scm import Intervention
from cbo_gym.study.description import MAX_MAGNITUDE, Description
from cbo_gym.study.precision import Measurement, error_of_share, mean_and_error, read_counts
from cbo_gym.task import Action, Mode, Observation

# Share of the width of bounds by which an action may be outside, because printed numbers have six digits.
ROUNDING = 1e-5
# Values that are closer to 0 become 0 for agents, because dividing by their square overflows.
NEGLIGIBLE = 1e-100


class Units:
    """Conversion of actions, values and rewards of a study to those of its agent, and back."""

    def __init__(self, description: Description, interface: Interface) -> None:
        self.description, self.interface, self.codec = description, interface, interface.codec
        #: Settable variable with categories, also if no target sets it -> its domain.
        self.categories = {
            name: domain
            for name, domain in description.settable.items()
            if isinstance(domain, Categorical) and name in interface.nodes
        }
        #: Variable or parameter that is a category -> its labels.
        self.labels = self.codec.labels | {name: domain.categories for name, domain in self.categories.items()}
        #: Names of the objectives, or of the reward.
        self.objectives = tuple(goal.name for goal in description.goals)
        #: Names of the objectives that are measured: all except the cost of a trial.
        self.measured_objectives = tuple(name for name in self.objectives if name in interface.nodes)
        self._signs = np.array([goal.sign for goal in description.goals])
        #: Range of the reward, if agents need rewards in [0, 1]; else None.
        self.reward_range = description.reward_range if interface.unit_rewards else None
        if interface.unit_rewards and description.reward_range is None:
            raise ArgumentError(
                f"the methods of the {description.mode} mode need the range of the reward; give reward_range"
            )

    def action(self, done: Mapping[str, Any], suggested: Action | None = None) -> Action:
        """Return the action that was done.

        Args:
            done: name -> value, which may be outside the bounds; None for a name that was not set.
            suggested: the suggested action, which has the values of names that ``done`` leaves out; None without a
                suggestion.
        """
        done = named_values(done)
        if not isinstance(done, dict):
            raise ArgumentError(f"an action must be a mapping from names to values; given {short_repr(done)}")
        values = done if suggested is None else {**self.native_values(suggested), **done}
        # Arms have no domains.
        names = self.settable if self.codec.domains.names else list(values)
        for name in values:
            if name not in names:
                raise ArgumentError(
                    f"{name!r} cannot be set{did_you_mean(name, names)}; the settable names are {names}"
                )
        native = {name: self.read_setting(name, value) for name, value in values.items() if value is not None}
        return self.codec.from_native(native, self.interface.problem.null_action, suggested)

    def past_action(self, done: Mapping[str, Any], values: Mapping[str, Any]) -> Action:
        """Return the action of a past round.

        In hard mode the target is -1 if the round set nothing although the empty set is not among the targets.

        Args:
            done: name -> value; in partial mode, the choice of the variable to measure is by default the last variable
                that was measured.
            values: variable -> value; None if it was not measured.
        """
        if (name := self.codec.choice_name) and name not in done:
            measured = [node for node in self.interface.nodes if values.get(node) is not None]
            done = {name: measured[-1], **done}
        if not done and self.description.mode == Mode.HARD and frozenset() not in self.interface.problem.targets:
            return {"target": np.int64(-1), "values": self.codec.domains.unset.copy()}
        return self.action(done)

    @property
    def settable(self) -> list[str]:
        """Names of the variables or parameters that can be set; first the name of the codec's choice, if it has one."""
        names = [*filter(None, [self.codec.choice_name]), *self.codec.domains.names]
        return names or sorted({name for arm in self.description.arms for name in arm})

    def read_setting(self, name: str, value: Any) -> Any:
        """Return a value to set as the log stores it: a label, which the codec checks, a number or an interval."""
        if name in self.codec.labels:
            return value
        return _read_interval(name, value) if self.codec.intervals else _number(f"the value of {name}", value)

    def read_values(self, values: Mapping[str, Any]) -> dict[str, float | None]:
        """Return variable -> value, its label if it is a category; None if it was not measured.

        Ignored names are left out.
        """
        if not isinstance(values, Mapping):
            raise ArgumentError(f"values must be a mapping from variables to numbers; given {short_repr(values)}")
        nodes = self.interface.nodes
        values = {name: value for name, value in values.items() if name not in self.description.ignored}
        for name in values:
            if name not in nodes:
                raise ArgumentError(
                    f"no variable is called {name!r}{did_you_mean(name, nodes)}; they are {list(nodes)}"
                )
        completed: dict[str, Any] = dict.fromkeys(nodes)
        for name, value in values.items():
            if value is not None:
                completed[name] = self._read_value(name, value)
        if self.reward_range is not None and not self.unknown_objectives(completed):
            # This raises for a reward outside its range.
            self.to_rewards(completed[self.objectives[0]] or 0.0)
        return completed

    def unknown_objectives(self, values: Mapping[str, Any]) -> list[str]:
        """Return the objectives that were not measured."""
        return [name for name in self.measured_objectives if values[name] is None]

    def missing_outcome(self, action: Action, values: Mapping[str, Any]) -> list[str]:
        """Return the variables that a trial must measure and that have no value.

        A trial must measure the objectives; in partial mode, the product that its action makes last.
        """
        products = list(self.interface.products(action))
        return [name for name in products[-1:] or self.measured_objectives if values[name] is None]

    def subject(self, names: Iterable[str], where: str = "") -> str:
        """Return the objectives among names, else all names, as the subject of a sentence: ``the reward titre is``."""
        objectives = [name for name in self.measured_objectives if name in names]
        if not objectives:
            return f"{' and '.join(names)}{where} is" if names else ""
        if len(objectives) > 1:
            return f"the objectives {' and '.join(objectives)}{where} are"
        return f"the {'objective' if self.description.objectives else 'reward'} {objectives[0]}{where} is"

    def read_measurement(self, values: Any, std: Mapping[str, Any] | None = None) -> Measurement:
        """Return the values of all variables with their precision.

        Args:
            values: variable -> value, where a share may be given as counts, ``"37 of 1000"``; or a sequence of such
                mappings, for repeated measurements.
            std: variable -> standard error of its value.
        """
        values, std = named_values(values), named_values(std)
        if isinstance(values, Sequence) and not isinstance(values, str):
            return self._mean_of(values, std)
        counts, shares = dict[str, int](), dict[str, float]()
        if isinstance(values, dict):
            for name, value in values.items():
                if (hits_and_total := read_counts(name, value)) is not None:
                    hits, counts[name] = hits_and_total
                    shares[name] = hits / counts[name]
            values = {**values, **shares}
        completed = self.read_values(values)
        counts = {name: count for name, count in counts.items() if name in completed}
        errors = {name: error_of_share(shares[name], count) for name, count in counts.items()}
        if not isinstance(std, dict | None):
            raise ArgumentError(f"std must be a mapping from variables to numbers; given {short_repr(std)}")
        numbers = [name for name, value in completed.items() if isinstance(value, float) and name not in counts]
        for name, error in (std or {}).items():
            if name in self.description.ignored or error is None:
                continue
            if name not in numbers:
                raise ArgumentError(f"std names {name!r}{did_you_mean(name, numbers)}; numbers are given for {numbers}")
            if _number(f"the standard error of {name}", error) < 0.0:
                raise ArgumentError(f"the standard error of {name} must be at least 0; given {error:g}")
            errors[name] = float(error)
        return Measurement(completed, errors, counts)

    def _mean_of(self, rows: Sequence[Any], std: Mapping[str, Any] | None) -> Measurement:
        """Return the means of repeated measurements, with standard errors; in discrete mode, count zeros and ones."""
        if not rows or std:
            reason = "repeats give the standard errors themselves" if std else "there are no rows"
            raise ArgumentError(f"give a mapping, or a list of mappings and no std: {reason}")
        completed = [self.read_values(named_values(row)) for row in rows]
        values: dict[str, Any] = dict.fromkeys(completed[0])
        errors, counts = dict[str, float](), dict[str, int]()
        for name in values:
            repeats: list[Any] = [row[name] for row in completed if row[name] is not None]
            if not repeats:
                continue
            if isinstance(repeats[0], str):
                if len(set(repeats)) > 1:
                    raise ArgumentError(f"the repeats have different values of the category {name}: {repeats}")
                values[name] = repeats[0]
                continue
            values[name], error = mean_and_error(repeats)
            # Equal repeats, such as those of a value that was set, say nothing about its error.
            if error:
                errors[name] = error
            if self.description.mode == "discrete" and len(repeats) > 1 and set(repeats) <= {0.0, 1.0}:
                counts[name], errors[name] = len(repeats), error_of_share(values[name], len(repeats))
        return Measurement(values, errors, counts)

    def _read_value(self, name: str, value: Any) -> Any:
        if name not in self.categories:
            return _number(f"the value of {name}", value)
        return self.categories[name].label(Domains(self.categories).number(name, value))

    def breaks_conditions(self, action: Action, values: Mapping[str, float | None]) -> bool:
        """Return whether the action breaks a limit, or the measured values break a constraint."""
        constraints = self.interface.problem.outcomes.constraints
        return bool(self.broken_limits(action)) or any(
            (value := values.get(limit.node)) is not None and limit.excess(value) > 0.0 for limit in constraints
        )

    def broken_limits(self, action: Action) -> list[str]:
        """Return the limits that an action breaks by more than the rounding of printed numbers."""
        limits = self.codec.limits
        return [] if limits is None else limits.broken_by(self.native_values(action), ROUNDING)

    @property
    def conditions(self) -> str:
        """What a round must meet to be the best: ``limits``, ``constraints``, both in words, or an empty string."""
        conditions = {"limits": self.codec.limits, "constraints": self.interface.problem.outcomes.constraints}
        return " and ".join(name for name, condition in conditions.items() if condition)

    def front(self, rounds: Sequence[tuple[Action, Mapping[str, float | None]]]) -> list[int]:
        """Return the indices of the rounds on the Pareto front; with one objective, the first with the best reward.

        Rounds that break a limit or a constraint, or that lack the value of an objective, do not count. A round is the
        pair of its action and its values by variable.
        """
        allowed = [
            index
            for index, (action, values) in enumerate(rounds)
            if not self.unknown_objectives(values) and not self.breaks_conditions(action, values)
        ]
        if not allowed:
            return []
        rewards = [self.to_rewards(list(self.objective_values(*rounds[index]).values())) for index in allowed]
        return [allowed[index] for index in np.flatnonzero(non_dominated(np.array(rewards)))]

    def native_values(self, action: Action) -> dict[str, Any]:
        """Return the values that an action sets, by name, in native units; they may be outside the bounds."""
        return self.codec.to_native(action)

    def fill_in(
        self, values: Mapping[str, float | None], action: Action, context: Mapping[str, float | None] | None
    ) -> dict[str, float | None]:
        """Fill in variables without a measured value with the value that was set, or observed as a context."""
        # Parameters are not variables.
        done = self.native_values(action) if self.interface.sets_variables else {}
        known = {**(context or {}), **done}
        return {name: known.get(name) if value is None else value for name, value in values.items()}

    def require_set_labels(self, values: Mapping[str, Any], action: Action) -> None:
        """Refuse the label of a category that differs from the one that the action set."""
        for name, label in self.native_values(action).items():
            if name in self.categories and values.get(name) not in (None, label):
                raise ArgumentError(
                    f"{name} was set to {label}; given the value {values[name]}; if that was really set, give "
                    f"did={{{name!r}: {values[name]!r}}}, --did {name}={values[name]}, or the column do({name})"
                )

    def objective_values(self, action: Action, values: Mapping[str, Any]) -> dict[str, float]:
        """Return the values of the objectives in a round, by name, in their own units."""
        return {name: values[name] if name in values else self.cost(action) or 0.0 for name in self.objectives}

    def cost(self, action: Action, used: Iterable[str] = ()) -> float | None:
        """Return the cost of an action; None if there are no costs.

        A value outside the bounds has its own price. ``used`` are products that the action takes from earlier trials,
        see :mod:`cbo_gym.study.batches`.
        """
        interface, domains = self.interface, self.codec.domains
        if interface.costs is None:
            return None
        if self.codec.intervals or self.codec.choice_name or self.distance(action) == 0.0:
            decoded = interface.decode(self.nearest(action))
            if changed := dict.fromkeys(used, (True, 0.0)):
                decoded = decoded._replace(hard={**decoded.hard, **changed})
            return float(interface.cost(decoded))
        numbers = {name: domains.number(name, value) for name, value in self.native_values(action).items()}
        hard = {name: (True, number) for name, number in numbers.items()} if interface.sets_variables else {}
        return float(interface.cost(Intervention(tuple(numbers.values()), hard)))

    def to_rewards(self, values: ArrayLike) -> np.ndarray:
        """Return what the agent maximises, in [0, 1] if its methods need that.

        Args:
            values: values of the objectives in their own units, shape ``(..., number of objectives)``.
        """
        natives = np.asarray(values, dtype=float)
        if self.reward_range is None:
            return self._signs * natives
        low, high = self.reward_range
        if not ((low <= natives) & (natives <= high)).all():
            raise ArgumentError(
                f"the reward {self.objectives[0]} must lie in [{low:g}, {high:g}]; given {natives.flat[0]:g}"
            )
        shares = (natives - low) / (high - low)
        return 1.0 - shares if self._signs[0] < 0 else shares

    def to_values(self, rewards: ArrayLike) -> np.ndarray:
        """Return values of the objectives in their own units; the inverse of :meth:`to_rewards`."""
        scaled = np.asarray(rewards, dtype=float)
        if self.reward_range is None:
            return self._signs * scaled
        low, high = self.reward_range
        return low + (high - low) * (1.0 - scaled if self._signs[0] < 0 else scaled)

    def to_ends(self, low: ArrayLike, high: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of intervals of rewards as values of the objectives, ``low <= high`` in either direction."""
        ends = self.to_values(low), self.to_values(high)
        return np.minimum(*ends), np.maximum(*ends)

    def reward_of(self, action: Action, observation: Observation) -> Any:
        """Return the reward of a round as the agent gets it: a number, or an array with several objectives."""
        outcomes, nodes = self.interface.problem.outcomes, observation["nodes"].tolist()
        if outcomes.objectives:
            values = dict(zip(self.interface.nodes, nodes, strict=True))
            return outcomes.rewards(self.objective_values(action, values), ())
        if np.isnan(nodes[-1]) and self.interface.unfinished is not None:
            return self.interface.unfinished
        return nodes[-1]

    def observation(self, record: Mapping[str, Any], context: Mapping[str, float] | None = None) -> Observation:
        """Return the agent's observation of a round, with NaN for variables that were not measured.

        Standard errors and the count of the reward, if there are any, are its keys ``std`` and ``count``. The context
        is that of the round, unless another one is given.
        """
        values, counts = {**record["values"]}, record.get("counts", {})
        for name, domain in self.categories.items():
            if values[name]:
                values[name] = domain.number(values[name])
        nodes = np.array([values[name] for name in self.interface.nodes], dtype=float)
        # A single reward, the last node, is observed as the agent maximises it; several objectives keep their values.
        if len(self.objectives) == 1 and not np.isnan(nodes[-1]):
            nodes[-1:] = self.to_rewards(nodes[-1:])
        nodes[np.abs(nodes) < NEGLIGIBLE] = 0.0
        precision: Observation = {}
        if std := record.get("std"):
            precision["std"] = np.array([std.get(name, np.nan) for name in self.interface.nodes])
            if self.reward_range is not None:
                precision["std"][-1] /= self.reward_range[1] - self.reward_range[0]
        if len(self.objectives) == 1 and self.objectives[0] in counts:
            precision["count"] = np.array(float(counts[self.objectives[0]]))
        observed = record["context"] if context is None else context
        return self.interface.after(nodes, {}) | self.context(observed) | precision

    def observed_values(self, observation: Observation) -> dict[str, Any]:
        """Return the values of an observation in the form of :meth:`read_values`."""
        nodes = np.array(observation["nodes"], dtype=float)
        if len(self.objectives) == 1:
            nodes[-1:] = self.to_values(nodes[-1:])
        values: dict[str, Any] = dict(zip(self.interface.nodes, nodes.tolist(), strict=True))
        for name, value in values.items():
            if np.isnan(value):
                values[name] = None
            elif name in self.categories:
                values[name] = self.categories[name].label(value)
        return values

    def context(self, context: Mapping[str, float] | None) -> Observation:
        """Return the context of a round as part of an observation; errors are those of :meth:`read_context`."""
        numbers = self.read_context(context)
        return {"context": np.array([numbers[name] for name in self.interface.context_names])} if numbers else {}

    def read_context(self, context: Mapping[str, float] | None) -> dict[str, float] | None:
        """Return the context of a round as the log stores it; None if the study has no contexts."""
        context, names = named_values(context), list(self.interface.context_names)
        if context and not names:
            raise ArgumentError(f"the study has no contexts; given {short_repr(context)}; leave out context")
        if not isinstance(context, dict | None) or set(context or {}) != set(names):
            raise ArgumentError(
                f"the context must give a number for each of {names}; given {short_repr(context)}; write "
                "context={NAME: NUMBER}, or --context NAME=NUMBER in a shell"
            )
        return {name: _number(f"the context {name}", (context or {})[name]) for name in names} or None

    def to_flat(self, action: Action) -> list[float]:
        """Return the action as numbers that the log can store."""
        return [float(number) for number in self.codec.to_flat(action)]

    def from_flat(self, flat: list[float]) -> Action:
        """Return the action that the log stores as these numbers."""
        return self.codec.from_flat(flat)

    def distance(self, action: Action) -> float:
        """Return by how much an action is outside the bounds, as a share of their width; 0 inside them."""
        return float(np.abs(self.codec.to_point(self.nearest(action)) - self.codec.to_point(action)).max())

    def nearest(self, action: Action) -> Action:
        """Return the nearest action inside the bounds."""
        return self.codec.to_action(np.clip(self.codec.to_point(action), 0.0, 1.0))

    def require_valid(self, action: Action) -> Action:
        """Return a copy of a suggested action, which must be an element of the action space."""
        try:
            return self.interface.read(action)
        except InvalidAction as error:
            raise ArgumentError(f"{self.description.agent} suggests an invalid action: {error}") from error


def _read_interval(name: str, value: object) -> list[float]:
    ends = list(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else []
    if len(ends) != 2 or (all(map(is_finite_number, ends)) and ends[0] > ends[1]):
        raise ArgumentError(f"{name} needs an interval, two numbers in ascending order; given {short_repr(value)}")
    return [_number(f"the value of {name}", end) for end in ends]


def _number(name: str, value: object) -> float:
    """Return a number that is small enough for models to square; errors call it by ``name``."""
    number = scalar_of(value)
    if isinstance(number, Decimal | Fraction):
        number = float(number)
    if not is_finite_number(number):
        raise ArgumentError(f"{name} must be a finite number; given {short_repr(value)}")
    number = float(number)
    if abs(number) > MAX_MAGNITUDE:
        raise ArgumentError(
            f"{name} must lie between {-MAX_MAGNITUDE:g} and {MAX_MAGNITUDE:g}; given {number:g}: choose a larger unit"
        )
    return number


def value_in(string: str) -> Any:
    """Read a number, an interval ``[low, high]`` or None; return any other string, which the study will refuse."""
    if not string.strip():
        return None
    ends = [number_in(end) for end in string.strip().removeprefix("[").removesuffix("]").split(",")]
    if string.strip().startswith("[") and len(ends) == 2 and None not in ends:
        return ends
    number = number_in(string)
    return string if number is None else number


def pairs_in(strings: Iterable[str], form: str) -> dict[str, str]:
    """Return name -> value from strings ``NAME=VALUE``. A name may contain ``=``, a value may not.

    Messages tell the user to write ``form``.
    """
    pairs: dict[str, str] = {}
    for string in strings:
        name, sign, value = (item.strip() for item in string.rpartition("="))
        if not sign or not name:
            raise ArgumentError(f"cannot read {short_repr(string)}; write {form}")
        if name in pairs:
            raise ArgumentError(f"{name!r} is given twice, in {short_repr(string)} again; give each name once")
        pairs[name] = value
    return pairs


def format_assignments(values: Mapping[str, Any]) -> str:
    """Return values by name in words: ``ph = 6.8, feed = 2``; an empty string without any."""
    return ", ".join(f"{name} = {format_value(value)}" for name, value in values.items())


def format_value(value: Any, digits: int = 6) -> str:
    """Return a number or an interval with so many digits, or a label as it is; an empty string for None."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(format_value(end, digits) for end in value)}]"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return "" if value is None else str(value)
