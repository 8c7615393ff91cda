"""Safe play: only actions that a model certifies to meet the constraints, searched outward from a safe start.

As in SafeOpt (Sui, Gotovos, Burdick & Krause 2015; Berkenkamp, Krause & Schoellig 2021, with several constraints), an
action is certified if the pessimistic confidence bounds of E[node | action] meet all constraints. With k constraints
and T rounds, a bound holds with probability 1 - delta / (k T) under the agent's model. The action of a round depends
only on the data before it, so the probability that any round misses a constraint is at most delta.

Fitted to few data, a model can be confident that a function is flat where nothing was played. So actions are certified
only near data, where the posterior standard deviation is at most half of the prior one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from scipy.stats import t as student
from torch import Tensor

from cbo_gym._util.arguments import require_probability
from cbo_gym.agents.calibration.forecast import Calibration
from cbo_gym.agents.common.features import ActionFeatures
from cbo_gym.agents.common.search import CHUNK
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.errors import ArgumentError, UnsupportedModeError, short_repr
from cbo_gym.task import Action, HardTask, Round, SoftTask, Task

# Number of random points of a search.
RAW_SAMPLES = 512
# Number of random points around the safest actions.
AROUND = 256
# Number of generations of points around the best ones, of survivors of each, and of points around each survivor.
GENERATIONS, SURVIVORS, CHILDREN = 3, 16, 16
# Largest posterior standard deviation of a certified action, as a share of the prior one.
MAX_RELATIVE_STD = 0.5
# Function of GP inputs ``b x d`` to values ``(b,)``.
Values = Callable[[Tensor], Tensor]


class ConstraintModel(Protocol):
    """An agent with a posterior of the constrained nodes' expected values."""

    history: list[Round]

    def constrained_posterior(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of E[node | action], ``b x d`` to ``b x constraints`` each."""

    def max_relative_std(self, inputs: Tensor) -> Tensor:
        """Return the greatest ratio of posterior to prior standard deviation among these nodes, ``(b,)``."""

    def constrained_gps(self) -> Sequence[Sequence[GaussianProcess]]:
        """Return, for each constraint, the GPs from which the posterior of its node is computed."""


class SafePlay:
    """Choice among certified actions.

    Every second round plays the certified action with the highest acquisition value. The other rounds enlarge the set
    of certified actions: they play the certified action nearest to the best action that may be safe. If no action is
    certified, the safe start is played; without a start, the safest of the actions that were certified in earlier
    rounds.

    Args:
        task: soft or hard task.
        features: features of the task's actions.
        delta: largest probability that any round of the task's horizon misses a constraint, above 0 and below 1.
        start: an action that meets the constraints, as variable -> native value; None if the data certify one.
        device: torch device of the model.

    Raises:
        UnsupportedModeError: if the task has no constraints.
        ArgumentError: if the task has no action with the values of ``start``.
    """

    def __init__(
        self,
        task: Task,
        features: ActionFeatures,
        delta: float,
        start: Mapping[str, Any] | None,
        device: str,
    ) -> None:
        if not task.constraints:
            raise UnsupportedModeError(
                f"safety={delta:g} is about constraints, and {task.env_id} has none; add some, like "
                f"constraints=['{task.nodes[0]} <= 1'], or leave safety out"
            )
        self._task, self._features, self._device = task, features, device
        self._level = 1.0 - delta / (len(task.constraints) * task.horizon)
        self._start = None if start is None else _read_start(task, start)
        # Actions that were certified when they were chosen.
        self._certified: list[Action] = []

    def first(self) -> Action:
        """Return the action of a first round without data."""
        return self._fall_back("there are no data")

    def choose(self, model: ConstraintModel, acquisition: Values, space: ActionFeatures, seed: int) -> Action:
        """Return the next action, after at least one round.

        Args:
            model: the agent.
            acquisition: inputs of search points, ``b x 1 x d``, to values ``(b,)``, which are maximised.
            space: the search points of ``acquisition``. Its last inputs are the features of the action.
            seed: seed of the search.
        """
        widths, generator = self._widths(model), torch.Generator().manual_seed(seed)

        def excess(inputs: Tensor, sign: float) -> Tensor:
            """Return the greatest excess over a constraint at the optimistic (-1) or pessimistic (1) bounds."""
            mean, std = model.constrained_posterior(inputs[:, -self._features.input_dim :])
            columns = zip(self._task.constraints, mean.unbind(-1), strict=True)
            mean_excess = torch.stack([constraint.excess(means) for constraint, means in columns], -1)
            return (mean_excess + sign * std * widths.to(std)).amax(-1)

        def optimistic(inputs: Tensor) -> Tensor:
            return excess(inputs, -1.0)

        def pessimistic(inputs: Tensor) -> Tensor:
            is_near_data = model.max_relative_std(inputs[:, -self._features.input_dim :]) <= MAX_RELATIVE_STD
            return excess(inputs, 1.0).where(is_near_data, torch.inf)

        with torch.no_grad():
            starts = self._safest([past.action for past in model.history], pessimistic, SURVIVORS)
            enlarges = len(model.history) % 2 == 1
            chosen = self._best(acquisition, optimistic if enlarges else pessimistic, space, starts, generator)
            if enlarges and chosen is not None:
                goal = self._features.of_actions([chosen])

                def nearness(inputs: Tensor) -> Tensor:
                    return -(inputs.squeeze(-2) - goal.to(inputs)).square().sum(-1)

                chosen = self._best(nearness, pessimistic, self._features, [chosen, *starts], generator)
            if chosen is not None:
                self._certified.append(chosen)
                return chosen
            if self._start is None and self._certified:
                return self._safest(self._certified, pessimistic, 1)[0]
        return self._fall_back(f"the {len(model.history)} rounds of data certify none")

    def _fall_back(self, reason: str) -> Action:
        if self._start is None:
            limits = ", ".join(map(str, self._task.constraints))
            raise ArgumentError(
                f"safe play needs an action that meets {limits}, and {reason}; give one by its native values, as "
                f"safe_start={_example(self._task)} does"
            )
        return self._start

    def _widths(self, model: ConstraintModel) -> Tensor:
        """Return the distance of each constraint's bound from the mean, in standard deviations of the model.

        Errors have the distribution :class:`Calibration`, as in forecasts; of several GPs the widest one counts.
        """
        calibrations = [list(map(Calibration.of, gps)) for gps in model.constrained_gps()]
        widths = [
            max(calibration.scale * float(student.ppf(self._level, calibration.freedom)) for calibration in group)
            for group in calibrations
        ]
        return torch.tensor(widths, dtype=torch.float64)

    def _safest(self, actions: Sequence[Action], pessimistic: Values, count: int) -> list[Action]:
        """Return the safe start, then the ``count`` actions with the smallest excess at the pessimistic bounds."""
        allowed = [action for action in actions if self._features.allows(action)]
        starts = [] if self._start is None else [self._start]
        if allowed:
            bounds = pessimistic(self._features.of_actions(allowed).to(self._device))
            starts += [allowed[index] for index in bounds.argsort(stable=True)[:count].tolist()]
        return starts

    def _best(
        self, value: Values, excess: Values, space: ActionFeatures, starts: Sequence[Action], generator: torch.Generator
    ) -> Action | None:
        """Return the action with the highest value among those with ``excess`` at most 0; None if there is none.

        The search evaluates random points, then generations of points around the best ones.
        """

        def evaluate(points: Tensor) -> Tensor:
            values = torch.full((len(points),), -torch.inf, dtype=torch.float64)
            inputs = space.inputs(points).to(self._device)
            for rows in torch.arange(len(points)).split(CHUNK):
                safe_rows = rows[(excess(inputs[rows]) <= 0.0).cpu()]
                if len(safe_rows):
                    values[safe_rows] = value(inputs[safe_rows].unsqueeze(-2)).cpu()
            return values

        points = space.draw(RAW_SAMPLES, generator)
        if starts:
            start_points = torch.stack([space.encode_inside(action) for action in starts])
            around = start_points.repeat_interleave(-(-AROUND // len(start_points)), 0)
            points = torch.cat([start_points, space.perturb(around, generator), points])
        values = evaluate(points)
        for _ in range(GENERATIONS):
            parents = points[values.topk(SURVIVORS).indices].repeat_interleave(CHILDREN, 0)
            children = space.perturb(parents, generator)
            points, values = torch.cat([points, children]), torch.cat([values, evaluate(children)])
        order = values.argsort(descending=True)[:SURVIVORS]
        # Decoding rounds a point, so an action at a bound may be unsafe though its point was safe.
        for point in points[order[values[order] > -torch.inf]]:
            action = space.decode(point)
            if excess(self._features.of_actions([action]).to(self._device)) <= 0.0:
                return action
        return None


def safety_arguments(
    safety: float | None, safe_start: Mapping[str, Any] | None
) -> tuple[float | None, Mapping[str, Any] | None]:
    """Return the two arguments; raise ArgumentError if one is not allowed."""
    if safety is not None:
        require_probability("safety", safety)
    elif safe_start is not None:
        raise ArgumentError(f"safe_start={short_repr(safe_start)} is used with safety alone; give safety=0.05 too")
    if safe_start is not None and not isinstance(safe_start, Mapping):
        raise ArgumentError(f"safe_start must be a mapping of names to native values; given {short_repr(safe_start)}")
    return safety, safe_start


def _read_start(task: Task, start: Mapping[str, Any]) -> Action:
    try:
        # The codec raises an error for unknown names and values outside the domains.
        task.codec.steer(start)
        if isinstance(task, HardTask) and frozenset(start) not in task.targets:
            raise ArgumentError(f"no target set is {sorted(start)}; sets: {', '.join(task.codec.choices)}")
        return task.codec.from_native(start, task.null_action if isinstance(task, SoftTask) else ())
    except ArgumentError as error:
        raise ArgumentError(f"safe_start={short_repr(dict(start))} is no action of {task.env_id}: {error}") from error


def _example(task: Task) -> str:
    """Return native values of an action, as an example of the format."""
    target = max(task.targets, key=len) if isinstance(task, HardTask) else task.codec.domains.names
    intervals = zip(task.codec.domains.names, task.codec.domains.intervals, strict=True)
    return repr({name: interval[0] for name, interval in intervals if name in target})
