"""Seconds of one CoCaBO round, fits and search together, on one thread."""

import pytest

from cbo_gym import agents, evaluate

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("backend", ["plain", "warped"])
def test_a_round_takes_at_most_a_second_at_300_points(benchmark, backend):
    """The mean of rounds 291 to 310; nearly all points are those of one arm."""
    agent = agents.CoCaBO(backend=backend)
    run = benchmark.pedantic(evaluate, (agent, "CBO/CoCaFig1-v0", 0), {"horizon": 310}, rounds=1)
    seconds = run.seconds[-20:]
    print(f"\n{backend}: mean {seconds.mean():.3f} s, longest {seconds.max():.3f} s a round")
    assert seconds.mean() <= 1.0
