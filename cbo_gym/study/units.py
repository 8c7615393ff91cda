"""Conversion between a study and its agent: actions by name in native units, and observations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.error import InvalidAction

from cbo_gym.actions.codec import UNSET, ArmCodec, CellCodec, ChoiceCodec
from cbo_gym.arguments import is_finite_number, number_in
from cbo_gym.errors import ArgumentError, did_you_mean, shown
from cbo_gym.feedback.base import Interface
from cbo_gym.study.description import MAX_MAGNITUDE, Description
from cbo_gym.task import Action, Observation

# As a share of the width of the bounds, because printed numbers have six digits.
ROUNDING = 1e-5
# Agents take a smaller value for 0, because its square cannot be divided by.
NEGLIGIBLE = 1e-100
Done = Mapping[str, Any]  # name -> value, or (low, high) of a cell


class Units:
    """Converts actions, values and rewards of a study to those of its agent, and back.

    Args:
        about: the description of the study.
        interface: the interface of the study.
    """

    def __init__(self, about: Description, interface: Interface) -> None:
        self.about, self.interface, self.codec = about, interface, interface.codec
        self._sign = -1.0 if about.direction == "minimize" else 1.0
        if about.mode == "discrete" and about.reward_range is None:
            raise ArgumentError("the methods of the discrete mode need to know where rewards lie: give reward_range")

    def action(self, done: Done, asked: Action | None = None) -> Action:
        """The action that was done.

        Args:
            done: name -> value, which may lie outside the bounds.
            asked: the suggested action, which holds for names that ``done`` leaves out; None if there was none.

        Raises:
            ArgumentError: naming what cannot be done in this study.
        """
        if not isinstance(done, Mapping):
            raise ArgumentError(f"what was done is a mapping from names to values; given {shown(done)}")
        whole = dict(done) if asked is None else {**self.done(asked), **done}
        if isinstance(self.codec, ArmCodec):
            arms = [dict(arm) for arm in self.codec.arms]
            if whole not in arms:
                raise ArgumentError(f"none of the {len(arms)} arms is {shown(whole)}")
            return arms.index(whole)
        names = self.codec.domains.names
        for name in whole:
            if name not in names:
                raise ArgumentError(f"{name!r} cannot be set{did_you_mean(name, names)}; what can be is {list(names)}")
        if isinstance(self.codec, ChoiceCodec):
            return self._choice(whole, asked)
        if not isinstance(self.codec, CellCodec):
            null = dict(zip(names, self.interface.problem.null_action, strict=True))
            return np.array([self._unit(name, whole[name]) if name in whole else null[name] for name in names])
        if missing := [name for name in names if name not in whole]:
            raise ArgumentError(f"give an interval for each parameter; {missing} are missing")
        return np.array([[self._unit(name, end) for end in _pair(name, whole[name])] for name in names]).T

    def _choice(self, whole: Done, asked: Action | None) -> Action:
        codec: Any = self.codec
        # Of several scopes that set the same variables, the one that was asked for was done.
        chosen = -1 if asked is None else int(asked[codec.key])
        if frozenset(whole) not in codec.sets:
            raise ArgumentError(
                f"{sorted(whole)} is none of the sets that this study knows: {', '.join(codec.choices)}; name them as "
                "targets when the study is created"
            )
        if frozenset(whole) != codec.sets[chosen] or asked is None:
            chosen = codec.sets.index(frozenset(whole))
        values = np.full(len(codec.domains), UNSET)
        for name, value in whole.items():
            values[codec.domains.names.index(name)] = self._unit(name, value)
        return {codec.key: np.int64(chosen), "values": values}

    def _unit(self, name: str, native: object) -> float:
        domains = self.codec.domains
        return float(domains.scales[domains.names.index(name)].to_unit(_number(f"the value of {name}", native)))

    def values(self, given: Mapping[str, Any]) -> dict[str, float | None]:
        """The values of all variables, None for those that were not measured; ignored names are dropped.

        Raises:
            ArgumentError: for an unknown variable, a value that is not a finite number, or a missing reward.
        """
        if not isinstance(given, Mapping):
            raise ArgumentError(f"values are a mapping from variables to numbers; given {shown(given)}")
        nodes = self.interface.nodes
        given = {name: value for name, value in given.items() if name not in self.about.ignored}
        for name in given:
            if name not in nodes:
                raise ArgumentError(
                    f"no variable is called {name!r}{did_you_mean(name, nodes)}; they are {list(nodes)}"
                )
        measured = {name: value for name, value in given.items() if value is not None}
        read = {name: _number(f"the value of {name}", value) for name, value in measured.items()}
        found = {name: read.get(name) for name in nodes}
        if found[self.about.reward] is None:
            raise ArgumentError(f"the reward {self.about.reward} is missing; without it, say that the trial failed")
        # Raises for a reward outside its range.
        self.reward(found)
        return found

    def misses(self, values: Mapping[str, float | None]) -> bool:
        """Whether measured values break a constraint."""
        limits = self.interface.problem.outcomes.constraints
        return any((value := values.get(one.node)) is not None and one.excess(value) > 0.0 for one in limits)

    def best(self, rounds: Sequence[Mapping[str, float | None]]) -> int | None:
        """Index of the best reward among measured values that break no constraint; None if there are none."""
        allowed = [index for index, values in enumerate(rounds) if not self.misses(values)]
        return max(allowed, key=lambda index: self.reward(rounds[index]), default=None)

    def done(self, action: Action) -> dict[str, Any]:
        """Return the values that an action sets, by name, in native units; they may lie outside the bounds."""
        if isinstance(self.codec, CellCodec):
            corners = self.codec.domains.points_to_native(action)
            return dict(zip(self.codec.domains.names, corners.T.tolist(), strict=True))
        return self.codec.to_record(action)  # type: ignore[return-value]

    def completed(
        self, values: Mapping[str, float | None], action: Action, context: Mapping[str, float | None] | None
    ) -> dict[str, float | None]:
        """Return the values; a variable that was not measured has the value of the context, or that it was set to."""
        # Parameters are not variables.
        done = {} if self.about.mode in ("soft", "aggregated") else self.done(action)
        known = {**(context or {}), **done}
        return {name: known.get(name) if value is None else value for name, value in values.items()}

    def reward(self, values: Mapping[str, float | None]) -> float:
        """The reward that the agent maximises; in discrete mode in [0, 1]."""
        value = values[self.about.reward]
        assert value is not None
        if self.about.mode != "discrete" or self.about.reward_range is None:
            return self._sign * value
        low, high = self.about.reward_range
        if not low <= value <= high:
            raise ArgumentError(f"the reward {self.about.reward} must lie in [{low:g}, {high:g}]; given {value:g}")
        share = (value - low) / (high - low)
        return 1.0 - share if self._sign < 0 else share

    def native_reward(self, scaled: float) -> float:
        """The reward in its own units; the inverse of :meth:`reward`."""
        if self.about.mode != "discrete" or self.about.reward_range is None:
            return self._sign * scaled
        low, high = self.about.reward_range
        return low + (high - low) * (1.0 - scaled if self._sign < 0 else scaled)

    def observation(self, values: Mapping[str, float | None], context: Mapping[str, float] | None) -> Observation:
        """The observation of a round for the agent; NaN if a variable was not measured."""
        nodes = np.array([values[name] for name in self.interface.nodes], dtype=float)
        nodes[-1] = self.reward(values)
        nodes[np.abs(nodes) < NEGLIGIBLE] = 0.0
        return self.interface.after(nodes, {}) | self.context(context)

    def measured(self, observation: Observation) -> dict[str, float | None]:
        """The values of an observation, as :meth:`values` gives them."""
        nodes = [None if value != value else float(value) for value in np.asarray(observation["nodes"])]
        return dict(zip(self.interface.nodes, [*nodes[:-1], self.native_reward(nodes[-1] or 0.0)], strict=True))

    def context(self, given: Mapping[str, float] | None) -> Observation:
        """The context of a round as part of an observation.

        Raises:
            ArgumentError: unless it has a number for each context of the study.
        """
        names = self.about.contexts if self.about.mode == "contextual" else []
        if not isinstance(given, Mapping | None) or set(given or {}) != set(names):
            raise ArgumentError(f"the context must give a number for each of {names}; given {shown(given)}")
        seen = [_number(f"the context {name}", (given or {})[name]) for name in names]
        return {"context": np.array(seen)} if names else {}

    def flat(self, action: Action) -> list[float]:
        """The action as the log keeps it."""
        return [float(number) for number in self.codec.to_flat(action)]

    def read(self, flat: list[float]) -> Action:
        """An action of the log."""
        return self.codec.from_flat(flat)

    def distance(self, action: Action) -> float:
        """Return the distance of an action from the bounds, as a share of their width; 0 inside them."""
        return float(np.abs(self.codec.to_point(self.nearest(action)) - self.codec.to_point(action)).max())

    def nearest(self, action: Action) -> Action:
        """Return the nearest action inside the bounds."""
        return self.codec.to_action(np.clip(self.codec.to_point(action), 0.0, 1.0))

    def require_valid(self, action: Action) -> Action:
        """A copy of a suggested action.

        Raises:
            ArgumentError: if it is no element of the action space.
        """
        try:
            return self.interface.read(action)
        except InvalidAction as error:
            raise ArgumentError(f"{self.about.agent} suggests what cannot be done: {error}") from error


def _number(what: str, given: object) -> float:
    """A number that models can square and add up.

    Raises:
        ArgumentError: naming ``what`` it is, if it is not finite, or too large.
    """
    if not is_finite_number(given):
        raise ArgumentError(f"{what} must be a finite number; given {shown(given)}")
    number = float(given)  # type: ignore[arg-type]
    if abs(number) > MAX_MAGNITUDE:
        raise ArgumentError(
            f"{what} must lie between {-MAX_MAGNITUDE:g} and {MAX_MAGNITUDE:g}; given {number:g}: choose a larger unit"
        )
    return number


def _pair(name: str, given: object) -> Sequence[Any]:
    """The ends of an interval."""
    ends = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else []
    if len(ends) != 2 or (all(map(is_finite_number, ends)) and ends[0] > ends[1]):
        raise ArgumentError(f"{name} needs an interval, two numbers in rising order; given {shown(given)}")
    return ends


def value_in(string: str) -> float | list[float] | str:
    """Read a number or an interval ``[low, high]``; return any other string for the study to refuse."""
    ends = [number_in(end) for end in string.strip().removeprefix("[").removesuffix("]").split(",")]
    if string.strip().startswith("[") and len(ends) == 2 and None not in ends:
        return ends  # type: ignore[return-value]
    number = number_in(string)
    return string if number is None else number


def pairs_in(strings: Iterable[str], form: str) -> dict[str, str]:
    """Return name -> value of strings ``NAME=VALUE``. A name may hold ``=``, a value does not.

    Args:
        strings: the pairs.
        form: an example of a pair, for messages.

    Raises:
        ArgumentError: naming the string that is no pair, or whose name comes twice.
    """
    found: dict[str, str] = {}
    for string in strings:
        name, sign, value = (part.strip() for part in string.rpartition("="))
        if not sign or not name:
            raise ArgumentError(f"cannot read {shown(string)}; write {form}")
        if name in found:
            raise ArgumentError(f"{name!r} is given twice, in {shown(string)} again; give each name once")
        found[name] = value
    return found


def written(value: Any) -> str:
    """A number or an interval with six digits; empty for None."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float | int) else "[" + ", ".join(map(written, value)) + "]"
