"""Tables on terminals of any width: nothing is lost, no word is cut."""

import random

import pytest
from rich.cells import cell_len
from rich.console import Console

from cbo_gym.cli.layout import layout, printable

HEADER = ["agent", "average regret", "score of play"]
ROWS = [["GP-UCB", "0.72 ± 0.40", "0.612 [0.553, 0.681]"], ["my own agent", "1.5 ± 0.16", "-"]]


def lines_of(header, rows, width=None, droppable=()):
    """The lines of a table, and the columns that were left out."""
    table, dropped = layout(header, rows, width, droppable)
    with (console := Console(width=table.width, no_color=True)).capture() as printed:
        console.print(table)
    return [line.rstrip() for line in printed.get().splitlines()], dropped


def test_without_a_width_a_table_is_as_wide_as_it_needs():
    assert lines_of(HEADER, ROWS)[0] == [
        "agent         average regret         score of play",
        "GP-UCB           0.72 ± 0.40  0.612 [0.553, 0.681]",
        "my own agent      1.5 ± 0.16                     -",
    ]
    assert lines_of(["agent"], [["a\nb"]])[0][1] == "a\\nb"
    assert printable("a\nb\x1b[31m$<[b]é") == "a\\nb\\x1b[31m$<[b]é"


def test_titles_give_way_first_then_words_then_columns():
    assert [line.split() for line in lines_of(HEADER, ROWS, 48)[0][:2]] == [
        ["average"],
        ["agent", "regret", "score", "of", "play"],
    ]
    assert lines_of(HEADER, ROWS, 44)[0][2:] == [
        "GP-UCB     0.72 ± 0.40  0.612 [0.553, 0.681]",
        "my own      1.5 ± 0.16                     -",
        "agent",
    ]
    assert lines_of(HEADER, ROWS, 32, droppable=["average regret", "score of play"])[1] == ["average regret"]
    assert not lines_of(HEADER, ROWS, 44, droppable=["average regret"])[1]


def test_no_line_is_too_wide_and_no_word_is_cut():
    draw = random.Random(0)
    for _ in range(200):
        columns, width = draw.randint(1, 6), draw.randint(40, 130)
        words = ["".join(draw.choices("abcdeé-/(", k=draw.randint(1, width // 2))) for _ in range(8)]
        rows = [[" ".join(draw.choices(words, k=draw.randint(1, 3))) for _ in range(columns)] for _ in range(3)]
        header = [f"title {index}" for index in range(columns)]
        lines, dropped = lines_of(header, rows, width, droppable=header[1:])
        assert max(map(cell_len, lines)) <= width
        kept = [index for index in range(columns) if header[index] not in dropped]
        given = sorted(word for row in [header, *rows] for index in kept for word in row[index].split())
        assert sorted(word for line in lines for word in line.split()) == given


@pytest.mark.parametrize("label", ["x" * 200, "日本語" * 40])
def test_a_label_that_fits_nowhere_is_broken_and_whole(label):
    lines, _ = lines_of(["agent", "score"], [[label, "0.5"], ["a", "1.5"]], 80)
    assert max(map(cell_len, lines)) <= 80
    assert "".join(line.removesuffix("0.5").strip() for line in lines[1:-1]) == label
    narrow, _ = lines_of(["agent", "score"], [["abcdefghijkl", "0123456"]], 12)
    assert "".join("".join(narrow[-3:]).split()) == "abcd0123efgh456ijkl"
