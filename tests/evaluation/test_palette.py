"""Labels and line styles of agents are distinct in every figure and format."""

from itertools import combinations

import numpy as np
import pytest

from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.evaluation.report.palette import COLOURS, file_names, for_figure, line_styles, shorten

# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deuteranopia": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


def linear(colour):
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    white = np.array([0.9505, 1.0, 1.089])
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb.clip(0, 1)
    x, y, z = np.where(xyz / white > 0.008856, np.cbrt(xyz / white), 7.787 * xyz / white + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("matrix", DEFICIENCIES.values(), ids=DEFICIENCIES)
def test_colours_are_distinct_with_any_colour_vision(matrix):
    seen = [lab(np.asarray(matrix) @ linear(colour)) for colour in COLOURS]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 16


def test_the_look_of_an_agent_does_not_depend_on_others():
    all_styles = line_styles([*zoo(), "Mine", "GP-UCB(beta=2)"])
    assert len(set(all_styles.values())) == len(zoo()) + 2
    for name in zoo():
        assert line_styles([name, "Mine"])[name] == all_styles[name]
    variant, agent = all_styles["GP-UCB(beta=2)"], all_styles["GP-UCB"]
    assert variant.colour == agent.colour
    assert variant.dash != agent.dash
    assert variant.marker != agent.marker


def test_other_agents_take_the_colours_that_are_left():
    own = [f"my_package.module:Agent{number}" for number in range(len(COLOURS) + 1)]
    styles = line_styles(own)
    assert [styles[name].colour for name in own] == [*COLOURS, COLOURS[0]]
    assert len(set(styles.values())) == len(own)
    assert line_styles(["CBO", "Mine"])["Mine"].colour != line_styles(["CBO"])["CBO"].colour


def test_labels_are_shown_literally_and_long_ones_shortened_and_stay_different():
    labels = ["A", "x" * 200, "x" * 99 + "y" + "x" * 100, "line\nbreak"]
    short = shorten(labels, 24)
    assert len(set(short.values())) == 4
    assert max(map(len, short.values())) <= 24
    assert (short["A"], short["line\nbreak"]) == ("A", r"line\nbreak")
    assert for_figure("a$b$\x00") == r"a\$b\$\x00"
    assert for_figure("_a").strip() == "_a"
    assert not for_figure("_a").startswith("_")  # which legends leave out


def test_file_names_are_plain_and_differ():
    labels = ["CBO/A-v0(b=1), T=50", "CBO/A-v0(b=-1), T=50", "CBO/B-v0, T=50", "CBO/b-v0, T=50", "x" * 300, "$"]
    names = file_names(labels)
    assert names["CBO/A-v0(b=1), T=50"].startswith("CBO-A-v0-b-1-T50-")
    assert len({name.lower() for name in names.values()}) == len(labels)
    assert all(0 < len(name) <= 100 and name.replace("-", "").isalnum() for name in names.values())
    assert file_names(labels[:1]) == {labels[0]: "CBO-A-v0-b-1-T50"}
