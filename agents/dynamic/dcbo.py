"""DCBO: dynamic causal Bayesian optimisation (Aglietti, Dhir, Gonzalez & Damoulas 2021), Algorithm 1.

In each time slice every minimal intervention set of the slice's diagram has a dynamic causal GP, whose prior is the
estimate of E[Y_t | do(x_t), earlier implemented actions] (sec. 3.1 and 3.2). The first trial of a later slice repeats
the action that was implemented in the slice before; the others maximise expected improvement over all sets. The last
round of a slice implements the best trial.
"""

from __future__ import annotations

from cbo_gym._util.arguments import require_truth_value
from cbo_gym.agent import Agent
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.dynamic.restarted import Restarted, SliceCBO
from cbo_gym.agents.dynamic.slices import sets_to_explore, slice_view
from cbo_gym.agents.dynamic.unrolled import UnrolledModel
from cbo_gym.agents.intervention_sets.hard_view import HardView
from cbo_gym.task import Action


class DCBO(Restarted):
    """Causal GPs whose priors depend on the slices before. Plays dynamic tasks.

    Args:
        joint: set all manipulable variables of a slice in each trial, as ABO does, instead of those of one of its
            minimal intervention sets; not in the paper.
        device: torch device.
        repeat: begin each later slice with the action that was implemented in the slice before, if a slice has more
            than two rounds; False for the paper's method.

    Raises:
        ArgumentError: if ``joint`` or ``repeat`` is neither True nor False.
    """

    revision = 2

    def __init__(self, joint: bool = False, device: str = "cpu", repeat: bool = True) -> None:
        self.device = require_device(device)
        self.joint = require_truth_value("joint", joint)
        self.repeat = require_truth_value("repeat", repeat)

    def explore(self) -> Action:
        # With two rounds, the repeated action would also be the one to implement, so nothing would be tried.
        if self.repeat and self.slice and not self.slice_rounds and self.task.trials > 2:
            return self.implemented[-1].action
        return super().explore()

    def make(self) -> tuple[Agent, HardView]:
        previous = {}
        if self.slice:
            previous = dict(zip(self.task.nodes, self.implemented[-1].observation["nodes"].tolist(), strict=True))
        model = UnrolledModel(self.task, self.slice, previous, self.device)
        sets = [frozenset[str](), frozenset(self.task.manipulable)] if self.joint else sets_to_explore(self.task)
        measured = [t for t in range(self.task.slices) if f"{self.task.reward}_{t}" in self.task.observational]
        observed = self.observed_rounds(min(self.slice, max(measured, default=0)))
        return SliceCBO(model, self.device), slice_view(self.task, sets, observed)
