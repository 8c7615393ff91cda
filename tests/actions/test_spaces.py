"""What the action spaces have in common: seeded samples, batches, equality and copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from cbo_gym.actions import CellBox, GridBox, SparseBox, SuperArmSpace

NULL = np.array([0.5, 0.0, 1.0, 0.5, 0.25])
CASES = {
    "sparse": (
        lambda seed=None: SparseBox(NULL, 2, seed=seed),
        [SparseBox(NULL, 3), SparseBox(np.zeros(5), 2)],
        np.full(5, 0.1),
        "SparseBox(0.0, 1.0, (5,), max_interventions=2)",
    ),
    "grid": (
        lambda seed=None: GridBox(2, 3, seed=seed),
        [GridBox(2, 4), GridBox(3, 3)],
        np.array([0.5, 0.4]),
        "GridBox(0.0, 1.0, (2,), levels=3)",
    ),
    "cells": (
        lambda seed=None: CellBox(2, seed=seed),
        [CellBox(3)],
        np.array([[0.5, 0.5], [0.5, 0.6]]),
        "CellBox(0.0, 1.0, (2, 2))",
    ),
    "super arms": (
        lambda seed=None: SuperArmSpace(5, 2, seed=seed),
        [SuperArmSpace(5, 3), SuperArmSpace(6, 2)],
        np.ones(5),
        "SuperArmSpace((5,), size=2)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_spaces_are_seeded_batched_compared_and_copied(name: str) -> None:
    build, others, outside, text = CASES[name]
    space = build(seed=1)
    assert repr(space) == text
    assert space == build()
    assert space not in (*others, type(space).__base__, batch_space(space, 3))
    drawn = build(seed=1)
    expected = [drawn.sample() for _ in range(9)]
    for twin in (build(seed=1), pickle.loads(pickle.dumps(space)), copy.deepcopy(space)):
        assert twin == space
        np.testing.assert_array_equal([twin.sample() for _ in range(9)], expected)
    before = copy.deepcopy(space)
    batch = batch_space(space, 40)
    samples = batch.sample()
    np.testing.assert_array_equal(space.sample(), before.sample())  # a batch has a random stream of its own
    assert type(batch) is type(space)
    assert batch.shape == samples.shape == create_empty_array(space, 40).shape == (40, *space.shape)
    assert batch.contains(samples)
    assert all(space.contains(row) for row in iterate(batch, samples))
    assert len(np.unique(samples, axis=0)) > 5
    assert not space.contains(outside)
    samples[4] = outside
    assert not batch.contains(samples)
