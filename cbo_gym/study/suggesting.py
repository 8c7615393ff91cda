"""The agent of a study, rebuilt from the log, so that a restart changes no suggestion."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import replace
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.agent_finder import agent_of, known_agents
from cbo_gym.agent_state import StateError
from cbo_gym.envs.tasks import task_of
from cbo_gym.errors import ArgumentError, ArgumentTypeError, CBOGymError, OperationError, text_of
from cbo_gym.evaluation.runs.provenance import library_versions
from cbo_gym.evaluation.runs.revisions import modules_of, package_stamp, stamps_of
from cbo_gym.evaluation.verify.admission import admit_agent
from cbo_gym.labels import Spec, is_import_path
from cbo_gym.seal import is_ours, seal
from cbo_gym.study.expectation import expected_rewards
from cbo_gym.study.log import Event
from cbo_gym.study.trials import History, Trials
from cbo_gym.study.units import ROUNDING, Units
from cbo_gym.task import Action, Observation, Round, Task

# Agents that take rounds in which not all variables were measured.
DO_WITHOUT = "EIFN, MCBO, GP-UCB, Random"


_lock = RLock()


def one_at_a_time() -> AbstractContextManager[bool]:
    """The lock of all agents of the process.

    The libraries of agents keep settings for the whole process, and a suggestion must not depend on other agents.
    """
    return _lock


def _renew() -> None:
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    # A thread of the parent may hold the lock, and does not exist in the child.
    os.register_at_fork(after_in_child=_renew)


class AgentError(OperationError):
    """An agent raised an error of its own."""


@contextmanager
def naming(agent: str) -> Iterator[None]:
    """Name the agent in errors that its code raises; a third-party agent may raise anything."""
    try:
        yield
    except CBOGymError:
        raise
    except Exception as error:
        raise AgentError(
            f"the agent {agent} fails with {type(error).__name__}: {text_of(error)}; nothing was recorded by this call"
        ) from error


def begin_agent(given: Any, units: Units, initial: Sequence[Mapping[str, Any]] = ()) -> Any:
    """Make an agent and reset it with the task of a study.

    Args:
        given: the agent, or its label; None for the one that the description names.
        units: the units of the study.
        initial: rounds of data from before the first suggestion.

    Raises:
        ArgumentError: if there is no such agent, or it cannot play the study.
    """
    agent = _made(given, units)
    agent.reset(_task(units, initial), seed=units.about.seed)
    return agent


def _made(given: Any, units: Units) -> Any:
    if given is None:
        given = units.about.agent
        if (name := Spec.from_label(given).name) in known_agents() or is_import_path(name):
            # agent_of refuses any other name.
            given = admit_agent(given)
    agent = agent_of(given)
    if agent is not given:
        return agent
    try:
        return deepcopy(agent)
    # The attributes of an agent may raise anything.
    except Exception as error:
        raise ArgumentTypeError(
            f"the agent, an object of type {type(agent).__name__}, cannot be copied ({text_of(error)}), and a "
            "study begins with a copy of it; give the import path of its class: 'package.module:Class'"
        ) from error


def _task(units: Units, initial: Sequence[Mapping[str, Any]]) -> Task:
    rounds = []
    for one in initial:
        observation = units.observation(one["values"], one["context"])
        rounds.append(Round(units.read(one["action"]), observation, float(observation["nodes"][-1])))
    return task_of(units.interface, units.about.name, units.about.horizon, tuple(rounds))


class _Owed(NamedTuple):
    """A round that the agent has not learned yet."""

    action: Action
    values: Mapping[str, float | None]
    context: Mapping[str, float] | None


class Suggester:
    """Rebuilds an agent from events, and makes suggestions; for one thread at a time.

    Args:
        history: the events of the study.
        units: the units of the study.
        agent: the agent; None for the one that the description names.
    """

    def __init__(self, history: History, units: Units, agent: Any = None) -> None:
        self._history, self._units, self._given = history, units, agent
        # Whether the agent has done more than the log says: during a suggestion, and after a failure or a fork then.
        self._ahead = False
        self.forget()

    def forget(self) -> None:
        """Begin with the first event again."""
        # The trials that the agent knows.
        self._trials = Trials()
        self._agent: Any = None
        # The observation of the last round that the agent learned.
        self._seen: Observation | None = None
        self._owed: _Owed | None = None

    # Learning -------------------------------------------------------------------------------------------

    def catch_up(self, events: Sequence[Event]) -> None:
        """Learn from all new events; from the first event, if the agent is ahead of the log."""
        if self._ahead:
            self.forget()
        elif len(events) == self._trials.number > 0:
            return
        self._ahead = True
        if any(event.kind == "corrected" for event in events[self._trials.number :]):
            # An outcome cannot be unlearned.
            self.forget()
        if self._trials.number == 0:
            self._wake(events)
        last = {event.payload["trial"]: event.payload for event in events if event.kind == "corrected"}
        for event in events[self._trials.number :]:
            # The last correction of an outcome counts.
            is_corrected = event.kind == "told" and event.payload["trial"] in last
            self._apply(replace(event, payload=last[event.payload["trial"]]) if is_corrected else event)
        self._ahead = False

    def _apply(self, event: Event) -> None:
        if event.kind == "asked":
            # For its effect on the agent.
            self.suggest(len(event.payload["trials"]), event.payload["context"])
        self._trials.apply([event])
        # The agent begins with data from before the first trial.
        if event.kind == "data" and self._trials.entries:
            for one in event.payload["rounds"]:
                self._learn(one["action"], one["values"], one["context"])
        elif event.kind == "told" and (self.takes_missing or not self._trials.missing):
            entry = self._trials.entries[event.payload["trial"]]
            self._learn(entry.action, entry.values, entry.context)

    def _learn(self, flat: list[float], values: Mapping[str, float | None], context: Any) -> None:
        self._settle(None)
        self._owed = _Owed(self._units.read(flat), values, context)
        if self._units.about.mode != "contextual":
            self._settle(None)

    def _settle(self, coming: Any) -> None:
        """Let the agent learn a round; its observation has the context of the coming round, if there is one."""
        if self._owed is not None:
            self._seen = self._teach(self.agent, self._owed, coming)
            self._owed = None

    def _teach(self, agent: Any, owed: _Owed, coming: Any) -> Observation:
        units, action = self._units, owed.action
        observation = units.observation(owed.values, owed.context if coming is None else coming)
        if owed.context is not None and hasattr(agent, "set_context"):
            agent.set_context(units.context(owed.context)["context"])
        info = {"intervention": units.done(action)}
        agent.update(deepcopy(action), deepcopy(observation), float(observation["nodes"][-1]), info)
        return observation

    # The agent ------------------------------------------------------------------------------------------

    @property
    def agent(self) -> Any:
        """The agent; at first with the data from before the first suggestion."""
        if self._agent is None:
            self._agent = self._fresh()
        return self._agent

    def _fresh(self) -> Any:
        return begin_agent(self._given, self._units, self._trials.initial)

    @property
    def takes_missing(self) -> bool:
        """Whether the agent takes rounds in which not all variables were measured."""
        agent = self._fresh() if self._agent is None else self._agent
        return bool(getattr(agent, "takes_missing", False))

    def _wake(self, events: Sequence[Event]) -> None:
        """Restore the agent from the cache, if the same code kept it."""
        number, stamp, content = self._history.log.snapshot(self._history.study) or (0, "", b"")
        # Other processes may have been faster since the events were read.
        if not 0 < number <= len(events) or any(event.kind == "corrected" for event in events[number:]):
            return
        agent = _made(self._given, self._units)
        provenance_fields, _, sealed = stamp.partition("\n")
        # The file of another user may hold anything.
        if not is_ours(_sealed(number, provenance_fields, content), sealed) or not hasattr(agent, "restore"):
            return
        if provenance_fields != self._stamp(agent):
            return
        self._trials.apply(events[:number])
        try:
            agent.restore(content, _task(self._units, self._trials.initial))
        # The cache cannot be read.
        except ArgumentError:
            self.forget()
        else:
            self._seen, self._agent = self._last_seen(events[:number]), agent

    def _last_seen(self, events: Sequence[Event]) -> Observation | None:
        """The observation of the last round in some events that the agent learned, if there is one."""
        begun = next((event.number for event in events if event.kind == "asked"), len(events))
        for event in reversed(events[begun:]):
            if event.kind == "told":
                entry = self._trials.entries[event.payload["trial"]]
                return self._units.observation(entry.values, entry.context)
            if event.kind == "data":
                last = event.payload["rounds"][-1]
                return self._units.observation(last["values"], last["context"])
        return None

    def keep(self) -> None:
        """Keep the agent in the cache, as it is after the last event; do nothing if it has no state to keep."""
        if not hasattr(self.agent, "state"):
            return
        try:
            content = self.agent.state()
        except StateError:
            return
        stamp, number = self._stamp(self.agent), self._trials.number
        sealed = seal(_sealed(number, stamp, content))
        if sealed is not None:
            self._history.log.keep(self._history.study, number, f"{stamp}\n{sealed}", content)

    def _stamp(self, agent: Any) -> str:
        """The versions that a kept agent was played with."""
        code = stamps_of(modules_of(agent, None)) | package_stamp()
        return json.dumps([self._units.about.model_dump_json(), code, library_versions()], sort_keys=True)

    # Suggesting -----------------------------------------------------------------------------------------

    def suggest(self, count: int, context: Any) -> list[Action]:
        """Suggest ``count`` actions, given the pending trials.

        Raises:
            ArgumentError: if a trial lacks a variable that the agent has to know, or the agent does not take pending
                trials.
        """
        self._require_measured()
        self._ahead = True
        self._settle(context)
        seen = dict(self._seen) if self._seen is not None else self._units.interface.empty_observation()
        observation = {**deepcopy(seen), **self._units.context(context)}
        agent, pending = self.agent, self._trials.pending
        if not pending:
            chosen = [agent.act(observation)] if count == 1 else agent.act_batch(observation, count)
        elif not hasattr(agent, "act_given_pending") or (context and not hasattr(agent, "set_context")):
            raise ArgumentError(f"{self._units.about.agent} suggests one trial at a time; tell the pending one first")
        else:
            others = [self._units.read(entry.flat) for entry in pending]
            contexts = [[self._units.context(entry.context)["context"] for entry in pending]] if context else []
            chosen = agent.act_given_pending(observation, others, count, *contexts)
        return [self._units.require_valid(action) for action in chosen]

    def suggested(self, event: Event) -> None:
        """Note that the last suggestions were written."""
        self._trials.apply([event])
        self._ahead = False

    def _require_measured(self) -> None:
        if self._trials.missing and not self.takes_missing:
            number, names = next(iter(self._trials.missing.items()))
            raise ArgumentError(
                f"{self._units.about.agent} has to know all variables of a trial, and {', '.join(names)} "
                f"{'was' if len(names) == 1 else 'were'} not measured in trial {number}; correct the trial, or choose "
                f"an agent that can do without: {DO_WITHOUT}"
            )

    def reasons(self, actions: Sequence[Action]) -> list[str]:
        """For each action its expected reward, the best reward so far, and the number of sets to choose from."""
        history = getattr(self.agent, "history", [])
        if not history:
            return ["nothing is known yet"] * len(actions)
        values = [self._units.measured(past.observation) for past in history]
        index = self._units.best(values)
        best = (
            "no round meets the constraints yet"
            if index is None
            else f"best so far {values[index][self._units.about.reward]:.4g}"
        )
        sets = self._sets()
        return [f"{expected}{best}{sets}" for expected in self._expectations(actions)]

    def _expectations(self, actions: Sequence[Action]) -> list[str]:
        """``"expected titre 0.81 +- 0.1, "`` of each action, with the 95 % interval where the agent has a model."""
        units = self._units
        try:
            copy = deepcopy(self.agent)
            band = expected_rewards(units, copy, actions)
            if band is None:
                expected = [f"{units.native_reward(float(copy.fantasize(action)[1])):.4g}" for action in actions]
            else:
                widths = (band.high - band.low) / 2
                expected = [f"{mean:.4g} +- {width:.2g}" for mean, width in zip(band.mean, widths, strict=True)]
        # An agent may have no model, or none that can be copied.
        except Exception:
            return [""] * len(actions)
        return [f"expected {units.about.reward} {one}, " for one in expected]

    def _sets(self) -> str:
        """The number of sets that an action chooses from, and the reason for these."""
        units, count = self._units, len(getattr(self._units.codec, "choices", ()))
        if not count:
            return ""
        about = units.about
        every = 2 ** len(about.settable)
        if about.mode != "hard" or about.targets is not None or about.diagram is None or count == every:
            return f"; one of {count} sets"
        return f"; one of {count} target sets, for the others of {every} are no better, whatever the mechanisms"

    def recommend(self, context: Mapping[str, float] | None) -> Action:
        """Return the action that the agent would deploy, which lies inside the bounds; the agent stays as it is."""
        agent = self.informed(context)
        recommended = agent.recommend()
        try:
            return self._units.require_valid(recommended)
        except ArgumentError:
            distances = np.array([self._units.distance(past.action) for past in getattr(agent, "history", ())])
            # The error is the agent's own unless a trial was really played outside the bounds.
            if not distances.any():
                raise
        inside = distances <= ROUNDING
        if inside.any() and self._units.distance(recommended) > ROUNDING:
            missed = np.where(inside, agent.estimated_violations(), np.inf)
            rewards = np.where(missed <= missed.min(), agent.estimated_rewards(), -np.inf)
            recommended = agent.history[int(np.argmax(rewards))].action
        return self._units.nearest(recommended)

    def expect(
        self, action: Action, context: Mapping[str, float] | None
    ) -> tuple[dict[str, float], tuple[float, float] | None]:
        """The expected values of the variables under an action, and the reward's 95 % interval.

        Raises:
            ArgumentError: if the agent has learned nothing yet, or has no model.
        """
        agent = self.informed(context)
        if not hasattr(agent, "fantasize") or not hasattr(agent, "expected_nodes"):
            raise ArgumentError(f"{self._units.about.agent} does not say what it expects; choose another agent")
        if not getattr(agent, "history", True):
            raise ArgumentError("nothing is known yet; tell the outcome of a trial, or add data")
        observation, reward = agent.fantasize(action)
        known = set(agent.expected_nodes(action)) - {self._units.about.reward}
        band = expected_rewards(self._units, agent, [action])
        nodes = np.append(observation["nodes"][:-1], float(reward))
        values = self._units.measured({**observation, "nodes": nodes})
        found = {name: value for name, value in values.items() if name in known and value is not None}
        if band is None:
            return {**found, self._units.about.reward: self._units.native_reward(float(reward))}, None
        return {**found, self._units.about.reward: float(band.mean[0])}, (float(band.low[0]), float(band.high[0]))

    def informed(self, context: Mapping[str, float] | None = None) -> Any:
        """A copy of the agent that has learned every round; the agent itself if it cannot be copied.

        Args:
            context: in contextual mode, the context to ask about; None for the last one.
        """
        self._require_measured()
        if self._agent is None:
            return self._fresh()
        try:
            agent = deepcopy(self._agent)
        # It may hold a thread, or an object of another library.
        except Exception:
            self._settle(None)
            return self._agent
        if self._owed is not None:
            self._teach(agent, self._owed, None)
        if context is not None and hasattr(agent, "set_context"):
            agent.set_context(self._units.context(context)["context"])
        return agent


def _sealed(number: int, stamp: str, content: bytes) -> bytes:
    """The sealed content: the agent, its study and the event after which it was kept."""
    return f"{number}\n{stamp}\n".encode() + content
