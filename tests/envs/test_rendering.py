"""Rendering: what the table says, and that nothing in the picture overlaps or is cut off."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cbo_gym  # noqa: F401  (registers the environments)
from cbo_gym.envs import picture
from cbo_gym.envs.layout import lay_out
from cbo_gym.registry import entries
from cbo_gym.scm import CausalDiagram, Linear, SeparableSEM, Uniform

IDS = [entry.id for entry in entries()]
CASES = [(env_id, {}) for env_id in IDS] + [("CBO/BinaryTree-v0", {"depth": depth}) for depth in (4, 6)]


def played(env_id: str, render_mode: str, rounds: int = 3, **kwargs: Any) -> Any:
    env = gym.make(env_id, render_mode=render_mode, **kwargs)
    env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(rounds):
        env.step(env.action_space.sample())
    return env


def rows_of(text: str) -> dict[str, list[str]]:
    """The table's rows by node, cut where two or more blanks stand."""
    lines = [line.strip("* ") for line in text.splitlines()]
    cells = [[cell for cell in line.split("  ") if cell] for line in lines]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in cells if len(row) > 2}


@pytest.mark.parametrize("env_id", IDS)
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
    reward = base.values["Y"]
    expected = f"round 3   reward {reward:.4g}   total {base.total_reward:.4g}   mean {mean:.4g}"
    assert text.splitlines()[-1] == expected
    assert text.isascii()
    assert text.isprintable() or "\n" in text
    assert "\x1b" not in text


def test_columns_are_aligned() -> None:
    lines = played("CBO/PSAGraph-v0", "ansi").render().splitlines()
    header, rule, *rows = lines[2:10]
    assert set(rule) <= {"-", " "}
    for title in ("node", "action", "parents", "confounded with"):
        place = header.index(title)
        assert all(row[place - 1] == " " for row in rows if len(row) > place)
    end = header.index("value") + len("value")
    assert all(row[end - 1].isdigit() and row[end] == " " for row in rows)


def test_the_table_says_what_an_action_reaches() -> None:
    soft = rows_of(played("CBO/Rosenbrock-v0", "ansi").render())
    assert soft["X1"][1] == "a1, a2"
    hard = rows_of(played("CBO/PSAGraph-v0", "ansi").render())
    assert hard["Aspirin"][1] == "do"
    assert "do" not in hard["Cancer"]


@pytest.mark.parametrize("env_id", ["CBO/CompleteGraph-v0", "CBO/Dropwave-NoisyPublished-v0"])
def test_latent_variables_are_not_shown(env_id: str) -> None:
    text = played(env_id, "ansi").render()
    assert "U0" not in text
    assert "U1" not in text
    assert "U2" not in text


def test_before_the_first_round_there_are_no_values() -> None:
    env = played("CBO/CompleteGraph-v0", "ansi", rounds=0)
    text = env.render()
    assert text.splitlines()[-1] == "round 0   no reward yet"
    assert rows_of(text)["B"][0] == "-"
    picture = played("CBO/CompleteGraph-v0", "rgb_array", rounds=0).render()
    assert picture.shape == played("CBO/CompleteGraph-v0", "rgb_array").render().shape


def test_without_a_render_mode_there_is_a_warning_and_nothing_else() -> None:
    env = gym.make("CBO/Alpine2-v0").unwrapped
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert env.render() is None


@pytest.mark.parametrize(("env_id", "kwargs"), CASES)
def test_the_picture_is_an_rgb_array_with_margins(env_id: str, kwargs: dict[str, Any]) -> None:
    picture = played(env_id, "rgb_array", **kwargs).render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert picture.shape[0] % 2 == picture.shape[1] % 2 == 0
    for margin in (picture[:3], picture[-3:], picture[:, :3], picture[:, -3:]):
        assert (margin == 255).all()
    assert (picture != 255).any()


def test_the_picture_changes_with_the_values_and_keeps_its_size() -> None:
    env = played("CBO/Alpine2-Noisy-v0", "rgb_array")
    first = env.render()
    np.testing.assert_array_equal(first, env.render())
    env.step(env.action_space.sample())
    second = env.render()
    assert second.shape == first.shape
    assert (second != first).any()


def box_of(canvas: Any, name: str) -> tuple[float, float, float, float]:
    x, y = canvas.centre(name)
    w, h = 0.5 * canvas.box_width, 0.5 * canvas.box_height
    return x - w, y - h, x + w, y + h


def random_diagram(seed: int) -> CausalDiagram:
    """From sparse to complete, with some confounding."""
    rng = random.Random(seed)
    pairs = list(itertools.combinations([f"V{i}" for i in range(9)], 2))
    directed = [pair for pair in pairs if rng.random() < seed / 19]
    bidirected = [pair for pair in pairs if rng.random() < 0.1]
    return CausalDiagram([f"V{i}" for i in range(9)], directed, bidirected)


DIAGRAMS = [gym.make(env_id, **kwargs).unwrapped.scm.diagram for env_id, kwargs in CASES]
DIAGRAMS = [diagram for diagram in DIAGRAMS if diagram.is_acyclic]
DIAGRAMS += [random_diagram(seed) for seed in range(20)]


@pytest.mark.parametrize("diagram", DIAGRAMS, ids=range(len(DIAGRAMS)))
def test_boxes_are_apart_and_edges_pass_between_them(diagram: CausalDiagram) -> None:
    layout = lay_out(diagram)
    canvas = picture._Canvas(layout, 10)
    boxes = {name: box_of(canvas, name) for name in diagram.nodes}
    for (x0, y0, x1, y1), (u0, v0, u1, v1) in itertools.combinations(boxes.values(), 2):
        assert x1 < u0 or u1 < x0 or y1 < v0 or v1 < y0
    for one, two in itertools.combinations(layout.column, 2):
        if layout.column[one] == layout.column[two]:
            assert abs(layout.height[one] - layout.height[two]) > 0.4  # or bundles could not be told apart
    assert {edge[:2] for edge in layout.routes if not edge[2]} == diagram.directed
    assert {frozenset(edge[:2]) for edge in layout.routes if edge[2]} == diagram.bidirected
    for tail, head, bidirected in layout.routes:
        assert layout.column[tail] < layout.column[head] or bidirected
        points = curve_points(canvas, (tail, head, bidirected))
        for name, (left, bottom, right, top) in boxes.items():
            inside = (left < points[:, 0]) & (points[:, 0] < right) & (bottom < points[:, 1]) & (points[:, 1] < top)
            assert not inside.any(), f"{tail} -> {head} runs through {name}"


def curve_points(canvas: Any, edge: tuple[str, str, bool]) -> np.ndarray:
    """Points along the Bezier curves of an edge, its ends left out."""
    places = canvas.layout.routes[edge]
    is_arc = edge[2] and len(places) == 2
    controls = picture._arc(canvas, *edge[:2]) if is_arc else picture._curve(canvas, places, edge[2])
    t = np.linspace(0.01, 0.99, 60)[:, None]
    pieces = []
    for start in range(0, len(controls) - 1, 3):
        p0, p1, p2, p3 = np.array(controls[start : start + 4])
        pieces.append((1 - t) ** 3 * p0 + 3 * (1 - t) ** 2 * t * p1 + 3 * (1 - t) * t**2 * p2 + t**3 * p3)
    return np.concatenate(pieces)


def test_texts_fit_into_their_boxes() -> None:
    for env_id, kwargs in CASES:
        env = played(env_id, "rgb_array", **kwargs).unwrapped
        canvas = picture._canvas(env.scm)
        for name in env.scm.nodes:
            picture._draw_node(canvas, name, "-1.234e+05", "white", False)
        canvas.agg.draw()
        width = canvas.box_width * picture.DPI
        assert all(text.get_window_extent().width < width for text in canvas.axes.texts)
        names, values = canvas.axes.texts[::2], canvas.axes.texts[1::2]
        for name, value, box in zip(names, values, canvas.axes.patches, strict=True):
            above, below = name.get_window_extent(), value.get_window_extent()
            outline = box.get_window_extent()
            assert outline.y0 < below.y0 < below.y1 <= above.y0 < above.y1 < outline.y1


@pytest.mark.parametrize("count", [2, 3, 7, 20, 40])
def test_the_boxes_of_a_cyclic_diagram_are_apart_and_inside_the_picture(count: int) -> None:
    ring = {((i + 1) % count, i): Linear(0.5) for i in range(count)}
    canvas = picture._canvas(SeparableSEM([Uniform()] * count, ring))
    boxes = [box_of(canvas, name) for name in canvas.places]
    assert len(boxes) == count + 1
    for (x0, y0, x1, y1), (u0, v0, u1, v1) in itertools.combinations(boxes, 2):
        assert x1 < u0 or u1 < x0 or y1 < v0 or v1 < y0
    (left, right), (bottom, top) = canvas.axes.get_xlim(), canvas.axes.get_ylim()
    assert all(left < x0 and x1 < right and bottom + 0.4 < y0 and y1 < top - 0.6 for x0, y0, x1, y1 in boxes)


def test_a_tree_is_drawn_as_one() -> None:
    diagram = gym.make("CBO/BinaryTree-v0", depth=6).unwrapped.scm.diagram
    height = lay_out(diagram).height
    for name in diagram.nodes:
        if parents := diagram.parents(name):
            upper, lower = (height[parent] for parent in parents)
            assert height[name] == pytest.approx(0.5 * (upper + lower))
            assert upper > lower


def test_drawing_leaves_pyplot_alone() -> None:
    code = (
        "import sys, gymnasium as gym; env = gym.make('cbo_gym:CBO/Alpine2-v0', render_mode='rgb_array');"
        "env.reset(); env.render(); print('matplotlib.pyplot' in sys.modules, 'matplotlib.figure' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False", "True"]


def test_the_nodes_that_were_set_are_marked() -> None:
    env = gym.make("CBO/PSAGraph-v0", render_mode="ansi")
    env.reset(seed=0)
    env.step({"target": 1, "values": np.array([0.5, 0.5])})  # {Aspirin}
    starred = [line for line in env.render().splitlines() if line.lstrip().startswith("*")]
    assert [line.split()[1] for line in starred] == ["Aspirin", "set"]  # the node, and the legend
    env.step({"target": 0, "values": np.array([0.5, 0.5])})
    assert "*" not in env.render()
