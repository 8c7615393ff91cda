"""SeveralObjectivesAgent: what the methods for several objectives have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import torch
from torch import Tensor

from cbo_gym.agents.common.features import ActionFeatures
from cbo_gym.agents.common.initial import SearchAgent
from cbo_gym.agents.common.prices import cost_of
from cbo_gym.errors import UnsupportedModeError
from cbo_gym.fronts import non_dominated, spread_out
from cbo_gym.scm.scopes import minimal_intervention_sets, pareto_sets, supported_sets
from cbo_gym.task import Action, HardTask, Mode, Observation, SoftTask

COST = "cost"  # the objective that is no variable, but follows from the action
BASELINE = 24
OUTLOOK = 512  # actions at which the model is asked how far its front reaches
BELOW = 0.1  # of the front's range, by which the reference point lies below its least values


class SeveralObjectivesAgent(SearchAgent):
    """Plays at random when there are no data, and else what :meth:`search` finds.

    Attributes:
        features: of the task's actions, which models take as inputs; subclasses make them in ``setup``.
        observed: the objectives that are variables.
    """

    modes = frozenset({Mode.SOFT, Mode.HARD})
    several_objectives = True
    task: SoftTask | HardTask
    features: ActionFeatures

    def setup(self, seed: int) -> None:
        if not self.task.objectives:
            raise UnsupportedModeError(
                f"{type(self).__name__} needs a task with several objectives; {self.task.env_id} has one reward"
            )
        self.observed = [one.name for one in self.task.objectives if one.name != COST]
        self._signs = torch.tensor([one.sign for one in self.task.objectives], dtype=torch.float64)
        self._is_paid_for = len(self.observed) < len(self.task.objectives)

    def front_first(self, estimates: np.ndarray, searched: Collection[frozenset[str]] | None) -> list[Action]:
        """The actions played, those whose estimates no other dominates first.

        ``searched`` are target sets, to leave out actions on others unless all are; None for all of them.
        """
        order = np.argsort(~non_dominated(estimates), kind="stable")
        actions = [self.history[place].action for place in order]
        if searched is None or not isinstance(self.task, HardTask):
            return actions
        targets = self.task.targets
        return [action for action in actions if targets[int(action["target"])] in searched] or actions

    def rewards_of(self, nodes: Tensor, inputs: Tensor) -> Tensor:
        """Reward vectors, ``... x m``, of values of the observed objectives; what is paid follows from the inputs.

        Args:
            nodes: ``... x len(observed)``.
            inputs: features of actions, ``... x input_dim``, whose dimensions in front broadcast against those.
        """
        columns = dict(zip(self.observed, nodes.unbind(-1), strict=True))
        if self._is_paid_for:
            columns[COST] = cost_of(self.task, inputs).expand(nodes.shape[:-1])
        return torch.stack([columns[one.name] for one in self.task.objectives], -1) * self._signs.to(nodes)

    def seen(self, observation: Observation) -> dict[str, float]:
        """The values of the observed objectives."""
        return {name: float(observation["nodes"][self.task.nodes.index(name)]) for name in self.observed}


def sets_worth_setting(task: HardTask, unsupported: bool = False) -> list[frozenset[str]]:
    """The target sets that the diagram leaves as possibly Pareto-optimal, in the order of the task.

    Where acting costs something and that is an objective, all minimal sets are: to set more is never free.

    Args:
        task: whose diagram is told.
        unsupported: whether to count those that reach no more than points below the convex hull of the front.

    Raises:
        HiddenGraphError: if no diagram is told.
    """
    names = [one.name for one in task.objectives if one.name != COST]
    if len(names) < len(task.objectives):
        first, *others = names
        found = minimal_intervention_sets(task.diagram, first, task.manipulable, constrained=others)
    else:
        found = (pareto_sets if unsupported else supported_sets)(task.diagram, names, list(task.manipulable))
    return [target for target in task.targets if target in found]


def reference_of(
    estimates: np.ndarray, predict: Callable[[Tensor], np.ndarray], features: ActionFeatures, seed: int
) -> np.ndarray:
    """A reference point below all that a model takes for its front, played or not, as BoTorch infers one.

    Were it below the front of what was played alone, the ends of the front would not count where they are further out.

    Args:
        estimates: reward vectors of the actions played, ``(n, m)``.
        predict: features of actions to the model's means of their reward vectors.
        features: of the task's actions.
        seed: of the actions at which the model is asked.
    """
    points = features.draw(OUTLOOK, torch.Generator().manual_seed(seed))
    vectors = np.concatenate([estimates, predict(features.inputs(points))])
    front = vectors[non_dominated(vectors)]
    width = np.ptp(front, axis=0)
    spread = np.ptp(vectors, axis=0)
    reference: np.ndarray = front.min(axis=0) - BELOW * np.where(width > 0.0, width, np.maximum(spread, 1e-6))
    return reference


def baseline_of(estimates: np.ndarray) -> np.ndarray:
    """Places of the actions played that an improvement is counted from: at most :data:`BASELINE`.

    They are those whose estimates ``(n, m)`` lie on the front, spread out over it where these are too many, and then
    those on the front of the rest.
    """
    left, found = np.arange(len(estimates)), np.zeros(0, dtype=int)
    while len(left) and len(found) < BASELINE:
        front = left[non_dominated(estimates[left])]
        found = np.concatenate([found, front[spread_out(estimates[front], BASELINE - len(found))]])
        left = np.setdiff1d(left, front)
    return found
