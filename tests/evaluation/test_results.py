import json
import re
from dataclasses import replace
from io import BytesIO

import numpy as np
import polars as pl
import pytest

from cbo_gym import evaluate, leaderboard
from cbo_gym.evaluation import DamagedRunWarning, Run, load_run, load_runs
from cbo_gym.evaluation.runs.results import METADATA_KEY, name_of, save_run


@pytest.fixture(scope="module")
def played():
    return evaluate("Random", "CBO/CoCaFig1-v0", 3, horizon=4)


def test_the_representation_of_a_run_is_one_short_line(played):
    run = replace(played, env=f"CBO/Custom-v0(problem={'Problem' * 1000})")
    assert re.fullmatch(
        r"Run\(agent='Random', env='CBO/Custom.{1,190}', seed=\d+, horizon=\d+, status='finished'\)", repr(run)
    )


def test_a_run_survives_the_disk(played, tmp_path):
    run = replace(played, agent="A(b='ü')", error='"checksum": "' + "0" * 64 + '"')
    save_run(tmp_path / "run.parquet", run)
    back = load_run(tmp_path / "run.parquet")
    assert back.table.equals(run.table, null_equal=True)
    assert back == run
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]


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
    """A sample of the bits; tests/trials has more."""
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
def test_metadata_and_tables_of_another_kind_are_refused(played, tmp_path, changes, message):
    """With a checksum that fits, as a third-party program would write it."""
    path = tmp_path / "run.parquet"
    save_run(path, played)
    stored = json.loads(pl.read_parquet_metadata(path)[METADATA_KEY])
    forged(path, played.table, stored | changes)
    with pytest.raises(ValueError, match=message):
        load_run(path)
    for table in (pl.DataFrame({"round": [1, 2, 3, 4]}), pl.DataFrame({"round": ["1"]}), pl.DataFrame()):
        save_run(path, replace(played, table=table))
        with pytest.raises(ValueError, match="its table is wrong"):
            load_run(path)
    for seed, horizon, said in (("0", 1, "valid integer"), (0, 0, "greater than 0")):
        with pytest.raises(ValueError, match=said):
            Run("A", "E", seed, horizon)


def forged(path, table, stored):
    from hashlib import sha256

    content = BytesIO()
    table.write_parquet(content, metadata={METADATA_KEY: json.dumps(stored | {"checksum": "0" * 64})})
    blank = content.getvalue()
    path.write_bytes(blank.replace(b"0" * 64, sha256(blank).hexdigest().encode()))


@pytest.mark.parametrize("content", [b"", b"not parquet", b'{"checksum": "' + b"0" * 64 + b'"}'])
def test_foreign_files_are_named_and_left_out(played, tmp_path, content):
    (tmp_path / "other.parquet").write_bytes(content)
    save_run(tmp_path / name_of(played), played)
    with pytest.raises(ValueError, match=r"other\.parquet is"):
        load_run(tmp_path / "other.parquet")
    with pytest.warns(DamagedRunWarning, match=r"left out: .*other\.parquet is") as said:
        assert list(load_runs(tmp_path)) == [played]
    assert len(said) == 1
    with pytest.raises(ValueError, match="there is no folder"):
        list(load_runs(tmp_path / "none"))
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="no checksum"):
        load_run(tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"cannot read .*none\.parquet"):
        load_run(tmp_path / "none.parquet")


def test_the_leaderboard_is_of_the_runs_that_are_intact(played, tmp_path):
    save_run(tmp_path / name_of(played), played)
    save_run(tmp_path / "a-copy.parquet", played)
    with pytest.warns(DamagedRunWarning, match=r"a-copy\.parquet is not what its name says: it holds Random on"):
        assert leaderboard(tmp_path).table.height == 1
