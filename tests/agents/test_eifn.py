import pytest

from cbo_gym import agents
from cbo_gym.agents.networks.eifn import EIFN
from cbo_gym.errors import ArgumentError
from tests.agents.helpers import make, play


def test_bad_parameters():
    with pytest.raises(ArgumentError, match="samples must be"):
        EIFN(samples=0)


def test_eifn_beats_random_on_ackley_in_every_run():
    for seed in range(2):
        env, task = make("CBO/Ackley-v0", seed, 15)
        learned = play(agents.EIFN(), env, task, seed)[1].max()
        random = play(agents.Random(), env, task, seed)[1].max()
        assert learned > random
