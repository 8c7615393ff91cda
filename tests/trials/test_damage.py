"""Damaged files of runs: each is reported in one line, and other runs are not affected."""

import os
import shutil
import warnings
from contextlib import contextmanager

import polars as pl
import pytest
from typer.testing import CliRunner

from cbo_gym import leaderboard, sweep
from cbo_gym.cli import app
from cbo_gym.evaluation import DamagedRunWarning
from tests.trials.helpers import essences, forged, say

pytestmark = pytest.mark.slow

ENVS = {  # one of each mode
    "soft": "CBO/Dropwave-v0", "hard": "CBO/ToyGraph-v0", "contextual": "CBO/Alpine2-Contextual-v0",
    "aggregated": "CBO/Dropwave-Aggregated-v0", "masked": "CBO/SSEMPeriodic-v0",
}  # fmt: skip
GRID = {"agents": ["Random"], "envs": list(ENVS.values()), "seeds": range(6), "horizon": 3, "n_jobs": 2}
RUNS = 30


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("intact")
    assert sweep(folder=folder, **GRID)["finished"] == RUNS
    return folder


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replaced_by_folder(path, full=False):
    path.unlink()
    path.mkdir()
    if full:
        (path / "more").write_text("text")


def replaced_by_pipe(path):
    path.unlink()
    os.mkfifo(path)


def linked(path, to):
    path.unlink()
    path.symlink_to(to)


DAMAGES = {
    "flipped": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("a\nb"),
    "other parquet": lambda path: pl.DataFrame({"a": [1]}).write_parquet(path),
    "another's copy": lambda path: shutil.copy(sorted(path.parent.glob("*.parquet"))[-1], path),
    "folder": replaced_by_folder,
    "folder with files": lambda path: replaced_by_folder(path, full=True),
    "link to itself": lambda path: linked(path, path.name),
    "link to nothing": lambda path: linked(path, "nowhere"),
    "link to its folder": lambda path: linked(path, "."),
    "pipe": replaced_by_pipe,
    "endless device": lambda path: linked(path, "/dev/zero"),
    "status banana": lambda path: forged(path, status="banana"),
    "seed as text": lambda path: forged(path, seed="0"),
    "status of a list": lambda path: forged(path, status=["finished"]),
    "horizon of a million": lambda path: forged(path, horizon=10**6),
    "no choices": lambda path: forged(path, choices=None),
    "choices of numbers": lambda path: forged(path, choices=3),
    "version that is none": lambda path: forged(path, version="banana"),
    "mode that is none": lambda path: forged(path, mode="banana"),
    "optimum of None": lambda path: forged(path, optimum=None),
    "date that is none": lambda path: forged(path, date="\n\n"),
    "env of another syntax": lambda path: forged(path, env="CBO/Dropwave-v0(("),
}  # fmt: skip


@pytest.mark.parametrize("command", ["leaderboard", "choose"])
def test_what_reads_a_folder_says_each_in_one_line_and_goes_on(intact, tmp_path, command):
    folder = tmp_path / "runs"
    shutil.copytree(intact, folder)
    spoilt = spoil(folder)
    with noted() as said:
        if command == "leaderboard":
            assert leaderboard(folder).table.height >= RUNS - len(spoilt)
            done = CliRunner().invoke(app, ["leaderboard", str(folder)])
            assert done.exit_code == 0, done.output
        else:
            done = CliRunner().invoke(app, ["choose", str(folder), "--agent", "Random", "--parameter", "beta"])
            assert "beta" in done.output, done.exception  # there is no such parameter
    lines = said + done.output.splitlines() * (command == "choose")
    unsaid = [what for what, path in spoilt.items() if not any(str(path) in line for line in lines)]
    say(f"damaged files, {command}", f"{len(spoilt)} spoilt", f"{len(unsaid)} not said: {unsaid}")
    assert unsaid == []


def test_a_sweep_says_each_in_one_line_and_plays_it_again(intact, tmp_path):
    folder = tmp_path / "runs"
    shutil.copytree(intact, folder)
    for _ in range(2):  # what is set aside has a name each time
        spoilt = spoil(folder)
        with noted() as said:
            count = sweep(folder=folder, **GRID)
        assert count["finished"] == RUNS
        assert essences(folder) == essences(intact)
        say("damaged files, sweep", f"{len(spoilt)} spoilt", f"{len(said)} lines", f"{count['resumed']} resumed",
            f"{len(list((folder / 'damaged').iterdir()))} set aside")  # fmt: skip
        for line in said:
            print("  ...", line.replace(str(folder), "")[:150])


@contextmanager
def noted():
    """What is said of damaged files meanwhile."""
    lines = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield lines
    lines += [str(one.message) for one in said if issubclass(one.category, DamagedRunWarning)]
    assert all("\n" not in line and len(line) < 1000 for line in lines)


def spoil(folder):
    paths = dict(zip(DAMAGES, sorted(folder.glob("*.parquet")), strict=False))
    for what, path in paths.items():
        DAMAGES[what](path)
    assert len(paths) == len(DAMAGES)
    return paths
