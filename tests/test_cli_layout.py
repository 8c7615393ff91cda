"""Tables on terminals of any width: nothing is lost, no word is cut."""

import random

import pytest
from rich.cells import cell_len

from cbo_gym.cli.layout import layout, printable, wrap

HEADER = ["agent", "average regret", "score of play"]
ROWS = [["GP-UCB", "0.72 ± 0.40", "0.612 [0.553, 0.681]"], ["my own agent", "1.5 ± 0.16", "-"]]


def test_without_a_width_a_table_is_as_wide_as_it_needs():
    table = layout(HEADER, ROWS)
    assert table.header == ["agent         average regret         score of play"]
    assert table.body == [
        "GP-UCB           0.72 ± 0.40  0.612 [0.553, 0.681]",
        "my own agent      1.5 ± 0.16                     -",
    ]


def test_titles_give_way_first_then_cells_then_columns():
    titles = layout(HEADER, ROWS, 48)
    assert [line.split() for line in titles.header] == [["agent", "average", "score", "of", "play"], ["regret"]]
    assert len(titles.body) == 2
    cells = layout(HEADER, ROWS, 42)
    assert cells.body == [
        "GP-UCB        0.72 ± 0.40           0.612",
        "                           [0.553, 0.681]",
        "my own agent   1.5 ± 0.16               -",
    ]
    fewer = layout(HEADER, ROWS, 25, droppable=["average regret", "score of play"])
    assert fewer.dropped == ["average regret"]
    assert not layout(HEADER, ROWS, 42, droppable=["average regret"]).dropped


def test_no_line_is_too_wide_and_no_word_is_cut():
    draw = random.Random(0)
    for _ in range(200):
        columns, width = draw.randint(1, 6), draw.randint(40, 130)
        words = ["".join(draw.choices("abcdeé-/(", k=draw.randint(1, width // 2))) for _ in range(8)]
        rows = [[" ".join(draw.choices(words, k=draw.randint(1, 3))) for _ in range(columns)] for _ in range(3)]
        header = [f"title {place}" for place in range(columns)]
        table = layout(header, rows, width, droppable=header[1:])
        lines = [*table.header, *table.body]
        assert max(map(cell_len, lines)) <= width
        kept = [place for place in range(columns) if header[place] not in table.dropped]
        given = sorted(word for row in rows for place in kept for word in row[place].split())
        assert sorted(word for line in table.body for word in line.split()) == given


@pytest.mark.parametrize(
    "label", ["x" * 200, "日本語" * 40, "MCBO(beta=0.5,samples=32,restarts=16,note='abcdefghijklmnopqrstuvw')"]
)
def test_a_label_that_fits_nowhere_is_broken_and_whole(label):
    rows = [[label, "0.5"], ["a", "1.5"]]
    table = layout(["agent", "score"], rows, 80)
    assert max(map(cell_len, table.body)) <= 80
    first = [line.removesuffix("0.5").strip() for line in table.body[:-1]]
    assert "".join(first) == label
    assert all(line.endswith(("(", ",", "=")) for line in first[:-1]) or label[0] != "M"


def test_a_narrow_terminal_still_shows_all():
    table = layout(["agent", "score"], [["abcdefghijkl", "0123456"]], 12)
    assert "".join("".join(table.body).split()) == "abcde01234fghij56kl"


def test_what_moves_the_cursor_or_colours_is_shown_as_its_escape():
    assert printable("a\nb\x1b[31m$<[b]é") == "a\\nb\\x1b[31m$<[b]é"
    assert layout(["agent"], [["a\nb"]]).body == ["a\\nb"]


def test_intervals_stay_together():
    assert wrap("0.612 [0.553, 0.681]", 14) == ["0.612", "[0.553, 0.681]"]
    assert wrap("12.3 ± 4.5 (2 failed)", 11) == ["12.3 ± 4.5", "(2 failed)"]
