"""Auto: one name to type. The method follows from what the task tells, by rules that published runs suggest.

A rule names one method, which plays the whole run as if it had been named itself, with the same seed and so with the
same actions. The rules, each with its evidence, are in :mod:`cbo_gym.agents.choice.rules`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.agent import Agent
from cbo_gym.agents.choice.rules import Rule, ranking, seconds_of
from cbo_gym.agents.zoo import zoo
from cbo_gym.arguments import require_positive
from cbo_gym.errors import UnsupportedModeError, naming_the_extra
from cbo_gym.task import Action, Info, Mode, Observation, Task


class Choice(NamedTuple):
    """Who plays, and a sentence that says why.

    Attributes:
        agent: its name in the zoo.
        why: the sentence.
    """

    agent: str
    why: str


class Auto(Agent):
    """The agent that published results recommend for what the task tells. Plays every mode, but not several objectives.

    Args:
        seconds: how long a round may take, act, update and recommend together, in seconds; above 0, or None for no
            limit. It is compared with the slowest published mean of each method, on whatever machine that was, and only
            chooses: nothing is cut short. If every method takes longer, it is ``Random`` that plays.

    Attributes:
        chosen: the name of the agent that plays and the reason, ``agent.chosen.why``; from :meth:`reset` on.
        player: that agent.

    Raises:
        ArgumentError: if ``seconds`` is neither None nor a finite number above 0.
    """

    modes = frozenset(Mode)
    chosen: Choice
    player: Agent

    def __init__(self, seconds: float | None = None) -> None:
        if seconds is not None:
            require_positive("seconds, unless it is None,", seconds)
        self.seconds = seconds

    def reset(self, task: Task, seed: int) -> None:
        """Choose, and hand the task over.

        Raises:
            MissingExtraError: if a library that the chosen agent needs is not installed.
            UnsupportedModeError: for a task with several objectives.
        """
        if task.objectives:
            raise UnsupportedModeError(
                f"Auto goes by published results, and there are none with several objectives as {task.env_id} has; "
                "name an agent that plays them, such as qNEHVI-Network"
            )
        passed: list[str] = []  # who comes before, and why not
        for rule in ranking(task):
            takes = seconds_of(rule, task.mode)
            if self.seconds is not None and takes > self.seconds:
                passed.append(f"{rule.agent} may take {takes:g} s a round")
                continue
            self.player, self.chosen = made(rule.agent), Choice(rule.agent, sentence(rule, passed))
            try:
                self.player.reset(task, seed)
                break
            except UnsupportedModeError as error:  # what a method needs of a task it knows best itself
                passed.append(f"{rule.agent} refuses ({error})")
        self._share()

    def act(self, observation: Observation) -> Action:
        return self.player.act(observation)

    def act_given_pending(
        self, observation: Observation, pending: Any, count: int = 1, contexts: Any = None
    ) -> list[Action]:
        return self.player.act_given_pending(observation, pending, count, contexts)

    def set_context(self, context: np.ndarray) -> None:
        self.player.set_context(context)

    def fantasize(self, action: Action) -> tuple[Observation, float]:
        return self.player.fantasize(action)

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        return self.player.expected_nodes(action)

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        return self.player.reward_posterior(actions)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        self.player.update(action, observation, reward, info)
        self._share()

    def recommend(self) -> Action:
        return self.player.recommend()

    def estimated_rewards(self) -> np.ndarray:
        return self.player.estimated_rewards()

    def estimated_violations(self) -> np.ndarray:
        return self.player.estimated_violations()

    def _share(self) -> None:
        """Task, generator and rounds are the player's; one that forgets rounds makes a new list of them."""
        self.task, self.rng, self.history = self.player.task, self.player.rng, self.player.history
        self.takes_missing = self.player.takes_missing


def made(name: str) -> Agent:
    """The agent of a name in the zoo, with its defaults; modules are imported on use.

    Raises:
        MissingExtraError: if a library that it needs is not installed.
    """
    module, _, kind = zoo()[name].partition(":")
    with naming_the_extra(f"the agent {name}, which Auto chose,"):
        agent: Agent = getattr(import_module(module), kind)()
    return agent


def sentence(rule: Rule, passed: list[str]) -> str:
    """Why an agent plays, and why those that come before it do not."""
    return "; ".join([f"{rule.agent} plays, since {rule.reason}", *dict.fromkeys(passed)]) + "."
