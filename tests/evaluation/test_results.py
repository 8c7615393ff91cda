import json
import os
import re
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from cbo_gym import evaluate, leaderboard, sweep
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import DamagedRunWarning, Run, load_published, load_run, load_runs, publish
from cbo_gym.evaluation.runs.results import METADATA_KEY, encode_table, name_of, save_run

ENV = "CBO/CoCaFig1-v0"


@pytest.fixture(scope="module")
def played():
    return evaluate("Random", ENV, 3, horizon=4)


@pytest.fixture
def stored(played, tmp_path):
    """The only file of a folder of runs."""
    save_run(tmp_path / name_of(played), played)
    return tmp_path / name_of(played)


def play_again(folder):
    return sweep("Random", ENV, [3], folder, horizon=4, n_jobs=1)


def forge(path, **changes):
    """Change metadata of a run; its checksum fits, as a third-party program would write it."""
    about = json.loads(pl.read_parquet_metadata(path)[METADATA_KEY])
    del about["checksum"]
    path.write_bytes(encode_table(pl.read_parquet(path), about | changes))


def test_a_run_survives_the_disk(played, tmp_path):
    run = replace(played, agent="A(b='ü')", error='"checksum": "' + "0" * 64 + '"')
    save_run(tmp_path / "run.parquet", run)
    back = load_run(tmp_path / "run.parquet")
    assert back.table.equals(run.table, null_equal=True)
    assert back == run
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]
    custom = replace(played, env=f"CBO/Custom-v0(problem={'Problem' * 1000})")
    assert re.fullmatch(
        r"Run\(agent='Random', env='CBO/Custom.{1,190}', seed=3, horizon=4, status='finished'\)", repr(custom)
    )


def test_a_missing_column_is_named_with_those_that_exist(played):
    published = load_published()
    skipped = next(run for run in published if run.status == "skipped")
    finished = next(run for run in published if run.status == "finished")
    for run in (played, finished):
        with pytest.raises(ArgumentError, match=r"no column 'simple_regert'; did you mean 'simple_regret'"):
            run.curve("simple_regert")
    with pytest.raises(ArgumentError, match=r"it has \['round'\], because the run is skipped: .* plays"):
        _ = skipped.seconds_a_round


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(self, content):
        with self.open("wb") as file:
            file.write(b"half a fi")
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_run(tmp_path / "run.parquet", Run("A", "E", 0, 1))
    assert list(tmp_path.iterdir()) == []


def test_no_bit_of_a_file_changes_unnoticed(played, tmp_path):
    path = tmp_path / "run.parquet"
    save_run(path, played)
    content = path.read_bytes()
    for bit in np.random.default_rng(0).choice(8 * len(content), 150, replace=False):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(changed)
        with pytest.raises(ValueError, match="damaged"):
            load_run(path)
    path.write_bytes(content)
    assert load_run(path) == played


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": "banana"}, "status: Input should be 'finished', 'failed' or 'skipped'"),
        ({"seed": "3"}, "seed: Input should be a valid integer"),
        ({"seed": -1}, "seed: Input should be greater than or equal to 0"),
        ({"optimum": "high"}, "optimum: Input should be a valid number"),
        ({"choices": [1, 2]}, "choices.0: Input should be a valid string"),
        ({"libraries": ["numpy"]}, "libraries: Input should be a valid dictionary"),
        ({"colour": "red"}, "colour"),
        ({"horizon": 5}, "4 rows for 5 rounds"),
    ],
)
def test_metadata_of_another_kind_are_refused(stored, changes, message):
    forge(stored, **changes)
    with pytest.raises(ValueError, match=message):
        load_run(stored)


def test_tables_of_another_kind_are_refused(played, stored):
    for table in (pl.DataFrame({"round": [1, 2, 3, 4]}), pl.DataFrame({"round": ["1"]}), pl.DataFrame()):
        save_run(stored, replace(played, table=table))
        with pytest.raises(ValueError, match="its table is wrong"):
            load_run(stored)
    for seed, horizon, said in (("0", 1, "valid integer"), (0, 0, "greater than 0")):
        with pytest.raises(ValueError, match=said):
            Run("A", "E", seed, horizon)


def replace_by(make):
    def damage(path):
        path.unlink()
        make(path)

    return damage


DAMAGES = {
    "a longer file": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "a folder": replace_by(lambda path: (path / "more").mkdir(parents=True)),
    "a link to itself": replace_by(lambda path: path.symlink_to(path.name)),
    "a link to nothing": replace_by(lambda path: path.symlink_to("nowhere")),
    "a pipe": replace_by(os.mkfifo),
    "an endless device": replace_by(lambda path: path.symlink_to("/dev/zero")),
    "metadata of two lines": lambda path: forge(path, version="\n\n", mode="\n\n", env="CBO/Dropwave-v0(("),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_run_is_named_in_one_line_and_played_again(stored, tmp_path, damage):
    damage(stored)
    with pytest.warns(DamagedRunWarning) as said:
        assert list(load_runs(tmp_path)) == []
    (line,) = (str(one.message) for one in said)
    assert (str(stored) in line, "\n" in line, len(line) < 1000) == (True, False, True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedRunWarning)
        assert play_again(tmp_path) == {"finished": 1, "failed": 0, "skipped": 0, "resumed": 0}


@pytest.mark.parametrize("changes", [{"colour": "red"}, {"status": "paused"}, {"seed": {"of": "noise"}}])
def test_a_run_of_a_newer_version_is_named_and_stays(stored, tmp_path, changes):
    forge(stored, version="99.0", **changes)
    before = stored.read_bytes()
    message = r"is of cbo-gym 99\.0, which this one, .*, cannot read; install the newer one"
    with pytest.warns(DamagedRunWarning, match=message):
        assert list(load_runs(tmp_path)) == []
    for call in (play_again, lambda folder: publish(folder, folder / "store")):
        with pytest.raises(ArgumentError, match=message):
            call(tmp_path)
    assert [path.name for path in tmp_path.glob("*.parquet")] == [stored.name]
    assert stored.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"not parquet", b'{"checksum": "' + b"0" * 64 + b'"}'])
def test_foreign_files_are_named_and_left_out(played, tmp_path, content):
    (tmp_path / "other.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"other\.parquet is"):
        load_run(tmp_path / "other.parquet")
    save_run(tmp_path / name_of(played), played)
    save_run(tmp_path / "a-copy.parquet", played)
    with pytest.warns(DamagedRunWarning) as said:
        assert leaderboard(tmp_path).table.height == 1
    copied, other = (str(warning.message) for warning in said)
    assert re.match(r"left out: .*a-copy\.parquet is not what its name says: it holds Random on", copied)
    assert re.match(r"left out: .*other\.parquet is", other)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    for name, message in (("other.parquet", "no checksum"), ("none.parquet", r"cannot read .*none\.parquet")):
        with pytest.raises(ValueError, match=message):
            load_run(tmp_path / name)
    with pytest.raises(ValueError, match="there is no folder"):
        list(load_runs(tmp_path / "none"))
