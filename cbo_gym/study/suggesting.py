"""The agent of a study, as the study's log makes it: the same after a restart as if there had been none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from cbo_gym.agent_finder import agent_of
from cbo_gym.agent_state import StateError
from cbo_gym.envs.tasks import task_of
from cbo_gym.errors import ArgumentError, shortened
from cbo_gym.evaluation.runs.provenance import library_versions, modules_of, sources
from cbo_gym.study.log import Event, Log
from cbo_gym.study.seal import is_ours, seal
from cbo_gym.study.units import Units
from cbo_gym.task import Action, Observation, Round


class Suggester:
    """Turns events into an agent, and the agent into suggestions.

    Args:
        log: of the database.
        study: its number there.
        units: of the study.
        agent: who suggests; None for the one that the description names.
    """

    def __init__(self, log: Log, study: int, units: Units, agent: Any = None) -> None:
        self._log, self._study, self._units, self._given = log, study, units, agent
        self._forget()

    def _forget(self) -> None:
        self.number = 0  # of the last event that was heard
        self._agent: Any = None  # not begun
        self._initial: list[Mapping[str, Any]] = []
        self._pending: dict[int, Action] = {}
        self._contexts: dict[int, Any] = {}
        self._seen: Observation | None = None
        self._owed: tuple[Action, Mapping[str, float | None], Any] | None = None  # a round not yet learned
        self._missing = ""

    # Hearing --------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Hear what others, or this process before it ended, have written."""
        if self.number == 0:
            self._wake()
        events = self._log.events(self._study, self.number)
        if any(event.kind == "corrected" for event in events):
            return self._hear_corrected()
        for event in events:
            self._hear(event)
        return None

    def begin_anew(self) -> None:
        """Forget what was suggested but not written, for others were before."""
        self._forget()
        self.catch_up()

    def _hear_corrected(self) -> None:
        """Hear all of the log with what was corrected in its place."""
        self._forget()
        self._log.forget(self._study)
        events = self._log.events(self._study)
        last = {event.payload["trial"]: event.payload for event in events if event.kind == "corrected"}
        for event in events:
            if event.kind == "corrected":
                self.number = event.number
            elif event.kind == "told" and event.payload["trial"] in last:
                self._hear(Event(event.number, "told", last[event.payload["trial"]], event.time, event.who))
            else:
                self._hear(event)

    def _hear(self, event: Event) -> None:
        if event.kind == "data" and self._agent is None:
            self._initial += event.payload["rounds"]
        elif event.kind == "data":
            for one in event.payload["rounds"]:
                self._learn(self._units.read(one["action"]), one["values"], one["context"])
        elif event.kind == "asked":
            asked = event.payload["trials"]
            self.suggest(len(asked), event.payload["context"])  # for what it does to the agent
            self._note(asked, event.payload["context"])
        elif event.kind == "failed":
            self._pending.pop(event.payload["trial"], None)
        elif event.kind == "told":
            suggested = self._pending.pop(event.payload["trial"])
            done = event.payload["done"]
            context = self._contexts.pop(event.payload["trial"], None)
            self._learn(suggested if done is None else self._units.read(done), event.payload["values"], context)
        self.number = event.number

    def _note(self, asked: Sequence[Mapping[str, Any]], context: Any) -> None:
        for one in asked:
            self._pending[int(one["number"])] = self._units.read(one["action"])
            self._contexts[int(one["number"])] = context

    def _learn(self, action: Action, values: Mapping[str, float | None], context: Any) -> None:
        self._require_measured(values)
        self._settle(None)
        self._owed = action, values, context
        if self._units.about.mode != "contextual":
            self._settle(None)

    def _settle(self, coming: Any) -> None:
        """Let the agent learn a round. Agents are told the context that comes with what the last one gave, if any."""
        if self._owed is not None:
            self._seen = self._teach(self.agent, coming)
            self._owed = None

    def _teach(self, agent: Any, coming: Any) -> Observation:
        assert self._owed is not None
        action, values, context = self._owed
        observation = self._units.observation(values, context if coming is None else coming)
        info = {"intervention": self._units.words(action) if self._units.codec.space.contains(action) else {}}
        agent.update(deepcopy(action), deepcopy(observation), float(observation["nodes"][-1]), info)
        return observation

    def _require_measured(self, values: Mapping[str, float | None]) -> None:
        missing = [name for name, value in values.items() if value is None]
        if missing and not getattr(self.agent, "takes_missing", False):
            self._missing = self._missing or ", ".join(missing)

    # The agent ------------------------------------------------------------------------------------------

    @property
    def agent(self) -> Any:
        """Begun with the data that were there before the first suggestion."""
        if self._agent is None:
            self._agent = self._made()
            self._agent.reset(deepcopy(self.task), seed=self._units.about.seed)
        return self._agent

    def _made(self) -> Any:
        given = self._units.about.agent if self._given is None else self._given
        agent = agent_of(given)
        return deepcopy(agent) if agent is given else agent

    @property
    def task(self) -> Any:
        about = self._units.about
        rounds = []
        for one in self._initial:
            observation = self._units.observation(one["values"], one["context"])
            rounds.append(Round(self._units.read(one["action"]), observation, float(observation["nodes"][-1])))
        return task_of(self._units.feedback, about.name, about.horizon, tuple(rounds))

    def _wake(self) -> None:
        """The agent as it was kept, if it was kept by this code; what has been written since is heard then."""
        kept = self._log.snapshot(self._study)
        if kept is None:
            return
        number, stamp, content = kept
        agent = self._made()
        played_with, _, sealed = stamp.partition("\n")
        if not is_ours(content, sealed):  # a file of somebody else's may hold anything
            return
        if played_with != self._stamp(agent) or not hasattr(agent, "restore"):
            return
        events = [event for event in self._log.events(self._study) if event.number <= number]
        if any(event.kind == "corrected" for event in events):
            return
        begun = False
        for event in events:  # all but what the agent itself remembers
            if event.kind == "data" and not begun:
                self._initial += event.payload["rounds"]
            elif event.kind == "asked":
                begun = True
                self._note(event.payload["trials"], event.payload["context"])
            elif event.kind in ("told", "failed"):
                self._pending.pop(event.payload["trial"], None)
                context = self._contexts.pop(event.payload["trial"], None)
                if event.kind == "told":
                    self._seen = self._units.observation(event.payload["values"], context)
        try:
            agent.restore(content, deepcopy(self.task))
        except ArgumentError:  # a cache that cannot be read is none
            return self._forget()
        self._agent, self.number = agent, number
        return None

    def heard_own(self, asked: Sequence[Mapping[str, Any]], context: Any) -> None:
        """The suggestions were written as the event behind the last one that was heard."""
        self._note(asked, context)
        self.number += 1

    def keep(self) -> None:
        """Keep the agent as it is after the last event, for whoever comes next; those that cannot be kept are not."""
        if not hasattr(self.agent, "state") or self._missing:
            return
        try:
            content = self.agent.state()
        except StateError:
            return
        sealed = seal(content)
        if sealed is not None:
            self._log.keep(self._study, self.number, f"{self._stamp(self.agent)}\n{sealed}", content)

    def _stamp(self, agent: Any) -> str:
        """What a kept agent was played with."""
        code = sources(modules_of(agent, None), None)
        return json.dumps([self._units.about.agent, code, library_versions()], sort_keys=True)

    # Suggesting -----------------------------------------------------------------------------------------

    def suggest(self, count: int, context: Any) -> list[Action]:
        """So many actions, beside those whose outcomes are not known yet.

        Raises:
            ArgumentError: if a trial lacks a variable that the agent has to know, or it cannot suggest beside others.
        """
        if self._missing:
            raise ArgumentError(
                f"{self._units.about.agent} has to know all variables of a trial, and of one {self._missing} was not "
                "measured; correct the trial, or choose an agent that can do without: EIFN, MCBO, GP-UCB, Random"
            )
        self._settle(context)
        seen = dict(self._seen) if self._seen is not None else self._units.feedback.empty_observation()
        observation = {**deepcopy(seen), **self._units.context(context)}
        agent = self.agent
        if not self._pending:
            chosen = [agent.act(observation)] if count == 1 else agent.act_batch(observation, count)
        elif self._units.about.mode == "contextual":
            raise ArgumentError(
                "what is best depends on the context: tell the pending trial, or say that it failed, first"
            )
        elif hasattr(agent, "act_beside"):
            chosen = agent.act_beside(observation, list(self._pending.values()), count)
        else:
            raise ArgumentError(f"{self._units.about.agent} suggests one trial at a time; tell the pending one first")
        return [self._units.require_valid(action) for action in chosen]

    def reasons(self, actions: Sequence[Action]) -> list[str]:
        """For each action what the agent expects of it, and what was best so far, in the study's units."""
        agent, units = self.agent, self._units
        history = getattr(agent, "history", [])
        if not history:
            return ["nothing is known yet"] * len(actions)
        best = units.native_reward(max(past.reward for past in history))
        try:
            copy = deepcopy(agent)
            expected = [units.native_reward(float(copy.believed(action)[1])) for action in actions]
        except Exception as error:  # an agent may have no beliefs, or none that can be copied
            said = f"best so far {best:.4g} ({shortened(type(error).__name__)}: no expectation)"
            return [said] * len(actions)
        choices = getattr(units.codec, "choices", ())
        sets = f"; one of {len(choices)} sets" if choices else ""
        return [f"expected {units.about.reward} {value:.4g}, best so far {best:.4g}{sets}" for value in expected]

    def recommend(self) -> Action:
        """The action that the agent would deploy; the agent is as before."""
        return self._units.require_valid(self._informed().recommend())

    def _informed(self) -> Any:
        """A copy of the agent that has learned every round; itself where it has no copy."""
        try:
            agent = deepcopy(self.agent)
        except Exception:  # it holds a thread, or another library's things
            agent = self.agent
        if self._owed is not None and agent is not self.agent:
            self._teach(agent, None)
        return agent

    def expect(self, action: Action) -> dict[str, float]:
        """What the agent expects of the variables under an action, in the study's units."""
        agent = self._informed()
        observation, reward = agent.believed(action)
        known = set(agent.expected_nodes(action)) - {self._units.about.reward}
        names = self._units.feedback.nodes
        found = {name: float(value) for name, value in zip(names, np.asarray(observation["nodes"]), strict=True)}
        return {name: found[name] for name in names if name in known} | {
            self._units.about.reward: self._units.native_reward(float(reward))
        }
