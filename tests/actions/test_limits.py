"""Limits of settings: reading, emptiness, repair and sampling, against linear programs, brute force and differences."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from cbo_gym.actions import Domains
from cbo_gym.actions.domains import Categorical, Integer, Range
from cbo_gym.actions.limit_statements import read_limits
from cbo_gym.actions.limits import Limits
from cbo_gym.errors import ArgumentError

NAMES = ("a", "b", "c")
BOX = Domains({"a": (0.0, 5.0), "b": (-1.0, 1.0), "c": (10.0, 1000.0)})
MIXED = Domains(
    {"feed 1": (0.0, 5.0), "shots": Integer(0, 6), "dose": Range(1e-3, 1.0, scale="log"), "t": (20.0, 40.0)}
)
EVERY = np.ones(4, dtype=bool)


def everything(points: np.ndarray) -> np.ndarray:
    return np.ones(points.shape, dtype=bool)


@pytest.mark.parametrize(
    ("limit", "low", "coefficients", "high"),
    [
        ("feed 1+2*t/4-(3 - t)≤ 5", -np.inf, {"feed 1": 1.0, "t": 1.5}, 8.0),
        ("1e2 >= shots * 2", -100.0, {"shots": -2.0}, np.inf),
        ("feed 1 + dose = 1", 1.0, {"feed 1": 1.0, "dose": 1.0}, 1.0),
        ("t > -feed 1", 0.0, {"feed 1": 1.0, "t": 1.0}, np.inf),
    ],
)
def test_a_relation_is_read_as_a_bounded_sum(
    limit: str, low: float, coefficients: dict[str, float], high: float
) -> None:
    (read,) = read_limits(limit, MIXED.names)
    assert (read.low, read.coefficients, read.high) == (low, coefficients, high)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (["feed 1 * t <= 2"], "must be linear"),
        (["t <= fede 1"], "write it as"),
        (["dosis <= 1"], "'dosis' cannot be set; did you mean 'dose'"),
        (["t != 3"], "signs must be"),
        (["t - t <= 3"], "cancel out"),
        (["t"], "write it as"),
        (["at most 2 of t, dose"], "at most 1 to 1"),
        (["at most 1 of t, t"], "twice"),
        (["at most 1 of t, x"], "'x' cannot be set"),
        ([3], "a limit is a string"),
        ({"t": 3}, "must be a list"),
        (["t == 1" + "0" * 400], "choose a larger unit"),
        (["t + feed 1 >= 46", "dose <= 0.5"], "'t \\+ feed 1 >= 46' leaves no room within .* feed 1 from 0 to 5, t"),
        (["t <= 20"], "'t <= 20' leaves no room"),
        (
            ["t >= 30", "feed 1 <= 3", "dose <= 0.9", "t <= 8 * feed 1 - 1"],
            "'t >= 30' and 'feed 1 <= 3' and 't <= 8 \\* feed 1 - 1'",
        ),
    ],
)  # fmt: skip
def test_a_wrong_limit_is_named(limits: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Limits(limits, MIXED)  # type: ignore[arg-type]


def test_a_category_cannot_be_calculated_with() -> None:
    with pytest.raises(ArgumentError, match="'medium', which is a category"):
        Limits(["medium + x <= 2"], Domains({"medium": Categorical(["A", "B"]), "x": (0.0, 1.0)}))


# Random sets ------------------------------------------------------------------------------------------------

rows = st.lists(st.integers(-4, 4), min_size=3, max_size=3).filter(any)
relations = st.lists(st.tuples(rows, st.sampled_from(["<=", ">=", "=="]), st.integers(-20, 20)), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(relations, st.integers(100, 999))
def test_sets_are_those_of_linear_programs(rows: list[tuple[list[int], str, int]], seed: int) -> None:
    """Empty sets are refused, naming limits of which each is needed; repaired and drawn points meet all others."""
    domains = Domains(dict.fromkeys(NAMES, (-3.0, 4.0)))
    statements = [
        " + ".join(f"{k} * {name}" for k, name in zip(row, NAMES, strict=True)) + f" {sign} {bound}"
        for row, sign, bound in rows
    ]
    try:
        limits = Limits(statements, domains)
    except ArgumentError as error:
        named = dict(zip(statements, rows, strict=True))
        odd = [row for statement, row in named.items() if repr(statement) in str(error)]
        assert odd
        assert _room(odd) < 1e-5
        assert all(_room(list(fewer)) > 1e-7 for fewer in combinations(odd, len(odd) - 1))
        return
    assert _room(rows) > 1e-7
    rng = np.random.default_rng(seed)
    points = rng.random((100, 3))
    repaired = limits.repair(points, everything(points))
    drawn = limits.sample(np.ones(3, dtype=bool), 20, rng)
    for set_ in (repaired, drawn):
        native = domains.points_to_native(set_)
        assert np.all((set_ >= 0.0) & (set_ <= 1.0))
        for row, sign, bound in rows:
            excess = native @ row - bound
            assert np.all(excess <= 1e-9) or sign == ">="
            assert np.all(excess >= -1e-9) or sign == "<="
            # A sum that is not determined by equalities does not even miss its limit by a rounding error.
            assert "==" in str(rows) or np.all(excess <= 0.0 if sign == "<=" else excess >= 0.0)
    inside = limits.contains(points)
    assert np.array_equal(repaired[inside], points[inside])
    assert np.allclose(limits.repair(repaired, everything(points)), repaired, atol=1e-12)
    values = [dict(zip(NAMES, row, strict=True)) for row in domains.points_to_native(points).tolist()]
    assert [not limits.broken_by(value) for value in values] == inside.tolist()


def _room(rows: list[tuple[list[int], str, int]]) -> float:
    """Return the radius of the largest ball within the equalities, in shares of the width 7; -1 for an empty set."""
    equal = np.array([row for row, sign, _ in rows if sign == "=="], dtype=float).reshape(-1, 3)
    values = np.array([bound for _, sign, bound in rows if sign == "=="], dtype=float)
    sides = [(np.array(row, float), bound) for row, sign, bound in rows if sign == "<="]
    sides += [(-np.array(row, float), -bound) for row, sign, bound in rows if sign == ">="]
    sides += [(sign * unit, 4.0 if sign > 0 else 3.0) for unit in np.eye(3) for sign in (1, -1)]
    along = np.eye(3) - np.linalg.pinv(equal) @ equal
    if len(equal) and np.linalg.matrix_rank(equal) == 3:
        return -1.0
    matrix = np.array([np.append(row, np.linalg.norm(along @ row)) for row, _ in sides])
    solved = linprog(
        [0, 0, 0, -1],
        matrix,
        [bound for _, bound in sides],
        np.column_stack([equal, np.zeros(len(equal))]) if len(equal) else None,
        values if len(equal) else None,
        [(None, None)] * 3 + [(0, 100)],
    )
    return solved.x[3] / 7.0 if solved.status == 0 else -1.0


# Levels, logarithms, sets of variables -----------------------------------------------------------------------


def test_limits_hold_on_levels_and_logarithmic_scales() -> None:
    limits = Limits(["feed 1 + shots <= 5", "dose + t == 25", "shots <= feed 1 + 1"], MIXED)
    rng = np.random.default_rng(100)
    points = rng.random((2000, 4))
    for found in (limits.repair(points, everything(points)), limits.sample(EVERY, 500, rng)):
        feed, shots, dose, t = MIXED.points_to_native(found).T
        assert np.all(feed + shots <= 5.0 + 1e-12)
        assert np.all(shots <= feed + 1.0 + 1e-12)
        assert np.abs(dose + t - 25.0).max() < 1e-9
        assert np.array_equal(shots, np.rint(shots))
        assert set(shots) == {0.0, 1.0, 2.0}


def test_every_grid_point_inside_can_be_reached() -> None:
    domains = Domains({name: Integer(0, 8) for name in NAMES})
    grid = np.array(list(product(range(9), repeat=3)))
    limits = Limits(["a + b + c == 8", "a <= 2 * b"], domains)
    inside = grid[(grid.sum(1) == 8) & (grid[:, 0] <= 2 * grid[:, 1])]
    assert np.array_equal(limits.contains(grid / 8), (grid.sum(1) == 8) & (grid[:, 0] <= 2 * grid[:, 1]))
    drawn = limits.sample(np.ones(3, dtype=bool), 3000, np.random.default_rng(100))
    for found in (limits.repair(grid / 8, everything(grid)), drawn):
        assert {tuple(point) for point in np.rint(8 * found).astype(int)} == {tuple(point) for point in inside}


def test_gradients_of_repaired_points_are_those_of_differences() -> None:
    limits = Limits(["feed 1 + shots <= 5", "dose + 0.1 * t == 2.5", "t <= 22 + feed 1"], MIXED)
    points = np.random.default_rng(100).random((40, 4))
    moved = torch.tensor(points, requires_grad=True)
    weights = np.array([1.0, 2.0, -1.0, 0.5])
    repaired = limits.repair(moved, torch.ones(40, 4, dtype=torch.bool), torch)
    assert np.allclose(repaired.detach(), limits.repair(points, everything(points)), atol=1e-12)
    (repaired @ torch.tensor(weights)).sum().backward()
    for column in (0, 2, 3):
        step = 1e-7 * np.eye(4)[column]
        ends = [limits.repair(points + sign * step, everything(points)) @ weights for sign in (1, -1)]
        slopes = (ends[0] - ends[1]) / 2e-7
        # A difference across a kink or a level is another number.
        assert np.mean(np.abs(slopes - moved.grad.numpy()[:, column]) < 1e-4) > 0.9  # type: ignore[union-attr]


def test_a_variable_that_is_left_to_the_system_counts_with_its_most_favourable_value() -> None:
    limits = Limits(["a + 3 * b <= 3", "a + b == 4"], BOX)
    only_a = np.array([[True, False, False]] * 3)
    points = (np.array([[2.9, 0.0, 500.0], [3.1, 0.0, 0.0], [5.0, 0.0, 0.0]]) - [0, -1, 10]) / [5, 2, 990]
    # b may be -1, so that a is at most 5 by the inequality, and from 3 to 5 by the equality.
    assert limits.contains(points, only_a).tolist() == [False, True, True]
    assert limits.repair(points, only_a)[0, 0] * 5 == pytest.approx(3.0)
    assert limits.broken_by({"a": 2.9}) == ["a + b == 4"]


def test_at_most_counts_the_parameters_that_differ_from_null() -> None:
    limits = Limits(["at most 2 of a, b, c", "a <= 2 * b"], BOX, null=[0.0, 0.5, 0.0])
    points = np.random.default_rng(100).random((200, 3))
    members = limits.choose_members(points)
    repaired = limits.repair(np.where(members, points, limits.null), members)
    assert limits.contains(repaired).all()
    assert not limits.contains(points).any()
    assert limits.broken_by({"a": 0.0, "b": 1.0, "c": 500.0}) == []
    assert limits.broken_by({"a": 1.0, "b": 1.0, "c": 500.0}) == ["at most 2 of a, b, c"]


def test_a_set_may_have_a_single_point() -> None:
    """The equality pins whichever parameter differs from null; the limits as a whole leave two settings."""
    limits = Limits(["a + b == 1", "at most 1 of a, b"], Domains({"a": (0.0, 2.0), "b": (0.0, 2.0)}), [0.0, 0.0])
    drawn = limits.draw(100, np.random.default_rng(100))
    assert {tuple(point) for point in drawn.round(12).tolist()} == {(0.0, 0.5), (0.5, 0.0)}
    tensor = torch.tensor(drawn, requires_grad=True)
    assert np.array_equal(limits.repair(tensor, tensor > 0.0, torch).detach().numpy(), drawn)


def test_steered_limits_keep_fixed_values() -> None:
    limits = Limits(["a + b <= 2", "at most 2 of a, b, c"], BOX).steer({"a": 0.3}, ["b"])
    points = np.random.default_rng(100).random((50, 3))
    repaired = limits.repair(points, everything(points))
    assert np.all(repaired[:, 0] == 0.3)
    assert limits.contains(repaired).all()
    assert limits.can_set({"a", "b"})
    assert not limits.can_set({"a"})
    assert not limits.can_set({"a", "b", "c"})
    with pytest.raises(ArgumentError, match="'a <= b' leaves no room within the bounds a = 4, b from -1 to 1"):
        Limits(["a <= b"], BOX, null=[0.0, 0.5, 0.0]).steer({"a": 0.8})
    with pytest.raises(ArgumentError, match=r"the fixed values of a, b differ .* breaks 'at most 1 of a, b, c'"):
        Limits(["at most 1 of a, b, c"], BOX, null=[0.0, 0.5, 0.0]).steer({"a": 0.8, "b": 0.0, "c": 0.0})
