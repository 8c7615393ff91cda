"""The agent of a study, which learns the events of the log and suggests trials.

It can be rebuilt from the log at any time: it learns the same rounds and makes the same suggestions again, so that a
restart changes nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import chain
from threading import RLock
from typing import Any

import numpy as np

from cbo_gym._util.agent_state import StateError
from cbo_gym._util.fronts import non_dominated
from cbo_gym._util.numerics import numerical_settings
from cbo_gym._util.seal import is_ours, seal
from cbo_gym.agent import agents_with_limits, overrides
from cbo_gym.agent_registry.admission import admit_agent
from cbo_gym.agent_registry.finding import agent_of, find_agent, known_agents, modes_of
from cbo_gym.agent_registry.labels import Spec, is_import_path
from cbo_gym.agent_registry.zoo import name_of
from cbo_gym.envs.tasks import task_of
from cbo_gym.errors import (
    ArgumentError,
    ArgumentTypeError,
    CBOGymError,
    OperationError,
    UnsupportedModeError,
    message_of,
)
from cbo_gym.evaluation.runs.provenance import library_versions
from cbo_gym.evaluation.runs.revisions import modules_of, package_stamp, stamps_of
from cbo_gym.study.batches import instructions
from cbo_gym.study.budget import budget_remarks, spending
from cbo_gym.study.campaigns import Campaign, campaigns_of, is_complete, round_for_agent
from cbo_gym.study.digits import round_digits
from cbo_gym.study.expectation import Expectation, RecommendedAction, RecommendedSet, forecasts
from cbo_gym.study.forecast import forecast, forecasts_in_words
from cbo_gym.study.log import DATA_KINDS, Event
from cbo_gym.study.stopping import Stopping, find_stopping
from cbo_gym.study.trials import Entry, History, Trials, ends_of, missing_variables
from cbo_gym.study.units import ROUNDING, Units
from cbo_gym.task import Action, Observation, Round, Task

# Agents that take rounds in which not all variables were measured.
DO_WITHOUT = ("EIFN", "MCBO", "GP-UCB", "ConstrainedEI", "Optuna", "Random", "qNEHVI-Network")
# Agents that keep constraints.
KEEP_CONSTRAINTS = ("MCBO", "cCBO", "ConstrainedEI")
# Agents that forecast outcomes.
HAVE_MODELS = ("MCBO", "CBO", "GP-UCB", "POMIS-TS", "KGFN", "qNEHVI-Network")
# Agents that learn from rounds without a reward.
LEARN_PARTS = ("EIFN", "MCBO", "ConstrainedEI", "cCBO", "qNEHVI-Network")
# Agents for one objective and for several; others are for one of the two.
ANY_OBJECTIVES = ("Auto", "Random")


def agents_for_mode(agents: Iterable[str], units: Units) -> str:
    """Return those of the agents that play a study's mode and objectives, for errors."""
    mode, several = units.description.mode, bool(units.description.objectives)

    def plays(name: str) -> bool:
        agent = find_agent(name)
        is_for_these = name in ANY_OBJECTIVES or getattr(agent, "several_objectives", False) == several
        return is_for_these and mode in modes_of(agent)

    return ", ".join(filter(plays, agents)) or f"none in {mode} mode{' with several objectives' if several else ''}"


_lock = RLock()


@contextmanager
def agents_lock() -> Iterator[None]:
    """Hold the lock of all agents of the process, and compute with their numerical settings, so with one thread.

    Only one agent computes at a time, because the libraries of agents keep settings for the whole process, which would
    make a suggestion depend on other agents. In a forked process several threads would wait forever for the threads of
    torch, which exist in its parent only.
    """
    with _lock, numerical_settings():
        yield


def _renew_lock() -> None:
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    # A thread of the parent may hold the lock, and does not exist in the child.
    os.register_at_fork(after_in_child=_renew_lock)


class AgentError(OperationError):
    """An agent raised an error that is not a :class:`CBOGymError`."""


@contextmanager
def name_agent_in_errors(agent: str) -> Iterator[None]:
    """Convert errors of an agent's code to :class:`AgentError`, which names the agent; it may raise anything."""
    try:
        yield
    except CBOGymError:
        raise
    except Exception as error:
        raise AgentError(
            f"the agent {agent} fails with {type(error).__name__}: {message_of(error)}; nothing was recorded by "
            "this call"
        ) from error


def begin_agent(agent: Any, units: Units, initial: Sequence[Mapping[str, Any]] = ()) -> Any:
    """Create an agent and reset it with the task of a study.

    Args:
        agent: the agent, or its label; None for the one that the description names.
        units: the units of the study.
        initial: records of the data that were added before the first suggestion.
    """
    created, description = _create_agent(agent, units), units.description
    if (modes := modes_of(created)) and description.mode not in modes:
        source = description.agent if agent is None else agent
        label = source if isinstance(source, str) else name_of(created)
        raise UnsupportedModeError(
            f"{label} plays {', '.join(modes)}; {description.name} is {description.mode}; choose an agent of this "
            f"mode: {agents_for_mode(known_agents(), units)}"
        )
    created.reset(_task(units, initial), seed=units.description.seed)
    for record in initial:
        if not _is_initial(units, record):
            _teach(created, units, record)
    return created


def _create_agent(source: Any, units: Units) -> Any:
    """Return a new agent from an agent, a class or a label; None for the label that the description names."""
    if source is None:
        source = units.description.agent
        if (name := Spec.from_label(source).name) in known_agents() or is_import_path(name):
            # agent_of refuses any other name.
            source = admit_agent(source)
    agent = agent_of(source)
    if agent is not source:
        return agent
    try:
        return deepcopy(agent)
    # The attributes of an agent may raise anything.
    except Exception as error:
        raise ArgumentTypeError(
            f"the agent, an object of type {type(agent).__name__}, cannot be copied ({message_of(error)}), and a "
            "study works with a copy of it; give the import path of its class: 'package.module:Class'"
        ) from error


def _task(units: Units, initial: Sequence[Mapping[str, Any]]) -> Task:
    rounds = []
    for record in initial:
        if _is_initial(units, record):
            action, observation = units.from_flat(record["action"]), units.observation(record)
            rounds.append(Round(action, observation, units.reward_of(action, observation)))
    task = task_of(units.interface, units.description.name, units.description.horizon, tuple(rounds))
    task.action_space.seed(units.description.seed)
    return task


def _is_initial(units: Units, record: Mapping[str, Any]) -> bool:
    """Return whether a round of data is complete, so that it can be part of the task's initial data."""
    return not record.get("differs") and is_complete(units, record)


def _teach(agent: Any, units: Units, record: Mapping[str, Any], next_context: Any = None) -> Observation | None:
    """Let an agent learn a round; return its observation, or None if it lacks the reward or is of another system.

    The observation has the context of the next round, if there is one.
    """
    action, context = units.from_flat(record["action"]), record["context"]
    learned = round_for_agent(agent, units, record, next_context)
    if learned is None:
        return None
    observation = learned.observation
    # In partial mode trials cannot use the products of past rounds.
    info = {"intervention": units.native_values(action), "is_past": "number" not in record}
    if context is not None and hasattr(agent, "set_context"):
        agent.set_context(units.context(context)["context"])
    if learned.is_partial:
        agent.update_partial(deepcopy(action), observation, info)
        return None
    agent.update(deepcopy(action), deepcopy(observation), units.reward_of(action, observation), info)
    return None if record.get("differs") else observation


def _last_corrections(events: Sequence[Event]) -> dict[int, Event]:
    """Return number of the event that ended a trial -> its last correction, as an event of the outcome or failure."""
    ends, last = ends_of(events), {}
    for event in events:
        if event.kind not in ("corrected", "failed"):
            continue
        end = ends.get(event.payload["trial"], event.number)
        if event.number > end:
            last[end] = event if event.kind == "failed" else replace(event, kind="told")
    return last


class Suggester:
    """The agent of a study, rebuilt from events, which makes suggestions. Only one thread at a time may use it."""

    def __init__(self, history: History, units: Units, agent: Any = None) -> None:
        self._history, self._units, self._source = history, units, agent
        # Whether the agent has done something that the log lacks, as during a suggestion, and after one that failed.
        self._is_ahead = False
        self._forget()

    def _forget(self) -> None:
        """Return to the state before the first event."""
        # The trials after the events that the agent has learned.
        self._trials = Trials()
        self._agent: Any = None
        # The observation of the last round that the agent has learned.
        self._last_observation: Observation | None = None
        # The record of the last round, until the agent learns it: its observation may need the next round's context.
        self._unlearned: Mapping[str, Any] | None = None

    # Learning -------------------------------------------------------------------------------------------

    def catch_up(self, events: Sequence[Event]) -> None:
        """Learn from all new events; from the first event, if the agent is ahead of the log."""
        if self._is_ahead:
            self._forget()
        elif len(events) == self._trials.number > 0:
            return
        self._is_ahead = True
        corrections = _last_corrections(events)
        last_correction = max((correction.number for correction in corrections.values()), default=0)
        if last_correction > self._trials.number:
            # An agent cannot forget a single outcome.
            self._forget()
        if self._trials.number == 0:
            self._restore(events, last_correction)
        for event in events[self._trials.number :]:
            if last := corrections.get(event.number):
                # The last correction of an outcome stands in its place.
                event = replace(last, number=event.number)
            self._apply(event)
        self._is_ahead = False

    def _apply(self, event: Event) -> None:
        if event.kind == "asked":
            # The actions are in the log, but the agent must suggest them again, because this changes its state.
            payload = event.payload
            self.suggest(len(payload["trials"]), payload["context"], payload.get("fixed"), payload.get("shared", ()))
        self._trials.apply([event])
        # Data that were added before the first trial are part of the task with which the agent is reset.
        if event.kind in DATA_KINDS and self._trials.entries:
            for record in event.payload["rounds"]:
                self._learn(record)
        elif event.kind in ("told", "closed") and self._learns(entry := self._trials.entries[event.payload["trial"]]):
            self._learn(entry.record)

    def _learn(self, record: Mapping[str, Any]) -> None:
        self._learn_last(None)
        self._unlearned = record
        if not self._units.interface.observes_before:
            self._learn_last(None)

    def _learn_last(self, next_context: Any) -> None:
        """Let the agent learn the last round; its observation has the context of the next one, if there is one."""
        if self._unlearned is not None:
            observation = _teach(self.agent, self._units, self._unlearned, next_context)
            self._last_observation = self._last_observation if observation is None else observation
            self._unlearned = None

    # The agent ------------------------------------------------------------------------------------------

    @property
    def agent(self) -> Any:
        """The agent; it is created when it is first needed, with the data that were added before the first trial."""
        if self._agent is None:
            self._agent = self._begin()
        return self._agent

    def _begin(self) -> Any:
        return begin_agent(self._source, self._units, self._trials.initial)

    def peek(self) -> Any:
        """Return the agent, or a temporary one if it was not created yet, to read which rounds it takes."""
        return self._begin() if self._agent is None else self._agent

    @property
    def _takes_missing(self) -> bool:
        return bool(getattr(self.peek(), "takes_missing", False))

    def _learns(self, entry: Entry) -> bool:
        """Return whether the agent learns a trial, in which some variables may be missing."""
        return entry.status != "measured" or not missing_variables(entry.values) or self._takes_missing

    @property
    def unlearned_trials(self) -> str:
        """The trials, or the variables, that the agent cannot learn without what was not measured, in words."""
        missing = self._trials.missing
        if not missing:
            return ""
        if self._takes_missing:
            return self._unlearned_effects
        noun, numbers = "trial" if len(missing) == 1 else "trials", ", ".join(map(str, missing))
        names = ", ".join(dict.fromkeys(chain(*missing.values())))
        return (
            f"{self._units.description.agent} learns nothing from {noun} {numbers} without {names}; correct() adds "
            "what was measured"
        )

    @property
    def _unlearned_effects(self) -> str:
        """The causes of the objectives without which the agent learns no mechanism, in words; empty without any."""
        diagram, agent, state = self._units.interface.knowledge.diagram, self.peek(), self._history.read()
        if diagram is None or not getattr(agent, "learns_mechanisms", False):
            return ""
        records = [*state.imported, *(entry.record for entry in state.trials.entries.values())]
        measured = {name for record in records for name, value in record["values"].items() if value is not None}
        causes = diagram.ancestors(objectives := self._units.measured_objectives).difference(measured, objectives)
        if not (unmeasured := [name for name in diagram.nodes if name in causes]):
            return ""
        return (
            f"{self._units.description.agent} cannot learn the effects of {', '.join(unmeasured)}, which no round "
            f"measured; measure them, or create a study whose diagram says {unmeasured[0]} [latent]"
        )

    def campaigns(self, records: Sequence[Mapping[str, Any]]) -> list[Campaign]:
        """Group rounds of earlier campaigns, and count how many of each the agent learns."""
        agent = self.peek()
        return campaigns_of(records, [round_for_agent(agent, self._units, record) for record in records])

    def _restore(self, events: Sequence[Event], last_correction: int) -> None:
        """Restore the agent from the cache, if the same code saved it after the last correction of an outcome."""
        number, stamp, content = self._history.log.read_snapshot(self._history.study) or (0, "", b"")
        # Other processes may have been faster since the events were read.
        if not max(1, last_correction) <= number <= len(events):
            return
        agent = _create_agent(self._source, self._units)
        code_stamp, _, sealed = stamp.partition("\n")
        # The database of another user may contain anything.
        is_sealed = is_ours(_signed_content(number, code_stamp, content), sealed)
        if not is_sealed or not hasattr(agent, "restore") or code_stamp != self._stamp(agent):
            return
        self._trials.apply(events[:number])
        try:
            agent.restore(content, _task(self._units, self._trials.initial))
        # The agent refuses the saved state.
        except ArgumentError:
            self._forget()
        else:
            self._last_observation, self._agent = self._find_last_observation(events[:number]), agent

    def _find_last_observation(self, events: Sequence[Event]) -> Observation | None:
        """Return the observation of the last round that the agent learned from these events, if there is one."""
        first_trial = next((event.number for event in events if event.kind in ("asked", "registered")), len(events))
        ended = {number: self._trials.entries[trial] for trial, number in ends_of(events).items()}
        for event in reversed(events[first_trial:]):
            entry = ended.get(event.number)
            if entry is not None and entry.status == "measured" and self._learns(entry):
                return self._units.observation(entry.record)
            for record in reversed(event.payload["rounds"] if event.kind in DATA_KINDS else ()):
                if _is_initial(self._units, record):
                    return self._units.observation(record)
        return None

    def save_snapshot(self) -> None:
        """Save the agent's state after the last event in the cache; do nothing if it cannot be saved."""
        if not hasattr(self.agent, "state"):
            return
        try:
            content = self.agent.state()
        except StateError:
            return
        stamp, number = self._stamp(self.agent), self._trials.number
        sealed = seal(_signed_content(number, stamp, content))
        if sealed is not None:
            self._history.log.write_snapshot(self._history.study, number, f"{stamp}\n{sealed}", content)

    def _stamp(self, agent: Any) -> str:
        """Return a string that changes with the description, and with the code that produces the agent's state."""
        code = stamps_of(modules_of(agent, None)) | package_stamp()
        return json.dumps([self._units.description.model_dump_json(), code, library_versions()], sort_keys=True)

    # Suggesting -----------------------------------------------------------------------------------------

    def suggest(
        self, count: int, context: Any, fixed: Mapping[str, Any] | None = None, shared: Sequence[str] = ()
    ) -> list[Action]:
        """Suggest ``count`` actions, given the pending trials; the arguments are those of :meth:`Study.ask`.

        A trial that failed or was rejected counts as pending until the next outcome, so that it is not suggested again
        at once.
        """
        self._is_ahead = True
        self._learn_last(context)
        last, fixed = self._last_observation or self._units.interface.empty_observation(), fixed or {}
        observation = {**deepcopy(last), **self._units.context(context)}
        agent, pending = self.agent, self._trials.pending
        takes_pending = hasattr(agent, "act_given_pending") and (not context or hasattr(agent, "set_context"))
        if takes_pending:
            pending = [*pending, *self._trials.avoided.values()]
        elif pending or shared:
            raise ArgumentError(
                f"{self._units.description.agent} suggests one trial at a time; record the outcome of the pending "
                "one first"
            )
        running = [self._units.from_flat(entry.action) for entry in pending]
        # A registered trial may be outside the bounds.
        is_outside = [self._units.distance(action) > ROUNDING for action in running]
        running = [
            self._units.nearest(action) if out else action for action, out in zip(running, is_outside, strict=True)
        ]
        contexts = [self._units.context(entry.context)["context"] for entry in pending] if context else []
        measured = [self._measured(entry) for entry in pending]
        suggested: list[Action] = []

        def choose(size: int, fixed: Mapping[str, Any], required: Sequence[str] = ()) -> list[Action]:
            """Choose actions that set the fixed and the required names, given all earlier ones without an outcome."""
            pending_actions, arguments = [*running, *suggested], dict[str, Any]()
            if context:
                arguments["contexts"] = [*contexts, *[observation["context"]] * len(suggested)]
            # An agent of a third party may not take known values.
            if any(measured) and "measured" in signature(agent.act_given_pending).parameters:
                arguments["measured"] = [*measured, *[{}] * len(suggested)]
            with self._steer(agent, fixed, required):
                if pending_actions:
                    actions = agent.act_given_pending(observation, pending_actions, size, **arguments)
                elif size == 1:
                    actions = [agent.act(observation)]
                else:
                    actions = agent.act_batch(observation, size)
            return [round_digits(self._units.codec, self._units.require_valid(action), fixed) for action in actions]

        # The first trial chooses the values that the others share.
        suggested += choose(1 if shared else count, fixed, shared)
        if count > len(suggested):
            values = self._units.native_values(suggested[0])
            suggested += choose(count - 1, {**{name: values[name] for name in shared}, **fixed})
        return suggested

    @contextmanager
    def _steer(self, agent: Any, fixed: Mapping[str, Any], required: Sequence[str] = ()) -> Iterator[None]:
        """Let the agent choose actions that have fixed values, and set the required names as well."""
        if not fixed and not required:
            yield
            return
        if not getattr(agent, "takes_limits", False):
            label = self._units.description.agent
            raise ArgumentError(
                f"{label} cannot keep values in this study; ask without fixed and shared, or choose "
                f"{agents_with_limits(agent.task).removeprefix(f'{label}, ')}"
            )
        codec = agent.task.codec
        limits = codec.limits
        codec.limits = codec.steer(fixed, required)
        try:
            yield
        finally:
            codec.limits = limits

    def _measured(self, entry: Entry) -> dict[str, float]:
        """Return the known values of a partial trial, as the agent observes them; an empty mapping for other trials."""
        if entry.status != "partial":
            return {}
        nodes = self._units.observation(self._partial_record(entry))["nodes"]
        values = zip(self._units.interface.nodes, nodes.tolist(), strict=True)
        return {name: value for name, value in values if not np.isnan(value)}

    def _partial_record(self, entry: Entry) -> dict[str, Any]:
        values = self._units.fill_in(entry.values, self._units.from_flat(entry.action), entry.context)
        return entry.record | {"values": values}

    def _teach_partial_trials(self, agent: Any) -> None:
        """Let a copy of the agent learn from partial trials; the agent itself learns when a trial ends."""
        for entry in self._trials.pending:
            if entry.status == "partial":
                record, action = self._partial_record(entry), self._units.from_flat(entry.action)
                is_full = not missing_variables(record["values"])
                if is_full or self._units.missing_outcome(action, record["values"]) or self._takes_missing:
                    _teach(agent, self._units, record)

    def confirm(self, event: Event) -> None:
        """Note that the last suggestions were written as this event."""
        self._trials.apply([event])
        self._is_ahead = False

    def reasons(self, actions: Sequence[Action]) -> list[str]:
        """Return for each action the reason for it: its expected reward, the best one so far, and remarks; in words."""
        units, name, entries = self._units, self._units.description.agent, self._trials.entries.values()
        note = f"; {self.unlearned_trials}" if self.unlearned_trials else ""
        if units.description.constraints and not overrides(self.agent, "estimated_violations"):
            keepers = agents_for_mode(KEEP_CONSTRAINTS, units)
            note = f"; {name} ignores the constraints, which are kept by {keepers}{note}"
        plans = [instructions(units, action, entries) for action in actions]
        remarks = [f"{note}{remark}" for remark in budget_remarks(units, entries, actions)]
        history = getattr(self.agent, "history", [])
        if not history:
            return [f"{plan}{self._nothing_known}{remark}" for plan, remark in zip(plans, remarks, strict=True)]
        rounds = [(played.action, units.observed_values(played.observation)) for played in history]
        best, sets = self._best_in_words(rounds, units.front(rounds)), self._sets_in_words()
        precision = f"; {name} ignores the stated precision" if self.ignores_precision else ""
        return [
            f"{plan}{expected}{best}{sets}{forecast}{precision}{remark}"
            for plan, (expected, forecast), remark in zip(plans, self._expectations(actions), remarks, strict=True)
        ]

    @property
    def _nothing_known(self) -> str:
        """Message that no reward is known; data may have other variables, or be of another campaign."""
        return "no reward of this campaign is known yet" if self._trials.initial else "nothing is known yet"

    def _require_reward(self, agent: Any) -> None:
        if not getattr(agent, "history", True):
            advice = self.unlearned_trials or "record the outcome of a trial, or add data"
            raise ArgumentError(f"{self._nothing_known}; {advice}")

    def _best_in_words(self, rounds: Sequence[tuple[Action, Mapping[str, Any]]], front: Sequence[int]) -> str:
        if not front and not self._units.conditions:
            return f"no {self._units.objectives[0]} is known yet"
        if not front:
            return f"no round meets the {self._units.conditions} yet"
        if len(self._units.objectives) > 1:
            return f"not dominated so far: {len(front)} of {len(rounds)} rounds"
        return f"best so far {rounds[front[0]][1][self._units.objectives[0]]:.4g}"

    @property
    def ignores_precision(self) -> bool:
        """Whether the precision of a value is stated, and the agent does not use it."""
        return self._trials.precise and not getattr(self.agent, "takes_precision", False)

    def _expectations(self, actions: Sequence[Action]) -> list[tuple[str, str]]:
        """Return for each action its expected objectives, ``"expected titre 0.81 +- 0.1, "``, and its forecast.

        Both are empty strings if the agent has no model.
        """
        try:
            copy = deepcopy(self.agent)
            self._teach_partial_trials(copy)
            expected = [expectation.rows() for expectation in self._forecast(copy, actions)]
            outcomes = forecasts_in_words(self._units, copy, actions)
        # An agent may have no model, or one that cannot be copied.
        except Exception:
            return [("", "")] * len(actions)
        predictions = []
        for rows in expected:
            values = [
                f"{name} {value:.4g}" + ("" if ends is None else f" +- {(ends[1] - ends[0]) / 2:.2g}")
                for name, value, ends, _ in rows
            ]
            predictions.append(f"expected {', '.join(values)}, " if values else "")
        return list(zip(predictions, outcomes, strict=True))

    def _forecast(self, agent: Any, actions: Sequence[Action]) -> list[Expectation]:
        """Return the objectives that an agent expects of actions, without intervals if it has no model of one."""
        bands = forecasts(self._units, agent, actions)
        if not bands and len(actions) > 1:
            return [self._forecast(agent, [action])[0] for action in actions]
        if not bands:
            values = self._units.to_values(np.atleast_1d(agent.fantasize(actions[0])[1]))
            return [Expectation(dict(zip(self._units.objectives, values.tolist(), strict=True)), {})]
        expectations = []
        for index in range(len(actions)):
            # A trial that measures an intermediate product has no reward.
            known = {name: band for name, band in bands.items() if not np.isnan(band.mean[index])}
            intervals = {name: (float(band.low[index]), float(band.high[index])) for name, band in known.items()}
            # The cost of an action is certain.
            intervals = {name: ends for name, ends in intervals.items() if name in self._units.measured_objectives}
            expectations.append(Expectation({name: float(band.mean[index]) for name, band in known.items()}, intervals))
        return expectations

    def _sets_in_words(self) -> str:
        """Return the number of sets to choose from, in words, and why the others are left out."""
        description, codec = self._units.description, self._units.codec
        if (count := len(codec.choices)) < 2 or codec.choice_name:
            return ""
        total = 2 ** len(description.settable)
        are_of_diagram = description.diagram is not None and description.targets is None
        if codec.options[0] == "targets" and are_of_diagram and count < total:
            return f"; one of {count} target sets, because the others of {total} are no better, whatever the mechanisms"
        return f"; one of {count} sets"

    def recommend(self, context: Mapping[str, float] | None) -> Action:
        """Return the action inside the bounds that the agent would deploy; the agent does not change."""
        agent = self._copy_agent(context)
        self._require_reward(agent)
        return round_digits(self._units.codec, self._move_inside(agent, [agent.recommend()])[0])

    def recommend_set(self) -> RecommendedSet:
        """Return the actions that the agent would deploy, the best in the first objective first; it does not change."""
        agent, units = self._copy_agent(), self._units
        self._require_reward(agent)
        inside = [round_digits(units.codec, action) for action in self._move_inside(agent, agent.recommend())]
        # Actions with equal settings may differ in coordinates that are not set.
        actions = {tuple(units.native_values(action).items()): action for action in inside}
        estimates, recommended = self._played_estimates(agent), list[RecommendedAction]()
        for done, expected in zip(actions, self._forecast(agent, list(actions.values())), strict=True):
            # Without a model, the agent's estimate for a played action is better than its guess.
            best = expected if expected.intervals else estimates.get(done, expected)
            recommended.append(RecommendedAction(dict(done), best))
        goal = units.description.goals[0]
        return RecommendedSet(sorted(recommended, key=lambda action: -goal.sign * action.expected[goal.name]))

    def _played_estimates(self, agent: Any) -> dict[tuple[tuple[str, Any], ...], Expectation]:
        """Return settings of the played actions -> expected objectives; of equal settings, not dominated ones."""
        units, estimates, by_settings = self._units, agent.estimated_rewards(), dict[Any, Expectation]()
        for index in np.argsort(~non_dominated(estimates), kind="stable"):
            values = zip(units.objectives, units.to_values(estimates[index]).tolist(), strict=True)
            done = tuple(units.native_values(agent.history[index].action).items())
            by_settings.setdefault(done, Expectation(dict(values), {}))
        return by_settings

    def _move_inside(self, agent: Any, recommended: Sequence[Action]) -> list[Action]:
        """Return recommended actions inside the bounds.

        The agent may recommend a trial that was done outside the bounds; the best trials inside replace it.
        """
        units = self._units
        try:
            return [units.require_valid(action) for action in recommended]
        except ArgumentError:
            distances = np.array([units.distance(played.action) for played in getattr(agent, "history", ())])
            # The error is the agent's own unless a trial was really played outside the bounds.
            if not distances.any():
                raise
        inside = np.flatnonzero(distances <= ROUNDING)
        if len(inside) and any(units.distance(action) > ROUNDING for action in recommended):
            violations = agent.estimated_violations()[inside]
            inside = inside[violations <= violations.min()]
            estimates = np.reshape(agent.estimated_rewards()[inside], (len(inside), -1))
            recommended = [agent.history[index].action for index in inside[non_dominated(estimates)]]
        return [units.nearest(action) for action in recommended]

    def expect(self, action: Action, context: Mapping[str, float] | None) -> Expectation:
        """Return the expected values of the variables under an action."""
        agent, units = self._copy_agent(context), self._units
        if not hasattr(agent, "fantasize") or not hasattr(agent, "expected_nodes"):
            raise ArgumentError(self._lacks(agent, "model of the outcome"))
        self._require_reward(agent)
        (objectives,) = self._forecast(agent, [action])
        values = units.observed_values(agent.fantasize(action)[0])
        known = set(agent.expected_nodes(action)) - set(units.objectives)
        expected = {name: value for name, value in values.items() if name in known and value is not None}
        done = units.native_values(action) if units.interface.sets_variables else {}
        expected |= {name: value for name, value in done.items() if name in expected}
        (outcomes,) = forecast(units, agent, [action])
        return Expectation(expected | objectives, objectives.intervals, forecast=outcomes)

    def _lacks(self, agent: Any, noun: str) -> str:
        """Return a message that an agent has no model, with agents that have one."""
        label = self._units.description.agent
        if hasattr(agent, "chosen"):
            label = f"{agent.chosen.agent}, which {label} chose,"
        return (
            f"{label} has no {noun}; agents that may have one, for a new study with prior= this one: "
            f"{agents_for_mode(HAVE_MODELS, self._units)}"
        )

    def stopping(self, delta: float | None, context: Mapping[str, float] | None) -> Stopping:
        """Return what speaks for and against another trial, see :meth:`Study.stopping`; the agent does not change."""
        costs = spending(self._units, self._trials.entries.values())
        agent, reason = self.snapshot(context)
        if agent is None:
            return Stopping(delta, spending=costs, reason=reason.rstrip("."))
        if len(self._units.objectives) > 1:
            reason = "with several objectives, no probability of a better action is computed"
            return Stopping(delta, spending=costs, reason=reason)
        pending = [self._units.nearest(self._units.from_flat(entry.action)) for entry in self._trials.pending]
        # The reason is found only if it is needed, because this imports other agents.
        no_posterior = partial(self._lacks, agent, "joint posterior of the expected rewards of actions")
        return find_stopping(self._units, agent, self.recommend(context), pending, costs, delta, no_posterior)

    def snapshot(self, context: Mapping[str, float] | None) -> tuple[Any, str]:
        """Return a copy of the agent that has learned every round, and an empty string; or None and the reason."""
        try:
            agent = self._copy_agent(context)
        # The agent cannot play the study.
        except ArgumentError as error:
            return None, str(error)
        if agent is self._agent:
            label = self._units.description.agent
            return None, f"{label} cannot be asked: its state is in another library, or in a thread."
        return (agent, "") if agent.history else (None, "Nothing is known yet.")

    def _copy_agent(self, context: Mapping[str, float] | None = None) -> Any:
        """Return a copy of the agent that has learned every round; the agent itself if it cannot be copied."""
        try:
            agent = self._begin() if self._agent is None else deepcopy(self._agent)
        # It may have a thread, or an object of another library, that cannot be copied.
        except Exception:
            self._learn_last(None)
            return self._agent
        if self._unlearned is not None:
            _teach(agent, self._units, self._unlearned)
        self._teach_partial_trials(agent)
        if context is not None and hasattr(agent, "set_context"):
            agent.set_context(self._units.context(context)["context"])
        return agent


def _signed_content(number: int, stamp: str, content: bytes) -> bytes:
    return f"{number}\n{stamp}\n".encode() + content
