# requires: botorch
# task: four points at a time by qLogEI
import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

import cbo_gym

function = cbo_gym.botorch_function("CBO/Ackley-v0")
torch.manual_seed(0)
X = torch.rand(8, function.dim, dtype=torch.float64)
Y = function(X)[:, None]
first = Y.max()
for _ in range(4):
    model = SingleTaskGP(X, Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    batch, _ = optimize_acqf(
        qLogExpectedImprovement(model, Y.max()), function.bounds.double(), q=4, num_restarts=4, raw_samples=64
    )
    X, Y = torch.cat([X, batch]), torch.cat([Y, function(batch)[:, None]])
assert first < Y.max() <= function.optimal_value + 1e-9
