"""The GP of the rewards of all target sets."""

import math

import pytest
import torch
from torch import Tensor

from cbo_gym.agents.intervention_sets.sets_gp import SetsGP, novelty


def inputs(values: list[float], chosen: list[float], std: float = 0.0, novel: float = 0.0) -> Tensor:
    return torch.tensor([[*values, *chosen, std, novel]], dtype=torch.float64)


def test_without_data_it_is_its_prior() -> None:
    gp = SetsGP("Y", 2)
    gp.unit = 2.0
    points = torch.cat([inputs([0.1, 0.5], [1.0, 0.0], 0.5), inputs([0.1, 0.5], [1.0, 0.0], 0.5, 1.0)])
    mean, std = gp.predict(points, torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert mean.tolist() == [3.0, 4.0]
    assert std.tolist() == pytest.approx([math.sqrt(4.0 + 0.25), math.sqrt(8.0 + 0.25)])


def test_sets_learn_from_those_like_them_and_keep_their_own_rewards() -> None:
    gp = SetsGP("Y", 3)
    zero = torch.zeros(1, dtype=torch.float64)
    alone, both, other = (inputs([0.5] * 3, chosen, 0.0, 1.0) for chosen in ([1, 0, 0], [1, 1, 0], [0, 1, 1]))
    for reward in (2.0, 2.2, 1.8, 2.1):
        gp.observe(1, alone, zero, reward)
    gp.observe(2, both, zero, 0.0)
    assert gp.means_at_data(1).shape == (4,)
    assert gp.means_at_data(3).shape == (0,)
    like, unlike = (float(gp.predict(one, zero)[0]) for one in (both, other))
    assert float(gp.means_at_data(1)[0]) > like > unlike > 0.0


def test_a_revised_prior_takes_effect() -> None:
    gp = SetsGP("Y", 1)
    where = inputs([0.5], [1.0])
    for _ in range(3):
        gp.observe(1, where, torch.zeros(1, dtype=torch.float64), 1.0)
    before = float(gp.means_at_data(1)[0])
    gp.revise(1, where.expand(3, -1), torch.full((3,), 0.9, dtype=torch.float64))
    assert gp.prior_means(1).tolist() == [0.9] * 3
    assert before < float(gp.means_at_data(1)[0]) <= 1.0


def test_what_lies_beyond_the_observations_is_novel() -> None:
    seen = torch.tensor([[0.2, 0.5], [0.4, 0.5]], dtype=torch.float64)
    points = torch.tensor([[0.2, 0.5], [0.3, 0.5], [0.2, 1.0], [1.0, 0.5]], dtype=torch.float64)
    found = novelty(points, seen)
    assert float(found[0]) == 0.0
    assert 0.3 < float(found[1]) < 0.5
    assert (found[2:] > 0.99).all()
    assert novelty(points, seen[:0]).tolist() == [1.0] * 4
