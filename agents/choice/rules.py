"""The rules by which Auto chooses a method: each mode has a list, and the first rule that holds for a task chooses.

A rule depends on the fields of the task, never on its name. If its method refuses the task or is too slow, the next
rule that holds chooses; the last is ``Random``, which plays everything.

Each rule in ``rules.yaml`` states its evidence. Its scores are the leaderboard's scores of the last recommendation: 0
is a random action, 1 the optimum. *Published* scores are means over the seeds in ``results``, recomputed by ``make
choice``; *tried* scores are from other runs, with one seed of 100 or more unless another number of seeds is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from cbo_gym.task import Mode, Task

# Smallest number of time series that are many; published tasks have at most 10, or 100.
MANY_SERIES = 50
# CEO lists the graphs of at most 4 nodes if there are no candidates.
FEW_NODES = 3
# Below this number of rounds for each arm, rounds are few.
FEW_ROUNDS = 10
# If the horizon allows at least this number of plays of each subset, subsets are few.
FEW_PLAYS = 4
# GA-LCB enumerates the subsets of at most this number of variables, and plays each single intervention this often.
MAX_SWITCHES, SINGLE_ROUNDS = 14, 500


def is_parallel(task: Task) -> bool:
    """Return whether all nodes are independent causes of the reward."""
    diagram = task.graph.diagram
    edges = {(name, task.reward) for name in task.nodes if name != task.reward}
    return diagram is not None and not diagram.bidirected and diagram.directed == edges


def is_learnable(task: Any) -> bool:
    """Return whether GA-LCB can enumerate the subsets, with single interventions in at most half of the rounds."""
    count = len(task.action_domains)
    return count <= MAX_SWITCHES and 2 * SINGLE_ROUNDS * (count + 1) <= task.horizon


#: Condition of each name in ``rules.yaml`` on a task of the rule's mode.
CONDITIONS: Mapping[str, Callable[[Any], bool]] = {
    "known": lambda task: task.graph.diagram is not None,
    "hidden": lambda task: task.graph.diagram is None,
    "several": lambda task: bool(task.objectives),
    "constrained": lambda task: bool(task.constraints),
    "few_nodes": lambda task: len(task.nodes) <= FEW_NODES,
    "separable": lambda task: bool(task.components),
    "not_separable": lambda task: not task.components,
    "parallel": is_parallel,
    "few_rounds": lambda task: task.horizon < FEW_ROUNDS * len(task.arms),
    "many_series": lambda task: max(map(len, task.observational.values()), default=0) >= MANY_SERIES,
    "few_subsets": lambda task: 2 ** len(task.action_domains) * FEW_PLAYS <= task.horizon,
    "learnable": is_learnable,
}


class Rule(NamedTuple):
    """An agent for the tasks of a mode that fulfil some conditions.

    Attributes:
        agent: name of the agent in the zoo.
        reason: why the agent plays if the conditions hold, a clause.
        when: names of :data:`CONDITIONS`, all of which must hold.
        evidence: the measurements, in sentences; empty if another rule's evidence covers it.
    """

    agent: str
    reason: str
    when: tuple[str, ...] = ()
    evidence: str = ""

    def holds(self, task: Any) -> bool:
        """Return whether all conditions hold for a task of the rule's mode.

        A rule without the condition ``several`` never holds for tasks with several objectives.
        """
        return ("several" in self.when) == bool(task.objectives) and all(CONDITIONS[name](task) for name in self.when)


_DATA = yaml.safe_load(files("cbo_gym").joinpath("agents", "choice", "rules.yaml").read_text(encoding="utf-8"))
RULES: Mapping[Mode, tuple[Rule, ...]] = {
    Mode(mode): tuple(Rule(**{**rule, "when": tuple(rule.get("when", ()))}) for rule in rules)
    for mode, rules in _DATA["rules"].items()
}
LAST = Rule("Random", "no other plays such a task, or none is quick enough")

#: Mode -> agent -> seconds of a round (act, update and recommend): the mean on the slowest published environment.
SECONDS: Mapping[Mode, Mapping[str, float]] = {Mode(mode): seconds for mode, seconds in _DATA["seconds"].items()}


def ranking(task: Task) -> Iterator[Rule]:
    """Yield the rules that hold for a task, in their order; at the end ``Random``, which plays every task."""
    yield from (rule for rule in RULES.get(task.mode, ()) if rule.holds(task))
    yield LAST
