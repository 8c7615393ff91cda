"""A study: an agent suggests trials on a real system, and the user records their outcomes.

Everything that a user does is appended to the study's log, a database, before the call returns. The state of the study
and of its agent follows from the log alone, so that other processes can continue the study at any time.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import polars as pl
from pydantic import ValidationError

from cbo_gym._util.arguments import named_values, require_positive, require_truth_value, whole_number
from cbo_gym._util.lazy import LazyMethod
from cbo_gym._util.validation import field_errors
from cbo_gym.actions import Integer
from cbo_gym.agent_registry.finding import known_agents
from cbo_gym.agent_registry.labels import Spec, is_import_path
from cbo_gym.agent_registry.zoo import name_of
from cbo_gym.errors import ArgumentError, ArgumentTypeError, OperationError, message_of, short_repr
from cbo_gym.scm import CausalDiagram
from cbo_gym.study.batches import batches, instructions
from cbo_gym.study.campaigns import Campaign, UnusedDataWarning
from cbo_gym.study.description import Description, errors_at
from cbo_gym.study.diagram_check import DiagramCheck, DiagramWarning, check_diagram
from cbo_gym.study.digits import require_digits
from cbo_gym.study.expectation import Expectation
from cbo_gym.study.interface import interface_of, without_effects
from cbo_gym.study.log import DATA_KINDS, TRIES, Log
from cbo_gym.study.past_rounds import PastRound, check_rounds, data_events, read_rounds, rounds_for, warn_of_repeats
from cbo_gym.study.precision import Measurement
from cbo_gym.study.stopping import Stopping
from cbo_gym.study.strings import require_storable
from cbo_gym.study.suggesting import Suggester, agents_lock, begin_agent, name_agent_in_errors
from cbo_gym.study.tables import CAMPAIGN, DIFFERS
from cbo_gym.study.trials import Entry, History, State, Trials, any_measured, ends_of
from cbo_gym.study.units import Units, format_value
from cbo_gym.task import Action

# Largest number of characters of the reason of a failure or a rejection.
MAX_REASON = 10_000
# Number of outcomes after which asking for a trial also tests the diagram.
DIAGRAM_CHECK_INTERVAL = 5
# Number of variables and parameters above which asking does not test the diagram, because the test would take longer
# than the suggestion.
MAX_VARIABLES_AT_ASK = 12
# The reason of a registered trial, which its user chose.
OWN_CHOICE = "your own choice"


@dataclass(frozen=True)
class Trial:
    """A suggestion: what to set, and why.

    Attributes:
        number: number of the trial, for :meth:`Study.tell`.
        do: the values to set, by name, in the study's units; empty to only observe.
        why: the reason, in words.
        context: the context that was observed before; None outside contextual mode.
        batches: in partial mode, variable -> the earlier trial whose product and measured value this one uses.
    """

    number: int
    do: Mapping[str, Any]
    why: str
    context: Mapping[str, float] | None = None
    batches: Mapping[str, int] = field(default_factory=dict)


class Study:
    """A study in a database. Any number of processes and threads may work on it at once, also on one object.

    Agents of one process make suggestions one at a time; no other call waits for them. A copied or unpickled study
    opens the same database and rebuilds its agent from the log.

    Args:
        log: the database.
        name: name of the study; None if the database has only one.
        agent: the agent; None for the one that the study names.

    Attributes:
        description: the description of the study; its agent is the one with which the study was opened.
        interface: the spaces, codec and costs of the study.
        units: the conversion of actions, values and rewards to those of the agent.

    Raises:
        ArgumentError: if no study has this name.
        OperationError: if the database cannot be read.
    """

    report = LazyMethod(
        "cbo_gym.study.report:write_report",
        "Write one HTML file that needs no network: the diagram, the curve, the recommendation, the trials.",
    )

    def __init__(self, log: Log, name: str | None = None, agent: Any = None) -> None:
        self._log, self._agent = log, agent
        self._number, description, self._digest = log.find(name)
        self.description = _read_description(description, log)
        if agent is None and not trusts((), self.description.agent):
            raise ArgumentError(
                f"the study names the agent {self.description.agent!r}, an import path, whose code would be run; if "
                f"you trust it, pass agent={self.description.agent!r}"
            )
        if agent is not None:
            # Messages and the cache of the agent name the one that plays.
            self.description = self.description.model_copy(update={"agent": _label_of(agent)})
        self.interface = interface_of(self.description)
        self.units = Units(self.description, self.interface)
        self._history = History(log, self._number, self._digest)
        self._suggester = Suggester(self._history, self.units, agent)

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            agent = cloudpickle.dumps(self._agent)
        # The attributes of an agent may raise anything.
        except Exception as error:
            raise ArgumentTypeError(
                f"the study {self.name!r} cannot be pickled or copied, because its agent, an object of type "
                f"{type(self._agent).__name__}, cannot: {message_of(error)}; load the study in the other process, by "
                "load_study"
            ) from error
        return _reopen, (self._log.address, self.name, self._digest, agent)

    def __repr__(self) -> str:
        about = self.description
        return f"Study({about.name!r}, storage={self._log.shown!r}, mode={about.mode!r}, agent={about.agent!r})"

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.description.name

    @property
    def diagram(self) -> CausalDiagram | None:
        """The causal diagram; None if it is not known, or there are candidates."""
        return self.interface.knowledge.diagram

    @property
    def trials(self) -> list[Entry]:
        """All trials, in their current state."""
        entries = self._current_trials().entries.values()
        return [replace(entry, do=self.units.native_values(self.units.from_flat(entry.action))) for entry in entries]

    @property
    def pending(self) -> list[Trial]:
        """The trials of all users whose outcomes are not known yet, or only in part."""
        trials = self._current_trials()
        return [self._trial(trials, entry.number) for entry in trials.pending]

    @property
    def best_trial(self) -> Entry | None:
        """The best measured trial among those that keep the limits and meet the constraints; None without one.

        With several objectives it is the first of :attr:`best_trials`.
        """
        return next(iter(self.best_trials), None)

    @property
    def best_trials(self) -> list[Entry]:
        """The Pareto front of the measured trials that keep the limits and meet the constraints.

        A trial meets a constraint if its measured value does. With one objective it is the trial with the best reward.
        """
        measured = [entry for entry in self.trials if entry.status == "measured"]
        front = self.units.front([(self.units.from_flat(entry.action), entry.values) for entry in measured])
        return [measured[index] for index in front]

    @property
    def events(self) -> int:
        """Number of events in the log, which grows with each change of the study."""
        return self._current_trials().number

    @property
    def campaigns(self) -> list[Campaign]:
        """The earlier campaigns among the data, and how much of them the agent learns."""
        records = [record for record in self._history.read().imported if "campaign" in record]
        if not records:
            return []
        with self._updated_agent(None):
            return self._suggester.campaigns(records)

    def add_data(
        self,
        rounds: Any,
        *,
        do: Any = None,
        ignore: Iterable[str] | str = (),
        campaign: str | None = None,
        differs: Iterable[str] | str = (),
    ) -> int:
        """Add past observations and experiments, also those of an earlier campaign.

        Args:
            rounds: a table with a row per round, a column for each variable, and a column ``do(X)`` for each variable
                that was set, empty in rounds in which it was not. It may be a data frame (of Polars, pandas or
                pyarrow), a list of mappings, a mapping from names to columns, a structured array, the path of a CSV or
                Excel file, or its content as bytes. If it is another study, all rounds of that study are added.
            do: the values that were set, instead of such columns: one mapping for all rounds, or a table with a row
                per round.
            ignore: names of columns to leave out.
            campaign: name of the earlier campaign in which the rounds were done, unless a column ``campaign`` gives
                it; an earlier study has its own name by default.
            differs: variables that had different mechanisms in that campaign; all others are the same. A column
                ``differs`` may name more of them, separated by commas.

        Returns:
            The number of rounds.

        Raises:
            ArgumentError: naming the row, the column and the mistake; nothing is stored then.
            MissingExtraError: if it is an Excel file, and the extra ``excel`` is not installed.

        Warns:
            UnusedDataWarning: if the agent learns nothing from some of the rounds.
            RepeatedDataWarning: if rounds equal others that the study had already, except in discrete mode.
        """
        past_rounds = _read_past_rounds(self.units, rounds, do=do, ignore=ignore, campaign=campaign, differs=differs)
        with agents_lock():
            check_rounds(past_rounds, self.units, self._suggester.peek)
        state = self._history.read()
        self._append(lambda _: data_events(past_rounds, self.units))
        # In discrete mode few outcomes are possible, so equal rounds are ordinary.
        if self.description.mode != "discrete":
            ended = [entry.record for entry in state.trials.entries.values() if entry.values]
            warn_of_repeats(past_rounds, [*state.imported, *ended])
        return len(past_rounds)

    def ask(
        self,
        count: int | None = None,
        *,
        context: Mapping[str, float] | None = None,
        fixed: Mapping[str, Any] | None = None,
        shared: Iterable[str] = (),
    ) -> Any:
        """Suggest what to try next: one trial, or a list of ``count`` trials to run at once.

        Pending trials of all users are taken into account, with the outcomes that the agent expects.

        Args:
            count: number of trials; None for one trial instead of a list.
            context: the observed context, in contextual mode.
            fixed: name -> value that each trial sets, within the bounds; in hard and contextual mode all suggested
                sets contain these variables.
            shared: names that all trials set to the same value, which the agent chooses.

        Raises:
            ArgumentError: for a wrong context, for values that cannot be set together within the limits, or if the
                agent cannot suggest now.
            OperationError: if the suggestion cannot be written; no trial is added then.

        Warns:
            DiagramWarning: after every fifth outcome, if the known rounds contradict the diagram.
        """
        size = 1 if count is None else whole_number("count", count, at_least=1)
        context = self.units.read_context(context)
        steering = self._read_steering(fixed, shared)

        def suggestion(state: State) -> Any:
            with name_agent_in_errors(self.description.agent):
                self._suggester.catch_up(state.events)
                actions = self._suggester.suggest(size, context, **steering)
            reasons, start = self._suggester.reasons(actions), state.trials.next_number
            suggestions = [
                {"number": number, "action": self.units.to_flat(action), "why": why}
                for number, (action, why) in enumerate(zip(actions, reasons, strict=True), start)
            ]
            return [("asked", {"trials": suggestions, "context": context, **steering})]

        with agents_lock():
            state = self._append(suggestion)
            event = state.events[-1]
            self._suggester.confirm(event)
            self._suggester.save_snapshot()
            trials = [self._trial(state.trials, suggested["number"]) for suggested in event.payload["trials"]]
        self._warn_of_diagram(state.trials)
        return trials[0] if count is None else trials

    def _read_steering(self, fixed: Mapping[str, Any] | None, shared: Iterable[str]) -> dict[str, Any]:
        """Return ``fixed`` and ``shared`` as the log stores them, without empty ones."""
        fixed = named_values(fixed)
        if not isinstance(fixed, dict | None):
            raise ArgumentError(f"fixed must be a mapping from names to values; given {short_repr(fixed)}")
        names = [shared] if isinstance(shared, str) else list(shared)
        if fixed and self.interface.codec.intervals:
            # This refuses all values, because intervals cannot be fixed.
            self.interface.codec.steer(fixed)
        values = {name: self.units.read_setting(name, value) for name, value in (fixed or {}).items()}
        if values or names:
            # This refuses values that cannot be kept.
            self.interface.codec.steer(values, names)
        return ({"fixed": values} if values else {}) | ({"shared": names} if names else {})

    def _trial(self, trials: Trials, number: int) -> Trial:
        entry = trials.entries[number]
        action = self.units.from_flat(entry.flat)
        used = batches(self.units, action, trials.entries.values(), before=number)
        return Trial(number, self.units.native_values(action), entry.why, entry.context, used)

    def register(self, do: Mapping[str, Any], *, context: Mapping[str, float] | None = None) -> Trial:
        """Add a pending trial of your own choice; suggestions take it into account, :meth:`tell` records its outcome.

        Args:
            do: name -> value, which may be outside the bounds; empty to only observe. Parameters that are not named
                have their null values.
            context: the observed context, in contextual mode.

        Raises:
            ArgumentError: if the action is not possible, or for a wrong context; nothing is stored then.
        """
        payload = {"context": self.units.read_context(context)}
        action = self.units.to_flat(self.units.action(do))

        def registration(state: State) -> Any:
            why = instructions(self.units, self.units.from_flat(action), state.trials.entries.values()) + OWN_CHOICE
            trial = {"number": state.trials.next_number, "action": action, "why": why}
            return [("registered", payload | {"trials": [trial]})]

        trials = self._append(registration).trials
        return self._trial(trials, max(trials.entries))

    def tell(
        self,
        trial: Trial | int,
        values: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        std: Mapping[str, float] | None = None,
        did: Mapping[str, Any] | None = None,
        final: bool = True,
    ) -> None:
        """Record the outcome of a trial, or a part of it.

        Args:
            trial: the trial, or its number.
            values: variable -> number, in its units, or the label of a category. Leave out variables that were not
                measured; by default variables have the values that were set, and contexts the observed ones. A final
                outcome needs the reward, unless it was recorded before. A mean of zeros and ones may be given as
                counts, ``{"cured": "37 of 1000"}``. Repeated measurements of the trial are a list of such mappings:
                their mean is recorded, with its standard error.
            std: variable -> standard error of its value.
            did: the values that were really set, if they differ from the suggestion; they may be outside the bounds;
                None for a name that was not set.
            final: False if other values will follow. The trial stays pending; agents with models of single variables
                learn the known values.

        Raises:
            ArgumentError: for an unknown trial, one that has ended, values that do not fit, or a value that differs
                from the one recorded before; nothing is stored then.
        """
        number, measurement = _number(trial), self.units.read_measurement(values, std)
        if not require_truth_value("final", final) and did is None and not any_measured(measurement.values):
            raise ArgumentError(f"give a value for trial {number}, as in tell({number}, {{...}}, final=False)")

        def outcome(state: State) -> Any:
            entry = _require_status(state.trials, number, "pending", "partial")
            action, done = self._done(entry, did)
            merged = _merge(entry, measurement)
            self.units.require_set_labels(merged.values, action)
            if final:
                self._require_outcome(number, action, merged.values)
                merged = merged._replace(values=self.units.fill_in(merged.values, action, entry.context))
            return [("told" if final else "partial", {"trial": number, **merged.fields(), "done": done})]

        self._append(outcome)

    def correct(
        self,
        trial: Trial | int,
        values: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        std: Mapping[str, float] | None = None,
        did: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace recorded values of a trial; the agent learns everything again.

        Arguments and errors are those of :meth:`tell`. Values and settings that are not named stay as recorded; None
        removes one. A partial trial stays partial, and a closed one closed, unless the reward is among the values. A
        failed trial is measured after all.
        """
        number, measurement = _number(trial), self.units.read_measurement(values, std)

        def correction(state: State) -> Any:
            entry = _require_status(state.trials, number, "measured", "partial", "closed", "failed")
            action, done = self._done(entry, did)
            corrected = _replace(entry, measurement, {*_names_in(values), *(named_values(did) or ())})
            self.units.require_set_labels(corrected.values, action)
            if entry.status == "partial":
                return [("corrected", {"trial": number, **corrected.fields(), "done": done, "status": "partial"})]
            corrected = corrected._replace(values=self.units.fill_in(corrected.values, action, entry.context))
            payload = {"trial": number, **corrected.fields(), "done": done}
            if entry.status == "closed" and self.units.missing_outcome(action, corrected.values):
                return [("corrected", payload | {"status": "closed", "reason": entry.reason})]
            self._require_outcome(number, action, corrected.values)
            return [("corrected", payload)]

        self._append(correction)

    def close(self, trial: Trial | int, reason: str = "") -> None:
        """End a partial trial whose reward will not be known; agents with models of single variables learn its values.

        Raises:
            ArgumentError: if no value was recorded, or the reward was recorded; or as :meth:`fail`.
        """
        number = _number(trial)
        _check_reason(reason)

        def closing(state: State) -> Any:
            entry = _require_status(state.trials, number, "partial")
            action = self.units.from_flat(entry.action)
            if not self.units.missing_outcome(action, entry.values):
                outcome = self.units.missing_outcome(action, dict.fromkeys(self.interface.nodes))
                subject = self.units.subject(outcome, f" of trial {number}")
                raise ArgumentError(f"{subject} known; complete the trial: tell({number}, {{}})")
            values = self.units.fill_in(entry.values, action, entry.context)
            measurement = Measurement(values, entry.std, entry.counts)
            return [("closed", {"trial": number, **measurement.fields(), "done": entry.done, "reason": reason})]

        self._append(closing)

    def _done(self, entry: Entry, did: Any) -> tuple[Action, list[float] | None]:
        """Return the action that was done, and its encoding, None if it is the suggested action.

        Args:
            entry: the trial.
            did: the values that were really set, by name, if they differ from what was recorded or suggested.
        """
        action = self.units.from_flat(entry.action)
        if did is None:
            return action, entry.done
        action = self.units.action(did, action)
        return action, self.units.to_flat(action)

    def _require_outcome(self, number: int, action: Action, values: Mapping[str, float | None]) -> None:
        if subject := self.units.subject(self.units.missing_outcome(action, values)):
            later, never = "it follows", "it never comes"
            if subject.endswith("are"):
                later, never = "they follow", "they never come"
            raise ArgumentError(
                f"{subject} missing; if {later} later, tell({number}, ..., final=False), --partial in a shell; if "
                f"{never}, close({number}) after that; if the trial gave no result, fail({number})"
            )

    def fail(self, trial: Trial | int, reason: str = "") -> None:
        """Record that a trial gave no result, or an invalid outcome; the agent learns nothing from it.

        The suggestions before the next outcome avoid its settings.

        Raises:
            ArgumentError: for an unknown trial, one that has failed or was rejected, or a reason of more than 10,000
                characters.
        """
        self._end("failed", trial, reason, "pending", "partial", "measured", "closed")

    def reject(self, trial: Trial | int, reason: str = "") -> None:
        """Record that a suggestion will not be tried; the suggestions before the next outcome avoid it.

        Raises:
            ArgumentError: for an unknown trial, one that has an outcome or has ended, or a reason as in :meth:`fail`.
        """
        self._end("rejected", trial, reason, "pending")

    def _end(self, event: str, trial: Trial | int, reason: str, *statuses: str) -> None:
        number = _number(trial)
        _check_reason(reason)

        def ending(state: State) -> Any:
            _require_status(state.trials, number, *statuses)
            return [(event, {"trial": number, "reason": reason})]

        self._append(ending)

    def recommendation(self, *, context: Mapping[str, float] | None = None) -> Any:
        """Return the action that the agent would deploy, a dictionary from names to values in the study's units.

        With several objectives it is a :class:`~cbo_gym.study.RecommendedSet` of actions.

        Args:
            context: in contextual mode, the observed context; None for the last one.

        Raises:
            ArgumentError: if no outcome is known yet, or for a wrong context.
        """
        with self._updated_agent(context):
            if self.description.objectives:
                return self._suggester.recommend_set()
            recommended = self.units.native_values(self._suggester.recommend(context))
            return {name: value for name, value in recommended.items() if name != self.interface.codec.choice_name}

    def what_if(self, do: Mapping[str, Any], *, context: Mapping[str, float] | None = None) -> Expectation:
        """Return the expected values of the objectives and of the other variables that the agent models, for an action.

        The mapping has the attributes ``interval``, the 95 % interval of the expected reward; ``intervals``, the same
        for several objectives, by name; ``outcomes``, the 95 % intervals of the variables in a new trial, noise
        included; and ``probabilities``, the probability that a new trial meets each constraint.

        Args:
            do: name -> value; empty to only observe. Parameters that are not named have their null values, which
                ``assumed`` lists.
            context: in contextual mode, the observed context; None for the last one.

        Raises:
            ArgumentError: if the action is not possible, no outcome is known yet, or for a wrong context.
        """
        with self._updated_agent(context):
            action = self.units.action(do)
            expected = self._suggester.expect(action, context)
        given_names = {*do, self.interface.codec.choice_name}
        assumed = {name: value for name, value in self.units.native_values(action).items() if name not in given_names}
        return Expectation(expected, expected.intervals, assumed, expected.forecast)

    def stopping(self, delta: float | None = None, *, context: Mapping[str, float] | None = None) -> Stopping:
        """Return the probability that a better action exists, the gain and cost of the next trial, and the budget.

        Nothing acts on it: :meth:`ask` suggests trials as before.

        Args:
            delta: the smallest improvement that matters, in the reward's units, above 0; None for the study's
                ``delta``, or else 5 % of the range of the rewards so far.
            context: in contextual mode, the observed context; None for the last one.

        Raises:
            ArgumentError: if ``delta`` is not above 0, or for a wrong context.
        """
        if delta is not None:
            require_positive("delta", delta)
        with self._updated_agent(context):
            return self._suggester.stopping(delta, context)

    def check_diagram(self, diagram: Any = None, *, level: float = 0.05) -> DiagramCheck:
        """Test whether the known rounds contradict the causal diagram; the test does not need the agent.

        Args:
            diagram: another diagram of the same variables to test, as :func:`create_study` takes it; None for the
                study's own.
            level: probability that one call refuses at least one statement of a true diagram.

        Raises:
            ArgumentError: if there is no diagram, or it has other variables.
        """
        tested = self.diagram if diagram is None else CausalDiagram.read(diagram)
        nodes, codec = self.interface.nodes, self.interface.codec
        if tested is None:
            raise ArgumentError("the study has no single diagram; give the one to test: check_diagram(diagram)")
        if set(tested.nodes) != set(nodes):
            raise ArgumentError(f"the study has the variables {sorted(nodes)}; the diagram has {sorted(tested.nodes)}")
        # Polars is not used, because a forked process lacks its threads.
        rows = [row for row in self._rows() if row[DIFFERS] is None]

        def column(key: str, name: str) -> np.ndarray:
            values = [row[key] for row in rows]
            if name in self.units.labels:
                values = [None if value is None else list(self.units.labels[name]).index(value) for value in values]
            return np.array(values, dtype=float)

        rounds = {name: column(name, name) for name in nodes}
        inputs: dict[str, Sequence[str]] = {}
        for name in self.settable:
            key = f"do({name})"
            if name in self.description.parameters:
                label = f"the parameter {name}" if name in nodes else name
                if codec.intervals:
                    ends = np.array([row[key] or (np.nan, np.nan) for row in rows]).reshape(-1, 2)
                    columns = {f"{label}, low": ends[:, 0], f"{label}, high": ends[:, 1]}
                else:
                    columns = {label: column(key, name)}
                rounds |= columns
                inputs |= dict.fromkeys(columns, self.description.parameters[name].node)
            elif name != codec.choice_name:
                rounds[key] = column(key, name)
        return check_diagram(tested, inputs, rounds, level)

    def _warn_of_diagram(self, trials: Trials) -> None:
        """Warn, every few outcomes, if the rounds contradict the diagram."""
        count = sum(entry.status == "measured" for entry in trials.entries.values())
        is_small = len(self.interface.nodes) + len(self.description.parameters) <= MAX_VARIABLES_AT_ASK
        if self.diagram is not None and is_small and count and count % DIAGRAM_CHECK_INTERVAL == 0:
            check = self.check_diagram()
            if check.refused:
                warnings.warn(f"{self.name}: {check.summary}; see check_diagram", DiagramWarning, stacklevel=3)

    @contextmanager
    def _updated_agent(self, context: Mapping[str, float] | None) -> Iterator[None]:
        """Hold the lock of agents, and let the agent learn from all events."""
        if context is not None:
            self.units.context(context)
        with agents_lock(), name_agent_in_errors(self.description.agent):
            self._catch_up()
            if left_out := self._suggester.unlearned_trials:
                warnings.warn(f"{self.name}: {left_out}", UnusedDataWarning, stacklevel=4)
            yield

    def agent_snapshot(self, context: Mapping[str, float] | None = None) -> tuple[State, Any, str]:
        """Return the current state, a copy of the agent, and the reason if there is no copy.

        The copy has learned all rounds. It is None if the agent cannot be copied or knows nothing yet; otherwise the
        reason is empty.

        Args:
            context: in contextual mode, the context that the agent is asked about; None for the last one.
        """
        with agents_lock():
            return self._catch_up(), *self._suggester.snapshot(context)

    def _catch_up(self) -> State:
        """Let the agent learn from all events and return the current state; requires the lock of agents."""
        state = self._history.read()
        self._suggester.catch_up(state.events)
        return state

    def data(self) -> pl.DataFrame:
        """Return all known rounds, one per row: the data that were added, and the trials with a measured value.

        Values that were not measured are null. The columns are those that :meth:`add_data` takes, so that another study
        can import them. Rounds of earlier campaigns have the name of the campaign, and the variables whose mechanisms
        differ there.
        """
        schema = self._columns() | {CAMPAIGN: pl.String, DIFFERS: pl.String}
        frame = _without_empty_precision(pl.DataFrame(self._rows(), schema=schema), self.interface.nodes)
        return frame.drop(name for name in (CAMPAIGN, DIFFERS) if frame[name].null_count() == len(frame))

    def _rows(self) -> list[dict[str, Any]]:
        """Return all known rounds as rows of the table."""
        state = self._history.read()
        ended = {number: state.trials.entries[trial] for trial, number in ends_of(state.events).items()}
        rows: list[dict[str, Any]] = []
        for event in state.events:
            if event.kind in DATA_KINDS:
                rows += map(self._row, event.payload["rounds"])
            elif event.number in ended and (entry := ended[event.number]).status != "failed":
                rows.append(self._entry_row(entry))
        return rows + [self._entry_row(entry) for entry in state.trials.pending if entry.status == "partial"]

    def _entry_row(self, entry: Entry) -> dict[str, Any]:
        values = self.units.fill_in(entry.values, self.units.from_flat(entry.action), entry.context)
        return self._row(entry.record | {"values": values})

    def _row(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a round as a row of the table."""
        done = self.units.native_values(self.units.from_flat(record["action"]))
        row = {f"do({name})": done.get(name) for name in self.settable}
        row |= {CAMPAIGN: record.get("campaign"), DIFFERS: ", ".join(record.get("differs", ())) or None}
        for column, key in (("{}", "values"), ("std({})", "std"), ("count({})", "counts")):
            row |= {column.format(name): record.get(key, {}).get(name) for name in self.interface.nodes}
        return row

    def _columns(self) -> dict[str, Any]:
        """Return column -> type in Polars, for the values of a round and their precision."""
        codec = self.interface.codec
        default: Any = pl.List(pl.Float64) if codec.intervals else pl.Float64
        integers = [name for name, domain in codec.domains.typed.items() if isinstance(domain, Integer)]
        types: dict[str, Any] = dict.fromkeys(integers, pl.Int64) | dict.fromkeys(codec.labels, pl.String)
        columns = {f"do({name})": types.get(name, default) for name in self.settable}
        for name in self.interface.nodes:
            column_type = pl.String if name in self.units.categories else pl.Float64
            columns |= {name: column_type, f"std({name})": pl.Float64, f"count({name})": pl.Int64}
        return columns

    @property
    def settable(self) -> list[str]:
        """Names of the variables or parameters that can be set."""
        return self.units.settable

    def to_frame(self) -> pl.DataFrame:
        """Return a table of the trials: ``number``, ``status``, ``do(X)`` as done, variables, reasons and times.

        Variables with a stated precision have columns ``std(X)`` and ``count(X)`` too.
        """
        rows = [
            entry.record | self._row(entry.record | {"values": {**(entry.context or {}), **entry.values}})
            for entry in self.trials
        ]
        strings = dict.fromkeys(("why", "reason", "asked", "ended"), pl.String)
        schema = {"number": pl.Int64, "status": pl.String, **self._columns(), **strings}
        frame = pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)
        return _without_empty_precision(frame, self.interface.nodes)

    @property
    def ignores_precision(self) -> bool:
        """Whether the precision of a value is stated, and the agent does not use it."""
        if not self._current_trials().precise:
            return False
        with self._updated_agent(None):
            return self._suggester.ignores_precision

    def _current_trials(self) -> Trials:
        return self._history.read().trials

    def _append(self, entries: Any) -> State:
        """Append events to the log, and return the new state; try again if another process wrote first.

        Args:
            entries: function that returns the kind and the payload of each event, given the current state.
        """
        for _ in range(TRIES):
            state = self._history.read()
            if written := self._history.append(state, entries(state)):
                return written
        raise OperationError(f"{self._log.shown}: other processes wrote first {TRIES} times; try again")


def _read_description(json_string: str, log: Log) -> Description:
    try:
        return Description.model_validate_json(json_string)
    except ValidationError as error:
        raise OperationError(
            f"{log.shown}: the study was created by another version of cbo-gym: {field_errors(error)}; upgrade"
        ) from error


def _number(trial: Trial | int) -> int:
    return trial.number if isinstance(trial, Trial) else whole_number("trial", trial, at_least=1)


def _require_status(trials: Trials, number: int, *statuses: str) -> Entry:
    if number not in trials.entries:
        raise ArgumentError(f"there is no trial {number}; there are {len(trials.entries)}")
    entry = trials.entries[number]
    if entry.status not in statuses:
        advice = {
            "pending": "tell() records its outcome, fail() ends it without one",
            "measured": "correct() changes its outcome, fail() withdraws it",
            "closed": "correct() changes its outcome, fail() withdraws it",
            "failed": "correct() records an outcome after all, register() adds a trial of the same settings",
        }.get(entry.status, "register() adds a trial of the same settings")
        raise ArgumentError(f"trial {number} is {entry.status}, not {statuses[0]}; {advice}")
    return entry


def _check_reason(reason: str) -> None:
    if not isinstance(reason, str) or len(reason) > MAX_REASON:
        raise ArgumentError(f"the reason must be a string of at most {MAX_REASON} characters")


def _merge(entry: Entry, new: Measurement) -> Measurement:
    """Merge new values into those of a trial; refuse a value that differs from a recorded one."""
    for recorded, measured, noun in ((entry.values, new.values, ""), (entry.std, new.std, "the standard error of ")):
        for name, value in measured.items():
            before = recorded.get(name)
            if None not in (value, before) and value != before:
                raise ArgumentError(
                    f"{noun}{name} of trial {entry.number} was recorded as {format_value(before)}; given "
                    f"{format_value(value)}; correct({entry.number}, ...) replaces what was recorded"
                )
    values = {name: entry.values.get(name) if value is None else value for name, value in new.values.items()}
    return Measurement(values, {**entry.std, **new.std}, {**entry.counts, **new.counts})


def _replace(entry: Entry, new: Measurement, names: Collection[str]) -> Measurement:
    """Return the recorded values of a trial with new ones of these names."""
    values = {name: value if name in names else entry.values.get(name) for name, value in new.values.items()}
    std = {name: error for name, error in entry.std.items() if name not in names}
    counts = {name: count for name, count in entry.counts.items() if name not in names}
    return Measurement(values, {**std, **new.std}, {**counts, **new.counts})


def _names_in(values: Any) -> set[str]:
    """Return the variables that an outcome, or repeated ones, give a value."""
    rows = values if isinstance(values, Sequence) and not hasattr(values, "_asdict") else [values]
    return {name for row in rows for name in named_values(row)}


def _without_empty_precision(frame: pl.DataFrame, variables: Iterable[str]) -> pl.DataFrame:
    precision = [f"{noun}({name})" for name in variables for noun in ("std", "count")]
    return frame.drop([name for name in precision if frame[name].null_count() == len(frame)])


def _read_past_rounds(units: Units, rounds: Any, campaign: str | None = None, **others: Any) -> list[PastRound]:
    """Read past rounds, see :meth:`Study.add_data`."""
    if isinstance(rounds, Study):
        campaign = rounds.name if campaign is None else campaign
        rounds = rounds_for(units, rounds.data(), rounds.description)
    return read_rounds(units, rounds, campaign=campaign, **others)


def create_study(
    name: str,
    *,
    storage: Path | str,
    diagram: Any = None,
    candidates: Iterable[Any] = (),
    agent: Any = None,
    prior: Any = None,
    differs: Iterable[str] | str = (),
    **others: Any,
) -> Study:
    """Create a study in a database.

    Args:
        name: name of the study.
        storage: path of a SQLite file, or any URL of SQLAlchemy.
        diagram: the causal diagram in any form that :meth:`cbo_gym.scm.CausalDiagram.read` takes: a string of DAGitty
            or DOT, a graph of networkx, pgmpy, DoWhy or causal-learn, or a list of pairs ``(cause, effect)``; None if
            it is not known.
        candidates: possible diagrams, one of which should be the true one.
        agent: the label of an agent, such as ``"CBO"`` or ``"MCBO(beta=3)"``; or an object of another class, which must
            be passed to :func:`load_study` too. None for ``"Auto"``, which chooses an agent that fits the description.
        prior: an earlier study, whose rounds are copied into this one as an earlier campaign; or its database, or
            ``{"storage": DATABASE, "study": NAME}`` if that has several studies.
        differs: variables that had different mechanisms in the earlier study; all others are the same.
        others: the other fields of :class:`~cbo_gym.study.description.Description`.

    Raises:
        ArgumentError: naming a field that is missing, unknown or does not fit the others; nothing is stored then.
        OperationError: if the database cannot be written.
    """
    units, custom_agent = describe(name, diagram=diagram, candidates=candidates, agent=agent, **others)
    description, events = units.description, []
    if prior is not None:
        with errors_at("prior"):
            past_rounds = _read_past_rounds(units, _open_prior(prior), differs=differs)
            check_rounds(past_rounds, units, lambda: begin_agent(custom_agent, units))
        events = data_events(past_rounds, units)
    elif differs:
        raise ArgumentError("differs is about an earlier study, which prior gives")
    # JSON in ASCII can be stored by servers of any encoding.
    Log(storage, create=True).create(description.name, json.dumps(description.model_dump(mode="json")), events)
    return Study(Log(storage), description.name, custom_agent)


def _open_prior(prior: Any) -> Study:
    if isinstance(prior, Study):
        return prior
    source = prior if isinstance(prior, Mapping) else {"storage": prior}
    if not {"storage"} <= set(source) <= {"storage", "study"} or not isinstance(source["storage"], str | Path):
        raise ArgumentError(
            "prior must be a study, its database, or {storage: DATABASE, study: NAME}; given " + short_repr(prior)
        )
    # The agent of the earlier study is not needed.
    return load_study(source.get("study"), storage=source["storage"], agent="Random")


def describe(
    name: str, *, diagram: Any = None, candidates: Iterable[Any] = (), agent: Any = None, **others: Any
) -> tuple[Units, Any]:
    """Return the units of a new study, with its description, and the agent if it is an object or an import path."""
    with errors_at("diagram"):
        diagram = None if diagram is None else CausalDiagram.read(diagram)
    with errors_at("candidates"):
        if isinstance(candidates, str) or not isinstance(candidates, Iterable):
            raise ArgumentError(f"candidates must be a list of diagrams; given {short_repr(candidates)}")
        candidates = [CausalDiagram.read(candidate) for candidate in candidates]
    label = "Auto" if agent is None else _label_of(agent)
    fields = {"name": name, "diagram": diagram, "candidates": candidates, "agent": label, **others}
    strings = {
        "diagram": diagram and diagram.to_dagitty(),
        "candidates": [candidate.to_dagitty() for candidate in candidates],
    }
    require_storable(fields | strings)
    try:
        description = without_effects(Description.model_validate(fields))
    except ValidationError as error:
        raise ArgumentError(f"cannot create the study: {field_errors(error, Description)}") from error
    is_installed = agent is None or (isinstance(agent, str) and trusts((), agent))
    custom_agent = None if is_installed else agent
    units = Units(description, interface_of(description))
    with errors_at("limits"):
        require_digits(units.codec)
    # The agent must play the study.
    with errors_at("agent"), agents_lock():
        if not isinstance(agent, str | type | None) and name_of(agent) in known_agents():
            raise ArgumentError(
                "the study would know only the name of this agent; give its label with the settings, as in "
                f"'{name_of(agent)}(name=value)'"
            )
        begin_agent(custom_agent, units)
    return units, custom_agent


def _label_of(agent: Any) -> str:
    return agent if isinstance(agent, str) else name_of(agent)


def trusts(trusted: Collection[str], label: str) -> bool:
    """Return whether the code of an agent may be run: it is installed, or its import path is trusted."""
    name = Spec.from_label(label).name
    return not is_import_path(name) or name in {Spec.from_label(path).name for path in trusted}


def load_study(name: str | None = None, *, storage: Path | str, agent: Any = None) -> Study:
    """Open an existing study.

    Args:
        name: name of the study; None if the database has only one.
        storage: as for :func:`create_study`.
        agent: the agent object or import path that the study was created with, because code that only a
            database names is not run; or another agent. None for the installed agent that the study names.

    Raises:
        ArgumentError: if there is no such study or database.
    """
    return Study(Log(storage), name, agent)


def _reopen(storage: str, name: str, digest: str, agent: bytes) -> Study:
    log = Log(storage)
    study = Study(log, name, cloudpickle.loads(agent))
    if study._digest != digest:
        raise log.replaced_error("its description")
    return study


def studies_in(storage: Path | str) -> list[str]:
    """Return the names of the studies in a database."""
    return Log(storage).names()
