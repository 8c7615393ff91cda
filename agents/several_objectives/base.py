"""SeveralObjectivesAgent: the base class of the methods for several objectives, and their reference points.

Rewards are vectors with an entry for each objective, all of which are maximised. The *front* of some vectors is the set
of the non-dominated ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.fronts import non_dominated, spread_out
from cbo_gym.agent_registry.zoo import name_of
from cbo_gym.agents.common.features import ActionFeatures
from cbo_gym.agents.common.initial import SearchAgent
from cbo_gym.agents.common.search import Acquisition, Effort, maximise
from cbo_gym.errors import UnsupportedModeError
from cbo_gym.scm.scopes import minimal_intervention_sets, pareto_sets, supported_sets
from cbo_gym.task import Action, HardTask, Mode, Observation, SoftTask

# The objective that is computed from the action, not observed.
COST = "cost"
# Largest number of played actions from whose front an improvement of the hypervolume is measured.
MAX_BASELINE = 24
# Number of random actions whose predicted rewards form a front.
FRONT_SAMPLES = 512
# Distance of the reference point below the front, as a share of the front's range.
MARGIN = 0.1


class SeveralObjectivesAgent(SearchAgent):
    """Base class of agents that play at random without data, and then the action that :meth:`search` returns.

    Attributes:
        features: features of the task's actions, the inputs of models; subclasses make them in ``setup``.
        observed: the objectives that are variables.
    """

    modes = frozenset({Mode.SOFT, Mode.HARD})
    several_objectives = True
    takes_missing = True
    task: SoftTask | HardTask
    features: ActionFeatures
    device: str = "cpu"

    def setup(self, seed: int) -> None:
        if not self.task.objectives:
            raise UnsupportedModeError(
                f"{name_of(self)} needs a task with several objectives; {self.task.env_id} has one reward; "
                "choose an agent that maximises one, such as Auto, GP-UCB or Random"
            )
        self.observed = [objective.name for objective in self.task.objectives if objective.name != COST]
        self._signs = torch.tensor([objective.sign for objective in self.task.objectives], dtype=torch.float64)
        self._has_cost = len(self.observed) < len(self.task.objectives)

    def front_first(self, estimates: np.ndarray, searched: Collection[frozenset[str]] | None) -> list[Action]:
        """Return the actions played, those with non-dominated estimates ``(n, m)`` first.

        Actions on target sets that are not in ``searched`` (None for all sets) are left out, unless none would remain.
        """
        order = np.argsort(~non_dominated(estimates), kind="stable")
        actions = [self.history[index].action for index in order]
        if searched is None or not isinstance(self.task, HardTask):
            return actions
        targets = self.task.targets
        return [action for action in actions if targets[int(action["target"])] in searched] or actions

    def rewards_of(self, nodes: Tensor, inputs: Tensor) -> Tensor:
        """Return reward vectors, ``... x m``.

        Args:
            nodes: values of the observed objectives, ``... x len(observed)``.
            inputs: features of actions, ``... x input_dim``, from which costs are computed; the leading dimensions
                broadcast against those of ``nodes``.
        """
        columns = dict(zip(self.observed, nodes.unbind(-1), strict=True))
        if self._has_cost:
            columns[COST] = cost_of(self.task, inputs).expand(nodes.shape[:-1])
        return torch.stack([columns[objective.name] for objective in self.task.objectives], -1) * self._signs.to(nodes)

    def maximise(
        self, acquisition: Acquisition, screening: Acquisition, played: Sequence[Action], seed: int, effort: Effort
    ) -> Action:
        """Return the action with the greatest value of ``acquisition``; ``screening`` is a cheap approximation."""
        return maximise(
            acquisition,
            self.features,
            played,
            seed=seed,
            screening=screening,
            scouting=screening,
            effort=effort,
            device=self.device,
        )

    @abstractmethod
    def posterior(self, actions: Sequence[Action]) -> tuple[Tensor, Tensor] | None:
        """Return means and standard deviations of the observed objectives, ``n x len(observed)`` each.

        ``None`` if there is no model of one of the actions.
        """

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        with torch.no_grad():
            if (posterior := self.posterior(actions)) is None:
                return None
            means, stds = posterior
            cost_std = stds.new_zeros(len(stds))
            columns = dict(zip(self.observed, stds.unbind(-1), strict=True))
            stds = torch.stack([columns.get(objective.name, cost_std) for objective in self.task.objectives], -1)
            rewards = self.rewards_of(means, self.features.of_actions(actions).to(means))
        return rewards.cpu().numpy(), stds.cpu().numpy()

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        posterior = self.reward_posterior([action])
        return {} if posterior is None else self._rewards_by_name(posterior[0][0])

    def objective_values(self, observation: Observation) -> dict[str, float]:
        """Return the values of the observed objectives."""
        return {name: float(observation["nodes"][self.task.nodes.index(name)]) for name in self.observed}


def cost_of(task: SoftTask | HardTask, inputs: Tensor) -> Tensor:
    """Return costs of actions with features ``... x input_dim``, shape ``...``, differentiable."""
    assert task.costs is not None, "the cost is an objective"
    domains = task.codec.domains
    native = [scale.to_native(inputs[..., index]) for index, scale in enumerate(domains.scales)]
    if isinstance(task, HardTask):
        masks = [inputs[..., len(native) + index] > 0.5 for index in range(len(native))]
    else:
        masks = [inputs[..., index] != null for index, null in enumerate(task.null_action)]
    changed = {name: (mask, value) for name, mask, value in zip(domains.names, masks, native, strict=True)}
    return torch.as_tensor(task.costs.of(changed), dtype=inputs.dtype).expand(inputs.shape[:-1])


def sets_worth_setting(task: HardTask, unsupported: bool = False) -> list[frozenset[str]]:
    """Return the target sets that can be Pareto-optimal on the diagram, in the order of the task.

    If the cost of actions is an objective, these are all minimal sets, because setting another variable is never free.

    Args:
        task: a task with a known diagram.
        unsupported: whether to include sets that only reach points of the front below its convex hull.

    Raises:
        HiddenGraphError: if the diagram is hidden.
    """
    names = [objective.name for objective in task.objectives if objective.name != COST]
    if len(names) < len(task.objectives):
        # Each variable of a minimal set must affect the first objective or one of the "constrained" others.
        optimal = minimal_intervention_sets(task.diagram, names[0], task.manipulable, constrained=names[1:])
    else:
        find_sets = pareto_sets if unsupported else supported_sets
        optimal = find_sets(task.diagram, names, list(task.manipulable))
    # The task may have none of these sets.
    return [target for target in task.targets if target in optimal] or list(task.targets)


def reference_of(
    estimates: np.ndarray,
    predict: Callable[[Tensor], np.ndarray],
    features: ActionFeatures,
    seed: int,
    device: str = "cpu",
) -> np.ndarray:
    """Return a reference point below the front that a model predicts, ``(m,)``, by BoTorch's rule.

    The model predicts actions that were not played too: a reference point below the front of the played actions would
    ignore the ends of the true front.

    Args:
        estimates: reward vectors of the actions played, ``(n, m)``.
        predict: function from features of actions, ``n x d``, to the model's means of their reward vectors, ``(n, m)``.
        features: features of the task's actions.
        seed: seed of the random actions at which the model predicts.
        device: torch device of the model.
    """
    points = features.draw(FRONT_SAMPLES, torch.Generator().manual_seed(seed))
    vectors = np.concatenate([estimates, predict(features.inputs(points).to(device))])
    front = vectors[non_dominated(vectors)]
    width = np.ptp(front, axis=0)
    spread = np.ptp(vectors, axis=0)
    reference: np.ndarray = front.min(axis=0) - MARGIN * np.where(width > 0.0, width, np.maximum(spread, 1e-6))
    return reference


def scale_of(estimates: np.ndarray, device: str) -> tuple[Tensor, Tensor]:
    """Return the mean of reward vectors ``(n, m)`` and the width of their range, ``(m,)`` each."""
    width = np.maximum(np.ptp(estimates, axis=0), 1e-9 * np.maximum(1.0, np.abs(estimates).max(axis=0)))
    return torch.from_numpy(estimates.mean(axis=0)).to(device), torch.from_numpy(width).to(device)


def baseline_of(estimates: np.ndarray) -> np.ndarray:
    """Return the played actions from whose front an improvement of the hypervolume is measured.

    Args:
        estimates: reward vectors of all played actions, ``(n, m)``.

    Returns:
        indices of at most :data:`MAX_BASELINE` actions: those on the front, spread out over it if there are too many,
        then those on the front of the rest.
    """
    remaining, baseline = np.arange(len(estimates)), np.zeros(0, dtype=int)
    while len(remaining) and len(baseline) < MAX_BASELINE:
        front = remaining[non_dominated(estimates[remaining])]
        baseline = np.concatenate([baseline, front[spread_out(estimates[front], MAX_BASELINE - len(baseline))]])
        remaining = np.setdiff1d(remaining, front)
    return baseline
