"""Conversion between a study and its agent: actions by name in native units, and observations."""

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

# An action may be outside the bounds by this share of their width, because printed numbers have six digits.
ROUNDING = 1e-5
# Smaller values become 0 for agents, because dividing by their square overflows.
NEGLIGIBLE = 1e-100
# Name -> value, or (low, high) of a cell.
Done = Mapping[str, Any]


class Units:
    """Conversion of actions, values and rewards of a study to those of its agent, and back.

    Args:
        description: the description of the study.
        interface: the interface of the study.
    """

    def __init__(self, description: Description, interface: Interface) -> None:
        self.description, self.interface, self.codec = description, interface, interface.codec
        #: Settable variable that is a category, even if no target sets it -> its domain.
        self.categories = {
            name: domain
            for name, domain in description.settable.items()
            if isinstance(domain, Categorical) and name in interface.nodes
        }
        #: Names of the objectives, or of the reward.
        self.objectives = tuple(goal.name for goal in description.goals)
        #: Names of the objectives that are measured: all except the cost of a trial.
        self.measured_objectives = tuple(name for name in self.objectives if name in interface.nodes)
        self._signs = np.array([goal.sign for goal in description.goals])
        #: Range of the reward, if agents need rewards in [0, 1]
        self.reward_range = description.reward_range if interface.unit_rewards else None
        if interface.unit_rewards and description.reward_range is None:
            raise ArgumentError(
                f"the methods of the {description.mode} mode need the range of the reward; give reward_range"
            )

    def action(self, done: Done, suggested: Action | None = None) -> Action:
        """Return the action that was done.

        Args:
            done: name -> value, which may be outside the bounds.
            suggested: the suggested action, which has the values of names that ``done`` leaves out; None without a
                suggestion.

        Raises:
            ArgumentError: naming the part that cannot be done in this study.
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
        read = {name: self.read_setting(name, value) for name, value in values.items()}
        return self.codec.from_native(read, self.interface.problem.null_action, suggested)

    def past_action(self, done: Done, values: Mapping[str, Any]) -> Action:
        """Return the action of a past round; in hard mode, with target -1 if nothing was set and no target is empty.

        Args:
            done: name -> value; in partial mode, the variable to measure is by default the last one that was measured.
            values: variable -> value; None if it was not measured.

        Raises:
            ArgumentError: as :meth:`action`.
        """
        if (name := self.codec.choice_name) and name not in done:
            measured = [node for node in self.interface.nodes if values.get(node) is not None]
            done = {name: measured[-1], **done}
        if not done and self.description.mode == Mode.HARD and frozenset() not in self.interface.problem.targets:
            return {"target": np.int64(-1), "values": self.codec.domains.unset.copy()}
        return self.action(done)

    @property
    def settable(self) -> list[str]:
        """Names of the variables or parameters that can be set, after the name of the choice, if it has one."""
        names = [*filter(None, [self.codec.choice_name]), *self.codec.domains.names]
        return names or sorted({name for arm in self.description.arms for name in arm})

    def read_setting(self, name: str, value: Any) -> Any:
        """Return a value to set as the log stores it: a label, which the codec checks, a number or an interval.

        Raises:
            ArgumentError: if it is none of these.
        """
        if name in self.codec.labels:
            return value
        return _read_interval(name, value) if self.codec.intervals else _read_value(name, value)

    def values(self, values: Mapping[str, Any]) -> dict[str, float | None]:
        """Return the values of all variables, None for those that were not measured, without ignored names.

        Categories have their labels.

        Raises:
            ArgumentError: for an unknown variable, a value that is not a finite number, or a reward outside its range.
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
        measured = {name: value for name, value in values.items() if value is not None}
        read = {name: self._read(name, value) for name, value in measured.items()}
        completed = {name: read.get(name) for name in nodes}
        if self.reward_range is not None and not self.unknown_objectives(completed):
            # This raises for a reward outside its range.
            self.to_rewards(completed[self.objectives[0]] or 0.0)
        return completed

    def unknown_objectives(self, values: Mapping[str, Any]) -> list[str]:
        """Return the objectives that were not measured."""
        return [name for name in self.measured_objectives if values[name] is None]

    def missing_outcome(self, action: Action, values: Mapping[str, Any]) -> list[str]:
        """Return the variables without a value that the outcome of a trial needs, usually the objectives."""
        products = list(self.interface.products(action))
        return [name for name in products[-1:] or self.measured_objectives if values[name] is None]

    def subject(self, names: Iterable[str], where: str = "") -> str:
        """Return the objectives among names, else all names, as the subject of a sentence: ``the reward titre is``."""
        known = [name for name in self.measured_objectives if name in names]
        if not known:
            return f"{' and '.join(names)}{where} is" if names else ""
        plural, noun = len(known) > 1, "objective" if self.description.objectives else "reward"
        return f"the {noun}{'s' * plural} {' and '.join(known)}{where} {'are' if plural else 'is'}"

    def read_measurement(self, values: Any, std: Mapping[str, Any] | None = None) -> Measurement:
        """Return the values of all variables with their precision.

        Args:
            values: a mapping as of :meth:`values`, in which shares may be counts, ``"37 of 1000"``; or several, of
                repeated measurements.
            std: variable -> standard error of its value.

        Raises:
            ArgumentError: as :meth:`values`, or for a standard error that does not fit.
        """
        values, std = named_values(values), named_values(std)
        if isinstance(values, Sequence) and not isinstance(values, str):
            return self._mean_of(values, std)
        is_mapping = isinstance(values, dict)
        pairs = {name: read_counts(name, value) for name, value in values.items()} if is_mapping else {}
        shares = {name: pair[0] / pair[1] for name, pair in pairs.items() if pair is not None}
        read = self.values({**values, **shares} if is_mapping else values)
        counts = {name: pair[1] for name, pair in pairs.items() if pair is not None and name in read}
        errors = {name: error_of_share(shares[name], count) for name, count in counts.items()}
        if not isinstance(std, dict | None):
            raise ArgumentError(f"std must be a mapping from variables to numbers; given {short_repr(std)}")
        for name, error in (std or {}).items():
            if name in self.description.ignored or error is None:
                continue
            if read.get(name) is None or isinstance(read[name], str) or name in counts:
                measured = [
                    measured_name
                    for measured_name, value in read.items()
                    if isinstance(value, float) and measured_name not in counts
                ]
                raise ArgumentError(
                    f"std names {name!r}{did_you_mean(name, measured)}; numbers are given for {measured}"
                )
            if _number(f"the standard error of {name}", error) < 0.0:
                raise ArgumentError(f"the standard error of {name} must be at least 0; given {error:g}")
            errors[name] = float(error)
        return Measurement(read, errors, counts)

    def _mean_of(self, rows: Sequence[Any], std: Mapping[str, Any] | None) -> Measurement:
        """Return the means of repeats, with their standard errors; zeros and ones are counted in discrete mode."""
        if not rows or std:
            reason = "repeats give the standard errors themselves" if std else "there are no rows"
            raise ArgumentError(f"give a mapping, or a list of mappings and no std: {reason}")
        read = [self.values(named_values(row)) for row in rows]
        values, errors, counts = dict[str, Any](), dict[str, float](), dict[str, int]()
        for name in read[0]:
            repeats: list[Any] = [row[name] for row in read if row[name] is not None]
            if repeats and isinstance(repeats[0], str):
                if len(set(repeats)) > 1:
                    raise ArgumentError(f"the repeats have different values of the category {name}: {repeats}")
                values[name] = repeats[0]
                continue
            values[name], error = mean_and_error(repeats) if repeats else (None, None)
            # Equal repeats, such as those of a value that was set, say nothing about its error.
            if error:
                errors[name] = error
            if self.description.mode == "discrete" and len(repeats) > 1 and set(repeats) <= {0.0, 1.0}:
                counts[name], errors[name] = len(repeats), error_of_share(values[name], len(repeats))
        return Measurement(values, errors, counts)

    def _read(self, name: str, value: Any) -> Any:
        if name not in self.categories:
            return _read_value(name, value)
        return self.categories[name].label(Domains(self.categories).number(name, value))

    def misses(self, action: Action, values: Mapping[str, float | None]) -> bool:
        """Return whether measured values break a constraint, or the action breaks a limit."""
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
        """The kinds of conditions that a round must meet to be the best, in words."""
        has_constraints = bool(self.interface.problem.outcomes.constraints)
        conditions = ["limits"] * (self.codec.limits is not None) + ["constraints"] * has_constraints
        return " and ".join(conditions)

    def front(self, rounds: Sequence[tuple[Action, Mapping[str, float | None]]]) -> list[int]:
        """Return the indices of rounds that break no constraint and no limit, and that no other such round dominates.

        With one objective it is the first with the best reward. Rounds without a measured objective do not count.
        """
        allowed = [
            index
            for index, (action, values) in enumerate(rounds)
            if not self.unknown_objectives(values) and not self.misses(action, values)
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

    def objective_values(self, action: Action, values: Mapping[str, Any]) -> dict[str, float]:
        """Return the values of the objectives in a round, by name, in their own units."""
        return {name: values[name] if name in values else self.cost(action) or 0.0 for name in self.objectives}

    def cost(self, action: Action, used: Iterable[str] = ()) -> float | None:
        """Return the cost of an action; None if there are no costs.

        Values outside the bounds are priced as they are, and a cell as the nearest cell inside.

        Args:
            action: the action.
            used: variables whose products of earlier trials it uses, see :mod:`cbo_gym.study.batches`.
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
        if not outcomes.objectives:
            is_unfinished = nodes[-1] != nodes[-1] and self.interface.unfinished is not None
            return self.interface.unfinished if is_unfinished else nodes[-1]
        values = dict(zip(self.interface.nodes, nodes, strict=True))
        return outcomes.rewards(self.objective_values(action, values), ())

    def observation(self, past: Mapping[str, Any], context: Mapping[str, float] | None = None) -> Observation:
        """Return the agent's observation of a round, with NaN for variables that were not measured.

        Standard errors and the count of the reward, if there are any, are its keys ``std`` and ``count``.

        Args:
            past: the round as the log stores it.
            context: the context that is observed; None for that of the round.
        """
        categories, values, counts = self.categories, past["values"], past.get("counts")
        numbers = {
            name: categories[name].number(value) for name, value in values.items() if name in categories and value
        }
        nodes = np.array([{**values, **numbers}[name] for name in self.interface.nodes], dtype=float)
        # Agents observe a single reward, the last node, as they maximise it; several objectives keep their values.
        if len(self.objectives) == 1 and not np.isnan(nodes[-1]):
            nodes[-1:] = self.to_rewards(nodes[-1:])
        nodes[np.abs(nodes) < NEGLIGIBLE] = 0.0
        precision: Observation = {}
        if std := past.get("std"):
            precision["std"] = np.array([std.get(name, np.nan) for name in self.interface.nodes])
            if self.reward_range is not None:
                precision["std"][-1] /= self.reward_range[1] - self.reward_range[0]
        if counts and len(self.objectives) == 1 and self.objectives[0] in counts:
            precision["count"] = np.array(float(counts[self.objectives[0]]))
        observed = past["context"] if context is None else context
        return self.interface.after(nodes, {}) | self.context(observed) | precision

    def observed_values(self, observation: Observation) -> dict[str, Any]:
        """Return the values of an observation in the form of :meth:`values`."""
        nodes = [None if value != value else float(value) for value in np.asarray(observation["nodes"])]
        if len(self.objectives) == 1 and nodes[-1] is not None:
            nodes[-1] = float(self.to_values([nodes[-1]])[0])
        values = dict(zip(self.interface.nodes, nodes, strict=True))
        numbers = {name: value for name, value in values.items() if name in self.categories and value is not None}
        return {**values, **{name: self.categories[name].label(number) for name, number in numbers.items()}}

    def context(self, context: Mapping[str, float] | None) -> Observation:
        """Return the context of a round as part of an observation; errors are those of :meth:`read_context`."""
        numbers = self.read_context(context)
        return {"context": np.array([numbers[name] for name in self.interface.context_names])} if numbers else {}

    def read_context(self, context: Mapping[str, float] | None) -> dict[str, float] | None:
        """Return the context of a round as the log stores it; None if the study has no contexts.

        Raises:
            ArgumentError: unless it has a number for each context of the study.
        """
        context, names = named_values(context), list(self.interface.context_names)
        if context and not names:
            raise ArgumentError(f"the study has no contexts; given {short_repr(context)}; leave out context")
        if not isinstance(context, dict | None) or set(context or {}) != set(names):
            raise ArgumentError(f"the context must give a number for each of {names}; given {short_repr(context)}")
        return {name: _number(f"the context {name}", (context or {})[name]) for name in names} or None

    def flat(self, action: Action) -> list[float]:
        """Return the action as numbers that the log can store."""
        return [float(number) for number in self.codec.to_flat(action)]

    def read(self, flat: list[float]) -> Action:
        """Return the action that the log stores as these numbers."""
        return self.codec.from_flat(flat)

    def distance(self, action: Action) -> float:
        """Return the distance of an action from the bounds, as a share of their width; 0 inside them."""
        return float(np.abs(self.codec.to_point(self.nearest(action)) - self.codec.to_point(action)).max())

    def nearest(self, action: Action) -> Action:
        """Return the nearest action inside the bounds."""
        return self.codec.to_action(np.clip(self.codec.to_point(action), 0.0, 1.0))

    def require_valid(self, action: Action) -> Action:
        """Return a copy of a suggested action.

        Raises:
            ArgumentError: if it is not an element of the action space.
        """
        try:
            return self.interface.read(action)
        except InvalidAction as error:
            raise ArgumentError(f"{self.description.agent} suggests an invalid action: {error}") from error


def _read_value(name: str, value: object) -> float:
    return _number(f"the value of {name}", value)


def _read_interval(name: str, value: object) -> list[float]:
    ends = list(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else []
    if len(ends) != 2 or (all(map(is_finite_number, ends)) and ends[0] > ends[1]):
        raise ArgumentError(f"{name} needs an interval, two numbers in ascending order; given {short_repr(value)}")
    return [_read_value(name, end) for end in ends]


def _number(name: str, value: object) -> float:
    """Return a number that models can square and add up.

    Raises:
        ArgumentError: with the ``name``, if the number is not finite, or too large.
    """
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


def value_in(string: str) -> float | list[float] | str:
    """Read a number or an interval ``[low, high]``; return any other string, which the study will refuse."""
    ends = [number_in(end) for end in string.strip().removeprefix("[").removesuffix("]").split(",")]
    if string.strip().startswith("[") and len(ends) == 2 and None not in ends:
        return ends  # type: ignore[return-value]
    number = number_in(string)
    return string if number is None else number


def pairs_in(strings: Iterable[str], form: str) -> dict[str, str]:
    """Return name -> value from strings ``NAME=VALUE``. A name may contain ``=``, a value may not.

    Args:
        strings: the pairs.
        form: an example of a pair, for messages.

    Raises:
        ArgumentError: naming a string that is not a pair, or a name that comes twice.
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


def format_value(value: Any, digits: int = 6) -> str:
    """Return a number or an interval with so many digits, or a label as it is; an empty string for None."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(format_value(end, digits) for end in value)}]"
    return "" if value is None else f"{value:.{digits}g}" if isinstance(value, float) else str(value)
