"""ABO: adaptive Bayesian optimisation (Nyikosa, Osborne & Roberts 2018), as in Aglietti et al. (2021), sec. 4.

One GP maps the values of all manipulable variables and the time slice to the reward, so that rewards of earlier slices
matter less in later ones. A trial maximises expected improvement in the present slice. The causal diagram and the
observational data are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.agents.calibration.data_noise import is_noiseless
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.dynamic.slices import SliceAgent
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.protocols import MakeSurrogate
from cbo_gym.agents.intervention_sets.acquisition import evolve, log_expected_improvement
from cbo_gym.task import Action, Round

# Number of quasi-random points for every variable.
CANDIDATES = 256
# Size of the search around the best of these points, see :func:`evolve`.
SURVIVORS, CHILDREN, RADII = 4, 16, (0.05, 0.01, 0.002)


class ABO(SliceAgent):
    """A GP over all manipulable variables and time. Plays dynamic tasks.

    Args:
        device: torch device.

    Attributes:
        make_surrogate: factory of the surrogate.
        surrogate: the GP from values and slice to the reward.
    """

    make_surrogate: ClassVar[MakeSurrogate] = GaussianProcess

    def __init__(self, device: str = "cpu") -> None:
        self.device = require_device(device)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self._target = self.task.targets.index(frozenset(self.task.manipulable))
        dim = len(self.task.manipulable)
        noise_std = 0.0 if is_noiseless(self.task, self.task.reward) else None
        self.surrogate = self.make_surrogate(self.task.reward, dim + 1, noise_std=noise_std, device=self.device)

    def begin(self) -> None:
        """Do nothing: the model covers all slices."""

    def learn(self, past: Round) -> None:
        values = np.asarray(past.action["values"], dtype=np.float64)
        self.surrogate.add(np.append(values, self._time), past.reward)

    @property
    def _time(self) -> float:
        return self.slice / max(1, self.task.slices - 1)

    def explore(self) -> Action:
        dim = len(self.task.manipulable)
        if not len(self.surrogate):
            return self._action(self.rng.random(dim))
        # The first trial of a slice improves on the rounds of the slice before.
        rounds = self.slice_rounds or self.history[-self.task.trials :]
        best = float(self._estimates(rounds).max())
        engine = SobolEngine(dim, scramble=True, seed=int(self.rng.integers(2**31)))
        points = engine.draw(CANDIDATES * dim, dtype=torch.float64).to(self.device)
        values, _ = evolve(
            points,
            self._log_improvement(points, best),
            partial(self._log_improvement, best=best),
            self.rng,
            radii=RADII,
            survivors=SURVIVORS,
            children=CHILDREN,
        )
        return self._action(values)

    def _action(self, values: np.ndarray) -> Action:
        return {"target": np.int64(self._target), "values": values}

    def _at_present(self, values: Tensor) -> Tensor:
        return torch.cat([values, torch.full_like(values[:, :1], self._time)], -1)

    def _log_improvement(self, values: Tensor, best: float) -> Tensor:
        with torch.no_grad():
            mean, std = self.surrogate.posterior(self._at_present(values))
        return log_expected_improvement(mean, std.clamp_min(1e-9), best)

    def _estimates(self, rounds: Sequence[Round]) -> np.ndarray:
        values = torch.from_numpy(np.stack([past.action["values"] for past in rounds])).to(self.device)
        with torch.no_grad():
            return self.surrogate.mean(self._at_present(values)).cpu().numpy()

    def slice_estimates(self) -> np.ndarray:
        return self._estimates(self.slice_rounds)
