"""qNEHVI: noisy expected hypervolume improvement of BoTorch (Daulton, Balandat & Bakshy 2021), on chosen target sets.

A GP predicts each objective from the action. Every round plays the action with the greatest expected gain of
hypervolume over the uncertain front of the actions played. ``qNEHVI`` sets all variables, like the baseline of Bhatija
et al. (2025); ``qNEHVI-Sets`` searches the target sets that can be Pareto-optimal on the diagram
(:mod:`cbo_gym.scm.scopes.pareto_sets`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from botorch.acquisition.multi_objective import logei
from botorch.acquisition.multi_objective.objective import MCMultiOutputObjective
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from cbo_gym._util.arguments import require_truth_value, whole_number
from cbo_gym.agents.calibration.data_noise import add_measured, is_noiseless, standard_error
from cbo_gym.agents.calibration.forecast import ForecastsByNode
from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.common.limits import MAX_SAMPLES, require_device
from cbo_gym.agents.common.search import Effort
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.outputs import JointGPs
from cbo_gym.agents.several_objectives.base import (
    SeveralObjectivesAgent,
    baseline_of,
    reference_of,
    scale_of,
    sets_worth_setting,
)
from cbo_gym.task import Action, HardTask, Info, Observation

# Use the Python code, because BoTorch would compile a kernel for this processor, and has no public switch for it.
logei._C, logei._load_attempted = None, True
# Number of posterior samples with which random points are screened.
SCREENING_SAMPLES = 8
EFFORT = Effort(raw_samples=256, generations=2, restarts=4)


class QNEHVI(ForecastsByNode, SeveralObjectivesAgent):
    """Noisy expected hypervolume improvement on all variables. Plays soft and hard tasks with several objectives.

    Args:
        samples: number of Sobol samples of the posterior, 1 to 4,096.
        device: torch device.

    Attributes:
        surrogates: the GPs of the objectives that are variables, each from the action.
        model: BoTorch model of all ``surrogates``.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    takes_mixed_domains = True
    takes_limits = True
    takes_precision = True

    surrogate_class: ClassVar[type[GaussianProcess]] = GaussianProcess

    def __init__(self, samples: int = 32, device: str = "cpu") -> None:
        self.samples = whole_number("samples", samples, at_least=1, at_most=MAX_SAMPLES)
        self.device = require_device(device)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self._searched = self.choose_sets(self.task) if isinstance(self.task, HardTask) else None
        self.features = features_of(self.task, self._searched)
        self.surrogates = [
            self.surrogate_class(
                name,
                self.features.input_dim,
                noise_std=0.0 if is_noiseless(self.task, name) else None,
                categories=self.features.categories,
                device=self.device,
            )
            for name in self.observed
        ]
        self.model = JointGPs(self.surrogates)
        self._sampler_seed = int(self.rng.integers(2**31))

    def choose_sets(self, task: HardTask) -> list[frozenset[str]]:
        return [max(task.targets, key=len)]

    def update(self, action: Action, observation: Observation, reward: np.ndarray, info: Info) -> None:
        super().update(action, observation, reward, info)
        inputs = self.features.of_actions([action])[0]
        values = self.objective_values(observation)
        for surrogate, (name, value) in zip(self.surrogates, values.items(), strict=True):
            add_measured(surrogate, inputs, value, standard_error(observation, self.task.nodes.index(name)))

    def search(self, seed: int) -> Action:
        estimates = self.estimated_rewards()
        scaled = _Rewards(self, estimates)
        baseline = self.surrogates[0].inputs[baseline_of(estimates)]
        reference = reference_of(estimates, self._predicted_rewards, self.features, seed, self.device)
        screening, acquisition = (
            logei.qLogNoisyExpectedHypervolumeImprovement(
                self.model,
                scaled.scale(reference).tolist(),
                baseline,
                sampler=SobolQMCNormalSampler(torch.Size([samples]), seed=self._sampler_seed),
                objective=scaled,
                prune_baseline=False,
                cache_root=False,
            )
            for samples in (min(SCREENING_SAMPLES, self.samples), self.samples)
        )
        played = self.front_first(estimates, self._searched)
        return self.maximise(acquisition, screening, played, seed, EFFORT)

    def posterior(self, actions: Sequence[Action]) -> tuple[Tensor, Tensor]:
        inputs = self.forecast_inputs(actions)
        means, stds = zip(*[surrogate.posterior(inputs) for surrogate in self.surrogates], strict=True)
        return torch.stack(means, -1), torch.stack(stds, -1)

    def surrogates_by_node(self) -> Mapping[str, GaussianProcess]:
        return dict(zip(self.observed, self.surrogates, strict=True))

    def estimated_rewards(self) -> np.ndarray:
        return self._predicted_rewards(self.surrogates[0].inputs)

    def _predicted_rewards(self, inputs: Tensor) -> np.ndarray:
        with torch.no_grad():
            means = torch.stack([surrogate.mean(inputs) for surrogate in self.surrogates], -1)
            return self.rewards_of(means, inputs).cpu().numpy()


class QNEHVISets(QNEHVI):
    """qNEHVI on the target sets that can be Pareto-optimal on the diagram.

    Args:
        unsupported: whether to search sets too that only reach points of the front below its convex hull.
    """

    def __init__(self, unsupported: bool = False, samples: int = 32, device: str = "cpu") -> None:
        super().__init__(samples, device)
        self.unsupported = require_truth_value("unsupported", unsupported)

    def choose_sets(self, task: HardTask) -> list[frozenset[str]]:
        return sets_worth_setting(task, self.unsupported)


class _Rewards(MCMultiOutputObjective):
    """Map samples of the observed objectives to reward vectors, in units of their ranges among the actions played."""

    def __init__(self, agent: QNEHVI, estimates: np.ndarray) -> None:
        super().__init__()
        self._agent = agent
        self._centre, self._width = scale_of(estimates, agent.device)

    def scale(self, rewards: np.ndarray | Tensor) -> Tensor:
        return (torch.as_tensor(rewards).to(self._centre) - self._centre) / self._width

    def forward(self, samples: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: N803  (BoTorch's name)
        assert X is not None, "BoTorch passes the points"
        return self.scale(self._agent.rewards_of(samples, X))
