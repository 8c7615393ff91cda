"""Rendering: the table, and pictures in which nothing overlaps or is cut off."""

import itertools
import random
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cbo_gym  # noqa: F401  (registers the environments)
from cbo_gym.drawing import Picture
from cbo_gym.drawing.edges import curve_of
from cbo_gym.drawing.layout import lay_out
from cbo_gym.drawing.sheet import Circle, Layers, Sheet, Sizes, sheet_for
from cbo_gym.envs.picture import picture_of
from cbo_gym.envs.registry import find_entry
from cbo_gym.envs.snapshot import Snapshot
from cbo_gym.scm import CausalDiagram, Linear, SeparableSEM, Uniform
from tests.support.environments import COVERING, KINDS, ONE_OF_A_KIND
from tests.support.loop import reset

#: those that take long to draw
LARGE = [("CBO/CoCaLarge-v0", {}), ("CBO/BinaryTree-v0", {"depth": 6})]
ACYCLIC = [(env_id, {}) for env_id in ONE_OF_A_KIND if "cyclic" not in find_entry(env_id).tags]
CASES = [*ACYCLIC, ("CBO/BinaryTree-v0", {"depth": 4}), LARGE[1]]
SLOW_IF_LARGE = [
    pytest.param(*case, marks=[] if case not in LARGE and (case[1] or case[0] in COVERING) else [pytest.mark.slow])
    for case in CASES
]


def drawn(env: Any, action: Any) -> Picture:
    """The picture of an environment after a round in which ``action`` was played."""
    base = env.unwrapped
    action = base.to_intervention(action)
    return picture_of(Snapshot(base.dynamics, base.spec.id, base.round, base.total_reward, base.values, action))


def played(env_id: str, render_mode: str, rounds: int = 3, **kwargs: Any) -> Any:
    env = reset(gym.make(env_id, render_mode=render_mode, **kwargs), 1, 1)
    for _ in range(rounds):
        env.step(env.action_space.sample())
    return env


def rows_of(text: str) -> dict[str, list[str]]:
    """The table's rows by node, cut where two or more blanks stand."""
    lines = [line.strip("* ") for line in text.splitlines()]
    cells = [[cell for cell in line.split("  ") if cell] for line in lines]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in cells if len(row) > 2}


@pytest.mark.parametrize("env_id", KINDS)
def test_the_table_lists_every_observed_variable_with_its_value_and_parents(env_id: str) -> None:
    env = played(env_id, "ansi")
    text, base = env.render(), env.unwrapped
    assert text.startswith(env_id)
    rows = rows_of(text)
    listed = [name for name in rows if name in base.scm.nodes]
    assert listed == list(base.scm.nodes)
    for name in base.scm.nodes:
        assert float(rows[name][0]) == pytest.approx(base.values[name], rel=1e-3)
        parents = ", ".join(base.scm.diagram.parents(name)) or "-"
        partners = ", ".join(n for n in base.scm.diagram.nodes if {n, name} in base.scm.diagram.bidirected) or "-"
        assert rows[name][-2:] == [parents, partners]
    mean = base.total_reward / 3
    reward = base.problem.outcomes.reward(base.values)
    expected = f"round 3   reward {reward:.4g}   total {base.total_reward:.4g}   mean {mean:.4g}"
    assert text.splitlines()[-1] == expected
    assert text.isascii()


def test_columns_are_aligned_and_say_what_an_action_reaches() -> None:
    table = played("CBO/PSAGraph-v0", "ansi").render()
    header, rule, *rows = table.splitlines()[2:10]
    assert set(rule) <= {"-", " "}
    for title in ("node", "action", "parents", "confounded with"):
        place = header.index(title)
        assert all(row[place - 1] == " " for row in rows if len(row) > place)
    assert rows_of(table)["Aspirin"][1] == "do"
    assert "do" not in rows_of(table)["Cancer"]
    assert rows_of(played("CBO/Rosenbrock-v0", "ansi").render())["X1"][1] == "a1, a2"


def test_before_the_first_round_there_are_no_values_and_without_a_render_mode_no_table() -> None:
    text = played("CBO/CompleteGraph-v0", "ansi", rounds=0).render()
    assert text.splitlines()[-1] == "round 0   no reward yet"
    assert rows_of(text)["B"][0] == "-"
    for env in (gym.make("CBO/Alpine2-v0").unwrapped, gym.make_vec("CBO/Alpine2-v0", 2)):
        with pytest.warns(UserWarning, match="without a render_mode"):
            assert reset(env).render() is None


def test_the_picture_is_an_rgb_array_with_margins_that_changes_with_the_values_alone() -> None:
    env = played("CBO/CompleteGraph-v0", "rgb_array", rounds=0)
    picture = env.render()
    np.testing.assert_array_equal(picture, env.render())
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert picture.shape[0] % 2 == picture.shape[1] % 2 == 0
    for margin in (picture[:3], picture[-3:], picture[:, :3], picture[:, -3:]):
        assert (margin == 255).all()
    env.step(env.action_space.sample())
    second = env.render()
    assert second.shape == picture.shape
    assert (second != picture).any()


def box_of(sheet: Sheet, name: str) -> tuple[float, float, float, float]:
    x, y = sheet.centres[name]
    w, h = 0.5 * sheet.box_width, 0.5 * sheet.box_height
    return x - w, y - h, x + w, y + h


def overlapping(boxes: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of boxes ``(x0, y0, x1, y1)``, shape (n, 4), that have a common inside."""
    lower, upper = boxes[:, :2], boxes[:, 2:]
    apart = ((upper[:, None] <= lower) | (upper <= lower[:, None])).any(axis=-1)
    return [(int(i), int(j)) for i, j in np.argwhere(~apart) if i < j]


def random_diagram(seed: int) -> CausalDiagram:
    """From sparse to complete, with some confounding."""
    rng = random.Random(seed)
    pairs = list(itertools.combinations([f"V{i}" for i in range(9)], 2))
    directed = [pair for pair in pairs if rng.random() < seed / 19]
    bidirected = [pair for pair in pairs if rng.random() < 0.1]
    return CausalDiagram([f"V{i}" for i in range(9)], directed, bidirected)


@pytest.mark.parametrize("case", [*CASES, *range(0, 20, 4)])
def test_boxes_are_apart_and_edges_pass_between_them(case: int | tuple[str, dict[str, Any]]) -> None:
    diagram = random_diagram(case) if isinstance(case, int) else gym.make(case[0], **case[1]).unwrapped.scm.diagram
    layout = lay_out(diagram)
    sheet = Layers(layout, Sizes((1.2, 0.44)))
    boxes = np.array([box_of(sheet, name) for name in diagram.nodes])
    assert overlapping(boxes) == []
    indices = sorted((layout.column[slot], layout.height[slot]) for slot in layout.column)
    for (column, low), (other, high) in itertools.pairwise(indices):
        assert column != other or high - low > 0.4, "bundles cannot be told apart"
    assert {edge[:2] for edge in layout.routes if not edge[2]} == diagram.directed
    assert {frozenset(edge[:2]) for edge in layout.routes if edge[2]} == diagram.bidirected
    for edge in layout.routes:
        tail, head, bidirected = edge
        assert layout.column[tail] < layout.column[head] or bidirected
        points = points_along(curve_of(sheet, edge))
        assert (points[:, 1] < sheet.above).all()
        assert (points[:, 1] > -sheet.below).all()
        inside = ((boxes[:, None, :2] < points) & (points < boxes[:, None, 2:])).all(-1)
        assert not inside.any(), f"{tail} -> {head} runs through a box"


def points_along(controls: list[tuple[float, float]]) -> np.ndarray:
    """Points along Bezier curves, their ends left out."""
    t = np.linspace(0.01, 0.99, 60)[:, None]
    pieces = []
    for start in range(0, len(controls) - 1, 3):
        p0, p1, p2, p3 = np.array(controls[start : start + 4])
        pieces.append((1 - t) ** 3 * p0 + 3 * (1 - t) ** 2 * t * p1 + 3 * (1 - t) * t**2 * p2 + t**3 * p3)
    return np.concatenate(pieces)


def extents(picture: Picture) -> tuple[np.ndarray, list[str]]:
    """Boxes around all that is written, in pixels, and what it is."""
    (legend,) = picture.figure.legends or [None]
    written = [*picture.axes.texts, *(legend.get_texts() if legend else [])]
    renderer = picture.figure.canvas.get_renderer()
    if legend:
        legend.draw(renderer)  # places its texts
    return np.array([text.get_window_extent(renderer).extents for text in written]), [t.get_text() for t in written]


@pytest.mark.parametrize(("env_id", "kwargs"), SLOW_IF_LARGE)
def test_no_two_labels_overlap(env_id: str, kwargs: dict[str, Any]) -> None:
    env = played(env_id, "rgb_array", **kwargs).unwrapped
    env.values |= dict.fromkeys(env.scm.nodes, -123456.0)  # the longest that values can be
    picture = drawn(env, env.action_space.sample())
    boxes, texts = extents(picture)
    assert [(texts[i], texts[j]) for i, j in overlapping(boxes)] == []
    width, height = picture.figure.get_size_inches() * picture.figure.dpi
    assert (boxes > 0).all()
    assert (boxes[:, 2] < width).all()
    assert (boxes[:, 3] < height).all()
    inside = {text: box[2] - box[0] for box, text in zip(boxes, texts, strict=True)}
    room = picture.sheet.box_width * picture.figure.dpi
    assert [text.get_text() for text in picture.texts if inside[text.get_text()] >= room] == []


@pytest.mark.parametrize("count", [2, 20])
def test_the_boxes_of_a_cyclic_diagram_are_apart_and_inside_the_picture(count: int) -> None:
    ring = {((i + 1) % count, i): Linear(0.5) for i in range(count)}
    sheet = sheet_for(SeparableSEM([Uniform()] * count, ring).diagram, Sizes((1.2, 0.44)))
    assert isinstance(sheet, Circle)
    assert sheet.central_node == "Y"
    boxes = np.array([box_of(sheet, name) for name in sheet.centres])
    assert len(boxes) == count + 1
    assert overlapping(boxes) == []
    assert (boxes[:, [0, 1]] > [0.0, -sheet.below]).all()
    assert (boxes[:, [2, 3]] < [sheet.width, sheet.above]).all()


def lines_of(env_id: str, action: Any) -> dict[str, list[tuple[str, bool]]]:
    """What the boxes say of an action, and whether it makes use of it."""
    env = reset(gym.make(env_id, render_mode="rgb_array"))
    env.step(action)
    boxes = drawn(env, action).boxes
    return {name: [(line.label, line.used) for line in box.lines] for name, box in boxes.items() if box.lines}


def test_the_picture_shows_an_action_where_it_acts() -> None:
    shown = lines_of("CBO/Dropwave-v0", np.array([0.5, 0.75]))
    assert shown == {"X0": [("a0 = 0.00", True), ("a1 = 2.56", True)]}
    assert lines_of("CBO/Chemostat-v1", np.zeros(15))["N1"] == [("N_in1 = 60", True)]
    assert lines_of("CBO/GPBandit1-v0", np.array([[0.25], [0.5]])) == {"Y": [("a0 in [0.25, 0.50]", True)]}
    shown = lines_of("CBO/SSEMPeriodic-v1", np.array([1, 0, 1] + [0] * 7, dtype=np.int8))
    assert [node for node, ((_, used),) in shown.items() if used] == ["y1", "y3"]
    assert shown["y2"] == [("z2 -", False)]
    assert shown["y3"][0][0].startswith("z3 = 0.")


def test_drawing_leaves_pyplot_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("cbo_gym.drawing", "cbo_gym.envs.picture"))]:
        monkeypatch.delitem(sys.modules, name)
    # whoever imports it fails
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    played("CBO/XYZWSTBandit-v0", "rgb_array", rounds=1).render()


def test_the_nodes_that_were_set_are_marked() -> None:
    env = reset(gym.make("CBO/PSAGraph-v0", render_mode="ansi"))
    env.step({"target": 1, "values": np.array([0.5, 0.5])})  # {Aspirin}
    starred = [line for line in env.render().splitlines() if line.lstrip().startswith("*")]
    assert [line.split()[1] for line in starred] == ["Aspirin", "set"]  # the node, and the legend
    env.step({"target": 0, "values": np.array([0.5, 0.5])})
    assert "*" not in env.render()
