"""Auto: chooses a method for the task, by rules that published runs suggest.

The chosen method plays the whole run, with the same actions as if it had been reset with the same seed by itself. The
rules, each with its evidence, are in :mod:`cbo_gym.agents.choice.rules`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from cbo_gym._util.arguments import require_positive
from cbo_gym.agent import Agent
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.agents.choice.rules import SECONDS, ranking
from cbo_gym.errors import UnsupportedModeError, naming_the_extra
from cbo_gym.task import Action, Mode, Observation, Task


class Choice(NamedTuple):
    """The agent that plays, and the reason.

    Attributes:
        agent: name of the agent in the zoo.
        why: the reason, a sentence.
    """

    agent: str
    why: str


# Attributes that say what an agent can do.
CAPABILITIES = ("learns_mechanisms", "takes_missing", "takes_partial", "takes_precision", "takes_limits")


def _delegate(name: str) -> Any:
    """Return a method of Auto that calls the method ``name`` of its player."""

    def method(self: Auto, *arguments: Any, **keywords: Any) -> Any:
        return getattr(self.player, name)(*arguments, **keywords)

    return method


class Auto(Agent):
    """The agent that published results recommend for the task. Plays every mode, also tasks with several objectives.

    Args:
        seconds: limit of the time of a round (act, update and recommend) in seconds; above 0, or None for no limit. A
            method is chosen only if its mean time on the slowest published environment is within the limit; a running
            method is not interrupted. If every method takes longer, ``Random`` plays.

    Attributes:
        chosen: the name of the agent that plays and the reason, ``agent.chosen.why``; from :meth:`reset` on.
        player: the agent that plays.

    Raises:
        ArgumentError: if ``seconds`` is neither None nor a finite number above 0.
    """

    modes = frozenset(Mode)
    several_objectives = True
    takes_mixed_domains = True
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
            # Random has no entry.
            seconds = SECONDS.get(task.mode, {}).get(rule.agent, 0.0)
            if self.seconds is not None and seconds > self.seconds:
                refused.append(f"{rule.agent} may take {seconds:g} s a round")
                continue
            why = "; ".join([f"{rule.agent} plays, since {rule.reason}", *dict.fromkeys(refused)]) + "."
            self.player, self.chosen = make_default(rule.agent), Choice(rule.agent, why)
            try:
                self.player.reset(task, seed)
                break
            except UnsupportedModeError as error:
                refused.append(f"{rule.agent} refuses ({error})")
        for name in ("task", "rng", "history", *CAPABILITIES):
            setattr(self, name, getattr(self.player, name))

    def act_given_pending(
        self, observation: Observation, pending: Any, count: int = 1, contexts: Any = None, measured: Any = None
    ) -> list[Action]:
        return self.player.act_given_pending(observation, pending, count, contexts, measured)

    act = _delegate("act")
    set_context = _delegate("set_context")
    fantasize = _delegate("fantasize")
    expected_nodes = _delegate("expected_nodes")
    expected_nodes_given = _delegate("expected_nodes_given")
    reward_posterior = _delegate("reward_posterior")
    sample_outcomes = _delegate("sample_outcomes")
    leave_one_out = _delegate("leave_one_out")
    update = _delegate("update")
    update_partial = _delegate("update_partial")
    recommend = _delegate("recommend")
    estimated_rewards = _delegate("estimated_rewards")
    estimated_violations = _delegate("estimated_violations")


def make_default(name: str) -> Agent:
    """Make an agent with its default arguments, given its name in the zoo.

    Raises:
        MissingExtraError: if a library that it needs is not installed.
    """
    module, _, class_name = zoo()[name].partition(":")
    with naming_the_extra(f"the agent {name}, which Auto chose,"):
        agent: Agent = getattr(import_module(module), class_name)()
    return agent
