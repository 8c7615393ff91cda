import pytest

from cbo_gym import agents
from cbo_gym.agents.networks.eifn import EIFN
from cbo_gym.errors import ArgumentError
from tests.agents.helpers import make, play


def test_bad_parameters():
    with pytest.raises(ArgumentError, match="samples must be"):
        EIFN(samples=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_eifn_beats_random_on_ackley_in_every_run(seed):
    env, task = make("CBO/Ackley-v0", seed, 15)
    learned = play(agents.EIFN(), env, task, seed)[1].max()
    random = play(agents.Random(), env, task, seed)[1].max()
    assert learned > random


@pytest.mark.slow
def test_exploration_leaves_the_rings_that_expected_improvement_stays_on():
    def best(explore: bool, seed: int) -> float:
        env, task = make("CBO/Dropwave-v0", seed, 20)
        return play(EIFN(explore=explore), env, task, seed)[1].max()

    gains = [best(True, seed) - best(False, seed) for seed in range(2)]
    assert min(gains) >= 0.0
    assert max(gains) > 0.1
