"""Agents use only what the protocols of surrogates have, so models of other classes can take a GP's place."""

import numpy as np
import pytest

from cbo_gym import evaluate
from cbo_gym.agents import GPMW, GPUCB, MCBO
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.protocols import NodeSurrogate, Surrogate

pytestmark = pytest.mark.usefixtures("coarse_search")


def members(protocol):
    return {name for kind in protocol.__mro__ for name in vars(kind) if not name.startswith("_")}


class Other:
    """Lets through only what a protocol has, and is no GaussianProcess."""

    members: set[str]

    def __init__(self, *arguments, **keywords):
        self._model = GaussianProcess(*arguments, **keywords)

    def __len__(self):
        return len(self._model)

    def __getattr__(self, name):
        if name in self.members:
            return getattr(self._model, name)
        raise AttributeError(f"the protocol has no {name}")


class OfReward(Other):
    members = members(Surrogate)


class OfNode(Other):
    members = members(NodeSurrogate)


@pytest.mark.parametrize(
    ("agent", "other", "env"),
    [
        (GPUCB, OfReward, "CBO/Dropwave-v0"),
        (GPMW, OfReward, "CBO/Dropwave-Penny-v0"),
        (MCBO, OfNode, "CBO/Dropwave-Noisy-v0"),
    ],
)
def test_a_model_of_another_class_plays_as_well(agent, other, env):
    class Plugged(agent):
        make_surrogate = other

    theirs, ours = (evaluate(one(), env, seed=0, horizon=2).table["reward"] for one in (Plugged, agent))
    np.testing.assert_array_equal(theirs, ours)
