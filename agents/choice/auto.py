"""Auto: chooses a method for the task, by rules that published runs suggest.

The chosen method plays the whole run with the same seed, and so the same actions, as it does by itself. The rules, each
with its evidence, are in :mod:`cbo_gym.agents.choice.rules`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from cbo_gym._util.arguments import require_positive
from cbo_gym.agent import Agent, LeaveOneOut
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.agents.choice.rules import Rule, ranking, seconds_of
from cbo_gym.errors import UnsupportedModeError, naming_the_extra
from cbo_gym.task import Action, Info, Mode, Observation, Task


class Choice(NamedTuple):
    """The agent that plays, and the reason.

    Attributes:
        agent: name of the agent in the zoo.
        why: the reason, a sentence.
    """

    agent: str
    why: str


class Auto(Agent):
    """The agent that published results recommend for the task. Plays every mode, also several objectives.

    Args:
        seconds: limit of the time of a round, act, update and recommend together, in seconds; above 0, or None for no
            limit. It is compared with the slowest published mean of each method, on the machine of that run; running
            methods are not interrupted. If every method takes longer, ``Random`` plays.

    Attributes:
        chosen: the name of the agent that plays and the reason, ``agent.chosen.why``; from :meth:`reset` on.
        player: the agent that plays.

    Raises:
        ArgumentError: if ``seconds`` is neither None nor a finite number above 0.
    """

    modes = frozenset(Mode)
    several_objectives = True
    takes_kinds = True
    takes_limits = True
    chosen: Choice
    player: Agent

    def __init__(self, seconds: float | None = None) -> None:
        if seconds is not None:
            require_positive("seconds, unless it is None,", seconds)
        self.seconds = seconds

    def reset(self, task: Task, seed: int) -> None:
        """Choose an agent, and reset it.

        Raises:
            MissingExtraError: if a library that the chosen agent needs is not installed.
        """
        # Earlier agents, with the reason why they do not play.
        refused: list[str] = []
        for rule in ranking(task):
            takes = seconds_of(rule, task.mode)
            if self.seconds is not None and takes > self.seconds:
                refused.append(f"{rule.agent} may take {takes:g} s a round")
                continue
            self.player, self.chosen = make_default(rule.agent), Choice(rule.agent, sentence(rule, refused))
            try:
                self.player.reset(task, seed)
                break
            except UnsupportedModeError as error:
                refused.append(f"{rule.agent} refuses ({error})")
        self._share()

    def act(self, observation: Observation) -> Action:
        return self.player.act(observation)

    def act_given_pending(
        self, observation: Observation, pending: Any, count: int = 1, contexts: Any = None, measured: Any = None
    ) -> list[Action]:
        return self.player.act_given_pending(observation, pending, count, contexts, measured)

    def set_context(self, context: np.ndarray) -> None:
        self.player.set_context(context)

    def fantasize(self, action: Action, measured: Mapping[str, float] | None = None) -> tuple[Observation, Any]:
        return self.player.fantasize(action, measured)

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        return self.player.expected_nodes(action)

    def expected_nodes_given(self, action: Action, measured: Mapping[str, float]) -> Mapping[str, float]:
        return self.player.expected_nodes_given(action, measured)

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        return self.player.reward_posterior(actions)

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> Mapping[str, np.ndarray] | None:
        return self.player.sample_outcomes(actions, count, seed, noise=noise)

    def leave_one_out(self) -> Mapping[str, LeaveOneOut]:
        return self.player.leave_one_out()

    def update(self, action: Action, observation: Observation, reward: Any, info: Info) -> None:
        self.player.update(action, observation, reward, info)
        self._share()

    def update_partial(self, action: Action, observation: Observation, info: Info) -> None:
        self.player.update_partial(action, observation, info)

    def recommend(self) -> Action:
        return self.player.recommend()

    def estimated_rewards(self) -> np.ndarray:
        return self.player.estimated_rewards()

    def estimated_violations(self) -> np.ndarray:
        return self.player.estimated_violations()

    def _share(self) -> None:
        """Share the player's task, generator and rounds."""
        self.task, self.rng, self.history = self.player.task, self.player.rng, self.player.history
        self.takes_missing, self.takes_partial = self.player.takes_missing, self.player.takes_partial
        self.takes_precision, self.takes_limits = self.player.takes_precision, self.player.takes_limits
        self.learns_mechanisms = self.player.learns_mechanisms


def make_default(name: str) -> Agent:
    """Make the agent of a name in the zoo, with its defaults; modules are imported on use.

    Raises:
        MissingExtraError: if a library that it needs is not installed.
    """
    module, _, class_name = zoo()[name].partition(":")
    with naming_the_extra(f"the agent {name}, which Auto chose,"):
        agent: Agent = getattr(import_module(module), class_name)()
    return agent


def sentence(rule: Rule, refused: list[str]) -> str:
    """Say why an agent plays, and why earlier ones do not."""
    return "; ".join([f"{rule.agent} plays, since {rule.reason}", *dict.fromkeys(refused)]) + "."
