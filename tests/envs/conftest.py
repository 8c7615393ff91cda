"""Fixtures of the tests of environments."""

import pytest

from cbo_gym.envs import scalar, vector


@pytest.fixture
def block(monkeypatch: pytest.MonkeyPatch) -> int:
    """Number of rounds in a block of noise, made small so that a few rounds reach the next block."""
    rounds = 8
    for module in (scalar, vector):
        monkeypatch.setattr(module, "NOISE_BLOCK", rounds)
    return rounds
