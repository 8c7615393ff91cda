"""Which method plays which task, and what speaks for it.

The rules look at what a task tells, never at its name. The evidence is ``docs/data/auto.csv``, which ``make readme``
writes from the published results: each choice beside every rival, over the environments that both played, by the score
of the last recommendation and by that of play. A method is chosen whose recommendations score highest, or within 0.01
of the highest where it earns more in play.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from cbo_gym.task import MaskedTask, Mode, SoftTask, Task

MOST_NODES = 30  # up to which a model of every node answers within a second
Condition = Callable[[Task], bool]


class Rule(NamedTuple):
    """One line of the table.

    Attributes:
        mode: of the tasks that it is for.
        agent: published name of the method.
        seconds: no less than a round took on any published environment.
        holds: whether a task is one that the method is for.
        why: a sentence for users.
    """

    mode: Mode
    agent: str
    seconds: float
    holds: Condition
    why: str


def _always(task: Task) -> bool:
    return True


def _told(task: Task) -> bool:
    return task.graph.diagram is not None


def _small(task: Task) -> bool:
    return _told(task) and len(task.nodes) <= MOST_NODES


def _constrained(task: Task) -> bool:
    return bool(task.constraints)


def _composed(task: Task) -> bool:
    return isinstance(task, SoftTask) and task.composition is not None


def _family(task: Task) -> bool:
    return isinstance(task, MaskedTask) and task.signal_family is not None


def _separable(task: Task) -> bool:
    return isinstance(task, MaskedTask) and bool(task.components)


def _parallel(task: Task) -> bool:
    """Whether independent causes lead to the reward alone."""
    if not _told(task):
        return False
    causes = {(name, task.reward) for name in task.nodes if name != task.reward}
    return not task.diagram.bidirected and set(task.diagram.directed) == causes


#: the first rule that holds is followed; the last one of a mode holds for all of its tasks
RULES = (
    Rule(Mode.SOFT, "MCBO", 1.5, _small,
         "where the diagram is told, a model of every node earns more than any model of the reward alone"),
    Rule(Mode.SOFT, "ConstrainedEI", 0.6, _constrained, "it heeds constraints without a model of every node"),
    Rule(Mode.SOFT, "EICF", 0.3, _composed, "the reward is told as a function of the nodes, whatever causes these"),
    Rule(Mode.SOFT, "GP-UCB", 0.3, _always, "a model of the reward alone needs neither a diagram nor a composition"),
    Rule(Mode.HARD, "ConstrainedEI", 0.6, _constrained,
         "among the methods that heed constraints it earns most, in the end and in play"),
    Rule(Mode.HARD, "MCBO", 2.0, _small,
         "where the diagram is told, a model of every node earns more than models of each intervention set"),
    Rule(Mode.HARD, "CBO-U", 0.6, _always, "it needs no diagram, and answers soon on graphs of a hundred nodes"),
    Rule(Mode.CONTEXTUAL, "CoCaBO", 0.3, _told,
         "it chooses among all scopes that may be optimal, whether these use the context or not"),
    Rule(Mode.CONTEXTUAL, "GP-UCB", 0.3, _always, "a model of the reward alone needs no diagram"),
    Rule(Mode.AGGREGATED, "GPOO", 0.01, _always,
         "it finds the best cell more often than any other; those that earn more in play end lower"),
    Rule(Mode.MASKED, "METS", 0.2, _family, "posterior sampling makes use of the family of the signals, which is told"),
    Rule(Mode.MASKED, "SSEM-UCB-JO", 0.2, _separable, "of the methods that need the equations' components alone"),
    Rule(Mode.MASKED, "IGP-UCB", 0.01, _always, "it needs to be told nothing of the equations"),
    Rule(Mode.DISCRETE, "ParallelBandit", 0.01, _parallel,
         "the causes are independent, so that a round of observation tells of every arm"),
    Rule(Mode.DISCRETE, "POMIS-UCB", 0.01, _told, "it leaves out the arms that are optimal in no system on the graph"),
    Rule(Mode.DISCRETE, "UCB", 0.01, _always, "it needs no diagram"),
    Rule(Mode.ADVERSARIAL, "CBO-MW", 0.1, _told, "it hedges against the adversary with a model of every node"),
    Rule(Mode.ADVERSARIAL, "GP-MW", 0.1, _always, "it hedges against the adversary with a model of the reward alone"),
    Rule(Mode.DYNAMIC, "ABO", 0.1, _always,
         "it sets all variables of a slice at once, and takes what it learned into the next"),
)  # fmt: skip
OTHERWISE = "no method that models the system is quick enough, or plays the task"


def choices(task: Task, seconds: float | None = None) -> Iterator[Rule]:
    """The rules that hold for a task and whose methods are quick enough, the first choice first; Optuna's is the last.

    Args:
        task: as an agent sees it.
        seconds: allowed for a round; None for any.
    """
    for rule in RULES:
        if rule.mode is task.mode and (seconds is None or rule.seconds <= seconds) and rule.holds(task):
            yield rule
    yield Rule(task.mode, "Optuna", 0.0, _always, OTHERWISE)
