"""DCBO: dynamic causal Bayesian optimisation (Aglietti, Dhir, Gonzalez & Damoulas 2021), Algorithm 1.

In each time slice every minimal intervention set of the slice's diagram has a dynamic causal GP: its prior mean and
prior standard deviation are the estimate of E[Y_t | do(x_t), what was implemented before] and its uncertainty, which
observational time series, the unrolled diagram and the outcome of the slice before give (sec. 3.1 and 3.2). A trial
maximises expected improvement over all sets; the last round of a slice implements the best of the trials.

Departures:

* A variable has one GP of its parents in its own and the slice before, whose kernel adds up functions of each and one
  of all; the authors' program adds up a GP of the parents in the slice and one of those before it, each fitted alone.
* All variables of the slice before are held at the values that they had in the implemented round; the program holds
  those that were set and the reward, and predicts the others. It follows means; here the means are averaged over the
  noise of the observed mechanisms, as the expectation asks.
* Hyper-parameters are not handed on from slice to slice, nor are interventional data of earlier slices made into
  observational ones: both are options of the program that its experiments leave off.
* Where the task says that trials have no noise, the GPs have none, as in the program; else it is learned. The
  improvement is over the best posterior mean of the trials, at first over the best prior mean. The program starts from
  a value that is worse than any, divides by the number of variables that are set, and so first sets a single variable,
  where the prior mean is the lowest.
* It does not observe in trials. The program has one round of observing a slice, before the first trial.
* Where the series tell nothing about a slice, the prior is flat. A slice in which nothing was measured borrows the
  mechanisms of the last one that was, as the program does.
"""

from __future__ import annotations

from cbo_gym.agent import Agent
from cbo_gym.agents.dynamic.restarted import Restarted
from cbo_gym.agents.dynamic.slice_cbo import SliceCBO
from cbo_gym.agents.dynamic.slices import SliceTask, sets_to_explore
from cbo_gym.agents.dynamic.unrolled import UnrolledModel
from cbo_gym.agents.toolbox.limits import require_device
from cbo_gym.arguments import require_truth_value


class DCBO(Restarted):
    """Causal GPs whose priors know the slices before. Plays dynamic tasks.

    Args:
        joint: set all manipulable variables of a slice in each trial, as ABO does, rather than those of one of its
            minimal intervention sets: ours.
        device: torch device.

    Raises:
        ArgumentError: if ``joint`` is neither True nor False.
    """

    def __init__(self, joint: bool = False, device: str = "cpu") -> None:
        require_device(device)
        require_truth_value("joint", joint)
        self.joint = joint
        self.device = device

    def make(self) -> tuple[Agent, SliceTask]:
        held = {}
        if self.slice:
            held = dict(zip(self.task.nodes, self.implemented[-1].observation["nodes"].tolist(), strict=True))
        model = UnrolledModel(self.task, self.slice, held, self.device)
        sets = [frozenset[str](), frozenset(self.task.manipulable)] if self.joint else sets_to_explore(self.task)
        observed = self.observed_rounds(min(self.slice, self._last_measured))
        return SliceCBO(model, self.device), SliceTask(self.task, sets, observed)

    @property
    def _last_measured(self) -> int:
        """The last slice in which something was measured; 0 where there is none."""
        measured = [at for at in range(self.task.slices) if f"{self.task.reward}_{at}" in self.task.observational]
        return max(measured, default=0)
