import numpy as np
import pytest
import torch
from botorch.generation import gen_candidates_scipy

from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.common.search import maximise
from tests.support.loop import flat, make

TASKS = {
    "soft": ("CBO/Alpine2-v0", {}),
    "sparse": ("CBO/Alpine2-v0", {"max_interventions": 2}),
    "hard": ("CBO/CompleteGraph-v0", {}),
}


def task_of(kind: str):
    env_id, kwargs = TASKS[kind]
    return make(env_id, 0, 10, **kwargs)[1]


@pytest.mark.parametrize("kind", TASKS)
def test_actions_and_search_points_stand_for_each_other(kind: str) -> None:
    task = task_of(kind)
    features = features_of(task)
    task.action_space.seed(3)
    for action in [past.action for past in task.initial_data] + [task.action_space.sample() for _ in range(20)]:
        point = features.encode(action)
        assert point.shape == (features.search_dim,)
        assert features.inputs(point).shape == (features.input_dim,)
        np.testing.assert_array_equal(flat(features.decode(point)), flat(action))
    points = features.draw(200, torch.Generator().manual_seed(1))
    assert all(task.action_space.contains(features.decode(point)) for point in points)
    assert torch.equal(points, features.draw(200, torch.Generator().manual_seed(1)))
    assert not torch.equal(points, features.draw(200, torch.Generator().manual_seed(2)))


def test_values_outside_the_target_do_not_reach_the_gp() -> None:
    features = features_of(task_of("hard"))
    points = features.draw(100, torch.Generator().manual_seed(0)).requires_grad_()
    features.inputs(points).sum().backward()
    members = features.membership(points)
    assert torch.equal(points.grad, torch.cat([members, torch.zeros_like(members)], -1).double())


@pytest.mark.parametrize(
    ("kind", "peak", "best"),
    [
        ("soft", [0.2, 0.7, 0.5, 1.2, -0.1, 0.33], [0.2, 0.7, 0.5, 1.0, 0.0, 0.33]),
        ("sparse", [0.5, 0.9, 0.45, 0.5, 0.02, 0.6], [0.5, 0.9, 0.5, 0.5, 0.02, 0.5]),
    ],
)
def test_soft_maximum_is_found(kind: str, peak: list[float], best: list[float]) -> None:
    task, top = task_of(kind), torch.tensor(peak, dtype=torch.float64)
    action = maximise(lambda x: -(x - top).square().sum((-1, -2)), features_of(task), [task.null_action], seed=0)
    np.testing.assert_allclose(action, best, atol=1e-4)
    assert task.action_space.contains(action)


@pytest.mark.parametrize("best", [0, 3, 6])
def test_hard_maximum_is_found(best: int) -> None:
    task = task_of("hard")
    features = features_of(task)
    peak = torch.tensor([0.2, 0.9, 0.6], dtype=torch.float64)
    members = torch.tensor([name in task.targets[best] for name in task.manipulable])
    played = [past.action for past in task.initial_data]

    def acquisition(inputs: torch.Tensor) -> torch.Tensor:
        values, target = inputs[:, 0, :3], inputs[:, 0, 3:]
        misses = (target - members.double()).abs().sum(-1)
        return -misses - (target * (values - peak).square()).sum(-1)

    action = maximise(acquisition, features, played, seed=0)
    assert action["target"] == best
    np.testing.assert_allclose(action["values"][members], peak[members], atol=1e-4)
    assert task.action_space.contains(action)


def test_best_played_action_is_a_start_and_what_has_no_usable_gradient_is_screened() -> None:
    features = features_of(task_of("soft"))
    needle = np.full(6, 0.123)

    def peak(inputs: torch.Tensor) -> torch.Tensor:
        return torch.exp(-(inputs[:, 0] - torch.as_tensor(needle)).square().sum(-1) / 1e-6)

    np.testing.assert_allclose(maximise(peak, features, [needle + 1e-4], seed=0), needle, atol=1e-5)

    def without_gradient(inputs: torch.Tensor) -> torch.Tensor:
        return inputs[:, 0, 0] + (inputs[:, 0] * 0.0).sum(-1).sqrt()

    assert maximise(without_gradient, features, [np.zeros(6)], seed=0)[0] > 0.99
    task = task_of("hard")  # a network's reward hangs on no value under the empty set, of which all points may be
    first = task.initial_data[0].action
    action = maximise(lambda inputs: inputs.new_ones(len(inputs)), features_of(task), [first], seed=0)
    assert task.action_space.contains(action)


def test_other_modes_have_no_features() -> None:
    with pytest.raises(ValueError, match="hard and contextual tasks; CBO/Alpine2-Masked-v0 is masked"):
        features_of(make("CBO/Alpine2-Masked-v0", 0, 10)[1])


def test_botorch_climbs_from_every_start_as_its_own_problem() -> None:
    """The installed SciPy must be one that BoTorch's batched optimiser supports: pyproject.toml limits its version."""
    sizes = []

    def acquisition(points: torch.Tensor) -> torch.Tensor:
        sizes.append(len(points))
        return -((points - 0.3) ** 2).sum(dim=(-2, -1))

    starts = torch.tensor([[[0.3, 0.3]], [[0.9, 0.1]], [[0.0, 1.0]]], dtype=torch.float64)
    gen_candidates_scipy(starts, acquisition, lower_bounds=0.0, upper_bounds=1.0)
    assert sizes[0] == 3
    assert min(sizes) < 3  # the start at the optimum has ended alone
