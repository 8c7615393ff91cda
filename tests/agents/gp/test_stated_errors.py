"""Stated standard errors of a GP's outputs."""

import numpy as np
import torch

from cbo_gym.agents.gp.model import GaussianProcess


def function(x):
    return np.sin(6.0 * x[:, 0]) + x[:, 1]


def test_errors_are_added_to_the_noise_of_each_datum():
    """The posterior is the textbook's, for data that come at once and one after another."""
    rng = np.random.default_rng(100)
    x, t = rng.random((12, 2)), torch.from_numpy(rng.random((5, 2)))
    std = rng.random(12) * (rng.random(12) < 0.7)
    y = function(x) + std * rng.normal(size=12)
    gp = GaussianProcess("y", 2, noise_std=0.1)
    gp.schedule.early = gp.schedule.growth = 10.0
    gp.add(x[:8], y[:8], std[:8])
    gp.update()
    for index in range(8, 12):
        gp.add(x[index], y[index], std[index])
        gp.update()
    mean, spread = gp.posterior(t)
    # Outputs are standardised at the fit, to the first eight.
    scale = y[:8].std(ddof=1)
    location = y[:8].mean() + scale * gp.constant
    kernel = gp.kernel.at(gp.kernel_theta, torch.from_numpy(x))
    noise = (0.1**2 + std**2) / scale**2
    gain = kernel(t).cross.numpy() @ np.linalg.inv(kernel(torch.from_numpy(x)).cross.numpy() + np.diag(noise))
    variance = kernel(t).variance.numpy() - (gain * kernel(t).cross.numpy()).sum(-1)
    np.testing.assert_allclose(mean.detach(), location + gain @ (y - location), rtol=1e-6)
    np.testing.assert_allclose(spread.detach(), scale * np.sqrt(variance), rtol=1e-4)


def test_precise_data_count_more_and_the_noise_is_what_the_errors_leave():
    """Half of the data are measured roughly; every round of the process has a noise of 0.1."""
    found = []
    for seed in range(100, 105):
        rng = np.random.default_rng(seed)
        x, t, std = rng.random((40, 2)), rng.random((200, 2)), np.where(rng.random(40) < 0.5, 0.05, 0.8)
        y = function(x) + 0.1 * rng.normal(size=40) + std * rng.normal(size=40)
        for errors in (std, 0.0):
            gp = GaussianProcess("y", 2)
            gp.add(x, y, errors)
            mean, spread = (column.detach().numpy() for column in gp.posterior(torch.from_numpy(t)))
            miss = np.abs(function(t) - mean)
            found.append([np.sqrt(np.mean(miss**2)), np.mean(miss < 1.96 * spread), float(gp.noise_scale)])
    told, ignored = np.array(found)[::2], np.array(found)[1::2]
    assert (told[:, 0] < ignored[:, 0]).all()
    assert told[:, 0].mean() < 0.6 * ignored[:, 0].mean()
    assert 0.85 < told[:, 1].mean() < 0.99
    assert 0.05 < np.median(told[:, 2]) < 0.15
