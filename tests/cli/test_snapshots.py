"""What the commands print at 80 and at 120 columns, held as it is: ``pytest --snapshot-update`` after a change."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from typer import rich_utils
from typer.testing import CliRunner

from cbo_gym.cli import app, output

ROOT = Path(__file__).parents[2]
STORE = str(ROOT / "results" / "showcase.parquet")
COMMANDS = {
    "help": ["--help"],
    "sweep": ["sweep", "--help"],
    "agents": ["agents"],
    "one agent": ["agents", "MCBO"],
    "list": ["list", "--mode", "contextual"],
    "show": ["show", "CBO/ToyGraph-v0"],
    "suites": ["suites"],
    "leaderboard": ["leaderboard", STORE, "-a", "Random", "-a", "GP-UCB", "-a", "CBO"],
}


def printed(monkeypatch, words, width):
    monkeypatch.setattr(output, "_width", lambda: width)
    monkeypatch.setattr(output.console, "_width", width)
    monkeypatch.setattr(output.console, "soft_wrap", False)
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", width)
    done = CliRunner().invoke(
        app, words, prog_name="cbo-gym", env={"COLUMNS": str(width), "TERM": "dumb", "NO_COLOR": "1"}
    )
    assert done.exit_code == 0, done.output
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_prints(monkeypatch, snapshot, name, width):
    string = printed(monkeypatch, COMMANDS[name], width)
    assert max(map(cell_len, string.splitlines())) <= width
    assert string == snapshot


@pytest.mark.parametrize("width", [80, 120])
def test_tables_of_environments_have_the_same_columns(monkeypatch, width):
    string = printed(monkeypatch, [*COMMANDS["leaderboard"], "-e", "CBO/Alpine2-v0", "-e", "CBO/ToyGraph-v0"], width)
    tables = [part.splitlines() for part in string.split("CBO/")[1:3]]
    heads = [" ".join(line for line in lines[1:] if not line.startswith(("Random", "GP-UCB"))) for lines in tables]
    assert heads[0].split()[:6] == heads[1].split()[:6]
