"""GPOO: whole runs, and the cost of one more observation: ``make benchmark``."""

from time import perf_counter

import numpy as np
import pytest

from cbo_gym import evaluate
from cbo_gym.agents.cells.aggregated_gp import AggregatedGP, AverageKernel

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("env_id", ["CBO/GPBandit1-v0", "CBO/GPBandit1-S1-v0", "CBO/GPBandit2-v0"])
@pytest.mark.parametrize(("budget", "limit"), [(80, 0.5), (1000, 20.0)])
def test_a_whole_run(env_id, budget, limit):
    runs = [evaluate("GPOO", env_id, 0, horizon=budget, recommend="every") for _ in range(3)]
    seconds = np.median([run.seconds.sum() for run in runs])
    print(f"\n{env_id}, budget {budget}: {seconds:.3f} s (median of 3)")
    assert seconds < limit


def test_a_row_update_is_quadratic():
    """From 500 to 1,000 observations the time of an update grows by about 4, not by 8 as a factorisation would."""
    rng = np.random.default_rng(0)
    cells, gp = np.sort(rng.random((1100, 2, 1)), axis=1), AggregatedGP(AverageKernel(0.05, 0.1, 1), 0.1)
    seconds = []
    for cell in cells:
        start = perf_counter()
        gp.add(cell, 0.0)
        seconds.append(perf_counter() - start)
    early, late = np.median(seconds[450:550]), np.median(seconds[950:1050])
    print(f"\none update at 500: {1e3 * early:.2f} ms, at 1,000: {1e3 * late:.2f} ms")
    assert late < 6 * early
